/*
 * The states over time in which an op reads its operands; and ops that no time reaches, which are
 * sunk into the loop where all their readers read the iteration's part.
 */
#include "rewrite/time.h"

#include <stdlib.h>
#include <string.h>

static void region_needs(const sw_timing *t, const sw_op *op, sw_time *needs)
{
	/* The two computations of a loop have the same parameters. */
	uint32_t first = op->opcode == SW_OP_WHILE ? 1 : 0, at = 0, n;
	if (op->opcode == SW_OP_CONDITIONAL)
		needs[at++] = (sw_time){{0}, SW_MONOID_NONE};
	for (uint32_t k = first; k < op->n_called; k++) {
		sw_id parameters = sw_region_parameters(t->program, op, k, &n);
		for (uint32_t i = 0; i < n; i++)
			needs[at++] = t->value[parameters + i];
	}
}

/* Find the states that a choice needs and gives. */
static bool layouts_by_choice(const sw_timing *t, sw_id id, sw_choice choice, sw_time *needs,
                              sw_time *gives)
{
	const sw_op *op = sw_op_at(t->program, id);
	sw_strategy strategy = sw_strategy_none(&t->atoms);
	sw_layout *layouts = sw_alloc(sizeof(*layouts) * (op->n_operands + op->n_results + 1));
	strategy.atom[0] = choice;
	bool possible = sw_rule_layouts(t->program, id, t->rules[id], &t->atoms, &strategy, layouts,
	                                layouts + op->n_operands);
	for (uint32_t k = 0; k < op->n_operands && possible; k++)
		needs[k] = sw_time_of(&layouts[k]);
	for (uint32_t k = 0; k < op->n_results && possible && gives; k++)
		gives[k] = sw_time_of(&layouts[op->n_operands + k]);
	free(layouts);
	return possible;
}

void sw_timing_needs(const sw_timing *t, sw_id id, sw_time *needs)
{
	const sw_op *op = sw_op_at(t->program, id);
	memset(needs, 0, sizeof(*needs) * op->n_operands);
	if (!t->touched[id] && !t->sunk[id])
		return;
	if (sw_is_region(op))
		region_needs(t, op, needs);
	else if (t->choice[id].kind == SW_CHOICE_NONE)
		memcpy(needs, &t->value[op->first_result], sizeof(*needs) * op->n_operands);
	else
		layouts_by_choice(t, id, t->choice[id], needs, NULL);
}

bool sw_timing_sink(sw_timing *t, sw_id value, sw_time part)
{
	sw_id id = t->program->values.data[value].op;
	const sw_op *op = sw_op_at(t->program, id);
	sw_strategy strategy;
	uint32_t mask = 1;
	if (sw_is_region(op) || op->opcode == SW_OP_PARAMETER || op->opcode == SW_OP_OPT_BARRIER)
		return false;
	sw_layout layout = sw_time_layout(t, part);
	sw_rule_match(t->rules[id], &t->atoms, true, (int32_t)t->program->values.data[value].index,
	              &layout, &mask, &strategy);
	if (!mask || sw_strategy_exchanges(t->rules[id], &strategy))
		return false;
	sw_time *needs = sw_alloc(sizeof(*needs) * (op->n_operands + op->n_results + 1));
	t->sunk[id] = layouts_by_choice(t, id, strategy.atom[0], needs, needs + op->n_operands);
	for (uint32_t k = 0; k < op->n_results && t->sunk[id]; k++)
		t->part[op->first_result + k] = needs[op->n_operands + k];
	t->choice[id] = strategy.atom[0];
	free(needs);
	return t->sunk[id];
}
