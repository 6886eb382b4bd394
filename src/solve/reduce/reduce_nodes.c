/* Reductions that remove a node: one with a single strategy, of degree 0, 1 or 2, or determined by
 * a neighbour. */
#include "solve/graph/working_graph.h"
#include "solve/limits.h"

#include <stdlib.h>
#include <string.h>

static const solve_reduce_limits *const limits = &default_limits.reduce;

/* ---- a single strategy ------------------------------------------------------------------ */

/* Add to the other end's costs the least of the table's column plus `extra`, per strategy of this
 * end, and drop the strategies that this forbids. */
static void add_row(graph *g, int32_t other, const table_view *view, const int64_t *extra)
{
	graph_node *u = &g->nodes[other];
	bool lost = false, *keep = sw_alloc((size_t)u->strategies);
	for (int32_t j = 0; j < u->strategies; j++) {
		int64_t least = SW_FORBIDDEN;
		for (int32_t i = 0; i < view->mine; i++)
			least = SW_MIN(least, sw_cost_plus(extra[i], view_at(view, i, j)));
		keep[j] = least != SW_FORBIDDEN;
		lost |= !keep[j];
		if (keep[j])
			u->cost[j] += least;
	}
	g->work += (int64_t)view->mine * view->others;
	if (lost)
		graph_keep(g, other, keep, NULL);
	free(keep);
}

bool reduce_fixed(graph *g, int32_t node)
{
	graph_node *v = &g->nodes[node];
	const int64_t nothing = 0;
	if (v->strategies != 1)
		return false;
	g->constant += v->cost[0];
	while (v->edges.len && !g->infeasible) {
		int32_t edge = v->edges.data[v->edges.len - 1];
		int32_t other = edge_other(g, edge, node);
		int64_t rows = g->nodes[other].strategies;
		int64_t *row = sw_alloc((size_t)rows * sizeof *row);
		table_view view = view_edge(g, edge, node);
		for (int32_t j = 0; j < rows; j++)
			row[j] = view_at(&view, 0, j);
		graph_remove_edge(g, edge);
		view = (table_view){row, rows, 1, 1, (int32_t)rows};
		add_row(g, other, &view, &nothing);
		free(row);
	}
	for (size_t s = 0; s < v->spans.len; s++) {
		const graph_span *span = &v->spans.data[s];
		g->capacity_left[span->begin] -= span->usage[0];
		g->capacity_left[span->end] += span->usage[0];
	}
	graph_remove_star(g, node);
	return true;
}

/* ---- degree 0, 1, 2 --------------------------------------------------------------------- */

static void eliminate_isolated(graph *g, int32_t node)
{
	const graph_node *v = &g->nodes[node];
	int64_t least = v->cost[0];
	for (int32_t i = 1; i < v->strategies; i++)
		least = SW_MIN(least, v->cost[i]);
	g->constant += least;
	graph_remove_star(g, node);
}

static void eliminate_leaf(graph *g, int32_t node)
{
	int32_t edge = g->nodes[node].edges.data[0];
	int32_t other = edge_other(g, edge, node), table = g->edges.data[edge].table;
	int32_t side = edge_side(&g->edges.data[edge], node);
	graph_table_hold(g, table);
	graph_remove_star(g, node);
	table_view view = view_table(&g->tables.data[table], side);
	add_row(g, other, &view, g->nodes[node].cost);
	graph_table_drop(g, table);
}

/* Copy an edge's table with one contiguous row per strategy of this node; `extra`, if given, is
 * added per row. */
static int64_t *rows_of(const graph *g, int32_t edge, int32_t node, const int64_t *extra)
{
	table_view view = view_edge(g, edge, node);
	int64_t *rows = sw_alloc((size_t)view.mine * (size_t)view.others * sizeof *rows);
	for (int32_t i = 0; i < view.mine; i++)
		for (int32_t j = 0; j < view.others; j++) {
			int64_t cost = view_at(&view, i, j);
			rows[(int64_t)i * view.others + j] =
				extra ? sw_cost_plus(cost, extra[i]) : cost;
		}
	return rows;
}

/* Rows of the result whose sums stay in the nearest cache while the strategies of the eliminated
 * node are visited. */
#define ROWS_AT_ONCE 8
/* Columns side by side of which one sum tells that a strategy is no better in any. */
#define COLUMNS_AT_ONCE 16

/* out[b] = min(out[b], base + row[b]); return the largest. */
SW_VECTORISED
static int64_t lower(int64_t *restrict out, int64_t base, const int64_t *restrict row,
                     int32_t columns)
{
	int64_t most = INT64_MIN;
	for (int32_t b = 0; b < columns; b++) {
		int64_t sum = row[b] == SW_FORBIDDEN ? SW_FORBIDDEN : base + row[b];
		out[b] = SW_MIN(out[b], sum);
		most = SW_MAX(most, out[b]);
	}
	return most;
}

/* A strategy of the eliminated node, and the least that leads to it from some rows. */
typedef struct visit {
	int32_t strategy;
	int64_t least;
} visit;

static int compare_visits(const void *a, const void *b)
{
	const visit *x = a, *y = b;
	return (x->least > y->least) - (x->least < y->least);
}

typedef struct sums {
	int32_t n, rows, columns, groups; /* groups: of COLUMNS_AT_ONCE columns */
	const int64_t *first, *second;    /* [n][rows], [n][columns] */
	int64_t *least;                   /* [n][groups]: of `second` */
	int64_t *worst;                   /* [ROWS_AT_ONCE][groups]: the largest sum so far */
	visit *order;
	int64_t *out; /* [rows][columns] */
} sums;

static void lower_row(const sums *s, int32_t i, int32_t a, int64_t *worst)
{
	int64_t base = s->first[(int64_t)i * s->rows + a];
	const int64_t *least = s->least + (int64_t)i * s->groups;
	const int64_t *row = s->second + (int64_t)i * s->columns;
	int64_t *out = s->out + (int64_t)a * s->columns;
	for (int32_t g = 0, b = 0; g < s->groups && base != SW_FORBIDDEN; g++, b += COLUMNS_AT_ONCE)
		if (least[g] != SW_FORBIDDEN && base + least[g] < worst[g])
			worst[g] = lower(out + b, base, row + b,
			                 SW_MIN(COLUMNS_AT_ONCE, s->columns - b));
}

/* Set the rows [begin, end) of the result. The strategies are visited by what leads to them, so
 * that most of the later ones are seen to be no better. */
static void lower_rows(const sums *s, int32_t begin, int32_t end)
{
	for (int32_t i = 0; i < s->n; i++) {
		s->order[i] = (visit){i, SW_FORBIDDEN};
		for (int32_t a = begin; a < end; a++)
			s->order[i].least =
				SW_MIN(s->order[i].least, s->first[(int64_t)i * s->rows + a]);
	}
	qsort(s->order, (size_t)s->n, sizeof(*s->order), compare_visits);
	for (int32_t k = 0; k < ROWS_AT_ONCE * s->groups; k++)
		s->worst[k] = SW_FORBIDDEN;
	for (int32_t k = 0; k < s->n; k++)
		for (int32_t a = begin; a < end; a++)
			lower_row(s, s->order[k].strategy, a, s->worst + (a - begin) * s->groups);
}

/* out[a][b] = min over i of first[i][a] + second[i][b]. */
static void min_plus(int32_t n, int32_t rows, int32_t columns, const int64_t *first,
                     const int64_t *second, int64_t *out)
{
	sums s = {.n = n,
	          .rows = rows,
	          .columns = columns,
	          .groups = (columns + COLUMNS_AT_ONCE - 1) / COLUMNS_AT_ONCE,
	          .first = first,
	          .second = second,
	          .out = out};
	int32_t groups = s.groups;
	s.least = sw_alloc((size_t)(n + ROWS_AT_ONCE) * (size_t)groups * sizeof *s.least);
	s.worst = s.least + (int64_t)n * groups;
	s.order = sw_alloc((size_t)n * sizeof *s.order);
	for (int64_t entry = 0; entry < (int64_t)rows * columns; entry++)
		out[entry] = SW_FORBIDDEN;
	for (int64_t k = 0; k < (int64_t)n * groups; k++)
		s.least[k] = SW_FORBIDDEN;
	for (int32_t i = 0; i < n; i++)
		for (int32_t b = 0; b < columns; b++) {
			int64_t *least = &s.least[(int64_t)i * groups + b / COLUMNS_AT_ONCE];
			*least = SW_MIN(*least, second[(int64_t)i * columns + b]);
		}
	for (int32_t begin = 0; begin < rows; begin += ROWS_AT_ONCE)
		lower_rows(&s, begin, SW_MIN(begin + ROWS_AT_ONCE, rows));
	free(s.order);
	free(s.least);
}

/* A table that replaces two may be larger than both; refuse to grow by more. */
static bool grows_too_much(int64_t own, int64_t rows, int64_t columns)
{
	return rows * columns >
	       limits->elimination_growth * own * (rows + columns) + limits->elimination_entries;
}

/* Take the message that the edge remembers for that end; the caller frees it. */
static double *take_message(graph *g, int32_t edge, int32_t node)
{
	graph_edge *e = &g->edges.data[edge];
	int32_t side = edge_side(e, node);
	double *message = e->message[side];
	e->message[side] = NULL;
	return message;
}

static bool eliminate_between(graph *g, int32_t node)
{
	const graph_node *v = &g->nodes[node];
	int32_t left = edge_other(g, v->edges.data[0], node),
		right = edge_other(g, v->edges.data[1], node);
	int32_t rows = g->nodes[left].strategies, columns = g->nodes[right].strategies;
	if (grows_too_much(v->strategies, rows, columns))
		return false;
	int64_t *first = rows_of(g, v->edges.data[0], node, v->cost);
	int64_t *second = rows_of(g, v->edges.data[1], node, NULL);
	int64_t *table = sw_alloc((size_t)rows * (size_t)columns * sizeof *table);
	min_plus(v->strategies, rows, columns, first, second, table);
	g->work += (int64_t)v->strategies * rows * columns;
	double *to_left = take_message(g, v->edges.data[0], left),
	       *to_right = take_message(g, v->edges.data[1], right);
	graph_remove_star(g, node);
	graph_add_edge(g, left, right, table, to_left, to_right);
	free(to_right);
	free(to_left);
	free(table);
	free(second);
	free(first);
	return true;
}

bool reduce_degree(graph *g, int32_t node)
{
	const graph_node *v = &g->nodes[node];
	if (v->spans.len || v->edges.len > 2)
		return false;
	if (v->edges.len == 2)
		return eliminate_between(g, node);
	if (v->edges.len == 1)
		eliminate_leaf(g, node);
	else
		eliminate_isolated(g, node);
	return true;
}

/* ---- a node that follows its neighbour -------------------------------------------------- */

/* Move the follower's spans, and the messages of its knapsacks, to the leader: each strategy of the
 * leader gets those of map[strategy]. */
static void give_spans(graph *g, int32_t node, int32_t leader, const int32_t *map)
{
	const graph_node *v = &g->nodes[node];
	int32_t count = g->nodes[leader].strategies;
	int64_t *usage = sw_alloc((size_t)count * sizeof *usage);
	for (size_t s = 0; s < v->spans.len; s++) {
		for (int32_t j = 0; j < count; j++)
			usage[j] = v->spans.data[s].usage[map[j]];
		graph_add_span(g, leader, v->spans.data[s].begin, v->spans.data[s].end, usage);
	}
	free(usage);
	double *given = sw_alloc((size_t)count * sizeof *given);
	for (size_t k = 0; k < v->given.len; k++) {
		for (int32_t j = 0; j < count; j++)
			given[j] = v->given.data[k].given[map[j]];
		graph_add_given(g, leader, v->given.data[k].point, given);
	}
	free(given);
}

static bool uses_no_more(const graph_node *v, int32_t a, int32_t b)
{
	for (size_t s = 0; s < v->spans.len; s++)
		if (v->spans.data[s].usage[a] > v->spans.data[s].usage[b])
			return false;
	return true;
}

/* Return the strategy that is cheapest and uses least when the neighbour takes j, or -1 if no
 * strategy is both. */
static int32_t best_for(const graph_node *v, const table_view *view, int32_t j)
{
	int32_t best = -1;
	int64_t best_cost = SW_FORBIDDEN;
	for (int32_t i = 0; i < v->strategies; i++) {
		int64_t cost = sw_cost_plus(v->cost[i], view_at(view, i, j));
		if (cost < best_cost ||
		    (cost != SW_FORBIDDEN && cost == best_cost && uses_no_more(v, i, best))) {
			best = i;
			best_cost = cost;
		}
	}
	for (int32_t i = 0; i < v->strategies && best >= 0; i++)
		if (view_at(view, i, j) != SW_FORBIDDEN && !uses_no_more(v, best, i))
			return -1;
	return best;
}

bool reduce_leaf(graph *g, int32_t node)
{
	const graph_node *v = &g->nodes[node];
	if (v->edges.len != 1 || !v->spans.len)
		return false;
	int32_t edge = v->edges.data[0], leader = edge_other(g, edge, node);
	int32_t count = g->nodes[leader].strategies, *map = sw_alloc((size_t)count * sizeof *map);
	table_view view = view_edge(g, edge, node);
	bool determined = true;
	for (int32_t j = 0; j < count && determined; j++) {
		map[j] = best_for(v, &view, j);
		determined = map[j] >= 0;
	}
	g->work += (int64_t)count * v->strategies;
	if (determined) {
		for (int32_t j = 0; j < count; j++)
			g->nodes[leader].cost[j] += v->cost[map[j]] + view_at(&view, map[j], j);
		give_spans(g, node, leader, map);
		graph_remove_follower(g, node, leader, map);
	}
	free(map);
	return determined;
}

/* ---- merging ---------------------------------------------------------------------------- */

static bool determined_by(const table_view *view, int32_t *map)
{
	for (int32_t j = 0; j < view->others; j++) {
		map[j] = -1;
		for (int32_t i = 0; i < view->mine; i++) {
			if (view_at(view, i, j) == SW_FORBIDDEN)
				continue;
			if (map[j] >= 0)
				return false;
			map[j] = i;
		}
		if (map[j] < 0)
			return false;
	}
	return true;
}

static void move_edge(graph *g, int32_t edge, int32_t node, int32_t leader, const int32_t *map)
{
	table_view view = view_edge(g, edge, node);
	int32_t other = edge_other(g, edge, node), rows = g->nodes[leader].strategies;
	int64_t *cost = sw_alloc((size_t)rows * (size_t)view.others * sizeof *cost);
	for (int32_t j = 0; j < rows; j++)
		for (int32_t w = 0; w < view.others; w++)
			cost[(int64_t)j * view.others + w] = view_at(&view, map[j], w);
	g->work += (int64_t)rows * view.others;
	double *to_node = take_message(g, edge, node), *to_other = take_message(g, edge, other),
	       *to_leader = NULL;
	if (to_node) {
		to_leader = sw_alloc((size_t)rows * sizeof *to_leader);
		for (int32_t j = 0; j < rows; j++)
			to_leader[j] = to_node[map[j]];
	}
	graph_add_edge(g, leader, other, cost, to_leader, to_other);
	free(to_leader);
	free(to_other);
	free(to_node);
	free(cost);
}

static bool merge_keeps_tables_small(const graph *g, int32_t node, int32_t leader)
{
	const graph_node *v = &g->nodes[node];
	int64_t more = g->nodes[leader].strategies - v->strategies, growth = 0;
	for (size_t e = 0; e < v->edges.len; e++)
		growth += more * g->nodes[edge_other(g, v->edges.data[e], node)].strategies;
	return growth <= limits->merge_growth * v->strategies * g->nodes[leader].strategies;
}

static void merge(graph *g, int32_t node, int32_t edge, const int32_t *map)
{
	graph_node *v = &g->nodes[node];
	int32_t leader = edge_other(g, edge, node);
	table_view view = view_edge(g, edge, node);
	for (int32_t j = 0; j < view.others; j++)
		g->nodes[leader].cost[j] += v->cost[map[j]] + view_at(&view, map[j], j);
	graph_remove_edge(g, edge);
	while (v->edges.len) {
		int32_t moved = v->edges.data[v->edges.len - 1];
		move_edge(g, moved, node, leader, map);
		graph_remove_edge(g, moved);
	}
	give_spans(g, node, leader, map);
	graph_remove_follower(g, node, leader, map);
	graph_touch(g, leader);
}

bool reduce_merge(graph *g, int32_t node)
{
	bool merged = false;
	for (size_t e = 0; e < g->nodes[node].edges.len && !merged; e++) {
		int32_t edge = g->nodes[node].edges.data[e];
		int32_t leader = edge_other(g, edge, node);
		table_view view = view_edge(g, edge, node);
		int32_t *map = sw_alloc((size_t)view.others * sizeof *map);
		merged = determined_by(&view, map) && merge_keeps_tables_small(g, node, leader);
		if (merged)
			merge(g, node, edge, map);
		free(map);
	}
	return merged;
}
