#include "fixtures.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "search/search.h"

static void assert_ok(sw_status status, const sw_error *err)
{
	if (status)
		fail_msg("%s:%d: %s", err->file, err->line, err->message);
}

/* Give the devices enough memory for every plan: these tests are not about memory. */
static void make_cluster(int devices, const char *flops, sw_cluster *cluster)
{
	sw_text text = {0};
	sw_error err = {0};
	sw_text_addf(&text,
	             "version: 1\nname: test\nlevels:\n"
	             "  - {name: device, count: %d, latency: 5 us, bandwidth: 6 GB/s}\n"
	             "device:\n  name: core\n  memory: 4 GiB\n  memory_bandwidth: 8 GB/s\n  "
	             "kernel_overhead: 1 us\n"
	             "  matmul_efficiency: 0.7\n  flops: {f32: %s}\n",
	             devices, flops);
	assert_ok(sw_cluster_parse(text.data, text.len, "test", cluster, &err), &err);
	sw_text_clear(&text);
}

void fixture_cluster(int devices, sw_cluster *cluster)
{
	make_cluster(devices, "50 GFLOP/s", cluster);
}

static void make_plan(fixture *f, const char *path, int devices, const char *flops,
                      const char *strategy)
{
	sw_error err = {0};
	sw_plan_options options = {.quiet = true, .no_overlap = true};
	make_cluster(devices, flops, &f->cluster);
	assert_ok(sw_plan_strategy_parse(strategy, &options.strategy, &err), &err);
	assert_ok(
		sw_plan_make(f->program, path, &f->sidecar, &f->cluster, &options, &f->plan, &err),
		&err);
}

static void init_from_file(fixture *f, const char *path, int devices, const char *flops,
                           const char *strategy)
{
	sw_error err = {0};
	assert_ok(sw_read_program(path, &f->program, &err), &err);
	assert_ok(sw_sidecar_find(path, f->program, &f->sidecar, &err), &err);
	make_plan(f, path, devices, flops, strategy);
}

void read_recorded(const char *recording, char *path, sw_program **program, sw_sidecar *sidecar)
{
	sw_error err = {0};
	size_t stem = strlen(recording) - strlen(".recorded.safetensors.gz");
	snprintf(path, 256, "%.*s.hlo.gz", (int)stem, recording);
	assert_ok(sw_read_program(path, program, &err), &err);
	assert_ok(sw_sidecar_find(path, *program, sidecar, &err), &err);
}

void fixture_init(fixture *f, const char *name, int devices, const char *strategy)
{
	char path[256];
	snprintf(path, sizeof(path), SW_SOURCE_DIR "/tests/programs/%s.hlo.gz", name);
	init_from_file(f, path, devices, "50 GFLOP/s", strategy);
}

void fixture_init_slow(fixture *f, const char *path, int devices, const char *strategy)
{
	init_from_file(f, path, devices, "20 MFLOP/s", strategy);
}

void fixture_init_text(fixture *f, const char *hlo, int devices, const char *strategy)
{
	sw_error err = {0};
	assert_ok(sw_read_hlo(hlo, strlen(hlo), "test.hlo", &f->program, &err), &err);
	sw_sidecar_default(f->program, &f->sidecar);
	make_plan(f, "test.hlo", devices, "50 GFLOP/s", strategy);
}

void fixture_clear(fixture *f)
{
	sw_plan_free(f->plan);
	sw_cluster_clear(&f->cluster);
	sw_sidecar_clear(&f->sidecar);
	sw_program_free(f->program);
}

static const char *scratch_path(const char *name)
{
	static char path[256];
	snprintf(path, sizeof(path), "/tmp/shardwright-test-run-%d%s%s", (int)getpid(),
	         name ? "/" : "", name ? name : "");
	return path;
}

const char *scratch_file(const char *name, const void *data, size_t length)
{
	mkdir(scratch_path(NULL), 0700);
	FILE *file = fopen(scratch_path(name), "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, length, file), length);
	fclose(file);
	return scratch_path(name);
}

void scratch_clear(void)
{
	static const char *const names[] = {"a", "b", "c"};
	for (size_t i = 0; i < SW_COUNT(names); i++)
		unlink(scratch_path(names[i]));
	rmdir(scratch_path(NULL));
}

#define OTHER_DATA 3

bool is_at_kink(const sw_plan *plan, const sw_sidecar *sidecar, uint64_t seed)
{
	bool equal = true;
	for (uint64_t i = 1; i <= OTHER_DATA && equal; i++) {
		sw_error err = {0};
		sw_verify_result result = {0};
		equal = sw_run_verify(plan, sidecar, seed + 1000 * i, &result, &err) == SW_OK &&
		        result.ok;
		sw_verify_result_clear(&result);
	}
	return equal;
}
