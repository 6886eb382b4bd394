/* Plans with stages, carried out on in-process ranks: every output equals the serial program's, for
 * all numbers of stages and schedules. */
#include <math.h>
#include <string.h>

#include "pipelined/stage_programs.h"
#include "run/run_stages.h"
#include "test.h"

typedef struct staged_run {
	sw_program *program;
	sw_sidecar sidecar;
	sw_cluster cluster;
	sw_pipelined *plan;
	sw_error err;
} staged_run;

static void open_as(staged_run *t, const char *fixture, const char *cluster, const char *devices,
                    sw_pipelined_options options, const char *strategy)
{
	char path[256];
	options.plan = (sw_plan_options){.quiet = true, .remat = "none"};
	*t = (staged_run){0};
	snprintf(path, sizeof(path), SW_SOURCE_DIR "/tests/programs/%s.hlo.gz", fixture);
	assert_int_equal(sw_read_program(path, &t->program, &t->err), SW_OK);
	assert_int_equal(sw_sidecar_find(path, t->program, &t->sidecar, &t->err), SW_OK);
	snprintf(path, sizeof(path), SW_SOURCE_DIR "/clusters/%s.yaml", cluster);
	assert_int_equal(sw_cluster_read(path, &t->cluster, &t->err), SW_OK);
	if (devices)
		assert_int_equal(sw_cluster_take(&t->cluster, devices, &t->err), SW_OK);
	assert_int_equal(sw_plan_strategy_parse(strategy, &options.plan.strategy, &t->err), SW_OK);
	if (sw_pipelined_make(t->program, "program.hlo", &t->sidecar, &t->cluster, &options,
	                      &t->plan, &t->err))
		fail_msg("%s, %d stages: %s", fixture, options.n_stages, t->err.message);
}

static void open_plan(staged_run *t, const char *fixture, const char *cluster, const char *devices,
                      int32_t d, int32_t m, int32_t schedule, const char *strategy)
{
	open_as(t, fixture, cluster, devices,
	        (sw_pipelined_options){.n_stages = d, .microbatches = m, .schedule = schedule},
	        strategy);
}

static void close_plan(staged_run *t)
{
	sw_pipelined_free(t->plan);
	sw_program_free(t->program);
	sw_sidecar_clear(&t->sidecar);
	sw_cluster_clear(&t->cluster);
}

static void verify(staged_run *t, const char *what)
{
	sw_verify_result result;
	if (sw_run_verify_stages(t->plan, &t->sidecar, 7, &result, &t->err))
		fail_msg("%s: %s", what, t->err.message);
	for (size_t i = 0; i < result.rows.len; i++)
		if (!result.rows.data[i].ok)
			fail_msg("%s, %d stages, %s: %s is off by %g, allowed %g", what,
			         t->plan->n_stages,
			         sw_pipelined_schedule_name(t->plan),
			         result.rows.data[i].name, result.rows.data[i].relative,
			         result.rows.data[i].tolerance);
	assert_true(result.ok && result.rows.len > 0);
	sw_verify_result_clear(&result);
}

static void stages_equal_the_serial_program(void **state)
{
	static const struct {
		const char *fixture, *cluster, *devices;
		int32_t d, m;
		int32_t schedule;
		const char *strategy;
	} cases[] = {
		{"mlp", "local-2x2", NULL, 2, 4, SW_1F1B, "auto"},
		{"mlp", "local-2x2", NULL, 4, 4, SW_GPIPE, "auto"},
		{"gpt-tiny", "local-2x2", NULL, 2, 4, SW_1F1B, "auto"},
		{"gpt-tiny", "local-2x2", NULL, 4, 4, SW_ZB_H1, "auto"},
		{"gpt-tiny", "local-1x4", "3", 3, 4, SW_ZB_2P, "auto"},
		{"gpt-tiny", "local-2x4", NULL, 2, 4, SW_EAGER_1F1B, "megatron:tp=2"},
		{"gpt-tiny", "local-2x4", NULL, 4, 4, SW_1F1B, "dp"},
		{"gpt-tiny-clip", "local-2x2", NULL, 2, 4, SW_GPIPE, "zero3"},
		{"llama-gqa-tiny", "local-2x2", NULL, 2, 4, SW_ZB_2P, "dp"},
		{"llama-gqa-tiny", "local-1x4", "3", 3, 4, SW_EAGER_1F1B, "dp"},
		{"t5-tiny", "local-2x2", NULL, 2, 2, SW_1F1B, "zero1"},
		/* Two stages on each slice; tied embeddings then are on one slice, or on two. */
		{"mlp", "local-2x2", NULL, 2, 4, SW_ZB_V, "auto"},
		{"gpt-tiny", "local-2x2", NULL, 2, 4, SW_INTERLEAVED_1F1B, "auto"},
		{"gpt-tiny", "local-2x4", NULL, 2, 4, SW_ZB_V, "megatron:tp=2"},
		{"gpt-tiny-clip", "local-2x2", NULL, 4, 8, SW_V_HALF, "dp"},
		{"gpt-tiny", "local-1x4", "3", 3, 8, SW_V_MIN, "dp"},
		{"llama-gqa-tiny", "local-2x2", NULL, 2, 4, SW_ZB_V, "zero3"},
		{"llama-gqa-tiny", "local-2x2", NULL, 4, 4, SW_INTERLEAVED_1F1B, "dp"},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		staged_run t;
		open_plan(&t, cases[i].fixture, cases[i].cluster, cases[i].devices, cases[i].d,
		          cases[i].m, cases[i].schedule, cases[i].strategy);
		verify(&t, cases[i].fixture);
		close_plan(&t);
	}
}

/* ---- slices and schedules of users ------------------------------------------------------- */

/* The next random number below n. */
static int32_t below(uint64_t *at, int32_t n)
{
	return (int32_t)(sw_random_bits(5, 0, (*at)++) % (uint64_t)n);
}

/* May the action come next? done: [stage][microbatch], how often: forward, then backward. A stage
 * takes microbatches in their order. */
static bool is_ready(const sw_pipeline_schedule *s, const int32_t *done, sw_action a)
{
	const int32_t *own = &done[a.stage * s->n_microbatches + a.microbatch];
	if (a.microbatch > 0 && own[-1] <= *own)
		return false;
	if (a.kind == SW_FORWARD)
		return *own == 0 && (a.stage == 0 || own[-s->n_microbatches] > 0);
	return *own == 1 && (a.stage + 1 == s->n_stages || own[s->n_microbatches] == 2);
}

/* Stages in a random order on the ranks, as many on each, and their passes in a random order that
 * can be run. */
static sw_pipeline_schedule *random_schedule(int32_t n_ranks, int32_t chunks, int32_t m,
                                             uint64_t *at)
{
	sw_pipeline_schedule *s = sw_pipeline_new(n_ranks, n_ranks * chunks, m, 1);
	int32_t *done = sw_alloc(sizeof(*done) * (size_t)(s->n_stages * m)), left = 2 * s->n_stages * m;
	for (int32_t i = 0; i < s->n_stages; i++)
		s->rank_of_stage[i] = i % n_ranks;
	for (int32_t i = s->n_stages; i-- > 1;) {
		int32_t k = below(at, i + 1), rank = s->rank_of_stage[i];
		s->rank_of_stage[i] = s->rank_of_stage[k];
		s->rank_of_stage[k] = rank;
	}
	while (left > 0) {
		sw_action a = {below(at, 2) ? SW_FORWARD : SW_BACKWARD, below(at, s->n_stages),
		               below(at, m)};
		if (!is_ready(s, done, a))
			continue;
		done[a.stage * m + a.microbatch]++;
		sw_vec_push(&s->lists[s->rank_of_stage[a.stage]], a);
		left--;
	}
	free(done);
	return s;
}

/* Slices of random sizes, with stages and passes in random orders, compute the same. */
static void random_slices_equal_the_serial_program(void **state)
{
	static const char *const fixtures[] = {"gpt-tiny-clip", "t5-tiny", "mlp"},
				 *const strategies[] = {"auto", "dp", "zero3"};
	enum { CASES = 9, DEVICES = 6, MICROBATCHES = 4 };
	uint64_t at = 0;
	(void)state;
	for (int i = 0; i < CASES; i++) {
		staged_run t;
		int32_t d = 2 + below(&at, 2), chunks = 1 + below(&at, 2);
		int64_t devices[] = {1, 1, 1};
		for (int32_t k = d; k < DEVICES; k++)
			devices[below(&at, d)]++;
		sw_stage_file file = {.path = "file", .n_slices = d, .devices = devices};
		sw_pipeline_schedule *given = random_schedule(d, chunks, MICROBATCHES, &at);
		sw_pipelined_options options = {.n_stages = d,
		                                .microbatches = MICROBATCHES,
		                                .schedule = -1,
		                                .file = &file,
		                                .given = given};
		open_as(&t, fixtures[i % 3], "lab-unequal", "6", options, strategies[i / 3]);
		for (int32_t r = 0; r < d; r++)
			assert_int_equal(t.plan->slices[r]->n_devices, devices[r]);
		verify(&t, fixtures[i % 3]);
		close_plan(&t);
		sw_pipeline_free(given);
	}
}

/* The passes have work and values travel: every stage has a program for its forward pass, and its
 * events are those of the schedule. */
static void events_are_those_of_the_schedule(void **state)
{
	(void)state;
	staged_run t;
	sw_stage_programs programs;
	enum { STAGES = 4, MICROBATCHES = 4 };
	open_plan(&t, "gpt-tiny", "local-2x2", NULL, STAGES, MICROBATCHES, SW_1F1B, "auto");
	assert_int_equal(sw_stage_programs_init(&programs, t.plan, &t.err), SW_OK);
	int passes[2 * STAGES] = {0}, transfers = 0;
	for (size_t i = 0; i < programs.events.len; i++) {
		sw_stage_event event = programs.events.data[i];
		transfers += event.kind == SW_EVENT_TRANSFER && event.microbatch >= 0;
		if (event.kind == SW_EVENT_PASS)
			assert_int_equal(event.microbatch, passes[event.number]++);
	}
	for (int32_t v = 0; v < 2 * STAGES; v++) {
		assert_non_null(programs.passes[v].local);
		assert_int_equal(passes[v], MICROBATCHES);
	}
	/* Each stage but the last sends forward, and each but the first back. */
	assert_true(transfers >= 2 * (STAGES - 1) * MICROBATCHES);
	sw_stage_programs_clear(&programs);
	close_plan(&t);
}

/* Schedules that split the backward pass run weight gradients where they stand: under ZB-2P they
 * fall behind the input gradients. */
static void weight_gradients_are_passes_of_their_own(void **state)
{
	(void)state;
	staged_run t;
	sw_stage_programs programs;
	enum { STAGES = 4, MICROBATCHES = 8 };
	int passes[3 * STAGES] = {0}, most_behind = 0;
	open_plan(&t, "gpt-tiny", "local-2x2", NULL, STAGES, MICROBATCHES, SW_ZB_2P, "dp");
	assert_int_equal(sw_stage_programs_init(&programs, t.plan, &t.err), SW_OK);
	assert_int_equal(programs.cut->n_virtual, 3 * STAGES);
	for (size_t i = 0; i < programs.events.len; i++) {
		sw_stage_event event = programs.events.data[i];
		if (event.kind != SW_EVENT_PASS)
			continue;
		assert_int_equal(event.microbatch, passes[event.number]++);
		most_behind = SW_MAX(most_behind, passes[STAGES] - passes[3 * STAGES - 1]);
	}
	for (int32_t v = 0; v < 3 * STAGES; v++)
		assert_int_equal(passes[v], MICROBATCHES);
	/* Of the last stage, whose input gradients others wait for. */
	assert_true(most_behind >= 2);
	sw_stage_programs_clear(&programs);
	close_plan(&t);
}

/* The loss of each step is that of one device without stages. */
static void losses_are_those_of_one_device(void **state)
{
	static const char *const fixtures[] = {"gpt-tiny", "mlp"};
	enum { STEPS = 5 };
	(void)state;
	for (size_t f = 0; f < SW_COUNT(fixtures); f++) {
		staged_run t;
		sw_plan *serial;
		sw_run_options options = {.steps = STEPS, .seed = 3, .quiet = true};
		sw_run_result one, staged;
		sw_cluster single;
		open_plan(&t, fixtures[f], "local-2x2", NULL, 2, 4, SW_1F1B, "auto");
		assert_int_equal(
			sw_cluster_read(SW_SOURCE_DIR "/clusters/local-2x2.yaml", &single, &t.err),
			SW_OK);
		assert_int_equal(sw_cluster_take(&single, "1", &t.err), SW_OK);
		assert_int_equal(sw_plan_replicated(t.program, &single, &serial, &t.err), SW_OK);
		assert_int_equal(
			sw_run_train_local(serial, &t.sidecar, NULL, &options, &one, &t.err),
			SW_OK);
		if (sw_run_train_stages_local(t.plan, &t.sidecar, NULL, &options, &staged, &t.err))
			fail_msg("%s: %s", fixtures[f], t.err.message);
		assert_int_equal(staged.steps, STEPS);
		assert_true(one.losses[0] != one.losses[STEPS - 1]);
		for (int i = 0; i < STEPS; i++)
			if (!(fabs(one.losses[i] - staged.losses[i]) <= 1e-4 * fabs(one.losses[i])))
				fail_msg("%s, step %d: loss %.8g, of one device %.8g", fixtures[f],
				         i, staged.losses[i], one.losses[i]);
		sw_run_result_clear(&one);
		sw_run_result_clear(&staged);
		sw_plan_free(serial);
		sw_cluster_clear(&single);
		close_plan(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stages_equal_the_serial_program),
		cmocka_unit_test(random_slices_equal_the_serial_program),
		cmocka_unit_test(events_are_those_of_the_schedule),
		cmocka_unit_test(weight_gradients_are_passes_of_their_own),
		cmocka_unit_test(losses_are_those_of_one_device),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
