/* Compare exp, log and tanh of f32 with the C library's in double: in units in the last place, over
 * the whole range. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "interpret/math32.h"

static double last_place(double exact)
{
	float x = (float)fabs(exact);
	return (double)nextafterf(x, INFINITY) - (double)x;
}

static double error_of(float computed, double exact)
{
	if (isnan(exact) || isinf((float)exact))
		return (isnan(exact) && isnan(computed)) || computed == (float)exact ? 0 : INFINITY;
	return fabs((double)computed - exact) / last_place(exact);
}

/* Check every 613th float: 7 million of them, with all exponents and both signs. */
static double worst(float (*ours)(float), double (*exact)(double), float *where)
{
	double largest = 0;
	for (uint64_t u = 0; u < (uint64_t)1 << 32; u += 613) {
		float x = sw_f32_of_bits((uint32_t)u);
		double error = error_of(ours(x), exact((double)x));
		if (error > largest) {
			largest = error;
			*where = x;
		}
	}
	return largest;
}

static void functions_are_within_two_units(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		float (*ours)(float);
		double (*exact)(double);
	} functions[] = {
		{"exp", sw_exp_f32, exp}, {"log", sw_log_f32, log}, {"tanh", sw_tanh_f32, tanh}};
	for (size_t i = 0; i < SW_COUNT(functions); i++) {
		float where = 0;
		double error = worst(functions[i].ours, functions[i].exact, &where);
		print_message("%s: %.2f units in the last place at %.9g\n", functions[i].name,
		              error, (double)where);
		assert_true(error <= 2);
	}
}

static void special_values_are_those_of_the_library(void **state)
{
	(void)state;
	static const float values[] = {0.0f,    -0.0f,   INFINITY,  -INFINITY, NAN,
	                               1e-45f,  -1e-45f, 88.72283f, 88.72285f, -103.9f,
	                               -104.1f, 1.0f,    -1.0f,     3.4e38f,   1.17549435e-38f};
	for (size_t i = 0; i < SW_COUNT(values); i++) {
		float x = values[i];
		assert_true(error_of(sw_exp_f32(x), exp((double)x)) <= 2);
		assert_true(error_of(sw_log_f32(x), log((double)x)) <= 2);
		assert_true(error_of(sw_tanh_f32(x), tanh((double)x)) <= 2);
	}
	assert_true(signbit(sw_tanh_f32(-0.0f)));
}

static void halves_round_to_nearest_even(void **state)
{
	(void)state;
	for (uint32_t h = 0; h < 0x10000; h++) {
		float x = sw_f32_of_f16((uint16_t)h), y = sw_f32_of_bf16((uint16_t)h);
		if (!isnan(x))
			assert_int_equal(sw_f16_of_f32(x), h);
		if (!isnan(y))
			assert_int_equal(sw_bf16_of_f32(y), h);
		assert_int_equal(isnan(x), (h & 0x7fff) > 0x7c00);
		if (isnan(x))
			assert_true(isnan(sw_f32_of_f16(sw_f16_of_f32(x))));
		if (isnan(y))
			assert_true(isnan(sw_f32_of_bf16(sw_bf16_of_f32(y))));
	}
	/* The middle between two neighbours rounds to the even one, numbers just beyond it to the
	 * nearer one. */
	for (uint32_t h = 0; h < 0x7bff; h++) {
		float low = sw_f32_of_f16((uint16_t)h), high = sw_f32_of_f16((uint16_t)(h + 1)),
		      middle = (low + high) / 2;
		assert_int_equal(sw_f16_of_f32(middle), h + (h & 1));
		assert_int_equal(sw_f16_of_f32(nextafterf(middle, INFINITY)), h + 1);
		assert_int_equal(sw_f16_of_f32(nextafterf(middle, 0)), h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_within_two_units),
		cmocka_unit_test(special_values_are_those_of_the_library),
		cmocka_unit_test(halves_round_to_nearest_even),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
