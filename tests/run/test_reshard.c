/* Transfers between meshes on threads: every strategy and order arrives, and a rank that fails ends
 * all others. */
#include "run/reshard.h"

#include <string.h>

#include "test.h"

/* Nodes of 3, 3 and 2 devices. */
static sw_cluster make_cluster(void)
{
	static const char text[] =
		"version: 1\nname: t\nlevels:\n"
		"  - {name: node, count: 3, latency: 10 us, bandwidth: 1 GB/s}\n"
		"  - {name: device, count: [3, 3, 2], latency: 1 us, bandwidth: 10 GB/s}\n"
		"device:\n  name: d\n  memory: 1 GiB\n  memory_bandwidth: 10 GB/s\n"
		"  kernel_overhead: 1 us\n  matmul_efficiency: 1\n  flops: {f32: 1 GFLOP/s}\n";
	sw_cluster cluster;
	sw_error err = {0};
	if (sw_cluster_parse(text, strlen(text), "test", &cluster, &err))
		fail_msg("%s", err.message);
	return cluster;
}

static const struct {
	const char *shape, *from, *to;
} cases[] = {
	{"f32[37,50]", "S0R@4:0-3", "RS0@4:4-7"},
	{"f32[100,300]", "RS01@2x2:0,1,3,4", "S01R@2x2:2,5-7"}, /* messages of several pieces */
	{"bf16[64,9]", "RR@3:0-2", "S0S1@2x2:3-6"},
	{"u8[400003]", "R@2:0-1", "R@6:2-7"}, /* rings of many messages */
	{"f32[40,20]", "S0R+P1@2x2:0-3", "RS0@4:4-7"},
	{"f64[500,40]", "RR+P01@2x3:0-5", "S0R@2:6-7"},
	{"s32[11,7]", "RR+P0(max)@4:0-3", "RR+P0(max)@4:4-7"},
	{"f32[11,7]", "RR+P0(product)@2:0-1", "RR+P0(product)@3:4-6"},
	{"f32[]", "@3:0-2", "+P0@2:3-4"},
	{"s8[5]", "S0@4:0-3", "S0@3:5-7"},
	{"f32[0,4]", "RR@0", "RR@1"},
};

static void run_case(size_t i, sw_crossmesh_strategy strategy, sw_crossmesh_order order)
{
	sw_cluster cluster = make_cluster();
	sw_arena arena;
	sw_shape shape;
	sw_crossmesh_side from, to;
	sw_crossmesh_plan *plan = NULL;
	sw_crossmesh_options options = {.strategy = strategy, .order = order};
	sw_reshard_options how = {.repeat = 2, .seed = 5};
	sw_reshard_result result;
	sw_error err = {0};
	sw_arena_init(&arena);
	sw_status status = sw_crossmesh_parse_shape(cases[i].shape, &arena, &shape, &err);
	if (status == SW_OK)
		status = sw_crossmesh_parse_side(cases[i].from, shape, &cluster, &arena, &from,
		                                 &err);
	if (status == SW_OK)
		status = sw_crossmesh_parse_side(cases[i].to, shape, &cluster, &arena, &to, &err);
	if (status == SW_OK)
		status = sw_crossmesh_plan_make(&cluster, &from, &to, shape, &options, &plan, &err);
	if (status == SW_OK)
		status = sw_run_reshard_local(&cluster, plan, &how, &result, &err);
	if (status)
		fail_msg("case %zu, %s, %s: %s", i, sw_crossmesh_strategy_name(strategy),
		         sw_crossmesh_order_name(order), err.message);
	/* Each device of the target checks each element of its part. */
	int64_t least = to.layout.monoid || sw_layout_split_atoms(&to.layout, -1)
	                        ? sw_shape_elements(shape)
	                        : sw_shape_elements(shape) * sw_atoms_devices(&to.axes);
	assert_true(result.checked >= least);
	sw_crossmesh_plan_free(plan);
	sw_arena_clear(&arena);
	sw_cluster_clear(&cluster);
}

static void every_case_arrives_by_every_strategy_and_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++)
		for (int s = 0; s < SW_CROSSMESH_STRATEGIES; s++)
			run_case(i, (sw_crossmesh_strategy)s, SW_CROSSMESH_ENSEMBLE);
	for (int o = 0; o < SW_CROSSMESH_ORDERS; o++)
		run_case(0, SW_CROSSMESH_BROADCAST, (sw_crossmesh_order)o);
}

/* A cluster of another size than the job is refused by all ranks. */
static void ranks_and_devices_must_match(void **state)
{
	(void)state;
	sw_cluster cluster = make_cluster();
	sw_arena arena;
	sw_shape shape;
	sw_crossmesh_side from, to;
	sw_crossmesh_plan *plan = NULL;
	sw_crossmesh_options options = sw_crossmesh_defaults();
	sw_transport *transports[2];
	sw_reshard_options how = {.repeat = 1};
	sw_reshard_result result;
	sw_error err = {0};
	sw_arena_init(&arena);
	assert_int_equal(sw_crossmesh_parse_shape("f32[4]", &arena, &shape, &err), SW_OK);
	assert_int_equal(sw_crossmesh_parse_side("R@0", shape, &cluster, &arena, &from, &err),
	                 SW_OK);
	assert_int_equal(sw_crossmesh_parse_side("R@1", shape, &cluster, &arena, &to, &err), SW_OK);
	assert_int_equal(sw_crossmesh_plan_make(&cluster, &from, &to, shape, &options, &plan, &err),
	                 SW_OK);
	assert_int_equal(sw_transport_local(2, transports, &err), SW_OK);
	assert_int_equal(sw_run_reshard(&cluster, plan, transports[0], &how, &result, &err),
	                 SW_ERR_INPUT);
	assert_non_null(strstr(err.message, "the cluster has 8 devices and there are 2 ranks"));
	transports[0]->ops->free(transports[0]);
	transports[1]->ops->free(transports[1]);
	sw_crossmesh_plan_free(plan);
	sw_arena_clear(&arena);
	sw_cluster_clear(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_case_arrives_by_every_strategy_and_order),
		cmocka_unit_test(ranks_and_devices_must_match),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
