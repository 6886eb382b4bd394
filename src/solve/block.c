/* Block moves: a compact region is minimised exactly, cycles and all, by elimination, the rest fixed.
 * Dearer than a tree move; finds what needs a whole layer to change at once. */
#include "solve/solver.h"

#include <stdlib.h>
#include <string.h>

/* Nodes with more neighbours stay fixed: they would join everything. */
#define LARGEST_DEGREE 32
/* Table entries of one elimination. */
#define BLOCK_WORK ((int64_t)1 << 21)

static int32_t degree_of(const core *c, int32_t v)
{
	return c->edge_first[v + 1] - c->edge_first[v];
}

/* Breadth first. rank is -1 outside the block. */
void block_choose(search *s, int32_t seed, int32_t size)
{
	const core *c = s->c;
	for (size_t k = 0; k < s->block.len; k++)
		s->rank[s->block.data[k]] = -1;
	s->block.len = 0;
	s->rank[seed] = 0;
	sw_vec_push(&s->block, seed);
	for (size_t at = 0; at < s->block.len && s->block.len < (size_t)size; at++) {
		int32_t v = s->block.data[at];
		for (int32_t k = c->edge_first[v]; k < c->edge_first[v + 1] && s->block.len < (size_t)size; k++) {
			const core_edge *e = &c->edges[c->edge_list[k]];
			int32_t u = e->a == v ? e->b : e->a;
			if (s->rank[u] >= 0 || degree_of(c, u) > LARGEST_DEGREE)
				continue;
			s->rank[u] = (int32_t)s->block.len;
			sw_vec_push(&s->block, u);
		}
		s->work += 4 * degree_of(c, v);
	}
}

static double *sum_prices(const search *s)
{
	double *sum = sw_alloc((size_t)(s->c->moments + 1) * sizeof *sum);
	for (int32_t t = 0; t < s->c->moments; t++)
		sum[t + 1] = sum[t] + s->price[t];
	return sum;
}

/* What usage costs node v, added to its values. */
static void add_usage(const search *s, int32_t v, const double *sum, double scale, int64_t *value)
{
	const core *c = s->c;
	double most = 0x1p58 / (c->span_first[c->n_nodes] + 1);
	for (int32_t k = c->span_first[v]; k < c->span_first[v + 1]; k++) {
		double price = scale * (sum[c->spans[k].end] - sum[c->spans[k].begin]);
		for (int32_t i = 0; price > 0 && i < core_strategies(c, v); i++)
			value[i] += (int64_t)SW_MIN(price * (double)c->spans[k].usage[i], most);
	}
}

static int64_t penalised(const search *s, int64_t cost)
{
	return cost == SW_FORBIDDEN ? s->penalty : cost;
}

/* Edges within the block join the small core once, from their smaller end; each end's field loses them. */
static void pack_node(const search *s, core *small, int32_t v)
{
	const core *c = s->c;
	int64_t *value = small->cost + small->first[s->rank[v]];
	for (int32_t k = c->edge_first[v]; k < c->edge_first[v + 1]; k++) {
		core_edge e = c->edges[c->edge_list[k]];
		int side = e.b == v;
		int32_t u = side ? e.a : e.b;
		if (s->rank[u] < 0)
			continue;
		table_view view = core_view(c, &e, side);
		for (int32_t i = 0; i < view.mine; i++)
			value[i] -= penalised(s, view_at(&view, i, s->x[u]));
		if (side)
			continue;
		e.a = s->rank[v];
		e.b = s->rank[u];
		small->edges[small->n_edges++] = e;
	}
}

static void pack_block(const search *s, double scale, core *small)
{
	const core *c = s->c;
	int32_t edges = 0;
	double *sum = sum_prices(s);
	sw_arena_init(&small->arena);
	small->n_nodes = (int32_t)s->block.len;
	small->tables = c->tables;
	small->first = SW_NEW_N(&small->arena, int32_t, small->n_nodes + 1);
	for (int32_t n = 0; n < small->n_nodes; n++) {
		small->first[n + 1] = small->first[n] + core_strategies(c, s->block.data[n]);
		edges += degree_of(c, s->block.data[n]);
	}
	small->cost = SW_NEW_N(&small->arena, int64_t, small->first[small->n_nodes]);
	small->edges = SW_NEW_N(&small->arena, core_edge, edges + 1);
	for (int32_t n = 0; n < small->n_nodes; n++) {
		int32_t v = s->block.data[n];
		size_t bytes = (size_t)core_strategies(c, v) * sizeof(int64_t);
		memcpy(small->cost + small->first[n], s->field + c->first[v], bytes);
		pack_node(s, small, v);
		add_usage(s, v, sum, scale, small->cost + small->first[n]);
	}
	free(sum);
}

bool block_optimise(search *s, double scale)
{
	core small = {0};
	int64_t cost, spent = 0;
	int32_t *x = sw_alloc((s->block.len + 1) * sizeof *x);
	pack_block(s, scale, &small);
	bool done = core_eliminate(&small, BLOCK_WORK, x, &cost, &spent) && cost != SW_FORBIDDEN;
	s->work += spent + s->c->moments + 16 * small.n_nodes;
	for (int32_t n = 0; done && n < small.n_nodes; n++)
		search_move(s, s->block.data[n], x[n]);
	sw_arena_clear(&small.arena);
	free(x);
	return done;
}

void block_descend(search *s)
{
	for (size_t n = 0; n < s->block.len; n++)
		search_descend_node(s, s->block.data[n]);
}
