/* One pass over segments: its bound is always valid, exact where no table is split, and its work is
 * linear. */
#include "test.h"

#include <stdlib.h>

#include "small_problems.h"
#include "solve/methods.h"
#include "solve/methods/segment_merging.h"

#define PROBLEMS (600 / FEWER)
#define TIGHT_PROBLEMS (200 / FEWER)

static sw_solution solve(const sw_problem *problem, sw_method method)
{
	sw_solution solution;
	sw_error err;
	sw_solve_options options = {.quiet = true, .threads = 1};
	if (sw_solve_by(method, problem, &options, &solution, &err))
		fail_msg("%s", err.message);
	return solution;
}

static bool found(const sw_solution *s)
{
	return s->answer == SW_SOLVED_OPTIMAL || s->answer == SW_SOLVED_FEASIBLE;
}

static void small_problems_are_solved_exactly(void **state)
{
	(void)state;
	for (uint64_t seed = 81000; seed < 81000 + PROBLEMS; seed++) {
		sw_problem problem;
		small_optimum optimum;
		small_problem_make(&problem, seed);
		problem.capacity = INT64_MAX;
		small_problem_solve(&problem, &optimum);
		sw_solution s = solve(&problem, SW_METHOD_SEGMENTS);
		if (s.answer != (optimum.feasible ? SW_SOLVED_OPTIMAL : SW_SOLVED_INFEASIBLE) ||
		    (optimum.feasible && s.cost != optimum.cost))
			fail_msg("seed %llu: answer %d, cost %lld, bound %lld; the optimum is %lld",
			         (unsigned long long)seed, (int)s.answer, (long long)s.cost,
			         (long long)s.lower_bound, (long long)optimum.cost);
		sw_solution_clear(&s);
		sw_problem_clear(&problem);
	}
}

static void capacities_are_kept_and_bounds_hold(void **state)
{
	int feasible = 0, solved = 0;
	(void)state;
	for (uint64_t seed = 82000; seed < 82000 + TIGHT_PROBLEMS; seed++) {
		sw_problem problem;
		small_optimum optimum;
		sw_evaluation value = {0};
		tight_problem_make(&problem, seed);
		tight_problem_solve(&problem, &optimum);
		sw_solution s = solve(&problem, SW_METHOD_SEGMENTS);
		if (found(&s))
			sw_problem_evaluate(&problem, s.assignment, &value);
		feasible += optimum.feasible;
		solved += found(&s);
		if (found(&s) && (!value.allowed || !value.within || value.cost != s.cost ||
		                  s.cost < optimum.cost || s.lower_bound > optimum.cost))
			fail_msg("seed %llu: cost %lld, bound %lld; the optimum is %lld",
			         (unsigned long long)seed, (long long)s.cost,
			         (long long)s.lower_bound, (long long)optimum.cost);
		if (s.answer == SW_SOLVED_INFEASIBLE)
			assert_false(optimum.feasible);
		sw_solution_clear(&s);
		sw_problem_clear(&problem);
	}
	print_message("%d of %d\n", solved, feasible);
	assert_true(feasible > 0 && solved * 10 >= feasible * 9);
}

/* ---- chains of layers ------------------------------------------------------------------- */

#define STRATEGIES 6
#define WIDTH 9 /* nodes of a layer: their tables together exceed the largest table */

static int32_t random_table(sw_problem *problem, sw_rng *rng)
{
	int64_t cost[STRATEGIES * STRATEGIES];
	for (int i = 0; i < STRATEGIES * STRATEGIES; i++)
		cost[i] = sw_rng_below(rng, 1000);
	return sw_problem_add_table(problem, STRATEGIES, STRATEGIES, cost);
}

/* Each node of a layer has an edge to all others, and the first `ends` of them to their
 * counterparts in the next layer; all layers are equal. */
static void make_layers(sw_problem *problem, int layers, int width, int ends)
{
	sw_rng rng = {12, 0};
	int32_t within[WIDTH][WIDTH], between[WIDTH];
	int64_t cost[WIDTH][STRATEGIES];
	sw_problem_init(problem);
	problem->capacity = INT64_MAX;
	for (int a = 0; a < width; a++) {
		between[a] = random_table(problem, &rng);
		for (int b = 0; b < a; b++)
			within[a][b] = random_table(problem, &rng);
		for (int i = 0; i < STRATEGIES; i++)
			cost[a][i] = sw_rng_below(&rng, 1000);
	}
	for (int l = 0; l < layers; l++) {
		for (int a = 0; a < width; a++) {
			int32_t node = sw_problem_add_node(problem, STRATEGIES, cost[a]);
			for (int b = 0; b < a; b++)
				sw_problem_add_edge(problem, node, node - a + b, within[a][b]);
			if (l > 0 && a < ends)
				sw_problem_add_edge(problem, node - width, node, between[a]);
		}
	}
}

static sw_solution solve_layers(int layers, int width, int ends, sw_method method)
{
	sw_problem problem;
	make_layers(&problem, layers, width, ends);
	sw_solution s = solve(&problem, method);
	sw_problem_clear(&problem);
	return s;
}

/* The table of four nodes, two of them ends, is not split. */
static void narrow_segments_are_exact(void **state)
{
	(void)state;
	sw_solution quick = solve_layers(12, 4, 2, SW_METHOD_SEGMENTS),
		    whole = solve_layers(12, 4, 2, SW_METHOD_EXACT);
	assert_int_equal(quick.answer, SW_SOLVED_OPTIMAL);
	assert_int_equal(quick.cost, whole.cost);
	sw_solution_clear(&quick);
	sw_solution_clear(&whole);
}

static void wide_segments_are_bounded(void **state)
{
	(void)state;
	sw_solution quick = solve_layers(4, WIDTH, WIDTH, SW_METHOD_SEGMENTS),
		    whole = solve_layers(4, WIDTH, WIDTH, SW_METHOD_EXACT);
	print_message("cost %lld, bound %lld; effort 3: %lld, %lld\n", (long long)quick.cost,
	              (long long)quick.lower_bound, (long long)whole.cost,
	              (long long)whole.lower_bound);
	assert_true(quick.cost >= whole.lower_bound);
	assert_true(quick.lower_bound <= whole.cost);
	assert_true(quick.lower_bound > whole.cost / 2);
	assert_true(quick.cost < whole.cost * 11 / 10);
	sw_solution_clear(&quick);
	sw_solution_clear(&whole);
}

static int64_t work_of_pass(int layers)
{
	sw_problem problem;
	graph g;
	core c;
	int64_t bound, work;
	make_layers(&problem, layers, WIDTH, 2);
	graph_build(&g, &problem);
	core_init(&c, &g);
	int32_t *x = sw_alloc(sizeof(*x) * (size_t)c.n_nodes);
	work = core_segments(&c, x, &bound);
	free(x);
	core_clear(&c);
	graph_clear(&g);
	sw_problem_clear(&problem);
	return work;
}

/* A hundred layers more have the same tables as the first hundred. */
static void equal_layers_are_computed_once(void **state)
{
	(void)state;
	int64_t some = work_of_pass(100), twice = work_of_pass(200);
	print_message("%lld units, twice as long %lld\n", (long long)some, (long long)twice);
	assert_true(twice <= some * 3 / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_problems_are_solved_exactly),
		cmocka_unit_test(capacities_are_kept_and_bounds_hold),
		cmocka_unit_test(narrow_segments_are_exact),
		cmocka_unit_test(wide_segments_are_bounded),
		cmocka_unit_test(equal_layers_are_computed_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
