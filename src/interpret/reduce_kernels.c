/*
 * reduce: a monoid (add, max, ...) on one array runs in typed loops over accumulators (f64 for f32,
 * f32 for bf16 and f16). Any other computation (arg-max, ...) runs once per reduced index, on all
 * results at a time.
 */
#include "interpret/vector.h"

#include <stdlib.h>
#include <string.h>

#include "interpret/kernel.h"
#include "interpret/reduce_loops.h"
#include "interpret/types.h"

#define SW_TEMPLATE "interpret/reduce_template.h"
#include "interpret/templates.h"

static const sw_reduce_loops *const loops[SW_TYPE_COUNT] = {
#define X(name, tag) [SW_##name] = loops_##tag,
	SW_REAL_TYPES(X)
#undef X
};

sw_type sw_accumulator_type(sw_type type)
{
	return type == SW_F32 ? SW_F64 : type == SW_BF16 || type == SW_F16 ? SW_F32 : type;
}

bool sw_prepare_reduce(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	sw_type type = sw_value_shape(program, op->operands[0]).type;
	plan->impl.reduce = NULL;
	if (op->n_operands == 2 && plan->monoid != SW_MONOID_NONE && loops[type] &&
	    loops[type][plan->monoid].run)
		plan->impl.reduce = &loops[type][plan->monoid];
	return true;
}

/* Describe the input as a nest of loops: dst are the strides of the accumulators, 0 along reduced
 * dimensions. */
static void describe(sw_shape shape, sw_ints dims, sw_strided *s)
{
	sw_dense_strides(shape, s->src);
	int64_t stride = 1;
	s->rank = shape.rank;
	for (int d = shape.rank - 1; d >= 0; d--) {
		bool reduced = sw_ints_has(dims, d);
		s->dims[d] = shape.dims[d];
		s->dst[d] = reduced ? 0 : stride;
		stride *= reduced ? 1 : shape.dims[d];
	}
	sw_strided_simplify(s);
	if (s->rank == 0) { /* a single element */
		s->rank = 1;
		s->dims[0] = 1;
		s->dst[0] = s->src[0] = 1;
	}
}

static void accumulate(const sw_strided *s, const sw_reduce_loops *f, size_t element_bytes,
                       const char *x, char *acc)
{
	int last = s->rank - 1;
	int64_t index[SW_MAX_RANK + 2] = {0}, n = s->dims[last], to = 0;
	int64_t runs = 1;
	for (int d = 0; d < last; d++)
		runs *= s->dims[d];
	sw_unary_fn *take = s->dst[last] ? f->rows : f->run;
	for (int64_t r = 0; n && r < runs; r++) {
		take(n, x + r * n * (int64_t)element_bytes,
		     acc + to * (int64_t)f->accumulator_bytes);
		for (int d = last - 1; d >= 0; d--) {
			to += s->dst[d];
			if (++index[d] < s->dims[d])
				break;
			to -= s->dims[d] * s->dst[d];
			index[d] = 0;
		}
	}
}

static sw_status reduce_monoid(sw_call *call, sw_error *err)
{
	const sw_reduce_loops *f = call->plan->impl.reduce;
	sw_interpreter *it = call->interpreter;
	sw_status status = sw_result_new(call, 0, err);
	if (status != SW_OK)
		return status;
	int64_t n = sw_shape_elements(call->shapes[0]), bytes = n * (int64_t)f->accumulator_bytes;
	sw_tensor acc;
	status = sw_scratch_new(it, (sw_shape){SW_U8, 1, 0, &bytes}, &acc, err);
	if (status != SW_OK)
		return status;
	sw_strided s = {0};
	describe(call->in[0].shape, call->op->attrs->dims.dims, &s);
	f->start(n, sw_tensor_data(call->in[1]), sw_tensor_data(acc));
	accumulate(&s, f, (size_t)sw_type_bytes(call->in[0].shape.type),
	           sw_tensor_data(call->in[0]), sw_tensor_data(acc));
	f->finish(n, sw_tensor_data(acc), sw_tensor_data(call->out[0]));
	sw_pool_drop(&it->pool, &acc);
	return SW_OK;
}

/* A run is the sequence of elements that one accumulator, or a row of accumulators, takes at
 * once. */
sw_loops sw_loops_reduce(const sw_program *program, const sw_op *op)
{
	sw_strided s = {0};
	sw_loops taken = {.rows = 1};
	describe(sw_value_shape(program, op->operands[0]), op->attrs->dims.dims, &s);
	for (int d = 0; d < s.rank - 1; d++)
		taken.rows *= (double)s.dims[d];
	/* partial sums are merged */
	taken.calls = s.dst[s.rank - 1] ? 0 : taken.rows;
	return taken;
}

/* ---- any computation -------------------------------------------------------------------- */

/* Transpose operand i so that the reduced dimensions come first. *n is the number of their
 * elements, *lanes that of the others. */
static sw_status reduced_first(sw_call *call, uint32_t operand, int64_t *n, int64_t *lanes,
                               sw_tensor *out, sw_error *err)
{
	sw_shape shape = call->in[operand].shape;
	sw_ints reduced = call->op->attrs->dims.dims;
	int64_t order[SW_MAX_RANK], dims[SW_MAX_RANK];
	int at = 0;
	*n = *lanes = 1;
	for (int pass = 1; pass >= 0; pass--) {
		for (int d = 0; d < shape.rank; d++) {
			if (sw_ints_has(reduced, d) != (pass == 1))
				continue;
			order[at++] = d;
			*(pass ? n : lanes) *= shape.dims[d];
		}
	}
	return sw_transpose_tensor(call->interpreter, call->in[operand], order, out, dims, err);
}

/* in[0 .. k) are the accumulators, in[k .. 2k) is row r of each array. */
static sw_status fold_rows(sw_call *call, uint32_t k, int64_t n, int64_t lanes,
                           const sw_tensor *arrays, sw_tensor *in, sw_error *err)
{
	sw_pool *pool = &call->interpreter->pool;
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < k; i++)
		in[i] = sw_tensor_keep(call->in[k + i]);
	for (int64_t r = 0; status == SW_OK && r < n; r++) {
		for (uint32_t i = 0; status == SW_OK && i < k; i++) {
			sw_shape row = {arrays[i].shape.type, 1, 0, &lanes};
			size_t bytes = (size_t)(lanes * sw_type_bytes(row.type));
			status = sw_scratch_new(call->interpreter, row, &in[k + i], err);
			if (status == SW_OK)
				memcpy(sw_tensor_data(in[k + i]),
				       (const char *)sw_tensor_data(arrays[i]) + (size_t)r * bytes,
				       bytes);
		}
		if (status == SW_OK)
			status = sw_interpret_lanes(call->interpreter, call->op->called[0], lanes,
			                            in, call->out, err);
		for (uint32_t i = 0; i < 2 * k; i++)
			sw_pool_drop(pool, &in[i]);
		for (uint32_t i = 0; status == SW_OK && i < k; i++) {
			in[i] = call->out[i];
			call->out[i].buffer = NULL;
		}
	}
	for (uint32_t i = 0; i < k; i++) {
		call->out[i] = in[i];
		in[i].buffer = NULL;
		call->out[i].shape = call->shapes[i];
	}
	return status;
}

static sw_status reduce_any(sw_call *call, sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	uint32_t k = call->op->n_operands / 2;
	int64_t n = 0, lanes = 0;
	sw_tensor *arrays = sw_alloc(sizeof *arrays * 3 * (size_t)k);
	sw_status status = SW_OK;
	for (uint32_t i = 0; status == SW_OK && i < k; i++)
		status = reduced_first(call, i, &n, &lanes, &arrays[i], err);
	if (status == SW_OK && lanes > 0)
		status = fold_rows(call, k, n, lanes, arrays, arrays + k, err);
	for (uint32_t i = 0; status == SW_OK && lanes == 0 && i < k; i++)
		status = sw_result_new(call, i, err);
	for (uint32_t i = 0; i < k; i++)
		sw_pool_drop(&it->pool, &arrays[i]);
	for (uint32_t i = 0; status == SW_OK && i < k; i++)
		status = sw_write_out_splat(it, &call->out[i], err);
	free(arrays);
	return status;
}

/* Count the transposed arrays, a row of each, the workspace of the computation, and the results in
 * case they are splats. */
int64_t sw_workspace_reduce(const sw_program *program, const sw_op *op, const sw_plan_op *plan)
{
	sw_shape shape = sw_value_shape(program, op->first_result);
	int64_t lanes = sw_shape_elements(shape), bytes, workspace;
	if (plan->impl.reduce)
		return sw_mul_i64(lanes, (int64_t)plan->impl.reduce->accumulator_bytes, &bytes)
		               ? sw_workspace_elements(bytes, SW_U8)
		               : INT64_MAX;
	workspace = sw_workspace_lanes(program, op->called[0], lanes);
	for (uint32_t i = 0; i < op->n_operands / 2; i++) {
		sw_shape array = sw_value_shape(program, op->operands[i]);
		workspace = sw_workspace_add(workspace, sw_workspace_of(array));
		workspace = sw_workspace_add(workspace, sw_workspace_elements(lanes, array.type));
		workspace = sw_workspace_add(workspace, sw_workspace_elements(lanes, array.type));
	}
	return workspace;
}

sw_status sw_kernel_reduce(sw_call *call, sw_error *err)
{
	return call->plan->impl.reduce ? reduce_monoid(call, err) : reduce_any(call, err);
}
