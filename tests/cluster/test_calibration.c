/* The fitted parts of the cluster file: kernels and measured points. */
#include "cluster/cluster.h"

#include <string.h>

#include "test.h"

#define HEAD                                                                                       \
	"version: 1\nname: test\nlevels:\n"                                                        \
	"  - {name: node, count: 2, latency: 30 us, bandwidth: 2 GB/s}\n"                          \
	"  - {name: device, count: 2, latency: 5 us, bandwidth: 6 GB/s}\n"                         \
	"device:\n  name: cpu\n  memory: 2 GiB\n  memory_bandwidth: 8 GB/s\n  kernel_overhead: 1 " \
	"us\n"                                                                                     \
	"  matmul_efficiency: 0.7\n  flops: {f32: 50 GFLOP/s}\n"
#define KERNELS(text) HEAD "  kernels: {" text "}\n"
#define CALIBRATION(text) HEAD "calibration: {" text "}\n"
#define POINTS(text) CALIBRATION("date: 2026-11-22, error: 0.05, points: [" text "]")
#define POINT(collective, atoms, algorithm, bytes)                                                 \
	"{collective: " collective ", atoms: " atoms ", algorithm: " algorithm ", bytes: " bytes   \
	", seconds: 1 ms, deviation: 10 us}"

static sw_status parse(const char *text, sw_cluster *cluster, sw_error *err)
{
	return sw_cluster_parse(text, strlen(text), "c.yaml", cluster, err);
}

static void must_parse(const char *text, sw_cluster *cluster)
{
	sw_error err;
	if (parse(text, cluster, &err) != SW_OK)
		fail_msg("%d:%d: %s", err.line, err.column, err.message);
}

static const struct {
	const char *text;
	int line, column;
	const char *message;
} bad[] = {
	{KERNELS("dot: {overhead: 1 us}"), 13, 13,
         "device.kernels: expected one of matmul, convolution, elementwise, transcendental, "
         "reduce, move, "
         "indexed, found \"dot\""},
	{KERNELS("matmul: 3"), 13, 21,
         "device.kernels.matmul: expected a mapping, found a plain value"},
	{KERNELS("matmul: {flops: 1}"), 13, 21, "device.kernels.matmul: missing key \"overhead\""},
	{KERNELS("matmul: {overhead: 1 us, flops: 0}"), 13, 45,
         "device.kernels.matmul.flops: must be more than zero"},
	{KERNELS("matmul: {overhead: 1 us, speed: 1}"), 13, 38,
         "device.kernels.matmul: unknown key \"speed\"; known are overhead, flops, bandwidth, "
         "cached_bandwidth, call, row"},
	{KERNELS("move: {overhead: 0}"), 13, 19,
         "device.kernels.move: kernels would take no time: give an overhead, or any other term"},
	{CALIBRATION("error: 0.1, points: []"), 13, 14, "calibration: missing key \"date\""},
	{CALIBRATION("date: today, error: 0.1, points: []"), 13, 21,
         "calibration.date: expected a date such as 2026-11-22"},
	{CALIBRATION("date: 2026-11-220, error: 0.1, points: []"), 13, 21,
         "calibration.date: expected a date such as 2026-11-22"},
	{CALIBRATION("date: 2026-11-22, error: -1, points: []"), 13, 40,
         "calibration.error: must not be negative"},
	{CALIBRATION("date: 2026-11-22, error: 0, points: 3"), 13, 51,
         "calibration.points: expected a list of measured points, found a plain value"},
	{POINTS("{collective: all-reduce}"), 13, 55,
         "calibration.points[0]: missing key \"atoms\""},
	{POINTS(POINT("sum", "[0]", "ring", "1")), 13, 68,
         "calibration.points[0].collective: expected one of all-reduce, all-gather, "
         "reduce-scatter, "
         "all-to-all, broadcast, permute, found "
         "\"sum\""},
	{POINTS(POINT("all-reduce", "[0]", "fast", "1")), 13, 103,
         "calibration.points[0].algorithm: expected one of direct, ring, halving, hierarchical, "
         "chain, "
         "found \"fast\""},
	{POINTS(POINT("permute", "[0]", "ring", "1")), 13, 55,
         "calibration.points[0]: there is no ring permute"},
	{POINTS(POINT("all-reduce", "[2]", "ring", "1")), 13, 88,
         "calibration.points[0].atoms: expected an atom, 0 to 1, found \"2\""},
	{POINTS(POINT("all-reduce", "[0.5]", "ring", "1")), 13, 88,
         "calibration.points[0].atoms: expected an atom, 0 to 1, found \"0.5\""},
	{POINTS(POINT("all-reduce", "[1, 1]", "ring", "1")), 13, 91,
         "calibration.points[0].atoms: names an atom twice"},
	{POINTS(POINT("all-reduce", "[]", "ring", "1")), 13, 87,
         "calibration.points[0].atoms: must not be empty"},
	{POINTS(POINT("all-reduce", "0", "ring", "1")), 13, 87,
         "calibration.points[0].atoms: expected a list of atoms' numbers, such as [0, 1], found a "
         "plain "
         "value"},
	{POINTS(POINT("all-reduce", "[0]", "ring", "0.5")), 13, 116,
         "calibration.points[0].bytes: must be a whole number up to 2^62"},
	{POINTS(POINT("all-reduce", "[0]", "ring", "1e30")), 13, 116,
         "calibration.points[0].bytes: must be a whole number up to 2^62"},
	{POINTS(POINT("all-reduce", "[0]", "ring", "64") ", " POINT("all-reduce", "[0]", "direct",
                                                                    "64 B")),
         13, 54, "calibration.points: all-reduce of 64 bytes is there twice for the same atoms"},
};

static void errors_name_place_and_key(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(bad); i++) {
		sw_cluster cluster;
		sw_error err = {0};
		assert_int_equal(parse(bad[i].text, &cluster, &err), SW_ERR_INPUT);
		if (strcmp(err.message, bad[i].message) != 0 || err.line != bad[i].line ||
		    err.column != bad[i].column)
			fail_msg("%zu: %d:%d: %s", i, err.line, err.column, err.message);
	}
}

#define FITTED                                                                                     \
	HEAD "  kernels:\n    matmul: {overhead: 2 us, flops: 40 GFLOP/s}\n    move: {overhead: "  \
	     "0, "                                                                                 \
	     "bandwidth: 5 GB/s}\n"                                                                \
	     "calibration:\n  date: 2026-11-22\n  error: 0.043\n  points:\n"                       \
	     "    - " POINT(                                                                       \
		     "all-gather", "[0, 1]", "ring",                                               \
		     "64 KiB") "\n"                                                                \
			       "    - " POINT(                                                     \
				       "all-reduce", "[1]", "halving",                             \
				       "4 KiB") "\n"                                               \
						"    - " POINT(                                    \
							"all-reduce", "[1, 0]", "hierarchical",    \
							"1 KiB") "\n"                              \
								 "    - " POINT("all-reduce",      \
	                                                                        "[1]", "direct",   \
	                                                                        "1 KiB") "\n"

static void points_are_sorted(void **state)
{
	(void)state;
	sw_cluster cluster;
	must_parse(FITTED, &cluster);
	const sw_calibration *c = &cluster.calibration;
	static const struct {
		sw_collective_kind collective;
		uint32_t atoms;
		sw_algorithm algorithm;
		int64_t bytes;
	} expected[] = {
		{SW_COLLECTIVE_ALL_REDUCE, 2, SW_ALGORITHM_DIRECT, 1024},
		{SW_COLLECTIVE_ALL_REDUCE, 2, SW_ALGORITHM_HALVING, 4096},
		{SW_COLLECTIVE_ALL_REDUCE, 3, SW_ALGORITHM_HIERARCHICAL, 1024},
		{SW_COLLECTIVE_ALL_GATHER, 3, SW_ALGORITHM_RING, 65536},
	};
	assert_int_equal(c->n_points, SW_COUNT(expected));
	for (size_t i = 0; i < SW_COUNT(expected); i++) {
		assert_int_equal(c->points[i].collective, expected[i].collective);
		assert_int_equal(c->points[i].atoms, expected[i].atoms);
		assert_int_equal(c->points[i].algorithm, expected[i].algorithm);
		assert_int_equal(c->points[i].bytes, expected[i].bytes);
		assert_true(c->points[i].seconds == 1e-3 && c->points[i].deviation_s == 10e-6);
	}
	assert_string_equal(c->date, "2026-11-22");
	assert_true(c->error == 0.043);
	const sw_kernel_fit *kernels = cluster.device.kernels;
	assert_true(kernels[SW_FAMILY_MATMUL].given &&
	            kernels[SW_FAMILY_MATMUL].flops_per_s == 40e9);
	assert_true(kernels[SW_FAMILY_MATMUL].overhead_s == 2e-6 &&
	            kernels[SW_FAMILY_MATMUL].bytes_per_s == 0);
	assert_true(kernels[SW_FAMILY_MOVE].given && kernels[SW_FAMILY_MOVE].bytes_per_s == 5e9);
	assert_false(kernels[SW_FAMILY_REDUCE].given);
	sw_cluster_clear(&cluster);
}

static void printed_calibrations_read_back_equal(void **state)
{
	(void)state;
	sw_cluster cluster, again;
	sw_text text = {0}, second = {0};
	must_parse(FITTED, &cluster);
	sw_cluster_print(&cluster, &text);
	must_parse(text.data, &again);
	sw_cluster_print(&again, &second);
	assert_string_equal(text.data, second.data);
	assert_true(again.hash == cluster.hash);
	for (int family = 0; family < SW_FAMILY_COUNT; family++)
		assert_memory_equal(&again.device.kernels[family], &cluster.device.kernels[family],
		                    sizeof(sw_kernel_fit));
	sw_text_clear(&text);
	sw_text_clear(&second);
	sw_cluster_clear(&cluster);
	sw_cluster_clear(&again);
}

/* Everything that planning depends on is in the hash; the date, the error and deviations are not.
 */
static void the_hash_covers_everything_that_planning_depends_on(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool same;
	} cases[] = {
		{POINTS(POINT("all-reduce", "[0]", "ring", "64")), true},
		{CALIBRATION("date: 2027-01-01, error: 0.5, points: [" POINT("all-reduce", "[0]",
	                                                                     "ring", "64") "]"),
	         true},
		{POINTS("{collective: all-reduce, atoms: [0], algorithm: ring, bytes: 64, seconds: "
	                "1 ms, "
	                "deviation: 0}"),
	         true},
		{POINTS(POINT("all-reduce", "[1]", "ring", "64")), false},
		{POINTS(POINT("all-reduce", "[0]", "direct", "64")), false},
		{POINTS(POINT("all-gather", "[0]", "ring", "64")), false},
		{POINTS(POINT("all-reduce", "[0]", "ring", "65")), false},
		{POINTS("{collective: all-reduce, atoms: [0], algorithm: ring, bytes: 64, seconds: "
	                "2 ms, "
	                "deviation: 10 us}"),
	         false},
		{HEAD, false},
		{KERNELS("matmul: {overhead: 1 us}"), false},
	};
	sw_cluster first;
	must_parse(cases[0].text, &first);
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_cluster cluster;
		must_parse(cases[i].text, &cluster);
		assert_int_equal(cluster.hash == first.hash, cases[i].same);
		sw_cluster_clear(&cluster);
	}
	sw_cluster_clear(&first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_name_place_and_key),
		cmocka_unit_test(points_are_sorted),
		cmocka_unit_test(printed_calibrations_read_back_equal),
		cmocka_unit_test(the_hash_covers_everything_that_planning_depends_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
