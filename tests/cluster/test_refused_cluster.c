/*
 * Cluster files that are refused: errors name the place and the key.
 */
#include "cluster/cluster_texts.h"

#include "test.h"

#define WITH_LEVEL(text) HEAD "levels:\n  - {" text "}\n" DEVICE
#define WITH_DEVICE(text) HEAD LEVELS "device: {" text "}\n"
static const struct {
	const char *text;
	int line, column;
	const char *message;
} bad[] = {
	{"- 1\n", 1, 1, "cluster: expected a mapping, found a list"},
	{"name: x\n" LEVELS DEVICE, 1, 1, "cluster: missing key \"version\""},
	{"version: 2\nname: x\n" LEVELS DEVICE, 1, 10,
         "version: expected 1, the only version there is"},
	{"version: 1\nname: \"\"\n" LEVELS DEVICE, 2, 7, "name: must not be empty"},
	{"version: 1\nname: \"a\\nb\"\n" LEVELS DEVICE, 2, 7, "name: expected printable characters"},
	{HEAD LEVELS, 1, 1, "cluster: missing key \"device\""},
	{HEAD LEVELS DEVICE "speed: 3\n", 8, 1,
         "cluster: unknown key \"speed\"; known are version, name, levels, device, calibration"},
	{HEAD "name: y\n" LEVELS DEVICE, 3, 1, "key \"name\" is given twice, first in line 2"},
	{HEAD "levels: []\n" DEVICE, 3, 9, "levels: expected 1 to 6 levels, found 0"},
	{HEAD "levels: 3\n" DEVICE, 3, 9,
         "levels: expected a list of levels, outermost first, found a plain value"},
	{WITH_LEVEL("name: a, latency: 1 us, bandwidth: 1"), 4, 5,
         "levels[0]: missing key \"count\""},
	{WITH_LEVEL("name: a, count: 2, latncy: 1 us, bandwidth: 1"), 4, 25,
         "levels[0]: unknown key \"latncy\" (nearest: 'latency'); known are name, count, device, latency, "
         "bandwidth, "
         "flow_bandwidth, contention"},
	{WITH_LEVEL("name: a, count: 0, latency: 1 us, bandwidth: 1"), 4, 22,
         "levels[0].count: must be more than zero"},
	{WITH_LEVEL("name: a, count: -2, latency: 1 us, bandwidth: 1"), 4, 22,
         "levels[0].count: must not be negative"},
	{WITH_LEVEL("name: a, count: 1.5, latency: 1 us, bandwidth: 1"), 4, 22,
         "levels[0].count: must be a whole number"},
	{WITH_LEVEL("name: a, count: two, latency: 1 us, bandwidth: 1"), 4, 22,
         "levels[0].count: expected a plain number such as 0.7, found \"two\""},
	{WITH_LEVEL("name: a, count: 2000000, latency: 1 us, bandwidth: 1"), 4, 22,
         "levels[0].count: more than 1048576 (2^20)"},
	{WITH_LEVEL("name: a, count: [1, 4], latency: 1 us, bandwidth: 1"), 4, 22,
         "levels[0].count: 2 counts for 1 units of the level above"},
	{WITH_LEVEL("name: a, count: [0], latency: 1 us, bandwidth: 1"), 4, 23,
         "levels[0].count[0]: must be more than zero"},
	{WITH_LEVEL("name: a, count: {x: 1}, latency: 1 us, bandwidth: 1"), 4, 22,
         "levels[0].count: expected a whole number, found a mapping"},
	{WITH_LEVEL("name: a, count: 2, latency: -1 us, bandwidth: 1"), 4, 34,
         "levels[0].latency: must not be negative"},
	{WITH_LEVEL("name: a, count: 2, latency: 1 fortnight, bandwidth: 1"), 4, 34,
         "levels[0].latency: unknown unit \"fortnight\"; known are s, ms, us, ns"},
	{WITH_LEVEL("name: a, count: 2, latency: soon, bandwidth: 1"), 4, 34,
         "levels[0].latency: expected a time such as 20 us, found \"soon\""},
	{WITH_LEVEL("name: a, count: 2, latency: inf, bandwidth: 1"), 4, 34,
         "levels[0].latency: expected a time such as 20 us, found \"inf\""},
	{WITH_LEVEL("name: a, count: 2, latency: 1 us, bandwidth: 0"), 4, 51,
         "levels[0].bandwidth: must be more than zero"},
	{WITH_LEVEL("name: a, count: 2, latency: 1 us, bandwidth: 2 GB"), 4, 51,
         "levels[0].bandwidth: unknown unit \"GB\"; known are B/s or b/s with k, M, G, T, or Ki, "
         "Mi, Gi, Ti before B"},
	{WITH_LEVEL("name: a, count: 2, latency: 1 us, bandwidth: 1e999"), 4, 51,
         "levels[0].bandwidth: \"1e999\" is too large"},
	{WITH_LEVEL("name: a, count: 2, latency: 1 us, bandwidth: [1]"), 4, 51,
         "levels[0].bandwidth: 1 bandwidths for 2 parts of the level"},
	{WITH_LEVEL("name: a, count: 2, latency: 1 us, bandwidth: []"), 4, 51,
         "levels[0].bandwidth: 0 bandwidths for 2 parts of the level"},
	{WITH_LEVEL("name: a, count: 2, latency: 1 us, bandwidth: [1, 0]"), 4, 55,
         "levels[0].bandwidth[1]: must be more than zero"},
	{WITH_LEVEL("name: a, count: 2, latency: 1 us, bandwidth: [1, [2]]"), 4, 55,
         "levels[0].bandwidth[1]: expected a bandwidth such as 25 GB/s or 200 Gb/s, found a list"},
	{WITH_LEVEL("name: a, count: 2, latency: 1 us, bandwidth: {x: 1}"), 4, 51,
         "levels[0].bandwidth: expected a bandwidth such as 25 GB/s or 200 Gb/s, found a mapping"},
	{WITH_LEVEL("name: a, count: 2, latency: 1 us, bandwidth: [2, 3], flow_bandwidth: 2.5"), 4,
         75, "levels[0].flow_bandwidth: is more than the least bandwidth"},
	{WITH_LEVEL("name: a, count: 2, latency: 1 us, bandwidth: 1, contention: -1"), 4, 66,
         "levels[0].contention: must not be negative"},
	{WITH_LEVEL("name: a, count: 2, latency: 1 us, bandwidth: 1, contention: 5 %"), 4, 66,
         "levels[0].contention: expected a plain number such as 0.7, found \"5 %\""},
	{WITH_LEVEL("name: a, count: 2, latency: 1 us, bandwidth: 1, flow_bandwidth: 2"), 4, 70,
         "levels[0].flow_bandwidth: is more than the bandwidth"},
	{WITH_LEVEL("name: a, count: 2, latency: 1 us, bandwidth: 1, flow_bandwidth: 0"), 4, 70,
         "levels[0].flow_bandwidth: must be more than zero"},
	{HEAD "levels:\n  - {name: a, count: 2, latency: 0, bandwidth: 1}\n  - {name: a, count: 2, "
              "latency: 0, bandwidth: 1}\n" DEVICE,
         5, 12, "levels[1].name: \"a\" names levels[0] already"},
	{HEAD "levels:\n  - {name: a, count: 2048, latency: 0, bandwidth: 1}\n  - {name: b, count: "
              "1024, latency: 0, bandwidth: 1}\n" DEVICE,
         5, 22, "levels[1].count: the cluster would have more than 1048576 (2^20) devices"},
	{WITH_DEVICE(
		 "name: x, memory: 1, memory_bandwidth: 1, kernel_overhead: 0, flops: {f32: 1}"),
         6, 9, "device: missing key \"matmul_efficiency\""},
	{WITH_DEVICE("name: x, memory: 0.5, memory_bandwidth: 1, kernel_overhead: 0, "
                     "matmul_efficiency: 1, flops: {f32: 1}"),
         6, 27, "device.memory: must be between 1 B and 2^62 B"},
	{WITH_DEVICE("name: x, memory: 16 Gib, memory_bandwidth: 1, kernel_overhead: 0, "
                     "matmul_efficiency: 1, flops: {f32: 1}"),
         6, 27,
         "device.memory: unknown unit \"Gib\"; known are B, kB, MB, GB, TB, KiB, MiB, GiB, TiB"},
	{WITH_DEVICE("name: x, memory: 1, memory_bandwidth: 1, kernel_overhead: 0, "
                     "matmul_efficiency: 1.1, flops: {f32: 1}"),
         6, 90, "device.matmul_efficiency: must be between 0.000001 and 1"},
	{WITH_DEVICE("name: x, memory: 1, memory_bandwidth: 1, kernel_overhead: 0, "
                     "matmul_efficiency: 1, flops: {f32: 1}, transfer_share: 1"),
         6, 126, "device.transfer_share: must be less than 1"},
	{WITH_DEVICE("name: x, memory: 1, memory_bandwidth: 1, kernel_overhead: 0, "
                     "matmul_efficiency: 70 %, flops: {f32: 1}"),
         6, 90, "device.matmul_efficiency: expected a plain number such as 0.7, found \"70 %\""},
	{WITH_DEVICE("name: x, memory: 1, memory_bandwidth: 1, kernel_overhead: 0, "
                     "matmul_efficiency: 1, flops: {bf16: 1}"),
         6, 100, "device.flops: missing key \"f32\""},
	{WITH_DEVICE("name: x, memory: 1, memory_bandwidth: 1, kernel_overhead: 0, "
                     "matmul_efficiency: 1, flops: {f32: 1, f31: 1}"),
         6, 109, "device.flops: \"f31\" is no element type"},
	{WITH_DEVICE("name: x, memory: 1, memory_bandwidth: 1, kernel_overhead: 0, "
                     "matmul_efficiency: 1, flops: {f32: 0}"),
         6, 106, "device.flops.f32: must be more than zero"},
	{WITH_DEVICE("name: x, memory: 1, memory_bandwidth: 1, kernel_overhead: 0, "
                     "matmul_efficiency: 1, flops: {f32: 1 GFLOPS}"),
         6, 106,
         "device.flops.f32: unknown unit \"GFLOPS\"; known are FLOP/s, MFLOP/s, GFLOP/s, TFLOP/s, "
         "PFLOP/s"},
	{WITH_DEVICE("name: x, memory: 1, memory_bandwidth: 1, kernel_overhead: 0, "
                     "matmul_efficiency: 1, flops: 5"),
         6, 100, "device.flops: expected a mapping of element types, found a plain value"},
};

static void errors_name_place_and_key(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(bad); i++) {
		sw_cluster cluster;
		sw_error err = {0};
		assert_int_equal(parse(bad[i].text, &cluster, &err), SW_ERR_INPUT);
		assert_string_equal(err.message, bad[i].message);
		assert_string_equal(err.file, "c.yaml");
		if (err.line != bad[i].line || err.column != bad[i].column)
			fail_msg("bad[%zu]: %s: at %d:%d", i, err.message, err.line, err.column);
		assert_null(cluster.arena.blocks);
	}
}

static void a_missing_file_is_named(void **state)
{
	sw_cluster cluster;
	sw_error err = {0};
	(void)state;
	assert_int_equal(sw_cluster_read("no/such/cluster.yaml", &cluster, &err), SW_ERR_IO);
	assert_string_equal(err.file, "no/such/cluster.yaml");
	sw_cluster_clear(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_name_place_and_key),
		cmocka_unit_test(a_missing_file_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
