/* eval_stages: the state of a plan with stages, sent to where a second program has it. Private to
 * src/run. */
#ifndef SW_RUN_EVAL_STAGES_H
#define SW_RUN_EVAL_STAGES_H

#include "run/eval_rank.h"
#include "run/stage_state.h"

/* A part of a value goes from a rank that holds it to those whose parts share elements with it. */
typedef struct eval_move {
	uint32_t input; /* of the second program */
	sw_held_value held;
	int32_t *ranks; /* the holder first */
	int32_t n;
	bool mine, needed; /* this rank is among them; it is one of the others, or needs it, too */
} eval_move;

typedef struct eval_stages {
	const sw_stage_programs *programs;
	eval_rank *rank;
	sw_arena arena;
	SW_VEC(eval_move) moves;
	sw_tensor *carried; /* per input of training; buffer NULL: not needed, or not made yet */
	void *buffer;       /* of the largest part */
} eval_stages;

/* The rank is initialised; without a second program the other functions do nothing. Clear in any
 * case. SW_ERR_INPUT: no stage has a value. O(parts * ranks) per value, and the extents of parts.
 */
sw_status eval_stages_init(eval_stages *e, const sw_stage_programs *programs, eval_rank *rank,
                           sw_error *err);
void eval_stages_clear(eval_stages *e);
/* Send the values, of which `entry` has this rank's parts by values of the looped program, and run
 * the second program on them; collective. */
sw_status eval_stages_run(eval_stages *e, const sw_tensor *entry, int64_t step, sw_error *err);

#endif
