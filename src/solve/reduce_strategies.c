/* Reductions that move costs between tables and nodes, or drop strategies. */
#include "solve/graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- row and column minima --------------------------------------------------------------------- */

/* The minimum over the other end goes from the table to this node's costs: the sum over any
 * assignment stays. Rows that are wholly forbidden are left to reduce_support. */
static bool pull_minima(int64_t *cost, int64_t mine_step, int64_t other_step, int32_t mine, int32_t others,
                        int64_t *node_cost, double *message)
{
	bool changed = false;
	for (int32_t i = 0; i < mine; i++) {
		int64_t least = SW_FORBIDDEN, *row = cost + i * mine_step;
		for (int32_t j = 0; j < others; j++)
			least = SW_MIN(least, row[j * other_step]);
		if (least == 0 || least == SW_FORBIDDEN)
			continue;
		changed = true;
		node_cost[i] += least;
		if (message)
			message[i] -= (double)least;
		for (int32_t j = 0; j < others; j++)
			if (row[j * other_step] != SW_FORBIDDEN)
				row[j * other_step] -= least;
	}
	return changed;
}

static bool normalise_edge(graph *g, int32_t edge)
{
	graph_edge *e = &g->edges.data[edge];
	const graph_table *table = &g->tables.data[e->table];
	int32_t rows = table->rows, columns = table->columns;
	int64_t entries = (int64_t)rows * columns;
	int64_t *cost = graph_scratch(g, entries);
	memcpy(cost, table->cost, (size_t)entries * sizeof *cost);
	g->work += entries;
	e->normal = true;
	bool changed =
		pull_minima(cost, columns, 1, rows, columns, g->nodes[e->node[0]].cost, e->message[0]);
	changed |= pull_minima(cost, 1, columns, columns, rows, g->nodes[e->node[1]].cost, e->message[1]);
	if (!changed)
		return false;
	/* Dominance does not see the change, so that neither end need be queued, but for a lost edge. */
	for (int64_t i = 0; i < entries; i++)
		if (cost[i]) {
			int32_t old = e->table;
			e->table = graph_table_intern(g, rows, columns, cost, false);
			graph_table_drop(g, old);
			return false;
		}
	graph_remove_edge(g, edge);
	return true;
}

bool reduce_normal(graph *g, int32_t node)
{
	bool removed = false;
	for (size_t i = g->nodes[node].edges.len; i-- > 0;) {
		int32_t edge = g->nodes[node].edges.data[i];
		if (!g->edges.data[edge].normal)
			removed |= normalise_edge(g, edge);
	}
	return removed;
}

/* ---- support (arc consistency) --------------------------------------------------------------------- */

static bool has_support(const table_view *view, int32_t mine)
{
	for (int32_t j = 0; j < view->others; j++)
		if (view_at(view, mine, j) != SW_FORBIDDEN)
			return true;
	return false;
}

bool reduce_support(graph *g, int32_t node)
{
	const graph_node *v = &g->nodes[node];
	bool lost = false, *keep = sw_alloc((size_t)v->strategies);
	memset(keep, 1, (size_t)v->strategies);
	for (size_t e = 0; e < v->edges.len; e++) {
		table_view view = view_edge(g, v->edges.data[e], node);
		for (int32_t i = 0; i < v->strategies; i++)
			if (keep[i] && !has_support(&view, i)) {
				keep[i] = false;
				lost = true;
			}
	}
	if (lost)
		graph_keep(g, node, keep, NULL);
	free(keep);
	return lost;
}

/* ---- dominance -------------------------------------------------------------------------------------- */

/* The largest of better - worse over the other end's strategies that worse allows, or `limit` + 1 as
 * soon as it is above limit. */
static int64_t largest_excess(const table_view *view, int32_t better, int32_t worse, int64_t limit)
{
	int64_t largest = INT64_MIN;
	const int64_t *x = view->cost + better * view->mine_step, *y = view->cost + worse * view->mine_step;
	for (int32_t j = 0; j < view->others; j++, x += view->other_step, y += view->other_step) {
		if (*y == SW_FORBIDDEN)
			continue;
		if (*x == SW_FORBIDDEN || *x - *y > limit)
			return limit + 1;
		largest = SW_MAX(largest, *x - *y);
	}
	return largest;
}

static bool uses_no_more(const graph_node *v, int32_t better, int32_t worse)
{
	for (size_t s = 0; s < v->spans.len; s++)
		if (v->spans.data[s].usage[better] > v->spans.data[s].usage[worse])
			return false;
	return true;
}

/* Whatever the surroundings, better costs no more than worse (Goldstein's dead-end elimination). With
 * normal tables each edge's excess is >= 0 as a row has a zero; otherwise the limit can't be used early. The order of the views does not
 * matter: the one by which it is not so comes first, where it is likely to refute the next pair. */
static bool dominates(const graph_node *v, table_view *views, bool normal, int32_t better, int32_t worse)
{
	int64_t room = v->cost[worse] - v->cost[better];
	if ((normal && room < 0) || !uses_no_more(v, better, worse))
		return false;
	for (size_t e = 0; e < v->edges.len; e++) {
		int64_t limit = normal ? room : INT64_MAX / 4;
		int64_t excess = largest_excess(&views[e], better, worse, limit);
		if (excess > limit) {
			table_view refuting = views[e];
			views[e] = views[0];
			views[0] = refuting;
			return false;
		}
		if (excess != INT64_MIN)
			room -= excess;
	}
	return room >= 0;
}

bool reduce_dominance(graph *g, int32_t node)
{
	const graph_node *v = &g->nodes[node];
	bool lost = false, normal = true, *keep = sw_alloc((size_t)v->strategies);
	int32_t *instead = sw_alloc((size_t)v->strategies * sizeof *instead);
	table_view *views = sw_alloc((v->edges.len + 1) * sizeof *views);
	memset(keep, 1, (size_t)v->strategies);
	for (int32_t i = 0; i < v->strategies; i++)
		instead[i] = i;
	for (size_t e = 0; e < v->edges.len; e++) {
		views[e] = view_edge(g, v->edges.data[e], node);
		normal &= g->edges.data[v->edges.data[e]].normal;
	}
	for (int32_t worse = v->strategies; worse-- > 0;)
		for (int32_t better = 0; better < v->strategies && keep[worse]; better++)
			if (better != worse && keep[better] && dominates(v, views, normal, better, worse)) {
				keep[worse] = false;
				instead[worse] = better;
				lost = true;
			}
	g->work += (int64_t)v->strategies * v->strategies;
	if (lost)
		graph_keep(g, node, keep, instead);
	free(instead);
	free(views);
	free(keep);
	return lost;
}
