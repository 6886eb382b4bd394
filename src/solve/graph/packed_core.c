/* Packing the nodes and edges of a graph that are alive. */
#include "solve/graph/packed_core.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static void pack_nodes(core *c, const graph *g, int32_t *rank)
{
	int32_t n = 0;
	for (int32_t v = 0; v < g->n_nodes; v++)
		n += g->nodes[v].alive;
	c->graph_node = SW_NEW_N(&c->arena, int32_t, n + 1);
	c->first = SW_NEW_N(&c->arena, int32_t, n + 1);
	c->span_first = SW_NEW_N(&c->arena, int32_t, n + 1);
	for (int32_t v = 0; v < g->n_nodes; v++) {
		const graph_node *node = &g->nodes[v];
		if (!node->alive)
			continue;
		rank[v] = c->n_nodes;
		c->graph_node[c->n_nodes++] = v;
		c->first[c->n_nodes] = c->first[c->n_nodes - 1] + node->strategies;
		c->max_strategies = SW_MAX(c->max_strategies, node->strategies);
		c->span_first[c->n_nodes] =
			c->span_first[c->n_nodes - 1] + (int32_t)node->spans.len;
	}
	c->n_strategies = c->first[n];
}

static void pack_costs(core *c, const graph *g)
{
	c->cost = SW_NEW_N(&c->arena, int64_t, c->n_strategies + 1);
	c->spans = SW_NEW_N(&c->arena, graph_span, c->span_first[c->n_nodes] + 1);
	for (int32_t v = 0; v < c->n_nodes; v++) {
		const graph_node *node = &g->nodes[c->graph_node[v]];
		for (int32_t i = 0; i < node->strategies; i++)
			c->cost[c->first[v] + i] = node->cost[i];
		for (size_t s = 0; s < node->spans.len; s++)
			c->spans[(size_t)c->span_first[v] + s] = node->spans.data[s];
	}
	assert(!g->points || !g->capacity_left[0]); /* since reduce_settle has run */
	c->points = g->points;
	c->capacity = g->capacity;
	c->constant = g->constant;
}

static double to_real(int64_t cost)
{
	return cost == SW_FORBIDDEN ? INFINITY : (double)cost;
}

static void pack_table(core *c, const graph_table *from, core_table *table)
{
	int64_t entries = (int64_t)from->rows * from->columns;
	double *real = SW_NEW_N(&c->arena, double, entries);
	for (int64_t i = 0; i < entries; i++)
		real[i] = to_real(from->cost[i]);
	*table = (core_table){{from->rows, from->columns}, from->cost, real};
}

static void pack_edges(core *c, const graph *g, const int32_t *rank)
{
	int32_t n_tables = 0, *table_of = sw_alloc((g->tables.len + 1) * sizeof *table_of);
	int32_t alive = 0;
	for (size_t e = 0; e < g->edges.len; e++)
		alive += g->edges.data[e].table >= 0;
	c->edges = SW_NEW_N(&c->arena, core_edge, alive + 1);
	c->graph_edge = SW_NEW_N(&c->arena, int32_t, alive + 1);
	c->tables = SW_NEW_N(&c->arena, core_table, g->n_tables + 1);
	for (size_t t = 0; t < g->tables.len; t++)
		table_of[t] = -1;
	for (size_t e = 0; e < g->edges.len; e++) {
		const graph_edge *from = &g->edges.data[e];
		if (from->table < 0)
			continue;
		const graph_table *table = &g->tables.data[from->table];
		if (table_of[from->table] < 0) {
			table_of[from->table] = n_tables;
			pack_table(c, table, &c->tables[n_tables++]);
		}
		int32_t a = rank[from->node[0]], b = rank[from->node[1]];
		c->graph_edge[c->n_edges] = (int32_t)e;
		core_edge *edge = &c->edges[c->n_edges++];
		*edge = (core_edge){
			SW_MIN(a, b), SW_MAX(a, b), table_of[from->table], a > b, {0, 0}};
		edge->message[0] = c->n_messages;
		edge->message[1] = c->n_messages + (a > b ? table->columns : table->rows);
		c->n_messages += table->rows + table->columns;
		c->entries += (int64_t)table->rows * table->columns;
	}
	free(table_of);
}

static void pack_adjacency(core *c)
{
	c->edge_first = SW_NEW_N(&c->arena, int32_t, c->n_nodes + 2);
	c->forward = SW_NEW_N(&c->arena, int32_t, c->n_nodes + 1);
	c->edge_list = SW_NEW_N(&c->arena, int32_t, 2 * (int64_t)c->n_edges + 1);
	int32_t *next = c->edge_first + 1;
	for (int32_t e = 0; e < c->n_edges; e++) {
		next[c->edges[e].a + 1]++;
		next[c->edges[e].b + 1]++;
	}
	for (int32_t v = 0; v < c->n_nodes; v++)
		next[v + 1] += next[v];
	for (int32_t e = 0; e < c->n_edges; e++)
		c->edge_list[next[c->edges[e].b]++] = e;
	for (int32_t v = 0; v < c->n_nodes; v++)
		c->forward[v] = next[v];
	for (int32_t e = 0; e < c->n_edges; e++)
		c->edge_list[next[c->edges[e].a]++] = e;
}

/* The largest cost less the smallest, where 0 counts as one of them: this also bounds the magnitude
 * of each cost. */
static int64_t spread(const int64_t *cost, int64_t entries)
{
	int64_t least = 0, most = 0;
	for (int64_t i = 0; i < entries; i++)
		if (cost[i] != SW_FORBIDDEN) {
			least = SW_MIN(least, cost[i]);
			most = SW_MAX(most, cost[i]);
		}
	return most - least;
}

static void measure(core *c)
{
	for (int32_t v = 0; v < c->n_nodes; v++)
		c->magnitude += spread(c->cost + c->first[v], core_strategies(c, v));
	for (int32_t e = 0; e < c->n_edges; e++) {
		const core_table *table = &c->tables[c->edges[e].table];
		c->magnitude += spread(table->cost, (int64_t)table->size[0] * table->size[1]);
	}
}

void core_init(core *c, const graph *g)
{
	int32_t *rank = sw_alloc(((size_t)g->n_nodes + 1) * sizeof *rank);
	*c = (core){.max_strategies = 1};
	sw_arena_init(&c->arena);
	pack_nodes(c, g, rank);
	pack_costs(c, g);
	pack_edges(c, g, rank);
	pack_adjacency(c);
	measure(c);
	free(rank);
}

void core_clear(core *c)
{
	sw_arena_clear(&c->arena);
	*c = (core){0};
}

void core_price_usage(const core *c, const double *price, double *sum)
{
	double *before = sw_alloc((size_t)(c->points + 1) * sizeof *before);
	for (int32_t t = 0; t < c->points; t++)
		before[t + 1] = before[t] + price[t];
	for (int32_t v = 0; v < c->n_nodes; v++)
		for (int32_t k = c->span_first[v]; k < c->span_first[v + 1]; k++) {
			const graph_span *span = &c->spans[k];
			double usage_price = before[span->end] - before[span->begin];
			for (int32_t i = 0; usage_price > 0 && i < core_strategies(c, v); i++)
				sum[c->first[v] + i] += usage_price * (double)span->usage[i];
		}
	free(before);
}
