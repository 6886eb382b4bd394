/* Contractions: dot and convolution. The contracted factor is REDUCED(sum); both are linear in each
 * operand. */
#include "rules/row.h"

#define BILINEAR PASSES({"10", SW_PASS_SUM, SW_WHEN_ALWAYS}, {"01", SW_PASS_SUM, SW_WHEN_ALWAYS})

/* Place the free dimensions of an operand; return the next dimension of the result, which has the
 * batch dimensions, then the free ones of the left, then those of the right operand. */
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

/* Describe a dot. Any factor may be split, by several atoms and at any stride: batch, rows,
 * columns, contraction. */
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
		sw_rule_streams(b, factor);
		sw_rule_place_operand(b, factor, 0, (int32_t)lc.v[i], 1);
		sw_rule_place_operand(b, factor, 1, (int32_t)rc.v[i], 1);
	}
}

/* At most one of the two group counts is larger than 1: then the input features, or the batch, come
 * in that many groups, as do the output features; the group is the major part of those
 * dimensions. */
static void convolution_groups(sw_rule_builder *b)
{
	const sw_attrs *at = b->op->attrs;
	sw_shape kernel = sw_rule_operand_shape(b, 1), output = sw_rule_result_shape(b, 0);
	int64_t features = at->convolution.feature_groups, batches = at->convolution.batch_groups;
	int64_t outputs = kernel.dims[at->convolution.kernel_output] / (features * batches);
	int32_t group = sw_rule_add_parallel(b, features * batches);

	if (features > 1)
		sw_rule_place_operand(b, group, 0, (int32_t)at->convolution.input_feature,
		                      kernel.dims[at->convolution.kernel_input]);
	else
		sw_rule_place_operand(b, group, 0, (int32_t)at->convolution.input_batch,
		                      output.dims[at->convolution.output_batch]);
	sw_rule_place_operand(b, group, 1, (int32_t)at->convolution.kernel_output, outputs);
	sw_rule_place_result(b, group, 0, (int32_t)at->convolution.output_feature, outputs);

	int32_t out = sw_rule_add_parallel(b, outputs);
	sw_rule_place_operand(b, out, 1, (int32_t)at->convolution.kernel_output, 1);
	sw_rule_place_result(b, out, 0, (int32_t)at->convolution.output_feature, 1);
}

static void convolution_space(sw_rule_builder *b, int32_t i, sw_monoid sum)
{
	const sw_attrs *at = b->op->attrs;
	const sw_window_dim *w = &at->convolution.window.dims[i];
	int32_t in = (int32_t)at->convolution.input_spatial.v[i],
		out = (int32_t)at->convolution.output_spatial.v[i];
	int64_t input = sw_rule_operand_shape(b, 0).dims[in],
		output = sw_rule_result_shape(b, 0).dims[out];
	int32_t factor = sw_rule_add_slide(b, w, input, output, sum, NULL);

	if (factor < 0)
		return;
	const sw_factor *added = &b->factors[factor];
	sw_rule_place_operand(b, factor, 0, in, input / added->size);
	if (added->kind == SW_FACTOR_REDUCED)
		sw_rule_place_operand(b, factor, 1, (int32_t)at->convolution.kernel_spatial.v[i],
		                      w->size / added->size);
	else
		sw_rule_place_result(b, factor, 0, out, output / added->size);
}

/* Describe a convolution: batch, groups, output feature, input feature; and space, of the output
 * or, where the kernel is as large as the input, of the kernel. */
static void convolution(sw_rule_builder *b)
{
	const sw_attrs *at = b->op->attrs;
	sw_shape kernel = sw_rule_operand_shape(b, 1), output = sw_rule_result_shape(b, 0);
	sw_monoid sum = sw_rule_splittable(output.type, SW_MONOID_SUM);

	if (sw_shape_elements(sw_rule_operand_shape(b, 0)) == 0 || sw_shape_elements(kernel) == 0) {
		sw_rule_whole(b, "an empty convolution stays whole");
		return;
	}
	int32_t batch = sw_rule_add_parallel(b, output.dims[at->convolution.output_batch]);
	sw_rule_place_operand(b, batch, 0, (int32_t)at->convolution.input_batch, 1);
	sw_rule_place_result(b, batch, 0, (int32_t)at->convolution.output_batch, 1);
	convolution_groups(b);
	if (sum) {
		int32_t in = sw_rule_add_reduced(b, kernel.dims[at->convolution.kernel_input], sum);
		sw_rule_place_operand(b, in, 0, (int32_t)at->convolution.input_feature, 1);
		sw_rule_place_operand(b, in, 1, (int32_t)at->convolution.kernel_input, 1);
	}
	for (int32_t i = 0; i < at->convolution.window.rank; i++)
		convolution_space(b, i, sum);
}

void sw_convolution_regroup(sw_attrs *at, sw_shape input, sw_shape kernel, sw_shape output)
{
	if (at->convolution.feature_groups > 1)
		at->convolution.feature_groups = input.dims[at->convolution.input_feature] /
		                                 kernel.dims[at->convolution.kernel_input];
	if (at->convolution.batch_groups > 1)
		at->convolution.batch_groups = input.dims[at->convolution.input_batch] /
		                               output.dims[at->convolution.output_batch];
}

/* Fetch the halos of the input, and count the groups that this device has. */
static sw_status local_convolution(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_attrs *at = &local->attrs;
	sw_window *window = &at->convolution.window;
	sw_window_dim *w = SW_NEW_N(&local->out->arena, sw_window_dim, window->rank);
	sw_id operands[2] = {local->in->operands[0], local->in->operands[1]};
	sw_shape output = local->shapes[0];

	sw_convolution_regroup(at, sw_value_shape(local->out, operands[0]),
	                       sw_value_shape(local->out, operands[1]), output);
	for (int32_t i = 0; i < window->rank; i++) {
		w[i] = window->dims[i];
		operands[0] = sw_local_slide(
			local, 0, operands[0], (int32_t)at->convolution.input_spatial.v[i],
			output.dims[at->convolution.output_spatial.v[i]], SW_NO_ID, &w[i]);
	}
	window->dims = w;
	return sw_local_emit(local, operands, results, err);
}

static const sw_rule_row rows[] = {
	{ROW(DOT, dot), LOCAL(sw_local_streamed), BILINEAR},
	{ROW(CONVOLUTION, convolution), LOCAL(local_convolution), BILINEAR},
};

const sw_rule_family sw_rules_contract = {"contract", rows, SW_COUNT(rows)};
