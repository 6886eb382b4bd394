/* Rounds, and the tree of subproblems, each by itself against exhaustive search. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "reduced_graph.h"
#include "small_problems.h"
#include "solve/steps/solver.h"

#define FIRST_SEED 40000
#define PROBLEMS (640 / FEWER)
/* Of the few that ThreadSanitizer is given all may be closed. */
#define SOME_STAY_OPEN (PROBLEMS >= 160)

typedef struct subject {
	uint64_t seed;
	sw_problem problem;
	small_optimum optimum;
	solver s;
	graph g;
	lineage line;
	int64_t bound;
	bool closed;
} subject;

/* Make a solver in the state that sw_solve has after the first reductions. `start` may be NULL. */
static void begin(subject *a, const int32_t *start, int64_t work_limit)
{
	static const int32_t zeros[120];
	a->bound = INT64_MIN / 4;
	a->s = (solver){.problem = &a->problem,
	                .options = {.quiet = true, .threads = 1},
	                .threads = 1,
	                .work_limit = work_limit,
	                .bound = INT64_MIN};
	a->s.best = sw_alloc((a->problem.nodes.len + 1) * sizeof(int32_t));
	sw_progress_start(&a->s.progress, "solve", true);
	solver_offer(&a->s, zeros);
	if (start)
		solver_offer(&a->s, start);
	graph_build(&a->g, &a->problem);
	graph_reduce(&a->g, REDUCE_ALL);
	a->line = (lineage){&a->g, NULL};
	a->closed = a->g.infeasible;
}

/* One in eight is tight; the others are small. */
static void make_subject(subject *a, uint64_t seed, const int32_t *start, int64_t work_limit)
{
	*a = (subject){.seed = seed};
	if (seed % 8 == 0)
		tight_problem_make(&a->problem, seed);
	else
		small_problem_make(&a->problem, seed);
	tight_problem_solve(&a->problem, &a->optimum);
	begin(a, start, work_limit);
}

static void clear_subject(subject *a)
{
	sw_progress_end(&a->s.progress);
	free(a->s.best);
	graph_clear(&a->g);
	sw_problem_clear(&a->problem);
}

static void fail_with(const subject *a, const char *what)
{
	fail_msg("seed %llu: %s; cost %lld, bound %lld; the optimum is %lld",
	         (unsigned long long)a->seed, what, (long long)a->s.best_value.cost,
	         (long long)a->bound, (long long)a->optimum.cost);
}

/* If the search is closed, nothing is cheaper than the incumbent; else the bound holds for every
 * cheaper assignment. */
static void check(const subject *a)
{
	bool feasible = solver_feasible(&a->s);
	if (feasible && (!a->optimum.feasible || a->s.best_value.cost < a->optimum.cost))
		fail_with(a, "cheaper than possible");
	if (!a->optimum.feasible)
		return;
	bool optimal = feasible && a->s.best_value.cost == a->optimum.cost;
	if (a->closed && !optimal)
		fail_with(a, "closed without the optimum");
	if (!a->closed && !optimal && a->bound > a->optimum.cost)
		fail_with(a, "the bound is none");
	if (a->s.bound > a->optimum.cost)
		fail_with(a, "the solver's bound is none");
}

static const int64_t enough = (int64_t)1 << 40;

static void the_tree_alone_finds_the_optimum(void **state)
{
	(void)state;
	print_message("seeds %d to %d\n", FIRST_SEED, FIRST_SEED + PROBLEMS - 1);
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS; seed++) {
		subject a;
		make_subject(&a, seed, NULL, enough);
		if (!a.closed)
			a.closed = solver_branch(&a.s, &a.line, &a.bound);
		if (!a.closed)
			fail_with(&a, "still open");
		check(&a);
		clear_subject(&a);
	}
}

static void the_tree_stopped_early_has_a_bound(void **state)
{
	(void)state;
	int open = 0;
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS; seed++) {
		subject a;
		make_subject(&a, seed, NULL, 1 + (int64_t)(seed * 7919 % 400000));
		if (!a.closed)
			a.closed = solver_branch(&a.s, &a.line, &a.bound);
		open += !a.closed;
		check(&a);
		clear_subject(&a);
	}
	print_message("%d left open\n", open);
	assert_true(open > 0 || !SOME_STAY_OPEN);
}

/* A subproblem that is halted before it knows where to branch is still open. */
static void a_deadline_within_a_subproblem_proves_nothing(void **state)
{
	(void)state;
	for (int k = 0; k < 20; k += FEWER) {
		subject a = {.seed = (uint64_t)k};
		large_problem_make(&a.problem, a.seed);
		begin(&a, NULL, enough);
		assert_false(a.closed);
		a.s.deadline_s = sw_now_s() + 0.002 * k;
		a.closed = solver_branch(&a.s, &a.line, &a.bound);
		if (a.closed)
			fail_with(&a, "closed within milliseconds");
		clear_subject(&a);
	}
}

/* The last fixing may leave a single assignment: then no node is left to branch on, but the
 * assignment is cheaper than the incumbent. */
static void the_only_assignment_that_fixing_leaves_is_found(void **state)
{
	(void)state;
	subject a = {.seed = 40818};
	tight_problem_make(&a.problem, a.seed);
	tight_problem_solve(&a.problem, &a.optimum);
	begin(&a, NULL, enough);
	assert_false(a.closed);
	a.closed = solver_branch(&a.s, &a.line, &a.bound);
	assert_true(a.closed);
	check(&a);
	clear_subject(&a);
}

static void the_optimum_as_a_start_is_kept_and_proved(void **state)
{
	(void)state;
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS; seed += 2) {
		subject a, b;
		make_subject(&a, seed, NULL, enough);
		make_subject(&b, seed, a.optimum.feasible ? a.optimum.assignment : NULL, enough);
		if (!b.closed)
			b.closed = solver_branch(&b.s, &b.line, &b.bound);
		assert_true(b.closed);
		check(&b);
		clear_subject(&a);
		clear_subject(&b);
	}
}

/* A round only rules out what no cheaper assignment uses: the optimum stays in the graph until it
 * is found. */
static void rounds_close_or_leave_the_optimum(void **state)
{
	(void)state;
	int open = 0;
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS; seed++) {
		subject a;
		int32_t x[REDUCED_NODES];
		int64_t cost;
		make_subject(&a, seed, NULL, seed % 3 ? enough : 20000);
		if (!a.closed)
			a.closed = solver_rounds(&a.s, &a.line, &a.bound);
		check(&a);
		open += !a.closed;
		bool optimal = solver_feasible(&a.s) && a.s.best_value.cost == a.optimum.cost;
		if (!a.closed && a.optimum.feasible && !optimal && left_assignments(&a.g) < 100000)
			if (!reduced_best(&a.g, x, &cost) || cost != a.optimum.cost)
				fail_with(&a, "the optimum is neither found nor left");
		if (!a.closed)
			a.s.work_limit = enough;
		if (!a.closed)
			a.closed = solver_branch(&a.s, &a.line, &a.bound);
		assert_true(a.closed);
		check(&a);
		clear_subject(&a);
	}
	print_message("%d left open by the rounds\n", open);
	assert_true(open > 0 || !SOME_STAY_OPEN);
}

/* ---- threads ---------------------------------------------------------------------------- */

/* Run rounds until some work is spent, then the tree until some more is, so that both run. */
static void run_with_threads(subject *a, int threads)
{
	*a = (subject){.seed = 1};
	large_problem_make(&a->problem, a->seed);
	begin(a, NULL, 20000000);
	a->s.threads = a->s.options.threads = threads;
	a->closed = solver_rounds(&a->s, &a->line, &a->bound);
	assert_false(a->closed);
	int64_t before = a->s.work;
	a->s.work_limit = before + 20000000;
	a->closed = solver_branch(&a->s, &a->line, &a->bound);
	assert_false(a->closed);
	assert_true(a->s.work > before);
}

static void threads_do_not_change_the_tree(void **state)
{
	(void)state;
	static const int threads[] = {2, 3, 8};
	subject one;
	run_with_threads(&one, 1);
	for (size_t k = 0; k < SW_COUNT(threads); k++) {
		subject more;
		run_with_threads(&more, threads[k]);
		assert_int_equal(more.s.work, one.s.work);
		assert_int_equal(more.bound, one.bound);
		assert_int_equal(more.s.bound, one.s.bound);
		assert_int_equal(more.s.best_value.cost, one.s.best_value.cost);
		assert_memory_equal(more.s.best, one.s.best,
		                    more.problem.nodes.len * sizeof *one.s.best);
		clear_subject(&more);
	}
	clear_subject(&one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tree_alone_finds_the_optimum),
		cmocka_unit_test(the_tree_stopped_early_has_a_bound),
		cmocka_unit_test(a_deadline_within_a_subproblem_proves_nothing),
		cmocka_unit_test(the_only_assignment_that_fixing_leaves_is_found),
		cmocka_unit_test(the_optimum_as_a_start_is_kept_and_proved),
		cmocka_unit_test(threads_do_not_change_the_tree),
		cmocka_unit_test(rounds_close_or_leave_the_optimum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
