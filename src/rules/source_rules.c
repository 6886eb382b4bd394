/*
 * Sources. Any part of an iota or a constant can be made without communication: each dimension is
 * PARALLEL, with no operand. The planner decides the layouts of parameters.
 */
#include "rules/row.h"

#include <string.h>

static void free_dims(sw_rule_builder *b)
{
	sw_shape shape = sw_rule_result_shape(b, 0);

	for (int32_t d = 0; d < shape.rank; d++)
		sw_rule_place_result(b, sw_rule_add_parallel(b, shape.dims[d]), 0, d, 1);
}

/* ---- iota ------------------------------------------------------------------------------- */

/* Put a digit back into the index: i -> (i / t) * (t*p) + c * t + i mod t; i < extent. */
static sw_id insert_digit(sw_local_op *local, sw_id index, sw_digit digit, int64_t extent)
{
	sw_program *out = local->out;
	int32_t c = local->computation;
	sw_id t = sw_local_like(local, index, (double)digit.stride);
	sw_id coordinate = sw_local_scalar_like(local, index,
	                                        sw_coordinate(local->in->coordinates, digit.atom));
	sw_id offset = sw_emit_binary(out, c, SW_OP_MULTIPLY, coordinate, t);

	if (extent <= digit.stride)
		return sw_emit_binary(out, c, SW_OP_ADD, index, offset);
	sw_id high = sw_emit_binary(out, c, SW_OP_DIVIDE, index, t);
	high = sw_emit_binary(out, c, SW_OP_MULTIPLY, high,
	                      sw_local_like(local, index, (double)(digit.stride * digit.size)));
	offset = sw_emit_binary(out, c, SW_OP_ADD, high, offset);
	if (digit.stride == 1)
		return offset;
	return sw_emit_binary(out, c, SW_OP_ADD, offset,
	                      sw_emit_binary(out, c, SW_OP_REMAINDER, index, t));
}

sw_id sw_local_positions(sw_local_op *local, const sw_layout *layout, int32_t dim, int64_t extent,
                         sw_type type)
{
	sw_digit digits[SW_MAX_ATOMS];
	int32_t n = sw_rule_digits(local->atoms, layout, dim, digits);
	sw_id index = sw_emit_iota(local->out, local->computation,
	                           sw_build_shape(local->out, type, &extent, 1), 0);

	/* The digits are put back in ascending order. */
	while (n-- > 0) {
		index = insert_digit(local, index, digits[n], extent);
		extent *= digits[n].size;
	}
	return index;
}

/* Count along the split dimension in integers, then convert and broadcast. */
static sw_status local_iota(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_shape whole = sw_local_result_whole(local, 0), part = local->shapes[0];
	int64_t dim = local->op->attrs->iota.dimension;

	if (part.dims[dim] == whole.dims[dim])
		return sw_local_emit(local, NULL, results, err);
	sw_type type = whole.dims[dim] > INT32_MAX ? SW_S64 : SW_S32;
	sw_id index =
		sw_local_positions(local, &local->results[0], (int32_t)dim, part.dims[dim], type);
	if (part.type != type)
		index = sw_emit_convert(local->out, local->computation, index, part.type);
	results[0] = part.rank == 1
	                     ? index
	                     : sw_emit_broadcast(local->out, local->computation, index, part, &dim);
	return SW_OK;
}

/* ---- constant --------------------------------------------------------------------------- */

static bool is_splat(sw_literal literal)
{
	size_t bytes = (size_t)sw_shape_bytes(literal.shape),
	       one = (size_t)sw_type_bytes(literal.shape.type);

	return literal.data && bytes > 0 &&
	       memcmp(literal.data, (const char *)literal.data + one, bytes - one) == 0;
}

/* A splat is broadcast from one element; any other constant is cut out of the whole. */
static sw_status local_constant(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_literal literal = local->op->attrs->constant;
	sw_shape part = local->shapes[0];

	if (sw_shape_equal(literal.shape, part))
		return sw_local_emit(local, NULL, results, err);
	if (is_splat(literal)) {
		literal.shape = (sw_shape){.type = part.type};
		literal.data = sw_arena_copy(&local->out->arena, literal.data,
		                             (size_t)sw_type_bytes(part.type));
		sw_id one = sw_emit_literal(local->out, local->computation, literal);
		results[0] = sw_emit_broadcast(local->out, local->computation, one, part, NULL);
		return SW_OK;
	}
	sw_shape whole = local->attrs.constant.shape;
	sw_id all = sw_emit_literal(local->out, local->computation, local->attrs.constant);
	results[0] = sw_emit_cut(local->in->coordinates, all, whole, &local->results[0],
	                         sw_layout_split_atoms(&local->results[0], -1));
	return SW_OK;
}

/* ---- ids: the program is written for one device, so its own number is 0 ----------------- */

static sw_status local_id(sw_local_op *local, sw_id *results, sw_error *err)
{
	(void)err;
	results[0] = sw_emit_scalar(local->out, local->computation, SW_U32, 0);
	return SW_OK;
}

static const sw_rule_row rows[] = {
	{ROW(PARAMETER, sw_rule_describe_nothing)},
	{ROW(CONSTANT, free_dims), LOCAL(local_constant)},
	{ROW(IOTA, free_dims), LOCAL(local_iota)},
	{ROW(PARTITION_ID, sw_rule_describe_nothing), LOCAL(local_id)},
	{ROW(REPLICA_ID, sw_rule_describe_nothing), LOCAL(local_id)},
};

const sw_rule_family sw_rules_source = {"source", rows, SW_COUNT(rows)};
