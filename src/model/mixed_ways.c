/*
 * Ways of variables taken from several meshes. On one mesh each variable may have any way; on others all
 * have one way, as far as they can. Here the problem of the first is narrowed, variable by variable, to
 * what one of the others leaves, so that a search can begin in uniform ways and change them one by one.
 */
#include "model/internal.h"
#include "model/ways.h"

/* Write which variable each op is of: it updates it, scatters its gradient, or makes that. */
static void find_ops(const sw_analysis *a, int32_t *of_op)
{
	const sw_variables *v = &a->variables;
	const sw_computation *entry = sw_entry(a->program);
	for (size_t i = 0; i < a->program->ops.len; i++)
		of_op[i] = sw_variable_of_op(v, (sw_id)i);
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		sw_id maker = v->of_end[id] >= 0 ? sw_gradient_maker(a->program, id) : SW_NO_ID;
		if (maker != SW_NO_ID && of_op[maker] < 0)
			of_op[maker] = v->of_end[id];
	}
}

/* Return the variable of a decision; -1: of none. */
static int32_t variable_of(const sw_analysis *a, const int32_t *of_op, const sw_decision *decision)
{
	switch ((sw_decision_kind)decision->kind) {
	case SW_DECISION_OP:
		return of_op[decision->index];
	case SW_DECISION_INPUT:
		return a->variables.of_input[decision->index];
	default:
		return -1;
	}
}

void sw_mixed_ways_init(sw_mixed_ways *mixed, sw_model *model)
{
	const sw_analysis *a = model->analysis;
	int32_t *of_op = SW_NEW_N(&model->arena, int32_t, a->program->ops.len + 1);
	mixed->model = model;
	mixed->cost = SW_NEW_N(&model->arena, const int64_t *, model->problem.nodes.len + 1);
	mixed->of_decision = SW_NEW_N(&model->arena, int32_t, model->decisions.len + 1);
	find_ops(a, of_op);
	for (size_t n = 0; n < model->problem.nodes.len; n++)
		mixed->cost[n] = model->problem.nodes.data[n].cost;
	for (size_t s = 0; s < model->decisions.len; s++)
		mixed->of_decision[s] = variable_of(a, of_op, &model->decisions.data[s]);
}

/* Forbid the candidates of a decision whose layouts the other mesh has none of, unless it has none of all. */
static void narrow(const sw_mixed_ways *mixed, const sw_decision *ours, const sw_strategy_table *other)
{
	sw_model *model = mixed->model;
	const sw_strategy_table *table = sw_model_strategy_table(model, ours->table);
	sw_problem_node *node = &model->problem.nodes.data[ours->node];
	int64_t *cost = SW_NEW_N(&model->arena, int64_t, node->strategies);
	bool any = false;
	for (int32_t i = 0; i < node->strategies; i++) {
		bool has = sw_strategy_table_find(table, i, other) >= 0;
		cost[i] = has ? mixed->cost[ours->node][i] : SW_FORBIDDEN;
		any = any || cost[i] != SW_FORBIDDEN;
	}
	node->cost = any ? cost : mixed->cost[ours->node];
}

void sw_mixed_ways_give(sw_mixed_ways *mixed, uint32_t variable, const sw_model *uniform)
{
	const sw_model *model = mixed->model;
	for (size_t s = 0; s < model->decisions.len && s < uniform->decisions.len; s++)
		if (mixed->of_decision[s] == (int32_t)variable)
			narrow(mixed, &model->decisions.data[s],
			       sw_model_strategy_table(uniform, uniform->decisions.data[s].table));
}
