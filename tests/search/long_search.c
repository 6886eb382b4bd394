/* auto against every fixed strategy: all fixtures, on small clusters. */
#include "planned/planned.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

static void plan_with(planned *p, const char *strategy, int64_t memory_bytes)
{
	sw_error err = {0};
	if (try_plan(p, strategy, memory_bytes, &err) != SW_OK)
		fail_msg("%s: %s", strategy, err.message);
}

/* memory_bytes 0: that of the cluster file. */
static void compare_strategies(const char *fixture, const char *cluster, int64_t memory_bytes)
{
	static const char *const strategies[] = {"dp", "zero1", "zero3", "megatron:tp=2",
	                                         "megatron:tp=4"};
	planned p;
	open_fixture(fixture, cluster, &p);
	plan_with(&p, "auto", memory_bytes);
	double best_s = p.plan->predicted.step_time_s;
	print_message("%-20s %-16s %-16s %8.3f ms, gap %5.2f %%, planned in %.1f s\n", fixture,
	              cluster, p.plan->chosen, best_s * 1e3, p.plan->gap * 100, p.plan->planning_s);
	for (size_t i = 0; i < SW_COUNT(strategies); i++) {
		plan_with(&p, strategies[i], memory_bytes);
		if (p.plan->predicted.step_time_s < best_s * (1 - 1e-12))
			fail_msg("%s: %s takes %g s, auto %g s", fixture, strategies[i],
			         p.plan->predicted.step_time_s, best_s);
	}
	close_planned(&p);
}

static void each_recorded(const char *cluster)
{
	glob_t found;
	assert_int_equal(
		glob(SW_SOURCE_DIR "/tests/programs/*.recorded.safetensors.gz", 0, NULL, &found),
		0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char name[128];
		const char *base = strrchr(found.gl_pathv[i], '/') + 1;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(base, "."), base);
		compare_strategies(name, cluster, 0);
	}
	globfree(&found);
}

static void auto_is_never_beaten_on_two_by_two(void **state)
{
	(void)state;
	each_recorded("local-2x2.yaml");
}

static void auto_is_never_beaten_on_one_by_four(void **state)
{
	(void)state;
	each_recorded("local-1x4.yaml");
}

/* Their activations exceed any memory without rematerialisation, so only times are compared. */
static void auto_is_never_beaten_on_programs_too_large_to_run(void **state)
{
	static const char *const fixtures[] = {"gpt-124m", "gpt-124m-scan", "llama3-8b",
	                                       "gpt-175b"};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(fixtures); i++)
		compare_strategies(fixtures[i], "local-2x2.yaml", INT64_C(1000000000000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(auto_is_never_beaten_on_two_by_two),
		cmocka_unit_test(auto_is_never_beaten_on_one_by_four),
		cmocka_unit_test(auto_is_never_beaten_on_programs_too_large_to_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
