/* Reductions that move costs between tables and nodes, or drop strategies. */
#include "solve/graph/working_graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- row and column minima -------------------------------------------------------------- */

/* Move each row's minimum from the table to this node's cost, which keeps every assignment's cost.
 * Rows that are wholly forbidden are left to reduce_support. */
static bool pull_minima(int64_t *cost, int64_t mine_step, int64_t other_step, int32_t mine,
                        int32_t others, int64_t *node_cost, double *message)
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
	bool changed = pull_minima(cost, columns, 1, rows, columns, g->nodes[e->node[0]].cost,
	                           e->message[0]);
	changed |= pull_minima(cost, 1, columns, columns, rows, g->nodes[e->node[1]].cost,
	                       e->message[1]);
	if (!changed)
		return false;
	/* Dominance gives the same answer before and after, so that the two ends are queued only if
	 * the edge disappears. */
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

/* ---- support (arc consistency) ---------------------------------------------------------- */

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
