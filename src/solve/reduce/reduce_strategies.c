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

/* ---- dominance -------------------------------------------------------------------------- */

/* An edge's table, one row per strategy of the node whose strategies are compared. */
typedef struct edge_rows {
	const int64_t *cost;
	int64_t *owned; /* NULL: the table itself */
	int32_t others;
	int32_t witness; /* the strategy of the other end that last refuted a dominance */
} edge_rows;

/* Tables whose columns belong to the node are transposed, so that rows can be compared. */
static edge_rows rows_of(const table_view *view)
{
	edge_rows r = {.cost = view->cost, .others = view->others};
	if (view->other_step == 1)
		return r;
	r.owned = sw_alloc((size_t)view->mine * (size_t)view->others * sizeof *r.owned);
	for (int32_t j = 0; j < view->others; j++)
		for (int32_t i = 0; i < view->mine; i++)
			r.owned[(int64_t)i * view->others + j] = view_at(view, i, j);
	r.cost = r.owned;
	return r;
}

/* better - worse; INT64_MIN where worse is forbidden, INT64_MAX where only better is. */
static int64_t excess_at(const int64_t *better, const int64_t *worse, int32_t j)
{
	if (worse[j] == SW_FORBIDDEN)
		return INT64_MIN;
	return better[j] == SW_FORBIDDEN ? INT64_MAX : better[j] - worse[j];
}

/* The largest of better - worse over a row. Where worse is forbidden the difference, which may
 * overflow, is ignored. */
SW_VECTORISED
static int64_t largest_of(const int64_t *restrict better, const int64_t *restrict worse, int32_t n)
{
	int64_t largest = INT64_MIN;
	for (int32_t j = 0; j < n; j++) {
		int64_t difference = (int64_t)((uint64_t)better[j] - (uint64_t)worse[j]);
		int64_t most = better[j] == SW_FORBIDDEN ? INT64_MAX : difference;
		most = worse[j] == SW_FORBIDDEN ? INT64_MIN : most;
		largest = SW_MAX(largest, most);
	}
	return largest;
}

/* Entries of a row that are compared between two checks against the limit. */
#define ENTRIES_AT_ONCE 32

/* Return the largest of better - worse over the strategies of the other end that worse allows, or
 * any excess above `limit`. */
static int64_t largest_excess(edge_rows *r, int32_t better, int32_t worse, int64_t limit)
{
	const int64_t *x = r->cost + (int64_t)better * r->others,
		      *y = r->cost + (int64_t)worse * r->others;
	int64_t largest = INT64_MIN;
	for (int32_t j = 0; j < r->others && largest <= limit; j += ENTRIES_AT_ONCE) {
		int32_t n = SW_MIN(r->others - j, ENTRIES_AT_ONCE);
		largest = SW_MAX(largest, largest_of(x + j, y + j, n));
		for (int32_t k = j; k < j + n && largest > limit; k++)
			if (excess_at(x, y, k) == largest)
				r->witness = k;
	}
	return largest;
}

/* The strategy of the other end that refuted the last pair often refutes the next one. */
static bool has_witness(const edge_rows *r, int32_t better, int32_t worse, int64_t limit)
{
	const int64_t *x = r->cost + (int64_t)better * r->others,
		      *y = r->cost + (int64_t)worse * r->others;
	return excess_at(x, y, r->witness) > limit;
}

static bool uses_no_more(const graph_node *v, int32_t better, int32_t worse)
{
	for (size_t s = 0; s < v->spans.len; s++)
		if (v->spans.data[s].usage[better] > v->spans.data[s].usage[worse])
			return false;
	return true;
}

/* Whether `better` costs no more than `worse` whatever the neighbours choose (Goldstein's
 * dead-end elimination). With normal tables each edge's excess is >= 0, since every row has a
 * zero, so that one large excess refutes; with others all edges must be summed. The order of the
 * rows does not matter: an edge that refutes is moved to the front, where it is likely to refute
 * the next pair. */
static bool dominates(const graph_node *v, edge_rows *rows, bool normal, int32_t better,
                      int32_t worse)
{
	int64_t margin = v->cost[worse] - v->cost[better];
	if ((normal && margin < 0) || !uses_no_more(v, better, worse))
		return false;
	for (size_t e = 0; normal && e < v->edges.len; e++)
		if (has_witness(&rows[e], better, worse, margin))
			return false;
	for (size_t e = 0; e < v->edges.len; e++) {
		int64_t limit = normal ? margin : INT64_MAX / 4;
		int64_t excess = largest_excess(&rows[e], better, worse, limit);
		if (excess > limit) {
			edge_rows refuting = rows[e];
			rows[e] = rows[0];
			rows[0] = refuting;
			return false;
		}
		if (excess != INT64_MIN)
			margin -= excess;
	}
	return margin >= 0;
}

bool reduce_dominance(graph *g, int32_t node)
{
	const graph_node *v = &g->nodes[node];
	bool lost = false, normal = true, *keep = sw_alloc((size_t)v->strategies);
	int32_t *instead = sw_alloc((size_t)v->strategies * sizeof *instead);
	size_t edges = v->edges.len;
	edge_rows *rows = sw_alloc((edges + 1) * sizeof *rows);
	memset(keep, 1, (size_t)v->strategies);
	for (int32_t i = 0; i < v->strategies; i++)
		instead[i] = i;
	for (size_t e = 0; e < edges; e++) {
		table_view view = view_edge(g, v->edges.data[e], node);
		rows[e] = rows_of(&view);
		normal &= g->edges.data[v->edges.data[e]].normal;
	}
	for (int32_t worse = v->strategies; worse-- > 0;)
		for (int32_t better = 0; better < v->strategies && keep[worse]; better++)
			if (better != worse && keep[better] &&
			    dominates(v, rows, normal, better, worse)) {
				keep[worse] = false;
				instead[worse] = better;
				lost = true;
			}
	g->work += (int64_t)v->strategies * v->strategies;
	if (lost)
		graph_keep(g, node, keep, instead);
	for (size_t e = 0; e < edges; e++)
		free(rows[e].owned);
	free(instead);
	free(rows);
	free(keep);
	return lost;
}
