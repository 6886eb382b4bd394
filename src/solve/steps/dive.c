/* Diving: nodes that the bound has all but decided are fixed, the bound and the prices are computed
 * again on the remaining graph, and so on until few nodes are left, which are searched. Unlike
 * rounding of all nodes at once, later decisions take account of the earlier ones. */
#include "solve/steps/solver.h"
#include "solve/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const solve_dive_limits *const limits = &default_limits.dive;

typedef struct dive_decision {
	int32_t node, strategy;
	double share;
} dive_decision;

static int by_share(const void *a, const void *b)
{
	const dive_decision *x = a, *y = b;
	if (x->share != y->share)
		return x->share > y->share ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

static dive_decision decide(const passing *b, int32_t v)
{
	const core *c = b->c;
	dive_decision d = {v, 0, 0};
	for (int32_t i = 0; i < core_strategies(c, v); i++)
		if (b->share[c->first[v] + i] > d.share) {
			d.share = b->share[c->first[v] + i];
			d.strategy = i;
		}
	return d;
}

/* The frequencies of a node's strategies add up to less than one, because no sweep was counted
 * before the first. */
static double full_share(const passing *b)
{
	double total = 0;
	for (int32_t i = b->c->first[0]; i < b->c->first[1]; i++)
		total += b->share[i];
	return total;
}

static void fix_decided(const passing *b, graph *g)
{
	const core *c = b->c;
	dive_decision *all = sw_alloc((size_t)c->n_nodes * sizeof *all);
	double full = full_share(b);
	for (int32_t v = 0; v < c->n_nodes; v++)
		all[v] = decide(b, v);
	qsort(all, (size_t)c->n_nodes, sizeof *all, by_share);
	int32_t most = (int32_t)(limits->max_fixed * c->n_nodes) + 1;
	for (int32_t k = 0; k < c->n_nodes &&
	                    (k < most || all[k].share >= limits->decided * full) && !g->infeasible;
	     k++) {
		int32_t n = core_strategies(c, all[k].node);
		bool *keep = sw_alloc((size_t)n);
		keep[all[k].strategy] = true;
		graph_keep(g, c->graph_node[all[k].node], keep, NULL);
		free(keep);
	}
	free(all);
}

static void search_rest(dive *d, const lineage *line, const core *c, passing *b)
{
	local_search found;
	int64_t work =
		SW_MAX(limits->search_work * (c->entries + c->n_strategies), limits->min_search);
	if (solver_round_off(b, b->best, work, d->seed, &d->halt, &found))
		solver_map_back(line, c, found.x, &d->whole);
	d->work += found.work;
	search_clear(&found);
}

/* Run one stage. True: another one is to follow. */
static bool stage(dive *d, graph *g, const lineage *line, bool last)
{
	core c;
	passing b;
	int64_t before = g->work;
	graph_reduce(g, REDUCE_ALL);
	d->work += g->work - before;
	if (g->infeasible)
		return false;
	core_init(&c, g);
	bound_init(&b, &c, g);
	bound_add_knapsacks(&b, g);
	bound_run(&b, INFINITY, INFINITY, limits->sweeps * bound_sweep_work(&b), &d->halt);
	if (b.best == -INFINITY)
		bound_sweep(&b);
	d->work += b.work + 4 * c.entries;
	last |= c.n_nodes <= limits->few_nodes;
	if (last) {
		search_rest(d, line, &c, &b);
	} else {
		bound_remember(&b, g);
		fix_decided(&b, g);
	}
	bound_clear(&b);
	core_clear(&c);
	return !last;
}

void solver_dive(dive *d)
{
	graph g;
	lineage line = {&g, d->at};
	graph_copy(&g, d->at->g);
	g.level *= limits->level; /* since fixing changes the bound much */
	bool more = true;
	for (int k = 0; more && !halted(&d->halt); k++)
		more = stage(d, &g, &line, k + 1 == limits->max_stages);
	graph_clear(&g);
}
