/*
 * Random programs under random plans on random clusters give the results of one device and send the
 * predicted payload, and together they use every feature. SW_CASES and SW_SEED choose others; a
 * failing case is printed with its values of these.
 */
#include "partition/cases.h"

#include <stdlib.h>

#ifdef __SANITIZE_ADDRESS__
/* Sanitizers make each case ten times as slow. */
#define DEFAULT_CASES 60
#else
#define DEFAULT_CASES 2000
#endif

static void random_programs_keep_their_results(void **state)
{
	const char *cases = getenv("SW_CASES"), *seed = getenv("SW_SEED");
	int64_t n = cases ? strtoll(cases, NULL, 10) : DEFAULT_CASES;
	coverage c = {0};
	sw_text text = {0};
	(void)state;
	int failed =
		cases_run_in_parallel(seed ? strtoull(seed, NULL, 10) : 1, n, 3, n > 1 ? 2 : 1, &c);
	coverage_print(&c, &text);
	fputs(text.data, stdout);
	sw_text_clear(&text);
	int missing = n >= 2000 ? coverage_missing(&c, &text) : 0;
	if (missing)
		fputs(text.data, stdout);
	sw_text_clear(&text);
	assert_int_equal(failed, 0);
	assert_int_equal(missing, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_programs_keep_their_results),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
