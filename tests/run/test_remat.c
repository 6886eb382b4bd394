/* Rematerialised programs are planned, partitioned and scheduled like others, and they save memory
 * on the devices too. */
#include "fixtures.h"

#include <string.h>

#include "partition/partition.h"
#include "search/search.h"
#include "schedule/schedule.h"

#define TINY SW_SOURCE_DIR "/tests/programs/gpt-tiny.hlo.gz"
#define LARGER SW_SOURCE_DIR "/tests/programs/gpt.hlo.gz"
#define CLUSTER SW_SOURCE_DIR "/clusters/local-2x2.yaml"

static void assert_ok(sw_status status, const sw_error *err)
{
	if (status)
		fail_msg("%s:%d: %s", err->file, err->line, err->message);
}

/* Return the program under this rematerialisation policy. */
static sw_program *rematerialised(const char *path, const char *policy)
{
	sw_program *program, *canonical, *out = NULL;
	sw_remat_points points;
	sw_remat_policy_list policies;
	sw_error err;
	assert_ok(sw_read_program(path, &program, &err), &err);
	assert_ok(sw_rewrite_canonical(program, &canonical, &err), &err);
	sw_program_free(program);
	sw_remat_points_init(&points, canonical);
	assert_ok(sw_remat_policies(&points, (sw_remat_device){100e12, 1e12}, &policies, &err),
	          &err);
	for (size_t i = 0; i < policies.len && !out; i++)
		if (strcmp(policies.data[i].name, policy) == 0)
			assert_ok(sw_rewrite_remat(canonical, &policies.data[i].what, &out, &err),
			          &err);
	assert_int_equal(out == NULL, strcmp(policy, "none") == 0);
	sw_vec_clear(&policies);
	sw_remat_points_clear(&points);
	if (!out)
		return canonical;
	sw_program_free(canonical);
	return out;
}

static void make_plan(fixture *f, const char *path, const char *policy, const char *strategy)
{
	sw_error err = {0};
	sw_plan_options options = {.quiet = true, .no_overlap = true};
	f->program = rematerialised(path, policy);
	assert_ok(sw_sidecar_find(path, f->program, &f->sidecar, &err), &err);
	assert_ok(sw_cluster_read(CLUSTER, &f->cluster, &err), &err);
	assert_ok(sw_plan_strategy_parse(strategy, &options.strategy, &err), &err);
	assert_ok(sw_plan_make(f->program, path, &f->sidecar, &f->cluster, &options, &f->plan,
	                       &err),
	          &err);
}

static void check_verifies(const char *policy, const char *strategy)
{
	fixture f;
	sw_verify_result result;
	sw_error err = {0};
	make_plan(&f, TINY, policy, strategy);
	assert_ok(sw_run_verify(f.plan, &f.sidecar, 1, &result, &err), &err);
	assert_true(result.ok);
	assert_int_equal(result.payload_bytes, result.predicted_payload_bytes);
	sw_verify_result_clear(&result);
	fixture_clear(&f);
}

static void partitioned_programs_verify(void **state)
{
	(void)state;
	static const char *const policies[] = {"early gradients", "elementwise", "blocks 1/4"};
	for (size_t i = 0; i < SW_COUNT(policies); i++) {
		check_verifies(policies[i], "dp");
		check_verifies(policies[i], "auto");
	}
}

static size_t count_barriers(const sw_program *program)
{
	size_t n = 0;
	for (sw_id id = 0; id < program->ops.len; id++)
		n += program->ops.data[id].opcode == SW_OP_OPT_BARRIER;
	return n;
}

typedef struct device_program {
	int64_t partitioned_bytes, scheduled_bytes;
	size_t barriers, serial_barriers;
} device_program;

static device_program on_device(const char *policy)
{
	fixture f;
	device_program d;
	sw_program *local, *scheduled;
	sw_error err = {0};
	make_plan(&f, LARGER, policy, "dp");
	d.serial_barriers = count_barriers(f.program);
	assert_ok(sw_partition(f.plan, &local, &err), &err);
	d.partitioned_bytes = sw_placement_bytes(local);
	sw_schedule_options options = {.overlap = SW_OVERLAP_ALL};
	assert_ok(sw_schedule(&f.cluster, local, &options, &scheduled, &err), &err);
	d.scheduled_bytes = sw_placement_bytes(scheduled);
	d.barriers = count_barriers(scheduled);
	sw_program_free(scheduled);
	sw_program_free(local);
	fixture_clear(&f);
	return d;
}

/* No stage removes a barrier or replaces copies by their originals: the arena of a device becomes
 * smaller, and stays so when collectives overlap with kernels. */
static void no_stage_undoes_rematerialisation(void **state)
{
	(void)state;
	device_program none = on_device("none"), again = on_device("blocks 1/4");
	assert_int_equal(none.barriers, 0);
	assert_true(again.serial_barriers > 0);
	assert_int_equal(again.barriers, again.serial_barriers);
	assert_true(again.partitioned_bytes < none.partitioned_bytes);
	assert_true(again.scheduled_bytes < none.scheduled_bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(partitioned_programs_verify),
		cmocka_unit_test(no_stage_undoes_rematerialisation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
