/* The paper's closed forms (section 3.1), its experiments, and clusters beyond it. */
#include "crossmesh/transfers.h"

#include <math.h>

#include "test.h"

/* t: one object of 256 MB from one node to another */
#define SHAPE "u8[256000000]"
#define T 0.256

static double seconds_of(sw_cluster cluster, const char *shape, const char *from, const char *to,
                         sw_crossmesh_options options)
{
	transfer t = transfer_of(cluster, shape, from, to);
	sw_crossmesh_plan *plan = plan_of(&t, &options);
	double seconds = plan->seconds;
	sw_crossmesh_plan_free(plan);
	transfer_clear(&t);
	return seconds;
}

/* From one device to A nodes of B devices: node 0 sends. */
static double single(int32_t nodes, int32_t devices, sw_crossmesh_strategy strategy, int32_t chunks)
{
	char to[64];
	int32_t k = SW_MAX(devices, 2);
	sw_text list = {0};
	for (int32_t n = 1; n <= nodes; n++)
		sw_text_addf(&list, "%s%d-%d", n > 1 ? "," : "", n * k, n * k + devices - 1);
	snprintf(to, sizeof(to), "R@%s", list.data);
	sw_text_clear(&list);
	sw_crossmesh_options options = {.strategy = strategy,
	                                .order = SW_CROSSMESH_ENSEMBLE,
	                                .chunks = chunks,
	                                .pieces = 1};
	return seconds_of(plain_cluster(nodes + 1, k), SHAPE, "R@0", to, options);
}

static void assert_between(double value, double least, double most)
{
	if (value < least * (1 - 1e-6) - 1e-12 || value > most * (1 + 1e-6))
		fail_msg("%g is not in [%g, %g]", value, least, most);
}

/* What is inside a node is 25 times as fast, which the paper neglects: up to so much more. */
static void one_task_takes_what_the_paper_says(void **state)
{
	(void)state;
	for (int32_t a = 1; a <= 4; a++) {
		for (int32_t b = 1; b <= 4; b++) {
			double inside = T / 25, fill = a * T / 100 + a * b * inside / 100;
			assert_between(single(a, b, SW_CROSSMESH_SEND_RECV, 0), a * b * T,
			               a * b * T);
			assert_between(single(a, b, SW_CROSSMESH_LOCAL_ALL_GATHER, 0), a * T,
			               a * T + inside);
			assert_between(single(a, b, SW_CROSSMESH_BROADCAST, 100), T, T + fill);
			assert_between(single(a, b, SW_CROSSMESH_BROADCAST, 100),
			               T + (a - 1) * T / 100, INFINITY);
			if (a > 1)
				assert_between(single(a, b, SW_CROSSMESH_GLOBAL_ALL_GATHER, 0),
				               T + (double)(a * b - 1) / (a * b) * T, 2 * T);
		}
	}
}

static void more_receivers_cost_a_hundredth_at_most(void **state)
{
	(void)state;
	for (int32_t k = 2; k <= 4; k++) {
		assert_between(single(1, k, SW_CROSSMESH_BROADCAST, 0) /
		                       single(1, 1, SW_CROSSMESH_BROADCAST, 0),
		               1, 1.01);
		assert_between(single(k, 2, SW_CROSSMESH_BROADCAST, 0) /
		                       single(1, 2, SW_CROSSMESH_BROADCAST, 0),
		               1, 1.01);
	}
}

/* Table 2 of the paper on its cluster, with case 6 padded to 1026. */
static const char *const table2[][2] = {
	{"S0RR@2x4:0-7", "S0RR@2x4:8-15"}, {"RRR@2x4:0-7", "S0RR@2x4:8-15"},
	{"RS0R@2x4:0-7", "S0RR@2x4:8-15"}, {"RS01R@2x4:0-7", "S01RR@2x4:8-15"},
	{"S1RR@2x4:0-7", "S0RR@2x4:8-15"}, {"S0RR@2x4:0-7", "S0RR@3x4:8-19"},
	{"S1RR@1x4:0-3", "RRR@2x4:4-11"},  {"RRR@2x3:0-2,4-6", "RRR@3x2:8,9,12,13,16,17"},
	{"RS0R@2x4:0-7", "RRS0@2x4:8-15"},
};

static void the_nine_cases_come_within_a_twentieth_of_the_bound(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(table2); i++) {
		transfer t = transfer_of(plain_cluster(5, 4), "f32[1024,1024,512]", table2[i][0],
		                         table2[i][1]);
		sw_crossmesh_options options = sw_crossmesh_defaults();
		sw_crossmesh_plan *plan = plan_of(&t, &options);
		assert_between(sw_crossmesh_gap(plan), 0, 0.05);
		check_model(plan);
		sw_crossmesh_plan_free(plan);
		transfer_clear(&t);
	}
}

/* Eight flows fill a node's link: one chain is eight times too slow, pieces side by side are not.
 */
static void several_flows_share_a_link(void **state)
{
	(void)state;
	cluster_shape rails = {.n = 2,
	                       .devices = {8, 8},
	                       .bandwidth_mb = {8000, 8000},
	                       .rails = 8,
	                       .inner_mb = 100000};
	sw_crossmesh_options one = sw_crossmesh_defaults(), many = one;
	one.pieces = 1;
	double alone = seconds_of(cluster_of(&rails), SHAPE, "R@0-7", "R@8", one);
	double together = seconds_of(cluster_of(&rails), SHAPE, "R@0-7", "R@8", many);
	assert_between(alone, 8 * 0.032, 8 * 0.032 * 1.001);
	assert_between(together, 0.032, 0.032 * 1.005);
}

/* A node with a quick link sends to three with slow ones at once; the paper's model would serve
 * them one after the other. */
static void a_quick_link_serves_several_slow_ones(void **state)
{
	(void)state;
	cluster_shape unequal = {.n = 4,
	                         .devices = {1, 1, 1, 1},
	                         .bandwidth_mb = {300, 100, 100, 100},
	                         .rails = 1,
	                         .inner_mb = 1000};
	/* one flow has the third of the quick link */
	double seconds = seconds_of(cluster_of(&unequal), "u8[300000000]", "R@0", "S0@3:1-3",
	                            sw_crossmesh_defaults());
	assert_between(seconds, 1, 1.001);
}

/* Two holders with slow links send half each to a quick one. */
static void a_slice_is_cut_where_one_holder_is_too_slow(void **state)
{
	(void)state;
	cluster_shape unequal = {.n = 3,
	                         .devices = {1, 1, 1},
	                         .bandwidth_mb = {100, 100, 200},
	                         .rails = 1,
	                         .inner_mb = 1000};
	double seconds = seconds_of(cluster_of(&unequal), "u8[200000000]", "R@0-1", "R@2",
	                            sw_crossmesh_defaults());
	assert_between(seconds, 1, 1.001);
}

/* What a receiver's own node holds does not cross the slow link. */
static void what_is_near_is_taken_from_there(void **state)
{
	(void)state;
	double seconds = seconds_of(plain_cluster(2, 4), "u8[250000000]", "R@2x2:0,1,4,5",
	                            "R@2x2:2,3,6,7", sw_crossmesh_defaults());
	assert_between(seconds, 0.01, 0.0101);
}

/* Small tensors take latencies: a chain of many hops is not the quickest. */
static void a_small_tensor_does_not_go_through_a_long_chain(void **state)
{
	(void)state;
	cluster_shape s = {
		.n = 5, .rails = 1, .inner_mb = 25000, .latency_us = 50, .inner_latency_us = 5};
	for (int32_t i = 0; i < s.n; i++) {
		s.devices[i] = 4;
		s.bandwidth_mb[i] = 1000;
	}
	transfer t = transfer_of(cluster_of(&s), "u8[64]", "R@0", "R@4-19");
	sw_crossmesh_options options = sw_crossmesh_defaults();
	sw_crossmesh_plan *best = plan_of(&t, &options);
	options.strategy = SW_CROSSMESH_BROADCAST;
	sw_crossmesh_plan *chain = plan_of(&t, &options);
	assert_true(best->seconds < chain->seconds);
	sw_crossmesh_plan_free(best);
	sw_crossmesh_plan_free(chain);
	transfer_clear(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_task_takes_what_the_paper_says),
		cmocka_unit_test(more_receivers_cost_a_hundredth_at_most),
		cmocka_unit_test(the_nine_cases_come_within_a_twentieth_of_the_bound),
		cmocka_unit_test(several_flows_share_a_link),
		cmocka_unit_test(a_quick_link_serves_several_slow_ones),
		cmocka_unit_test(a_slice_is_cut_where_one_holder_is_too_slow),
		cmocka_unit_test(what_is_near_is_taken_from_there),
		cmocka_unit_test(a_small_tensor_does_not_go_through_a_long_chain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
