/*
 * The counts by which the cost model predicts the time of kernels: calls, rows and bytes
 * (sw_op_loops).
 *
 * A kernel's row in kernel_table.c names the function that counts its calls and rows. For kernels
 * with loops of their own that function is in the kernel's file.
 */
#include <math.h>

#include "interpret/kernel.h"

static double elements(sw_shape shape)
{
	return (double)sw_shape_elements(shape);
}

static double bytes_of(const sw_program *program, sw_id value)
{
	return (double)sw_shape_bytes(sw_value_shape(program, value));
}

/* ---- moves ------------------------------------------------------------------------------ */

/* Copy a dense box of these sizes to or from a box with those strides. */
static sw_loops box(sw_shape sizes, const int64_t *strides)
{
	sw_strided s = {.rank = sizes.rank};
	sw_dense_strides(sizes, s.dst);
	for (int d = 0; d < sizes.rank; d++) {
		s.dims[d] = sizes.dims[d];
		s.src[d] = strides[d];
	}
	return sw_strided_loops(&s);
}

sw_loops sw_loops_broadcast(const sw_program *program, const sw_op *op)
{
	sw_shape from = sw_value_shape(program, op->operands[0]);
	int64_t dense[SW_MAX_RANK], strides[SW_MAX_RANK] = {0};
	sw_dense_strides(from, dense);
	for (int d = 0; d < from.rank; d++)
		strides[op->attrs->dims.dims.v[d]] = from.dims[d] == 1 ? 0 : dense[d];
	return box(sw_value_shape(program, op->first_result), strides);
}

sw_loops sw_loops_transpose(const sw_program *program, const sw_op *op)
{
	sw_shape shape = sw_value_shape(program, op->first_result);
	int64_t dense[SW_MAX_RANK], strides[SW_MAX_RANK];
	sw_dense_strides(sw_value_shape(program, op->operands[0]), dense);
	for (int d = 0; d < shape.rank; d++)
		strides[d] = dense[op->attrs->dims.dims.v[d]];
	return box(shape, strides);
}

sw_loops sw_loops_slice(const sw_program *program, const sw_op *op)
{
	sw_shape shape = sw_value_shape(program, op->first_result);
	int64_t strides[SW_MAX_RANK];
	sw_dense_strides(sw_value_shape(program, op->operands[0]), strides);
	for (int d = 0; d < shape.rank && op->opcode == SW_OP_SLICE && op->attrs->slice.stride.n;
	     d++)
		strides[d] *= op->attrs->slice.stride.v[d];
	return box(shape, strides);
}

sw_loops sw_loops_reverse(const sw_program *program, const sw_op *op)
{
	sw_shape shape = sw_value_shape(program, op->first_result);
	int64_t strides[SW_MAX_RANK];
	sw_dense_strides(shape, strides);
	for (int d = 0; d < shape.rank; d++)
		if (sw_ints_has(op->attrs->dims.dims, d))
			strides[d] = -strides[d];
	return box(shape, strides);
}

static sw_loops box_within(sw_shape part, sw_shape whole)
{
	int64_t strides[SW_MAX_RANK];
	sw_dense_strides(whole, strides);
	return box(part, strides);
}

sw_loops sw_loops_update_slice(const sw_program *program, const sw_op *op)
{
	return box_within(sw_value_shape(program, op->operands[1]),
	                  sw_value_shape(program, op->first_result));
}

sw_loops sw_loops_concatenate(const sw_program *program, const sw_op *op)
{
	sw_loops all = {0};
	for (uint32_t i = 0; i < op->n_operands; i++) {
		sw_loops one = box_within(sw_value_shape(program, op->operands[i]),
		                          sw_value_shape(program, op->first_result));
		all.calls += one.calls;
		all.rows += one.rows;
	}
	return all;
}

/* The whole result is filled first, then the operand is copied into it. */
sw_loops sw_loops_pad(const sw_program *program, const sw_op *op)
{
	sw_loops loops = box_within(sw_value_shape(program, op->operands[0]),
	                            sw_value_shape(program, op->first_result));
	loops.bytes = bytes_of(program, op->operands[0]);
	return loops;
}

/* ---- windows ---------------------------------------------------------------------------- */

/* Count the copies of windows of `sizes` in `indexed`, with as many elements in all as `windowed`:
 * each window is a call, and its contiguous runs are rows. */
static sw_loops windows(sw_shape indexed, const int64_t *sizes, sw_shape windowed)
{
	sw_shape window = {indexed.type, indexed.rank, 0, sizes};
	double n = elements(windowed) / fmax(elements(window), 1);
	sw_loops one = box_within(window, indexed);
	return (sw_loops){.calls = n, .rows = n * one.rows};
}

sw_loops sw_loops_gather(const sw_program *program, const sw_op *op)
{
	return windows(sw_value_shape(program, op->operands[0]), op->attrs->index.slice_sizes.v,
	               sw_value_shape(program, op->first_result));
}

sw_loops sw_loops_scatter(const sw_program *program, const sw_op *op)
{
	const sw_index_dims *dims = &op->attrs->index;
	sw_shape indexed = sw_value_shape(program, op->first_result),
		 updates = sw_value_shape(program, op->operands[op->n_results + 1]);
	int64_t sizes[SW_MAX_RANK];
	for (int d = 0, i = 0; d < indexed.rank; d++) {
		bool flat = sw_ints_has(dims->collapsed, d) || sw_ints_has(dims->operand_batch, d);
		sizes[d] = flat ? 1 : updates.dims[dims->offset.v[i++]];
	}
	return windows(indexed, sizes, updates);
}

/* Each position of each window is compared separately. */
sw_loops sw_loops_select_and_scatter(const sw_program *program, const sw_op *op)
{
	sw_window window = op->attrs->window.window;
	double n = elements(sw_value_shape(program, op->operands[1])), places = 1;
	for (int d = 0; d < window.rank; d++)
		places *= (double)window.dims[d].size;
	return (sw_loops){.calls = n, .rows = n * places};
}

/* The dimensions are reduced one after the other, each one transposed to the front and back. */
sw_loops sw_loops_reduce_window(const sw_program *program, const sw_op *op)
{
	sw_window window = op->attrs->window.window;
	sw_loops loops = {0};
	for (int d = 0; d < window.rank; d++)
		if (window.dims[d].size != 1)
			loops.bytes += 2 * (bytes_of(program, op->operands[0]) +
			                    bytes_of(program, op->first_result));
	return loops;
}

/* Count the comparisons; top-k counts as a full sort. */
sw_loops sw_loops_sort(const sw_program *program, const sw_op *op)
{
	sw_shape shape = sw_value_shape(program, op->operands[0]);
	int64_t along = op->opcode == SW_OP_SORT ? op->attrs->sort.dimension : shape.rank - 1;
	double line = shape.rank ? (double)shape.dims[along] : 1, n = elements(shape);
	return (sw_loops){.calls = n / fmax(line, 1), .rows = n * log2(fmax(line, 2))};
}

/* ---- bytes ------------------------------------------------------------------------------ */

/* Return true for the broadcast of a single element, which stays a splat for kernels that accept
 * splats. */
static bool is_splat(const sw_program *program, sw_id value)
{
	const sw_op *op = sw_op_at(program, program->values.data[value].op);
	while (op->opcode == SW_OP_RESHAPE || op->opcode == SW_OP_TRANSPOSE ||
	       op->opcode == SW_OP_BROADCAST) {
		sw_shape from = sw_value_shape(program, op->operands[0]);
		if (op->opcode == SW_OP_BROADCAST && sw_shape_elements(from) == 1)
			return true;
		op = sw_op_at(program, program->values.data[op->operands[0]].op);
	}
	return false;
}

/* Return the bytes that an op reads of operand i: a window, or all of it. A splat is read as one
 * element, or is expanded first. */
static double touched(const sw_program *program, const sw_op *op, const sw_kernel *kernel,
                      uint32_t i)
{
	double bytes = bytes_of(program, op->operands[i]),
	       result = bytes_of(program, op->first_result);
	double splat = is_splat(program, op->operands[i]) ? bytes : 0;
	bool is_target = i < op->n_results;
	if (kernel->splats)
		bytes -= splat;
	switch (op->opcode) {
	case SW_OP_SLICE:
	case SW_OP_DYNAMIC_SLICE:
		return is_target ? result : 0;
	case SW_OP_GATHER:
		return (is_target ? result : bytes) + splat;
	/* The input is updated in place; the combined windows are read and written back. */
	case SW_OP_SCATTER:
		return is_target ? splat : i > op->n_results ? 3 * bytes : bytes;
	case SW_OP_DYNAMIC_UPDATE_SLICE:
		return is_target ? splat : i == 1 ? 2 * bytes : 0;
	default:
		return kernel->splats ? bytes : bytes + splat;
	}
}

static bool updates_in_place(const sw_op *op)
{
	return op->opcode == SW_OP_SCATTER || op->opcode == SW_OP_DYNAMIC_UPDATE_SLICE;
}

sw_loops sw_op_loops(const sw_program *program, sw_id id)
{
	const sw_op *op = sw_op_at(program, id);
	const sw_kernel *kernel = &sw_kernels[op->opcode];
	sw_loops loops = {0};
	if (kernel->aliasing == SW_ALIASING_FORWARDED || sw_is_region(op) || !op->n_results ||
	    (kernel->aliasing == SW_ALIASING_VIEW && is_splat(program, op->first_result)) ||
	    (op->opcode == SW_OP_TRANSPOSE && sw_transpose_is_view(program, op)))
		return loops;
	if (kernel->loops)
		loops = kernel->loops(program, op);
	for (uint32_t i = 0; i < op->n_operands; i++)
		loops.bytes += touched(program, op, kernel, i);
	for (uint32_t i = 0; i < op->n_results && !updates_in_place(op); i++)
		loops.bytes += bytes_of(program, op->first_result + i);
	return loops;
}
