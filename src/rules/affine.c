/*
 * Ops that map indices affinely: slice, pad, concatenate. With j = a*i + b, where b = a*q + r and 0 <= r < a, the digit
 * (t, p) of i is the digit (a*t, p) of j iff t*p divides q. So a dimension has one factor, of the largest
 * such size; it stands at stride 1 where i counts and at stride a where j counts. On a device whose atoms on the
 * factor have P members, j' = a*i' + a*(q/P) + r: the start or the padding shrinks, the stride stays.
 * The same ops with partial operands: pure moves. Pad's value goes to other places than its operand, so both are P.
 */
#include "rules/row.h"

static int64_t gcd(int64_t a, int64_t b)
{
	return b == 0 ? a : gcd(b, a % b);
}

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* Size of the factor: t*p divides i_size, a*t*p divides j_size, t*p divides q. */
static int64_t affine_size(int64_t i_size, int64_t j_size, int64_t a, int64_t b)
{
	int64_t q = floor_div(b, a);

	if (i_size == 0 || j_size == 0 || j_size % a != 0)
		return 1;
	return gcd(gcd(i_size, j_size / a), q < 0 ? -q : q);
}

/* b of the local op. */
static int64_t affine_local(int64_t a, int64_t b, int64_t parts)
{
	int64_t q = floor_div(b, a);

	return a * (q / parts) + (b - a * q);
}

static int64_t *lists(sw_local_op *local, int32_t rank)
{
	return SW_NEW_N(&local->out->arena, int64_t, rank);
}

/* ---- slice: result i, operand j --------------------------------------------------------------------------- */

static void slice(sw_rule_builder *b)
{
	sw_shape operand = sw_rule_operand_shape(b, 0), result = sw_rule_result_shape(b, 0);

	for (int32_t d = 0; d < result.rank; d++) {
		int64_t a = b->op->attrs->slice.stride.v[d];
		int32_t factor = sw_rule_add_parallel(
			b, affine_size(result.dims[d], operand.dims[d], a, b->op->attrs->slice.start.v[d]));
		sw_rule_place_operand(b, factor, 0, d, a);
		sw_rule_place_result(b, factor, 0, d, 1);
	}
}

static sw_status local_slice(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_shape whole = sw_local_result_whole(local, 0), part = local->shapes[0];
	const sw_attrs *at = local->op->attrs;
	int64_t *start = lists(local, whole.rank), *limit = lists(local, whole.rank);

	for (int32_t d = 0; d < whole.rank; d++) {
		int64_t a = at->slice.stride.v[d], n = part.dims[d];
		start[d] =
			n ? affine_local(a, at->slice.start.v[d], whole.dims[d] / n) : at->slice.start.v[d];
		limit[d] = n ? start[d] + (n - 1) * a + 1 : at->slice.limit.v[d];
	}
	local->attrs.slice.start.v = start;
	local->attrs.slice.limit.v = limit;
	return sw_local_emit(local, local->in->operands, results, err);
}

/* ---- pad: operand i, result j ------------------------------------------------------------------------------- */

static void pad(sw_rule_builder *b)
{
	sw_shape operand = sw_rule_operand_shape(b, 0), result = sw_rule_result_shape(b, 0);

	for (int32_t d = 0; d < result.rank; d++) {
		int64_t a = b->op->attrs->pad.interior.v[d] + 1;
		int32_t factor = sw_rule_add_parallel(
			b, affine_size(operand.dims[d], result.dims[d], a, b->op->attrs->pad.low.v[d]));
		sw_rule_place_operand(b, factor, 0, d, 1);
		sw_rule_place_result(b, factor, 0, d, a);
	}
}

static sw_status local_pad(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_shape whole = sw_local_result_whole(local, 0), part = local->shapes[0];
	const sw_attrs *at = local->op->attrs;
	int64_t *low = lists(local, whole.rank), *high = lists(local, whole.rank);

	for (int32_t d = 0; d < whole.rank; d++) {
		int64_t a = at->pad.interior.v[d] + 1, n = sw_local_operand_extent(local, 0, d);
		low[d] = at->pad.low.v[d];
		high[d] = at->pad.high.v[d];
		if (part.dims[d] == whole.dims[d])
			continue;
		low[d] = affine_local(a, low[d], whole.dims[d] / part.dims[d]);
		high[d] = part.dims[d] - low[d] - ((n - 1) * a + 1);
	}
	local->attrs.pad.low.v = low;
	local->attrs.pad.high.v = high;
	return sw_local_emit(local, local->in->operands, results, err);
}

/* ---- concatenate: every operand i, result j = i + offset ----------------------------------------------------------- */

static void concatenate(sw_rule_builder *b)
{
	sw_shape result = sw_rule_result_shape(b, 0);
	int64_t along = b->op->attrs->dims.dims.v[0];

	for (int32_t d = 0; d < result.rank; d++) {
		int64_t size = result.dims[d];
		for (int32_t i = 0; i < b->rule->n_operands && d == along; i++)
			size = gcd(size, sw_rule_operand_shape(b, i).dims[d]);
		int32_t factor = sw_rule_add_parallel(b, size);
		for (int32_t i = 0; i < b->rule->n_operands; i++)
			if (sw_rule_operand_shape(b, i).dims[d] > 0)
				sw_rule_place_operand(b, factor, i, d, 1);
		sw_rule_place_result(b, factor, 0, d, 1);
	}
}

#define MOVE PASSES({"*", SW_PASS_ANY, SW_WHEN_ALWAYS})

static const sw_rule_row rows[] = {
	{ROW(SLICE, slice), LOCAL(local_slice), MOVE},
	{ROW(PAD, pad), LOCAL(local_pad), MOVE},
	{ROW(CONCATENATE, concatenate), MOVE},
};

const sw_rule_family sw_rules_affine = {"affine", rows, SW_COUNT(rows)};
