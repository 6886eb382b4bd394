/* The whole solver against exhaustion, and its promises: bounds, starts, threads, limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "small_problems.h"

#define FIRST_SEED 5000
#define PROBLEMS 1200

static const sw_solve_options quiet = {.quiet = true, .threads = 1};

static void check_consistent(uint64_t seed, const sw_problem *problem, const sw_solution *solution)
{
	sw_evaluation value;
	if (!solution->assignment)
		return;
	sw_problem_evaluate(problem, solution->assignment, &value);
	bool feasible = solution->answer == SW_SOLVED_OPTIMAL || solution->answer == SW_SOLVED_FEASIBLE;
	bool ok = value.peak_usage == solution->peak_usage && value.peak_moment == solution->peak_moment;
	if (feasible)
		ok = ok && value.allowed && value.within && value.cost == solution->cost;
	if (!ok)
		fail_msg("seed %llu: the solution is not what it says", (unsigned long long)seed);
}

static void compare_with_exhaustion(uint64_t seed, const sw_solve_options *options)
{
	sw_problem problem;
	small_optimum optimum;
	sw_solution solution;
	small_problem_make(&problem, seed);
	small_problem_solve(&problem, &optimum);
	assert_int_equal(sw_solve(&problem, options, &solution, NULL), SW_OK);
	check_consistent(seed, &problem, &solution);
	if (optimum.feasible) {
		if (solution.answer != SW_SOLVED_OPTIMAL || solution.cost != optimum.cost ||
		    solution.lower_bound != optimum.cost)
			fail_msg("seed %llu: answer %d, cost %lld, bound %lld; the optimum is %lld",
			         (unsigned long long)seed, (int)solution.answer, (long long)solution.cost,
			         (long long)solution.lower_bound, (long long)optimum.cost);
	} else if (solution.answer != SW_SOLVED_INFEASIBLE || solution.assignment) {
		fail_msg("seed %llu: answer %d; it is infeasible", (unsigned long long)seed, (int)solution.answer);
	}
	sw_solution_clear(&solution);
	sw_problem_clear(&problem);
}

static void small_problems_are_solved_to_the_optimum(void **state)
{
	(void)state;
	print_message("seeds %d to %d\n", FIRST_SEED, FIRST_SEED + PROBLEMS - 1);
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS; seed++)
		compare_with_exhaustion(seed, &quiet);
}

/* Stopped anywhere, the bound is still one and the answer honest. */
static void any_work_limit_leaves_a_valid_answer(void **state)
{
	(void)state;
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS; seed++) {
		sw_problem problem;
		small_optimum optimum;
		sw_solution solution;
		sw_solve_options options = quiet;
		options.work_limit = 1 + (int64_t)(seed * 7919 % 2000);
		small_problem_make(&problem, seed);
		small_problem_solve(&problem, &optimum);
		assert_int_equal(sw_solve(&problem, &options, &solution, NULL), SW_OK);
		check_consistent(seed, &problem, &solution);
		if (optimum.feasible) {
			assert_true(solution.answer != SW_SOLVED_INFEASIBLE);
			assert_true(solution.lower_bound <= optimum.cost);
			if (solution.answer != SW_SOLVED_UNKNOWN)
				assert_true(solution.cost >= optimum.cost);
		} else {
			assert_true(solution.answer == SW_SOLVED_INFEASIBLE || solution.answer == SW_SOLVED_UNKNOWN);
		}
		sw_solution_clear(&solution);
		sw_problem_clear(&problem);
	}
}

/* ---- a problem too large for the work allowed, with a capacity that binds ---------------------------- */

static void make_large(sw_problem *problem, uint64_t seed)
{
	sw_rng rng = {seed, 0};
	int64_t cost[6], table[36], usage[6];
	sw_problem_init(problem);
	for (int32_t v = 0; v < 120; v++) {
		for (int i = 0; i < 6; i++) {
			cost[i] = sw_rng_below(&rng, 1000);
			usage[i] = 1000 - cost[i];
		}
		sw_problem_add_node(problem, 6, cost);
		sw_problem_add_span(problem, v, v / 2, v + 10, usage);
		for (int k = 0; v && k < 3; k++) {
			for (int i = 0; i < 36; i++)
				table[i] = sw_rng_below(&rng, 500);
			sw_problem_add_edge(problem, (int32_t)sw_rng_below(&rng, v), v,
			                    sw_problem_add_table(problem, 6, 6, table));
		}
	}
	problem->capacity = 30000;
}

static void more_threads_change_nothing(void **state)
{
	(void)state;
	sw_problem problem;
	sw_solution one, four;
	sw_solve_options options = {.quiet = true, .threads = 1, .work_limit = 30000000};
	make_large(&problem, 1);
	assert_int_equal(sw_solve(&problem, &options, &one, NULL), SW_OK);
	options.threads = 4;
	assert_int_equal(sw_solve(&problem, &options, &four, NULL), SW_OK);
	assert_int_equal(one.answer, four.answer);
	assert_int_equal(one.lower_bound, four.lower_bound);
	assert_int_equal(one.work, four.work);
	assert_memory_equal(one.assignment, four.assignment, 120 * sizeof(int32_t));
	sw_solution_clear(&one);
	sw_solution_clear(&four);
	sw_problem_clear(&problem);
}

static void the_answer_is_no_worse_than_a_start(void **state)
{
	(void)state;
	sw_problem problem;
	sw_solution best, again;
	sw_solve_options options = {.quiet = true, .threads = 1, .work_limit = 30000000};
	int32_t wrong[120];
	make_large(&problem, 2);
	assert_int_equal(sw_solve(&problem, &options, &best, NULL), SW_OK);
	assert_true(best.answer == SW_SOLVED_FEASIBLE || best.answer == SW_SOLVED_OPTIMAL);
	for (int v = 0; v < 120; v++)
		wrong[v] = 77; /* out of range: passed over */
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

static void a_stop_flag_ends_it_at_once(void **state)
{
	(void)state;
	sw_problem problem;
	sw_solution solution;
	volatile bool stop = true;
	sw_solve_options options = {.quiet = true, .threads = 1, .stop = &stop};
	make_large(&problem, 3);
	assert_int_equal(sw_solve(&problem, &options, &solution, NULL), SW_OK);
	assert_true(solution.timed_out);
	assert_non_null(solution.assignment);
	sw_solution_clear(&solution);
	sw_problem_clear(&problem);
}

/* ---- the edges of the number range -------------------------------------------------------------------- */

static void huge_costs_are_exact_or_saturate(void **state)
{
	(void)state;
	const int64_t huge = (int64_t)1 << 61;
	int64_t cost[3] = {huge - 1, huge, -huge}, table[9] = {0, 5, 9, 5, huge, 9, 9, 9, huge};
	sw_problem problem;
	sw_solution solution;
	sw_evaluation value;
	sw_problem_init(&problem);
	for (int v = 0; v < 9; v++) {
		sw_problem_add_node(&problem, 3, cost);
		if (v)
			sw_problem_add_edge(&problem, v - 1, v, sw_problem_add_table(&problem, 3, 3, table));
	}
	const int32_t all_first[9] = {0}, all_last[9] = {2, 2, 2, 2, 2, 2, 2, 2, 2};
	sw_problem_evaluate(&problem, all_first, &value);
	assert_int_equal(value.cost, INT64_MAX - 1);
	sw_problem_evaluate(&problem, all_last, &value); /* 9 * -2^61 + 8 * 2^61 */
	assert_int_equal(value.cost, -huge);
	assert_int_equal(sw_solve(&problem, &quiet, &solution, NULL), SW_OK);
	sw_problem_evaluate(&problem, solution.assignment, &value);
	assert_int_equal(value.cost, solution.cost);
	/* Floored to a multiple of 2^shift, -2^61 + 72 looks no worse; the bound is still one. */
	assert_true(solution.cost <= -huge + 72 && solution.lower_bound <= -huge);
	sw_solution_clear(&solution);
	sw_problem_clear(&problem);
}

static void costs_of_a_unit_apart_beside_huge_ones(void **state)
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
		cmocka_unit_test(any_work_limit_leaves_a_valid_answer),
		cmocka_unit_test(more_threads_change_nothing),
		cmocka_unit_test(the_answer_is_no_worse_than_a_start),
		cmocka_unit_test(a_stop_flag_ends_it_at_once),
		cmocka_unit_test(huge_costs_are_exact_or_saturate),
		cmocka_unit_test(costs_of_a_unit_apart_beside_huge_ones),
		cmocka_unit_test(a_problem_without_nodes_costs_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
