/*
 * Partitioned programs give the serial results: small programs and fixtures under every strategy,
 * on clusters where all, some and no dimensions divide; and under random plans.
 */
#include "partition/programs.h"
#include "partition/subject.h"
#include "search/search.h"

#include <stdlib.h>
#include <string.h>

/* f32 sums in another order, of at most a few hundred terms; `product` chains four more
 * roundings. */
#define TOLERANCE 2e-5

static void plan_and_compare(const subject *s, const sw_cluster *cluster, const char *strategy)
{
	sw_plan *plan;
	sw_error err = {0};
	sw_plan_options options = {.no_overlap = true, .quiet = true};
	check(sw_plan_strategy_parse(strategy, &options.strategy, &err), &err);
	sw_status status =
		sw_plan_make(s->program, s->name, &s->sidecar, cluster, &options, &plan, &err);
	if (status != SW_OK)
		fail_msg("%s, %s on %lld devices: %s", s->name, strategy,
		         (long long)cluster->n_devices, err.message);
	compare_with_serial(s, plan, TOLERANCE, strategy);
	sw_plan_free(plan);
}

static void each_small_program(void (*act)(const subject *s))
{
	for (const small_program *p = SMALL_PROGRAMS; p->name; p++) {
		subject s;
		subject_from_text(p->name, p->text, &s);
		act(&s);
		subject_clear(&s);
	}
}

static void on_clusters(const subject *s)
{
	static const struct {
		const char *counts, *strategies[6];
	} cases[] = {
		{"1", {"auto", "dp", "zero1", "zero3", "megatron:tp=1"}},
		{"2", {"auto", "dp", "zero1", "zero3", "megatron:tp=2"}},
		{"3", {"auto", "dp", "zero3", "megatron:tp=3"}},
		{"2,2", {"auto", "dp", "zero1", "zero3", "megatron:tp=2", "megatron:tp=4"}},
		{"2,3", {"dp", "zero3", "megatron:tp=3"}},
		{"7", {"dp", "zero3", "megatron:tp=7"}},
		{"2,2,2", {"dp", "zero3", "megatron:tp=4"}},
		{"2,[1, 4]", {"auto", "dp", "zero1", "zero3", "megatron:tp=5"}},
	};
	for (size_t c = 0; c < SW_COUNT(cases); c++) {
		sw_cluster cluster;
		make_cluster(cases[c].counts, &cluster);
		for (int k = 0; k < 6 && cases[c].strategies[k]; k++)
			plan_and_compare(s, &cluster, cases[c].strategies[k]);
		sw_cluster_clear(&cluster);
	}
}

static void every_strategy_keeps_the_results(void **state)
{
	(void)state;
	each_small_program(on_clusters);
}

static void try_random_plans(const subject *s)
{
	static const char *const clusters[] = {"2,2", "2,3", "3,2", "4", "2,2,2", "2,[1, 4]"};
	const char *given = getenv("SW_SEED");
	uint64_t first = (given ? strtoull(given, NULL, 10) : 1) * 1000;
	for (size_t c = 0; c < SW_COUNT(clusters); c++) {
		sw_cluster cluster;
		make_cluster(clusters[c], &cluster);
		for (uint64_t seed = first; seed < first + 6; seed++) {
			char what[64];
			sw_plan *plan;
			sw_error err = {0};
			snprintf(what, sizeof(what), "random plan %llu on %s",
			         (unsigned long long)seed, clusters[c]);
			check(sw_plan_random(s->program, "", &cluster, seed, false, &plan, &err),
			      &err);
			compare_with_serial(s, plan, TOLERANCE, what);
			sw_plan_free(plan);
		}
		sw_cluster_clear(&cluster);
	}
}

static void random_plans_keep_the_results(void **state)
{
	(void)state;
	each_small_program(try_random_plans);
}

/* The simplest case: under a replicated plan, the program stays as it was. */
static void nothing_is_split_in_a_replicated_plan(void **state)
{
	(void)state;
	for (const small_program *p = SMALL_PROGRAMS; p->name; p++) {
		subject s;
		sw_cluster cluster;
		sw_plan *plan;
		sw_program *local;
		sw_error err = {0};
		sw_program_cost cost;
		subject_from_text(p->name, p->text, &s);
		make_cluster("2,2", &cluster);
		cluster.device.fusion = SW_FUSION_NONE;
		check(sw_plan_replicated(s.program, &cluster, &plan, &err), &err);
		compare_with_serial(&s, plan, 0, "replicated");
		check(sw_partition(plan, &local, &err), &err);
		sw_cost_program(&cluster, local, &cost);
		assert_int_equal(cost.collectives, 0);
		assert_int_equal(local->ops.len, plan->program->ops.len);
		sw_program_free(local);
		sw_plan_free(plan);
		sw_cluster_clear(&cluster);
		subject_clear(&s);
	}
}

/* Zeros are read whole by a weight, and by rows of the batch: a device makes both, and slices none. */
static void a_repeated_number_is_made_in_each_layout(void **state)
{
	static const char text[] =
		"HloModule m, input_output_alias={ {0}: (1, {}, may-alias) }\n"
		"add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
		" ROOT c = f32[] add(a, b) }\n"
		"ENTRY e {\n"
		"  x = f32[8,4] parameter(0)\n"
		"  w = f32[8,4] parameter(1)\n"
		"  zero = f32[] constant(0)\n"
		"  zeros = f32[8,4] broadcast(zero), dimensions={}\n"
		"  up = f32[8,4] maximum(x, zeros)\n"
		"  down = f32[8,4] maximum(w, zeros)\n"
		"  q = f32[4] reduce(up, zero), dimensions={0}, to_apply=add\n"
		"  g = f32[8,4] broadcast(q), dimensions={1}\n"
		"  next = f32[8,4] subtract(down, g)\n"
		"  ROOT out = (f32[8,4]) tuple(next)\n"
		"}\n";
	subject s;
	sw_cluster cluster;
	sw_plan *plan;
	sw_program *local;
	sw_error err = {0};
	sw_plan_options dp = {.strategy = {.kind = SW_PLAN_DP}, .no_overlap = true, .quiet = true};
	int counts[SW_OPCODE_COUNT] = {0}, repeated = 0;
	(void)state;
	subject_from_text("zeros", text, &s);
	make_cluster("2,2", &cluster);
	check(sw_plan_make(s.program, s.name, &s.sidecar, &cluster, &dp, &plan, &err), &err);
	check(sw_partition_with_origins(plan, &local, NULL, &err), &err);
	for (size_t i = 0; i < local->ops.len; i++) {
		counts[local->ops.data[i].opcode]++;
		repeated += sw_repeats_number(local, &local->ops.data[i]);
	}
	assert_int_equal(counts[SW_OP_DYNAMIC_SLICE], 0);
	assert_int_equal(counts[SW_OP_ALL_REDUCE], 1);
	assert_int_equal(repeated, 2);
	compare_with_serial(&s, plan, TOLERANCE, "dp");
	sw_program_free(local);
	sw_plan_free(plan);
	sw_cluster_clear(&cluster);
	subject_clear(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_split_in_a_replicated_plan),
		cmocka_unit_test(a_repeated_number_is_made_in_each_layout),
		cmocka_unit_test(every_strategy_keeps_the_results),
		cmocka_unit_test(random_plans_keep_the_results),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
