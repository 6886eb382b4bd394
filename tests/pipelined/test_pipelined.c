/* Plans with stages: what their seconds and bytes consist of, the bubble of equal stages, files
 * that read back, and what is refused. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "pipelined/pipelined.h"
#include "test.h"

typedef struct staged_plan {
	sw_program *program;
	sw_sidecar sidecar;
	sw_cluster cluster;
	sw_pipelined *plan;
	sw_error err;
	sw_status status;
} staged_plan;

static void open_program(staged_plan *t, const char *fixture, const char *cluster)
{
	char path[256];
	*t = (staged_plan){0};
	snprintf(path, sizeof(path), SW_SOURCE_DIR "/tests/programs/%s.hlo.gz", fixture);
	assert_int_equal(sw_read_program(path, &t->program, &t->err), SW_OK);
	assert_int_equal(sw_sidecar_find(path, t->program, &t->sidecar, &t->err), SW_OK);
	snprintf(path, sizeof(path), SW_SOURCE_DIR "/clusters/%s.yaml", cluster);
	assert_int_equal(sw_cluster_read(path, &t->cluster, &t->err), SW_OK);
}

static void plan_by(staged_plan *t, const sw_pipelined_options *options)
{
	sw_pipelined_free(t->plan);
	t->plan = NULL;
	t->status = sw_pipelined_make(t->program, "program.hlo", &t->sidecar, &t->cluster, options,
	                              &t->plan, &t->err);
}

static void plan_under(staged_plan *t, const char *strategy, sw_pipelined_options options)
{
	assert_int_equal(sw_plan_strategy_parse(strategy, &options.plan.strategy, &t->err), SW_OK);
	plan_by(t, &options);
	if (t->status)
		fail_msg("%s", t->err.message);
}

/* remat: "none", a policy, or NULL: that which is quickest. */
static void plan_computing_again(staged_plan *t, int32_t d, int32_t m, int32_t schedule,
                                 int64_t memory, const char *remat)
{
	sw_pipelined_options options = {.n_stages = d, .microbatches = m, .schedule = schedule};
	options.plan = (sw_plan_options){.quiet = true, .memory_bytes = memory, .remat = remat};
	plan_by(t, &options);
}

static void plan(staged_plan *t, int32_t d, int32_t m, int32_t schedule, int64_t memory)
{
	plan_computing_again(t, d, m, schedule, memory, "none");
}

static void plan_well(staged_plan *t, int32_t d, int32_t m, int32_t schedule)
{
	plan(t, d, m, schedule, 0);
	if (t->status)
		fail_msg("%s", t->err.message);
}

static void close_program(staged_plan *t)
{
	sw_pipelined_free(t->plan);
	sw_program_free(t->program);
	sw_sidecar_clear(&t->sidecar);
	sw_cluster_clear(&t->cluster);
}

static double in_loop_s(const sw_planned_stage *s)
{
	return s->times.part_s[SW_STAGE_FORWARD] + s->times.part_s[SW_STAGE_INPUT_GRADIENT] +
	       s->times.part_s[SW_STAGE_WEIGHT_GRADIENT];
}

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
		open_program(&t, cases[i].fixture, cases[i].cluster);
		plan_well(&t, cases[i].d, cases[i].m, -1);
		uint32_t ops = 0;
		for (int32_t s = 0; s < t.plan->n_stages; s++) {
			const sw_planned_stage *stage = &t.plan->stages[s];
			const sw_plan *own = t.plan->stages[stage->like].plan;
			double sum =
				cases[i].m * in_loop_s(stage) + stage->times.part_s[SW_STAGE_ONCE];
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
		close_program(&t);
	}
}

/* What a loop over time takes belongs to the pass that the loop is of, and counts as its seconds where
 * stages are cut again by those of their plans. */
static void loops_over_time_take_the_time_of_their_pass(void **state)
{
	(void)state;
	staged_plan t;
	open_program(&t, "mamba-tiny", "local-2x2");
	plan_well(&t, 2, 4, SW_1F1B);
	for (int32_t s = 0; s < 2; s++) {
		const sw_planned_stage *stage = &t.plan->stages[s];
		const sw_stage_load *load = &t.plan->cut.loads[s];
		double forward = stage->times.part_s[SW_STAGE_FORWARD] / in_loop_s(stage),
		       by_cut = load->forward_s / (load->forward_s + load->backward_s);
		assert_true(fabs(forward - by_cut) < 0.15);
		double in_loops_s = 0;
		for (size_t i = 0; i < stage->step.program->ops.len; i++)
			if (sw_op_at(stage->step.program, (sw_id)i)->opcode == SW_OP_WHILE)
				in_loops_s += stage->op_s[i];
		assert_true(in_loops_s > 0.2 * in_loop_s(stage));
	}
	close_program(&t);
}

/* Of a program with loops over time, which take as long with smaller microbatches, few microbatches
 * are quicker although something must be computed again for them. */
static void few_microbatches_compute_again(void **state)
{
	const int64_t memory = 300000;
	(void)state;
	staged_plan t;
	open_program(&t, "mamba-tiny", "local-2x2");
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
	close_program(&t);
}

/* With the mean of the stages' seconds in each, no transfers and no update, 1F1B is idle for (p -
 * 1) / (m + p - 1); as they are, for no less. */
static void bubble_is_that_of_the_formula(void **state)
{
	(void)state;
	staged_plan t;
	open_program(&t, "gpt-tiny", "local-2x4");
	double before = 0;
	for (int32_t d = 2; d <= 4; d += 2) {
		double rows[3][4], zeros[4] = {0};
		int32_t m = 8;
		plan_well(&t, d, m, SW_1F1B);
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
	close_program(&t);
}

/* auto takes the quickest schedule, or one that is searched for; more microbatches in flight need
 * more memory. */
static void schedules_are_compared(void **state)
{
	static const sw_named_schedule all[] = {SW_GPIPE, SW_1F1B, SW_EAGER_1F1B, SW_ZB_H1,
	                                        SW_ZB_2P};
	(void)state;
	staged_plan t;
	open_program(&t, "mlp", "local-2x2");
	plan_well(&t, 2, 8, -1);
	double best_s = t.plan->played.step_s, bound_s = t.plan->bound.seconds,
	       quickest_s = INFINITY, bytes[SW_COUNT(all)];
	for (size_t i = 0; i < SW_COUNT(all); i++) {
		plan_well(&t, 2, 8, (int32_t)all[i]);
		quickest_s = fmin(quickest_s, t.plan->played.step_s);
		bytes[i] = t.plan->played.ranks[0].peak_bytes;
		if (all[i] == SW_1F1B)
			assert_int_equal(sw_pipelined_in_flight(t.plan, 0), 2);
		if (all[i] == SW_GPIPE)
			assert_int_equal(sw_pipelined_in_flight(t.plan, 0), 8);
	}
	assert_true(best_s <= quickest_s + 1e-12 && best_s >= bound_s * (1 - 1e-9));
	assert_true(bytes[0] > bytes[1]);
	/* Where GPipe's microbatches do not fit, another schedule is taken. */
	plan(&t, 2, 8, -1, (int64_t)((bytes[0] + bytes[1]) / 2));
	assert_int_equal(t.status, SW_OK);
	assert_true(t.plan->fits && t.plan->schedule != SW_GPIPE);
	close_program(&t);
}

/* What is said to fit does, and with less memory a step is hardly quicker: by what searches differ that
 * try other plans first. */
static void memory_is_kept(void **state)
{
	(void)state;
	staged_plan t;
	open_program(&t, "gpt", "a100-8x8");
	assert_int_equal(sw_cluster_take(&t.cluster, "4", &t.err), SW_OK);
	plan_well(&t, 2, 4, SW_GPIPE);
	double free_s = t.plan->played.step_s,
	       most = fmax(t.plan->played.ranks[0].peak_bytes, t.plan->played.ranks[1].peak_bytes);
	int32_t shrunk = 0;
	for (int percent = 101; percent >= 93; percent -= 8) {
		int64_t memory = (int64_t)(most * percent / 100);
		plan(&t, 2, 4, SW_GPIPE, memory);
		assert_true(t.status == SW_OK || t.status == SW_NO);
		assert_true(percent < 100 || (t.status == SW_OK && t.plan->fits));
		if (t.status || !t.plan->fits)
			continue;
		shrunk += percent < 100;
		for (int32_t s = 0; s < 2; s++)
			assert_true(t.plan->played.ranks[s].peak_bytes <= (double)memory);
		if (t.plan->played.step_s <= 0.99 * free_s)
			fail_msg("%.6g s within %d %% of the memory, %.6g s without a limit",
			         t.plan->played.step_s, percent, free_s);
	}
	assert_true(shrunk > 0);
	close_program(&t);
}

/* A plan that fits is found where a stage's program, which holds what crosses of all microbatches
 * on each device, does not fit: Megatron's activations are whole on each. */
static void what_crosses_needs_no_memory(void **state)
{
	(void)state;
	staged_plan t;
	sw_pipelined_options options = {.n_stages = 2, .microbatches = 16, .schedule = SW_1F1B};
	options.plan = (sw_plan_options){.quiet = true, .remat = "blocks"};
	open_program(&t, "gpt", "local-2x4");
	for (int round = 0; round < 2; round++) {
		plan_under(&t, "megatron:tp=4", options);
		double most = fmax(t.plan->played.ranks[0].peak_bytes,
		                   t.plan->played.ranks[1].peak_bytes);
		assert_true(t.plan->fits);
		assert_true(round == 0 || most <= (double)options.plan.memory_bytes);
		/* Less than the program of a stage takes. */
		options.plan.memory_bytes = (int64_t)(1.01 * most);
		assert_true(round ||
		            t.plan->stages[0].times.peak_bytes > options.plan.memory_bytes);
	}
	close_program(&t);
}

static void file_reads_back(int32_t n_slices, int32_t schedule)
{
	staged_plan t;
	sw_pipelined *read = NULL;
	char path[] = "/tmp/sw-stages-XXXXXX", other[64];
	assert_int_not_equal(mkdtemp(path), 0);
	snprintf(other, sizeof(other), "%s/p", path);
	open_program(&t, "gpt-tiny-clip", "local-2x4");
	plan_well(&t, n_slices, 4, schedule);
	assert_int_equal(sw_pipelined_write(t.plan, other, &t.err), SW_OK);
	assert_true(sw_pipelined_is_file(other));
	if (sw_pipelined_read(other, &read, &t.err))
		fail_msg("%s", t.err.message);
	assert_true(fabs(read->played.step_s - t.plan->played.step_s) < 1e-12);
	assert_int_equal(read->schedule, t.plan->schedule);
	assert_int_equal(read->n_ranks, n_slices);
	sw_text a = {0}, b = {0};
	sw_pipelined_print(t.plan, &a);
	sw_pipelined_print(read, &b);
	assert_string_equal(a.data, b.data);
	/* The plan of a stage is one like any other. */
	sw_cluster cluster;
	sw_plan *stage;
	snprintf(other, sizeof(other), "%s/p.stage0", path);
	if (sw_plan_read(other, &cluster, &stage, &t.err))
		fail_msg("%s", t.err.message);
	assert_null(stage->changes);
	assert_int_equal(cluster.n_devices, 8 / n_slices);
	sw_plan_free(stage);
	sw_cluster_clear(&cluster);
	sw_text_clear(&a);
	sw_text_clear(&b);
	sw_pipelined_free(read);
	close_program(&t);
	char command[96];
	snprintf(command, sizeof(command), "rm -r %s", path);
	assert_int_equal(system(command), 0);
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
		open_program(&t, cases[i].fixture, "local-2x2");
		plan(&t, cases[i].d, cases[i].m, cases[i].schedule, 0);
		assert_int_equal(t.status, SW_ERR_INPUT);
		if (!strstr(t.err.message, cases[i].words))
			fail_msg("%s: %s", cases[i].fixture, t.err.message);
		close_program(&t);
	}
}

/* The update of a parameter, and its state, are where it is read: between the stages only single
 * numbers travel behind the loop. */
static void updates_stay_where_their_parameters_are(void **state)
{
	(void)state;
	staged_plan t;
	open_program(&t, "gpt-tiny-clip", "local-2x2");
	plan_well(&t, 2, 4, SW_1F1B);
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
	close_program(&t);
}

/* AxoNN's grid is chosen by one stage: the others are planned on it alone. */
static void stages_share_a_grid(void **state)
{
	(void)state;
	staged_plan t;
	sw_pipelined_options options = {.n_stages = 2, .microbatches = 4, .schedule = SW_1F1B};
	open_program(&t, "mlp", "local-2x4");
	options.plan = (sw_plan_options){.quiet = true, .remat = "none"};
	plan_under(&t, "axonn", options);
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
	close_program(&t);
}

/* Where all else is asked for, the schedule is looked for among all placements. */
static void all_placements_are_looked_at(void **state)
{
	(void)state;
	staged_plan t;
	open_program(&t, "gpt", "local-2x2");
	plan_well(&t, 2, 4, -1);
	double free_s = t.plan->played.step_s;
	assert_int_equal(t.plan->n_stages, 4);
	for (int32_t schedule = 0; schedule < SW_DUALPIPE; schedule++) {
		plan_well(&t, 2, 4, schedule);
		assert_true(free_s <= t.plan->played.step_s * (1 + 1e-9));
	}
	close_program(&t);
}

/* Where stages do not fit, the bound is that of any memory: the step is not below it. */
static void bounds_hold_where_nothing_fits(void **state)
{
	(void)state;
	staged_plan t;
	int n = 0;
	open_program(&t, "gpt-tiny", "local-2x2");
	plan_well(&t, 2, 8, SW_GPIPE);
	double most = t.plan->played.ranks[0].peak_bytes;
	for (int percent = 90; percent > 30; percent -= 10) {
		plan(&t, 2, 8, SW_GPIPE, (int64_t)(most * percent / 100));
		if (t.status || t.plan->fits)
			continue;
		n++;
		assert_true(t.plan->bound.seconds <= t.plan->played.step_s * (1 + 1e-9));
	}
	assert_true(n > 0);
	close_program(&t);
}

/* What only plans with stages have is refused by those without. */
static void plans_without_stages_refuse_them(void **state)
{
	(void)state;
	staged_plan t;
	sw_plan_options options = {.quiet = true};
	sw_plan *whole = NULL;
	open_program(&t, "gpt-tiny", "local-2x2");
	assert_int_equal(sw_plan_strategy_parse("zero3:pp=2", &options.strategy, &t.err), SW_OK);
	assert_int_equal(sw_plan_make(t.program, "program.hlo", &t.sidecar, &t.cluster, &options,
	                              &whole, &t.err),
	                 SW_ERR_INPUT);
	assert_non_null(strstr(t.err.message, "without stages"));
	assert_null(whole);
	close_program(&t);
}

static void files_read_back(void **state)
{
	(void)state;
	file_reads_back(4, -1);
	file_reads_back(2, SW_ZB_V);
}

/* With two stages on each slice, V-shaped, the first and the last are on the first slice, and the
 * middle ones hand on within the last; interleaved, every second one is on a slice. */
static void slices_have_several_stages(void **state)
{
	static const int32_t v[] = {0, 1, 1, 0}, looped[] = {0, 1, 0, 1};
	(void)state;
	staged_plan t;
	open_program(&t, "gpt-tiny", "local-2x2");
	for (int looping = 0; looping <= 1; looping++) {
		plan_well(&t, 2, 4, looping ? SW_INTERLEAVED_1F1B : SW_ZB_V);
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
	close_program(&t);
}

/* What crosses of other microbatches is no part of a stage's memory, however often its program
 * holds it: what a middle stage sends up and what it sends back begin as the same zeros, which its
 * program holds beside both. */
static void what_crosses_counts_once(void **state)
{
	(void)state;
	staged_plan t;
	enum { MICROBATCHES = 8 };
	open_program(&t, "gpt-tiny", "local-1x4");
	plan_well(&t, 4, MICROBATCHES, SW_1F1B);
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
	close_program(&t);
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
	open_program(&t, "gpt-tiny", "h100-rented");
	assert_int_equal(sw_cluster_take(&t.cluster, "4", &t.err), SW_OK);
	plan_well(&t, STAGES, MICROBATCHES, SW_1F1B);
	for (int32_t i = 0; i < STAGES; i++) {
		const sw_planned_stage *s = &t.plan->stages[i];
		if (s->times.fixed_bytes < state_bytes(s))
			fail_msg("stage %d holds %lld bytes beside activations, less than its "
			         "state's %lld",
			         i, (long long)s->times.fixed_bytes, (long long)state_bytes(s));
	}
	close_program(&t);
}

static void plan_sequences_split(staged_plan *t)
{
	sw_pipelined_options options = {.n_stages = 2, .microbatches = 4, .schedule = SW_1F1B};
	options.plan = (sw_plan_options){.quiet = true, .remat = "none"};
	open_program(t, "gpt-tiny", "local-2x2");
	plan_under(t, "megatron:tp=2,sp", options);
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
	close_program(&t);
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
	close_program(&t);
}

/* Where the first stage, with most microbatches in flight, is too large, it is cut again with fewer
 * ops. */
static void too_large_stages_get_less(void **state)
{
	(void)state;
	uint32_t ops[2];
	for (int k = 0; k < 2; k++) {
		staged_plan t;
		sw_pipelined_options options = {.n_stages = 4, .microbatches = 8, .schedule = SW_1F1B};
		options.plan = (sw_plan_options){.quiet = true,
		                                 .remat = "none",
		                                 .memory_bytes = k ? INT64_C(1210) << 20 : 0};
		open_program(&t, "gpt-124m", "a100-8x8");
		assert_int_equal(sw_cluster_take(&t.cluster, "1x8", &t.err), SW_OK);
		plan_under(&t, "dp", options);
		assert_true(t.plan->fits);
		ops[k] = t.plan->stages[0].n_ops;
		close_program(&t);
	}
	assert_true(ops[1] < ops[0]);
}

/* Under data parallelism each device hands on its own part of the batch, and gathers nothing for
 * that. */
static void what_crosses_stays_split(void **state)
{
	(void)state;
	staged_plan t;
	sw_pipelined_options options = {.n_stages = 2, .microbatches = 4, .schedule = SW_1F1B};
	options.plan = (sw_plan_options){.quiet = true, .remat = "none"};
	open_program(&t, "gpt-tiny", "local-2x4");
	plan_under(&t, "megatron:tp=2", options);
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
	close_program(&t);
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
	open_program(&t, "gpt-tiny", "local-2x2");
	for (int round = 0; round < 2; round++) {
		options.plan.pins = round ? &pins : NULL;
		plan_under(&t, "megatron:tp=2", options);
		resting[round] = t.plan->stages[0].times.resting_bytes;
	}
	if (resting[1] >= resting[0])
		fail_msg("%lld bytes with the table split, %lld with it whole",
		         (long long)resting[1], (long long)resting[0]);
	close_program(&t);
}

/* By their estimates no stages of this program take so little: none is planned. */
static void hopeless_trials_are_not_planned(void **state)
{
	sw_pipelined_options options = {.schedule = -1, .known_s = 1e-6};
	sw_search_effort effort = {0};
	staged_plan t;
	(void)state;
	open_program(&t, "gpt-124m", "local-2x2");
	options.plan = (sw_plan_options){.quiet = true, .effort = &effort};
	plan_by(&t, &options);
	assert_int_equal(t.status, SW_NO);
	assert_non_null(strstr(t.err.message, "by their estimates no number of stages"));
	assert_true(effort.ops < (int64_t)t.program->ops.len);
	close_program(&t);
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
		open_program(&t, cases[i].program, "lab-2x4");
		plan_under(&t, cases[i].strategy, options);
		double fixed_s = t.plan->played.step_s;
		plan_under(&t, "auto", options);
		if (t.plan->played.step_s > fixed_s * (1 + 1e-9))
			fail_msg("%s in %d stages: %g s, under %s %g s", cases[i].program,
			         (int)cases[i].n, t.plan->played.step_s, cases[i].strategy,
			         fixed_s);
		close_program(&t);
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
		open_program(&t, cases[i].program, cases[i].cluster);
		plan_under(&t, "auto", options);
		double found_s = t.plan->played.step_s;
		options.n_stages = cases[i].n;
		options.microbatches = cases[i].m;
		plan_under(&t, "auto", options);
		if (found_s > t.plan->played.step_s * 1.005)
			fail_msg("%s: %g s, in %d stages %g s", cases[i].program, found_s,
			         (int)cases[i].n, t.plan->played.step_s);
		close_program(&t);
	}
}

/* The updates, and that few microbatches leave stages idle at the ends, count where the program is cut: no
 * cut between two blocks is quicker than the one that is found. */
static void cuts_are_chosen_by_the_step(void **state)
{
	sw_stage_file_entry entries[] = {{"params.embed.*", false, 0, 1},
	                                 {"params.blocks.6.*", false, 0, 2},
	                                 {"params.blocks.7.*", false, 1, 3}};
	const sw_stage_file file = {
		.path = "stages", .n_stages = 2, .entries = entries, .n_entries = SW_COUNT(entries)};
	sw_pipelined_options options = {.n_stages = 2, .microbatches = 2, .schedule = SW_ZB_2P};
	staged_plan t;
	(void)state;
	options.plan = (sw_plan_options){.quiet = true, .remat = "none"};
	open_program(&t, "gpt-124m", "dgx-a100-2x8");
	plan_under(&t, "megatron:tp=2,sp", options);
	double found_s = t.plan->played.step_s;
	options.file = &file;
	plan_under(&t, "megatron:tp=2,sp", options);
	if (found_s > t.plan->played.step_s * 1.005)
		fail_msg("%g s, with a cut by hand %g s", found_s, t.plan->played.step_s);
	close_program(&t);
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
		open_program(&t, "gpt-tiny", "lab-2x4");
		plan_under(&t, "auto", options);
		double found_s = t.plan->played.step_s;
		assert_true(t.plan->fits);
		assert_true(t.plan->bound.seconds <= found_s * (1 + 1e-9));
		options.schedule = (int32_t)cases[i].schedule;
		options.microbatches = 2;
		options.plan.remat = cases[i].remat;
		plan_under(&t, cases[i].strategy, options);
		if (found_s > t.plan->played.step_s * 1.005)
			fail_msg("%g s, by hand %g s", found_s, t.plan->played.step_s);
		close_program(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_add_up),
		cmocka_unit_test(loops_over_time_take_the_time_of_their_pass),
		cmocka_unit_test(few_microbatches_compute_again),
		cmocka_unit_test(bubble_is_that_of_the_formula),
		cmocka_unit_test(schedules_are_compared),
		cmocka_unit_test(memory_is_kept),
		cmocka_unit_test(all_placements_are_looked_at),
		cmocka_unit_test(bounds_hold_where_nothing_fits),
		cmocka_unit_test(plans_without_stages_refuse_them),
		cmocka_unit_test(files_read_back),
		cmocka_unit_test(refusals_say_why),
		cmocka_unit_test(stages_share_a_grid),
		cmocka_unit_test(updates_stay_where_their_parameters_are),
		cmocka_unit_test(slices_have_several_stages),
		cmocka_unit_test(what_crosses_counts_once),
		cmocka_unit_test(fused_kernels_hold_their_results),
		cmocka_unit_test(backward_passes_convert_again),
		cmocka_unit_test(what_arrives_is_split),
		cmocka_unit_test(too_large_stages_get_less),
		cmocka_unit_test(what_crosses_stays_split),
		cmocka_unit_test(stages_take_pins_of_parts),
		cmocka_unit_test(what_crosses_needs_no_memory),
		cmocka_unit_test(hopeless_trials_are_not_planned),
		cmocka_unit_test(stages_are_no_slower_than_those_of_one_strategy),
		cmocka_unit_test(numbers_of_stages_are_planned),
		cmocka_unit_test(cuts_are_chosen_by_the_step),
		cmocka_unit_test(little_memory_is_divided_well),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
