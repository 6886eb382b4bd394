/* What the search among numbers of stages, microbatches and placements finds. */
#include "pipelined/staged.h"

/* The parts of a stage are its plan's step; each has work forward and backward, and what it holds
 * in flight is part of its peak. */
static void parts_add_up(void **state)
{
	static const struct {
		const char *fixture, *cluster;
		int32_t d, m;
	} cases[] = {{"gpt-tiny", "local-2x2", 2, 4},       {"gpt-tiny-clip", "local-2x4", 4, 4},
	             {"llama-gqa-tiny", "local-2x2", 2, 4}, {"mlp", "local-2x2", 2, 4},
	             {"t5-tiny", "local-2x2", 2, 2},        {"mlp-clip", "lab-2x4", 2, 4},
	             {"bert-tiny", "local-2x2", 2, 4}};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		staged_plan t;
		open_staged(&t, cases[i].fixture, cases[i].cluster);
		plan_freely(&t, cases[i].d, cases[i].m, -1);
		uint32_t ops = 0;
		for (int32_t s = 0; s < t.plan->n_stages; s++) {
			const sw_planned_stage *stage = &t.plan->stages[s];
			const sw_plan *own = t.plan->stages[stage->like].plan;
			double sum =
				cases[i].m * staged_loop_s(stage) + stage->times.part_s[SW_STAGE_ONCE];
			assert_true(fabs(sum - stage->times.step_s) < 1e-9 * sum);
			assert_true(fabs(own->predicted.step_time_s - sum) < 1e-9 * sum);
			assert_true(stage->times.part_s[SW_STAGE_FORWARD] > 0);
			assert_true(stage->times.part_s[SW_STAGE_INPUT_GRADIENT] +
			                    stage->times.part_s[SW_STAGE_WEIGHT_GRADIENT] >
			            0);
			assert_true(stage->times.activation_bytes > 0);
			assert_true(stage->times.activation_bytes + stage->times.fixed_bytes <=
			            stage->times.peak_bytes);
			assert_true(s + 1 == t.plan->n_stages || stage->send_forward_s > 0 ||
			            t.plan->stages[s + 1].rank == stage->rank);
			ops += stage->n_ops;
		}
		uint32_t all = 0;
		for (size_t k = 0; k < t.plan->looped->ops.len; k++)
			all += t.plan->cut.stage[k] >= 0 &&
			       t.plan->looped->ops.data[k].computation == t.plan->cut.body;
		assert_int_equal(ops, all);
		double bound_s = 0;
		assert_true(t.plan->played.step_s >= t.plan->bound.seconds * (1 - 1e-9));
		assert_int_equal(sw_pipelined_bounds_s(t.program, &t.sidecar, &t.cluster,
		                                       &cases[i].d, 1, 1, &bound_s, &t.err),
		                 SW_OK);
		assert_true(bound_s > 0 && bound_s <= t.plan->bound.seconds * (1 + 1e-9));
		close_staged(&t);
	}
}

/* Of a program with loops over time, which take as long with smaller microbatches, few microbatches
 * are quicker although something must be computed again for them. */
static void few_microbatches_compute_again(void **state)
{
	const int64_t memory = 300000;
	(void)state;
	staged_plan t;
	open_staged(&t, "mamba-tiny", "local-2x2");
	t.cluster.device.fusion = SW_FUSION_NONE; /* fused, little is stored */
	plan_computing_again(&t, 2, 4, -1, memory, "elementwise");
	assert_int_equal(t.status, SW_OK);
	double by_hand_s = t.plan->played.step_s;
	plan_computing_again(&t, 2, 8, -1, memory, "none");
	assert_int_equal(t.status, SW_OK);
	assert_true(t.plan->fits && by_hand_s < t.plan->played.step_s);
	plan_computing_again(&t, 2, 0, -1, memory, NULL);
	assert_int_equal(t.status, SW_OK);
	/* of policies that are estimated to be alike the first is taken */
	assert_true(t.plan->fits && t.plan->played.step_s <= by_hand_s * 1.01);
	close_staged(&t);
}

/* Where all else is asked for, the schedule is looked for among all placements. */
static void all_placements_are_looked_at(void **state)
{
	(void)state;
	staged_plan t;
	open_staged(&t, "gpt", "local-2x2");
	plan_freely(&t, 2, 4, -1);
	double free_s = t.plan->played.step_s;
	assert_int_equal(t.plan->n_stages, 4);
	for (int32_t schedule = 0; schedule < SW_DUALPIPE; schedule++) {
		plan_freely(&t, 2, 4, schedule);
		assert_true(free_s <= t.plan->played.step_s * (1 + 1e-9));
	}
	close_staged(&t);
}

/* Where stages do not fit, the bound is that of any memory: the step is not below it. */
static void bounds_hold_where_nothing_fits(void **state)
{
	(void)state;
	staged_plan t;
	open_staged(&t, "gpt-tiny", "local-2x2");
	plan_freely(&t, 2, 8, SW_GPIPE);
	double most = t.plan->played.ranks[0].peak_bytes;
	/* little more memory would do, and more than twice as much */
	for (int percent = 90; percent >= 40; percent -= 50) {
		plan_within(&t, 2, 8, SW_GPIPE, (int64_t)(most * percent / 100));
		assert_int_equal(t.status, SW_OK);
		assert_false(t.plan->fits);
		assert_true(t.plan->bound.seconds <= t.plan->played.step_s * (1 + 1e-9));
	}
	close_staged(&t);
}

/* Stages that may be planned in any way take no longer than those of one strategy, which send each
 * other less where they lie alike. */
static void stages_are_no_slower_than_those_of_one_strategy(void **state)
{
	static const struct {
		const char *program, *strategy;
		int32_t n;
	} cases[] = {{"gpt-tiny", "dp", 4},
	             {"gpt-tiny", "zero3", 2},
	             {"llama-gqa-tiny", "dp", 2},
	             {"lstm-lm-tiny", "megatron:tp=2", 2},
	             {"mlp", "megatron:tp=2", 2},
	             {"mlp-clip", "dp", 4}};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_pipelined_options options = {
			.n_stages = cases[i].n, .schedule = -1, .plan.quiet = true};
		staged_plan t;
		open_staged(&t, cases[i].program, "lab-2x4");
		plan_staged_under(&t, cases[i].strategy, options);
		double fixed_s = t.plan->played.step_s;
		plan_staged_under(&t, "auto", options);
		if (t.plan->played.step_s > fixed_s * (1 + 1e-9))
			fail_msg("%s in %d stages: %g s, under %s %g s", cases[i].program,
			         (int)cases[i].n, t.plan->played.step_s, cases[i].strategy,
			         fixed_s);
		close_staged(&t);
	}
}

/* Of numbers of stages whose estimates are three times what they take, one trial each is planned; and
 * many stages may have few microbatches. */
static void numbers_of_stages_are_planned(void **state)
{
	static const struct {
		const char *program, *cluster;
		int32_t n, m;
	} cases[] = {{"odd-tiny", "lab-unequal", 2, 0},
	             {"mamba-tiny", "lab-2x4", 2, 0},
	             {"moe-gshard-tiny", "lab-unequal", 6, 2}};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_pipelined_options options = {.schedule = -1, .plan.quiet = true};
		staged_plan t;
		open_staged(&t, cases[i].program, cases[i].cluster);
		plan_staged_under(&t, "auto", options);
		double found_s = t.plan->played.step_s;
		options.n_stages = cases[i].n;
		options.microbatches = cases[i].m;
		plan_staged_under(&t, "auto", options);
		if (found_s > t.plan->played.step_s * 1.005)
			fail_msg("%s: %g s, in %d stages %g s", cases[i].program, found_s,
			         (int)cases[i].n, t.plan->played.step_s);
		close_staged(&t);
	}
}

/* With little memory stages take a schedule that holds more microbatches, in layouts that hold less, if
 * that is quicker; nothing is computed again where these suffice; and where nothing fits on a mesh, a
 * fixed strategy may. The bound is that of the schedule that was found. */
static void little_memory_is_divided_well(void **state)
{
	static const struct {
		int32_t n, m;
		sw_named_schedule schedule;
		const char *strategy, *remat; /* by hand */
		int64_t bytes;
	} cases[] = {{4, 2, SW_ZB_H1, "auto", "none", 400000},
	             {2, 0, SW_ZB_H1, "zero3", "none", 600000},
	             {2, 2, SW_ZB_H1, "zero3", "elementwise", 250000}};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_pipelined_options options = {
			.n_stages = cases[i].n, .microbatches = cases[i].m, .schedule = -1};
		staged_plan t;
		options.plan = (sw_plan_options){.quiet = true,
		                                 .memory_bytes = cases[i].bytes,
		                                 .remat = cases[i].n > 2 ? "none" : NULL};
		open_staged(&t, "gpt-tiny", "lab-2x4");
		plan_staged_under(&t, "auto", options);
		double found_s = t.plan->played.step_s;
		assert_true(t.plan->fits);
		assert_true(t.plan->bound.seconds <= found_s * (1 + 1e-9));
		options.schedule = (int32_t)cases[i].schedule;
		options.microbatches = 2;
		options.plan.remat = cases[i].remat;
		plan_staged_under(&t, cases[i].strategy, options);
		if (found_s > t.plan->played.step_s * 1.005)
			fail_msg("%g s, by hand %g s", found_s, t.plan->played.step_s);
		close_staged(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_add_up),
		cmocka_unit_test(few_microbatches_compute_again),
		cmocka_unit_test(all_placements_are_looked_at),
		cmocka_unit_test(bounds_hold_where_nothing_fits),
		cmocka_unit_test(stages_are_no_slower_than_those_of_one_strategy),
		cmocka_unit_test(numbers_of_stages_are_planned),
		cmocka_unit_test(little_memory_is_divided_well),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
