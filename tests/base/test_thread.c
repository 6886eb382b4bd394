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

/* Threads that wait for each other meet only if they run at the same time, whatever else the
 * machine does. One that waits in vain gives up after `PATIENCE_S`, and is counted. */
enum { PATIENCE_S = 10 };

typedef struct meeting {
	atomic_int arrived, alone;
} meeting;

static void wait_for(meeting *m, int others)
{
	double until = sw_now_s() + PATIENCE_S;
	while (atomic_load(&m->arrived) < others && !atomic_load(&m->alone)) {
		if (sw_now_s() > until)
			atomic_fetch_add(&m->alone, 1);
		nanosleep(&(struct timespec){.tv_nsec = 100 * 1000}, NULL);
	}
}

static void meet_all(void *context, int64_t i)
{
	(void)i;
	meeting *m = context;
	atomic_fetch_add(&m->arrived, 1);
	wait_for(m, 8);
}

static void indices_are_worked_on_at_the_same_time(void **state)
{
	(void)state;
	meeting m = {0};
	sw_parallel_for(8, 8, meet_all, &m);
	assert_int_equal(m.alone, 0);
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

static void arrive(void *context, int64_t i)
{
	(void)i;
	atomic_fetch_add(&((meeting *)context)->arrived, 1);
}

/* The second stage of an index waits for the first one of the next index. */
static void meet_next(void *context, int64_t i)
{
	wait_for(context, i < 7 ? (int)i + 2 : 8);
}

static void both_stages_run_at_the_same_time(void **state)
{
	(void)state;
	meeting m = {0};
	sw_pipeline(8, 2, arrive, meet_next, &m);
	assert_int_equal(m.alone, 0);
}

static void meet_both(void *context)
{
	meeting *m = context;
	atomic_fetch_add(&m->arrived, 1);
	wait_for(m, 2);
}

static void work_beside_is_done_when_it_is_joined(void **state)
{
	(void)state;
	for (int threads = 1; threads <= 2; threads++) {
		meeting m = {.arrived = threads == 1}; /* one thread has nobody to meet */
		sw_beside *beside = sw_beside_start(threads, meet_both, &m);
		if (threads > 1)
			meet_both(&m);
		sw_beside_join(beside);
		assert_int_equal(m.arrived, 2);
		assert_int_equal(m.alone, 0);
	}
}

static void rest(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000}, NULL);
}

static void the_clock_runs_forward(void **state)
{
	(void)state;
	double before = sw_now_s();
	rest();
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

static double computed_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The thread computes by the clock of its own: a machine that has other work may take long to give
 * it that time, and need not say so. All times are zero where the system does not give them. */
static void a_thread_is_charged_its_own_computing(void **state)
{
	(void)state;
	int number = sw_thread_number();
	sw_thread_times first = sw_thread_times_of(number), second;
	double begin = computed_s();
	while (computed_s() < begin + 0.1)
		continue;
	second = sw_thread_times_of(number);
	rest();
	sw_thread_times third = sw_thread_times_of(number);
	if (first.cpu_s == 0)
		skip();
	double charged = second.cpu_s - first.cpu_s;
	assert_true(charged > 0.07 && charged < 0.2);
	assert_true(third.cpu_s - second.cpu_s < 0.03);
	assert_true(second.delayed_s >= first.delayed_s && third.delayed_s >= second.delayed_s);
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
