/*
 * Ops that rename dimensions: broadcast, transpose, reshape and the bitcasts that are reshapes of
 * the bytes, reverse; and ops that return sizes. Pure moves pass any partial value.
 */
#include "rules/row.h"

#define MOVE PASSES({"*", SW_PASS_ANY, SW_WHEN_ALWAYS})

/* Each result dimension is parallel; the operand has those that dims names. */
static void broadcast(sw_rule_builder *b)
{
	sw_ints dims = b->op->attrs->dims.dims;
	sw_shape operand = sw_rule_operand_shape(b, 0), result = sw_rule_result_shape(b, 0);

	for (int32_t d = 0; d < result.rank; d++) {
		int32_t factor = sw_rule_add_parallel(b, result.dims[d]);
		sw_rule_place_result(b, factor, 0, d, 1);
		for (int32_t i = 0; i < dims.n; i++)
			if (dims.v[i] == d && operand.dims[i] == result.dims[d])
				sw_rule_place_operand(b, factor, 0, i, 1);
	}
}

static void transpose(sw_rule_builder *b)
{
	sw_ints dims = b->op->attrs->dims.dims;
	sw_shape result = sw_rule_result_shape(b, 0);

	for (int32_t d = 0; d < result.rank; d++) {
		int32_t factor = sw_rule_add_parallel(b, result.dims[d]);
		sw_rule_place_operand(b, factor, 0, (int32_t)dims.v[d], 1);
		sw_rule_place_result(b, factor, 0, d, 1);
	}
}

/* One dimension as digits of a flat index: [stride, stride*size). */
typedef struct flat_dim {
	int32_t dim;
	int64_t stride, size;
} flat_dim;

/* Add a factor for the digits that a dimension of the operand and one of the result both cover,
 * from the larger start to the common end: these digits survive. */
static void common_digits(sw_rule_builder *b, flat_dim left, flat_dim right)
{
	/* The least common multiple of the strides is the larger start. */
	int64_t low = left.stride / sw_gcd(left.stride, right.stride) * right.stride;
	int64_t high = sw_gcd(left.stride * left.size, right.stride * right.size);

	if (high % low != 0)
		return;
	int32_t factor = sw_rule_add_parallel(b, high / low);
	sw_rule_place_operand(b, factor, 0, left.dim, low / left.stride);
	sw_rule_place_result(b, factor, 0, right.dim, low / right.stride);
}

/* Return whether there is a dimension in which no digit survives. */
static bool loses(const sw_dim_map *maps, sw_shape shape)
{
	for (int32_t d = 0; d < shape.rank; d++)
		if (shape.dims[d] > 1 && maps[d].n == 0)
			return true;
	return false;
}

/* Describe a reshape. The index counts elements of the narrower type, so that an element that
 * becomes several, or several that become one, are digits like others: of f32[n] -> u8[n,4] the n
 * survives. */
static void reshape(sw_rule_builder *b)
{
	sw_shape left = sw_rule_operand_shape(b, 0), right = sw_rule_result_shape(b, 0);
	int64_t narrow = SW_MIN(sw_type_bytes(left.type), sw_type_bytes(right.type));

	if (sw_shape_elements(left) == 0 || left.bounded || right.bounded)
		return;
	flat_dim l = {.stride = sw_type_bytes(left.type) / narrow};
	for (l.dim = left.rank - 1; l.dim >= 0; l.stride *= left.dims[l.dim--]) {
		l.size = left.dims[l.dim];
		flat_dim r = {.stride = sw_type_bytes(right.type) / narrow};
		for (r.dim = right.rank - 1; r.dim >= 0; r.stride *= right.dims[r.dim--]) {
			r.size = right.dims[r.dim];
			if (r.stride < l.stride * l.size && l.stride < r.stride * r.size)
				common_digits(b, l, r);
		}
	}
	if (loses(b->operands[0], left) || loses(b->results[0], right))
		sw_rule_whole(b, "dimensions of which a reshape leaves no digit stay whole");
}

/* A bitcast is a pure move where the type stays. Types below a byte are packed, so that one
 * device's elements need not fill bytes. */
static void bitcast(sw_rule_builder *b)
{
	sw_type left = sw_rule_operand_shape(b, 0).type, right = sw_rule_result_shape(b, 0).type;

	if (left != right && (sw_type_bits(left) < 8 || sw_type_bits(right) < 8)) {
		sw_rule_describe_replicated(b);
		return;
	}
	reshape(b);
	if (left == right)
		sw_rule_add_linearity_all(b, SW_PASS_ANY);
}

/* Sizes that are known only at run time decide which elements there are, and so where each goes. */
static void dynamic_reshape(sw_rule_builder *b)
{
	bool *array = SW_NEW_N(b->arena, bool, b->rule->n_operands);

	if (sw_rule_operand_shape(b, 0).bounded || sw_rule_result_shape(b, 0).bounded) {
		sw_rule_whole(b, "a dynamic-reshape of sizes known only at run time stays whole");
		return;
	}
	reshape(b);
	array[0] = true;
	sw_rule_add_linearity(b, array, SW_PASS_ANY);
}

/* The sizes are those of the shape, since otherwise no dimension would be split: the local op is a
 * reshape. */
static sw_status local_dynamic_reshape(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_shape part = local->shapes[0];

	if (sw_shape_equal(part, sw_local_result_whole(local, 0)))
		return sw_local_emit(local, local->in->operands, results, err);
	results[0] = sw_emit_reshape(local->out, local->computation, local->in->operands[0],
	                             part.dims, part.rank);
	return SW_OK;
}

/* Add a factor that stands in dimension d of operand and result. */
static void same_dim(sw_rule_builder *b, int32_t d, sw_exchange exchange)
{
	int32_t factor = sw_rule_add_parallel(b, sw_rule_result_shape(b, 0).dims[d]);

	sw_rule_exchanges(b, factor, exchange);
	sw_rule_place_operand(b, factor, 0, d, 1);
	sw_rule_place_result(b, factor, 0, d, 1);
}

/* ---- reverse: i -> N-1-i maps each digit c to p-1-c, whatever its stride ---------------- */

static void reverse(sw_rule_builder *b)
{
	for (int32_t d = 0; d < sw_rule_result_shape(b, 0).rank; d++)
		same_dim(b, d,
		         sw_ints_has(b->op->attrs->dims.dims, d) ? SW_EXCHANGE_FLIP
		                                                 : SW_EXCHANGE_NONE);
}

/* Each device reverses its part and sends it to the device with all digits reversed. */
static sw_status local_reverse(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_blocks all = {.count = 1};
	sw_status status = sw_local_emit(local, local->in->operands, results, err);

	for (int32_t d = 0; d < local->shapes[0].rank; d++) {
		sw_blocks blocks = sw_exchange_blocks(local, &local->results[0], d);
		for (int32_t i = 0; i < blocks.n; i++)
			all.atom[all.n++] = blocks.atom[i];
		all.count *= blocks.count;
	}
	if (status != SW_OK || all.count == 1)
		return status;
	int64_t *source = SW_NEW_N(&local->arena, int64_t, all.count);
	for (int64_t c = 0; c < all.count; c++)
		source[c] = all.count - 1 - c;
	results[0] = sw_blocks_permute(local, &all, results[0], source);
	return SW_OK;
}

/* ---- sizes ------------------------------------------------------------------------------ */

/* A size known at compile time does not depend on the elements; one known only at run time is
 * computed by devices that have the dimension whole. */
static void get_dimension_size(sw_rule_builder *b)
{
	sw_shape shape = sw_rule_operand_shape(b, 0);

	for (int32_t d = 0; d < shape.rank; d++)
		if (!(shape.bounded >> d & 1))
			sw_rule_place_operand(b, sw_rule_add_parallel(b, shape.dims[d]), 0, d, 1);
		else
			sw_rule_whole(
				b, "a dimension whose size is known only at run time stays whole");
}

static sw_status local_dimension_size(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_shape whole = sw_local_operand_whole(local, 0);
	int64_t d = local->op->attrs->dims.dims.v[0];

	if (whole.bounded >> d & 1)
		return sw_local_emit(local, local->in->operands, results, err);
	results[0] = sw_emit_scalar(local->out, local->computation, local->shapes[0].type,
	                            (double)whole.dims[d]);
	return SW_OK;
}

static void set_dimension_size(sw_rule_builder *b)
{
	sw_shape shape = sw_rule_result_shape(b, 0);

	for (int32_t d = 0; d < shape.rank; d++)
		if (shape.bounded >> d & 1)
			sw_rule_whole(
				b, "a dimension whose size is known only at run time stays whole");
		else
			same_dim(b, d, SW_EXCHANGE_NONE);
}

/* ---- terms ------------------------------------------------------------------------------ */

/* A device's term of a partial sum is its part of the stack: the one op that makes S of P without
 * communication. */
static void terms(sw_rule_builder *b)
{
	sw_shape shape = sw_rule_result_shape(b, 0);
	sw_monoid monoid = sw_rule_splittable(shape.type, SW_MONOID_SUM);

	if (monoid == SW_MONOID_NONE) {
		sw_rule_whole(b, "terms of a type without partial sums stay whole");
	} else {
		int32_t stack = sw_rule_add_reduced(b, shape.dims[0], monoid);
		sw_rule_join(b, stack, 0, 1);
		sw_rule_place_result(b, stack, 0, 0, 1);
	}
	for (int32_t d = 1; d < shape.rank; d++) {
		int32_t factor = sw_rule_add_parallel(b, shape.dims[d]);
		sw_rule_place_operand(b, factor, 0, d - 1, 1);
		sw_rule_place_result(b, factor, 0, d, 1);
	}
}

/* Where the device has one row it is a reshape, behind a barrier, so that the rows can be looked at
 * under the op's name. */
static sw_status local_terms(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_shape shape = local->shapes[0];

	if (shape.dims[0] > 1)
		return sw_local_emit(local, local->in->operands, results, err);
	sw_id row = sw_emit_reshape(local->out, local->computation, local->in->operands[0],
	                            shape.dims, shape.rank);
	sw_op_spec spec = {.opcode = SW_OP_OPT_BARRIER,
	                   .name = local->op->name,
	                   .operands = &row,
	                   .n_operands = 1,
	                   .op_name = local->op->op_name};
	return sw_build_op(local->out, local->computation, &spec, results, err);
}

static const sw_rule_row rows[] = {
	{ROW(TERMS, terms), LOCAL(local_terms)},
	{ROW(BROADCAST, broadcast), MOVE},
	{ROW(TRANSPOSE, transpose), MOVE},
	{ROW(RESHAPE, reshape), MOVE},
	/* The op passes any partial array. */
	{ROW(DYNAMIC_RESHAPE, dynamic_reshape), LOCAL(local_dynamic_reshape)},
	/* A bitcast passes any partial value where the type stays. */
	{ROW(BITCAST, bitcast)},
	{ROW(BITCAST_CONVERT, bitcast)},
	{ROW(REVERSE, reverse), LOCAL(local_reverse), MOVE},
	{ROW(GET_DIMENSION_SIZE, get_dimension_size), LOCAL(local_dimension_size)},
	{ROW(SET_DIMENSION_SIZE, set_dimension_size), PASSES({"10", SW_PASS_ANY, SW_WHEN_ALWAYS})},
};

const sw_rule_family sw_rules_shape = {"shape", rows, SW_COUNT(rows)};
