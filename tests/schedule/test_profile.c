/* Bytes over program points, against sums point by point. */
#include "test.h"

#include <math.h>
#include <string.h>

#include "schedule/internal.h"

enum { MAX_POINTS = 70 };

/* A sequence of random numbers. */
typedef struct dice {
	uint64_t seed, drawn;
} dice;

static int32_t draw(dice *d, int32_t below)
{
	return (int32_t)(sw_random_bits(d->seed, 0, d->drawn++) % (uint64_t)below);
}

static double max_of(const double *bytes, int32_t begin, int32_t end)
{
	double max = -INFINITY;
	for (int32_t i = begin; i < end; i++)
		max = fmax(max, bytes[i]);
	return max;
}

static void check_all_ranges(const sw_profile *profile, const double *bytes, int32_t n)
{
	for (int32_t begin = 0; begin <= n; begin++)
		for (int32_t end = begin; end <= n; end++)
			assert_true(sw_profile_max(profile, begin, end) ==
			            max_of(bytes, begin, end));
}

static void maximum_of_each_range_is_found(void **state)
{
	(void)state;
	for (int32_t n = 1; n <= MAX_POINTS; n += n < 9 ? 1 : 13) {
		dice d = {.seed = (uint64_t)n};
		sw_arena arena;
		sw_arena_init(&arena);
		double bytes[MAX_POINTS], before[MAX_POINTS];
		for (int32_t i = 0; i < n; i++)
			bytes[i] = draw(&d, 1000);
		sw_profile profile, copy;
		sw_profile_init(&profile, bytes, n, &arena);
		copy = sw_profile_copy(&profile, &arena);
		memcpy(before, bytes, sizeof(bytes));
		for (int round = 0; round < 20; round++) {
			int32_t begin = draw(&d, n);
			int32_t end = begin + draw(&d, n - begin + 1);
			double more = draw(&d, 1000);
			sw_profile_add(&profile, begin, end, more);
			for (int32_t i = begin; i < end; i++)
				bytes[i] += more;
			check_all_ranges(&profile, bytes, n);
		}
		check_all_ranges(&copy, before, n);
		sw_arena_clear(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(maximum_of_each_range_is_found)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
