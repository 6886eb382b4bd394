/* Ops that rename dimensions: broadcast, transpose, reshape, bitcast, bitcast-convert, reverse. Pure moves pass any partial value. */
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

static int64_t gcd(int64_t a, int64_t b)
{
	return b == 0 ? a : gcd(b, a % b);
}

/* A dimension of size n with flat stride s covers the digits [s, s*n) of the flat index, and so does one of the other
 * side. What both cover, from the larger start to the common end, is a factor: it survives the reshape. */
static void common_digits(sw_rule_builder *b, int32_t left, int64_t left_stride, int64_t left_size,
                          int32_t right, int64_t right_stride, int64_t right_size)
{
	int64_t low =
		left_stride / gcd(left_stride, right_stride) * right_stride; /* least common multiple */
	int64_t high = gcd(left_stride * left_size, right_stride * right_size);

	if (high % low != 0)
		return;
	int32_t factor = sw_rule_add_parallel(b, high / low);
	sw_rule_place_operand(b, factor, 0, left, low / left_stride);
	sw_rule_place_result(b, factor, 0, right, low / right_stride);
}

static void reshape(sw_rule_builder *b)
{
	sw_shape left = sw_rule_operand_shape(b, 0), right = sw_rule_result_shape(b, 0);

	if (sw_shape_elements(left) == 0)
		return;
	int64_t left_stride = 1;
	for (int32_t l = left.rank - 1; l >= 0; left_stride *= left.dims[l--]) {
		int64_t right_stride = 1;
		for (int32_t r = right.rank - 1; r >= 0; right_stride *= right.dims[r--])
			if (right_stride < left_stride * left.dims[l] &&
			    left_stride < right_stride * right.dims[r])
				common_digits(b, l, left_stride, left.dims[l], r, right_stride,
				              right.dims[r]);
	}
}

/* Of another width, the last dimension is split into, or merged from, the parts of an element. */
static void bitcast_convert(sw_rule_builder *b)
{
	sw_shape left = sw_rule_operand_shape(b, 0), right = sw_rule_result_shape(b, 0);

	for (int32_t d = 0; d < SW_MIN(left.rank, right.rank); d++) {
		if (left.dims[d] != right.dims[d])
			continue;
		int32_t factor = sw_rule_add_parallel(b, left.dims[d]);
		sw_rule_place_operand(b, factor, 0, d, 1);
		sw_rule_place_result(b, factor, 0, d, 1);
	}
}

static void bitcast(sw_rule_builder *b)
{
	if (sw_rule_operand_shape(b, 0).type == sw_rule_result_shape(b, 0).type) {
		reshape(b);
		sw_rule_add_passage_all(b, SW_PASS_ANY);
	} else {
		sw_rule_describe_replicated(b);
	}
}

static void reverse(sw_rule_builder *b)
{
	sw_shape shape = sw_rule_result_shape(b, 0);

	for (int32_t d = 0; d < shape.rank; d++) {
		if (sw_ints_has(b->op->attrs->dims.dims, d)) {
			sw_rule_whole(b, "reversed dimensions stay whole");
			continue;
		}
		int32_t factor = sw_rule_add_parallel(b, shape.dims[d]);
		sw_rule_place_operand(b, factor, 0, d, 1);
		sw_rule_place_result(b, factor, 0, d, 1);
	}
}

static const sw_rule_row rows[] = {
	{ROW(BROADCAST, broadcast), MOVE},
	{ROW(TRANSPOSE, transpose), MOVE},
	{ROW(RESHAPE, reshape), MOVE},
	{ROW(BITCAST, bitcast)}, /* a move where the type stays */
	{ROW(BITCAST_CONVERT, bitcast_convert)},
	{ROW(REVERSE, reverse), MOVE},
	{ROW(GET_DIMENSION_SIZE, sw_rule_describe_replicated)},
	{ROW(SET_DIMENSION_SIZE, sw_rule_describe_replicated)},
};

const sw_rule_family sw_rules_shape = {"shape", rows, SW_COUNT(rows)};
