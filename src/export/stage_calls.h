/*
 * stage_calls: a step of a plan with stages as a list of calls. Private to this folder.
 *
 * The events of src/pipelined/stage_programs.h name what they read by values of the looped program,
 * and what is there depends on what came before. Here each array that is ever made has a number of
 * its own, so that whoever carries the calls out, one after the other, needs no rules: a call takes
 * arrays by number and makes new ones.
 */
#ifndef SW_EXPORT_STAGE_CALLS_H
#define SW_EXPORT_STAGE_CALLS_H

#include "pipelined/stage_programs.h"

#define SW_NO_NUMBER SW_ABSENT

/* A program of one slice. */
typedef struct sw_called_piece {
	const sw_piece_program *program;
	int32_t slice;
	const char *name; /* "forward0": what it does, and of which stage */
} sw_called_piece;

/* How a value of the looped program lies in a slice. */
typedef struct sw_slice_array {
	int32_t slice;
	sw_id value;
	const sw_layout *layout;
} sw_slice_array;

/* A call of a piece, whose outputs are new arrays but for those that it gives as it gets them; or,
 * where `piece` is negative, one array that goes to another slice. */
typedef struct sw_stage_call {
	int32_t piece, microbatch; /* microbatch -1: of none */
	uint32_t n_inputs, n_outputs;
	uint32_t *inputs, *outputs; /* numbers */
} sw_stage_call;

typedef struct sw_stage_calls {
	sw_arena arena;
	const sw_stage_programs *programs; /* borrowed */
	SW_VEC(sw_called_piece) pieces;
	SW_VEC(sw_slice_array) arrays;
	uint32_t **array_of;      /* [slice][value]: which of `arrays` it is; SW_NO_NUMBER: none */
	SW_VEC(uint32_t) numbers; /* per number: which of `arrays` it is one of */
	SW_VEC(sw_stage_call) calls;
	uint32_t **inputs; /* [slice][input of the step]: SW_NO_NUMBER where the slice reads none */
	/* [results of the step]; SW_NO_NUMBER: the result is an input that no slice reads */
	uint32_t *outputs;
} sw_stage_calls;

/* Write the calls, without those that bring state to other slices for the next step: the caller has
 * the results of a step, and places the inputs of the next. SW_ERR_INTERNAL: a piece takes an array
 * in another layout than it is there. Cleared by the caller, also if this fails. O(events * ports). */
sw_status sw_stage_calls_init(sw_stage_calls *calls, const sw_stage_programs *programs,
                              sw_error *err);
void sw_stage_calls_clear(sw_stage_calls *calls);
/* Return the number of the array among `arrays` of a port of a piece. */
uint32_t sw_called_port(const sw_stage_calls *calls, const sw_called_piece *piece, bool input,
                        uint32_t i);

#endif
