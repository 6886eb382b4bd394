/* Building and checking problems, and the independent evaluator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "solve/solve.h"

static void equal_tables_are_stored_once(void **state)
{
	(void)state;
	sw_problem problem;
	const int64_t a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 2, 3, 4, 5, 7};
	sw_problem_init(&problem);
	int32_t first = sw_problem_add_table(&problem, 2, 3, a);
	assert_int_equal(sw_problem_add_table(&problem, 2, 3, a), first);
	assert_int_not_equal(sw_problem_add_table(&problem, 3, 2, a), first);
	assert_int_not_equal(sw_problem_add_table(&problem, 2, 3, b), first);
	assert_int_equal(problem.tables.len, 3);
	sw_problem_clear(&problem);
}

static void idle_spans_are_dropped(void **state)
{
	(void)state;
	sw_problem problem;
	const int64_t cost[2] = {0, 0}, none[2] = {0, 0}, some[2] = {0, 1};
	sw_problem_init(&problem);
	sw_problem_add_node(&problem, 2, cost);
	sw_problem_add_span(&problem, 0, 3, 3, some);
	sw_problem_add_span(&problem, 0, 1, 9, none);
	assert_int_equal(problem.spans.len, 0);
	assert_int_equal(problem.points, 0);
	sw_problem_add_span(&problem, 0, 1, 9, some);
	assert_int_equal(problem.spans.len, 1);
	assert_int_equal(problem.points, 9);
	sw_problem_clear(&problem);
}

/* Two nodes, one edge, one span; then one thing is made wrong. */
enum spoil {
	NOTHING,
	NO_STRATEGIES,
	COST_OVERFLOWS,
	COST_UNDERFLOWS,
	TABLE_OVERFLOWS,
	TABLE_SHAPE,
	EDGE_NODE,
	EDGE_TABLE,
	SPAN_NODE,
	SPAN_BEGIN,
	USAGE_NEGATIVE,
	USAGE_OVERFLOWS,
	CAPACITY_NEGATIVE,
	TIE_SHAPE,
	SPOILS
};

static void build_spoiled(sw_problem *problem, enum spoil spoil)
{
	int64_t cost[3] = {0, 1, SW_FORBIDDEN}, table[6] = {0, 1, 2, 3, SW_FORBIDDEN, 5},
		usage[3] = {1, 2, 3};
	sw_problem_init(problem);
	problem->capacity = spoil == CAPACITY_NEGATIVE ? -1 : (int64_t)1 << 61;
	if (spoil == COST_OVERFLOWS)
		cost[0] = SW_FORBIDDEN - 1;
	if (spoil == COST_UNDERFLOWS)
		cost[0] = INT64_MIN;
	if (spoil == TABLE_OVERFLOWS)
		table[3] = INT64_MAX - 5;
	if (spoil == USAGE_NEGATIVE)
		usage[1] = -1;
	if (spoil == USAGE_OVERFLOWS)
		usage[1] = (int64_t)1 << 61;
	sw_problem_add_node(problem, 2, cost);
	sw_problem_add_node(problem, spoil == NO_STRATEGIES ? 0 : 3, cost);
	int32_t made = spoil == TABLE_SHAPE ? sw_problem_add_table(problem, 3, 2, table)
	                                    : sw_problem_add_table(problem, 2, 3, table);
	sw_problem_add_edge(problem, 0, spoil == EDGE_NODE ? 2 : 1, spoil == EDGE_TABLE ? 1 : made);
	sw_problem_add_span(problem, spoil == SPAN_NODE ? 9 : 0, spoil == SPAN_BEGIN ? -2 : 0, 4,
	                    usage);
	sw_problem_add_span(problem, 0, 0, 4, usage);
	if (spoil == TIE_SHAPE)
		sw_problem_tie(problem, 0, 1);
}

static void bad_problems_are_refused(void **state)
{
	(void)state;
	for (int spoil = NOTHING; spoil < SPOILS; spoil++) {
		sw_problem problem;
		sw_solution solution;
		sw_error err = {0};
		sw_status expected = spoil == NOTHING ? SW_OK : SW_ERR_INPUT;
		build_spoiled(&problem, (enum spoil)spoil);
		if (sw_problem_check(&problem, &err) != expected)
			fail_msg("spoil %d: %s", spoil, err.message);
		const sw_solve_options quiet = {.quiet = true, .threads = 1};
		assert_int_equal(sw_solve(&problem, &quiet, &solution, &err), expected);
		sw_solution_clear(&solution);
		sw_problem_clear(&problem);
	}
}

static void ties_are_kept_in_any_order(void **state)
{
	(void)state;
	sw_problem problem;
	const int64_t cost[2] = {0, 1};
	sw_evaluation value;
	sw_problem_init(&problem);
	for (int v = 0; v < 4; v++)
		sw_problem_add_node(&problem, 2, cost);
	sw_problem_tie(&problem, 3, 2);
	sw_problem_tie(&problem, 1, 0);
	sw_problem_tie(&problem, 3, 1);
	sw_problem_evaluate(&problem, (const int32_t[]){1, 1, 1, 1}, &value);
	assert_true(value.allowed);
	assert_int_equal(value.cost, 4);
	for (int v = 0; v < 4; v++) {
		int32_t x[4] = {1, 1, 1, 1};
		x[v] = 0;
		sw_problem_evaluate(&problem, x, &value);
		assert_false(value.allowed);
	}
	sw_problem_clear(&problem);
}

static void the_peak_is_the_first_largest_point(void **state)
{
	(void)state;
	sw_problem problem;
	const int64_t cost[1] = {0}, three[1] = {3}, four[1] = {4}, huge[1] = {INT64_MAX};
	const int32_t x[1] = {0};
	sw_evaluation value;
	sw_problem_init(&problem);
	sw_problem_add_node(&problem, 1, cost);
	sw_problem_add_span(&problem, 0, 2, 5, three);
	/* it touches the span before, and does not overlap it */
	sw_problem_add_span(&problem, 0, 5, 9, three);
	sw_problem_add_span(&problem, 0, 3, 4, four);
	sw_problem_add_span(&problem, 0, 7, 8, four);
	sw_problem_evaluate(&problem, x, &value);
	assert_int_equal(value.peak_usage, 7);
	assert_int_equal(value.peak_point, 3);
	assert_true(value.within);
	problem.capacity = 6;
	sw_problem_evaluate(&problem, x, &value);
	assert_false(value.within);
	sw_problem_add_span(&problem, 0, 0, 9, huge);
	sw_problem_evaluate(&problem, x, &value);
	assert_int_equal(value.peak_usage, INT64_MAX);
	sw_problem_clear(&problem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_tables_are_stored_once),
		cmocka_unit_test(idle_spans_are_dropped),
		cmocka_unit_test(bad_problems_are_refused),
		cmocka_unit_test(ties_are_kept_in_any_order),
		cmocka_unit_test(the_peak_is_the_first_largest_point),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
