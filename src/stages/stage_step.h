/*
 * stage_step: all that a physical stage does in a step, as one program that can be planned.
 *
 * Its loop runs all microbatches, forward and backward of one after the other; so its seconds are
 * those of the stage alone, without waiting, and its peak that of one microbatch in flight. What
 * other stages compute comes in, and what they read goes out, for all microbatches at once: a value
 * with the shape [b, rest] of a microbatch is an input or result [b * m, rest] of the step, whose
 * sample i * m + j is sample i of microbatch j, as in the batch itself.
 */
#ifndef SW_STAGE_STEP_H
#define SW_STAGE_STEP_H

#include "stages/stages.h"

typedef enum sw_port_kind {
	SW_PORT_WHOLE,        /* an input or a result of the whole step */
	SW_PORT_MICROBATCHES, /* a value of the loop's body, of all microbatches */
	SW_PORT_ENTRY         /* a value behind the loop, such as a part of the gradients' norm */
} sw_port_kind;

/* An input or a result of a stage's step. */
typedef struct sw_stage_port {
	sw_port_kind kind;
	uint32_t leaf; /* of SW_PORT_WHOLE: the number of the input or result */
	sw_id value;   /* of the looped program */
	/* Of values that cross: computed in the forward pass? */
	bool forward;
} sw_stage_port;

typedef struct sw_stage_step {
	sw_arena arena;
	sw_program *program; /* not canonical; its aliases are the stage's state */
	int32_t stage;
	const sw_stage_port *inputs, *results;
	uint32_t n_inputs, n_results;
	/* per op of the step's own body and entry: that of the looped program; SW_NO_ID: none */
	const sw_id *origins;
	sw_id loop; /* over the microbatches; steps have others, of what is done once */
} sw_stage_step;

/* Write the step of one physical stage. SW_NO if what microbatches hand on to each other is read in
 * another stage than the one that computes it. O(ops). */
sw_status sw_stage_step_init(sw_stage_step *step, const sw_stages *stages, int32_t stage,
                             sw_error *err);
void sw_stage_step_clear(sw_stage_step *step);
/* The sidecar of a stage's step: what `whole` says of the whole step's inputs and results; what
 * crosses is data if it has the batch, else a parameter. The caller clears it. */
void sw_stage_step_sidecar(const sw_stage_step *step, const sw_stages *stages,
                           const sw_sidecar *whole, sw_sidecar *sidecar);

#endif
