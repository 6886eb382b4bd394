/* The attacks of test_bound, but many more, and longer descents: forty times SW_CASES (2,500, as
 * tools/test --long asks for) from SW_SEED (1,000,000) on. */
#include "bound/campaign.h"

#include <stdlib.h>

static const effort LONG = {.random = 3, .draws = 12, .moves = 14, .planned = 200, .recorded = 150};

static void no_plan_is_quicker_than_the_bound(void **state)
{
	const char *cases = getenv("SW_CASES"), *seed = getenv("SW_SEED");
	int64_t n = cases ? strtoll(cases, NULL, 10) : 2500;
	campaign c;
	(void)state;
	campaign_init(&c, 1, LONG);
	campaign_run(&c, seed ? strtoull(seed, NULL, 10) : 1000000, 40 * n);
	campaign_print(&c);
	assert_int_equal(c.attacker.violations, 0);
	campaign_clear(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_plan_is_quicker_than_the_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
