/* What is reserved where the host is ahead of the device (bench/measured). */
#include "test.h"

#include "../../bench/measured/caching_allocator.c"
#include "../../bench/measured/play_memory.c"

#define SCATTERS 4 /* of a pass */
#define PASSES 4
#define SLOW_S 1.

/* A pass gives arrays of 64 MiB to reduce-scatters, and keeps what these give. */
static sw_program *scatters(void)
{
	const sw_groups all = {.n_groups = 0}; /* of all */
	sw_program *p = sw_program_new("pass");
	sw_id results[SCATTERS];
	p->num_partitions = 8;
	p->entry = sw_build_computation(p, "main");
	sw_id x = sw_emit_parameter(p, p->entry,
	                            sw_build_shape(p, SW_F32, (int64_t[]){4096, 4096}, 2), "x");
	for (int i = 0; i < SCATTERS; i++) {
		sw_id y = sw_emit_unary(p, p->entry, SW_OP_NEGATE, x);
		results[i] = sw_emit_collective(p, p->entry, SW_OP_REDUCE_SCATTER, SW_MONOID_SUM, y,
		                                0, &all);
	}
	sw_build_results(p, p->entry, results, SCATTERS, true);
	return p;
}

/* The forward passes of `scatters` on eight devices. */
typedef struct scattering {
	sw_program *program;
	sw_stage_part *part;
	sw_cluster cluster;
} scattering;

static void open_scattering(scattering *x)
{
	sw_error err;
	x->program = scatters();
	x->part = sw_alloc(sizeof(*x->part) * x->program->ops.len);
	assert_int_equal(
		sw_cluster_read(SW_SOURCE_DIR "/clusters/h100-rented.yaml", &x->cluster, &err), SW_OK);
	assert_int_equal(sw_cluster_take(&x->cluster, "8", &err), SW_OK);
	for (size_t i = 0; i < x->program->ops.len; i++)
		x->part[i] = SW_STAGE_FORWARD;
}

static device_program device_of(const scattering *x, bool receives, bool is_sent)
{
	return (device_program){.program = x->program,
	                        .part = x->part,
	                        .loop = SW_NO_ID,
	                        .in_flight = PASSES,
	                        .receives = receives,
	                        .is_sent = is_sent};
}

static void close_scattering(scattering *x)
{
	free(x->part);
	sw_cluster_clear(&x->cluster);
	sw_program_free(x->program);
}

/* A host that is slow has nothing waiting, but where the device waits for the next stage in the
 * first step; one that is quick has all passes between which it does not wait. */
static void passes_hold_what_collectives_read(void **state)
{
	static const struct {
		double launch_s;
		bool receives, is_sent;
		int64_t held; /* of such arrays */
	} cases[] = {{SLOW_S, true, true, 1},
	             {SLOW_S, false, true, (PASSES - AT_ONCE) * SCATTERS + 1},
	             {SLOW_S, false, false, 1},
	             {0, true, true, SCATTERS},
	             {0, false, true, PASSES * SCATTERS}};
	(void)state;
	scattering x;
	const configuration c = {.microbatches = PASSES, .dp = 1};
	open_scattering(&x);
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		const device_program d = device_of(&x, cases[i].receives, cases[i].is_sent);
		bool fits;
		x.cluster.device.launch_interval_s = cases[i].launch_s;
		int64_t own = 2 * SMALL_SEGMENT_BYTES, bytes = play_memory(&c, &d, &x.cluster, &fits);
		assert_true(fits);
		assert_true(bytes / (64 * MIB) == cases[i].held && bytes % (64 * MIB) <= own);
	}
	close_scattering(&x);
}

/* Arrays that the device has not come to fill the memory. When it has come they are given back, and the step
 * would find room; but it is said not to fit. */
static void a_step_that_has_to_give_memory_back_does_not_fit(void **state)
{
	static const struct {
		int64_t arrays; /* that there is room for */
		bool fits;
	} cases[] = {{PASSES * SCATTERS + 1, true}, {PASSES * SCATTERS - 1, false}};
	(void)state;
	scattering x;
	const configuration c = {.microbatches = PASSES, .dp = 1};
	open_scattering(&x);
	const device_program d = device_of(&x, false, true);
	x.cluster.device.launch_interval_s = 0;
	x.cluster.device.reserved_bytes = 0;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		bool fits;
		x.cluster.device.memory_bytes = 64 * MIB * cases[i].arrays;
		assert_true(play_memory(&c, &d, &x.cluster, &fits) <= x.cluster.device.memory_bytes);
		assert_true(fits == cases[i].fits);
	}
	close_scattering(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passes_hold_what_collectives_read),
		cmocka_unit_test(a_step_that_has_to_give_memory_back_does_not_fit)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
