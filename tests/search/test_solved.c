/* Problems that are solved once. */
#include "search/solved.h"
#include "test.h"

#include <string.h>

#define NODES 24
#define STRATEGIES 4

/* A ring with chords of random costs; `twist` is added to one entry of one table. */
static void make_problem(sw_problem *problem, uint64_t seed, int64_t twist)
{
	sw_rng rng = {seed, 0};
	int64_t cost[STRATEGIES], table[STRATEGIES * STRATEGIES];
	sw_problem_init(problem);
	for (int32_t i = 0; i < NODES; i++) {
		for (int k = 0; k < STRATEGIES; k++)
			cost[k] = (int64_t)sw_rng_below(&rng, 1000);
		sw_problem_add_node(problem, STRATEGIES, cost);
	}
	for (int32_t i = 0; i < NODES; i++)
		for (int32_t step = 1; step <= 7; step += 3) {
			for (int k = 0; k < STRATEGIES * STRATEGIES; k++)
				table[k] = (int64_t)sw_rng_below(&rng, 1000);
			table[3] += i == 5 ? twist : 0;
			sw_problem_add_edge(
				problem, i, (i + step) % NODES,
				sw_problem_add_table(problem, STRATEGIES, STRATEGIES, table));
		}
}

static sw_solution solve(sw_solved *solved, const sw_problem *problem, sw_solve_options options)
{
	sw_solution solution;
	sw_error err = {0};
	options.quiet = true;
	options.threads = 1;
	if (sw_solved_solve(solved, SW_METHOD_EXACT, problem, &options, &solution, &err) != SW_OK)
		fail_msg("%s", err.message);
	return solution;
}

static void the_same_problem_is_solved_once(void **state)
{
	(void)state;
	sw_solved *solved = sw_solved_new();
	sw_problem first, second;
	make_problem(&first, 7, 0);
	make_problem(&second, 7, 0);
	sw_solution a = solve(solved, &first, (sw_solve_options){0});
	assert_int_equal(sw_solved_reused(solved), 0);
	sw_solution b = solve(solved, &second, (sw_solve_options){0});
	assert_int_equal(sw_solved_reused(solved), 1);
	assert_int_equal(a.cost, b.cost);
	assert_int_equal(a.lower_bound, b.lower_bound);
	assert_ptr_not_equal(a.assignment, b.assignment);
	assert_memory_equal(a.assignment, b.assignment, NODES * sizeof(*a.assignment));
	sw_solution_clear(&a);
	sw_solution_clear(&b);
	sw_problem_clear(&first);
	sw_problem_clear(&second);
	sw_solved_free(solved);
}

static void whatever_the_solver_reads_makes_another_problem(void **state)
{
	(void)state;
	sw_solved *solved = sw_solved_new();
	sw_problem problems[6];
	int32_t start[NODES] = {0};
	const int32_t *starts[] = {start};
	const sw_solve_options options[] = {
		{0},           {.gap = 0.5}, {.work_limit = 1000000},
		{.cutoff = 9}, {.seed = 3},  {.n_starts = 1, .starts = starts}};
	for (int i = 0; i < 6; i++)
		make_problem(&problems[i], 7, 0);
	sw_problem_clear(&problems[1]);
	make_problem(&problems[1], 7, 1); /* a table */
	const int64_t usage[STRATEGIES] = {1, 2, 3, 4};
	sw_problem_add_span(&problems[2], 4, 0, 3, usage);
	problems[3].capacity = 100;
	sw_problem_tie(&problems[4], 3, 8);
	sw_problem_add_span(&problems[5], 4, 0, 4, usage);
	for (int i = 0; i < 6; i++) {
		sw_solution solution = solve(solved, &problems[i], options[0]);
		sw_solution_clear(&solution);
	}
	for (size_t i = 1; i < SW_COUNT(options); i++) {
		sw_solution solution = solve(solved, &problems[0], options[i]);
		sw_solution_clear(&solution);
	}
	assert_int_equal(sw_solved_reused(solved), 0);
	for (int i = 0; i < 6; i++)
		sw_problem_clear(&problems[i]);
	sw_solved_free(solved);
}

typedef struct shared {
	sw_solved *solved;
	sw_problem problems[3];
	int64_t cost[64];
} shared;

static void solve_one_of(void *context, int64_t i)
{
	shared *s = context;
	sw_solution solution = solve(s->solved, &s->problems[i % 3], (sw_solve_options){0});
	s->cost[i] = solution.cost;
	sw_solution_clear(&solution);
}

static void threads_wait_for_each_other(void **state)
{
	(void)state;
	shared s = {.solved = sw_solved_new()};
	for (uint64_t k = 0; k < 3; k++)
		make_problem(&s.problems[k], 20 + k, 0);
	sw_parallel_for(64, 8, solve_one_of, &s);
	assert_int_equal(sw_solved_reused(s.solved), 61);
	for (int i = 3; i < 64; i++)
		assert_int_equal(s.cost[i], s.cost[i % 3]);
	for (uint64_t k = 0; k < 3; k++)
		sw_problem_clear(&s.problems[k]);
	sw_solved_free(s.solved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_problem_is_solved_once),
		cmocka_unit_test(whatever_the_solver_reads_makes_another_problem),
		cmocka_unit_test(threads_wait_for_each_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
