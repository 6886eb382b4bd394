#include "cost/clusters.h"

#include <math.h>
#include <string.h>

static const char device_text[] = "device:\n"
				  "  name: test\n"
				  "  memory: 1 GiB\n"
				  "  memory_bandwidth: 1 GB/s\n"
				  "  kernel_overhead: 10 us\n"
				  "  matmul_efficiency: 0.5\n"
				  "  flops: {f32: 100 GFLOP/s, bf16: 400 GFLOP/s}\n";

void make_cluster(sw_cluster *cluster, const level_text *levels, size_t n)
{
	sw_text text = {0};
	sw_error err;
	sw_text_add(&text, "version: 1\nname: test\nlevels:\n");
	for (size_t i = 0; i < n; i++) {
		sw_text_addf(&text, "  - {name: %c, count: %s, latency: %.17g, bandwidth: %.17g",
		             (char)('a' + i), levels[i].count, levels[i].latency_s,
		             levels[i].bandwidth);
		if (levels[i].flow_bandwidth > 0)
			sw_text_addf(&text, ", flow_bandwidth: %.17g", levels[i].flow_bandwidth);
		sw_text_add(&text, "}\n");
	}
	sw_text_add(&text, device_text);
	if (sw_cluster_parse(text.data, text.len, "test.yaml", cluster, &err) != SW_OK)
		fail_msg("%s\n%s", err.message, text.data);
	sw_text_clear(&text);
}

sw_program *read_text(const char *text)
{
	sw_program *program;
	sw_error err;
	if (sw_read_hlo(text, strlen(text), "test.hlo", &program, &err) != SW_OK)
		fail_msg("%d:%d: %s", err.line, err.column, err.message);
	return program;
}

sw_id find_op(const sw_program *program, const char *name)
{
	for (size_t o = 0; o < program->ops.len; o++)
		if (strcmp(program->ops.data[o].name, name) == 0)
			return (sw_id)o;
	fail_msg("no op is named %s", name);
	return SW_NO_ID;
}

void assert_seconds(double actual, double expected)
{
	if (!(fabs(actual - expected) <= 1e-12 * fabs(expected)))
		fail_msg("%.17g s, expected %.17g s", actual, expected);
}

uint32_t atoms_of_level(const sw_cluster *cluster, int32_t level)
{
	uint32_t mask = 0;
	for (int32_t a = 0; a < cluster->atoms.n; a++)
		if (cluster->atom_level[a] == level)
			mask |= UINT32_C(1) << a;
	return mask;
}
