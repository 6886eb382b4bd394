/* Ops that move elements without computing: each result element is read from one position. */
#include <string.h>

#include "interpret/kernel.h"

sw_status sw_kernel_forward(sw_call *call, sw_error *err)
{
	(void)err;
	for (uint32_t i = 0; i < call->op->n_results; i++)
		sw_result_forward(call, i, i);
	return SW_OK;
}

/* Make a new dense result whose element at index i is read at base + sum i*strides of operand 0. */
static sw_status read_strided(sw_call *call, int64_t base, const int64_t *strides, sw_error *err)
{
	if (!sw_stride_of(call->in[0])) { /* a splat stays a splat */
		sw_result_forward(call, 0, 0);
		return SW_OK;
	}
	sw_status status = sw_result_new(call, 0, err);
	if (status != SW_OK)
		return status;
	sw_shape shape = call->shapes[0];
	size_t bytes = (size_t)sw_type_bytes(shape.type);
	int64_t to[SW_MAX_RANK];
	sw_dense_strides(shape, to);
	sw_strided s = {.rank = shape.rank};
	for (int d = 0; d < shape.rank; d++) {
		s.dims[d] = shape.dims[d];
		s.dst[d] = to[d];
		s.src[d] = strides[d];
	}
	const char *x = sw_tensor_data(call->in[0]);
	sw_strided_copy(&s, bytes, sw_tensor_data(call->out[0]), x + base * (int64_t)bytes);
	return SW_OK;
}

sw_status sw_kernel_broadcast(sw_call *call, sw_error *err)
{
	sw_shape from = call->in[0].shape;
	int64_t dense[SW_MAX_RANK], strides[SW_MAX_RANK] = {0};
	sw_dense_strides(from, dense);
	for (int d = 0; d < from.rank; d++) {
		int64_t size = from.dims[d];
		strides[call->op->attrs->dims.dims.v[d]] = size == 1 ? 0 : dense[d];
	}
	return read_strided(call, 0, strides, err);
}

sw_status sw_kernel_transpose(sw_call *call, sw_error *err)
{
	int64_t dense[SW_MAX_RANK], strides[SW_MAX_RANK];
	const int64_t *order = call->op->attrs->dims.dims.v;
	sw_shape from = call->in[0].shape;
	sw_dense_strides(from, dense);
	if (sw_transpose_is_view(call->program, call->op)) {
		sw_result_forward(call, 0, 0);
		return SW_OK;
	}
	for (int d = 0; d < from.rank; d++)
		strides[d] = dense[order[d]];
	return read_strided(call, 0, strides, err);
}

sw_status sw_kernel_slice(sw_call *call, sw_error *err)
{
	const sw_attrs *attrs = call->op->attrs;
	int64_t strides[SW_MAX_RANK], base = 0;
	sw_dense_strides(call->in[0].shape, strides);
	for (int d = 0; d < call->in[0].shape.rank; d++) {
		base += attrs->slice.start.v[d] * strides[d];
		strides[d] *= attrs->slice.stride.n ? attrs->slice.stride.v[d] : 1;
	}
	return read_strided(call, base, strides, err);
}

sw_status sw_kernel_reverse(sw_call *call, sw_error *err)
{
	int64_t strides[SW_MAX_RANK], base = 0;
	sw_shape shape = call->in[0].shape;
	sw_dense_strides(shape, strides);
	for (int d = 0; d < shape.rank; d++) {
		if (!sw_ints_has(call->op->attrs->dims.dims, d) || shape.dims[d] == 0)
			continue;
		base += (shape.dims[d] - 1) * strides[d];
		strides[d] = -strides[d];
	}
	return read_strided(call, base, strides, err);
}

/* Clamp the start indices so that the window of `sizes` is inside `shape`; return its offset. */
static int64_t clamped_base(const sw_call *call, uint32_t first, sw_shape shape,
                            const int64_t *sizes, const int64_t *strides)
{
	int64_t base = 0;
	for (int d = 0; d < shape.rank; d++) {
		sw_tensor index = call->in[first + (uint32_t)d];
		int64_t start = sw_index_at(index.shape.type, sw_tensor_data(index), 0);
		base += SW_MAX(SW_MIN(start, shape.dims[d] - sizes[d]), 0) * strides[d];
	}
	return base;
}

sw_status sw_kernel_dynamic_slice(sw_call *call, sw_error *err)
{
	int64_t strides[SW_MAX_RANK];
	sw_dense_strides(call->in[0].shape, strides);
	int64_t base = clamped_base(call, 1, call->in[0].shape, call->shapes[0].dims, strides);
	return read_strided(call, base, strides, err);
}

sw_status sw_kernel_dynamic_update_slice(sw_call *call, sw_error *err)
{
	sw_shape update = call->in[1].shape;
	int64_t to[SW_MAX_RANK], from[SW_MAX_RANK];
	sw_status status = sw_result_copy(call, 0, 0, err);
	if (status != SW_OK)
		return status;
	sw_dense_strides(call->shapes[0], to);
	sw_dense_strides(update, from);
	int64_t base = clamped_base(call, 2, call->shapes[0], update.dims, to);
	sw_strided s = {.rank = update.rank};
	for (int d = 0; d < update.rank; d++) {
		s.dims[d] = update.dims[d];
		s.dst[d] = to[d];
		s.src[d] = from[d];
	}
	size_t bytes = (size_t)sw_type_bytes(update.type);
	char *r = sw_tensor_data(call->out[0]);
	sw_strided_copy(&s, bytes, r + base * (int64_t)bytes, sw_tensor_data(call->in[1]));
	return SW_OK;
}

/* Write x into the result at offset `at` of dimension `along`. */
static void put_along(sw_tensor out, sw_tensor x, int64_t along, int64_t at)
{
	int64_t to[SW_MAX_RANK], from[SW_MAX_RANK];
	sw_dense_strides(out.shape, to);
	sw_dense_strides(x.shape, from);
	sw_strided s = {.rank = x.shape.rank};
	for (int d = 0; d < x.shape.rank; d++) {
		s.dims[d] = x.shape.dims[d];
		s.dst[d] = to[d];
		s.src[d] = from[d];
	}
	int64_t bytes = sw_type_bytes(x.shape.type);
	sw_strided_copy(&s, (size_t)bytes, (char *)sw_tensor_data(out) + at * to[along] * bytes,
	                sw_tensor_data(x));
}

sw_status sw_kernel_concatenate(sw_call *call, sw_error *err)
{
	int64_t along = call->op->attrs->dims.dims.v[0], at = 0;
	sw_status status = sw_result_new(call, 0, err);
	for (uint32_t i = 0; status == SW_OK && i < call->op->n_operands; i++) {
		put_along(call->out[0], call->in[i], along, at);
		at += call->in[i].shape.dims[along];
	}
	return status;
}

/* Find the range of the input's indices along one dimension whose elements fall inside the result:
 * low + i * step in [0, size). */
static void landing_range(int64_t low, int64_t step, int64_t n, int64_t size, int64_t *begin,
                          int64_t *end)
{
	*begin = low < 0 ? (-low + step - 1) / step : 0;
	*end = size > low ? (size - low + step - 1) / step : 0;
	*end = SW_MIN(*end, n);
}

sw_status sw_kernel_terms(sw_call *call, sw_error *err)
{
	sw_status status = sw_result_new(call, 0, err);
	if (status != SW_OK)
		return status;
	size_t bytes = (size_t)sw_shape_bytes(call->in[0].shape),
	       all = (size_t)sw_shape_bytes(call->shapes[0]);
	char *r = sw_tensor_data(call->out[0]);
	memcpy(r, sw_tensor_data(call->in[0]), bytes);
	memset(r + bytes, 0, all - bytes);
	return SW_OK;
}

sw_status sw_kernel_pad(sw_call *call, sw_error *err)
{
	const sw_attrs *attrs = call->op->attrs;
	sw_shape from = call->in[0].shape, shape = call->shapes[0];
	sw_status status = sw_result_new(call, 0, err);
	if (status != SW_OK)
		return status;
	size_t bytes = (size_t)sw_type_bytes(shape.type);
	char *r = sw_tensor_data(call->out[0]);
	const char *x = sw_tensor_data(call->in[0]);
	sw_fill_elements(r, sw_tensor_data(call->in[1]), bytes, sw_shape_elements(shape));
	int64_t to[SW_MAX_RANK], strides[SW_MAX_RANK];
	sw_dense_strides(shape, to);
	sw_dense_strides(from, strides);
	sw_strided s = {.rank = shape.rank};
	for (int d = 0; d < shape.rank; d++) {
		int64_t low = attrs->pad.low.v[d], begin, end;
		int64_t step = 1 + (attrs->pad.interior.n ? attrs->pad.interior.v[d] : 0);
		landing_range(low, step, from.dims[d], shape.dims[d], &begin, &end);
		if (end <= begin)
			return SW_OK;
		s.dims[d] = end - begin;
		s.dst[d] = to[d] * step;
		s.src[d] = strides[d];
		r += (low + begin * step) * to[d] * (int64_t)bytes;
		x += begin * strides[d] * (int64_t)bytes;
	}
	sw_strided_copy(&s, bytes, r, x);
	return SW_OK;
}

bool sw_prepare_iota(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	(void)plan;
	return sw_can_convert(SW_S64, sw_value_shape(program, op->first_result).type);
}

int64_t sw_workspace_iota(const sw_program *program, const sw_op *op, const sw_plan_op *plan)
{
	(void)plan;
	sw_shape shape = sw_value_shape(program, op->first_result);
	int64_t n = shape.dims[op->attrs->iota.dimension];
	return sw_workspace_add(sw_workspace_elements(n, SW_S64),
	                        sw_workspace_elements(n, shape.type));
}

/* The numbers 0 .. n - 1 are made once, converted, then broadcast. */
sw_status sw_kernel_iota(sw_call *call, sw_error *err)
{
	sw_shape shape = call->shapes[0];
	int64_t dimension = call->op->attrs->iota.dimension, n = shape.dims[dimension];
	sw_tensor counts, row = {0};
	sw_status status =
		sw_scratch_new(call->interpreter, (sw_shape){SW_S64, 1, 0, &n}, &counts, err);
	if (status != SW_OK)
		return status;
	for (int64_t i = 0; i < n; i++)
		((int64_t *)sw_tensor_data(counts))[i] = i;
	status = sw_convert_tensor(call->interpreter, counts, shape.type, &row, err);
	if (status == SW_OK)
		status = sw_result_new(call, 0, err);
	if (status == SW_OK) {
		int64_t to[SW_MAX_RANK];
		sw_dense_strides(shape, to);
		sw_strided s = {.rank = shape.rank};
		for (int d = 0; d < shape.rank; d++) {
			s.dims[d] = shape.dims[d];
			s.dst[d] = to[d];
			s.src[d] = d == (int)dimension;
		}
		sw_strided_copy(&s, (size_t)sw_type_bytes(shape.type), sw_tensor_data(call->out[0]),
		                sw_tensor_data(row));
	}
	sw_pool_drop(&call->interpreter->pool, &counts);
	sw_pool_drop(&call->interpreter->pool, &row);
	return status;
}

static sw_status give_scalar(sw_call *call, uint64_t value, sw_error *err)
{
	sw_status status = sw_result_new(call, 0, err);
	if (status == SW_OK)
		sw_convert_elements(SW_U64, &value, call->shapes[0].type,
		                    sw_tensor_data(call->out[0]), 1);
	return status;
}

sw_status sw_kernel_partition_id(sw_call *call, sw_error *err)
{
	return give_scalar(call, call->interpreter->options.partition_id, err);
}

sw_status sw_kernel_replica_id(sw_call *call, sw_error *err)
{
	return give_scalar(call, 0, err);
}

sw_status sw_kernel_dimension_size(sw_call *call, sw_error *err)
{
	return give_scalar(call, (uint64_t)call->in[0].shape.dims[call->op->attrs->dims.dims.v[0]],
	                   err);
}

/* ---- sizes known only at run time ------------------------------------------------------- */

/* Tensors have their declared size: a size that is set must equal it. A constant size is checked
 * before anything runs, other sizes when they are computed. */
bool sw_find_constant(const sw_program *program, sw_id value, int64_t *number)
{
	const sw_op *op = sw_op_at(program, program->values.data[value].op);
	while (op->opcode == SW_OP_CONVERT || op->opcode == SW_OP_RESHAPE ||
	       op->opcode == SW_OP_COPY)
		op = sw_op_at(program, program->values.data[op->operands[0]].op);
	if (op->opcode != SW_OP_CONSTANT || !op->attrs->constant.data || op->n_results != 1)
		return false;
	*number = sw_index_at(op->attrs->constant.shape.type, op->attrs->constant.data, 0);
	return true;
}

static const char smaller[] = "tensors whose size changes at run time";

static bool may_be(const sw_program *program, sw_id value, int64_t size)
{
	int64_t number;
	return !sw_find_constant(program, value, &number) || number == size;
}

static sw_status expect_size(sw_call *call, uint32_t operand, int64_t size, sw_error *err)
{
	sw_tensor t = call->in[operand];
	int64_t found = sw_index_at(t.shape.type, sw_tensor_data(t), 0);
	if (found == size)
		return SW_OK;
	return sw_fail_at(err, SW_ERR_INPUT, call->program->source, call->op->line, 0,
	                  "'%s': a size of %lld, not %lld: the interpreter does not support %s",
	                  call->op->name, (long long)found, (long long)size, smaller);
}

bool sw_prepare_set_dimension_size(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	sw_shape shape = sw_value_shape(program, op->operands[0]);
	plan->refused = smaller;
	return may_be(program, op->operands[1], shape.dims[op->attrs->dims.dims.v[0]]);
}

sw_status sw_kernel_set_dimension_size(sw_call *call, sw_error *err)
{
	sw_status status =
		expect_size(call, 1, call->in[0].shape.dims[call->op->attrs->dims.dims.v[0]], err);
	if (status == SW_OK)
		sw_result_forward(call, 0, 0);
	return status;
}

bool sw_prepare_dynamic_reshape(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	sw_shape shape = sw_value_shape(program, op->first_result);
	plan->refused = smaller;
	for (uint32_t i = 1; i < op->n_operands; i++) {
		if (!may_be(program, op->operands[i], shape.dims[i - 1]))
			return false;
	}
	return true;
}

sw_status sw_kernel_dynamic_reshape(sw_call *call, sw_error *err)
{
	sw_status status = SW_OK;
	for (uint32_t i = 1; status == SW_OK && i < call->op->n_operands; i++)
		status = expect_size(call, i, call->shapes[0].dims[i - 1], err);
	if (status == SW_OK)
		sw_result_forward(call, 0, 0);
	return status;
}

sw_status sw_kernel_token(sw_call *call, sw_error *err)
{
	return sw_result_new(call, 0, err);
}
