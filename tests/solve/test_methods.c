/* The methods of the papers against exhaustive search of our own, and the limits of what they may
 * claim. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "small_problems.h"
#include "solve/methods.h"

#define FIRST_SEED 70000
#define PROBLEMS (2000 / FEWER)
#define TIGHT_SEED 71000
#define TIGHT_PROBLEMS (200 / FEWER)
#define ILP_PROBLEMS (60 / FEWER) /* each one starts a process */
#define ILP_TIGHT_PROBLEMS (12 / FEWER)
#define HEURISTIC_WORK 160000

static const sw_method heuristics[] = {SW_METHOD_COORDINATE, SW_METHOD_BLOCKS,
                                       SW_METHOD_METROPOLIS, SW_METHOD_RANDOM};
/* Of a hundred small problems each method solves at least so many to the optimum; one that gets
 * stuck, or forgets its best, solves fewer. */
static const int least_optima[] = {100, 99, 95, 90};

static bool found(const sw_solution *solution)
{
	return solution->answer == SW_SOLVED_OPTIMAL || solution->answer == SW_SOLVED_FEASIBLE;
}

/* The solution is what the evaluator computes, and claims nothing that the optimum refutes. */
static void check_claims(uint64_t seed, sw_method method, const sw_problem *problem,
                         const sw_solution *solution, const small_optimum *optimum)
{
	sw_evaluation value = {0};
	if (solution->assignment)
		sw_problem_evaluate(problem, solution->assignment, &value);
	bool ok = value.peak_usage == solution->peak_usage || !solution->assignment;
	if (found(solution))
		ok = ok && value.allowed && value.within && value.cost == solution->cost &&
		     optimum->feasible && solution->cost >= optimum->cost &&
		     solution->lower_bound <= optimum->cost;
	else
		ok = ok && !(value.allowed && value.within);
	if (solution->answer == SW_SOLVED_OPTIMAL)
		ok = ok && solution->cost == optimum->cost &&
		     solution->lower_bound == solution->cost;
	if (solution->answer == SW_SOLVED_INFEASIBLE)
		ok = ok && !optimum->feasible && !solution->assignment;
	if (!ok)
		fail_msg("seed %llu, %s: answer %d, cost %lld, bound %lld; the optimum is %d %lld",
		         (unsigned long long)seed, sw_method_name(method), (int)solution->answer,
		         (long long)solution->cost, (long long)solution->lower_bound,
		         optimum->feasible, (long long)optimum->cost);
}

static sw_solution run(uint64_t seed, sw_method method, const sw_problem *problem,
                       const sw_solve_options *options, const small_optimum *optimum)
{
	sw_solution solution;
	sw_error err;
	if (sw_solve_by(method, problem, options, &solution, &err))
		fail_msg("seed %llu, %s: %s", (unsigned long long)seed, sw_method_name(method),
		         err.message);
	check_claims(seed, method, problem, &solution, optimum);
	return solution;
}

/* ---- methods that prove an optimum ------------------------------------------------------ */

static void check_solved(uint64_t seed, sw_method method, const sw_problem *problem,
                         const small_optimum *optimum)
{
	sw_solve_options options = {.quiet = true, .threads = 1};
	sw_solution solution = run(seed, method, problem, &options, optimum);
	if (solution.answer != (optimum->feasible ? SW_SOLVED_OPTIMAL : SW_SOLVED_INFEASIBLE))
		fail_msg("seed %llu, %s: answer %d", (unsigned long long)seed,
		         sw_method_name(method), (int)solution.answer);
	sw_solution_clear(&solution);
}

static void exhaustive_and_exact_search_find_the_optimum(void **state)
{
	(void)state;
	print_message("seeds %d to %d\n", FIRST_SEED, FIRST_SEED + PROBLEMS - 1);
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS; seed++) {
		sw_problem problem;
		small_optimum optimum;
		small_problem_make(&problem, seed);
		small_problem_solve(&problem, &optimum);
		check_solved(seed, SW_METHOD_EXHAUSTIVE, &problem, &optimum);
		check_solved(seed, SW_METHOD_EXACT, &problem, &optimum);
		sw_problem_clear(&problem);
	}
}

static bool cbc_is_there(void)
{
	return system("command -v cbc >/dev/null 2>&1") == 0;
}

static void the_integer_program_finds_the_optimum(void **state)
{
	(void)state;
	if (!cbc_is_there())
		skip();
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + ILP_PROBLEMS; seed++) {
		sw_problem problem;
		small_optimum optimum;
		small_problem_make(&problem, seed);
		small_problem_solve(&problem, &optimum);
		check_solved(seed, SW_METHOD_ILP, &problem, &optimum);
		sw_problem_clear(&problem);
	}
	for (uint64_t seed = TIGHT_SEED; seed < TIGHT_SEED + ILP_TIGHT_PROBLEMS; seed++) {
		sw_problem problem;
		small_optimum optimum;
		tight_problem_make(&problem, seed);
		tight_problem_solve(&problem, &optimum);
		check_solved(seed, SW_METHOD_ILP, &problem, &optimum);
		sw_problem_clear(&problem);
	}
}

static void make_feasible(sw_problem *problem, small_optimum *optimum)
{
	for (uint64_t seed = TIGHT_SEED;; seed++) {
		tight_problem_make(problem, seed);
		tight_problem_solve(problem, optimum);
		if (optimum->feasible)
			return;
		sw_problem_clear(problem);
	}
}

/* A cost within the gap is not called optimal, and a run that is stopped before it began has no
 * bound. */
static void the_integer_program_stops_at_its_limits(void **state)
{
	(void)state;
	if (!cbc_is_there())
		skip();
	sw_problem problem;
	small_optimum optimum;
	atomic_bool stop = true;
	sw_solve_options near = {.quiet = true, .gap = 0.5},
			 stopped = {.quiet = true, .stop = &stop};
	make_feasible(&problem, &optimum);
	sw_solution solution = run(TIGHT_SEED, SW_METHOD_ILP, &problem, &near, &optimum);
	assert_true(found(&solution));
	assert_false(solution.timed_out);
	assert_true((double)solution.cost <= 1.5 * (double)solution.lower_bound);
	sw_solution_clear(&solution);
	solution = run(TIGHT_SEED, SW_METHOD_ILP, &problem, &stopped, &optimum);
	assert_true(solution.timed_out);
	sw_solution_clear(&solution);
	sw_problem_clear(&problem);
}

static void without_cbc_the_package_is_named(void **state)
{
	(void)state;
	sw_problem problem;
	sw_solution solution;
	sw_error err;
	char *path = strdup(getenv("PATH"));
	small_problem_make(&problem, FIRST_SEED + 1);
	setenv("PATH", "/nowhere", 1);
	sw_status status = sw_solve_by(SW_METHOD_ILP, &problem, NULL, &solution, &err);
	setenv("PATH", path, 1);
	free(path);
	assert_int_equal(status, SW_ERR_INPUT);
	assert_non_null(strstr(err.message, "coinor-cbc"));
	sw_problem_clear(&problem);
}

/* ---- methods that do not ---------------------------------------------------------------- */

static void heuristics_report_true_costs_and_mostly_find_the_optimum(void **state)
{
	(void)state;
	for (size_t k = 0; k < SW_COUNT(heuristics); k++) {
		int feasible = 0, optimal = 0;
		for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS / 4; seed++) {
			sw_problem problem;
			small_optimum optimum;
			sw_solve_options options = {
				.quiet = true, .work_limit = HEURISTIC_WORK, .seed = seed};
			small_problem_make(&problem, seed);
			small_problem_solve(&problem, &optimum);
			sw_solution solution =
				run(seed, heuristics[k], &problem, &options, &optimum);
			assert_int_not_equal(solution.answer, SW_SOLVED_OPTIMAL);
			assert_true(solution.lower_bound == INT64_MIN ||
			            solution.answer == SW_SOLVED_INFEASIBLE);
			feasible += optimum.feasible;
			optimal += found(&solution) && solution.cost == optimum.cost;
			sw_solution_clear(&solution);
			sw_problem_clear(&problem);
		}
		print_message("%s: %d of %d optima\n", sw_method_name(heuristics[k]), optimal,
		              feasible);
		assert_true(feasible > 50 / FEWER);
		assert_true(optimal * 100 >= feasible * least_optima[k]);
	}
}

static void no_solution_exceeds_a_tight_capacity(void **state)
{
	(void)state;
	for (uint64_t seed = TIGHT_SEED; seed < TIGHT_SEED + TIGHT_PROBLEMS; seed++) {
		sw_problem problem;
		small_optimum optimum;
		sw_solve_options options = {
			.quiet = true, .work_limit = HEURISTIC_WORK, .seed = seed};
		tight_problem_make(&problem, seed);
		tight_problem_solve(&problem, &optimum);
		for (size_t k = 0; k < SW_COUNT(heuristics); k++) {
			sw_solution solution =
				run(seed, heuristics[k], &problem, &options, &optimum);
			sw_solution_clear(&solution);
		}
		/* a run that is cut short has not seen all assignments */
		options.work_limit = 1000;
		sw_solution solution =
			run(seed, SW_METHOD_EXHAUSTIVE, &problem, &options, &optimum);
		assert_int_not_equal(solution.answer, SW_SOLVED_OPTIMAL);
		sw_solution_clear(&solution);
		sw_problem_clear(&problem);
	}
}

static void the_seed_alone_decides_the_answer(void **state)
{
	(void)state;
	sw_problem problem;
	small_optimum any = {.feasible = true, .cost = INT64_MIN};
	large_problem_make(&problem, 7);
	for (size_t k = 0; k < SW_COUNT(heuristics); k++) {
		sw_solve_options options = {.quiet = true, .work_limit = 1000000, .seed = 1};
		sw_solution a = run(1, heuristics[k], &problem, &options, &any);
		sw_solution b = run(1, heuristics[k], &problem, &options, &any);
		options.seed = 2;
		sw_solution c = run(2, heuristics[k], &problem, &options, &any);
		size_t bytes = problem.nodes.len * sizeof(int32_t);
		assert_memory_equal(a.assignment, b.assignment, bytes);
		assert_true(memcmp(a.assignment, c.assignment, bytes) != 0);
		assert_int_equal(a.work, b.work);
		sw_solution_clear(&a);
		sw_solution_clear(&b);
		sw_solution_clear(&c);
	}
	sw_problem_clear(&problem);
}

static void no_answer_is_worse_than_a_start(void **state)
{
	(void)state;
	for (uint64_t seed = TIGHT_SEED; seed < TIGHT_SEED + 20; seed++) {
		sw_problem problem;
		small_optimum optimum;
		tight_problem_make(&problem, seed);
		tight_problem_solve(&problem, &optimum);
		const int32_t *starts[] = {optimum.assignment};
		sw_solve_options options = {
			.quiet = true, .work_limit = 1, .n_starts = 1, .starts = starts};
		for (size_t k = 0; optimum.feasible && k < SW_COUNT(heuristics); k++) {
			sw_solution solution =
				run(seed, heuristics[k], &problem, &options, &optimum);
			assert_true(found(&solution) && solution.cost == optimum.cost);
			sw_solution_clear(&solution);
		}
		sw_problem_clear(&problem);
	}
}

/* ---- names and sizes -------------------------------------------------------------------- */

static void exhaustive_search_without_an_end_is_refused(void **state)
{
	(void)state;
	sw_problem problem;
	sw_solution solution;
	sw_error err;
	large_problem_make(&problem, 3); /* 6^120 */
	assert_int_equal(sw_solve_by(SW_METHOD_EXHAUSTIVE, &problem, NULL, &solution, &err),
	                 SW_ERR_INPUT);
	assert_non_null(strstr(err.message, "10^93.4 assignments"));
	sw_problem_clear(&problem);
}

static void names_are_read_back(void **state)
{
	(void)state;
	sw_method method;
	sw_error err;
	for (int m = 0; m < SW_METHOD_COUNT; m++) {
		assert_int_equal(sw_method_parse(sw_method_name((sw_method)m), &method, &err),
		                 SW_OK);
		assert_int_equal(method, m);
	}
	assert_int_equal(sw_method_parse("newton", &method, &err), SW_ERR_INPUT);
	assert_non_null(strstr(err.message, "exhaustive"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_and_exact_search_find_the_optimum),
		cmocka_unit_test(the_integer_program_finds_the_optimum),
		cmocka_unit_test(the_integer_program_stops_at_its_limits),
		cmocka_unit_test(without_cbc_the_package_is_named),
		cmocka_unit_test(heuristics_report_true_costs_and_mostly_find_the_optimum),
		cmocka_unit_test(no_solution_exceeds_a_tight_capacity),
		cmocka_unit_test(the_seed_alone_decides_the_answer),
		cmocka_unit_test(no_answer_is_worse_than_a_start),
		cmocka_unit_test(exhaustive_search_without_an_end_is_refused),
		cmocka_unit_test(names_are_read_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
