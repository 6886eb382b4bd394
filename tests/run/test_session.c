/* A plan step by step: the losses of training, arrays in and out, and checkpoints. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixtures.h"
#include "run/run_stages.h"
#include "run/session.h"

#define STEPS 3

static sw_session *open_session(const sw_plan *plan, const sw_pipelined *stages,
                                const sw_sidecar *sidecar)
{
	sw_session *s;
	sw_error err = {0};
	sw_session_options options = {.seed = 5, .blas_threads = 1};
	if (sw_session_open(plan, stages, sidecar, &options, &s, &err))
		fail_msg("%s", err.message);
	return s;
}

static void *get(const sw_session *s, uint32_t array)
{
	sw_error err = {0};
	void *whole = sw_alloc((size_t)sw_shape_bytes(sw_session_array_at(s, array).shape) + 1);
	if (sw_session_get(s, array, whole, &err))
		fail_msg("%s", err.message);
	return whole;
}

static double step(sw_session *s)
{
	sw_error err = {0};
	if (sw_session_step(s, &err))
		fail_msg("%s", err.message);
	float *loss = get(s, sw_session_find(s, "loss"));
	double value = *loss;
	free(loss);
	return value;
}

/* All state of one session becomes that of another, which then does the same. */
static void copy_state(const sw_session *from, sw_session *to)
{
	sw_error err = {0};
	for (uint32_t i = 0; i < sw_session_arrays(from); i++) {
		if (sw_session_array_at(from, i).kind != SW_SESSION_STATE)
			continue;
		void *whole = get(from, i), *back;
		assert_int_equal(sw_session_set(to, i, whole, &err), SW_OK);
		back = get(to, i);
		assert_memory_equal(
			whole, back, (size_t)sw_shape_bytes(sw_session_array_at(from, i).shape));
		free(whole);
		free(back);
	}
}

/* A session has the losses of a run, goes on from what it saved, and from another's state. */
static void check_session(const sw_plan *plan, const sw_pipelined *stages,
                          const sw_sidecar *sidecar, const double *losses)
{
	sw_error err = {0};
	char folder[] = "/tmp/shardwright-session-XXXXXX", command[64];
	assert_non_null(mkdtemp(folder));
	sw_session *s = open_session(plan, stages, sidecar), *other = open_session(plan, stages, sidecar),
		   *loaded = open_session(plan, stages, sidecar);
	assert_true(step(s) == losses[0]);
	assert_int_equal(sw_session_save(s, folder, &err), SW_OK);
	assert_true(step(s) == losses[1]);
	assert_int_equal(sw_session_load(loaded, folder, &err), SW_OK);
	assert_int_equal(sw_session_steps(loaded), 1);
	assert_true(step(loaded) == losses[1]);
	step(other);
	step(other); /* the next data are those of step 2 */
	copy_state(s, other);
	assert_true(step(s) == losses[2]);
	assert_true(step(other) == losses[2]);
	sw_session_free(s);
	sw_session_free(other);
	sw_session_free(loaded);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

static void a_session_does_the_steps_of_a_run(void **state)
{
	static const struct {
		const char *program, *strategy;
		int devices;
	} cases[] = {
		{"mlp", "dp", 2},
		{"gpt-tiny", "zero3", 4},
		{"gpt-tiny", "ps", 4}, /* owners have what others have not */
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		fixture f;
		sw_run_result result;
		sw_error err = {0};
		sw_run_options options = {
			.steps = STEPS, .seed = 5, .blas_threads = 1, .overlap = SW_OVERLAP_ALL, .tune = true};
		fixture_init(&f, cases[i].program, cases[i].devices, cases[i].strategy);
		assert_int_equal(sw_run_train_local(f.plan, &f.sidecar, NULL, &options, &result,
		                                    &err),
		                 SW_OK);
		check_session(f.plan, NULL, &f.sidecar, result.losses);
		sw_run_result_clear(&result);
		fixture_clear(&f);
	}
}

static void so_does_one_with_stages(void **state)
{
	fixture f;
	sw_pipelined *plan;
	sw_run_result result;
	sw_error err = {0};
	sw_run_options options = {.steps = STEPS, .seed = 5, .blas_threads = 1, .overlap = SW_OVERLAP_ALL};
	sw_pipelined_options how = {.n_stages = 2,
	                            .microbatches = 4,
	                            .schedule = SW_ZB_V,
	                            .plan = {.quiet = true, .remat = "none"}};
	(void)state;
	fixture_init(&f, "gpt-tiny-clip", 4, "dp");
	assert_int_equal(sw_plan_strategy_parse("dp", &how.plan.strategy, &err), SW_OK);
	if (sw_pipelined_make(f.program, "program.hlo", &f.sidecar, &f.cluster, &how, &plan, &err))
		fail_msg("%s", err.message);
	assert_int_equal(sw_run_train_stages_local(plan, &f.sidecar, NULL, &options, &result, &err),
	                 SW_OK);
	check_session(NULL, plan, &f.sidecar, result.losses);
	sw_run_result_clear(&result);
	sw_pipelined_free(plan);
	fixture_clear(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_session_does_the_steps_of_a_run),
		cmocka_unit_test(so_does_one_with_stages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
