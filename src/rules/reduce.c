/* Reductions over whole dimensions: reduce, sort, topk, batch normalisation. */
#include "rules/row.h"

/* reduce(inputs, inits): kept dimensions are parallel; reduced ones are REDUCED by the computation's monoid if it is known and
 * there is one input, and the init must then be P: it counts once. */
static void reduce(sw_rule_builder *b)
{
	int32_t n = b->rule->n_operands / 2, kept = 0;
	sw_shape shape = sw_rule_operand_shape(b, 0);
	sw_monoid monoid =
		n == 1 ? sw_rule_splittable(shape.type, sw_computation_monoid(b->program, b->op->called[0]))
		       : SW_MONOID_NONE;

	for (int32_t d = 0; d < shape.rank; d++) {
		bool reduced = sw_ints_has(b->op->attrs->dims.dims, d);
		int32_t factor = -1;
		if (!reduced) {
			factor = sw_rule_add_parallel(b, shape.dims[d]);
			for (int32_t r = 0; r < n; r++)
				sw_rule_place_result(b, factor, r, kept, 1);
			kept++;
		} else if (monoid) {
			factor = sw_rule_add_reduced(b, shape.dims[d], monoid);
			sw_rule_join(b, factor, n, n);
		} else {
			sw_rule_whole(b, "a reduction that is not a sum, max, min, and, or keeps its "
			                 "dimensions whole");
		}
		for (int32_t i = 0; i < n; i++)
			sw_rule_place_operand(b, factor, i, d, 1);
	}
	if (monoid)
		sw_rule_add_passage_all(b, SW_MONOID_BIT(monoid));
}

/* Every operand and result has the dimension d of size n. */
static void parallel_everywhere(sw_rule_builder *b, int32_t d, int64_t n)
{
	int32_t factor = sw_rule_add_parallel(b, n);

	for (int32_t i = 0; i < b->rule->n_operands; i++)
		sw_rule_place_operand(b, factor, i, d, 1);
	for (int32_t i = 0; i < b->rule->n_results; i++)
		sw_rule_place_result(b, factor, i, d, 1);
}

static void sort(sw_rule_builder *b)
{
	sw_shape shape = sw_rule_operand_shape(b, 0);

	sw_rule_whole(b, "sort needs its dimension");
	for (int32_t d = 0; d < shape.rank; d++)
		if (d != b->op->attrs->sort.dimension)
			parallel_everywhere(b, d, shape.dims[d]);
}

static void topk(sw_rule_builder *b)
{
	sw_shape shape = sw_rule_operand_shape(b, 0);

	sw_rule_whole(b, "topk needs its dimension");
	for (int32_t d = 0; d + 1 < shape.rank; d++)
		parallel_everywhere(b, d, shape.dims[d]);
}

/* The feature dimension stands in the tensors, and is all there is in the vectors (scale, offset, mean, variance). */
static void place_feature(sw_rule_builder *b, int64_t feature)
{
	int32_t factor = sw_rule_add_parallel(b, sw_rule_operand_shape(b, 0).dims[feature]);

	for (int32_t i = 0; i < b->rule->n_operands; i++)
		sw_rule_place_operand(b, factor, i, b->rule->operand_ranks[i] == 1 ? 0 : (int32_t)feature,
		                      1);
	for (int32_t i = 0; i < b->rule->n_results; i++)
		sw_rule_place_result(b, factor, i, b->rule->result_ranks[i] == 1 ? 0 : (int32_t)feature, 1);
}

/* Statistics over all dimensions but the feature's. */
static void batch_norm(sw_rule_builder *b)
{
	sw_rule_whole(b, "batch normalisation takes its statistics over whole dimensions");
	place_feature(b, b->op->attrs->batch_norm.feature);
}

static void batch_norm_inference(sw_rule_builder *b)
{
	sw_shape shape = sw_rule_operand_shape(b, 0);

	place_feature(b, b->op->attrs->batch_norm.feature);
	for (int32_t d = 0; d < shape.rank; d++) {
		if (d == b->op->attrs->batch_norm.feature)
			continue;
		int32_t factor = sw_rule_add_parallel(b, shape.dims[d]);
		sw_rule_place_operand(b, factor, 0, d, 1);
		sw_rule_place_result(b, factor, 0, d, 1);
	}
}

static const sw_rule_row rows[] = {
	{ROW(REDUCE, reduce)}, /* passes its monoid through inputs and inits together */
	{ROW(SORT, sort)},
	{ROW(TOPK, topk)},
	{ROW(BATCH_NORM_GRAD, batch_norm)},
	{ROW(BATCH_NORM_INFERENCE, batch_norm_inference)},
	{ROW(BATCH_NORM_TRAINING, batch_norm)},
};

const sw_rule_family sw_rules_reduce = {"reduce", rows, SW_COUNT(rows)};
