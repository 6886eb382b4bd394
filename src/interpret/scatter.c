/*
 * scatter: combine windows of updates into the input, in the order of the index vectors. A window
 * that is not completely inside is dropped. A monoid, or plain overwriting, runs in typed loops;
 * any other computation runs on one window at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "interpret/indexing.h"

bool sw_prepare_scatter(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	sw_type type = sw_value_shape(program, op->operands[0]).type;
	plan->impl.binary = NULL;
	if (op->n_operands == 3 && plan->monoid != SW_MONOID_NONE)
		plan->impl.binary = sw_find_binary(sw_monoid_opcode(plan->monoid), type);
	return true;
}

static bool is_inside(const sw_windows *w, sw_shape shape, const int64_t *start)
{
	for (int d = 0; d < shape.rank; d++) {
		if (start[d] < 0 || start[d] > shape.dims[d] - w->sizes[d])
			return false;
	}
	return true;
}

/* Split the window into outer loops and a run of elements that is contiguous on both sides (at
 * worst one element). Return the length of the run. */
static int64_t split_run(sw_strided *window)
{
	sw_strided_simplify(window);
	int last = window->rank - 1;
	if (last < 0 || window->dst[last] != 1 || window->src[last] != 1)
		return 1;
	window->rank--;
	return window->dims[last];
}

/* combine == NULL: overwrite. */
static void put_window(const sw_strided *rows, int64_t run, size_t bytes, sw_binary_fn *combine,
                       char *x, const char *updates)
{
	int64_t index[SW_MAX_RANK + 2] = {0};
	do {
		int64_t to = 0, from = 0;
		for (int d = 0; d < rows->rank; d++) {
			to += index[d] * rows->src[d];
			from += index[d] * rows->dst[d];
		}
		char *r = x + to * (int64_t)bytes;
		const char *u = updates + from * (int64_t)bytes;
		if (combine)
			combine(run, r, 1, u, 1, r);
		else
			memcpy(r, u, (size_t)run * bytes);
	} while (sw_next_index(rows->rank, rows->dims, index));
}

static void scatter_monoid(sw_call *call, sw_windows *w)
{
	sw_tensor indices = call->in[1], updates = call->in[2];
	sw_strided rows = w->window;
	int64_t run = split_run(&rows), batch[SW_MAX_RANK] = {0}, start[SW_MAX_RANK];
	size_t bytes = (size_t)sw_type_bytes(updates.shape.type);
	do {
		sw_windows_start(w, indices, batch, start);
		if (!is_inside(w, call->shapes[0], start))
			continue;
		int64_t to = 0;
		for (int d = 0; d < w->operand_rank; d++)
			to += start[d] * w->operand_stride[d];
		put_window(&rows, run, bytes, call->plan->impl.binary,
		           (char *)sw_tensor_data(call->out[0]) + to * (int64_t)bytes,
		           (const char *)sw_tensor_data(updates) +
		                   sw_windows_offset(w, batch) * (int64_t)bytes);
	} while (sw_next_index(w->batch_rank, w->batch_dims, batch));
}

/* Copy between a window of x (at `at`) and a dense run of elements. */
static void move_window(const sw_windows *w, const int64_t *window_strides, size_t bytes, void *x,
                        int64_t at, void *dense, bool reading)
{
	sw_strided s = {.rank = w->window.rank};
	int64_t stride = 1;
	for (int d = s.rank - 1; d >= 0; d--) {
		s.dims[d] = w->window.dims[d];
		s.dst[d] = reading ? stride : window_strides[d];
		s.src[d] = reading ? window_strides[d] : stride;
		stride *= s.dims[d];
	}
	char *place = (char *)x + at * (int64_t)bytes;
	sw_strided_copy(&s, bytes, reading ? dense : place, reading ? place : dense);
}

/* lanes[0 .. k) are the windows of the inputs, lanes[k .. 2k) the updates; the results are written
 * back into the outputs. */
static sw_status combine_windows(sw_call *call, const sw_windows *w, uint32_t k, int64_t n,
                                 int64_t to, int64_t from, sw_tensor *lanes, sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	sw_status status = SW_OK;
	for (uint32_t i = 0; status == SW_OK && i < 2 * k; i++) {
		sw_tensor x = i < k ? call->out[i] : call->in[k + 1 + (i - k)];
		size_t bytes = (size_t)sw_type_bytes(x.shape.type);
		status = sw_scratch_new(it, (sw_shape){x.shape.type, 1, 0, &n}, &lanes[i], err);
		if (status == SW_OK)
			move_window(w, i < k ? w->window.src : w->window.dst, bytes,
			            sw_tensor_data(x), i < k ? to : from, sw_tensor_data(lanes[i]),
			            true);
	}
	if (status == SW_OK)
		status = sw_interpret_lanes(it, call->op->called[0], n, lanes, lanes + 2 * k, err);
	for (uint32_t i = 0; status == SW_OK && i < k; i++) {
		lanes[2 * k + i].shape = lanes[i].shape;
		status = sw_write_out_splat(it, &lanes[2 * k + i], err);
		if (status == SW_OK)
			move_window(w, w->window.src, (size_t)sw_type_bytes(lanes[i].shape.type),
			            sw_tensor_data(call->out[i]), to,
			            sw_tensor_data(lanes[2 * k + i]), false);
	}
	for (uint32_t i = 0; i < 3 * k; i++)
		sw_pool_drop(&it->pool, &lanes[i]);
	return status;
}

static sw_status scatter_any(sw_call *call, const sw_windows *w, uint32_t k, sw_error *err)
{
	sw_tensor *lanes = sw_alloc(sizeof *lanes * 3 * (size_t)k);
	int64_t batch[SW_MAX_RANK] = {0}, start[SW_MAX_RANK], n = 1;
	sw_status status = SW_OK;
	for (int d = 0; d < w->window.rank; d++)
		n *= w->window.dims[d];
	do {
		sw_windows_start(w, call->in[k], batch, start);
		if (!is_inside(w, call->shapes[0], start))
			continue;
		int64_t to = 0;
		for (int d = 0; d < w->operand_rank; d++)
			to += start[d] * w->operand_stride[d];
		status =
			combine_windows(call, w, k, n, to, sw_windows_offset(w, batch), lanes, err);
	} while (status == SW_OK && sw_next_index(w->batch_rank, w->batch_dims, batch));
	free(lanes);
	return status;
}

static bool overwrites(const sw_program *program, const sw_op *op)
{
	return op->n_results == 1 && sw_computation_returns_parameter(program, op->called[0], 1);
}

/* Count a window of each operand, update and result, and the workspace of the computation. */
int64_t sw_workspace_scatter(const sw_program *program, const sw_op *op, const sw_plan_op *plan)
{
	uint32_t k = op->n_results;
	sw_shape updates = sw_value_shape(program, op->operands[k + 1]);
	if (plan->impl.binary || overwrites(program, op) || sw_shape_elements(updates) == 0)
		return 0;
	sw_windows w;
	sw_windows_init(&w, &op->attrs->index, sw_value_shape(program, op->first_result),
	                sw_value_shape(program, op->operands[k]), updates, NULL);
	int64_t n = 1;
	for (int d = 0; d < w.window.rank; d++)
		n *= w.window.dims[d];
	int64_t workspace = sw_workspace_lanes(program, op->called[0], n);
	for (uint32_t i = 0; i < 3 * k; i++)
		workspace = sw_workspace_add(
			workspace,
			sw_workspace_elements(
				n, sw_value_shape(program, op->first_result + i % k).type));
	return workspace;
}

sw_status sw_kernel_scatter(sw_call *call, sw_error *err)
{
	uint32_t k = call->op->n_results;
	sw_status status = SW_OK;
	for (uint32_t i = 0; status == SW_OK && i < k; i++)
		status = sw_result_copy(call, i, i, err);
	if (status != SW_OK || call->in[k + 1].buffer->bytes == 0)
		return status;
	sw_windows w;
	sw_windows_init(&w, &call->op->attrs->index, call->shapes[0], call->in[k].shape,
	                call->in[k + 1].shape, NULL);
	if (call->plan->impl.binary || overwrites(call->program, call->op))
		scatter_monoid(call, &w);
	else
		status = scatter_any(call, &w, k, err);
	return status;
}
