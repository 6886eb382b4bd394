/*
 * The plan file: write it, read it, write it again.
 */
#include "plan/plan_files.h"

#include <stdlib.h>

static void assert_same_file(const char *a, const char *b)
{
	char *x, *y;
	size_t n, m;
	sw_error err = {0};
	check(sw_file_read(a, &x, &n, &err), &err);
	check(sw_file_read(b, &y, &m, &err), &err);
	assert_int_equal(n, m);
	assert_memory_equal(x, y, n);
	free(x);
	free(y);
}

static void a_plan_survives_its_file(void **state)
{
	static const struct {
		const char *fixture, *cluster, *strategy;
	} cases[] = {
		{"mlp", "local-2x2.yaml", "auto"},
		{"mlp", "local-2x2.yaml", "dp"},
		{"gpt-tiny", "local-2x2.yaml", "megatron:tp=2"},
		{"gpt-tiny", "local-2x4.yaml", "zero1"},
		{"gpt-tiny-scan", "local-2x2.yaml", "zero3"},
		{"gpt-tiny-scan", "local-1x4.yaml", "megatron:tp=4"},
		{"mlp-clip", "unequal-1-4.yaml", "auto"},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		planned p;
		sw_cluster cluster;
		sw_plan *again;
		sw_error err = {0};
		sw_program_cost cost;
		open_fixture(cases[i].fixture, cases[i].cluster, &p);
		make_plan(&p, cases[i].strategy);
		check(sw_plan_write(p.plan, scratch(0), &err), &err);
		check(sw_plan_read(scratch(0), &cluster, &again, &err), &err);
		assert_same_decisions(p.plan, again);
		assert_int_equal(cluster.hash, p.cluster.hash);
		check(sw_partition_measure(again, &cost, &err), &err);
		assert_int_equal(cost.payload_bytes, p.plan->predicted.payload_bytes);
		assert_int_equal(cost.peak_bytes, p.plan->predicted.peak_bytes);
		check(sw_plan_write(again, scratch(1), &err), &err);
		assert_same_file(scratch(0), scratch(1));
		sw_plan_free(again);
		sw_cluster_clear(&cluster);
		close_planned(&p);
	}
}

/* A plan that re-gathers values where memory is short is read back with its re-gathering readers,
 * and needs no more memory than before. */
static void a_regathering_plan_survives_its_file(void **state)
{
	planned p;
	sw_cluster cluster;
	sw_plan *again;
	sw_error err = {0};
	sw_program_cost cost;
	(void)state;
	open_fixture("gpt-tiny", "local-2x2.yaml", &p);
	make_plan(&p, "zero3");
	int64_t limit = p.plan->predicted.peak_bytes * 9 / 10;
	check(try_plan(&p, "zero3", limit, &err), &err);
	assert_true(p.plan->regathered.len > 0);
	check(sw_plan_write(p.plan, scratch(0), &err), &err);
	check(sw_plan_read(scratch(0), &cluster, &again, &err), &err);
	assert_same_decisions(p.plan, again);
	check(sw_partition_measure(again, &cost, &err), &err);
	assert_int_equal(cost.peak_bytes, p.plan->predicted.peak_bytes);
	assert_true(cost.peak_bytes <= limit);
	sw_plan_free(again);
	sw_cluster_clear(&cluster);
	close_planned(&p);
}

static void planning_twice_gives_the_same_file(void **state)
{
	static const char *const strategies[] = {"auto", "megatron:tp=2", "zero3"};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(strategies); i++) {
		for (int round = 0; round < 2; round++) {
			planned p;
			sw_error err = {0};
			open_fixture(i == 0 ? "mlp-clip" : "gpt-tiny", "local-2x2.yaml", &p);
			make_plan(&p, strategies[i]);
			check(sw_plan_write(p.plan, scratch(round), &err), &err);
			close_planned(&p);
		}
		assert_same_file(scratch(0), scratch(1));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plan_survives_its_file),
		cmocka_unit_test(a_regathering_plan_survives_its_file),
		cmocka_unit_test(planning_twice_gives_the_same_file),
	};
	return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
