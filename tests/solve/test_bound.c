/* The bound against exhaustive search: it is never above the optimum, never falls, and never
 * excludes a cheaper assignment. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reduced_graph.h"
#include "small_problems.h"
#include "solve/bound/dual_bound.h"

#define FIRST_SEED 20000
#define PROBLEMS (2400 / FEWER)

/* A random problem's graph, partly reduced (the bound needs supported strategies), and its
 * optimum. */
typedef struct subject {
	uint64_t seed;
	sw_rng rng;
	sw_problem problem;
	graph g;
	bool usable; /* it is not proved infeasible yet */
	bool few;    /* the assignments are few enough to be enumerated */
	bool feasible;
	int64_t optimum; /* of the graph, which is that of the problem */
} subject;

/* One in sixteen is tight; the others are small. */
static void make_subject(subject *s, uint64_t seed)
{
	static const unsigned steps[] = {REDUCE_SUPPORT,
	                                 REDUCE_SUPPORT,
	                                 REDUCE_SUPPORT | REDUCE_NORMAL,
	                                 REDUCE_SUPPORT | REDUCE_POINTS,
	                                 REDUCE_SUPPORT | REDUCE_NORMAL | REDUCE_MERGE |
	                                         REDUCE_LEAF | REDUCE_POINTS,
	                                 REDUCE_ALL};
	small_optimum optimum;
	*s = (subject){.seed = seed, .rng = {seed, 2}};
	if (seed % 16 == 0)
		tight_problem_make(&s->problem, seed);
	else
		small_problem_make(&s->problem, seed);
	tight_problem_solve(&s->problem, &optimum);
	graph_build(&s->g, &s->problem);
	graph_reduce(&s->g, steps[sw_rng_below(&s->rng, SW_COUNT(steps))]);
	s->usable = !s->g.infeasible;
	s->few = s->usable && left_assignments(&s->g) <= 3000;
	s->feasible = optimum.feasible;
	s->optimum = optimum.cost;
}

static void clear_subject(subject *s)
{
	graph_clear(&s->g);
	sw_problem_clear(&s->problem);
}

static void check_proof(const subject *s, const passing *b, const char *when)
{
	certificate proof;
	bound_certify(b, &proof);
	if (s->feasible && proof.bound > s->optimum)
		fail_msg("seed %llu, %s: bound %lld above the optimum %lld",
		         (unsigned long long)s->seed, when, (long long)proof.bound,
		         (long long)s->optimum);
}

/* Random prices at which the whole capacity costs about as much as a strategy. */
static void random_prices(subject *s)
{
	for (int32_t t = 0; t < s->g.points; t++) {
		double most = 60 / ((double)s->g.capacity[t] + 1);
		s->g.price[t] = sw_rng_below(&s->rng, 3) ? most * sw_rng_unit(&s->rng) : 0;
	}
}

/* Make the remembered messages and prices the best ones. */
static void recall(passing *b)
{
	double *given = b->best_given;
	memcpy(b->best_message, b->message, (size_t)b->c->n_messages * sizeof(double));
	memcpy(b->best_price, b->price, (size_t)b->c->points * sizeof(double));
	for (int s = 0; s < b->n_knapsacks; s++) {
		const knapsack *sack = &b->knapsacks[s];
		memcpy(given, sack->given, (size_t)sack->first[sack->members] * sizeof *given);
		given += sack->first[sack->members];
	}
}

static double reachable(const subject *s, const core *c)
{
	return s->feasible ? (double)(s->optimum - c->constant) : INFINITY;
}

static void run_long(const subject *s, passing *b)
{
	const halt never = {0};
	bound_run(b, reachable(s, b->c), INFINITY, 60 * bound_sweep_work(b), &never);
}

/* ---- the bound is valid ----------------------------------------------------------------- */

/* Run the bound as a round does: reductions before each run, knapsacks from the second on. */
static void check_run(subject *s, int round)
{
	core c;
	passing b;
	core_init(&c, &s->g);
	bound_init(&b, &c, &s->g);
	if (round)
		bound_add_knapsacks(&b, &s->g);
	check_proof(s, &b, "untouched");
	for (int k = 0; k < 3; k++) {
		bound_sweep(&b);
		check_proof(s, &b, "after a sweep");
	}
	run_long(s, &b);
	check_proof(s, &b, "after a run");
	bound_remember(&b, &s->g);
	recall(&b);
	check_proof(s, &b, "with the last messages");
	bound_clear(&b);
	core_clear(&c);
}

static void no_bound_is_above_the_optimum(void **state)
{
	(void)state;
	int with_knapsacks = 0;
	print_message("seeds %d to %d\n", FIRST_SEED, FIRST_SEED + PROBLEMS - 1);
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS; seed++) {
		subject s;
		make_subject(&s, seed);
		for (int round = 0; round < 3 && s.usable && !s.g.infeasible; round++) {
			check_run(&s, round);
			for (int32_t v = 0; v < s.g.n_nodes && round == 2; v++)
				with_knapsacks += s.g.nodes[v].given.len > 0;
			for (int32_t v = 0; v < s.g.n_nodes; v++)
				graph_touch(&s.g, v);
			s.g.usage_changed = true;
			graph_reduce(&s.g,
			             REDUCE_ALL & ~(seed % 3 ? 0u : (unsigned)REDUCE_DOMINANCE));
		}
		clear_subject(&s);
	}
	assert_true(with_knapsacks > PROBLEMS / 40);
}

static double wild_number(sw_rng *rng)
{
	static const double wild[] = {INFINITY, -INFINITY, NAN, 1e300, -1e300, 1e15, -1e15};
	if (sw_rng_below(rng, 20) == 0)
		return wild[sw_rng_below(rng, SW_COUNT(wild))];
	return 40 * sw_rng_unit(rng) - 20;
}

static void the_bound_holds_for_any_messages(void **state)
{
	(void)state;
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS; seed++) {
		subject s;
		core c;
		passing b;
		make_subject(&s, seed);
		if (s.usable) {
			core_init(&c, &s.g);
			random_prices(&s);
			bound_init(&b, &c, &s.g);
			bound_add_knapsacks(&b, &s.g);
			for (int64_t m = 0; m < c.n_messages; m++)
				b.best_message[m] = wild_number(&s.rng);
			for (int32_t t = 0; t < c.points; t++)
				b.best_price[t] = seed % 2 ? wild_number(&s.rng) : b.price[t];
			for (int64_t a = 0; a < b.n_choices; a++)
				b.best_given[a] = wild_number(&s.rng);
			check_proof(&s, &b, "wild");
			bound_clear(&b);
			core_clear(&c);
		}
		clear_subject(&s);
	}
}

/* ---- sweeps never lower the estimate, while something fits: else knapsacks stop at `unfit` --- */

static void a_sweep_never_lowers_the_estimate(void **state)
{
	(void)state;
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + 2 * PROBLEMS; seed++) {
		subject s;
		core c;
		passing b;
		make_subject(&s, seed);
		if (s.usable) {
			core_init(&c, &s.g);
			random_prices(&s);
			bound_init(&b, &c, &s.g);
			if (seed % 2)
				bound_add_knapsacks(&b, &s.g);
			for (int k = 0; k < 12; k++) {
				double before = b.estimate;
				bound_sweep(&b);
				if (k && s.feasible &&
				    !(b.estimate >= before - 1e-9 * (fabs(before) + 1)))
					fail_msg("seed %llu, sweep %d: %.12g after %.12g",
					         (unsigned long long)seed, k, b.estimate, before);
			}
			/* The estimate equals the certificate, except for its rounding. */
			certificate proof;
			bound_certify(&b, &proof);
			double exact = ldexp((double)proof.total, -proof.bits) - (double)c.constant;
			bool same = fabs(exact - b.best) <= 1e-3 + 1e-9 * fabs(exact);
			if (s.feasible && seed % 16 && !same)
				fail_msg("seed %llu: estimate %.12g, certified %.12g",
				         (unsigned long long)seed, b.best, exact);
			bound_clear(&b);
			core_clear(&c);
		}
		clear_subject(&s);
	}
}

static void reduced_costs_bound_every_assignment(void **state)
{
	(void)state;
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS; seed++) {
		subject s;
		core c;
		passing b;
		make_subject(&s, seed);
		if (s.few && s.feasible) {
			int32_t x[REDUCED_NODES] = {0};
			core_init(&c, &s.g);
			bound_init(&b, &c, &s.g);
			run_long(&s, &b);
			double *reduced = sw_alloc((size_t)(c.n_strategies + 1) * sizeof *reduced);
			bound_return(&b);
			bound_reduced_costs(&b, reduced);
			do {
				double least = b.best + (double)c.constant;
				int64_t cost = reduced_cost(&s.g, x);
				for (int32_t v = 0; v < c.n_nodes; v++) {
					least += reduced[c.first[v] + x[c.graph_node[v]]];
					assert_true(reduced[c.first[v] + x[c.graph_node[v]]] >= 0);
				}
				if (cost != SW_FORBIDDEN && left_within(&s.g, x) &&
				    (double)cost < least - 1e-6 * (fabs(least) + 1))
					fail_msg("seed %llu: cost %lld, at least %.12g",
					         (unsigned long long)seed, (long long)cost, least);
			} while (reduced_next(&s.g, x));
			free(reduced);
			bound_clear(&b);
			core_clear(&c);
		}
		clear_subject(&s);
	}
}

/* ---- probes ----------------------------------------------------------------------------- */

/* The optimum over assignments without barred strategies. */
static int64_t best_unbarred(const subject *s, const core *c, const bool *barred)
{
	int32_t x[REDUCED_NODES] = {0};
	int64_t best = SW_FORBIDDEN;
	do {
		bool allowed = true;
		for (int32_t v = 0; v < c->n_nodes; v++)
			allowed &= !barred[c->first[v] + x[c->graph_node[v]]];
		if (allowed && left_within(&s->g, x))
			best = SW_MIN(best, reduced_cost(&s->g, x));
	} while (reduced_next(&s->g, x));
	return best;
}

static void a_probe_bounds_its_half_and_changes_nothing(void **state)
{
	(void)state;
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS; seed++) {
		subject s;
		core c;
		passing b;
		make_subject(&s, seed);
		if (s.few && s.feasible) {
			core_init(&c, &s.g);
			random_prices(&s);
			bound_init(&b, &c, &s.g);
			bound_add_knapsacks(&b, &s.g);
			run_long(&s, &b);
			bool *barred = sw_alloc((size_t)c.n_strategies + 1);
			size_t bytes = (size_t)c.n_messages * sizeof(double);
			double *messages = sw_alloc(bytes + sizeof(double)), best = b.best;
			memcpy(messages, b.best_message, bytes);
			for (int32_t i = 0; i < c.n_strategies; i++)
				barred[i] = sw_rng_below(&s.rng, 4) == 0;
			double found = bound_probe(&b, barred, INFINITY, 3, 12);
			int64_t half = best_unbarred(&s, &c, barred);
			if (half != SW_FORBIDDEN &&
			    found > (double)(half - c.constant) + 1e-6 * (fabs(found) + 1))
				fail_msg("seed %llu: %.12g for a half whose optimum is %lld",
				         (unsigned long long)seed, found,
				         (long long)(half - c.constant));
			assert_true(b.best == best && !b.barred);
			assert_memory_equal(messages, b.best_message, bytes);
			assert_memory_equal(messages, b.message, bytes);
			check_proof(&s, &b, "after a probe");
			bound_sweep(&b);
			assert_true(b.estimate >= best - 1e-9 * (fabs(best) + 1));
			free(messages);
			free(barred);
			bound_clear(&b);
			core_clear(&c);
		}
		clear_subject(&s);
	}
}

/* ---- ruling out by the bound ------------------------------------------------------------ */

static int64_t choose_upper(subject *s, int64_t bound)
{
	static const int64_t above[] = {-3, 0, 1, 1, 2, 5, 20, 100};
	int64_t from = sw_rng_below(&s->rng, 3) && s->feasible ? s->optimum : bound;
	return from + above[sw_rng_below(&s->rng, SW_COUNT(above))];
}

static void fixing_keeps_every_cheaper_assignment(void **state)
{
	(void)state;
	int64_t fixed = 0;
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + 2 * PROBLEMS; seed++) {
		subject s;
		core c;
		passing b;
		certificate proof;
		make_subject(&s, seed);
		for (int round = 0; round < 2 && s.few && !s.g.infeasible; round++) {
			core_init(&c, &s.g);
			if (seed % 2)
				random_prices(&s);
			bound_init(&b, &c, &s.g);
			if (seed % 2 || round)
				bound_add_knapsacks(&b, &s.g);
			for (int64_t k = sw_rng_below(&s.rng, 3); k > 0; k--)
				bound_sweep(&b);
			if (sw_rng_below(&s.rng, 2))
				run_long(&s, &b);
			bound_certify(&b, &proof);
			bound_remember(&b, &s.g);
			int64_t upper = choose_upper(&s, proof.bound),
				before = reduced_count_below(&s.g, upper);
			int64_t count = bound_fix(&b, &proof, upper, sw_rng_below(&s.rng, 2), &s.g);
			int64_t after = reduced_count_below(&s.g, upper);
			fixed += count;
			if (before != after)
				fail_msg("seed %llu, upper %lld: %lld assignments, %lld after "
				         "fixing %lld",
				         (unsigned long long)seed, (long long)upper,
				         (long long)before, (long long)after, (long long)count);
			assert_true(isfinite(reduced_sum_memory(&s.g)));
			bound_clear(&b);
			core_clear(&c);
			graph_reduce(&s.g, seed % 4 ? REDUCE_ALL : REDUCE_SUPPORT);
		}
		clear_subject(&s);
	}
	assert_true(fixed > PROBLEMS);
}

/* ---- the memory of the graph ------------------------------------------------------------ */

static void certify_memory(const graph *g, bool knapsacks, double *value)
{
	core c;
	passing b;
	certificate proof;
	core_init(&c, g);
	bound_init(&b, &c, g);
	if (knapsacks)
		bound_add_knapsacks(&b, g);
	recall(&b);
	bound_certify(&b, &proof);
	*value = ldexp((double)proof.total, -proof.bits);
	bound_clear(&b);
	core_clear(&c);
}

/* Fill the memory only for parts that take part in a bound. */
static void fill_used_memory(graph *g, bool knapsacks)
{
	core c;
	passing b;
	core_init(&c, g);
	bound_init(&b, &c, g);
	if (knapsacks)
		bound_add_knapsacks(&b, g);
	recall(&b);
	b.best = 0;
	bound_remember(&b, g);
	bound_clear(&b);
	core_clear(&c);
}

/* The messages are multiples of 2^-20; the sums that a reduction forms are rounded again. */
#define ROUNDING 5e-3

static void compare_memory(subject *s, unsigned steps, bool knapsacks, bool bounded)
{
	double before, after;
	if (bounded) {
		core c;
		passing b;
		core_init(&c, &s->g);
		random_prices(s);
		bound_init(&b, &c, &s->g);
		if (knapsacks)
			bound_add_knapsacks(&b, &s->g);
		run_long(s, &b);
		bound_remember(&b, &s->g);
		bound_clear(&b);
		core_clear(&c);
	} else {
		reduced_fill_memory(&s->g, &s->rng, knapsacks);
		fill_used_memory(&s->g, knapsacks);
	}
	certify_memory(&s->g, knapsacks, &before);
	for (int32_t v = 0; v < s->g.n_nodes; v++)
		graph_touch(&s->g, v);
	s->g.usage_changed = true;
	graph_reduce(&s->g, steps);
	graph_reduce(&s->g, REDUCE_POINTS); /* subtracts what a step left in capacity_left */
	if (s->g.infeasible)
		return;
	assert_true(isfinite(reduced_sum_memory(&s->g)));
	certify_memory(&s->g, knapsacks, &after);
	if (!(after >= before - ROUNDING - 1e-9 * fabs(before)))
		fail_msg("seed %llu, steps %u, knapsacks %d, bounded %d: %.12g, then %.12g",
		         (unsigned long long)s->seed, steps, knapsacks, bounded, before, after);
}

static void reductions_keep_what_the_bound_proved(void **state)
{
	(void)state;
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS / 8; seed++)
		for (unsigned k = 0; k < 4 * 10; k++) {
			subject s;
			unsigned step = k / 4 < 8    ? 1u << k / 4
			                : k / 4 == 8 ? REDUCE_ALL
			                             : REDUCE_ALL & ~4u;
			make_subject(&s, seed);
			if (s.usable && s.g.points <= 12 && seed % 16)
				compare_memory(&s, step, k & 1, k & 2);
			clear_subject(&s);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_bound_is_above_the_optimum),
		cmocka_unit_test(the_bound_holds_for_any_messages),
		cmocka_unit_test(a_sweep_never_lowers_the_estimate),
		cmocka_unit_test(reduced_costs_bound_every_assignment),
		cmocka_unit_test(a_probe_bounds_its_half_and_changes_nothing),
		cmocka_unit_test(fixing_keeps_every_cheaper_assignment),
		cmocka_unit_test(reductions_keep_what_the_bound_proved),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
