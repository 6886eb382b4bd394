/* Branch and bound: depth first, the bound's preferred strategy of a node against all others. */
#include "solve/solver.h"

#include <stdlib.h>
#include <string.h>

/* Copies of the graph along one path must not fill the memory. */
#define LARGEST_PATH_ENTRIES ((int64_t)1 << 25)
#define LEAST_DEPTH 24

static const tighten_limits leaf_limits = {
	.sweeps = 25, .bound_work = INT64_MAX / 4, .improve_work = 1 << 19,
};

static int64_t entries_of(const graph *g)
{
	int64_t entries = 0;
	for (size_t e = 0; e < g->edges.len; e++)
		if (g->edges.data[e].table >= 0) {
			const graph_table *table = &g->tables.data[g->edges.data[e].table];
			entries += (int64_t)table->rows * table->columns;
		}
	for (int32_t v = 0; v < g->n_nodes; v++)
		entries += 8 + g->nodes[v].strategies;
	return entries;
}

/* The node with most neighbours, then most spans; its strategy that looks cheapest by its own costs
 * and the least of its tables. */
static int32_t choose_node(const graph *g)
{
	int32_t best = -1;
	size_t most = 0;
	for (int32_t v = 0; v < g->n_nodes; v++) {
		const graph_node *node = &g->nodes[v];
		size_t score = 1 + 4 * node->edges.len + node->spans.len;
		if (node->alive && (best < 0 || score > most)) {
			best = v;
			most = score;
		}
	}
	return best;
}

static int32_t choose_strategy(const graph *g, int32_t node)
{
	const graph_node *v = &g->nodes[node];
	int32_t best = 0;
	for (int32_t i = 1; i < v->strategies; i++)
		if (v->cost[i] < v->cost[best])
			best = i;
	return best;
}

/* Copies keep the order of the nodes. */
static int32_t find_copy(const graph *copy, int32_t node)
{
	int32_t low = 0, high = copy->n_nodes - 1;
	while (low < high) {
		int32_t middle = low + (high - low) / 2;
		if (copy->origin[middle] < node)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void branch(solver *s, const lineage *at, int depth, int64_t *bound);

/* One child: the node takes the strategy, or (unless) any other. */
static int64_t explore(solver *s, const lineage *at, int32_t node, int32_t strategy, bool unless, int depth,
                       int64_t bound)
{
	graph copy;
	lineage child = {&copy, at};
	int32_t n = at->g->nodes[node].strategies;
	if (bound >= solver_upper(s, at->g) || solver_out_of_work(s))
		return bound >= solver_upper(s, at->g) ? INT64_MAX : bound;
	bool *keep = sw_alloc((size_t)n);
	graph_copy(&copy, at->g);
	s->work += entries_of(at->g);
	for (int32_t i = 0; i < n; i++)
		keep[i] = (i == strategy) != unless;
	graph_keep(&copy, find_copy(&copy, node), keep);
	free(keep);
	if (solver_tighten(s, &child, &leaf_limits, &bound))
		bound = INT64_MAX;
	else
		branch(s, &child, depth - 1, &bound);
	graph_clear(&copy);
	return bound;
}

static void branch(solver *s, const lineage *at, int depth, int64_t *bound)
{
	int32_t node = choose_node(at->g);
	if (node < 0 || depth < 1 || solver_out_of_work(s))
		return;
	int32_t strategy = choose_strategy(at->g, node);
	int64_t first = explore(s, at, node, strategy, false, depth, *bound);
	int64_t second = explore(s, at, node, strategy, true, depth, *bound);
	*bound = SW_MIN(first, second);
}

bool solver_branch(solver *s, const lineage *at, int64_t work, int64_t *bound)
{
	int64_t depth = LARGEST_PATH_ENTRIES / SW_MAX(entries_of(at->g), 1), limit = s->work_limit;
	if (depth < LEAST_DEPTH)
		return false;
	s->work_limit = SW_MIN(limit, s->work + work);
	branch(s, at, (int)SW_MIN(depth, 4000), bound);
	s->work_limit = limit;
	return *bound == INT64_MAX;
}
