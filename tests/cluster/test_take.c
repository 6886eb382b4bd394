/* A part of a cluster: its devices, the figures of its links, and refused requests. */
#include "cluster/cluster.h"

#include <string.h>

#include "test.h"

#define DEVICE                                                                                     \
	"device: {name: d, memory: 2 GiB, memory_bandwidth: 8 GB/s, kernel_overhead: 1 us,\n"      \
	"  matmul_efficiency: 0.7, flops: {f32: 50 GFLOP/s}}\n"
#define CLUSTER(levels) "version: 1\nname: test\nlevels:\n" levels DEVICE
#define LEVEL(name, count, bandwidth)                                                              \
	"  - {name: " name ", count: " count ", latency: 1 us, bandwidth: " bandwidth "}\n"

static const char nodes_of_8[] =
	CLUSTER(LEVEL("node", "6", "1e9") LEVEL("module", "4", "2e9") LEVEL("gpu", "2", "3e9"));
static const char unequal[] =
	CLUSTER(LEVEL("node", "3", "[3e9, 1e9, 2e9]") LEVEL("gpu", "[1, 2, 4]", "3e9"));

static void parse(const char *text, sw_cluster *cluster)
{
	sw_error err = {0};
	if (sw_cluster_parse(text, strlen(text), "c.yaml", cluster, &err) != SW_OK)
		fail_msg("%s", err.message);
}

/* The part is, figure by figure, the cluster that a file of its size gives. */
static const struct {
	const char *of, *what, *same_as;
} parts[] = {
	{nodes_of_8, "48", nodes_of_8},
	{nodes_of_8, "6x4x2", nodes_of_8},
	{nodes_of_8, "24",
         CLUSTER(LEVEL("node", "3", "1e9") LEVEL("module", "4", "2e9") LEVEL("gpu", "2", "3e9"))},
	{nodes_of_8, "8",
         CLUSTER(LEVEL("node", "1", "1e9") LEVEL("module", "4", "2e9") LEVEL("gpu", "2", "3e9"))},
	{nodes_of_8, "6",
         CLUSTER(LEVEL("node", "1", "1e9") LEVEL("module", "3", "2e9") LEVEL("gpu", "2", "3e9"))},
	{nodes_of_8, "2",
         CLUSTER(LEVEL("node", "1", "1e9") LEVEL("module", "1", "2e9") LEVEL("gpu", "2", "3e9"))},
	{nodes_of_8, "1",
         CLUSTER(LEVEL("node", "1", "1e9") LEVEL("module", "1", "2e9") LEVEL("gpu", "1", "3e9"))},
	{nodes_of_8, "2x3x1",
         CLUSTER(LEVEL("node", "2", "1e9") LEVEL("module", "3", "2e9") LEVEL("gpu", "1", "3e9"))},
	{unequal, "1", CLUSTER(LEVEL("node", "1", "3e9") LEVEL("gpu", "1", "3e9"))},
	{unequal, "3", CLUSTER(LEVEL("node", "2", "[3e9, 1e9]") LEVEL("gpu", "[1, 2]", "3e9"))},
	{unequal, "3x1", CLUSTER(LEVEL("node", "3", "[3e9, 1e9, 2e9]") LEVEL("gpu", "1", "3e9"))},
};

static void a_part_is_the_cluster_that_a_file_of_its_size_gives(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(parts); i++) {
		sw_cluster part, wanted;
		sw_text printed = {0}, expected = {0};
		sw_error err = {0};
		parse(parts[i].of, &part);
		parse(parts[i].same_as, &wanted);
		if (sw_cluster_take(&part, parts[i].what, &err) != SW_OK)
			fail_msg("%s: %s", parts[i].what, err.message);
		sw_cluster_print(&part, &printed);
		sw_cluster_print(&wanted, &expected);
		assert_string_equal(printed.data, expected.data);
		assert_int_equal(part.n_devices, wanted.n_devices);
		assert_int_equal(part.atoms.n, wanted.atoms.n);
		assert_memory_equal(part.atoms.size, wanted.atoms.size,
		                    (size_t)part.atoms.n * sizeof(part.atoms.size[0]));
		assert_memory_equal(part.atom_level, wanted.atom_level,
		                    (size_t)part.atoms.n * sizeof(part.atom_level[0]));
		assert_memory_equal(part.place, wanted.place,
		                    (size_t)(part.n_devices * part.n_levels) *
		                            sizeof(part.place[0]));
		assert_true(part.hash == wanted.hash);
		sw_text_clear(&printed);
		sw_text_clear(&expected);
		sw_cluster_clear(&part);
		sw_cluster_clear(&wanted);
	}
}

static const struct {
	const char *of, *what, *message;
} refused[] = {
	{nodes_of_8, "49", "cannot take 49 devices: the cluster has 48"},
	{nodes_of_8, "12",
         "cannot take 12 devices: the last node would not be whole; take 8 or 16"},
	{nodes_of_8, "3", "cannot take 3 devices: the last module would not be whole; take 2 or 4"},
	{unequal, "2", "cannot take 2 devices: the last node would not be whole; take 1 or 3"},
	{nodes_of_8, "7x4x2", "cannot take 7 of each node: there are 6"},
	{nodes_of_8, "2x4x3", "cannot take 3 of each gpu: there are 2"},
	{unequal, "3x2", "cannot take 2 of each gpu: there are 1"},
	{nodes_of_8, "2x4",
         "cannot take \"2x4\": expected a number of devices, or counts of node x module x gpu"},
	{nodes_of_8, "0",
         "cannot take \"0\": expected a number of devices, or counts of node x module x gpu"},
	{nodes_of_8, "2x",
         "cannot take \"2x\": expected a number of devices, or counts of node x module x gpu"},
	{nodes_of_8, "-2",
         "cannot take \"-2\": expected a number of devices, or counts of node x module x gpu"},
	{nodes_of_8, "8 ",
         "cannot take \"8 \": expected a number of devices, or counts of node x module x gpu"},
	{nodes_of_8, "1x1x1x1x1x1x1",
         "cannot take \"1x1x1x1x1x1x1\": expected a number of devices, or counts of node x module "
         "x gpu"},
	{nodes_of_8, "99999999999999999999",
         "cannot take \"99999999999999999999\": expected a number of devices, or counts of node x "
         "module x "
         "gpu"},
};

static void an_impossible_part_is_refused_and_nothing_changes(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(refused); i++) {
		sw_cluster cluster;
		sw_error err = {0};
		parse(refused[i].of, &cluster);
		uint64_t hash = cluster.hash;
		int64_t devices = cluster.n_devices;
		assert_int_equal(sw_cluster_take(&cluster, refused[i].what, &err), SW_ERR_INPUT);
		assert_string_equal(err.message, refused[i].message);
		assert_string_equal(err.file, "c.yaml");
		assert_true(cluster.hash == hash);
		assert_int_equal(cluster.n_devices, devices);
		sw_cluster_clear(&cluster);
	}
}

/* A capped flow stays capped; one that could use all of the smallest link can use all of the
 * smallest that is left. */
static void flows_keep_their_cap(void **state)
{
	static const char
		capped[] = CLUSTER("  - {name: node, count: 2, latency: 1 us, bandwidth: [4e9, "
	                           "2e9], flow_bandwidth: 1e9}\n"),
		whole[] = CLUSTER(
			"  - {name: node, count: 2, latency: 1 us, bandwidth: [4e9, 2e9]}\n");
	sw_cluster cluster;
	(void)state;
	parse(capped, &cluster);
	assert_int_equal(sw_cluster_take(&cluster, "1", NULL), SW_OK);
	assert_true(cluster.levels[0].bandwidth == 4e9 && cluster.levels[0].flow_bandwidth == 1e9);
	sw_cluster_clear(&cluster);
	parse(whole, &cluster);
	assert_int_equal(sw_cluster_take(&cluster, "1", NULL), SW_OK);
	assert_true(cluster.levels[0].bandwidth == 4e9 && cluster.levels[0].flow_bandwidth == 4e9);
	sw_cluster_clear(&cluster);
}

static void points_are_kept_for_all_devices_only(void **state)
{
	static const char text[] = CLUSTER(LEVEL("node", "2", "1e9") LEVEL(
		"gpu", "2",
		"3e9")) "calibration:\n  date: 2026-11-22\n  error: 0.1\n  points:\n"
			"    - {collective: all-reduce, atoms: [0], algorithm: ring, bytes: 8, "
			"seconds: 1, deviation: 0}\n";
	sw_cluster cluster;
	(void)state;
	parse(text, &cluster);
	assert_int_equal(sw_cluster_take(&cluster, "4", NULL), SW_OK);
	assert_int_equal(sw_cluster_take(&cluster, "2x2", NULL), SW_OK);
	assert_int_equal(cluster.calibration.n_points, 1);
	assert_int_equal(sw_cluster_take(&cluster, "2", NULL), SW_OK);
	assert_int_equal(cluster.calibration.n_points, 0);
	assert_string_equal(cluster.calibration.date, "2026-11-22");
	sw_cluster_clear(&cluster);
}

/* Any range of devices is a cluster: of nodes that are cut, too. */
static void a_range_cuts_nodes(void **state)
{
	static const struct {
		const char *of;
		int64_t first, n;
		const char *same_as;
	} ranges[] = {
		{nodes_of_8, 0, 48, nodes_of_8},
		{nodes_of_8, 8, 16,
	         CLUSTER(LEVEL("node", "2", "1e9") LEVEL("module", "4", "2e9")
	                         LEVEL("gpu", "2", "3e9"))},
		{nodes_of_8, 4, 8,
	         CLUSTER(LEVEL("node", "2", "1e9") LEVEL("module", "2", "2e9")
	                         LEVEL("gpu", "2", "3e9"))},
		{nodes_of_8, 7, 2,
	         CLUSTER(LEVEL("node", "2", "1e9") LEVEL("module", "1", "2e9")
	                         LEVEL("gpu", "1", "3e9"))},
		{unequal, 2, 3,
	         CLUSTER(LEVEL("node", "2", "[1e9, 2e9]") LEVEL("gpu", "[1, 2]", "3e9"))},
		{unequal, 4, 3, CLUSTER(LEVEL("node", "1", "2e9") LEVEL("gpu", "3", "3e9"))},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(ranges); i++) {
		sw_cluster part, wanted;
		sw_text printed = {0}, expected = {0};
		parse(ranges[i].of, &part);
		parse(ranges[i].same_as, &wanted);
		sw_cluster_take_range(&part, ranges[i].first, ranges[i].n);
		assert_int_equal(part.n_devices, ranges[i].n);
		sw_cluster_print(&part, &printed);
		sw_cluster_print(&wanted, &expected);
		assert_string_equal(printed.data, expected.data);
		sw_text_clear(&printed);
		sw_text_clear(&expected);
		sw_cluster_clear(&part);
		sw_cluster_clear(&wanted);
	}
}

/* Ranges are alike if their devices are joined alike by equal links, whatever joins them with
 * others. */
static void ranges_are_compared(void **state)
{
	static const struct {
		const char *of;
		int64_t a, b, n, unlike;
	} cases[] = {
		{nodes_of_8, 0, 8, 8, 16},  {nodes_of_8, 0, 4, 4, 8},  {nodes_of_8, 0, 6, 6, 8},
		{nodes_of_8, 0, 24, 12, 36}, {nodes_of_8, 4, 20, 8, 28}, {unequal, 0, 2, 1, 3},
		{unequal, 1, 3, 2, 5},      {unequal, 0, 2, 2, 2},
	};
	sw_cluster cluster;
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		parse(cases[i].of, &cluster);
		assert_int_equal(sw_cluster_first_unlike(&cluster, cases[i].a, cases[i].b,
		                                         cases[i].n),
		                 cases[i].unlike);
		sw_cluster_clear(&cluster);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_part_is_the_cluster_that_a_file_of_its_size_gives),
		cmocka_unit_test(an_impossible_part_is_refused_and_nothing_changes),
		cmocka_unit_test(flows_keep_their_cap),
		cmocka_unit_test(points_are_kept_for_all_devices_only),
		cmocka_unit_test(a_range_cuts_nodes),
		cmocka_unit_test(ranges_are_compared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
