/* Sliding windows: dimensions that the window leaves alone are parallel, the others whole. */
#include "rules/row.h"

static bool untouched(const sw_window_dim *w)
{
	return w->size == 1 && w->stride == 1 && w->pad_low == 0 && w->pad_high == 0 &&
	       w->lhs_dilate == 1 && w->rhs_dilate == 1;
}

/* Inits are scalars: rank tells the tensors. */
static void untouched_dims(sw_rule_builder *b)
{
	sw_shape shape = sw_rule_operand_shape(b, 0);
	const sw_window *window = &b->op->attrs->window.window;

	for (int32_t d = 0; d < shape.rank; d++) {
		if (!untouched(&window->dims[d])) {
			sw_rule_whole(b, "windowed dimensions stay whole");
			continue;
		}
		int32_t factor = sw_rule_add_parallel(b, shape.dims[d]);
		for (int32_t i = 0; i < b->rule->n_operands; i++)
			if (b->rule->operand_ranks[i] == shape.rank)
				sw_rule_place_operand(b, factor, i, d, 1);
		for (int32_t i = 0; i < b->rule->n_results; i++)
			sw_rule_place_result(b, factor, i, d, 1);
	}
}

/* reduce-window(inputs, inits) passes its monoid as reduce does. */
static void reduce_window(sw_rule_builder *b)
{
	sw_monoid monoid = b->rule->n_operands == 2 ? sw_computation_monoid(b->program, b->op->called[0])
	                                            : SW_MONOID_NONE;

	untouched_dims(b);
	monoid = sw_rule_splittable(sw_rule_operand_shape(b, 0).type, monoid);
	if (monoid)
		sw_rule_add_passage_all(b, SW_MONOID_BIT(monoid));
}

/* select-and-scatter(operand, source, init): the operand only says where; sums pass source and init. */
static void select_and_scatter(sw_rule_builder *b)
{
	untouched_dims(b);
	if (sw_computation_monoid(b->program, b->op->called[1]) == SW_MONOID_SUM)
		sw_rule_add_passage_text(b, "011", SW_PASS_SUM);
}

static const sw_rule_row rows[] = {
	{ROW(REDUCE_WINDOW, reduce_window)},
	{ROW(SELECT_AND_SCATTER, select_and_scatter)},
};

const sw_rule_family sw_rules_window = {"window", rows, SW_COUNT(rows)};
