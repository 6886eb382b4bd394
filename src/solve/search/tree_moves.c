/* Tree moves: an induced forest is chosen at random, and its best assignment given the other nodes
 * is found exactly by dynamic programming from the leaves to the roots. */
#include "solve/search/local_search.h"
#include "solve/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const solve_move_limits *const limits = &default_limits.move;

struct induced_forest {
	int32_t *order;  /* the members; after root_trees parents before children */
	int32_t *parent; /* the parent node, or -1 */
	int32_t *up;     /* the edge to the parent */
	int32_t *group;  /* union-find over members */
	int32_t *mark;   /* `stamp`: visited; `stamp` + 1: member */
	int32_t *chosen;
	int32_t *candidates;
	int64_t *value; /* per strategy of the core */
	int32_t count, stamp;
};

induced_forest *forest_new(const core *c)
{
	induced_forest *f = sw_alloc(sizeof *f);
	size_t n = (size_t)c->n_nodes + 1;
	f->order = sw_alloc(n * sizeof(int32_t));
	f->parent = sw_alloc(n * sizeof(int32_t));
	f->up = sw_alloc(n * sizeof(int32_t));
	f->group = sw_alloc(n * sizeof(int32_t));
	f->mark = sw_alloc(n * sizeof(int32_t));
	f->chosen = sw_alloc(n * sizeof(int32_t));
	f->candidates = sw_alloc(n * sizeof(int32_t));
	f->value = sw_alloc((size_t)(c->n_strategies + 1) * sizeof(int64_t));
	return f;
}

void forest_free(induced_forest *f)
{
	if (!f)
		return;
	free(f->order);
	free(f->parent);
	free(f->up);
	free(f->group);
	free(f->mark);
	free(f->chosen);
	free(f->candidates);
	free(f->value);
	free(f);
}

static int32_t other_end(const core *c, int32_t edge, int32_t node)
{
	return c->edges[edge].a == node ? c->edges[edge].b : c->edges[edge].a;
}

/* ---- choosing --------------------------------------------------------------------------- */

static int32_t group_of(induced_forest *f, int32_t v)
{
	while (f->group[v] != v)
		v = f->group[v] = f->group[f->group[v]];
	return v;
}

static bool is_member(const induced_forest *f, int32_t v)
{
	return f->mark[v] == f->stamp + 1;
}

/* Whether v closes no cycle: its neighbours that are members are in different trees. */
static bool joins_without_cycle(local_search *s, int32_t v)
{
	const core *c = s->c;
	induced_forest *f = s->forest;
	f->group[v] = v;
	for (int32_t k = c->edge_first[v]; k < c->edge_first[v + 1]; k++) {
		int32_t u = other_end(c, c->edge_list[k], v);
		if (!is_member(f, u))
			continue;
		int32_t group = group_of(f, u);
		for (int32_t l = c->edge_first[v]; l < k; l++) {
			int32_t w = other_end(c, c->edge_list[l], v);
			if (is_member(f, w) && group_of(f, w) == group)
				return false;
		}
	}
	return true;
}

static void join(local_search *s, int32_t v)
{
	const core *c = s->c;
	induced_forest *f = s->forest;
	for (int32_t k = c->edge_first[v]; k < c->edge_first[v + 1]; k++) {
		int32_t u = other_end(c, c->edge_list[k], v);
		if (is_member(f, u))
			f->group[group_of(f, u)] = v;
	}
	f->mark[v] = f->stamp + 1;
	f->order[f->count++] = v;
}

static void choose_everywhere(local_search *s)
{
	const core *c = s->c;
	induced_forest *f = s->forest;
	for (int32_t v = 0; v < c->n_nodes; v++) {
		int32_t k = (int32_t)sw_rng_below(&s->rng, v + 1);
		f->candidates[v] = f->candidates[k];
		f->candidates[k] = v;
	}
	for (int32_t i = 0; i < c->n_nodes; i++)
		if (joins_without_cycle(s, f->candidates[i]))
			join(s, f->candidates[i]);
	s->work += 4 * c->n_edges;
}

/* Grow breadth first in a random order, so that the region is compact. */
static void choose_around(local_search *s, int32_t seed, int32_t size)
{
	const core *c = s->c;
	induced_forest *f = s->forest;
	int32_t waiting = 0;
	f->candidates[waiting++] = seed;
	f->mark[seed] = f->stamp;
	while (waiting && f->count < size) {
		int32_t at =
			waiting - 1 -
			(int32_t)sw_rng_below(&s->rng, SW_MIN(waiting, limits->forest_frontier));
		int32_t v = f->candidates[at];
		f->candidates[at] = f->candidates[--waiting];
		if (!joins_without_cycle(s, v))
			continue;
		join(s, v);
		for (int32_t k = c->edge_first[v]; k < c->edge_first[v + 1]; k++) {
			int32_t u = other_end(c, c->edge_list[k], v);
			if (f->mark[u] >= f->stamp)
				continue;
			f->mark[u] = f->stamp;
			f->candidates[waiting++] = u;
		}
		s->work += 4 * (c->edge_first[v + 1] - c->edge_first[v]);
	}
}

/* Order the members so that parents come before children. */
static void root_trees(local_search *s)
{
	const core *c = s->c;
	induced_forest *f = s->forest;
	int32_t placed = 0, members = f->count;
	memcpy(f->candidates, f->order, (size_t)members * sizeof(int32_t));
	for (int32_t m = 0; m < members; m++)
		f->parent[f->candidates[m]] = -2;
	for (int32_t m = 0; m < members; m++) {
		if (f->parent[f->candidates[m]] != -2)
			continue;
		f->parent[f->candidates[m]] = -1;
		f->order[placed++] = f->candidates[m];
		for (int32_t at = placed - 1; at < placed; at++) {
			int32_t v = f->order[at];
			for (int32_t k = c->edge_first[v]; k < c->edge_first[v + 1]; k++) {
				int32_t u = other_end(c, c->edge_list[k], v);
				if (!is_member(f, u) || f->parent[u] != -2)
					continue;
				f->parent[u] = v;
				f->up[u] = c->edge_list[k];
				f->order[placed++] = u;
			}
		}
	}
}

void forest_choose(local_search *s, int32_t seed, int32_t size)
{
	induced_forest *f = s->forest;
	f->count = 0;
	f->stamp += 2;
	if (seed < 0)
		choose_everywhere(s);
	else
		choose_around(s, seed, size);
	root_trees(s);
}

/* ---- dynamic programming ---------------------------------------------------------------- */

/* Compute the cost of each strategy of v given the neighbours outside the forest. */
static void start_value(local_search *s, int32_t v, double scale)
{
	const core *c = s->c;
	induced_forest *f = s->forest;
	int64_t *value = f->value + c->first[v];
	int32_t n = core_strategies(c, v);
	memcpy(value, s->field + c->first[v], (size_t)n * sizeof *value);
	for (int32_t k = c->edge_first[v]; k < c->edge_first[v + 1]; k++) {
		const core_edge *e = &c->edges[c->edge_list[k]];
		int side = e->b == v;
		int32_t u = side ? e->a : e->b;
		if (!is_member(f, u))
			continue;
		table_view view = core_view(c, e, side);
		for (int32_t i = 0; i < n; i++)
			value[i] -= search_penalised(s, view_at(&view, i, s->x[u]));
		s->work += n;
	}
	for (int32_t i = 0; c->span_first[v] < c->span_first[v + 1] && i < n; i++)
		value[i] += search_price(s, v, i, scale);
}

static void send_to_parent(local_search *s, int32_t v)
{
	const core *c = s->c;
	induced_forest *f = s->forest;
	const core_edge *e = &c->edges[f->up[v]];
	table_view view = core_view(c, e, e->b == v);
	const int64_t *mine = f->value + c->first[v];
	int64_t *theirs = f->value + c->first[f->parent[v]];
	for (int32_t j = 0; j < view.others; j++) {
		int64_t low = INT64_MAX;
		for (int32_t i = 0; i < view.mine; i++)
			low = SW_MIN(low, mine[i] + search_penalised(s, view_at(&view, i, j)));
		theirs[j] += low;
	}
	s->work += (int64_t)view.mine * view.others;
}

/* Choose the cheapest strategy; a tie goes to the present one. */
static int32_t choose_strategy(local_search *s, int32_t v)
{
	const core *c = s->c;
	induced_forest *f = s->forest;
	const int64_t *mine = f->value + c->first[v];
	int64_t low = INT64_MAX;
	int32_t best = s->x[v];
	for (int32_t i = 0; i < core_strategies(c, v); i++) {
		int64_t cost = mine[i];
		if (f->parent[v] >= 0) {
			const core_edge *e = &c->edges[f->up[v]];
			table_view view = core_view(c, e, e->b == v);
			cost += search_penalised(s, view_at(&view, i, f->chosen[f->parent[v]]));
		}
		if (cost < low || (cost == low && i == s->x[v])) {
			low = cost;
			best = i;
		}
	}
	return best;
}

void forest_optimise(local_search *s, double scale)
{
	induced_forest *f = s->forest;
	for (int32_t m = 0; m < f->count; m++)
		start_value(s, f->order[m], scale);
	for (int32_t m = f->count; m-- > 0;)
		if (f->parent[f->order[m]] >= 0)
			send_to_parent(s, f->order[m]);
	for (int32_t m = 0; m < f->count; m++)
		f->chosen[f->order[m]] = choose_strategy(s, f->order[m]);
	for (int32_t m = 0; m < f->count; m++)
		search_move(s, f->order[m], f->chosen[f->order[m]]);
}

void forest_descend(local_search *s)
{
	const induced_forest *f = s->forest;
	for (int32_t m = 0; m < f->count; m++)
		search_descend_node(s, f->order[m]);
}
