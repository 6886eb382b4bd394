/*
 * A window that slides along one dimension: place w of window o covers position o*stride +
 * w*rhs_dilate - pad_low, and element i of the input stands at position i*lhs_dilate. The input can
 * be split together with either of two things:
 *   the windows   block c of the output needs the positions that its windows cover
 *   the places    block c of a kernel that is as large as the input (the gradient with respect to a
 *                 kernel), or of a window that covers the whole input, needs the positions that its
 *                 places cover; all blocks together make a sum, or a maximum
 * Both are one reach: block c needs the positions from c steps on, and a halo where they leave its
 * own block of the input.
 */
#include "rules/row.h"

/* Return the positions that block c of `blocks` covers with this many windows and places. A
 * reversed kernel has its first block at the far end. */
static sw_reach reach_of(const sw_window_dim *w, int64_t windows, int64_t places, int64_t blocks)
{
	bool by_places = places < w->size;
	sw_reach reach = {
		.start = -w->pad_low,
		.step = by_places ? places * w->rhs_dilate : windows * w->stride,
		.length = (windows - 1) * w->stride + (places - 1) * w->rhs_dilate + 1,
		.dilation = w->lhs_dilate,
		.fill = SW_NO_ID,
	};

	if (by_places && w->reversal) {
		reach.start += (blocks - 1) * reach.step;
		reach.step = -reach.step;
	}
	return reach;
}

/* A split of the input with the windows, or with the places, into as many blocks as possible. */
typedef struct slide {
	int64_t size; /* blocks */
	/* by how many positions the other side is longer or shorter than the input */
	int64_t drift;
	/* no block looks into another one, nor does any other digit of the same size */
	bool contained;
} slide;

static slide slide_with(const sw_window_dim *w, int64_t input, int64_t output, bool by_places)
{
	int64_t size = sw_gcd(input, by_places ? w->size : output);
	sw_reach reach = reach_of(w, by_places ? output : output / size,
	                          by_places ? w->size / size : w->size, size);
	int64_t positions = input / size * w->lhs_dilate;

	return (slide){
		.size = size,
		.drift = llabs(llabs(reach.step) * size - input * w->lhs_dilate),
		.contained = reach.step == positions && reach.start > -reach.dilation &&
	                     reach.start + reach.length <= positions,
	};
}

/* Return whether all positions that windows cover lie within one length of the dimension from it.
 * Otherwise there is little to share, and blocks far away would be needed. */
static bool within_one_length(const sw_window_dim *w, int64_t input, int64_t output)
{
	int64_t positions;

	if (!sw_mul_i64(input, w->lhs_dilate, &positions) || positions > INT64_MAX / 16 ||
	    w->pad_low > positions || w->pad_low < -2 * positions)
		return false;
	sw_reach all = reach_of(w, output, w->size, 1);
	return all.length <= 3 * positions && all.start + all.length <= 2 * positions;
}

int32_t sw_rule_add_slide(sw_rule_builder *builder, const sw_window_dim *w, int64_t input,
                          int64_t output, sw_monoid over_places, const char *no_halo)
{
	if (input < 2 || output == 0)
		return -1;
	if (!within_one_length(w, input, output)) {
		sw_rule_whole(builder,
		              "a window that reaches far beyond its dimension keeps it whole");
		return -1;
	}
	slide windows = slide_with(w, input, output, false),
	      places = slide_with(w, input, output, true);
	bool closer = places.drift < windows.drift ||
	              (places.drift == windows.drift && places.size > windows.size);
	bool by_places = over_places && places.size > 1 && (closer || windows.size < 2);
	slide chosen = by_places ? places : windows;

	const char *why = chosen.contained ? NULL : no_halo;
	if (chosen.size < 2)
		why = "a windowed dimension whose sizes have no common divisor stays whole";
	if (why) {
		sw_rule_whole(builder, why);
		return -1;
	}
	int32_t factor = by_places ? sw_rule_add_reduced(builder, chosen.size, over_places)
	                           : sw_rule_add_parallel(builder, chosen.size);
	if (!chosen.contained)
		sw_rule_exchanges(builder, factor, SW_EXCHANGE_HALO);
	return factor;
}

sw_id sw_local_slide(sw_local_op *local, int32_t operand, sw_id x, int32_t dim, int64_t windows,
                     sw_id fill, sw_window_dim *w)
{
	const sw_rule *rule = local->in->rule;
	int64_t parts = sw_local_operand_whole(local, operand).dims[dim] /
	                SW_MAX(sw_local_operand_extent(local, operand, dim), 1);

	if (parts <= 1)
		return x;
	const sw_factor *factor = &rule->factors[rule->operands[operand][dim].refs[0].factor];
	int64_t places = factor->kind == SW_FACTOR_REDUCED ? w->size / parts : w->size;
	sw_reach reach = reach_of(w, windows, places, parts);
	w->size = places;
	if (factor->exchange == SW_EXCHANGE_NONE)
		return x;
	sw_blocks blocks = sw_exchange_blocks(local, &local->operands[operand], dim);
	reach.fill = fill;
	x = sw_blocks_fetch(local, &blocks, x, dim, &reach);
	w->pad_low = reach.low;
	w->lhs_dilate = reach.interior + 1;
	w->pad_high = reach.high;
	return x;
}
