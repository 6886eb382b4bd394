/*
 * ragged-dot: a dimension of the left-hand side is divided into consecutive groups of given sizes.
 * If it is a free dimension, each group is multiplied by a matrix of its own; if it is contracted,
 * each group gives a result of its own; if it is a batch dimension, groups make no difference. The
 * kernel multiplies one group at a time, with zeros outside of the group; rows after the last group
 * are zero too.
 */
#include <string.h>

#include "interpret/kernel.h"
#include "interpret/multiply.h"

typedef struct ragged {
	const sw_attrs *attrs;
	sw_tensor lhs, rhs, sizes;
	int dimension;
	int64_t groups;
	/* dimensions of lhs along which the lists of sizes differ; empty: one list for all */
	sw_ints prefix;
	int64_t prefix_list[SW_MAX_RANK];
} ragged;

/* Find the dimensions that precede the ragged one in its list: batch, then those of its own
 * kind. */
static void find_prefix(ragged *r)
{
	sw_ints batch = r->attrs->dot.lhs_batch, contracting = r->attrs->dot.lhs_contracting;
	bool is_batch = sw_ints_has(batch, r->dimension),
	     contracts = sw_ints_has(contracting, r->dimension);
	int32_t n = 0;
	r->prefix.v = r->prefix_list;
	for (int32_t i = 0; i < batch.n && batch.v[i] != r->dimension; i++)
		r->prefix_list[n++] = batch.v[i];
	for (int32_t i = 0; contracts && contracting.v[i] != r->dimension; i++)
		r->prefix_list[n++] = contracting.v[i];
	for (int d = 0; !is_batch && !contracts && d < r->dimension; d++) {
		if (!sw_ints_has(batch, d) && !sw_ints_has(contracting, d))
			r->prefix_list[n++] = d;
	}
	r->prefix.n = r->sizes.shape.rank > 1 ? n : 0;
}

/* Return true if the element of lhs at this index is in the group. */
static bool is_in_group(const ragged *r, const int64_t *index, int64_t group)
{
	int64_t list = 0, begin = 0;
	sw_type type = r->sizes.shape.type;
	for (int32_t i = 0; i < r->prefix.n; i++)
		list = list * r->lhs.shape.dims[r->prefix.v[i]] + index[r->prefix.v[i]];
	for (int64_t g = 0; g < group; g++)
		begin += sw_index_at(type, sw_tensor_data(r->sizes), list * r->groups + g);
	int64_t size = sw_index_at(type, sw_tensor_data(r->sizes), list * r->groups + group);
	int64_t at = index[r->dimension];
	return at >= begin && at - begin < size;
}

static sw_status take_group(sw_interpreter *it, const ragged *r, int64_t group, sw_tensor *out,
                            sw_error *err)
{
	sw_status status = sw_scratch_new(it, r->lhs.shape, out, err);
	if (status != SW_OK || out->buffer->bytes == 0)
		return status;
	int64_t index[SW_MAX_RANK] = {0};
	size_t bytes = (size_t)sw_type_bytes(r->lhs.shape.type), at = 0;
	memset(sw_tensor_data(*out), 0, out->buffer->bytes);
	do {
		if (is_in_group(r, index, group))
			memcpy((char *)sw_tensor_data(*out) + at,
			       (const char *)sw_tensor_data(r->lhs) + at, bytes);
		at += bytes;
	} while (sw_next_index(r->lhs.shape.rank, r->lhs.shape.dims, index));
	return SW_OK;
}

/* The right-hand side of one group: rhs without its group dimension, and the renumbered remaining
 * dimensions. */
typedef struct group_side {
	sw_tensor tensor;
	sw_attrs attrs;
	int64_t dims[SW_MAX_RANK], batch[SW_MAX_RANK], contracting[SW_MAX_RANK];
} group_side;

static sw_ints without(sw_ints list, int64_t dimension, int64_t *storage)
{
	for (int32_t i = 0; i < list.n; i++)
		storage[i] = list.v[i] - (list.v[i] > dimension);
	return (sw_ints){list.n, storage};
}

static sw_status take_side(sw_interpreter *it, const ragged *r, int64_t group, group_side *side,
                           sw_error *err)
{
	side->attrs = *r->attrs;
	if (r->attrs->dot.rhs_group.n == 0) {
		side->tensor = sw_tensor_keep(r->rhs);
		return SW_OK;
	}
	int64_t dimension = r->attrs->dot.rhs_group.v[0], strides[SW_MAX_RANK];
	sw_shape from = r->rhs.shape, shape = {from.type, from.rank - 1, 0, side->dims};
	sw_strided s = {.rank = shape.rank};
	sw_dense_strides(from, strides);
	for (int d = 0, i = 0; d < from.rank; d++) {
		if (d == dimension)
			continue;
		side->dims[i] = s.dims[i] = from.dims[d];
		s.src[i++] = strides[d];
	}
	sw_dense_strides(shape, s.dst);
	side->attrs.dot.rhs_batch = without(r->attrs->dot.rhs_batch, dimension, side->batch);
	side->attrs.dot.rhs_contracting =
		without(r->attrs->dot.rhs_contracting, dimension, side->contracting);
	sw_status status = sw_scratch_new(it, shape, &side->tensor, err);
	size_t bytes = (size_t)sw_type_bytes(from.type);
	if (status == SW_OK)
		sw_strided_copy(&s, bytes, sw_tensor_data(side->tensor),
		                (const char *)sw_tensor_data(r->rhs) +
		                        (size_t)(group * strides[dimension]) * bytes);
	return status;
}

/* Compute the product of one group, of the given shape. */
static sw_status multiply_group(sw_interpreter *it, const ragged *r, int64_t group, sw_shape shape,
                                sw_tensor *out, sw_error *err)
{
	sw_tensor lhs = {0};
	group_side side = {.tensor = {.buffer = NULL}};
	sw_status status = take_group(it, r, group, &lhs, err);
	if (status == SW_OK)
		status = take_side(it, r, group, &side, err);
	if (status == SW_OK)
		status = sw_dot(it, lhs, side.tensor, &side.attrs, shape, out, err);
	sw_pool_drop(&it->pool, &lhs);
	sw_pool_drop(&it->pool, &side.tensor);
	return status;
}

/* Add the products of all groups into one result, or store them one after the other in it
 * (separate). */
static sw_status multiply_groups(sw_call *call, const ragged *r, bool separate, sw_tensor total,
                                 sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	sw_shape shape = total.shape;
	sw_binary_fn *add = sw_find_binary(SW_OP_ADD, shape.type);
	shape.rank -= separate;
	shape.dims += separate;
	int64_t n = sw_shape_elements(shape);
	sw_status status = SW_OK;
	memset(sw_tensor_data(total), 0, total.buffer->bytes);
	for (int64_t g = 0; status == SW_OK && g < r->groups; g++) {
		sw_tensor part = {0};
		char *to = (char *)sw_tensor_data(total) +
		           (separate ? g * n * sw_type_bytes(shape.type) : 0);
		status = multiply_group(it, r, g, shape, &part, err);
		if (status == SW_OK)
			add(n, to, 1, sw_tensor_data(part), 1, to);
		sw_pool_drop(&it->pool, &part);
	}
	return status;
}

/* Count the total, and for one group: both sides, their product and its result. */
int64_t sw_workspace_ragged_dot(const sw_program *program, const sw_op *op, const sw_plan_op *plan)
{
	(void)plan;
	sw_shape lhs = sw_value_shape(program, op->operands[0]),
		 rhs = sw_value_shape(program, op->operands[1]),
		 shape = sw_value_shape(program, op->first_result);
	sw_type type = sw_type_to_multiply_in(shape.type);
	int64_t n[3] = {sw_shape_elements(lhs), sw_shape_elements(rhs), sw_shape_elements(shape)};
	int64_t workspace = sw_workspace_of_dot(n[0], n[1], n[2], type);
	workspace = sw_workspace_add(workspace,
	                             sw_workspace_add(sw_workspace_of(lhs), sw_workspace_of(rhs)));
	return sw_workspace_add(workspace, sw_workspace_add(sw_workspace_elements(n[2], type),
	                                                    sw_workspace_of(shape)));
}

sw_status sw_kernel_ragged_dot(sw_call *call, sw_error *err)
{
	const sw_attrs *attrs = call->op->attrs;
	sw_shape shape = call->shapes[0];
	ragged r = {.attrs = attrs,
	            .lhs = call->in[0],
	            .rhs = call->in[1],
	            .sizes = call->in[2],
	            .dimension = (int)attrs->dot.lhs_ragged.v[0],
	            .groups = call->in[2].shape.dims[call->in[2].shape.rank - 1]};
	if (sw_ints_has(attrs->dot.lhs_batch, r.dimension))
		return sw_dot(call->interpreter, r.lhs, r.rhs, attrs, shape, &call->out[0], err);
	find_prefix(&r);
	sw_tensor total = {0};
	shape.type = sw_type_to_multiply_in(shape.type);
	sw_status status = sw_scratch_new(call->interpreter, shape, &total, err);
	if (status == SW_OK)
		status = multiply_groups(
			call, &r, sw_ints_has(attrs->dot.lhs_contracting, r.dimension), total, err);
	if (status == SW_OK)
		status = sw_convert_tensor(call->interpreter, total, call->shapes[0].type,
		                           &call->out[0], err);
	sw_pool_drop(&call->interpreter->pool, &total);
	return status;
}
