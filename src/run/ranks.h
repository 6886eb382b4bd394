/* ranks: functions that training and verifying share. */
#ifndef SW_RUN_RANKS_H
#define SW_RUN_RANKS_H

#include "run/part_grid.h"
#include "run/run.h"

/* The work of one in-process rank. It must not free the transport. */
typedef sw_status sw_rank_body(void *context, sw_transport *transport, sw_error *err);
/* Run the body on `size` threads with connected transports. A rank that fails wakes the others. The
 * error is rank 0's, which names the rank that failed first. */
sw_status sw_ranks_run(int32_t size, sw_rank_body *body, void *context, sw_error *err);
/* The same on transports that the caller has, and keeps: after a failure they can only be freed. */
sw_status sw_ranks_on(sw_transport **transports, int32_t size, sw_rank_body *body, void *context,
                      sw_error *err);

/* Make the program that every rank runs: partitioned and scheduled, with `overlap` as in
 * sw_schedule_options. */
sw_status sw_ranks_program(const sw_plan *plan, uint32_t overlap, sw_program **program,
                           sw_error *err);

/* A plan and its partitioned program, and for each of them the values that are the entry's inputs.
 * Many ranks read it at once. */
typedef struct sw_parts {
	const sw_plan *plan;
	const sw_program *local;
	sw_arena arena;
	uint32_t n_inputs, n_outputs;
	const sw_id *whole_inputs, *local_inputs; /* values of plan->program, and of local */
	/* values of the serial program, which has no padding */
	const sw_id *true_inputs;
} sw_parts;
void sw_parts_init(sw_parts *parts, const sw_plan *plan, const sw_program *local);
void sw_parts_clear(sw_parts *parts);

/* The whole shape of an input is the one that is partitioned, with padding; the true shape is the
 * one without padding. */
sw_shape sw_parts_whole_shape(const sw_parts *parts, uint32_t input);
sw_shape sw_parts_true_shape(const sw_parts *parts, uint32_t input);
const sw_layout *sw_parts_layout(const sw_parts *parts, uint32_t input);
bool sw_parts_is_state(const sw_parts *parts, uint32_t input);
/* How ranks hold the value of an input: each of those from `first` on a part, as the layout says.
 * Borrows everything. */
typedef struct sw_held_value {
	uint32_t input;
	sw_shape shape; /* without padding */
	const sw_atoms *atoms;
	const sw_layout *layout;
	int64_t first;
} sw_held_value;
sw_held_value sw_held_part(const sw_parts *parts, uint32_t input);
/* The digits of the value's layout, and the coordinates of a rank's part (SW_MAX_ATOMS). */
void sw_held_grid(const sw_held_value *value, int64_t rank, sw_part_grid *grid,
                  int32_t *coordinates);

/* sw_part_fill fills a device's part of an input; sw_part_filled also allocates the tensor.
 * `padding` is the number that the padding holds. */
sw_status sw_part_fill(const sw_parts *parts, uint32_t input, int64_t device, const sw_fill *fill,
                       uint64_t seed, double padding, sw_tensor *tensor, sw_error *err);
sw_status sw_part_filled(const sw_parts *parts, uint32_t input, int64_t device, const sw_fill *fill,
                         uint64_t seed, double padding, sw_tensor *tensor, sw_error *err);
/* Copy an array into the low corner of a larger one, whose other elements are `rest`. Free it with
 * free(). NULL if memory is refused. */
void *sw_padded_array(sw_shape small, const void *data, sw_shape large, double rest);

void sw_tensors_drop(sw_tensor *tensors, uint32_t n);

/* Run a program once with an interpreter of its own. The call takes the inputs, as sw_interpret
 * does; the outputs outlive the interpreter. */
sw_status sw_run_once(const sw_program *program, const sw_interpret_options *options,
                      sw_tensor *inputs, uint32_t n_inputs, sw_tensor *outputs, uint32_t n_outputs,
                      sw_error *err);

#endif
