/*
 * Solutions carried from one mesh to another. Meshes differ in the candidates of decisions, not in
 * the decisions: a solution is saved as candidates and layouts, and found again by layout among
 * another mesh's candidates. Where no candidate has those layouts, since the axes have other sizes,
 * each axis takes the option that it had. A plan is found again by its strategies and layouts.
 */
#include "model/internal.h"

#include <stdlib.h>

void sw_warm_start_save(sw_warm_start *start, const sw_model *model, const int32_t *assignment)
{
	*start = (sw_warm_start){.n_decisions = model->decisions.len,
	                         .n_materialised = model->materialised.len,
	                         .n_axes = model->mesh->n_axes};
	start->table = sw_alloc(sizeof(int32_t) * (start->n_decisions + 1));
	start->choice = sw_alloc(sizeof(int32_t) * (start->n_decisions + 1));
	start->layout = sw_alloc(sizeof(uint32_t) * (start->n_materialised + 1));
	for (size_t s = 0; s < start->n_decisions; s++) {
		start->table[s] = model->decisions.data[s].table;
		start->choice[s] = assignment[model->decisions.data[s].node];
	}
	for (size_t h = 0; h < start->n_materialised; h++)
		start->layout[h] = sw_model_strategy_table(model, model->materialised.data[h].table)
		                           ->in[assignment[model->materialised.data[h].node]];
}

void sw_warm_start_clear(sw_warm_start *start)
{
	free(start->table);
	free(start->choice);
	free(start->layout);
	*start = (sw_warm_start){0};
}

static bool same_layouts(const sw_strategy_table *a, int32_t i, const sw_strategy_table *b,
                         int32_t j)
{
	if (a->n_in != b->n_in || a->n_out != b->n_out)
		return false;
	for (uint32_t k = 0; k < a->n_in; k++)
		if (a->in[(uint32_t)i * a->n_in + k] != b->in[(uint32_t)j * b->n_in + k])
			return false;
	for (uint32_t k = 0; k < a->n_out; k++)
		if (a->out[(uint32_t)i * a->n_out + k] != b->out[(uint32_t)j * b->n_out + k])
			return false;
	return true;
}

int32_t sw_strategy_table_find(const sw_strategy_table *a, int32_t i, const sw_strategy_table *b)
{
	for (int32_t j = 0; j < b->n; j++)
		if (same_layouts(a, i, b, j))
			return j;
	return -1;
}

static int32_t find_layout(const sw_strategy_table *table, uint32_t layout)
{
	for (int32_t j = 0; j < table->n; j++)
		if (table->in[j] == layout)
			return j;
	return -1;
}

/* Count the axes with equal options. The option's top is ignored, for it changes with the sizes of
 * the axes. */
static int32_t count_equal_axes(const sw_candidate *a, const sw_candidate *b)
{
	int32_t equal = 0;
	for (int32_t axis = 0; axis < SW_MAX_AXES; axis++) {
		const sw_option *x = &a->axis[axis], *y = &b->axis[axis];
		equal += x->kind == y->kind && x->monoid == y->monoid && x->index == y->index;
	}
	return equal;
}

/* Return the first candidate of b that has most axes in common with candidate i of a. */
static int32_t find_similar(const sw_strategy_table *a, int32_t i, const sw_strategy_table *b)
{
	int32_t best = 0, most = -1;
	for (int32_t j = 0; j < b->n; j++) {
		int32_t equal = count_equal_axes(&a->candidates[i], &b->candidates[j]);
		if (equal > most) {
			best = j;
			most = equal;
		}
	}
	return best;
}

/* Choose each materialised layout as its neighbours' choices make it cheapest. */
static void choose_materialised(const sw_model *model, int32_t *assignment)
{
	const sw_problem *problem = &model->problem;
	int64_t **cost = sw_alloc(sizeof(*cost) * (model->index.nodes.len + 1));
	for (size_t n = 0; n < model->index.nodes.len; n++)
		if (assignment[n] < 0)
			cost[n] = sw_alloc(sizeof(int64_t) *
			                   (size_t)problem->nodes.data[n].strategies);
	for (size_t e = 0; e < problem->edges.len; e++) {
		sw_edge edge = problem->edges.data[e];
		const sw_cost_table *table = &problem->tables.data[edge.table];
		for (int32_t i = 0; cost[edge.to] && !cost[edge.from] && i < table->columns; i++)
			cost[edge.to][i] = sw_cost_plus(
				cost[edge.to][i],
				table->cost[assignment[edge.from] * table->columns + i]);
		for (int32_t i = 0; cost[edge.from] && !cost[edge.to] && i < table->rows; i++)
			cost[edge.from][i] =
				sw_cost_plus(cost[edge.from][i],
			                     table->cost[i * table->columns + assignment[edge.to]]);
	}
	for (size_t n = 0; n < model->index.nodes.len; n++) {
		int32_t best = 0;
		for (int32_t i = 1; cost[n] && i < problem->nodes.data[n].strategies; i++)
			best = cost[n][i] < cost[n][best] ? i : best;
		assignment[n] = cost[n] ? best : assignment[n];
		free(cost[n]);
	}
	free(cost);
}

/* Choose for each decision the candidate that uses most axes in the same way; both meshes must have
 * as many axes. */
static bool apply_similar(const sw_warm_start *start, const sw_model *model, int32_t *assignment)
{
	const sw_strategy_table *tables = model->memo->tables.data;
	if (start->n_axes != model->mesh->n_axes)
		return false;
	for (size_t n = 0; n < model->index.nodes.len; n++)
		assignment[n] = -1;
	for (size_t s = 0; s < start->n_decisions; s++) {
		const sw_decision *decision = &model->decisions.data[s];
		if (assignment[decision->node] < 0)
			assignment[decision->node] =
				find_similar(&tables[start->table[s]], start->choice[s],
			                     &tables[decision->table]);
	}
	choose_materialised(model, assignment);
	return true;
}

static bool apply_same(const sw_warm_start *start, const sw_model *model, int32_t *assignment)
{
	const sw_strategy_table *tables = model->memo->tables.data;
	if (start->n_materialised != model->materialised.len)
		return false;
	for (size_t n = 0; n < model->index.nodes.len; n++)
		assignment[n] = -1;
	for (size_t s = 0; s < start->n_decisions; s++) {
		const sw_decision *decision = &model->decisions.data[s];
		if (assignment[decision->node] >= 0)
			/* chosen already, for a tied decision of another layer */
			continue;
		assignment[decision->node] = sw_strategy_table_find(
			&tables[start->table[s]], start->choice[s], &tables[decision->table]);
		if (assignment[decision->node] < 0)
			return false;
	}
	for (size_t h = 0; h < start->n_materialised; h++) {
		const sw_materialised *materialised = &model->materialised.data[h];
		if (assignment[materialised->node] >= 0)
			continue;
		assignment[materialised->node] =
			find_layout(&tables[materialised->table], start->layout[h]);
		if (assignment[materialised->node] < 0)
			return false;
	}
	return true;
}

bool sw_warm_start_apply(const sw_warm_start *start, const sw_model *model, int32_t *assignment)
{
	if (start->n_decisions != model->decisions.len)
		return false;
	return apply_same(start, model, assignment) || apply_similar(start, model, assignment);
}

/* ---- from a plan ------------------------------------------------------------------------ */

typedef struct plan_start {
	const sw_model *model;
	const sw_plan *plan;
	uint32_t *layouts;     /* per layout of the plan: the memo's; SW_ABSENT: it has none */
	sw_id *first, *behind; /* per decision, per value: the values that it makes, as a list */
} plan_start;

static void plan_start_init(plan_start *x, const sw_model *model, const sw_plan *plan)
{
	size_t n_layouts = plan->layouts.items.len, n_values = plan->program->values.len;
	*x = (plan_start){.model = model, .plan = plan};
	x->layouts = sw_alloc(sizeof(*x->layouts) * (n_layouts + 1));
	for (size_t i = 0; i < n_layouts; i++)
		x->layouts[i] = sw_layouts_find(&model->memo->layouts, &plan->layouts.items.data[i]);
	x->first = sw_alloc(sizeof(sw_id) * (model->decisions.len + 1));
	x->behind = sw_alloc(sizeof(sw_id) * (n_values + 1));
	for (size_t s = 0; s < model->decisions.len; s++)
		x->first[s] = SW_NO_ID;
	for (sw_id v = (sw_id)n_values; v-- > 0;) {
		uint32_t s = model->index.producer[v];
		if (s == SW_NO_ID)
			continue;
		x->behind[v] = x->first[s];
		x->first[s] = v;
	}
}

static void plan_start_clear(plan_start *x)
{
	free(x->layouts);
	free(x->first);
	free(x->behind);
}

static bool makes_as_planned(const plan_start *x, size_t s, int32_t choice)
{
	for (sw_id v = x->first[s]; v != SW_NO_ID; v = x->behind[v]) {
		sw_layout_list made = sw_layouts_at(x->model, sw_end_of_producer(x->model, v));
		if (made.list[(uint32_t)choice * made.step] != x->layouts[x->plan->produced[v]])
			return false;
	}
	return true;
}

static bool is_as_planned(const plan_start *x, size_t s, int32_t choice)
{
	const sw_analysis *analysis = x->model->analysis;
	const sw_decision *d = &x->model->decisions.data[s];
	const sw_strategy_table *table = sw_model_strategy_table(x->model, d->table);
	sw_strategy strategy;
	if (d->kind == SW_DECISION_OUTPUT)
		return table->in[choice] == x->layouts[x->plan->outputs[d->index]];
	if (!makes_as_planned(x, s, choice))
		return false;
	if (d->kind != SW_DECISION_OP)
		return true;
	sw_candidate_strategy(&analysis->cluster->atoms, x->model->mesh, analysis->rules[d->index],
	                      &table->candidates[choice], &strategy);
	return sw_strategy_equal(&strategy, &x->plan->strategies[d->index]);
}

static int32_t find_planned(const plan_start *x, size_t s)
{
	const sw_decision *d = &x->model->decisions.data[s];
	int32_t n = sw_model_strategy_table(x->model, d->table)->n;
	for (int32_t choice = 0; choice < n; choice++)
		if (is_as_planned(x, s, choice))
			return choice;
	return -1;
}

/* A plan says in which layout a value is kept for all readers; the others follow. */
static void keep_as_planned(const plan_start *x, int32_t *assignment)
{
	for (size_t h = 0; h < x->model->materialised.len; h++) {
		const sw_materialised *m = &x->model->materialised.data[h];
		if (m->kept == SW_KEPT && assignment[m->node] < 0)
			assignment[m->node] =
				find_layout(sw_model_strategy_table(x->model, m->table),
			                    x->layouts[x->plan->materialised[m->value]]);
	}
	choose_materialised(x->model, assignment);
}

bool sw_warm_start_from_plan(const sw_model *model, const sw_plan *plan, int32_t *assignment)
{
	plan_start x;
	bool found = true;
	plan_start_init(&x, model, plan);
	for (size_t n = 0; n < model->index.nodes.len; n++)
		assignment[n] = -1;
	for (size_t s = 0; s < model->decisions.len && found; s++) {
		int32_t node = model->decisions.data[s].node;
		if (assignment[node] < 0) /* else chosen for a tied decision of another layer */
			assignment[node] = find_planned(&x, s);
		found = assignment[node] >= 0;
	}
	if (found)
		keep_as_planned(&x, assignment);
	plan_start_clear(&x);
	return found;
}
