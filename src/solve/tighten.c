/* The bound, the incumbents it suggests, and what both together rule out, on one graph. */
#include "solve/solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Work of a search per table entry of the core, after which more is hopeless: of those along the
 * way, and of the long ones at the end. */
#define SHORT_ENOUGH 500
#define LONG_ENOUGH 20000
/* Sweeps' worth of work for the first valid assignment. */
#define FIRST_REPAIR 6

/* Messages have settled when a sweep gains less than this share of the gap, or after so many sweeps. */
#define SETTLED 0.02
#define LONGEST_UNSETTLED 40

typedef struct tightening {
	solver *s;
	const lineage *at;
	const tighten_limits *limits;
	core c;
	passing b;
	int32_t *x; /* scratch: an assignment of the core */
	int32_t *relaxed; /* solver.relaxed in the core's terms, or NULL */
	int64_t bound;
	bool first;
} tightening;

static int64_t upper_of(const tightening *t)
{
	return solver_upper(t->s, t->at->g);
}

static void begin(tightening *t)
{
	core_init(&t->c, t->at->g);
	bound_init(&t->b, &t->c);
	for (int32_t m = 0; m < t->c.moments; m++) {
		t->b.price[m] = t->at->g->price[m];
		if (t->b.price[m] > 0) /* good prices are near */
			t->b.step = 0.1;
	}
	t->x = sw_alloc((size_t)(t->c.n_nodes + 1) * sizeof *t->x);
	t->s->work += t->c.entries + t->c.n_messages;
	if (!t->s->relaxed || !t->c.moments || !t->first)
		return;
	t->relaxed = sw_alloc((size_t)(t->c.n_nodes + 1) * sizeof *t->relaxed);
	solver_project(t->at, t->s->relaxed, &t->c, t->relaxed);
}

static void end(tightening *t)
{
	if (t->b.best > -INFINITY)
		memcpy(t->at->g->price, t->b.best_price, (size_t)t->c.moments * sizeof(double));
	bound_clear(&t->b);
	core_clear(&t->c);
	free(t->x);
	free(t->relaxed);
}

/* ---- incumbents --------------------------------------------------------------------------------------- */

/* Several searches, each a pure function of its number, so that threads do not change the result. */
typedef struct searches {
	const tightening *t;
	search *all;
	const int32_t *const *start;
	int64_t work, repair_work;
} searches;

static void run_search(void *context, int64_t k)
{
	searches *group = context;
	const tightening *t = group->t;
	search *s = &group->all[k];
	search_init(s, &t->c, group->start[k], t->b.best_price, sw_hash_u64(0x5ead, (uint64_t)k));
	s->stop = t->s->options.stop;
	s->deadline_s = t->s->deadline_s;
	s->other[0] = t->relaxed;
	s->other[1] = t->b.decoded;
	s->target = t->bound - t->c.constant;
	s->work = t->c.n_strategies + t->c.entries / 8;
	if (search_repair(s, group->repair_work))
		search_improve(s, group->work);
}

static void run_searches(tightening *t, int count, const int32_t *const *start, int64_t work)
{
	searches group = {t, sw_alloc((size_t)count * sizeof(search)), start, work, work / 2};
	if (t->first && t->limits->sweeps > 100 && !solver_feasible(t->s)) /* something must be found */
		group.repair_work = SW_MAX(work, FIRST_REPAIR * t->c.entries);
	sw_parallel_for(count, t->s->threads, run_search, &group);
	int best = 0;
	for (int k = 0; k < count; k++) {
		const search *a = &group.all[k], *b = &group.all[best];
		t->s->work += a->work;
		if (search_valid(a) != search_valid(b) ? search_valid(a) : search_valid(a) && a->cost < b->cost)
			best = k;
	}
	const search *winner = &group.all[best];
	bool gains = search_valid(winner) && winner->cost + t->c.constant < upper_of(t);
	if (gains || !solver_feasible(t->s))
		solver_offer_core(t->s, t->at, &t->c, winner->x);
	for (int k = 0; k < count; k++)
		search_clear(&group.all[k]);
	free(group.all);
}

static int64_t enough(const tightening *t, int64_t work, int64_t per_entry)
{
	return SW_MIN(work, per_entry * (t->c.entries + t->c.n_strategies));
}

static void try_decoded(tightening *t)
{
	const int32_t *start = t->b.decoded;
	run_searches(t, 1, &start, enough(t, t->limits->improve_work / 16, SHORT_ENOUGH));
}

/* Half of them begin at the incumbent, the others at the decoded assignment. */
static void improve(tightening *t)
{
	int count = t->limits->searches;
	const int32_t **start = sw_alloc((size_t)count * sizeof *start);
	if (t->s->have_best)
		solver_project(t->at, t->s->best, &t->c, t->x);
	else
		memcpy(t->x, t->b.decoded, (size_t)t->c.n_nodes * sizeof *t->x);
	for (int k = 0; k < count; k++)
		start[k] = k % 2 ? t->b.decoded : t->x;
	run_searches(t, count, start, enough(t, t->limits->improve_work, LONG_ENOUGH) / count);
	free(start);
}

/* ---- the bound --------------------------------------------------------------------------------------------- */

static bool certify(tightening *t, certificate *proof)
{
	bound_certify(&t->b, proof);
	t->s->work += t->c.entries;
	t->bound = SW_MAX(t->bound, proof->bound);
	return t->bound >= upper_of(t);
}

static double hoped_upper(const tightening *t)
{
	if (solver_feasible(t->s))
		return (double)(upper_of(t) - t->c.constant);
	return t->b.estimate + 0.05 * fabs(t->b.estimate) + 1;
}

/* Whether the last sweeps gained enough; if not, the steps get shorter. */
static bool stalls(tightening *t, double *checked)
{
	double missing = hoped_upper(t) - t->b.best;
	bool little = t->b.best - *checked < 0.01 * missing;
	*checked = t->b.best;
	if (little && t->c.moments)
		bound_retreat(&t->b, 0.7);
	return little;
}

/* Prices move only once the messages have settled: before that the decoded assignments mislead. */
static void reprice(tightening *t, int sweeps, int possible, double gained, bool *settled)
{
	double missing = hoped_upper(t) - t->b.estimate;
	*settled |= gained < SETTLED * missing || sweeps >= SW_MIN(LONGEST_UNSETTLED, possible / 4);
	if (*settled && t->c.moments && sweeps % 2 == 0)
		bound_reprice(&t->b, hoped_upper(t));
}

static int possible_sweeps(const tightening *t)
{
	int64_t sweeps = t->limits->bound_work / (2 * t->c.entries + 4 * t->c.n_messages + 1) + 1;
	return (int)SW_MIN(sweeps, t->limits->sweeps);
}

/* Sweeps until the bound meets the incumbent or hardly moves. True if it met. */
static bool sweep(tightening *t)
{
	int patience = t->c.moments ? 14 : 3;
	bool settled = false;
	double checked = -INFINITY, last = -INFINITY;
	int possible = possible_sweeps(t);
	certificate proof;
	for (int k = 1; k <= possible && !solver_out_of_work(t->s); k++) {
		int64_t before = t->b.work;
		bound_sweep(&t->b);
		t->s->work += t->b.work - before;
		if (t->first && (k == 2 || k == SW_MIN(20, possible / 3) || k == SW_MIN(60, possible - 1)))
			try_decoded(t);
		if (k % 8 == 0 && stalls(t, &checked) && --patience == 0)
			break;
		if (k % 8 == 0 && t->b.best + (double)t->c.constant > (double)upper_of(t) - 1 && certify(t, &proof))
			return true;
		reprice(t, k, possible, t->b.estimate - last, &settled);
		last = t->b.estimate;
	}
	return certify(t, &proof);
}

/* Drops what no assignment cheaper than the incumbent uses. Returns the share of strategies lost. */
static double fix(tightening *t)
{
	graph *g = t->at->g;
	if (!solver_feasible(t->s) || !t->c.n_strategies)
		return 0;
	bool *keep = sw_alloc((size_t)t->c.n_strategies);
	memset(keep, 1, (size_t)t->c.n_strategies);
	certificate proof;
	bound_certify(&t->b, &proof);
	int64_t fixed = bound_fix(&t->b, &proof, upper_of(t), keep);
	t->s->work += 4 * t->c.entries;
	for (int32_t v = 0; v < t->c.n_nodes && !g->infeasible; v++)
		graph_keep(g, t->c.graph_node[v], keep + t->c.first[v]);
	free(keep);
	return (double)fixed / t->c.n_strategies;
}

/* ---- one round ------------------------------------------------------------------------------------------------ */

/* Small treewidth and no capacity: the optimum itself. */
static bool solve_exactly(tightening *t)
{
	int64_t cost, spent = 0;
	if (t->c.moments || !core_eliminate(&t->c, t->s->work_limit / 8, t->x, &cost, &spent)) {
		t->s->work += spent;
		return false;
	}
	t->s->work += spent;
	bool gains = cost != SW_FORBIDDEN && cost + t->c.constant < upper_of(t);
	if (gains)
		solver_offer_core(t->s, t->at, &t->c, t->x);
	t->bound = cost == SW_FORBIDDEN ? upper_of(t) : cost + t->c.constant;
	return t->bound >= upper_of(t); /* with shifted costs it may fall short */
}

static bool close_round(tightening *t, double *lost)
{
	*lost = 0;
	if (solve_exactly(t))
		return true;
	if (sweep(t))
		return true;
	if (t->limits->searches && t->first && !solver_out_of_work(t->s))
		improve(t);
	if (t->bound >= upper_of(t))
		return true;
	*lost = fix(t);
	return false;
}

bool solver_tighten(solver *s, const lineage *at, const tighten_limits *limits, int64_t *bound)
{
	bool closed = false;
	double lost = 1;
	for (int round = 0; !closed && lost > 0.02 && round < 12; round++) {
		int64_t before = at->g->work;
		graph_reduce(at->g, REDUCE_ALL);
		s->work += at->g->work - before;
		if (at->g->infeasible)
			return true;
		tightening t = {.s = s, .at = at, .limits = limits, .bound = *bound, .first = round == 0};
		begin(&t);
		closed = close_round(&t, &lost);
		*bound = t.bound;
		end(&t);
		if (solver_out_of_work(s))
			break;
	}
	return closed || at->g->infeasible;
}
