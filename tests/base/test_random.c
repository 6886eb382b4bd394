#include "helpers.h"

#include <math.h>

enum { DRAWS = 200000 };

/* These are published outputs of splitmix64 for this seed. */
static void the_sequence_is_splitmix64(void **state)
{
	(void)state;
	static const uint64_t expected[] = {
		UINT64_C(6457827717110365317),  UINT64_C(3203168211198807973),
		UINT64_C(9817491932198370423),  UINT64_C(4593380528125082431),
		UINT64_C(16408922859458223821),
	};
	sw_rng rng = {.seed = 1234567};
	for (size_t i = 0; i < SW_COUNT(expected); i++)
		assert_true(sw_rng_bits(&rng) == expected[i]);
}

/* The numbers are frozen, because checkpoints and recorded runs depend on them. The expected values
 * were computed independently of this code. */
static void numbers_by_position_never_change(void **state)
{
	(void)state;
	static const struct {
		uint64_t seed, stream, index, bits;
		double unit;
	} cases[] = {
		{0, 0, 0, UINT64_C(0x238275bc38fcbe91), 0.13870941014555427},
		{1, 0, 0, UINT64_C(0xb18a02f46d8d86c3), 0.6935121390102292},
		{0, 1, 0, UINT64_C(0x2f101fe21496ea20), 0.18383979100743952},
		{0, 0, 1, UINT64_C(0xf89a2566b5822c54), 0.9711020828012883},
		{42, 7, 1000000, UINT64_C(0x901c12e1a8da8a47), 0.5629283715178223},
		{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_C(0x179f01f0d2fba97a),
	         0.0922700131368247},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		assert_true(sw_random_bits(cases[i].seed, cases[i].stream, cases[i].index) ==
		            cases[i].bits);
		assert_true(sw_random_unit(cases[i].seed, cases[i].stream, cases[i].index) ==
		            cases[i].unit);
	}
	assert_true(fabs(sw_random_normal(0, 0, 0) - 0.37498133062236305) < 1e-14);
	assert_true(fabs(sw_random_normal(42, 7, 1000000) + 1.2864613718146545) < 1e-14);
}

static void units_are_uniform(void **state)
{
	(void)state;
	double sum = 0, squares = 0;
	int bins[64] = {0};
	for (uint64_t i = 0; i < DRAWS; i++) {
		double x = sw_random_unit(5, 6, i);
		assert_true(x >= 0 && x < 1);
		sum += x;
		squares += x * x;
		bins[(int)(x * 64)]++;
	}
	double mean = sum / DRAWS, variance = squares / DRAWS - mean * mean, chi = 0;
	assert_true(fabs(mean - 0.5) < 5 * sqrt(1.0 / 12 / DRAWS));
	assert_true(fabs(variance - 1.0 / 12) < 0.001);
	for (int i = 0; i < 64; i++)
		chi += pow(bins[i] - DRAWS / 64.0, 2) / (DRAWS / 64.0);
	assert_true(chi < 120); /* 63 degrees of freedom: 120 is exceeded less than once in 10000 */
}

static void normals_are_normal(void **state)
{
	(void)state;
	double moment[5] = {0};
	int64_t beyond_two = 0;
	for (uint64_t i = 0; i < DRAWS; i++) {
		double x = sw_random_normal(8, 9, i), power = 1;
		assert_true(isfinite(x));
		for (int k = 1; k <= 4; k++)
			moment[k] += power *= x;
		beyond_two += fabs(x) > 2;
	}
	assert_true(fabs(moment[1] / DRAWS) < 0.012);
	assert_true(fabs(moment[2] / DRAWS - 1) < 0.02);
	assert_true(fabs(moment[3] / DRAWS) < 0.04);
	assert_true(fabs(moment[4] / DRAWS - 3) < 0.12);
	assert_true(fabs((double)beyond_two / DRAWS - 0.0455) < 0.003);
}

static double correlation(uint64_t seed_step, uint64_t stream_step, uint64_t index_step)
{
	double sum = 0;
	for (uint64_t i = 0; i < DRAWS; i++)
		sum += (sw_random_unit(1, 1, i) - 0.5) *
		       (sw_random_unit(1 + seed_step, 1 + stream_step, i + index_step) - 0.5);
	return sum / DRAWS * 12;
}

static void neighbours_are_independent(void **state)
{
	(void)state;
	double limit = 5 / sqrt(DRAWS);
	assert_true(fabs(correlation(0, 0, 0) - 1) < 0.02);
	assert_true(fabs(correlation(0, 0, 1)) < limit);
	assert_true(fabs(correlation(0, 1, 0)) < limit);
	assert_true(fabs(correlation(1, 0, 0)) < limit);
	assert_true(fabs(correlation(1, UINT64_MAX, 0)) < limit);
	assert_true(fabs(correlation(0, 1, UINT64_MAX)) < limit);
}

static void bounded_numbers_stay_below_the_bound_and_reach_every_value(void **state)
{
	(void)state;
	static const int64_t bounds[] = {1, 2, 3, 7, 10, 64};
	sw_rng rng = {.seed = 3};
	for (size_t b = 0; b < SW_COUNT(bounds); b++) {
		int64_t count[64] = {0};
		for (int i = 0; i < 20000; i++) {
			int64_t x = sw_rng_below(&rng, bounds[b]);
			assert_true(x >= 0 && x < bounds[b]);
			count[x]++;
		}
		for (int64_t x = 0; x < bounds[b]; x++)
			assert_true(fabs((double)(count[x] - 20000 / bounds[b])) <
			            6 * sqrt(20000.0 / (double)bounds[b]) + 2);
	}
	for (int i = 0; i < 1000; i++)
		assert_true(sw_rng_below(&rng, INT64_MAX) >= 0);
}

static void a_sequence_is_repeatable(void **state)
{
	(void)state;
	sw_rng a = {.seed = 11}, b = {.seed = 11}, c = {.seed = 12};
	int same = 0;
	for (int i = 0; i < 100; i++) {
		double x = sw_rng_unit(&a);
		assert_true(x >= 0 && x < 1);
		assert_true(x == sw_rng_unit(&b));
		same += x == sw_rng_unit(&c);
	}
	assert_int_equal(same, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sequence_is_splitmix64),
		cmocka_unit_test(numbers_by_position_never_change),
		cmocka_unit_test(units_are_uniform),
		cmocka_unit_test(normals_are_normal),
		cmocka_unit_test(neighbours_are_independent),
		cmocka_unit_test(bounded_numbers_stay_below_the_bound_and_reach_every_value),
		cmocka_unit_test(a_sequence_is_repeatable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
