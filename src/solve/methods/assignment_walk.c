#include "solve/methods/assignment_walk.h"
#include "solve/limits.h"

#include <stdlib.h>

static const solve_method_limits *const limits = &default_limits.method;

/* ---- creation --------------------------------------------------------------------------- */

static void list_nodes(assignment_walk *w, int32_t *number)
{
	for (int32_t v = 0; v < w->g->n_nodes; v++) {
		const graph_node *node = &w->g->nodes[v];
		if (!node->alive)
			continue;
		number[v] = w->n;
		w->nodes[w->n++] = (walk_node){
			.node = v, .strategies = node->strategies, .choice = -1, .of = node};
	}
}

static void list_links(assignment_walk *w, const int32_t *number)
{
	int32_t n = 0;
	for (int32_t i = 0; i < w->n; i++) {
		walk_node *node = &w->nodes[i];
		node->first_link = n;
		for (size_t k = 0; k < node->of->edges.len; k++) {
			int32_t edge = node->of->edges.data[k];
			w->links[n++] = (walk_link){number[edge_other(w->g, edge, node->node)],
			                            view_edge(w->g, edge, node->node)};
		}
		node->n_links = n - node->first_link;
	}
}

void walk_init(assignment_walk *w, const graph *g)
{
	size_t n = (size_t)g->n_nodes + 1;
	int32_t *number = sw_alloc(n * sizeof *number);
	*w = (assignment_walk){.g = g,
	                       .nodes = sw_alloc(n * sizeof *w->nodes),
	                       .links = sw_alloc((2 * g->edges.len + 1) * sizeof *w->links),
	                       .used = sw_alloc(((size_t)g->points + 1) * sizeof *w->used)};
	list_nodes(w, number);
	list_links(w, number);
	free(number);
}

void walk_clear(assignment_walk *w)
{
	free(w->nodes);
	free(w->links);
	free(w->used);
}

/* ---- moves ------------------------------------------------------------------------------ */

static int64_t entry_of(const assignment_walk *w, const walk_link *link, int32_t strategy)
{
	int32_t other = w->nodes[link->other].choice;
	return other < 0 ? 0 : view_at(&link->view, strategy, other);
}

/* Add the cost of a strategy given the chosen ones, times `sign`. */
static void add_cost(assignment_walk *w, const walk_node *node, int32_t strategy, int sign)
{
	w->value.cost += sign * node->of->cost[strategy];
	for (int32_t k = 0; k < node->n_links; k++) {
		int64_t cost = entry_of(w, &w->links[node->first_link + k], strategy);
		if (cost == SW_FORBIDDEN)
			w->value.forbidden += sign;
		else
			w->value.cost += sign * cost;
	}
	w->work += limits->link_work * (1 + node->n_links);
}

static int64_t excess_at(const assignment_walk *w, int32_t point)
{
	return SW_MAX(w->used[point] - w->g->capacity[point], 0);
}

static void add_usage(assignment_walk *w, const walk_node *node, int32_t strategy, int sign)
{
	for (size_t s = 0; s < node->of->spans.len; s++) {
		const graph_span *span = &node->of->spans.data[s];
		int64_t more = sign * span->usage[strategy];
		for (int32_t t = span->begin; more && t < span->end; t++) {
			int64_t before = excess_at(w, t);
			w->used[t] += more;
			w->value.over += excess_at(w, t) - before;
		}
		w->work += more ? span->end - span->begin : 1;
	}
}

void walk_move(assignment_walk *w, int32_t node, int32_t strategy)
{
	walk_node *at = &w->nodes[node];
	if (at->choice >= 0) {
		add_cost(w, at, at->choice, -1);
		add_usage(w, at, at->choice, -1);
	}
	at->choice = strategy;
	if (strategy >= 0) {
		add_cost(w, at, strategy, 1);
		add_usage(w, at, strategy, 1);
	}
}

/* ---- whole assignments ------------------------------------------------------------------ */

static bool is_allowed(assignment_walk *w, const walk_node *node, int32_t strategy)
{
	w->work += limits->link_work * node->n_links;
	for (int32_t k = 0; k < node->n_links; k++)
		if (entry_of(w, &w->links[node->first_link + k], strategy) == SW_FORBIDDEN)
			return false;
	return true;
}

/* Draw an allowed strategy; all are equally likely, as the k-th one replaces the one drawn before
 * with probability 1/k. */
static int32_t draw(assignment_walk *w, const walk_node *node, sw_rng *rng)
{
	int32_t drawn = -1, allowed = 0;
	for (int32_t s = 0; s < node->strategies; s++)
		if (is_allowed(w, node, s) && sw_rng_below(rng, ++allowed) == 0)
			drawn = s;
	return drawn < 0 ? (int32_t)sw_rng_below(rng, node->strategies) : drawn;
}

static void forget(assignment_walk *w)
{
	for (int32_t i = 0; i < w->n; i++)
		walk_move(w, i, -1);
}

void walk_draw(assignment_walk *w, sw_rng *rng)
{
	forget(w);
	for (int32_t i = 0; i < w->n; i++)
		walk_move(w, i, draw(w, &w->nodes[i], rng));
}

void walk_load(assignment_walk *w, const int32_t *choices)
{
	forget(w);
	for (int32_t i = 0; i < w->n; i++)
		walk_move(w, i, choices[w->nodes[i].node]);
}

void walk_save(const assignment_walk *w, int32_t *choices)
{
	for (int32_t i = 0; i < w->n; i++)
		choices[w->nodes[i].node] = w->nodes[i].choice;
}
