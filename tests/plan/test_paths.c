/* Prices of moves between layouts: what a collective takes of the host counts. */
#include "plan/plan.h"

#include <math.h>

#include "planned/planned.h"

/* Return the seconds of the sum of a value over all four devices of a node. */
static double seconds_of_sum(const char *device)
{
	sw_cluster cluster;
	sw_error err = {0};
	sw_text text = {0};
	sw_text_addf(
		&text,
		"version: 1\nname: host\nlevels:\n"
		"  - {name: gpu, count: 4, latency: 3 us, bandwidth: 300 GB/s}\n"
		"device:\n  name: host\n  memory: 1 GB\n  memory_bandwidth: 2 TB/s\n"
		"  kernel_overhead: 4 us\n  matmul_efficiency: 1\n  flops: {f32: 10 TFLOP/s}\n%s",
		device);
	check(sw_cluster_parse(text.data, text.len, "host.yaml", &cluster, &err), &err);
	sw_redistribution how = sw_plan_redistribution(&cluster);
	double seconds =
		how.seconds(how.context, SW_MOVE_ALL_REDUCE, (1u << cluster.atoms.n) - 1, 4096);
	sw_cluster_clear(&cluster);
	sw_text_clear(&text);
	return seconds;
}

static void the_host_takes_launches_for_each_member(void **state)
{
	(void)state;
	double plain_s = seconds_of_sum(""),
	       kernels_s = seconds_of_sum("  launch_interval: 10 us\n"),
	       members_s = seconds_of_sum("  launch_interval: 10 us\n  collective_launches: 2.5\n");
	assert_true(plain_s > 0);
	assert_true(fabs(kernels_s - plain_s) < 1e-12);
	assert_true(fabs(members_s - plain_s - 4 * 2.5 * 10e-6) < 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_host_takes_launches_for_each_member),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
