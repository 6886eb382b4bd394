/*
 * stage_programs: the programs of one device of each stage, and what travels between stages.
 *
 * A step of a plan with stages is a list of EVENTS in one order, which all ranks follow: a pass of
 * a microbatch, a piece of the entry, or a transfer. A rank takes part in those of its stage; since
 * the order is one, ranks can't wait for each other in a circle.
 */
#ifndef SW_PIPELINED_STAGE_PROGRAMS_H
#define SW_PIPELINED_STAGE_PROGRAMS_H

#include "pipelined/pipelined.h"

/* A piece as its stage's devices run it. Its collectives name ranks of the whole cluster. */
typedef struct sw_piece_program {
	const sw_stage_piece *piece;
	sw_plan *plan;
	sw_program *local; /* NULL: there is nothing to do */
} sw_piece_program;

/* A value that goes from one slice to another: of the body, for each microbatch; else of the
 * entry. */
typedef struct sw_stage_transfer {
	sw_id value, as; /* what it is in the slice that gets it: itself, or an input of the step */
	int32_t from, to; /* slices */
	sw_crossmesh_plan *plan;
} sw_stage_transfer;

typedef enum sw_event_kind {
	SW_EVENT_BEFORE,   /* number: the stage; it counts its microbatches, too */
	SW_EVENT_PASS,     /* the virtual stage of `cut` */
	SW_EVENT_AFTER,    /* round * stages + stage */
	SW_EVENT_TRANSFER, /* of sw_stage_programs.transfers */
} sw_event_kind;
typedef struct sw_stage_event {
	sw_event_kind kind;
	int32_t number, microbatch; /* -1: of none */
} sw_stage_event;

typedef struct sw_stage_programs {
	sw_arena arena;
	const sw_pipelined *plan; /* borrowed, with plans of all stages */
	/* Its cut; with weight gradients as passes of their own, where the schedule has them so. */
	const sw_stages *cut;
	sw_stages split; /* what `cut` is then */
	sw_stage_pieces pieces;
	sw_piece_program *before, *counts, *passes, *after; /* as in sw_stage_pieces */
	/* [slice][value of the looped program]: its layout there, in all stages; NULL: it is not
	 * there */
	const sw_layout ***layouts;
	SW_VEC(sw_stage_transfer) transfers;
	SW_VEC(sw_stage_event) events; /* of a step */
	sw_id inner;                   /* the first element of the loop, in its body */
	uint32_t n_inputs, n_outputs;  /* of the whole step */
	const sw_id *inputs;           /* values of the looped program */
} sw_stage_programs;

/* Write the programs of a plan whose stages have plans. SW_NO: the program has no pieces, or the
 * schedule does not run. O(d * ops). */
sw_status sw_stage_programs_init(sw_stage_programs *programs, const sw_pipelined *plan,
                                 sw_error *err);
void sw_stage_programs_clear(sw_stage_programs *programs);
/* Return the slice that has a result of the step when it ends. */
int32_t sw_slice_of_output(const sw_stage_programs *programs, uint32_t output);
/* Return the value of the entry that a value read inside of the loop stands for: an import is what
 * the loop begins with; others are themselves. */
sw_id sw_stage_value_of(const sw_stage_programs *programs, sw_id value);

#endif
