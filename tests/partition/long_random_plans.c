/* Fixtures under random plans, compared with the serial program. SW_SEED=N tries others. */
#include "partition/subject.h"
#include "model/model.h"

#include <stdlib.h>

/* Adam divides a gradient by its own magnitude. Where the gradient is only rounding, the update is
 * rounding over rounding, so parameters differ by a part of the learning rate: 1e-3 of weights of
 * about 0.1. */
#define TOLERANCE 1e-4

static void each_random_plan(const char *fixture, int plans)
{
	static const char *const clusters[] = {"2,2", "2,3"};
	const char *given = getenv("SW_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 10) : 1;
	subject s;
	subject_from_fixture(fixture, &s);
	for (int i = 0; i < plans; i++) {
		sw_cluster cluster;
		char what[64];
		make_cluster(clusters[i % 2], &cluster);
		sw_plan *plan;
		sw_error err = {0};
		check(sw_plan_random(s.program, "", &cluster, seed * 1000 + (uint64_t)i, false,
		                     &plan, &err),
		      &err);
		snprintf(what, sizeof(what), "random plan %llu on %s",
		         (unsigned long long)(seed * 1000 + (uint64_t)i), clusters[i % 2]);
		compare_with_serial(&s, plan, TOLERANCE, what);
		sw_plan_free(plan);
		sw_cluster_clear(&cluster);
	}
	subject_clear(&s);
}

static void random_plans_of_fixtures_keep_the_results(void **state)
{
	static const char *const fixtures[] = {
		"mlp",           "mlp-clip",           "gpt-tiny",  "gpt-tiny-clip",
		"gpt-tiny-scan", "gpt-tiny-scan-clip", "bert-tiny", "t5-tiny-clip"};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(fixtures); i++)
		each_random_plan(fixtures[i], 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_plans_of_fixtures_keep_the_results),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
