#include "simulate/plays.h"

#include <math.h>
#include <string.h>

static const char device[] =
	"device: {name: test, memory: 1 GiB, memory_bandwidth: 8, kernel_overhead: 0, "
	"matmul_efficiency: 1,\n"
	"  flops: {f32: 1000}}\n";

void read_cluster(sw_cluster *cluster, const char *levels)
{
	sw_text text = {0};
	sw_error err;
	sw_text_addf(&text, "version: 1\nname: test\nlevels: [%s]\n%s", levels, device);
	if (sw_cluster_parse(text.data, text.len, "test.yaml", cluster, &err) != SW_OK)
		fail_msg("%d: %s\n%s", err.line, err.message, text.data);
	sw_text_clear(&text);
}

sw_program *read_program(const char *text)
{
	sw_program *program;
	sw_error err;
	if (sw_read_hlo(text, strlen(text), "test.hlo", &program, &err) != SW_OK)
		fail_msg("%d:%d: %s\n%s", err.line, err.column, err.message, text);
	return program;
}

void play_scene(scene *s, const char *levels, const char *text)
{
	play_sharing_scene(s, levels, 0, text);
}

void play_sharing_scene(scene *s, const char *levels, double transfer_share, const char *text)
{
	sw_error err;
	read_cluster(&s->cluster, levels);
	s->cluster.device.transfer_share = transfer_share;
	s->program = read_program(text);
	if (sw_simulate(&s->cluster, s->program, NULL, 0, &s->played, &err) != SW_OK)
		fail_msg("%s", err.message);
}

void scene_clear(scene *s)
{
	sw_simulation_clear(&s->played);
	sw_program_free(s->program);
	sw_cluster_clear(&s->cluster);
}

double seconds_of(const scene *s, const char *name)
{
	for (size_t o = 0; o < s->program->ops.len; o++)
		if (strcmp(s->program->ops.data[o].name, name) == 0)
			return sw_cost_collective_op_seconds(&s->cluster, s->program, (sw_id)o);
	fail_msg("no op is named %s", name);
	return 0;
}

void assert_seconds(double actual, double expected)
{
	if (!(fabs(actual - expected) <= 1e-9 * fabs(expected) + 1e-12))
		fail_msg("%.17g s, expected %.17g s", actual, expected);
}

void assert_breakdown(const sw_breakdown *actual, double compute_s, double exposed_s, double idle_s,
                      double hidden_s)
{
	assert_seconds(actual->compute_s, compute_s);
	assert_seconds(actual->exposed_comm_s, exposed_s);
	assert_seconds(actual->idle_s, idle_s);
	assert_seconds(actual->hidden_comm_s, hidden_s);
}
