/* Dominance: a strategy is dropped if another one of its node is no worse whatever the neighbours
 * choose. */
#include "solve/graph/working_graph.h"

#include <stdlib.h>
#include <string.h>

/* An edge's table, as the strategies of one of its ends are compared by it. Rows belong to these,
 * columns to those of the other end. Whichever of the two is not contiguous in the table is copied
 * when it is asked for. */
typedef struct edge_table {
	table_view view;
	const int64_t **rows, **columns; /* NULL: not asked for yet */
	/* in normal tables, per strategy: one of the other end beside which it costs nothing; -1:
	 * there is none */
	int32_t *free_at;
	int32_t witness; /* the strategy of the other end that last refuted a dominance */
} edge_table;

/* Copy n numbers that lie a step apart. */
static const int64_t *copy_line(const int64_t *from, int64_t step, int32_t n, sw_arena *arena)
{
	int64_t *line = SW_NEW_N(arena, int64_t, n);
	for (int32_t k = 0; k < n; k++)
		line[k] = from[k * step];
	return line;
}

static const int64_t *row_of(edge_table *t, int32_t mine, sw_arena *arena)
{
	const int64_t *first = t->view.cost + mine * t->view.mine_step;
	if (t->view.other_step == 1)
		return first;
	if (!t->rows[mine])
		t->rows[mine] = copy_line(first, t->view.other_step, t->view.others, arena);
	return t->rows[mine];
}

static const int64_t *column_of(edge_table *t, int32_t other, sw_arena *arena)
{
	const int64_t *first = t->view.cost + other * t->view.other_step;
	if (t->view.mine_step == 1)
		return first;
	if (!t->columns[other])
		t->columns[other] = copy_line(first, t->view.mine_step, t->view.mine, arena);
	return t->columns[other];
}

static void find_free(edge_table *t)
{
	const table_view *v = &t->view;
	for (int32_t i = 0; i < v->mine; i++)
		t->free_at[i] = -1;
	for (int32_t a = 0; a < v->mine && v->other_step == 1; a++)
		for (int32_t b = 0; b < v->others && t->free_at[a] < 0; b++)
			t->free_at[a] = view_at(v, a, b) == 0 ? b : -1;
	for (int32_t b = 0; b < v->others && v->other_step != 1; b++)
		for (int32_t a = 0; a < v->mine; a++)
			if (view_at(v, a, b) == 0)
				t->free_at[a] = b;
}

static edge_table edge_table_of(const table_view *view, bool normal, sw_arena *arena)
{
	edge_table t = {.view = *view,
	                .rows = SW_NEW_N(arena, const int64_t *, view->mine),
	                .columns = SW_NEW_N(arena, const int64_t *, view->others),
	                .free_at = SW_NEW_N(arena, int32_t, view->mine)};
	if (normal)
		find_free(&t);
	return t;
}

/* ---- all strategies that may dominate one ----------------------------------------------- */

/* Subtract costs from margins that are not below 0; return the largest margin. */
SW_VECTORISED
static int64_t pay(int64_t *restrict margin, const int64_t *restrict cost, int32_t n)
{
	int64_t largest = -1;
	for (int32_t i = 0; i < n; i++) {
		margin[i] = cost[i] <= margin[i] ? margin[i] - cost[i] : -1;
		largest = SW_MAX(largest, margin[i]);
	}
	return largest;
}

/* What the strategies of a node are compared by. */
typedef struct dominance_check {
	const graph_node *node;
	edge_table *tables; /* one for each edge */
	bool normal;        /* every row and column of all tables has minimum 0 */
	const bool *keep;
	int64_t *margin; /* one for each strategy */
	sw_arena *arena;
} dominance_check;

/* Set the margins by which others are cheaper than `worse`: below 0 for those that do not dominate
 * it. Return the largest. Where `worse` costs nothing beside some choice of a neighbour, what
 * another one costs beside that is a part of its excess; with normal tables no edge's excess is
 * below 0. */
static int64_t set_margins(dominance_check *c, int32_t worse)
{
	const graph_node *v = c->node;
	int64_t largest = -1;
	for (int32_t i = 0; i < v->strategies; i++) {
		bool open = c->keep[i] && i != worse;
		int64_t cheaper = v->cost[worse] - v->cost[i];
		c->margin[i] = !open ? -1 : c->normal ? SW_MAX(cheaper, -1) : 0;
		largest = SW_MAX(largest, c->margin[i]);
	}
	for (size_t e = 0; c->normal && e < v->edges.len && largest >= 0; e++) {
		int32_t free_at = c->tables[e].free_at[worse];
		if (free_at >= 0)
			largest = pay(c->margin, column_of(&c->tables[e], free_at, c->arena),
			              v->strategies);
	}
	return largest;
}

/* ---- two strategies --------------------------------------------------------------------- */

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
 * any excess above `limit`. The strategy of the other end that refuted the last pair often refutes
 * the next one. */
static int64_t largest_excess(dominance_check *c, edge_table *t, int32_t better, int32_t worse,
                              int64_t limit)
{
	const int64_t *x = row_of(t, better, c->arena), *y = row_of(t, worse, c->arena);
	int64_t largest = excess_at(x, y, t->witness);
	if (largest > limit)
		return largest;
	for (int32_t j = 0; j < t->view.others && largest <= limit; j += ENTRIES_AT_ONCE) {
		int32_t n = SW_MIN(t->view.others - j, ENTRIES_AT_ONCE);
		largest = SW_MAX(largest, largest_of(x + j, y + j, n));
		for (int32_t k = j; k < j + n && largest > limit; k++)
			if (excess_at(x, y, k) == largest)
				t->witness = k;
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

/* Whether `better` costs no more than `worse` whatever the neighbours choose (Goldstein's
 * dead-end elimination). With normal tables each edge's excess is >= 0, since every row has a
 * zero, so that one large excess refutes; with others all edges must be summed. The order of the
 * tables does not matter: one that refutes is moved to the front, where it is likely to refute
 * the next pair. */
static bool dominates(dominance_check *c, int32_t better, int32_t worse)
{
	const graph_node *v = c->node;
	edge_table *tables = c->tables;
	int64_t margin = v->cost[worse] - v->cost[better];
	if (!uses_no_more(v, better, worse))
		return false;
	for (size_t e = 0; e < v->edges.len; e++) {
		int64_t limit = c->normal ? margin : INT64_MAX / 4;
		int64_t excess = largest_excess(c, &tables[e], better, worse, limit);
		if (excess > limit) {
			edge_table refuting = tables[e];
			tables[e] = tables[0];
			tables[0] = refuting;
			return false;
		}
		if (excess != INT64_MIN)
			margin -= excess;
	}
	return margin >= 0;
}

/* ---- one node --------------------------------------------------------------------------- */

/* Return the first strategy that dominates `worse`; -1: none does. */
static int32_t find_better(dominance_check *c, int32_t worse)
{
	if (set_margins(c, worse) < 0)
		return -1;
	for (int32_t better = 0; better < c->node->strategies; better++)
		if (c->margin[better] >= 0 && dominates(c, better, worse))
			return better;
	return -1;
}

/* Drop strategies that others dominate, the last ones first. O(strategies^2) entries of tables for
 * each edge at best, times the strategies of its other end where many are alike. */
bool reduce_dominance(graph *g, int32_t node)
{
	const graph_node *v = &g->nodes[node];
	size_t edges = v->edges.len, n = (size_t)v->strategies;
	sw_arena arena;
	sw_arena_init(&arena);
	bool lost = false, *keep = SW_NEW_N(&arena, bool, n);
	int32_t *instead = SW_NEW_N(&arena, int32_t, n);
	dominance_check c = {.node = v,
	                     .tables = SW_NEW_N(&arena, edge_table, edges + 1),
	                     .normal = true,
	                     .keep = keep,
	                     .margin = SW_NEW_N(&arena, int64_t, n),
	                     .arena = &arena};
	for (size_t e = 0; e < edges; e++)
		c.normal &= g->edges.data[v->edges.data[e]].normal;
	for (size_t e = 0; e < edges; e++) {
		table_view view = view_edge(g, v->edges.data[e], node);
		c.tables[e] = edge_table_of(&view, c.normal, &arena);
	}
	for (int32_t i = 0; i < v->strategies; i++) {
		keep[i] = true;
		instead[i] = i;
	}
	for (int32_t worse = v->strategies; worse-- > 0;) {
		int32_t better = find_better(&c, worse);
		keep[worse] = better < 0;
		instead[worse] = better < 0 ? worse : better;
		lost = lost || better >= 0;
	}
	g->work += (int64_t)v->strategies * v->strategies;
	if (lost)
		graph_keep(g, node, keep, instead);
	sw_arena_clear(&arena);
	return lost;
}
