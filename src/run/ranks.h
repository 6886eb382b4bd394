/* ranks: what training and verifying share. */
#ifndef SW_RUN_RANKS_H
#define SW_RUN_RANKS_H

#include "run/run.h"

/* What one in-process rank does. It must not free the transport. */
typedef sw_status sw_rank_body(void *context, sw_transport *transport, sw_error *err);
/* Runs it on `size` threads, connected. A rank that fails wakes the others. The error is rank 0's, which names
 * the rank that failed first. */
sw_status sw_ranks_run(int32_t size, sw_rank_body *body, void *context, sw_error *err);

/* A plan and its partitioned program, and the values that are the entry's inputs in each. Read by many ranks at once. */
typedef struct sw_parts {
	const sw_plan *plan;
	const sw_program *local;
	sw_arena arena;
	uint32_t n_inputs, n_outputs;
	const sw_id *whole_inputs, *local_inputs; /* values of plan->program, of local */
} sw_parts;
void sw_parts_init(sw_parts *parts, const sw_plan *plan, const sw_program *local);
void sw_parts_clear(sw_parts *parts);

sw_shape sw_parts_whole_shape(const sw_parts *parts, uint32_t input);
const sw_layout *sw_parts_layout(const sw_parts *parts, uint32_t input);
/* A device's part of an input, empty or filled. */
sw_status sw_part_new(const sw_parts *parts, uint32_t input, sw_tensor *tensor, sw_error *err);
sw_status sw_part_filled(const sw_parts *parts, uint32_t input, int64_t device, const sw_fill *fill,
                         uint64_t seed, sw_tensor *tensor, sw_error *err);

void sw_tensors_drop(sw_tensor *tensors, uint32_t n);

#endif
