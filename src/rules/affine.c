/*
 * Ops that map indices affinely: slice, pad, concatenate. With j = a*i + b, where b = a*q + r and
 * 0 <= r < a, the digit (t, p) of i is the digit (a*t, p) of j iff t*p divides q. So a dimension
 * has one factor, of the largest size for which this holds; it stands at stride 1 where i counts
 * and at stride a where j counts. On a device whose atoms on the factor have P members, j' = a*i' +
 * a*(q/P) + r: the start or the padding shrinks, the stride stays. With partial operands the same
 * ops are pure moves. Pad's value goes to other places than its operand, so both are P.
 *
 * Above the digits that survive, slice and pad have a second factor: blocks of i against blocks of
 * j, which do not agree, so each device fetches the rows that its block lacks (HALO). The first
 * factor is preferred, since it moves nothing: where it reaches the top of a dimension no blocks
 * are left. A concatenation has no second factor: blocks would have to divide all extents, and
 * digits that do so survive.
 */
#include "rules/row.h"

/* Return the size of the factor that survives: t*p divides i_size, a*t*p divides j_size, t*p
 * divides q. */
static int64_t affine_size(int64_t i_size, int64_t j_size, int64_t a, int64_t b)
{
	int64_t q = sw_floor_div(b, a);

	if (i_size == 0 || j_size == 0 || j_size % a != 0)
		return 1;
	return sw_gcd(sw_gcd(i_size, j_size / a), q < 0 ? -q : q);
}

/* The factors of one dimension, whose extent is one number where i counts and another where j
 * does. */
typedef struct affine {
	int32_t digits, blocks;
	int64_t i_blocks, j_blocks, a; /* strides: of the blocks; of the digits in j (1 in i) */
} affine;

static affine affine_factors(sw_rule_builder *b, int64_t i_size, int64_t j_size, int64_t a,
                             int64_t offset)
{
	int64_t size = affine_size(i_size, j_size, a, offset), below = size > 1 ? a * size : 1;
	int64_t blocks = sw_gcd(i_size / size, j_size / below);
	affine f = {.digits = sw_rule_add_parallel(b, size), .blocks = -1, .a = a};

	if (i_size == 0 || j_size == 0)
		return f;
	f.blocks = sw_rule_add_parallel(b, blocks);
	f.i_blocks = i_size / blocks;
	f.j_blocks = j_size / blocks;
	sw_rule_exchanges(b, f.blocks, SW_EXCHANGE_HALO);
	if (f.digits < 0 && f.blocks < 0 && i_size > 1 && j_size > 1)
		sw_rule_whole(b, "a slice or a padding between extents without a common divisor "
		                 "stays whole");
	return f;
}

/* Return the b of j = a*i + b for one device, with its digits taken out of i and j; what is left
 * may still be blocks. */
static int64_t local_offset(const sw_local_op *local, int32_t dim, int64_t a, int64_t b)
{
	const sw_dim_map *map = &local->in->rule->results[0][dim];
	int64_t q = sw_floor_div(b, a), parts = 1;

	for (int32_t atom = 0; atom < local->atoms->n; atom++) {
		const sw_choice *choice = &local->in->strategy->atom[atom];
		for (int32_t k = 0; k < map->n && choice->kind == SW_CHOICE_SPLIT; k++)
			if (map->refs[k].factor == choice->index &&
			    local->in->rule->factors[choice->index].exchange == SW_EXCHANGE_NONE)
				parts *= local->atoms->size[atom];
	}
	return a * (q / parts) + (b - a * q);
}

static int64_t *new_list(sw_local_op *local, int32_t rank)
{
	return SW_NEW_N(&local->out->arena, int64_t, rank);
}

/* ---- slice: result i, operand j --------------------------------------------------------- */

static void slice(sw_rule_builder *b)
{
	sw_shape operand = sw_rule_operand_shape(b, 0), result = sw_rule_result_shape(b, 0);

	for (int32_t d = 0; d < result.rank; d++) {
		affine f = affine_factors(b, result.dims[d], operand.dims[d],
		                          b->op->attrs->slice.stride.v[d],
		                          b->op->attrs->slice.start.v[d]);
		sw_rule_place_operand(b, f.digits, 0, d, f.a);
		sw_rule_place_result(b, f.digits, 0, d, 1);
		sw_rule_place_operand(b, f.blocks, 0, d, f.j_blocks);
		sw_rule_place_result(b, f.blocks, 0, d, f.i_blocks);
	}
}

/* Fetch blocks of n elements at stride a. */
static sw_id fetch_slice(sw_local_op *local, const sw_blocks *blocks, sw_id x, int32_t dim,
                         int64_t n, int64_t a, int64_t start)
{
	sw_reach reach = {.start = start,
	                  .step = n * a,
	                  .length = (n - 1) * a + 1,
	                  .dilation = 1,
	                  .fill = SW_NO_ID};

	return sw_blocks_fetch(local, blocks, x, dim, &reach);
}

static sw_status local_slice(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_shape part = local->shapes[0];
	const sw_attrs *at = local->op->attrs;
	int64_t *start = new_list(local, part.rank), *limit = new_list(local, part.rank);
	sw_id x = local->in->operands[0];

	for (int32_t d = 0; d < part.rank; d++) {
		int64_t a = at->slice.stride.v[d], n = part.dims[d];
		sw_blocks blocks = sw_exchange_blocks(local, &local->results[0], d);
		start[d] = local_offset(local, d, a, at->slice.start.v[d]);
		if (blocks.count > 1) {
			x = fetch_slice(local, &blocks, x, d, n, a, start[d]);
			start[d] = 0;
		}
		limit[d] = n ? start[d] + (n - 1) * a + 1 : start[d];
	}
	local->attrs.slice.start.v = start;
	local->attrs.slice.limit.v = limit;
	return sw_local_emit(local, &x, results, err);
}

/* ---- pad: operand i, result j ----------------------------------------------------------- */

static void pad(sw_rule_builder *b)
{
	sw_shape operand = sw_rule_operand_shape(b, 0), result = sw_rule_result_shape(b, 0);

	for (int32_t d = 0; d < result.rank; d++) {
		affine f = affine_factors(b, operand.dims[d], result.dims[d],
		                          b->op->attrs->pad.interior.v[d] + 1,
		                          b->op->attrs->pad.low.v[d]);
		sw_rule_place_operand(b, f.digits, 0, d, 1);
		sw_rule_place_result(b, f.digits, 0, d, f.a);
		sw_rule_place_operand(b, f.blocks, 0, d, f.i_blocks);
		sw_rule_place_result(b, f.blocks, 0, d, f.j_blocks);
	}
}

static sw_status local_pad(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_shape part = local->shapes[0];
	const sw_attrs *at = local->op->attrs;
	int64_t *low = new_list(local, part.rank), *high = new_list(local, part.rank),
		*interior = new_list(local, part.rank);
	sw_id operands[2] = {local->in->operands[0], local->in->operands[1]};

	for (int32_t d = 0; d < part.rank; d++) {
		int64_t a = at->pad.interior.v[d] + 1, n = sw_local_operand_extent(local, 0, d);
		sw_blocks blocks = sw_exchange_blocks(local, &local->results[0], d);
		sw_reach reach = {.low = local_offset(local, d, a, at->pad.low.v[d]),
		                  .interior = a - 1};
		reach.high = part.dims[d] - reach.low - (n ? (n - 1) * a + 1 : 0);
		if (blocks.count > 1) {
			reach = (sw_reach){.start = -reach.low,
			                   .step = part.dims[d],
			                   .length = part.dims[d],
			                   .dilation = a,
			                   .fill = operands[1]};
			operands[0] = sw_blocks_fetch(local, &blocks, operands[0], d, &reach);
		}
		low[d] = reach.low;
		interior[d] = reach.interior;
		high[d] = reach.high;
	}
	local->attrs.pad.low.v = low;
	local->attrs.pad.interior.v = interior;
	local->attrs.pad.high.v = high;
	return sw_local_emit(local, operands, results, err);
}

/* ---- concatenate: every operand i, result j = i + offset -------------------------------- */

static void concatenate(sw_rule_builder *b)
{
	sw_shape result = sw_rule_result_shape(b, 0);
	int64_t along = b->op->attrs->dims.dims.v[0];

	for (int32_t d = 0; d < result.rank; d++) {
		int64_t size = result.dims[d];
		for (int32_t i = 0; i < b->rule->n_operands && d == along; i++)
			size = sw_gcd(size, sw_rule_operand_shape(b, i).dims[d]);
		int32_t factor = sw_rule_add_parallel(b, size);
		if (factor < 0 && result.dims[d] > 1)
			sw_rule_whole(
				b,
				"a concatenation of extents without a common divisor stays whole");
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
