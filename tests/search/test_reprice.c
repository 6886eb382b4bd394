/* Plans at the prices of what the best one waits for: quicker where sums of gradients take longer than
 * the backward pass, and never slower. */
#include "planned/planned.h"
#include "search/search.h"

static double auto_s(planned *p, const sw_search_limits *limits)
{
	sw_plan_options options = {.quiet = true,
	                           .remat = "none",
	                           .microbatches = 1,
	                           .limits.search = limits};
	return plan_under(p, options, "auto");
}

static void compare(const char *fixture, double most)
{
	planned p;
	sw_search_limits none = sw_search_default_limits;
	none.reprice_rounds = 0;
	open_fixture(fixture, "a100-8x8.yaml", &p);
	double before_s = auto_s(&p, &none), step_s = auto_s(&p, NULL);
	if (step_s > most * before_s)
		fail_msg("%s: %g s, and %g s without prices", fixture, step_s, before_s);
	close_planned(&p);
}

static void messages_move_to_where_kernels_hide_them(void **state)
{
	(void)state;
	compare("gpt-124m", 0.975);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_move_to_where_kernels_hide_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
