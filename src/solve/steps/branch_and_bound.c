/* Branch and bound. Open subproblems are taken in batches; each is solved by itself with the bound,
 * a short search and fixing, so that the answer does not depend on the number of threads. */
#include "solve/steps/solver.h"
#include "solve/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const solve_branch_limits *const limits = &default_limits.branch;

/* A graph, and the parent from which it was copied; the parent must outlive it, since assignments
 * are mapped back through it. */
typedef struct subproblem_graph {
	graph g;
	lineage line;
	/* NULL: it was copied from the root's graph, which is the caller's */
	struct subproblem_graph *parent;
	int references;
	int64_t entries;
} subproblem_graph;

/* A subproblem that is not solved yet: the parent's graph with the strategies of one node
 * restricted. */
typedef struct open_subproblem {
	subproblem_graph *parent; /* NULL: the root */
	int32_t node;             /* of the parent's graph; -1: none is restricted */
	bool *keep;
	int64_t bound;  /* proved; in the root graph's units, which all graphs share */
	double promise; /* an estimate of its bound */
	int depth;
} open_subproblem;

/* A subproblem that is being solved. */
typedef struct subproblem {
	solver *s;
	const lineage *root;
	open_subproblem from;
	subproblem_graph *made;
	int64_t upper, bound;
	bool closed;
	int32_t *whole;   /* NULL, or an assignment of the problem whose cost is `upper` */
	branching branch; /* its node is one of the graph's; -1: none was chosen */
	int64_t work;
} subproblem;

typedef struct branch_tree {
	solver *s;
	const lineage *root;
	SW_VEC(open_subproblem) open;
	int64_t entries;
} branch_tree;

static int64_t entries_of(const graph *g)
{
	int64_t entries = 0;
	for (size_t e = 0; e < g->edges.len; e++)
		if (g->edges.data[e].table >= 0) {
			const graph_table *table = &g->tables.data[g->edges.data[e].table];
			entries += (int64_t)table->rows * table->columns;
		}
	for (int32_t v = 0; v < g->n_nodes; v++)
		entries += 16 + g->nodes[v].strategies * (1 + (int64_t)g->nodes[v].spans.len);
	return entries;
}

static void release(branch_tree *t, subproblem_graph *f)
{
	while (f && --f->references == 0) {
		subproblem_graph *parent = f->parent;
		t->entries -= f->entries;
		graph_clear(&f->g);
		free(f);
		f = parent;
	}
}

/* ---- one subproblem --------------------------------------------------------------------- */

/* Find a node in a copy, which keeps the order of the nodes. */
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

static void make_graph(subproblem *l)
{
	const lineage *above = l->from.parent ? &l->from.parent->line : l->root;
	subproblem_graph *f = sw_alloc(sizeof *f);
	graph_copy(&f->g, above->g);
	f->line = (lineage){&f->g, above};
	f->parent = l->from.parent;
	f->references = 1;
	l->made = f;
	l->work += entries_of(above->g);
	if (l->from.node >= 0)
		graph_keep(&f->g, find_copy(&f->g, l->from.node), l->from.keep, NULL);
}

/* Take an assignment of the core if the evaluator finds it valid and cheaper than `upper`. */
static void take_assignment(subproblem *l, const core *c, const int32_t *x)
{
	int32_t *whole = NULL;
	sw_evaluation value;
	solver_map_back(&l->made->line, c, x, &whole);
	sw_problem_evaluate(l->s->problem, whole, &value);
	int64_t upper =
		value.allowed && value.within ? solver_round_up(value.cost, &l->made->g) : l->upper;
	if (upper < l->upper) {
		l->upper = upper;
		free(l->whole);
		l->whole = whole;
	} else {
		free(whole);
	}
}

/* Search from the decoded assignment for a short while. */
static void search_subproblem(subproblem *l, const core *c, passing *b, const halt *h)
{
	local_search found;
	int64_t work =
		SW_MAX(limits->search_work * (c->entries + c->n_strategies), limits->min_search);
	uint64_t seed = sw_hash_u64((uint64_t)l->from.depth, (uint64_t)c->n_strategies);
	if (solver_round_off(b, (double)(l->bound - c->constant), work, seed, h, &found) &&
	    found.cost + c->constant < l->upper)
		take_assignment(l, c, found.x);
	l->work += found.work;
	search_clear(&found);
}

/* Solve the subproblem exactly if it has no points, and small treewidth. */
static bool solve_exactly(subproblem *l, const core *c)
{
	int64_t cost, spent = 0;
	int32_t *x = sw_alloc((size_t)(c->n_nodes + 1) * sizeof *x);
	bool done = !c->points &&
	            core_eliminate(c, limits->exact_work * (c->entries + 1), x, &cost, &spent);
	l->work += spent;
	if (done && cost != SW_FORBIDDEN && cost + c->constant < l->upper)
		take_assignment(l, c, x);
	free(x);
	return done;
}

/* Set the level of the prices relative to the gap; a level that was settled for the parent may be
 * too low now. Without an incumbent it stays as remembered. */
static void set_level(const subproblem *l, passing *b)
{
	if (l->upper < NO_UPPER)
		b->level = limits->level * (double)(l->upper - l->bound);
}

/* Bound the reduced graph, search it, and fix. Returns the share of strategies and pairs that was
 * ruled out. */
static double tighten(subproblem *l, bool first, const halt *h)
{
	core c;
	passing b;
	certificate proof;
	int64_t fixed = 0;
	graph *g = &l->made->g;
	core_init(&c, g);
	bound_init(&b, &c, g);
	bound_add_knapsacks(&b, g);
	l->closed = solve_exactly(l, &c);
	if (!l->closed) {
		double reachable = (double)(l->upper - c.constant);
		set_level(l, &b);
		bound_run(&b, reachable, reachable, limits->sweeps * bound_sweep_work(&b), h);
		bound_certify(&b, &proof);
		l->bound = SW_MAX(l->bound, proof.bound);
		l->closed = l->bound >= l->upper;
	}
	if (!l->closed && first)
		search_subproblem(l, &c, &b, h);
	l->closed |= l->bound >= l->upper;
	if (!l->closed) {
		bound_remember(&b, g);
		fixed = bound_fix(&b, &proof, l->upper, true, g);
	}
	l->work += b.work + 6 * c.entries;
	double all = (double)(c.n_strategies + c.entries + 1);
	bound_clear(&b);
	core_clear(&c);
	return (double)fixed / all;
}

static bool reduce_subproblem(subproblem *l)
{
	graph *g = &l->made->g;
	int64_t before = g->work;
	graph_reduce(g, REDUCE_ALL);
	l->work += g->work - before;
	l->closed |= g->infeasible;
	return !l->closed;
}

/* Choose where to branch; close the subproblem if no node is left. */
static void branch_subproblem(subproblem *l, const halt *h)
{
	core c;
	passing b;
	core_init(&c, &l->made->g);
	bound_init(&b, &c, &l->made->g);
	bound_add_knapsacks(&b, &l->made->g);
	set_level(l, &b);
	bound_run(&b, (double)(l->upper - c.constant), INFINITY,
	          limits->decision_sweeps * bound_sweep_work(&b), h);
	if (!c.n_nodes) {
		search_subproblem(l, &c, &b, h);
		l->closed = true;
	} else {
		solver_choose_branching(&b, (double)(l->upper - c.constant), h, &l->branch);
		if (l->branch.node >= 0)
			l->branch.node = c.graph_node[l->branch.node];
	}
	bound_clear(&b);
	core_clear(&c);
}

/* Repeat bound, search and fixing while many strategies are ruled out; then branch. */
static void solve_subproblem(void *context, int64_t k)
{
	subproblem *l = (subproblem *)context + k;
	halt h = solver_halt(l->s);
	double lost = 1;
	make_graph(l);
	for (int round = 0;
	     round < limits->max_fixings && lost > limits->min_fixed && reduce_subproblem(l);
	     round++)
		lost = tighten(l, round == 0, &h);
	if (!l->closed && reduce_subproblem(l))
		branch_subproblem(l, &h);
}

/* ---- the tree --------------------------------------------------------------------------- */

/* Whether a is to be solved before b: least estimated bound first; when the open graphs are large,
 * deepest first. */
static bool comes_before(const branch_tree *t, const open_subproblem *a, const open_subproblem *b)
{
	if (t->entries > limits->max_entries && a->depth != b->depth)
		return a->depth > b->depth;
	return a->promise != b->promise ? a->promise < b->promise : a->depth > b->depth;
}

static open_subproblem take_next(branch_tree *t)
{
	size_t best = 0;
	for (size_t k = 1; k < t->open.len; k++)
		if (comes_before(t, &t->open.data[k], &t->open.data[best]))
			best = k;
	open_subproblem next = t->open.data[best];
	t->open.data[best] = t->open.data[--t->open.len];
	return next;
}

static void drop_open(branch_tree *t, open_subproblem *o)
{
	release(t, o->parent);
	free(o->keep);
}

static void push_child(branch_tree *t, const subproblem *l, bool second)
{
	int32_t n = l->made->g.nodes[l->branch.node].strategies;
	open_subproblem child = {.parent = l->made,
	                         .node = l->branch.node,
	                         .keep = sw_alloc((size_t)n),
	                         .bound = l->bound,
	                         .promise = l->branch.promise[second],
	                         .depth = l->from.depth + 1};
	for (int32_t i = 0; i < n; i++)
		child.keep[i] = l->branch.first[i] != second;
	l->made->references++;
	sw_vec_push(&t->open, child);
}

static void conclude_subproblem(branch_tree *t, subproblem *l)
{
	subproblem_graph *f = l->made;
	t->s->work += l->work;
	if (l->whole)
		solver_offer(t->s, l->whole);
	f->entries = entries_of(&f->g);
	t->entries += f->entries;
	if (l->from.parent)
		/* the new graph refers to it, beside the open subproblem */
		l->from.parent->references++;
	/* the run was halted before a branching was chosen */
	if (!l->closed && l->branch.node < 0) {
		sw_vec_push(&t->open, l->from);
		release(t, f);
	} else {
		if (!l->closed) {
			push_child(t, l, false);
			push_child(t, l, true);
		}
		release(t, f);
		drop_open(t, &l->from);
	}
	free(l->whole);
	free(l->branch.first);
}

static int64_t least_open(const branch_tree *t)
{
	int64_t least = INT64_MAX;
	for (size_t k = 0; k < t->open.len; k++)
		least = SW_MIN(least, t->open.data[k].bound);
	return least;
}

static void prune_open(branch_tree *t)
{
	int64_t upper = solver_upper(t->s, t->root->g);
	for (size_t k = t->open.len; k-- > 0;)
		if (t->open.data[k].bound >= upper) {
			drop_open(t, &t->open.data[k]);
			t->open.data[k] = t->open.data[--t->open.len];
		}
}

static void solve_batch(branch_tree *t)
{
	subproblem *batch = sw_alloc((size_t)limits->batch * sizeof *batch);
	int count = 0;
	for (; count < limits->batch && t->open.len; count++) {
		batch[count] = (subproblem){
			.s = t->s, .root = t->root, .from = take_next(t), .branch = {.node = -1}};
		batch[count].upper = solver_upper(t->s, t->root->g);
		batch[count].bound = batch[count].from.bound;
	}
	sw_parallel_for(count, t->s->threads, solve_subproblem, batch);
	for (int k = 0; k < count; k++)
		conclude_subproblem(t, &batch[k]);
	free(batch);
}

bool solver_branch(solver *s, const lineage *at, int64_t *bound)
{
	branch_tree t = {.s = s, .root = at};
	open_subproblem root = {.node = -1, .bound = *bound};
	sw_vec_push(&t.open, root);
	while (t.open.len && !solver_out_of_work(s)) {
		solve_batch(&t);
		prune_open(&t);
		/* With floored costs a closed subproblem may hold an assignment that is cheaper
		 * than the incumbent, so that the open ones' bounds do not bound the whole. */
		if (t.open.len && !at->g->shift) {
			*bound = SW_MAX(*bound, SW_MIN(least_open(&t), solver_upper(s, at->g)));
			solver_raise_bound(s, at->g, *bound);
		}
	}
	bool closed = !t.open.len;
	while (t.open.len)
		drop_open(&t, &t.open.data[--t.open.len]);
	sw_vec_clear(&t.open);
	return closed;
}
