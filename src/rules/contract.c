/* Contractions: dot and convolution. The contracted factor is REDUCED(sum); both are linear in each operand. */
#include "rules/row.h"

#define BILINEAR PASSES({"10", SW_PASS_SUM, SW_WHEN_ALWAYS}, {"01", SW_PASS_SUM, SW_WHEN_ALWAYS})

/* The result's dimensions: batch, then the free ones of the left, then of the right operand. */
static int32_t place_free(sw_rule_builder *b, int32_t operand, sw_ints batch, sw_ints contracting,
                          int32_t next)
{
	sw_shape shape = sw_rule_operand_shape(b, operand);

	for (int32_t d = 0; d < shape.rank; d++) {
		if (sw_ints_has(batch, d) || sw_ints_has(contracting, d))
			continue;
		int32_t factor = sw_rule_add_parallel(b, shape.dims[d]);
		sw_rule_place_operand(b, factor, operand, d, 1);
		sw_rule_place_result(b, factor, 0, next++, 1);
	}
	return next;
}

/* Any factor may be split, by several atoms and at any stride: batch, rows, columns, contraction. */
static void dot(sw_rule_builder *b)
{
	sw_ints lb = b->op->attrs->dot.lhs_batch, rb = b->op->attrs->dot.rhs_batch;
	sw_ints lc = b->op->attrs->dot.lhs_contracting, rc = b->op->attrs->dot.rhs_contracting;
	sw_shape lhs = sw_rule_operand_shape(b, 0);
	sw_monoid sum = sw_rule_splittable(sw_rule_result_shape(b, 0).type, SW_MONOID_SUM);

	for (int32_t i = 0; i < lb.n; i++) {
		int32_t factor = sw_rule_add_parallel(b, lhs.dims[lb.v[i]]);
		sw_rule_place_operand(b, factor, 0, (int32_t)lb.v[i], 1);
		sw_rule_place_operand(b, factor, 1, (int32_t)rb.v[i], 1);
		sw_rule_place_result(b, factor, 0, i, 1);
	}
	int32_t next = place_free(b, 0, lb, lc, lb.n);
	place_free(b, 1, rb, rc, next);
	for (int32_t i = 0; sum && i < lc.n; i++) {
		int32_t factor = sw_rule_add_reduced(b, lhs.dims[lc.v[i]], sum);
		sw_rule_place_operand(b, factor, 0, (int32_t)lc.v[i], 1);
		sw_rule_place_operand(b, factor, 1, (int32_t)rc.v[i], 1);
	}
}

/* Batch, output feature and input feature where there are no groups; space stays whole. */
static void convolution(sw_rule_builder *b)
{
	const sw_attrs *at = b->op->attrs;
	sw_shape input = sw_rule_operand_shape(b, 0), kernel = sw_rule_operand_shape(b, 1);
	bool plain = at->convolution.feature_groups == 1 && at->convolution.batch_groups == 1;

	sw_rule_whole(b, plain ? "a convolution's space stays whole"
	                       : "a grouped convolution's space and features stay whole");
	if (at->convolution.batch_groups == 1) {
		int32_t batch = sw_rule_add_parallel(b, input.dims[at->convolution.input_batch]);
		sw_rule_place_operand(b, batch, 0, (int32_t)at->convolution.input_batch, 1);
		sw_rule_place_result(b, batch, 0, (int32_t)at->convolution.output_batch, 1);
	}
	if (!plain)
		return;
	int32_t out = sw_rule_add_parallel(b, kernel.dims[at->convolution.kernel_output]);
	sw_rule_place_operand(b, out, 1, (int32_t)at->convolution.kernel_output, 1);
	sw_rule_place_result(b, out, 0, (int32_t)at->convolution.output_feature, 1);
	if (!sw_rule_splittable(sw_rule_result_shape(b, 0).type, SW_MONOID_SUM))
		return;
	int32_t in = sw_rule_add_reduced(b, input.dims[at->convolution.input_feature], SW_MONOID_SUM);
	sw_rule_place_operand(b, in, 0, (int32_t)at->convolution.input_feature, 1);
	sw_rule_place_operand(b, in, 1, (int32_t)at->convolution.kernel_input, 1);
}

static const sw_rule_row rows[] = {
	{ROW(DOT, dot), BILINEAR},
	{ROW(CONVOLUTION, convolution), BILINEAR},
};

const sw_rule_family sw_rules_contract = {"contract", rows, SW_COUNT(rows)};
