/* The whole solver against exhaustive search, and its promises: bounds, starts, threads, limits. */
#include "test.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "small_problems.h"
#include "solve/contest_problem.h"

#define FIRST_SEED 5000
#define PROBLEMS (5000 / FEWER)
#define TIGHT_SEED 50000
#define TIGHT_PROBLEMS (40 / FEWER)

static const sw_solve_options quiet = {.quiet = true, .threads = 1};

static void check_consistent(uint64_t seed, const sw_problem *problem, const sw_solution *solution)
{
	sw_evaluation value;
	if (!solution->assignment)
		return;
	sw_problem_evaluate(problem, solution->assignment, &value);
	bool feasible =
		solution->answer == SW_SOLVED_OPTIMAL || solution->answer == SW_SOLVED_FEASIBLE;
	bool ok = value.peak_usage == solution->peak_usage &&
	          value.peak_point == solution->peak_point;
	if (feasible)
		ok = ok && value.allowed && value.within && value.cost == solution->cost;
	if (!ok)
		fail_msg("seed %llu: the evaluator contradicts the solution",
		         (unsigned long long)seed);
}

static void fail_with(uint64_t seed, const sw_solution *solution, const small_optimum *optimum)
{
	fail_msg("seed %llu: answer %d, cost %lld, bound %lld; the optimum is %d %lld",
	         (unsigned long long)seed, (int)solution->answer, (long long)solution->cost,
	         (long long)solution->lower_bound, optimum->feasible, (long long)optimum->cost);
}

static void check_solved(uint64_t seed, const sw_problem *problem, const small_optimum *optimum)
{
	sw_solution solution;
	assert_int_equal(sw_solve(problem, &quiet, &solution, NULL), SW_OK);
	check_consistent(seed, problem, &solution);
	bool solved = optimum->feasible
	                      ? solution.answer == SW_SOLVED_OPTIMAL &&
	                                solution.cost == optimum->cost &&
	                                solution.lower_bound == optimum->cost
	                      : solution.answer == SW_SOLVED_INFEASIBLE && !solution.assignment;
	if (!solved)
		fail_with(seed, &solution, optimum);
	sw_solution_clear(&solution);
}

/* Whatever stopped the search, the bound is valid and the solution is what the evaluator
 * computes. */
static void check_claims(uint64_t seed, const sw_problem *problem, const small_optimum *optimum,
                         const sw_solve_options *options)
{
	sw_solution solution;
	assert_int_equal(sw_solve(problem, options, &solution, NULL), SW_OK);
	check_consistent(seed, problem, &solution);
	bool found = solution.answer == SW_SOLVED_OPTIMAL || solution.answer == SW_SOLVED_FEASIBLE;
	bool honest = optimum->feasible ? solution.answer != SW_SOLVED_INFEASIBLE &&
	                                          solution.lower_bound <= optimum->cost
	                                : !found;
	if (found)
		honest = honest && solution.cost >= optimum->cost &&
		         solution.lower_bound <= solution.cost;
	if (solution.answer == SW_SOLVED_OPTIMAL)
		honest = honest && solution.cost == optimum->cost;
	if (!honest)
		fail_with(seed, &solution, optimum);
	sw_solution_clear(&solution);
}

static void small_problems_are_solved_to_the_optimum(void **state)
{
	(void)state;
	print_message("seeds %d to %d\n", FIRST_SEED, FIRST_SEED + PROBLEMS - 1);
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS; seed++) {
		sw_problem problem;
		small_optimum optimum;
		small_problem_make(&problem, seed);
		small_problem_solve(&problem, &optimum);
		check_solved(seed, &problem, &optimum);
		sw_problem_clear(&problem);
	}
}

static void tight_problems_are_solved_to_the_optimum(void **state)
{
	(void)state;
	print_message("seeds %d to %d\n", TIGHT_SEED, TIGHT_SEED + TIGHT_PROBLEMS - 1);
	for (uint64_t seed = TIGHT_SEED; seed < TIGHT_SEED + TIGHT_PROBLEMS; seed++) {
		sw_problem problem;
		small_optimum optimum;
		tight_problem_make(&problem, seed);
		tight_problem_solve(&problem, &optimum);
		check_solved(seed, &problem, &optimum);
		sw_problem_clear(&problem);
	}
}

/* Depth-first and plain exhaustive search agree. */
static void depth_first_search_agrees_with_exhaustive_search(void **state)
{
	(void)state;
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS / 10; seed++) {
		sw_problem problem;
		small_optimum all, descent;
		small_problem_make(&problem, seed);
		small_problem_solve(&problem, &all);
		tight_problem_solve(&problem, &descent);
		assert_int_equal(descent.feasible, all.feasible);
		assert_int_equal(descent.cost, all.cost);
		sw_problem_clear(&problem);
	}
}

/* ---- stopped anywhere ------------------------------------------------------------------- */

static void any_work_limit_leaves_a_valid_answer(void **state)
{
	(void)state;
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS / 2; seed++) {
		sw_problem problem;
		small_optimum optimum;
		sw_solve_options options = quiet;
		bool tight = seed % 16 == 0;
		options.work_limit = 1 + (int64_t)(seed * 7919 % (tight ? 3000000 : 2000));
		if (tight)
			tight_problem_make(&problem, seed);
		else
			small_problem_make(&problem, seed);
		tight_problem_solve(&problem, &optimum);
		check_claims(seed, &problem, &optimum, &options);
		sw_problem_clear(&problem);
	}
}

/* ---- gap and cutoff --------------------------------------------------------------------- */

#define ENOUGH 0.05

static void check_enough(uint64_t seed, const sw_problem *problem, const small_optimum *optimum,
                         const sw_solve_options *wanted, int64_t *work)
{
	sw_solution solution;
	check_claims(seed, problem, optimum, wanted);
	assert_int_equal(sw_solve(problem, wanted, &solution, NULL), SW_OK);
	*work += solution.work;
	double above = (double)solution.cost - (double)solution.lower_bound;
	bool near = above <= wanted->gap * (double)solution.cost;
	bool beyond = wanted->cutoff > 0 && solution.lower_bound >= wanted->cutoff;
	bool found = optimum->feasible && solution.assignment;
	if (found && !near && !beyond)
		fail_with(seed, &solution, optimum);
	if (found && optimum->cost < wanted->cutoff && solution.cost != optimum->cost && !near)
		fail_with(seed, &solution, optimum);
	sw_solution_clear(&solution);
}

/* A gap and a cutoff save work and are kept: the answer is as near to its bound as the gap says,
 * and an assignment cheaper than the cutoff is found. */
static void a_gap_and_a_cutoff_end_the_search_and_are_kept(void **state)
{
	(void)state;
	int64_t whole = 0, near = 0, cut = 0, kept = 0;
	for (uint64_t seed = TIGHT_SEED; seed < TIGHT_SEED + TIGHT_PROBLEMS; seed++) {
		sw_problem problem;
		small_optimum optimum;
		tight_problem_make(&problem, seed);
		tight_problem_solve(&problem, &optimum);
		if (optimum.feasible && optimum.cost > 10) {
			sw_solve_options wanted = quiet;
			check_enough(seed, &problem, &optimum, &wanted, &whole);
			wanted.gap = ENOUGH;
			check_enough(seed, &problem, &optimum, &wanted, &near);
			wanted.gap = 0;
			wanted.cutoff = optimum.cost / 2;
			check_enough(seed, &problem, &optimum, &wanted, &cut);
			wanted.cutoff = optimum.cost + 1;
			check_enough(seed, &problem, &optimum, &wanted, &kept);
		}
		sw_problem_clear(&problem);
	}
	assert_true(near < whole);
	assert_true(cut < whole);
	assert_int_equal(kept, whole);
}

typedef struct stopper {
	atomic_bool *stop;
	int64_t microseconds;
} stopper;

/* As a signal handler would set it: the flag is neither atomic nor locked. */
#if defined(__GNUC__)
__attribute__((no_sanitize_thread))
#endif
static void *
stop_after(void *context)
{
	const stopper *s = context;
	struct timespec pause = {s->microseconds / 1000000, s->microseconds % 1000000 * 1000};
	nanosleep(&pause, NULL);
	*s->stop = true;
	return NULL;
}

static void a_stop_flag_at_any_time_leaves_a_valid_answer(void **state)
{
	(void)state;
	sw_rng rng = {6, 6};
	for (uint64_t seed = TIGHT_SEED; seed < TIGHT_SEED + TIGHT_PROBLEMS; seed++) {
		sw_problem problem;
		small_optimum optimum;
		pthread_t thread;
		atomic_bool stop = false;
		stopper s = {&stop, sw_rng_below(&rng, 30000)};
		sw_solve_options options = {
			.quiet = true, .threads = 1 + (int)(seed % 3), .stop = &stop};
		tight_problem_make(&problem, seed);
		tight_problem_solve(&problem, &optimum);
		assert_int_equal(pthread_create(&thread, NULL, stop_after, &s), 0);
		check_claims(seed, &problem, &optimum, &options);
		pthread_join(thread, NULL);
		sw_problem_clear(&problem);
	}
}

/* The problem is far too large to be solved so soon: a claim that it is solved would be false. */
static void a_deadline_proves_nothing(void **state)
{
	(void)state;
	for (int k = 0; k < 12; k++) {
		sw_problem problem;
		sw_solution solution;
		sw_solve_options options = {
			.quiet = true, .threads = 2, .time_limit_s = 0.005 * (1 << k % 6)};
		large_problem_make(&problem, (uint64_t)k);
		assert_int_equal(sw_solve(&problem, &options, &solution, NULL), SW_OK);
		assert_true(solution.timed_out);
		assert_true(solution.answer == SW_SOLVED_FEASIBLE ||
		            solution.answer == SW_SOLVED_UNKNOWN);
		check_consistent((uint64_t)k, &problem, &solution);
		sw_solution_clear(&solution);
		sw_problem_clear(&problem);
	}
}

/* ---- instances of the contest that the solver closes ------------------------------------ */

static void contest_instances_are_solved_to_the_optimum(void **state)
{
	(void)state;
	static const struct {
		const char *path;
		int64_t optimum;
	} cases[] = {{SW_SOURCE_DIR "/tests/problems/asplos-2025-iopddl-B.json.gz", 532843},
	             {SW_SOURCE_DIR "/tests/problems/asplos-2025-iopddl-G.json.gz", 217039}};
	for (size_t k = 0; k < SW_COUNT(cases); k++) {
		sw_problem problem;
		sw_solution solution;
		sw_error err = {0};
		const sw_solve_options options = {.quiet = true};
		assert_int_equal(sw_problem_read(&problem, cases[k].path, true, &err), SW_OK);
		assert_int_equal(sw_solve(&problem, &options, &solution, NULL), SW_OK);
		assert_int_equal(solution.answer, SW_SOLVED_OPTIMAL);
		assert_int_equal(solution.cost, cases[k].optimum);
		assert_int_equal(solution.lower_bound, cases[k].optimum);
		check_consistent(k, &problem, &solution);
		sw_solution_clear(&solution);
		sw_problem_clear(&problem);
	}
}

/* ---- a problem too large for the work allowed, with a capacity that binds --------------- */

static void threads_change_nothing(void **state)
{
	(void)state;
	static const int threads[] = {2, 3, 8};
	sw_problem problem;
	sw_solution one, more;
	sw_solve_options options = {.quiet = true, .threads = 1, .work_limit = 30000000};
	large_problem_make(&problem, 1);
	assert_int_equal(sw_solve(&problem, &options, &one, NULL), SW_OK);
	for (size_t k = 0; k < SW_COUNT(threads); k++) {
		options.threads = threads[k];
		assert_int_equal(sw_solve(&problem, &options, &more, NULL), SW_OK);
		assert_int_equal(one.answer, more.answer);
		assert_int_equal(one.lower_bound, more.lower_bound);
		assert_int_equal(one.work, more.work);
		assert_memory_equal(one.assignment, more.assignment, 120 * sizeof(int32_t));
		sw_solution_clear(&more);
	}
	sw_solution_clear(&one);
	sw_problem_clear(&problem);
}

static void the_answer_is_no_worse_than_a_start(void **state)
{
	(void)state;
	sw_problem problem;
	sw_solution best, again;
	sw_solve_options options = {.quiet = true, .threads = 1, .work_limit = 30000000};
	int32_t wrong[120];
	large_problem_make(&problem, 2);
	assert_int_equal(sw_solve(&problem, &options, &best, NULL), SW_OK);
	assert_true(best.answer == SW_SOLVED_FEASIBLE || best.answer == SW_SOLVED_OPTIMAL);
	for (int v = 0; v < 120; v++)
		wrong[v] = 77; /* out of range: it is ignored */
	const int32_t *starts[] = {wrong, best.assignment};
	options.n_starts = 2;
	options.starts = starts;
	options.work_limit = 1;
	assert_int_equal(sw_solve(&problem, &options, &again, NULL), SW_OK);
	assert_true(again.answer == SW_SOLVED_FEASIBLE || again.answer == SW_SOLVED_OPTIMAL);
	assert_true(again.cost <= best.cost);
	assert_true(again.lower_bound <= best.cost);
	sw_solution_clear(&best);
	sw_solution_clear(&again);
	sw_problem_clear(&problem);
}

static void a_stop_flag_ends_the_search_at_once(void **state)
{
	(void)state;
	sw_problem problem;
	sw_solution solution;
	atomic_bool stop = true;
	sw_solve_options options = {.quiet = true, .threads = 1, .stop = &stop};
	large_problem_make(&problem, 3);
	assert_int_equal(sw_solve(&problem, &options, &solution, NULL), SW_OK);
	assert_true(solution.timed_out);
	assert_non_null(solution.assignment);
	sw_solution_clear(&solution);
	sw_problem_clear(&problem);
}

/* ---- the edges of the number range ------------------------------------------------------ */

static void huge_costs_are_exact_or_saturate(void **state)
{
	(void)state;
	const int64_t huge = (int64_t)1 << 57;
	int64_t cost[3] = {huge - 1, huge, -huge}, table[9] = {0, 5, 9, 5, huge, 9, 9, 9, huge};
	sw_problem problem;
	sw_solution solution;
	sw_evaluation value;
	sw_problem_init(&problem);
	for (int v = 0; v < 9; v++) {
		sw_problem_add_node(&problem, 3, cost);
		if (v)
			sw_problem_add_edge(&problem, v - 1, v,
			                    sw_problem_add_table(&problem, 3, 3, table));
	}
	const int32_t all_first[9] = {0}, all_last[9] = {2, 2, 2, 2, 2, 2, 2, 2, 2};
	sw_problem_evaluate(&problem, all_first, &value);
	assert_int_equal(value.cost, 9 * (huge - 1));
	sw_problem_evaluate(&problem, all_last, &value); /* 9 * -2^57 + 8 * 2^57 */
	assert_int_equal(value.cost, -huge);
	assert_int_equal(sw_solve(&problem, &quiet, &solution, NULL), SW_OK);
	sw_problem_evaluate(&problem, solution.assignment, &value);
	assert_int_equal(value.cost, solution.cost);
	/* Floored to a multiple of 2^shift, -2^57 + 72 costs no more; the bound is still valid. */
	assert_true(solution.cost <= -huge + 72 && solution.lower_bound <= -huge);
	sw_solution_clear(&solution);
	sw_problem_clear(&problem);
}

/* Sums that leave 64 bits are clamped: nothing may be claimed about them. */
static void clamped_costs_prove_nothing(void **state)
{
	(void)state;
	const int64_t large = (int64_t)1 << 61,
		      costs[2][2] = {{2 * large, large}, {-2 * large, -large}};
	for (int k = 0; k < 2; k++) {
		const int64_t *cost = costs[k];
		sw_problem problem;
		sw_solution solution;
		sw_problem_init(&problem);
		for (int v = 0; v < 8; v++)
			sw_problem_add_node(&problem, 2, cost);
		assert_int_equal(sw_solve(&problem, &quiet, &solution, NULL), SW_OK);
		assert_int_equal(solution.answer, SW_SOLVED_FEASIBLE);
		assert_int_equal(solution.lower_bound, INT64_MIN);
		sw_solution_clear(&solution);
		sw_problem_clear(&problem);
	}
}

/* Node i either uses point i, or costs one and uses the next point: so each one proves that the
 * next must pay. A reduction that gave up halfway forgot the usage of the last node. */
static void a_long_chain_of_reductions_is_followed_to_its_end(void **state)
{
	(void)state;
	for (int32_t n = 100; n <= 1600; n *= 4) {
		const int64_t nothing = 0, one = 1, cost[2] = {0, 1}, first[2] = {1, 0},
			      second[2] = {0, 1};
		sw_problem problem;
		sw_solution solution;
		sw_problem_init(&problem);
		problem.capacity = 1;
		sw_problem_add_node(&problem, 1, &nothing);
		sw_problem_add_span(&problem, 0, 1, 2, &one);
		for (int32_t i = 1; i <= n; i++) {
			sw_problem_add_node(&problem, 2, cost);
			sw_problem_add_span(&problem, i, i, i + 1, first);
			sw_problem_add_span(&problem, i, i + 1, i + 2, second);
		}
		assert_int_equal(sw_solve(&problem, &quiet, &solution, NULL), SW_OK);
		assert_int_equal(solution.answer, SW_SOLVED_OPTIMAL);
		assert_int_equal(solution.cost, n);
		sw_solution_clear(&solution);
		sw_problem_clear(&problem);
	}
}

static void huge_costs_that_differ_by_one_are_bounded(void **state)
{
	(void)state;
	int64_t large[2] = {(int64_t)1 << 60, ((int64_t)1 << 60) + 1}, same[4] = {0, 1, 1, 0};
	sw_problem problem;
	sw_solution solution;
	sw_problem_init(&problem);
	for (int v = 0; v < 2; v++)
		sw_problem_add_node(&problem, 2, large);
	sw_problem_add_edge(&problem, 0, 1, sw_problem_add_table(&problem, 2, 2, same));
	assert_int_equal(sw_solve(&problem, &quiet, &solution, NULL), SW_OK);
	assert_true(solution.lower_bound <= 2 * large[0] && solution.cost >= 2 * large[0]);
	sw_solution_clear(&solution);
	sw_problem_clear(&problem);
}

static void a_problem_without_nodes_costs_nothing(void **state)
{
	(void)state;
	sw_problem problem;
	sw_solution solution;
	sw_problem_init(&problem);
	assert_int_equal(sw_solve(&problem, &quiet, &solution, NULL), SW_OK);
	assert_int_equal(solution.answer, SW_SOLVED_OPTIMAL);
	assert_int_equal(solution.cost, 0);
	assert_int_equal(solution.lower_bound, 0);
	sw_solution_clear(&solution);
	sw_problem_clear(&problem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_problems_are_solved_to_the_optimum),
		cmocka_unit_test(tight_problems_are_solved_to_the_optimum),
		cmocka_unit_test(depth_first_search_agrees_with_exhaustive_search),
		cmocka_unit_test(any_work_limit_leaves_a_valid_answer),
		cmocka_unit_test(a_gap_and_a_cutoff_end_the_search_and_are_kept),
		cmocka_unit_test(a_stop_flag_at_any_time_leaves_a_valid_answer),
		cmocka_unit_test(a_deadline_proves_nothing),
		cmocka_unit_test(contest_instances_are_solved_to_the_optimum),
		cmocka_unit_test(threads_change_nothing),
		cmocka_unit_test(the_answer_is_no_worse_than_a_start),
		cmocka_unit_test(a_stop_flag_ends_the_search_at_once),
		cmocka_unit_test(huge_costs_are_exact_or_saturate),
		cmocka_unit_test(clamped_costs_prove_nothing),
		cmocka_unit_test(a_long_chain_of_reductions_is_followed_to_its_end),
		cmocka_unit_test(huge_costs_that_differ_by_one_are_bounded),
		cmocka_unit_test(a_problem_without_nodes_costs_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
