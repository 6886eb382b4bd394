/* Branch and bound. Open subproblems are taken some at a time, each worked on by itself with the
 * bound, a short search and fixing, so that the answer does not depend on the number of threads. */
#include "solve/steps/solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* So many subproblems side by side, whatever the number of threads. */
#define BATCH 8
/* When the graphs of subproblems whose children are open have so many table entries, deepest first.
 */
#define MOST_ENTRIES ((int64_t)1 << 25)
/* Of one subproblem: sweeps before each fixing, and again, at most so often, while that fixes this
 * share. */
#define SWEEPS 60
#define FIXINGS 4
#define FIXED_MUCH 0.03
/* Prices aim this share of the gap above the bound: what was settled above is not any more. */
#define LEVEL 0.3
/* Work of its search, per table entry and strategy, and at least. */
#define SEARCH_WORK 6
#define LEAST_SEARCH 20000
/* Branching: so many candidates, and sweeps to probe each half of them. */
#define CANDIDATES 6
#define PROBE_SWEEPS 10
/* Sweeps that tell which strategies the relaxation mixes. */
#define SHARE_SWEEPS 20
#define IN_USE 0.01
/* Of a node that the relaxation has decided, per neighbour: below that of any other. */
#define LEAST_SCORE 1e-9
/* Work of elimination, per table entry, that is worth its exactness. */
#define EXACT_WORK 2000

/* A graph and the parent it was copied from, which must outlive it: assignments are mapped back
 * along. */
typedef struct subproblem_graph {
	graph g;
	lineage line;
	struct subproblem_graph *parent; /* NULL: the root's graph is the caller's */
	int references;
	int64_t entries;
} subproblem_graph;

/* A subproblem not looked at yet: the parent's graph with a node restricted. */
typedef struct open_subproblem {
	subproblem_graph *parent; /* NULL: the root */
	int32_t node;             /* of the parent's graph, or -1 */
	bool *keep;
	int64_t bound;  /* proved; in the root graph's units, as all graphs' */
	double promise; /* about what it will be */
	int depth;
} open_subproblem;

/* A subproblem at work. */
typedef struct subproblem {
	solver *s;
	const lineage *root;
	open_subproblem from;
	subproblem_graph *made;
	int64_t upper, bound;
	bool closed;
	int32_t *whole; /* NULL, or an assignment of the problem that `upper` is the cost of */
	int32_t branch_node;
	bool *first; /* strategies of the first child; the second has the others */
	double promise[2];
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

/* ---- one subproblem ------------------------------------------------------------------ */

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

static void materialise(subproblem *l)
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

/* Takes an assignment of the core if the evaluator finds it valid and cheaper than `upper`. */
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

/* From the decoded assignment, shortly. */
static void look_for_better(subproblem *l, const core *c, passing *b, const halt *h)
{
	local_search found;
	int64_t work = SW_MAX(SEARCH_WORK * (c->entries + c->n_strategies), LEAST_SEARCH);
	uint64_t seed = sw_hash_u64((uint64_t)l->from.depth, (uint64_t)c->n_strategies);
	if (solver_round_off(b, (double)(l->bound - c->constant), work, seed, h, &found) &&
	    found.cost + c->constant < l->upper)
		take_assignment(l, c, found.x);
	l->work += found.work;
	search_clear(&found);
}

/* ---- where to branch ----------------------------------------------------------------- */

typedef struct branch_candidate {
	int32_t node;
	double score;
} branch_candidate;

/* Splits a node's strategies at the average usage, where that splits those in use, else into the
 * strategy most in use and the others. Returns how undecided the node is: 0 if not at all. */
static double split(const passing *b, int32_t v, const double *worth, bool *first)
{
	const core *c = b->c;
	const double *share = b->share + c->first[v];
	int32_t n = core_strategies(c, v), most = 0;
	double total = 0, average = 0, low = INFINITY, high = -INFINITY, below = 0;
	for (int32_t i = 0; i < n; i++) {
		total += share[i];
		average += share[i] * worth[i];
		most = share[i] > share[most] ? i : most;
	}
	if (n < 2 || total <= 0)
		return 0;
	average /= total;
	for (int32_t i = 0; i < n; i++)
		if (share[i] > IN_USE * total) {
			low = SW_MIN(low, worth[i]);
			high = SW_MAX(high, worth[i]);
		}
	bool by_usage = high - low > 1e-9 * (fabs(high) + 1);
	for (int32_t i = 0; i < n; i++) {
		first[i] = by_usage ? worth[i] <= average : i == most;
		below += first[i] ? share[i] : 0;
	}
	double undecided = SW_MIN(below, total - below) / total;
	return undecided * (by_usage ? 1 + (high - low) : 1);
}

static void insert_candidate(branch_candidate *best, int32_t node, double score)
{
	for (int k = 0; k < CANDIDATES; k++)
		if (score > best[k].score) {
			memmove(best + k + 1, best + k,
			        (size_t)(CANDIDATES - 1 - k) * sizeof *best);
			best[k] = (branch_candidate){node, score};
			return;
		}
}

/* The least gain counts most. */
static double worth_branching(double first, double second, double now, double upper)
{
	double a = SW_MAX(SW_MIN(first, upper) - now, 1e-9),
	       b = SW_MAX(SW_MIN(second, upper) - now, 1e-9);
	return a * b;
}

static void first_against_rest(bool *first, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		first[i] = i == 0;
}

/* Splits every node; the candidates are those that the relaxation has decided least. */
static void list_candidates(const passing *b, bool *first, branch_candidate *best)
{
	const core *c = b->c;
	double *worth = sw_alloc((size_t)(c->n_strategies + 1) * sizeof *worth);
	core_price_usage(c, b->best_price, worth);
	for (int32_t v = 0; v < c->n_nodes; v++) {
		int32_t at = c->first[v], n = core_strategies(c, v);
		double score = split(b, v, worth + at, first + at);
		if (score <= 0 && n > 1) { /* something must be branched on */
			first_against_rest(first + at, n);
			score = LEAST_SCORE * (c->edge_first[v + 1] - c->edge_first[v] + 1);
		}
		insert_candidate(best, v, score);
	}
	free(worth);
}

/* About what each half of a node's strategies makes of the bound. `barred` is false, before and
 * after. */
static void probe_halves(passing *b, int32_t v, const bool *first, double upper, bool *barred,
                         double *half)
{
	const core *c = b->c;
	int32_t at = c->first[v], n = core_strategies(c, v);
	for (int side = 0; side < 2; side++) {
		for (int32_t i = 0; i < n; i++)
			barred[at + i] = first[at + i] == (side == 1);
		half[side] = bound_probe(b, barred, upper, LEVEL * (upper - b->best), PROBE_SWEEPS);
	}
	memset(barred + at, 0, (size_t)n);
}

static void take_branch(subproblem *l, const core *c, int32_t v, const bool *first)
{
	size_t n = (size_t)core_strategies(c, v);
	l->branch_node = c->graph_node[v];
	free(l->first);
	l->first = sw_alloc(n);
	memcpy(l->first, first + c->first[v], n);
}

static void choose_branch(subproblem *l, const core *c, passing *b, const halt *h)
{
	branch_candidate best[CANDIDATES] = {0};
	bool *first = sw_alloc((size_t)c->n_strategies + 1);
	bool *barred = sw_alloc((size_t)c->n_strategies + 1);
	double upper = (double)(l->upper - c->constant), most = -1;
	list_candidates(b, first, best);
	l->branch_node = -1;
	for (int k = 0; k < CANDIDATES && best[k].score > 0 && !halted(h); k++) {
		double half[2];
		probe_halves(b, best[k].node, first, upper, barred, half);
		double gain = worth_branching(half[0], half[1], b->best, upper);
		if (!(gain > most)) /* nor what is not a number */
			continue;
		most = gain;
		take_branch(l, c, best[k].node, first);
		l->promise[0] = half[0] + (double)c->constant;
		l->promise[1] = half[1] + (double)c->constant;
	}
	if (l->branch_node < 0 && !halted(h)) { /* whatever the scores */
		first_against_rest(first, core_strategies(c, 0));
		take_branch(l, c, 0, first);
	}
	free(first);
	free(barred);
}

/* Without points, and of small treewidth: the optimum itself. */
static bool solve_exactly(subproblem *l, const core *c)
{
	int64_t cost, spent = 0;
	int32_t *x = sw_alloc((size_t)(c->n_nodes + 1) * sizeof *x);
	bool done =
		!c->points && core_eliminate(c, EXACT_WORK * (c->entries + 1), x, &cost, &spent);
	l->work += spent;
	if (done && cost != SW_FORBIDDEN && cost + c->constant < l->upper)
		take_assignment(l, c, x);
	free(x);
	return done;
}

/* Without an incumbent the level is as remembered. */
static void set_level(const subproblem *l, passing *b)
{
	if (l->upper < NO_UPPER)
		b->level = LEVEL * (double)(l->upper - l->bound);
}

/* Bounds the reduced graph, and looks for something better. Returns the share that fixing took. */
static double tighten_leaf(subproblem *l, bool first, const halt *h)
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
		bound_run(&b, reachable, reachable, SWEEPS * bound_sweep_work(&b), h);
		bound_certify(&b, &proof);
		l->bound = SW_MAX(l->bound, proof.bound);
		l->closed = l->bound >= l->upper;
	}
	if (!l->closed && first)
		look_for_better(l, &c, &b, h);
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

static bool reduce_leaf_graph(subproblem *l)
{
	graph *g = &l->made->g;
	int64_t before = g->work;
	graph_reduce(g, REDUCE_ALL);
	l->work += g->work - before;
	l->closed |= g->infeasible;
	return !l->closed;
}

/* Chooses where to branch, or finds that nothing is left to choose. */
static void branch_leaf(subproblem *l, const halt *h)
{
	core c;
	passing b;
	core_init(&c, &l->made->g);
	bound_init(&b, &c, &l->made->g);
	bound_add_knapsacks(&b, &l->made->g);
	set_level(l, &b);
	bound_run(&b, (double)(l->upper - c.constant), INFINITY,
	          SHARE_SWEEPS * bound_sweep_work(&b), h);
	if (!c.n_nodes) {
		look_for_better(l, &c, &b, h);
		l->closed = true;
	} else {
		choose_branch(l, &c, &b, h);
	}
	bound_clear(&b);
	core_clear(&c);
}

/* Bound, search, fix, again while that fixes much; then where to branch. */
static void work_on(void *context, int64_t k)
{
	subproblem *l = (subproblem *)context + k;
	halt h = solver_halt(l->s);
	double lost = 1;
	materialise(l);
	for (int round = 0; round < FIXINGS && lost > FIXED_MUCH && reduce_leaf_graph(l); round++)
		lost = tighten_leaf(l, round == 0, &h);
	if (!l->closed && reduce_leaf_graph(l))
		branch_leaf(l, &h);
}

/* ---- the tree ------------------------------------------------------------------------ */

/* Least bound first; when memory is short, deepest first. */
static bool comes_before(const branch_tree *t, const open_subproblem *a, const open_subproblem *b)
{
	if (t->entries > MOST_ENTRIES && a->depth != b->depth)
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
	int32_t n = l->made->g.nodes[l->branch_node].strategies;
	open_subproblem child = {.parent = l->made,
	                         .node = l->branch_node,
	                         .keep = sw_alloc((size_t)n),
	                         .bound = l->bound,
	                         .promise = l->promise[second],
	                         .depth = l->from.depth + 1};
	for (int32_t i = 0; i < n; i++)
		child.keep[i] = l->first[i] != second;
	l->made->references++;
	sw_vec_push(&t->open, child);
}

static void conclude_leaf(branch_tree *t, subproblem *l)
{
	subproblem_graph *f = l->made;
	t->s->work += l->work;
	if (l->whole)
		solver_offer(t->s, l->whole);
	f->entries = entries_of(&f->g);
	t->entries += f->entries;
	if (l->from.parent)
		l->from.parent->references++;   /* by the child, beside the open node's */
	if (!l->closed && l->branch_node < 0) { /* halted before it knew */
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
	free(l->first);
}

static int64_t least_open(const branch_tree *t)
{
	int64_t least = INT64_MAX;
	for (size_t k = 0; k < t->open.len; k++)
		least = SW_MIN(least, t->open.data[k].bound);
	return least;
}

static void drop_hopeless(branch_tree *t)
{
	int64_t upper = solver_upper(t->s, t->root->g);
	for (size_t k = t->open.len; k-- > 0;)
		if (t->open.data[k].bound >= upper) {
			drop_open(t, &t->open.data[k]);
			t->open.data[k] = t->open.data[--t->open.len];
		}
}

static void work_on_batch(branch_tree *t)
{
	subproblem batch[BATCH];
	int count = 0;
	for (; count < BATCH && t->open.len; count++) {
		batch[count] = (subproblem){
			.s = t->s, .root = t->root, .from = take_next(t), .branch_node = -1};
		batch[count].upper = solver_upper(t->s, t->root->g);
		batch[count].bound = batch[count].from.bound;
	}
	sw_parallel_for(count, t->s->threads, work_on, batch);
	for (int k = 0; k < count; k++)
		conclude_leaf(t, &batch[k]);
}

bool solver_branch(solver *s, const lineage *at, int64_t *bound)
{
	branch_tree t = {.s = s, .root = at};
	open_subproblem root = {.node = -1, .bound = *bound};
	sw_vec_push(&t.open, root);
	while (t.open.len && !solver_out_of_work(s)) {
		work_on_batch(&t);
		drop_hopeless(&t);
		if (t.open.len &&
		    /* with floored costs what is closed may hold less than it seems */
		    !at->g->shift) {
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
