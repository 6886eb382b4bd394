/* Exact elimination against exhaustive search, and its refusal of cores that are too large. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "small_problems.h"
#include "solve/steps/solver.h"

static void elimination_finds_the_optimum(void **state)
{
	(void)state;
	for (uint64_t seed = 9000; seed < 9600; seed++) {
		sw_problem problem;
		small_optimum optimum;
		graph g;
		core c;
		int32_t x[16] = {0};
		int64_t cost, spent;
		small_problem_make(&problem, seed);
		problem.capacity = INT64_MAX;
		small_problem_solve(&problem, &optimum);
		graph_build(&g, &problem);
		if (g.infeasible) {
			assert_false(optimum.feasible);
		} else {
			core_init(&c, &g);
			assert_true(core_eliminate(&c, 1 << 24, x, &cost, &spent));
			assert_int_equal(cost != SW_FORBIDDEN, optimum.feasible);
			if (optimum.feasible)
				assert_int_equal(cost + c.constant, optimum.cost);
			core_clear(&c);
		}
		graph_clear(&g);
		sw_problem_clear(&problem);
	}
}

static void a_core_of_large_treewidth_is_refused(void **state)
{
	(void)state;
	sw_problem problem;
	graph g;
	core c;
	int32_t x[30];
	int64_t cost, spent, costs[8] = {0}, table[64];
	sw_problem_init(&problem);
	for (int i = 0; i < 64; i++)
		table[i] = i * 37 % 11;
	for (int v = 0; v < 30; v++)
		sw_problem_add_node(&problem, 8, costs);
	for (int a = 0; a < 30; a++)
		for (int b = 0; b < a; b++)
			sw_problem_add_edge(&problem, a, b,
			                    sw_problem_add_table(&problem, 8, 8, table));
	graph_build(&g, &problem);
	core_init(&c, &g);
	assert_false(core_eliminate(&c, (int64_t)1 << 40, x, &cost, &spent));
	core_clear(&c);
	graph_clear(&g);
	sw_problem_clear(&problem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elimination_finds_the_optimum),
		cmocka_unit_test(a_core_of_large_treewidth_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
