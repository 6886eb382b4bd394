/* The cases of test_generated, but many more: SW_CASES (100,000) from SW_SEED (1,000,000) on;
 * progress on standard error. */
#include "partition/cases.h"

#include <stdlib.h>

#define MAX_FAILURES 20 /* number of failing cases per process that are shrunk and printed */

static void random_programs_keep_their_results(void **state)
{
	const char *cases = getenv("SW_CASES"), *seed = getenv("SW_SEED");
	int64_t n = cases ? strtoll(cases, NULL, 10) : 100000;
	coverage c = {0};
	sw_text text = {0};
	(void)state;
	int failed = cases_run_in_parallel(seed ? strtoull(seed, NULL, 10) : 1000000, n,
	                                   MAX_FAILURES, sw_cpu_count(), &c);
	coverage_print(&c, &text);
	fputs(text.data, stdout);
	sw_text_clear(&text);
	assert_int_equal(failed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_programs_keep_their_results),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
