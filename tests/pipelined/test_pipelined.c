/* Plans with stages: what their seconds and bytes consist of, the bubble of equal stages, where they are,
 * and what is refused. */
#include "pipelined/staged.h"

/* What a loop over time takes belongs to the pass that the loop is of, and counts as its seconds where
 * stages are cut again by those of their plans. */
static void loops_over_time_take_the_time_of_their_pass(void **state)
{
	(void)state;
	staged_plan t;
	open_staged(&t, "mamba-tiny", "local-2x2");
	plan_simply(&t, 2, 4, SW_1F1B);
	for (int32_t s = 0; s < 2; s++) {
		const sw_planned_stage *stage = &t.plan->stages[s];
		const sw_stage_load *load = &t.plan->cut.loads[s];
		double forward = stage->times.part_s[SW_STAGE_FORWARD] / staged_loop_s(stage),
		       by_cut = load->forward_s / (load->forward_s + load->backward_s);
		assert_true(fabs(forward - by_cut) < 0.15);
		double in_loops_s = 0;
		for (size_t i = 0; i < stage->step.program->ops.len; i++)
			if (sw_op_at(stage->step.program, (sw_id)i)->opcode == SW_OP_WHILE)
				in_loops_s += stage->op_s[i];
		assert_true(in_loops_s > 0.2 * staged_loop_s(stage));
	}
	close_staged(&t);
}

/* With the mean of the stages' seconds in each, no transfers and no update, 1F1B is idle for (p -
 * 1) / (m + p - 1); as they are, for no less. */
static void bubble_is_that_of_the_formula(void **state)
{
	(void)state;
	staged_plan t;
	open_staged(&t, "gpt-tiny", "local-2x4");
	double before = 0;
	for (int32_t d = 2; d <= 4; d += 2) {
		double rows[3][4], zeros[4] = {0};
		int32_t m = 8;
		plan_simply(&t, d, m, SW_1F1B);
		sw_pipeline_costs costs = t.plan->costs;
		const double *parts[3] = {costs.forward_s, costs.input_gradient_s,
		                          costs.weight_gradient_s};
		for (int k = 0; k < 3; k++)
			for (int32_t s = 0; s < d; s++) {
				double sum = 0;
				for (int32_t i = 0; i < d; i++)
					sum += parts[k][i];
				rows[k][s] = sum / d;
			}
		costs.forward_s = rows[0];
		costs.input_gradient_s = rows[1];
		costs.weight_gradient_s = rows[2];
		costs.send_forward_s = costs.send_backward_s = costs.update_s = zeros;
		sw_pipeline_schedule *schedule = NULL;
		sw_pipeline_played played;
		assert_int_equal(
			sw_pipeline_make(SW_1F1B, (sw_pipeline_size){d, m, 0}, &schedule, &t.err),
			SW_OK);
		assert_int_equal(sw_pipeline_play(schedule, &costs, &played, &t.err), SW_OK);
		double formula = (double)(d - 1) / (m + d - 1);
		assert_true(fabs(played.bubble - formula) < 1e-9);
		assert_true(t.plan->played.bubble >= formula);
		assert_true(formula > before);
		before = formula;
		sw_pipeline_played_free(&played);
		sw_pipeline_free(schedule);
	}
	close_staged(&t);
}

/* A plan that fits is found where a stage's program, which holds what crosses of all microbatches
 * on each device, does not fit: Megatron's activations are whole on each. */
static void what_crosses_needs_no_memory(void **state)
{
	(void)state;
	staged_plan t;
	sw_pipelined_options options = {.n_stages = 2, .microbatches = 16, .schedule = SW_1F1B};
	options.plan = (sw_plan_options){.quiet = true, .remat = "blocks"};
	open_staged(&t, "gpt", "local-2x4");
	for (int round = 0; round < 2; round++) {
		plan_staged_under(&t, "megatron:tp=4", options);
		double most = fmax(t.plan->played.ranks[0].peak_bytes,
		                   t.plan->played.ranks[1].peak_bytes);
		assert_true(t.plan->fits);
		assert_true(round == 0 || most <= (double)options.plan.memory_bytes);
		/* Less than the program of a stage takes. */
		options.plan.memory_bytes = (int64_t)(1.01 * most);
		assert_true(round ||
		            t.plan->stages[0].times.peak_bytes > options.plan.memory_bytes);
	}
	close_staged(&t);
}

static void refusals_say_why(void **state)
{
	static const struct {
		const char *fixture;
		int32_t d, m, schedule;
		const char *words;
	} cases[] = {
		{"gpt-tiny", 3, 4, -1, "--stages 3: expected a divisor of the 4 devices"},
		{"gpt-tiny", 2, 1, -1, "stages need 2 microbatches"},
		{"gpt-tiny", 2, 3, -1, "expected 2 or more that divide the batch"},
		{"gpt-tiny", 2, 4, SW_DUALPIPE, "it has two copies of the model"},
		{"lstm-lm-tiny", 4, 4, -1, "is a loop, which is not cut"},
		{"resnet-tiny", 2, 2, -1, "the step has several phases"},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		staged_plan t;
		open_staged(&t, cases[i].fixture, "local-2x2");
		plan_within(&t, cases[i].d, cases[i].m, cases[i].schedule, 0);
		assert_int_equal(t.status, SW_ERR_INPUT);
		if (!strstr(t.err.message, cases[i].words))
			fail_msg("%s: %s", cases[i].fixture, t.err.message);
		close_staged(&t);
	}
}

/* The update of a parameter, and its state, are where it is read: between the stages only single
 * numbers travel behind the loop. */
static void updates_stay_where_their_parameters_are(void **state)
{
	(void)state;
	staged_plan t;
	open_staged(&t, "gpt-tiny-clip", "local-2x2");
	plan_simply(&t, 2, 4, SW_1F1B);
	int32_t numbers = 0;
	for (int32_t s = 0; s < 2; s++) {
		const sw_stage_step *step = &t.plan->stages[s].step;
		for (uint32_t i = 0; i < step->n_inputs; i++)
			if (step->inputs[i].kind == SW_PORT_ENTRY) {
				numbers++;
				assert_int_equal(sw_shape_elements(sw_value_shape(
							 t.plan->looped, step->inputs[i].value)),
				                 1);
			}
		assert_true(step->program->aliases.len > t.plan->looped->aliases.len / 4);
	}
	assert_true(numbers > 0);
	close_staged(&t);
}

/* AxoNN's grid is chosen by one stage: the others are planned on it alone. */
static void stages_share_a_grid(void **state)
{
	(void)state;
	staged_plan t;
	sw_pipelined_options options = {.n_stages = 2, .microbatches = 4, .schedule = SW_1F1B};
	open_staged(&t, "mlp", "local-2x4");
	options.plan = (sw_plan_options){.quiet = true, .remat = "none"};
	plan_staged_under(&t, "axonn", options);
	const sw_planned_stage *stages = t.plan->stages;
	assert_int_equal(stages[1].like, 1);
	assert_int_equal(strncmp(stages[0].chosen, "axonn:", 6), 0);
	assert_string_equal(stages[0].chosen, stages[1].chosen);
	/* Of the second stage, one grid was costed. */
	int64_t costed[2] = {0};
	for (int i = 0; i < 2; i++)
		for (size_t k = 0; k < stages[i].plan->alternatives.len; k++)
			costed[i] += stages[i].plan->alternatives.data[k].untried == SW_UNTRIED_NOT;
	assert_true(costed[0] > 1);
	assert_int_equal(costed[1], 1);
	close_staged(&t);
}

/* What only plans with stages have is refused by those without. */
static void plans_without_stages_refuse_them(void **state)
{
	(void)state;
	staged_plan t;
	sw_plan_options options = {.quiet = true};
	sw_plan *whole = NULL;
	open_staged(&t, "gpt-tiny", "local-2x2");
	assert_int_equal(sw_plan_strategy_parse("zero3:pp=2", &options.strategy, &t.err), SW_OK);
	assert_int_equal(sw_plan_make(t.program, "program.hlo", &t.sidecar, &t.cluster, &options,
	                              &whole, &t.err),
	                 SW_ERR_INPUT);
	assert_non_null(strstr(t.err.message, "without stages"));
	assert_null(whole);
	close_staged(&t);
}

/* With two stages on each slice, V-shaped, the first and the last are on the first slice, and the
 * middle ones hand on within the last; interleaved, every second one is on a slice. */
static void slices_have_several_stages(void **state)
{
	static const int32_t v[] = {0, 1, 1, 0}, looped[] = {0, 1, 0, 1};
	(void)state;
	staged_plan t;
	open_staged(&t, "gpt-tiny", "local-2x2");
	for (int looping = 0; looping <= 1; looping++) {
		plan_simply(&t, 2, 4, looping ? SW_INTERLEAVED_1F1B : SW_ZB_V);
		const sw_pipelined *p = t.plan;
		double fixed = 0;
		assert_int_equal(p->n_stages, 4);
		assert_int_equal(p->n_ranks, 2);
		for (int32_t i = 0; i < 4; i++) {
			int32_t slice = looping ? looped[i] : v[i];
			assert_int_equal(p->stages[i].rank, slice);
			assert_int_equal(p->stages[i].first_device, 2 * slice);
			fixed += slice == 0 ? (double)p->stages[i].times.fixed_bytes : 0;
		}
		assert_true(p->costs.fixed_bytes[0] == fixed);
		assert_true(p->played.ranks[0].peak_bytes > fixed);
	}
	close_staged(&t);
}

/* What crosses of other microbatches is no part of a stage's memory, however often its program
 * holds it: what a middle stage sends up and what it sends back begin as the same zeros, which its
 * program holds beside both. */
static void what_crosses_counts_once(void **state)
{
	(void)state;
	staged_plan t;
	enum { MICROBATCHES = 8 };
	open_staged(&t, "gpt-tiny", "local-1x4");
	plan_freely(&t, 4, MICROBATCHES, SW_1F1B);
	const sw_planned_stage *s = &t.plan->stages[1];
	const sw_stage_times *times = &s->times;
	int64_t others = (MICROBATCHES - 1) *
	                 (sw_pipelined_crossing_bytes(t.plan, s->step.inputs, s->step.n_inputs) +
	                  sw_pipelined_crossing_bytes(t.plan, s->step.results, s->step.n_results));
	int64_t once = times->peak_bytes - times->activation_bytes - others;
	if (times->fixed_bytes >= once)
		fail_msg("%lld bytes, %lld without one copy of what crosses",
		         (long long)times->fixed_bytes, (long long)once);
	assert_true(times->fixed_bytes > 0);
	close_staged(&t);
}

/* Bytes of the parameters and moments of a stage, which one device holds. */
static int64_t state_bytes(const sw_planned_stage *s)
{
	const sw_program *program = s->step.program;
	const sw_id *inputs;
	sw_arena arena = {0};
	int64_t bytes = 0;
	uint32_t n = sw_program_inputs(program, program->entry, &arena, &inputs);
	for (uint32_t i = 0; i < n; i++)
		if (s->step.inputs[i].kind == SW_PORT_WHOLE &&
		    s->sidecar.inputs[i].role != SW_ROLE_DATA)
			bytes += sw_shape_bytes(sw_value_shape(program, inputs[i]));
	sw_arena_clear(&arena);
	return bytes;
}

/* A fused kernel slices a microbatch of what crosses, and computes with it: its results are of one
 * microbatch, and no part of what the stage does not hold. */
static void fused_kernels_hold_their_results(void **state)
{
	(void)state;
	staged_plan t;
	enum { STAGES = 4, MICROBATCHES = 8 };
	open_staged(&t, "gpt-tiny", "h100-rented");
	assert_int_equal(sw_cluster_take(&t.cluster, "4", &t.err), SW_OK);
	plan_freely(&t, STAGES, MICROBATCHES, SW_1F1B);
	for (int32_t i = 0; i < STAGES; i++) {
		const sw_planned_stage *s = &t.plan->stages[i];
		if (s->times.fixed_bytes < state_bytes(s))
			fail_msg("stage %d holds %lld bytes beside activations, less than its "
			         "state's %lld",
			         i, (long long)s->times.fixed_bytes, (long long)state_bytes(s));
	}
	close_staged(&t);
}

static void plan_sequences_split(staged_plan *t)
{
	sw_pipelined_options options = {.n_stages = 2, .microbatches = 4, .schedule = SW_1F1B};
	options.plan = (sw_plan_options){.quiet = true, .remat = "none"};
	open_staged(t, "gpt-tiny", "local-2x2");
	plan_staged_under(t, "megatron:tp=2,sp", options);
}

/* Bytes of a value on one device. */
static int64_t local_bytes(const sw_plan *plan, sw_id value, const sw_layout *layout)
{
	return sw_layout_local_bytes(&plan->cluster->atoms, sw_value_shape(plan->program, value),
	                             layout);
}

/* Passes are programs of their own: what a forward pass gathers is not held for the backward pass,
 * which gathers it again. */
static void backward_passes_convert_again(void **state)
{
	(void)state;
	staged_plan t;
	int64_t gathered = 0;
	plan_sequences_split(&t);
	for (int32_t i = 0; i < 2; i++) {
		const sw_planned_stage *s = &t.plan->stages[i];
		sw_plan *plan = t.plan->stages[s->like].plan;
		assert_true(plan->regathered.len > 0);
		for (size_t k = 0; k < plan->regathered.len; k++) {
			sw_read read = plan->regathered.data[k];
			const sw_op *op = sw_op_at(plan->program, read.op);
			sw_layout operands[8], results[8];
			assert_true(op->n_operands <= 8 && op->n_results <= 8);
			assert_true(sw_plan_op_layouts(plan, read.op, operands, results));
			for (uint32_t o = 0; o < op->n_operands; o++)
				if (op->operands[o] == read.value)
					gathered += local_bytes(plan, read.value, &operands[o]) -
					            local_bytes(plan, read.value,
					                        sw_plan_layout(plan, sw_plan_at_rest(
											     plan, read.value)));
		}
		assert_true(fabs(plan->predicted.step_time_s - s->times.step_s) <
		            1e-9 * s->times.step_s);
	}
	assert_true(gathered > 0);
	close_staged(&t);
}

/* What comes from another stage takes as long as its bytes: it comes split where it is read so. */
static void what_arrives_is_split(void **state)
{
	(void)state;
	staged_plan t;
	int32_t n = 0;
	plan_sequences_split(&t);
	for (int32_t i = 0; i < 2; i++) {
		const sw_planned_stage *s = &t.plan->stages[i];
		const sw_plan *plan = t.plan->stages[s->like].plan;
		const sw_id *inputs;
		sw_arena arena = {0};
		sw_program_inputs(plan->program, plan->program->entry, &arena, &inputs);
		for (uint32_t k = 0; k < s->step.n_inputs; k++) {
			if (s->step.inputs[k].kind != SW_PORT_MICROBATCHES || !s->sidecar.inputs[k].arrives)
				continue;
			int64_t whole = sw_shape_bytes(sw_value_shape(plan->program, inputs[k]));
			const sw_layout *layout = sw_plan_layout(plan, plan->produced[inputs[k]]);
			assert_int_equal(local_bytes(plan, inputs[k], layout), whole / 2);
			n++;
		}
		sw_arena_clear(&arena);
	}
	assert_true(n >= 2);
	close_staged(&t);
}

/* Under data parallelism each device hands on its own part of the batch, and gathers nothing for
 * that. */
static void what_crosses_stays_split(void **state)
{
	(void)state;
	staged_plan t;
	sw_pipelined_options options = {.n_stages = 2, .microbatches = 4, .schedule = SW_1F1B};
	options.plan = (sw_plan_options){.quiet = true, .remat = "none"};
	open_staged(&t, "gpt-tiny", "local-2x4");
	plan_staged_under(&t, "megatron:tp=2", options);
	for (int32_t i = 0; i < 2; i++) {
		const sw_planned_stage *s = &t.plan->stages[i];
		const sw_plan *plan = s->plan;
		for (uint32_t k = 0; k < s->step.n_results; k++) {
			sw_id value = sw_entry(plan->program)->results.data[k];
			sw_shape shape = sw_value_shape(plan->program, value);
			if (s->step.results[k].kind == SW_PORT_MICROBATCHES)
				assert_true(sw_layout_local_bytes(&plan->cluster->atoms, shape,
				                                  sw_plan_layout(plan, plan->outputs[k])) <=
				            sw_shape_bytes(shape) / 2);
		}
	}
	close_staged(&t);
}

/* A stage takes the pins of tensors that it has: the table of tokens, which only the first has, is
 * split by the vocabulary. */
static void stages_take_pins_of_parts(void **state)
{
	(void)state;
	staged_plan t;
	sw_pin table = {.pattern = "params.embed.tokens",
	                .n = 1,
	                .dims = {0},
	                .parts = {2},
	                .contract = 1};
	sw_pins pins = {.file = "pins", .n = 1, .list = &table, .of_parts = true};
	sw_pipelined_options options = {.n_stages = 2, .microbatches = 4, .schedule = SW_1F1B};
	options.plan = (sw_plan_options){.quiet = true, .remat = "none"};
	int64_t resting[2];
	open_staged(&t, "gpt-tiny", "local-2x2");
	for (int round = 0; round < 2; round++) {
		options.plan.pins = round ? &pins : NULL;
		plan_staged_under(&t, "megatron:tp=2", options);
		resting[round] = t.plan->stages[0].times.resting_bytes;
	}
	if (resting[1] >= resting[0])
		fail_msg("%lld bytes with the table split, %lld with it whole",
		         (long long)resting[1], (long long)resting[0]);
	close_staged(&t);
}

/* By their estimates no stages of this program take so little: none is planned. */
static void hopeless_trials_are_not_planned(void **state)
{
	sw_pipelined_options options = {.schedule = -1, .known_s = 1e-6};
	sw_search_effort effort = {0};
	staged_plan t;
	(void)state;
	open_staged(&t, "gpt-124m", "local-2x2");
	options.plan = (sw_plan_options){.quiet = true, .effort = &effort};
	plan_staged(&t, &options);
	assert_int_equal(t.status, SW_NO);
	assert_non_null(strstr(t.err.message, "by their estimates no number of stages"));
	assert_true(effort.ops < (int64_t)t.program->ops.len);
	close_staged(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops_over_time_take_the_time_of_their_pass),
		cmocka_unit_test(bubble_is_that_of_the_formula),
		cmocka_unit_test(what_crosses_needs_no_memory),
		cmocka_unit_test(refusals_say_why),
		cmocka_unit_test(updates_stay_where_their_parameters_are),
		cmocka_unit_test(stages_share_a_grid),
		cmocka_unit_test(plans_without_stages_refuse_them),
		cmocka_unit_test(slices_have_several_stages),
		cmocka_unit_test(what_crosses_counts_once),
		cmocka_unit_test(fused_kernels_hold_their_results),
		cmocka_unit_test(backward_passes_convert_again),
		cmocka_unit_test(what_arrives_is_split),
		cmocka_unit_test(what_crosses_stays_split),
		cmocka_unit_test(stages_take_pins_of_parts),
		cmocka_unit_test(hopeless_trials_are_not_planned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
