/* Building the working graph from the caller's problem. */
#include "solve/graph/working_graph.h"

#include <stdlib.h>
#include <string.h>

/* Reductions and bounds multiply the total magnitude by a small constant only: 2^55 leaves bits for
 * that. */
#define MAX_TOTAL ((__int128)1 << 55)
#define MAX_EXACT ((__int128)1 << 62)

static int32_t root_of(const sw_problem *problem, int32_t node)
{
	while (problem->tied_to.data[node] != node)
		node = problem->tied_to.data[node];
	return node;
}

static int64_t largest_magnitude(const int64_t *cost, int64_t entries)
{
	int64_t largest = 0;
	for (int64_t i = 0; i < entries; i++) {
		int64_t magnitude = cost[i] == SW_FORBIDDEN ? 0 : cost[i] < 0 ? -cost[i] : cost[i];
		largest = SW_MAX(largest, magnitude);
	}
	return largest;
}

static void choose_shift(graph *g, const sw_problem *problem)
{
	__int128 total = 0;
	int64_t *of_table = sw_alloc((problem->tables.len + 1) * sizeof *of_table);
	for (size_t t = 0; t < problem->tables.len; t++) {
		const sw_cost_table *table = &problem->tables.data[t];
		of_table[t] = largest_magnitude(table->cost, (int64_t)table->rows * table->columns);
	}
	for (size_t n = 0; n < problem->nodes.len; n++)
		total += largest_magnitude(problem->nodes.data[n].cost,
		                           problem->nodes.data[n].strategies);
	for (size_t e = 0; e < problem->edges.len; e++)
		total += of_table[problem->edges.data[e].table];
	free(of_table);
	g->exact = total <= MAX_EXACT;
	g->shift = 0;
	while (total >> g->shift > MAX_TOTAL)
		g->shift++;
}

/* Shift a cost right. It is floored, so that a bound on the shifted problem bounds the caller's. */
static int64_t shifted(int64_t cost, int shift)
{
	return cost == SW_FORBIDDEN ? cost : cost >> shift;
}

/* Record that a tied node takes its leader's strategy index after all else has been undone. */
static void follow_leader(graph *g, int32_t node, int32_t leader, int32_t strategies)
{
	graph_undo record = {.kind = UNDO_FOLLOW, .node = node, .leader = leader};
	record.count = record.strategies = strategies;
	record.map = SW_NEW_N(&g->arena, int32_t, strategies);
	for (int32_t i = 0; i < strategies; i++)
		record.map[i] = i;
	sw_vec_push(&g->undo, record);
}

static void build_nodes(graph *g, const sw_problem *problem)
{
	for (int32_t v = 0; v < g->n_nodes; v++) {
		const sw_problem_node *node = &problem->nodes.data[v];
		int32_t root = root_of(problem, v);
		graph_node *leader = &g->nodes[root];
		if (root == v) {
			leader->alive = true;
			leader->strategies = node->strategies;
			leader->cost = SW_NEW_N(&g->arena, int64_t, node->strategies);
		} else {
			follow_leader(g, v, root, node->strategies);
		}
		for (int32_t i = 0; i < node->strategies; i++)
			leader->cost[i] =
				sw_cost_plus(leader->cost[i], shifted(node->cost[i], g->shift));
	}
}

static void build_loop(graph *g, int32_t node, const sw_cost_table *table)
{
	for (int32_t i = 0; i < table->rows; i++) {
		int64_t *cost = &g->nodes[node].cost[i];
		*cost = sw_cost_plus(
			*cost, shifted(table->cost[(int64_t)i * table->columns + i], g->shift));
	}
}

static void build_edges(graph *g, const sw_problem *problem)
{
	SW_VEC(int64_t) moved = {0};
	g->borrowed = !g->shift;
	for (size_t e = 0; e < problem->edges.len; e++) {
		sw_edge edge = problem->edges.data[e];
		const sw_cost_table *table = &problem->tables.data[edge.table];
		int32_t a = root_of(problem, edge.from), b = root_of(problem, edge.to);
		int64_t entries = (int64_t)table->rows * table->columns;
		if (a == b) {
			build_loop(g, a, table);
			continue;
		}
		if (!g->shift) {
			graph_add_edge(g, a, b, table->cost, NULL, NULL);
			continue;
		}
		sw_vec_reserve(&moved, (size_t)entries);
		for (int64_t i = 0; i < entries; i++)
			moved.data[i] = shifted(table->cost[i], g->shift);
		graph_add_edge(g, a, b, moved.data, NULL, NULL);
	}
	g->borrowed = false;
	sw_vec_clear(&moved);
}

/* ---- points: only those where a span begins or ends are kept ---------------------------- */

static int compare_points(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
	return (x > y) - (x < y);
}

static int32_t collect_points(const sw_problem *problem, int32_t *points)
{
	size_t n = 0;
	for (size_t s = 0; s < problem->spans.len; s++) {
		points[n++] = problem->spans.data[s].begin;
		points[n++] = problem->spans.data[s].end;
	}
	qsort(points, n, sizeof *points, compare_points);
	int32_t distinct = 0;
	for (size_t i = 0; i < n; i++)
		if (!i || points[i] != points[i - 1])
			points[distinct++] = points[i];
	return distinct;
}

static int32_t rank_of(const int32_t *points, int32_t count, int32_t point)
{
	const int32_t *at = bsearch(&point, points, (size_t)count, sizeof *points, compare_points);
	return (int32_t)(at - points);
}

static void build_spans(graph *g, const sw_problem *problem)
{
	int32_t count = 0;
	int32_t *points = sw_alloc((problem->spans.len * 2 + 1) * sizeof *points);
	if (problem->capacity != INT64_MAX)
		count = collect_points(problem, points);
	g->points = SW_MAX(count - 1, 0);
	g->capacity = SW_NEW_N(&g->arena, int64_t, g->points + 1);
	g->capacity_left = SW_NEW_N(&g->arena, int64_t, g->points + 1);
	g->price = SW_NEW_N(&g->arena, double, g->points + 1);
	g->mean_excess = SW_NEW_N(&g->arena, double, g->points + 1);
	for (int32_t t = 0; t < g->points; t++)
		g->capacity[t] = problem->capacity;
	for (size_t s = 0; count && s < problem->spans.len; s++) {
		const sw_usage_span *span = &problem->spans.data[s];
		graph_add_span(g, root_of(problem, span->node), rank_of(points, count, span->begin),
		               rank_of(points, count, span->end), span->usage);
	}
	free(points);
}

/* Drop the strategies that are forbidden by themselves, or exceed the capacity alone. Every cost
 * left is then finite, and every usage at most the capacity. */
static void drop_impossible(graph *g, int32_t node, int64_t capacity)
{
	graph_node *v = &g->nodes[node];
	bool *keep = sw_alloc((size_t)v->strategies);
	for (int32_t i = 0; i < v->strategies; i++) {
		keep[i] = v->cost[i] != SW_FORBIDDEN;
		for (size_t s = 0; s < v->spans.len; s++)
			keep[i] = keep[i] && v->spans.data[s].usage[i] <= capacity;
	}
	graph_keep(g, node, keep, NULL);
	free(keep);
}

void graph_build(graph *g, const sw_problem *problem)
{
	graph_init(g);
	g->n_nodes = (int32_t)problem->nodes.len;
	g->nodes = SW_NEW_N(&g->arena, graph_node, SW_MAX(g->n_nodes, 1));
	choose_shift(g, problem);
	build_nodes(g, problem);
	build_edges(g, problem);
	build_spans(g, problem);
	for (int32_t v = 0; v < g->n_nodes && !g->infeasible; v++) {
		if (!g->nodes[v].alive)
			continue;
		drop_impossible(g, v, problem->capacity);
		graph_touch(g, v);
	}
}
