/* The memory that a plan predicts is the memory that its ranks hold: the plan, the simulation and
 * the run state the same number. */
#include "fixtures.h"

#include <string.h>

#include "partition/partition.h"

static void compare_figures(const char *program, int devices, const char *strategy)
{
	static const uint32_t overlaps[] = {0, SW_OVERLAP_ALL};
	fixture f;
	sw_error err = {0};
	sw_program_cost cost;
	double losses[2];
	fixture_init(&f, program, devices, strategy);
	assert_int_equal(sw_partition_measure(f.plan, &cost, &err), SW_OK);
	for (size_t i = 0; i < SW_COUNT(overlaps); i++) {
		sw_run_options options = {.steps = 2,
		                          .seed = 5,
		                          .quiet = true,
		                          .blas_threads = 1,
		                          .overlap = overlaps[i]};
		sw_run_result run;
		sw_simulation simulation;
		if (sw_run_train_local(f.plan, &f.sidecar, NULL, &options, &run, &err))
			fail_msg("%s", err.message);
		assert_int_equal(sw_simulate(&f.cluster, run.program, NULL, 0, &simulation, &err),
		                 SW_OK);
		assert_int_equal(run.peak_bytes, simulation.peak_bytes);
		assert_int_equal(run.peak_bytes, sw_placement_bytes(run.program));
		if (!overlaps[i])
			assert_int_equal(run.peak_bytes, cost.peak_bytes);
		losses[i] = run.losses[1];
		sw_simulation_clear(&simulation);
		sw_run_result_clear(&run);
	}
	assert_memory_equal(&losses[0], &losses[1], sizeof losses[0]);
	fixture_clear(&f);
}

static void predicted_memory_equals_allocated_memory(void **state)
{
	(void)state;
	static const struct {
		const char *program;
		int devices;
		const char *strategy;
	} cases[] = {
		{"mlp", 2, "dp"},
		{"mlp-bf16", 2, "dp"},
		{"gpt-tiny", 4, "zero3"},
		{"gpt-tiny", 4, "zero1"},
		{"gpt-tiny", 4, "megatron:tp=2"},
		{"gpt-tiny-scan-clip", 4, "zero3"},
		{"gpt-tiny-scan", 2, "dp"},
		{"vgg-tiny", 2, "dp"},
		{"bert-tiny-clip", 2, "zero1"},
		{"lstm-lm-tiny", 2, "dp"},
		{"mamba-tiny", 2, "dp"},
		{"dlrm-tiny", 2, "dp"},
		{"moe-mixtral-tiny-scan", 2, "zero1"},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++)
		compare_figures(cases[i].program, cases[i].devices, cases[i].strategy);
}

/* The limit leaves no spare memory, so collectives may overlap with kernels only if the result
 * still fits. */
static void a_schedule_needs_no_more_memory_than_the_program(void **state)
{
	(void)state;
	fixture f;
	sw_error err = {0};
	sw_program *local, *scheduled;
	fixture_init(&f, "gpt-tiny", 4, "zero3");
	assert_int_equal(sw_partition(f.plan, &local, &err), SW_OK);
	int64_t needed = sw_placement_bytes(local);
	sw_schedule_options options = {.overlap = SW_OVERLAP_ALL, .memory_bytes = needed};
	assert_int_equal(sw_schedule(&f.cluster, local, &options, &scheduled, &err), SW_OK);
	assert_true(sw_placement_bytes(scheduled) <= needed);
	sw_program_free(scheduled);
	sw_program_free(local);
	fixture_clear(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(predicted_memory_equals_allocated_memory),
		cmocka_unit_test(a_schedule_needs_no_more_memory_than_the_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
