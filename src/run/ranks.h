/* ranks: what training and verifying share. */
#ifndef SW_RUN_RANKS_H
#define SW_RUN_RANKS_H

#include "run/run.h"

/* What one in-process rank does. It must not free the transport. */
typedef sw_status sw_rank_body(void *context, sw_transport *transport, sw_error *err);
/* Runs it on `size` threads, connected. A rank that fails wakes the others. The error is rank 0's,
 * which names the rank that failed first. */
sw_status sw_ranks_run(int32_t size, sw_rank_body *body, void *context, sw_error *err);

/* The program that every rank runs: partitioned and scheduled, with `overlap` of
 * sw_schedule_options. */
sw_status sw_ranks_program(const sw_plan *plan, uint32_t overlap, sw_program **program,
                           sw_error *err);

/* A plan and its partitioned program, and the values that are the entry's inputs in each. Read by
 * many ranks at once. */
typedef struct sw_parts {
	const sw_plan *plan;
	const sw_program *local;
	sw_arena arena;
	uint32_t n_inputs, n_outputs;
	const sw_id *whole_inputs, *local_inputs; /* values of plan->program, of local */
	const sw_id *true_inputs;                 /* of the serial program */
} sw_parts;
void sw_parts_init(sw_parts *parts, const sw_plan *plan, const sw_program *local);
void sw_parts_clear(sw_parts *parts);

/* With padding, as it is laid out, and without. */
sw_shape sw_parts_whole_shape(const sw_parts *parts, uint32_t input);
sw_shape sw_parts_true_shape(const sw_parts *parts, uint32_t input);
const sw_layout *sw_parts_layout(const sw_parts *parts, uint32_t input);
bool sw_parts_is_state(const sw_parts *parts, uint32_t input);
/* Fills a device's part of an input; or makes a tensor of it. `padding` is the number that its
 * padding holds. */
sw_status sw_part_fill(const sw_parts *parts, uint32_t input, int64_t device, const sw_fill *fill,
                       uint64_t seed, double padding, sw_tensor *tensor, sw_error *err);
sw_status sw_part_filled(const sw_parts *parts, uint32_t input, int64_t device, const sw_fill *fill,
                         uint64_t seed, double padding, sw_tensor *tensor, sw_error *err);
/* An array in the low corner of a larger one, `rest` around it; freed by free(). NULL when memory
 * is refused. */
void *sw_padded_array(sw_shape small, const void *data, sw_shape large, double rest);

void sw_tensors_drop(sw_tensor *tensors, uint32_t n);

/* One run of an interpreter that lives no longer. Takes the inputs, as sw_interpret; gives outputs
 * that outlive it. */
sw_status sw_run_once(const sw_program *program, const sw_interpret_options *options,
                      sw_tensor *inputs, uint32_t n_inputs, sw_tensor *outputs, uint32_t n_outputs,
                      sw_error *err);

#endif
