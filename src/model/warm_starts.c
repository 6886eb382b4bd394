/*
 * Solutions carried from one mesh to another. Meshes differ in what decisions may do, not in which
 * decisions there are: a solution is remembered as layouts, and found again among another mesh's
 * candidates. Where the axes are of other sizes, each does there what it did here.
 */
#include "model/internal.h"

#include <stdlib.h>

void sw_start_save(sw_start *start, const sw_model *model, const int32_t *assignment)
{
	*start = (sw_start){.n_decisions = model->decisions.len,
	                    .n_materialised_values = model->materialised_values.len,
	                    .n_axes = model->mesh->n_axes};
	start->strategy_table = sw_alloc(sizeof(int32_t) * (start->n_decisions + 1));
	start->choice = sw_alloc(sizeof(int32_t) * (start->n_decisions + 1));
	start->kept = sw_alloc(sizeof(uint32_t) * (start->n_materialised_values + 1));
	for (size_t s = 0; s < start->n_decisions; s++) {
		start->strategy_table[s] = model->decisions.data[s].strategy_table;
		start->choice[s] = assignment[model->decisions.data[s].node];
	}
	for (size_t h = 0; h < start->n_materialised_values; h++)
		start->kept[h] = sw_model_strategy_table(
					 model, model->materialised_values.data[h].strategy_table)
		                         ->in[assignment[model->materialised_values.data[h].node]];
}

void sw_start_clear(sw_start *start)
{
	free(start->strategy_table);
	free(start->choice);
	free(start->kept);
	*start = (sw_start){0};
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

/* The least candidate of b with the layouts of candidate i of a; -1: none. */
static int32_t find_candidate(const sw_strategy_table *a, int32_t i, const sw_strategy_table *b)
{
	for (int32_t j = 0; j < b->n; j++)
		if (same_layouts(a, i, b, j))
			return j;
	return -1;
}

static int32_t find_layout(const sw_strategy_table *strategy_table, uint32_t layout)
{
	for (int32_t j = 0; j < strategy_table->n; j++)
		if (strategy_table->in[j] == layout)
			return j;
	return -1;
}

/* How many axes do the same: the option's top moves with the sizes of the axes. */
static int32_t count_alike(const sw_candidate *a, const sw_candidate *b)
{
	int32_t alike = 0;
	for (int32_t axis = 0; axis < SW_MAX_AXES; axis++) {
		const sw_option *x = &a->axis[axis], *y = &b->axis[axis];
		alike += x->kind == y->kind && x->monoid == y->monoid && x->index == y->index;
	}
	return alike;
}

/* The least candidate of b that does most like candidate i of a, axis by axis. */
static int32_t find_similar(const sw_strategy_table *a, int32_t i, const sw_strategy_table *b)
{
	int32_t best = 0, most = -1;
	for (int32_t j = 0; j < b->n; j++) {
		int32_t alike = count_alike(&a->candidates[i], &b->candidates[j]);
		if (alike > most) {
			best = j;
			most = alike;
		}
	}
	return best;
}

/* Materialised_values as their neighbours would have them. */
static void choose_materialised_values(const sw_model *model, int32_t *assignment)
{
	const sw_problem *problem = &model->problem;
	int64_t **cost = sw_alloc(sizeof(*cost) * (model->nodes.len + 1));
	for (size_t n = 0; n < model->nodes.len; n++)
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
	for (size_t n = 0; n < model->nodes.len; n++) {
		int32_t best = 0;
		for (int32_t i = 1; cost[n] && i < problem->nodes.data[n].strategies; i++)
			best = cost[n][i] < cost[n][best] ? i : best;
		assignment[n] = cost[n] ? best : assignment[n];
		free(cost[n]);
	}
	free(cost);
}

/* The same on each axis as there, where both have as many. */
static bool place_similar(const sw_start *start, const sw_model *model, int32_t *assignment)
{
	const sw_strategy_table *strategy_tables = model->memo->strategy_tables.data;
	if (start->n_axes != model->mesh->n_axes)
		return false;
	for (size_t n = 0; n < model->nodes.len; n++)
		assignment[n] = -1;
	for (size_t s = 0; s < start->n_decisions; s++) {
		const sw_decision *decision = &model->decisions.data[s];
		if (assignment[decision->node] < 0)
			assignment[decision->node] = find_similar(
				&strategy_tables[start->strategy_table[s]], start->choice[s],
				&strategy_tables[decision->strategy_table]);
	}
	choose_materialised_values(model, assignment);
	return true;
}

static bool place_same(const sw_start *start, const sw_model *model, int32_t *assignment)
{
	const sw_strategy_table *strategy_tables = model->memo->strategy_tables.data;
	if (start->n_materialised_values != model->materialised_values.len)
		return false;
	for (size_t n = 0; n < model->nodes.len; n++)
		assignment[n] = -1;
	for (size_t s = 0; s < start->n_decisions; s++) {
		const sw_decision *decision = &model->decisions.data[s];
		if (assignment[decision->node] >= 0)
			continue; /* as another layer's */
		assignment[decision->node] =
			find_candidate(&strategy_tables[start->strategy_table[s]], start->choice[s],
		                       &strategy_tables[decision->strategy_table]);
		if (assignment[decision->node] < 0)
			return false;
	}
	for (size_t h = 0; h < start->n_materialised_values; h++) {
		const sw_materialised *materialised = &model->materialised_values.data[h];
		if (assignment[materialised->node] >= 0)
			continue;
		assignment[materialised->node] =
			find_layout(&strategy_tables[materialised->strategy_table], start->kept[h]);
		if (assignment[materialised->node] < 0)
			return false;
	}
	return true;
}

bool sw_start_place(const sw_start *start, const sw_model *model, int32_t *assignment)
{
	if (start->n_decisions != model->decisions.len)
		return false;
	return place_same(start, model, assignment) || place_similar(start, model, assignment);
}
