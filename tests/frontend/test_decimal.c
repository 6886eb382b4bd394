/* Decimal numbers, compared with the C library. */
#include "frontend/helpers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "frontend/decimal.h"

static size_t parse(const char *text, double *value)
{
	return sw_decimal_read(text, text + strlen(text), value);
}

static void random_numbers_are_read_as_the_library_does(void **state)
{
	(void)state;
	sw_rng rng = {.seed = 20240601};
	for (int i = 0; i < 200000; i++) {
		uint64_t bits = sw_rng_bits(&rng);
		double expected, found = 0;
		memcpy(&expected, &bits, sizeof(expected));
		if (!isfinite(expected))
			continue;
		char text[64];
		snprintf(text, sizeof(text), "%.*g", (int)sw_rng_below(&rng, 18), expected);
		if (parse(text, &found) != strlen(text) || found != strtod(text, NULL))
			fail_msg("%s is read as %.17g", text, found);
	}
}

static void odd_spellings_are_read(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t used;
		double value;
	} cases[] = {
		{"1", 1, 1},
		{"-1.5", 4, -1.5},
		{"+2", 2, 2},
		{".5", 2, .5},
		{"5.", 2, 5},
		{"1e5", 3, 1e5},
		{"1E-5", 4, 1e-5},
		{"1e+5", 4, 1e5},
		{"1e", 1, 1},
		{"1e+", 1, 1},
		{"1x", 1, 1},
		{"0x10", 1, 0},
		{"inf", 3, INFINITY},
		{"-inf", 4, -INFINITY},
		{"1e400", 5, INFINITY},
		{"1e-400", 6, 0},
		{"0e999999999999", 14, 0},
		{"00000000000000000000000000001", 29, 1},
		{"0.00000000000000000000000000000000000001", 40, 1e-38},
		{"123456789012345678901234567890", 30, 123456789012345678901234567890.},
		{"9007199254740993", 16, 9007199254740992.},
		{"9007199254740993.0000001", 24, 9007199254740994.},
		{"", 0, 0},
		{"-", 0, 0},
		{".", 0, 0},
		{"e5", 0, 0},
		{"x", 0, 0},
		{"in", 0, 0},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		double value = 0;
		size_t used = parse(cases[i].text, &value);
		if (used != cases[i].used || value != cases[i].value)
			fail_msg("\"%s\": used %zu, value %.17g", cases[i].text, used, value);
	}
	double value = 0;
	assert_int_equal(parse("nan", &value), 3);
	assert_true(isnan(value));
}

static void a_number_of_many_digits_is_read(void **state)
{
	(void)state;
	char text[3001];
	double value = 0;
	memset(text, '1', 3000);
	text[3000] = '\0';
	text[1] = '.';
	assert_int_equal(parse(text, &value), 3000);
	assert_true(fabs(value - 1.1111111111111111) < 1e-15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_numbers_are_read_as_the_library_does),
		cmocka_unit_test(odd_spellings_are_read),
		cmocka_unit_test(a_number_of_many_digits_is_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
