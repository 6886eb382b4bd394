#include "helpers.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { MAX = 10000 };

typedef struct visits {
	atomic_int count[MAX];
} visits;

static void visit(void *context, int64_t i)
{
	atomic_fetch_add(&((visits *)context)->count[i], 1);
}

static void every_index_is_visited_once(void **state)
{
	(void)state;
	static const struct {
		int64_t n;
		int threads;
	} cases[] = {{0, 4},  {1, 1},   {1, 8},   {3, 8},   {7, 0},
	             {7, -1}, {100, 2}, {MAX, 1}, {MAX, 3}, {MAX, 16}};
	for (size_t k = 0; k < SW_COUNT(cases); k++) {
		visits *seen = sw_alloc(sizeof(*seen));
		sw_parallel_for(cases[k].n, cases[k].threads, visit, seen);
		for (int64_t i = 0; i < MAX; i++)
			assert_int_equal(atomic_load(&seen->count[i]), i < cases[k].n);
		free(seen);
	}
}

static void rest(void *context, int64_t i)
{
	(void)context;
	(void)i;
	nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000}, NULL);
}

static void indices_are_worked_on_at_the_same_time(void **state)
{
	(void)state;
	double start = sw_now_s();
	sw_parallel_for(8, 8, rest, NULL);
	assert_true(sw_now_s() - start < 8 * 0.05);
}

static void visit_rows(void *context, int64_t i)
{
	(void)i;
	sw_parallel_for(100, 2, visit, context);
}

static void loops_may_be_nested(void **state)
{
	(void)state;
	visits *seen = sw_alloc(sizeof(*seen));
	sw_parallel_for(10, 3, visit_rows, seen);
	for (int i = 0; i < 100; i++)
		assert_int_equal(atomic_load(&seen->count[i]), 10);
	free(seen);
}

typedef struct stages {
	int64_t made;
	atomic_int first[100], then[100], early;
} stages;

static void make(void *context, int64_t i)
{
	stages *s = context;
	s->made += s->made == i; /* by one thread, in order */
	atomic_fetch_add(&s->first[i], 1);
}

static void use(void *context, int64_t i)
{
	stages *s = context;
	atomic_fetch_add(&s->early, atomic_load(&s->first[i]) != 1);
	atomic_fetch_add(&s->then[i], 1);
}

static void the_second_stage_of_an_index_follows_its_first(void **state)
{
	(void)state;
	static const struct {
		int64_t n;
		int threads;
	} cases[] = {{0, 4}, {1, 1}, {1, 8}, {3, 0}, {8, 2}, {100, 1}, {100, 3}, {100, 16}};
	for (size_t k = 0; k < SW_COUNT(cases); k++) {
		stages *s = sw_alloc(sizeof(*s));
		sw_pipeline(cases[k].n, cases[k].threads, make, use, s);
		assert_int_equal(s->made, cases[k].n);
		assert_int_equal(atomic_load(&s->early), 0);
		for (int64_t i = 0; i < 100; i++)
			assert_int_equal(atomic_load(&s->then[i]), i < cases[k].n);
		free(s);
	}
}

static void both_stages_run_at_the_same_time(void **state)
{
	(void)state;
	double start = sw_now_s();
	sw_pipeline(8, 2, rest, rest, NULL);
	assert_true(sw_now_s() - start < 15 * 0.05);
}

static void rest_once(void *context)
{
	rest(NULL, 0);
	atomic_fetch_add((atomic_int *)context, 1);
}

static void work_beside_is_done_when_it_is_joined(void **state)
{
	(void)state;
	for (int threads = 1; threads <= 2; threads++) {
		atomic_int done = 0;
		double start = sw_now_s();
		sw_beside *beside = sw_beside_start(threads, rest_once, &done);
		if (threads > 1)
			rest(NULL, 0);
		sw_beside_join(beside);
		assert_int_equal(atomic_load(&done), 1);
		assert_true(sw_now_s() - start < 2 * 0.05);
	}
}

static void the_clock_runs_forward(void **state)
{
	(void)state;
	double before = sw_now_s();
	rest(NULL, 0);
	double passed = sw_now_s() - before;
	assert_true(passed >= 0.049 && passed < 10);
}

static void peak_memory_rises_with_use(void **state)
{
	(void)state;
	size_t before = sw_peak_memory_bytes(), bytes = (size_t)64 << 20;
	assert_true(before > 100000);
	char *data = sw_alloc(bytes);
	memset(data, 1, bytes);
	assert_true(sw_peak_memory_bytes() >= before + bytes / 2);
	free(data);
}

/* All times are zero where the system does not give them. */
static void a_thread_is_charged_its_own_computing(void **state)
{
	(void)state;
	int number = sw_thread_number();
	sw_thread_times first = sw_thread_times_of(number), second;
	double begin = sw_now_s();
	while (sw_now_s() < begin + 0.05)
		continue;
	second = sw_thread_times_of(number);
	rest(NULL, 0);
	sw_thread_times third = sw_thread_times_of(number);
	if (first.cpu_s == 0)
		skip();
	double busy = second.cpu_s - first.cpu_s + second.delayed_s - first.delayed_s;
	assert_true(busy > 0.04 && busy < 10);
	assert_true(second.cpu_s > first.cpu_s && third.cpu_s - second.cpu_s < 0.03);
	assert_true(sw_thread_times_of(-1).cpu_s == 0);
}

static void there_is_a_processor(void **state)
{
	(void)state;
	assert_true(sw_cpu_count() >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_index_is_visited_once),
		cmocka_unit_test(indices_are_worked_on_at_the_same_time),
		cmocka_unit_test(loops_may_be_nested),
		cmocka_unit_test(the_second_stage_of_an_index_follows_its_first),
		cmocka_unit_test(both_stages_run_at_the_same_time),
		cmocka_unit_test(work_beside_is_done_when_it_is_joined),
		cmocka_unit_test(the_clock_runs_forward),
		cmocka_unit_test(peak_memory_rises_with_use),
		cmocka_unit_test(a_thread_is_charged_its_own_computing),
		cmocka_unit_test(there_is_a_processor),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
