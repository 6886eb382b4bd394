/* The points at which an assignment exceeds the capacity, against a computation point by point. */
#include "small_problems.h"
#include "test.h"

#include <string.h>

#define POINTS 24 /* small problems end before it */
#define ROOM 4

static void add_up(const sw_problem *p, const int32_t *x, int64_t *excess)
{
	for (int32_t t = 0; t < POINTS; t++)
		excess[t] = -p->capacity;
	for (size_t s = 0; s < p->spans.len; s++)
		for (int32_t t = p->spans.data[s].begin; t < p->spans.data[s].end; t++)
			excess[t] += p->spans.data[s].usage[x[p->spans.data[s].node]];
}

static int compare_runs(const void *a, const void *b)
{
	const sw_overuse *x = a, *y = b;
	if (x->excess != y->excess)
		return x->excess > y->excess ? -1 : 1;
	return (x->begin > y->begin) - (x->begin < y->begin);
}

static int32_t list_runs(const int64_t *excess, sw_overuse *runs)
{
	int32_t n = 0;
	for (int32_t t = 0; t < POINTS; t++) {
		if (excess[t] <= 0)
			continue;
		if (!n || runs[n - 1].end < t)
			runs[n++] = (sw_overuse){t, t, 0};
		runs[n - 1].end = t + 1;
		runs[n - 1].excess = SW_MAX(runs[n - 1].excess, excess[t]);
	}
	if (n)
		qsort(runs, (size_t)n, sizeof(*runs), compare_runs);
	return n;
}

static void runs_equal_those_found_point_by_point(void **state)
{
	(void)state;
	int several = 0;
	for (uint64_t seed = 0; seed < 3000; seed++) {
		sw_problem p;
		int32_t x[16] = {0};
		int64_t excess[POINTS];
		sw_overuse expected[POINTS], runs[ROOM];
		small_problem_make(&p, seed);
		if (p.capacity != INT64_MAX)
			p.capacity /= 2;
		add_up(&p, x, excess);
		int32_t n = list_runs(excess, expected),
			found = sw_problem_overuse(&p, x, runs, ROOM);
		assert_int_equal(found, n);
		assert_memory_equal(runs, expected, (size_t)SW_MIN(n, ROOM) * sizeof(*runs));
		assert_int_equal(sw_problem_overuse(&p, x, NULL, 0), n);
		several += n > 1;
		sw_problem_clear(&p);
	}
	assert_true(several > 100);
}

/* Ends come before begins: two spans that meet at a point make neither a dip nor a peak there. */
static void changes_within_a_point_do_not_count(void **state)
{
	(void)state;
	sw_problem p;
	sw_overuse runs[ROOM];
	const int64_t cost[1] = {0}, usage[1] = {5};
	const int32_t x[2] = {0, 0};
	sw_problem_init(&p);
	sw_problem_add_node(&p, 1, cost);
	sw_problem_add_span(&p, 0, 0, 4, usage);
	sw_problem_add_span(&p, 0, 4, 9, usage);
	p.capacity = 3;
	assert_int_equal(sw_problem_overuse(&p, x, runs, ROOM), 1);
	assert_true(runs[0].begin == 0 && runs[0].end == 9 && runs[0].excess == 2);
	p.capacity = 5;
	assert_int_equal(sw_problem_overuse(&p, x, runs, ROOM), 0);
	p.capacity = INT64_MAX;
	assert_int_equal(sw_problem_overuse(&p, x, runs, ROOM), 0);
	sw_problem_clear(&p);
}

static void the_worst_runs_are_kept(void **state)
{
	(void)state;
	sw_problem p;
	sw_overuse runs[2];
	const int64_t cost[1] = {0};
	const int32_t x[1] = {0};
	sw_problem_init(&p);
	sw_problem_add_node(&p, 1, cost);
	for (int32_t i = 0; i < 6; i++) {
		const int64_t usage[1] = {(i * 5) % 6 + 1}; /* usages 1 6 5 4 3 2 */
		sw_problem_add_span(&p, 0, 10 * i, 10 * i + 2, usage);
	}
	p.capacity = 1;
	assert_int_equal(sw_problem_overuse(&p, x, runs, 2), 5);
	assert_true(runs[0].begin == 10 && runs[0].excess == 5);
	assert_true(runs[1].begin == 20 && runs[1].excess == 4);
	sw_problem_clear(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_equal_those_found_point_by_point),
		cmocka_unit_test(changes_within_a_point_do_not_count),
		cmocka_unit_test(the_worst_runs_are_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
