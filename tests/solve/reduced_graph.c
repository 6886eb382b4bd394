#include "reduced_graph.h"

#include <string.h>

bool left_within(const graph *g, const int32_t *x)
{
	for (int64_t t = 0, taken = 0; t < g->points; t++) {
		__int128 used = 0;
		for (int32_t v = 0; v < g->n_nodes; v++)
			for (size_t s = 0; s < g->nodes[v].spans.len; s++) {
				const graph_span *span = &g->nodes[v].spans.data[s];
				if (span->begin <= t && t < span->end)
					used += span->usage[x[v]];
			}
		taken += g->capacity_left[t];
		if (used > (__int128)g->capacity[t] + taken)
			return false;
	}
	return true;
}

int64_t reduced_cost(const graph *g, const int32_t *x)
{
	int64_t cost = g->constant;
	for (int32_t v = 0; v < g->n_nodes; v++)
		if (g->nodes[v].alive)
			cost = sw_cost_plus(cost, g->nodes[v].cost[x[v]]);
	for (size_t e = 0; e < g->edges.len; e++) {
		const graph_edge *edge = &g->edges.data[e];
		if (edge->table < 0)
			continue;
		const graph_table *table = &g->tables.data[edge->table];
		cost = sw_cost_plus(
			cost, table->cost[x[edge->node[0]] * table->columns + x[edge->node[1]]]);
	}
	return cost;
}

bool reduced_next(const graph *g, int32_t *x)
{
	for (int32_t v = 0; v < g->n_nodes; v++) {
		if (!g->nodes[v].alive)
			continue;
		if (++x[v] < g->nodes[v].strategies)
			return true;
		x[v] = 0;
	}
	return false;
}

bool reduced_best(const graph *g, int32_t *best, int64_t *cost)
{
	int32_t x[REDUCED_NODES] = {0};
	*cost = SW_FORBIDDEN;
	if (g->infeasible)
		return false;
	do {
		int64_t now = reduced_cost(g, x);
		if (now < *cost && left_within(g, x)) {
			*cost = now;
			memcpy(best, x, sizeof x);
		}
	} while (reduced_next(g, x));
	return *cost != SW_FORBIDDEN;
}

int64_t reduced_count_below(const graph *g, int64_t upper)
{
	int32_t x[REDUCED_NODES] = {0};
	int64_t count = 0;
	if (g->infeasible)
		return 0;
	do
		count += reduced_cost(g, x) < upper && left_within(g, x);
	while (reduced_next(g, x));
	return count;
}

int64_t left_assignments(const graph *g)
{
	int64_t product = 1;
	for (int32_t v = 0; v < g->n_nodes; v++)
		product *= g->nodes[v].alive ? g->nodes[v].strategies : 1;
	return product;
}

/* ---- remembered messages and prices ----------------------------------------------------- */

static double random_number(sw_rng *rng)
{
	return sw_rng_below(rng, 4) ? 20 * sw_rng_unit(rng) - 10 : 0;
}

static void fill(sw_rng *rng, double *numbers, int32_t count)
{
	for (int32_t i = 0; i < count; i++)
		numbers[i] = random_number(rng);
}

void reduced_fill_memory(graph *g, sw_rng *rng, bool knapsacks)
{
	double a[16], b[16];
	for (size_t e = 0; e < g->edges.len; e++) {
		if (g->edges.data[e].table < 0)
			continue;
		fill(rng, a, 16);
		fill(rng, b, 16);
		graph_set_messages(g, (int32_t)e, a, b);
	}
	for (int32_t t = 0; t < g->points; t++)
		g->price[t] = SW_MAX(0, random_number(rng));
	for (int32_t v = 0; knapsacks && v < g->n_nodes; v++)
		for (int32_t t = 0; t < SW_MIN(g->points, 10) && g->nodes[v].alive; t++) {
			fill(rng, a, 16);
			if (sw_rng_below(rng, 3))
				graph_add_given(g, v, t, a);
		}
}

double reduced_sum_memory(const graph *g)
{
	double sum = 0;
	for (size_t e = 0; e < g->edges.len; e++)
		for (int side = 0; side < 2 && g->edges.data[e].table >= 0; side++) {
			const graph_edge *edge = &g->edges.data[e];
			for (int32_t i = 0;
			     edge->message[side] && i < g->nodes[edge->node[side]].strategies; i++)
				sum += edge->message[side][i];
		}
	for (int32_t v = 0; v < g->n_nodes; v++)
		for (size_t k = 0; k < g->nodes[v].given.len; k++)
			for (int32_t i = 0; i < g->nodes[v].strategies; i++)
				sum += g->nodes[v].given.data[k].given[i];
	for (int32_t t = 0; t < g->points; t++)
		sum += g->price[t];
	return sum;
}
