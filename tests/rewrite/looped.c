#include "rewrite/looped.h"

#include <string.h>

#include "partition/partition.h"
#include "search/search.h"
#include "run/run.h"

static void check(sw_status status, const sw_error *err, const looped *l)
{
	if (status != SW_OK)
		fail_msg("%s: %s:%d: %s", l->name, err->file, err->line, err->message);
}

static void rewrite(looped *l, const sw_program *program, int32_t microbatches)
{
	l->before = canonical(program);
	sw_status status = sw_rewrite_microbatches(l->before, &l->sidecar, microbatches, &l->after,
	                                           &l->refusal);
	assert_int_equal(status == SW_OK, l->after != NULL);
	if (l->after) {
		sw_program *again = canonical(l->after);
		assert_same_program(again, l->after);
		sw_program_free(again);
	}
}

void looped_init(looped *l, const char *fixture, int32_t microbatches)
{
	char path[256];
	sw_error err;
	*l = (looped){0};
	snprintf(l->name, sizeof(l->name), "%s in %d microbatches", fixture, microbatches);
	snprintf(path, sizeof(path), SW_SOURCE_DIR "/tests/programs/%s.hlo.gz", fixture);
	sw_program *program = read_file(path);
	check(sw_sidecar_find(path, program, &l->sidecar, &err), &err, l);
	rewrite(l, program, microbatches);
	sw_program_free(program);
}

void looped_init_text(looped *l, const char *hlo, int32_t microbatches)
{
	*l = (looped){0};
	snprintf(l->name, sizeof(l->name), "a text in %d microbatches", microbatches);
	sw_program *program = read_text(hlo);
	sw_sidecar_default(program, &l->sidecar);
	rewrite(l, program, microbatches);
	sw_program_free(program);
}

void looped_clear(looped *l)
{
	sw_sidecar_clear(&l->sidecar);
	sw_program_free(l->before);
	sw_program_free(l->after);
}

/* Verify a plan, which is consumed, against the program before it had loops. */
static void verify(const looped *l, sw_plan *plan, const char *how)
{
	sw_verify_result result;
	sw_error err;
	sw_program_free(plan->original);
	plan->original = canonical(l->before);
	check(sw_run_verify(plan, &l->sidecar, 1, &result, &err), &err, l);
	for (size_t i = 0; i < result.rows.len; i++)
		if (!result.rows.data[i].ok)
			fail_msg("%s, %s: %s differs by %g, allowed is %g", l->name, how,
			         result.rows.data[i].name, result.rows.data[i].relative,
			         result.rows.data[i].tolerance);
	assert_true(result.ok);
	sw_verify_result_clear(&result);
	sw_plan_free(plan);
}

void assert_equal_results(const looped *l)
{
	static const char one[] =
		"version: 1\nname: one\nlevels:\n"
		"  - {name: device, count: 1, latency: 5 us, bandwidth: 6 GB/s}\n"
		"device:\n  name: core\n  memory: 4 GiB\n  memory_bandwidth: 8 GB/s\n"
		"  kernel_overhead: 1 us\n  matmul_efficiency: 0.7\n  flops: {f32: 50 GFLOP/s}\n";
	sw_cluster cluster;
	sw_plan *plan;
	sw_error err;
	check(sw_cluster_parse(one, strlen(one), "one", &cluster, &err), &err, l);
	check(sw_plan_replicated(l->after, &cluster, &plan, &err), &err, l);
	verify(l, plan, "on one device");
	sw_cluster_clear(&cluster);
}

static sw_plan *planned(const looped *l, const sw_program *program, const sw_cluster *cluster,
                        const char *strategy)
{
	sw_plan *plan;
	sw_error err;
	sw_plan_options options = {.quiet = true, .no_overlap = true};
	check(sw_plan_strategy_parse(strategy, &options.strategy, &err), &err, l);
	check(sw_plan_make(program, "program.hlo", &l->sidecar, cluster, &options, &plan, &err),
	      &err, l);
	return plan;
}

void assert_equal_when_planned(const looped *l, const char *cluster_file, const char *strategy,
                               double factor)
{
	sw_cluster cluster;
	sw_error err;
	check(sw_cluster_read(cluster_file, &cluster, &err), &err, l);
	/* Kernels of single ops are slow, so that both send as little as splits of the work need. */
	cluster.device.fusion = SW_FUSION_NONE;
	sw_plan *original = planned(l, l->before, &cluster, strategy),
		*plan = planned(l, l->after, &cluster, strategy);
	int64_t before = original->predicted.payload_bytes, after = plan->predicted.payload_bytes;
	assert_int_equal(plan->warnings.len, 0);
	if ((double)after > factor * (double)before)
		fail_msg("%s, %s: sends %lld bytes, the original %lld", l->name, strategy,
		         (long long)after, (long long)before);
	sw_plan_free(original);
	verify(l, plan, strategy);
	sw_cluster_clear(&cluster);
}

void assert_equal_under_random_plan(const looped *l, const char *cluster_file, uint64_t seed)
{
	sw_cluster cluster;
	sw_plan *plan;
	sw_error err;
	sw_program_cost cost;
	char how[64];
	snprintf(how, sizeof(how), "random plan %llu", (unsigned long long)seed);
	check(sw_cluster_read(cluster_file, &cluster, &err), &err, l);
	check(sw_plan_random(l->after, "looped.hlo", &cluster, seed, false, &plan, &err), &err, l);
	check(sw_partition_measure(plan, &cost, &err), &err, l);
	plan->predicted = cost;
	verify(l, plan, how);
	sw_cluster_clear(&cluster);
}
