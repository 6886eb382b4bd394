/* Rounds on one graph: reduce it, raise the bound and search for incumbents side by side, rule out
 * by the bound the strategies and pairs that no cheaper assignment uses, and repeat. */
#include "solve/steps/solver.h"
#include "solve/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const solve_round_limits *const limits = &default_limits.round;

enum { JOB_BOUND, JOB_DIVE, JOB_IMPROVE, JOBS };

typedef struct one_round {
	solver *s;
	const lineage *at;
	core c;
	passing b;
	double *price, *reduced;  /* of the round before; they guide the searches */
	local_search found[JOBS]; /* for JOB_BOUND and JOB_IMPROVE */
	bool searches[JOBS];
	dive dive;
	int64_t work;  /* of the bound; each search gets half */
	int64_t bound; /* the best one proved, in the graph's units */
	halt halt;
} one_round;

static int64_t upper_of(const one_round *r)
{
	return solver_upper(r->s, r->at->g);
}

static bool bound_meets_incumbent(const one_round *r)
{
	return r->bound >= upper_of(r);
}

static bool knapsacks_help(one_round *r)
{
	double gap = (double)upper_of(r) - (double)r->bound;
	r->s->knapsacks |=
		r->b.warm && solver_feasible(r->s) && r->b.level < limits->knapsack_level * gap;
	return r->s->knapsacks;
}

static void begin(one_round *r, solver *s, const lineage *at, int64_t bound)
{
	*r = (one_round){.s = s, .at = at, .bound = bound, .halt = solver_halt(s)};
	core_init(&r->c, at->g);
	bound_init(&r->b, &r->c, at->g);
	if (knapsacks_help(r))
		bound_add_knapsacks(&r->b, at->g);
	r->price = sw_alloc((size_t)(r->c.points + 1) * sizeof *r->price);
	memcpy(r->price, at->g->price, (size_t)r->c.points * sizeof *r->price);
	r->reduced = sw_alloc((size_t)(r->c.n_strategies + 1) * sizeof *r->reduced);
	if (r->b.warm)
		bound_reduced_costs(&r->b, r->reduced);
	s->work += r->c.entries + r->c.n_messages;
}

static void end(one_round *r)
{
	bound_clear(&r->b);
	core_clear(&r->c);
	free(r->price);
	free(r->reduced);
}

/* ---- the jobs of a round, each a pure function of the state before the round ------------ */

static double reachable(const one_round *r)
{
	return solver_feasible(r->s) ? (double)(upper_of(r) - r->c.constant) : INFINITY;
}

static void start_improving(one_round *r)
{
	int32_t *x = sw_alloc((size_t)(r->c.n_nodes + 1) * sizeof *x);
	local_search *found = &r->found[JOB_IMPROVE];
	solver_project(r->at, r->s->best, &r->c, x);
	search_init(found, &r->c, x, r->price, sw_hash_u64((uint64_t)r->s->rounds, JOB_IMPROVE));
	found->halt = r->halt;
	found->target = r->bound - r->c.constant;
	found->reduced = r->reduced;
	r->searches[JOB_IMPROVE] = true;
	free(x);
}

static void show_bound(void *context, double best)
{
	const one_round *r = context;
	double bound =
		SW_MAX(best + (double)r->c.constant, (double)r->bound) * ldexp(1, r->at->g->shift);
	if (fabs(bound) < 0x1p62)
		solver_show(r->s, SW_MAX((int64_t)bound, r->s->bound));
}

/* Run the bound, and round off the assignment that it decodes. */
static void run_bound(one_round *r)
{
	passing *b = &r->b;
	halt reporting = r->halt;
	reporting.report = show_bound;
	reporting.context = r;
	bound_run(b, reachable(r), reachable(r), r->work, &reporting);
	if (b->best >= reachable(r) || halted(&r->halt))
		return;
	uint64_t seed = sw_hash_u64((uint64_t)r->s->rounds, JOB_BOUND);
	solver_round_off(b, b->best, r->work / 2, seed, &r->halt, &r->found[JOB_BOUND]);
	r->searches[JOB_BOUND] = true;
}

static void run_job(void *context, int64_t job)
{
	one_round *r = context;
	local_search *found = &r->found[job];
	int64_t limit = found->work + r->work / 2;
	if (job == JOB_BOUND)
		run_bound(r);
	else if (job == JOB_DIVE && r->dive.at)
		solver_dive(&r->dive);
	else if (job == JOB_IMPROVE && r->searches[job] && search_repair(found, r->work / 4))
		search_improve(found, limit - found->work);
}

static void take_search(one_round *r, int job)
{
	local_search *found = &r->found[job];
	if (!r->searches[job])
		return;
	r->s->work += found->work;
	if (!solver_feasible(r->s) ||
	    (search_valid(found) && found->cost + r->c.constant < upper_of(r)))
		solver_offer_core(r->s, r->at, &r->c, found->x);
	search_clear(found);
}

static void take_dive(one_round *r)
{
	r->s->work += r->dive.work;
	if (r->dive.whole)
		solver_offer(r->s, r->dive.whole);
	free(r->dive.whole);
}

static void run_jobs(one_round *r)
{
	if (r->b.warm)
		r->dive = (dive){r->at, r->halt, sw_hash_u64((uint64_t)r->s->rounds, JOB_DIVE),
		                 NULL, 0};
	if (r->b.warm && solver_feasible(r->s))
		start_improving(r);
	sw_parallel_for(JOBS, r->s->threads, run_job, r);
	r->s->work += r->b.work;
	take_search(r, JOB_BOUND);
	take_search(r, JOB_IMPROVE);
	take_dive(r);
}

/* ---- the conclusions of a round --------------------------------------------------------- */

static void certify(one_round *r, certificate *proof)
{
	bound_certify(&r->b, proof);
	r->s->work += r->c.entries;
	r->bound = SW_MAX(r->bound, proof->bound);
}

/* Rule out strategies and pairs; returns the share that was ruled out. The incumbent itself stays,
 * since searches begin from it. */
static double fix(one_round *r, const certificate *proof)
{
	if (!solver_feasible(r->s) || !r->c.n_strategies)
		return 0;
	int64_t fixed = bound_fix(&r->b, proof, upper_of(r) + 1,
	                          r->c.entries <= limits->max_pair_entries, r->at->g);
	r->s->work += 4 * r->c.entries;
	return (double)fixed / (double)(r->c.n_strategies + r->c.entries);
}

/* Find the optimum without the capacity, if the treewidth is small; often it is within the
 * capacity. True if it answers the problem. */
static bool eliminate(one_round *r)
{
	int64_t cost, spent = 0;
	int32_t *x = sw_alloc((size_t)(r->c.n_nodes + 1) * sizeof *x);
	bool done = core_eliminate(
		&r->c,
		SW_MIN(r->s->work_limit / limits->elimination_share, limits->max_elimination), x,
		&cost, &spent);
	r->s->work += spent;
	if (done && cost == SW_FORBIDDEN)
		r->bound = NO_UPPER;
	else if (done) {
		solver_offer_core(r->s, r->at, &r->c, x);
		r->bound = SW_MAX(r->bound, cost + r->c.constant);
	}
	free(x);
	return done && bound_meets_incumbent(r);
}

static int64_t work_of_round(const solver *s, int64_t sweep, double sweeps)
{
	int64_t work = SW_MAX((int64_t)((double)sweep * sweeps), limits->min_work);
	return SW_MAX(SW_MIN(work, s->work_limit / limits->min_rounds), 1);
}

/* Whether the gap between incumbent and bound shrank by more than the share that counts as a
 * gain. */
static bool gap_shrank(const one_round *r, int64_t upper, int64_t bound)
{
	double before = (double)upper - (double)bound, now = (double)upper_of(r) - (double)r->bound;
	return now < (1 - limits->gain_gap) * before;
}

bool solver_rounds(solver *s, const lineage *at, int64_t *bound)
{
	double sweeps = limits->first_sweeps;
	bool closed = false;
	int idle = 0;
	for (s->rounds = 0; !closed && idle < limits->patience && !solver_out_of_work(s);
	     s->rounds++) {
		one_round r;
		certificate proof;
		int64_t before = at->g->work, upper = solver_upper(s, at->g), bound_before = *bound;
		double lost = 0;
		graph_reduce(at->g, REDUCE_ALL);
		s->work += at->g->work - before;
		if (at->g->infeasible)
			return true;
		begin(&r, s, at, *bound);
		closed = s->rounds == 0 && eliminate(&r);
		if (!closed) {
			r.work = work_of_round(s, bound_sweep_work(&r.b), sweeps);
			run_jobs(&r);
			certify(&r, &proof);
			closed = bound_meets_incumbent(&r);
		}
		if (!closed) {
			bound_remember(&r.b, at->g);
			lost = fix(&r, &proof);
		}
		sweeps = s->rounds ? sweeps * limits->growth : limits->second_sweeps;
		bool gained = lost > limits->gain_fixed || gap_shrank(&r, upper, bound_before);
		idle = gained || (!r.b.settled && r.c.entries > limits->small_entries) ? 0
		                                                                       : idle + 1;
		solver_raise_bound(s, at->g, r.bound);
		*bound = r.bound;
		end(&r);
	}
	if (!closed)
		graph_reduce(at->g, REDUCE_ALL); /* after the last round's fixing */
	return closed || at->g->infeasible;
}
