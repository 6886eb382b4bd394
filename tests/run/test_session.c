/* A plan step by step: the losses of training, arrays in and out, and checkpoints. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixtures.h"
#include "run/eval_files.h"
#include "run/run_stages.h"
#include "run/session.h"

#define STEPS 3

static bool refuses_threads;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
	typedef int create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	create *next = (create *)(uintptr_t)dlsym(RTLD_NEXT, "pthread_create");
	return refuses_threads ? EAGAIN : next(thread, attributes, run, argument);
}

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

static void done(sw_status status, const sw_error *err)
{
	if (status)
		fail_msg("%s", err->message);
}

/* A plan, a file of tokens for it, and its own program as a second one, on the same file. */
typedef struct files {
	fixture f;
	sw_data_files data;
	sw_eval_files second;
} files;

static void open_files(files *x)
{
	static const char text[] = "31415 92653 58979 32384 62643 38327 95028 84197 16939 93751 05820";
	static const char path[] = SW_SOURCE_DIR "/tests/programs/gpt-tiny.hlo.gz";
	sw_program *program;
	sw_sidecar sidecar;
	sw_error err = {0};
	const char *word = scratch_file("tokens", text, strlen(text));
	fixture_init(&x->f, "gpt-tiny", 2, "zero1");
	done(sw_read_program(path, &program, &err), &err);
	done(sw_sidecar_find(path, program, &sidecar, &err), &err);
	done(sw_data_files_open(x->f.program, &x->f.sidecar, "data", &word, 1, &x->data, &err), &err);
	sw_run_trained trained = sw_run_trained_by(x->f.plan, &x->f.sidecar);
	sw_eval_asked asked = {
		.path = path, .words = &word, .n_words = 1, .batches = 2, .quiet = true};
	done(sw_eval_files_open(&trained, program, &sidecar, &asked, &x->second, &err), &err);
}

static void close_files(files *x)
{
	sw_eval_files_close(&x->second);
	sw_data_files_close(&x->data);
	fixture_clear(&x->f);
	scratch_clear();
}

static sw_session *open_on_files(const files *x, uint64_t seed)
{
	sw_session *s;
	sw_error err = {0};
	sw_session_options options = {.seed = seed,
	                              .blas_threads = 1,
	                              .data = &x->data,
	                              .eval = sw_eval_files_program(&x->second)};
	done(sw_session_open(x->f.plan, NULL, &x->f.sidecar, &options, &s, &err), &err);
	return s;
}

static double evaluate(sw_session *s)
{
	double loss;
	sw_error err = {0};
	done(sw_session_evaluate(s, &loss, &err), &err);
	return loss;
}

/* On files losses are those of a run on them, and so is the second program's; a session that goes on from
 * a checkpoint evaluates with its seed. */
static void files_and_a_second_program_are_those_of_a_run(void **state)
{
	files x;
	sw_run_result result;
	sw_error err = {0};
	double loss;
	char folder[] = "/tmp/shardwright-session-XXXXXX", command[64];
	(void)state;
	assert_non_null(mkdtemp(folder));
	open_files(&x);
	sw_run_options options = {.steps = 2,
	                          .seed = 5,
	                          .blas_threads = 1,
	                          .overlap = SW_OVERLAP_ALL,
	                          .tune = true,
	                          .eval = sw_eval_files_program(&x.second)};
	done(sw_run_train_local(x.f.plan, &x.f.sidecar, sw_data_files_tokens(&x.data), &options,
	                        &result, &err),
	     &err);
	sw_session *s = open_on_files(&x, 5), *later = open_on_files(&x, 6),
		   *without = open_session(x.f.plan, NULL, &x.f.sidecar);
	assert_true(step(s) == result.losses[0] && step(s) == result.losses[1]);
	assert_true(evaluate(s) == result.evaluated[0].loss);
	done(sw_session_save(s, folder, &err), &err);
	done(sw_session_load(later, folder, &err), &err);
	assert_true(evaluate(later) == result.evaluated[0].loss);
	assert_true(step(s) == step(later));
	assert_int_equal(sw_session_evaluate(without, &loss, &err), SW_ERR_INPUT);
	sw_session_free(s);
	sw_session_free(later);
	sw_session_free(without);
	sw_run_result_clear(&result);
	close_files(&x);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

/* Write a safetensors file with the parameters alone. */
static const char *write_parameters(const sw_session *s)
{
	sw_text header = {0}, file = {0};
	int64_t begin = 0;
	for (uint32_t i = 0; i < sw_session_arrays(s); i++) {
		sw_session_array a = sw_session_array_at(s, i);
		int64_t bytes = sw_shape_bytes(a.shape);
		if (strncmp(a.name, "params.", 7) != 0)
			continue;
		sw_text_addf(&header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[", begin ? "," : "{",
		             a.name);
		for (int32_t d = 0; d < a.shape.rank; d++)
			sw_text_addf(&header, "%s%lld", d ? "," : "", (long long)a.shape.dims[d]);
		sw_text_addf(&header, "],\"data_offsets\":[%lld,%lld]}", (long long)begin,
		             (long long)(begin + bytes));
		begin += bytes;
	}
	sw_text_add(&header, "}");
	uint64_t length = header.len;
	sw_text_add_n(&file, (const char *)&length, sizeof(length));
	sw_text_add_n(&file, header.data, header.len);
	for (uint32_t i = 0; i < sw_session_arrays(s); i++) {
		sw_session_array a = sw_session_array_at(s, i);
		if (strncmp(a.name, "params.", 7) != 0)
			continue;
		void *whole = get(s, i);
		sw_text_add_n(&file, whole, (size_t)sw_shape_bytes(a.shape));
		free(whole);
	}
	const char *path = scratch_file("parameters.safetensors", file.data, file.len);
	sw_text_clear(&header);
	sw_text_clear(&file);
	return path;
}

static void check_same_state(const sw_session *a, const sw_session *b)
{
	for (uint32_t i = 0; i < sw_session_arrays(a); i++) {
		if (sw_session_array_at(a, i).kind != SW_SESSION_STATE)
			continue;
		void *one = get(a, i), *other = get(b, i);
		assert_memory_equal(one, other,
		                    (size_t)sw_shape_bytes(sw_session_array_at(a, i).shape));
		free(one);
		free(other);
	}
}

/* What a file lacks is not what the session had before. */
static void check_loading(const sw_plan *plan, const sw_pipelined *stages, const sw_sidecar *sidecar)
{
	sw_error err = {0};
	sw_session *s = open_session(plan, stages, sidecar), *fresh = open_session(plan, stages, sidecar);
	step(s);
	step(s);
	const char *path = write_parameters(s);
	if (sw_session_load(s, path, &err) || sw_session_load(fresh, path, &err))
		fail_msg("%s", err.message);
	check_same_state(s, fresh);
	sw_session_free(s);
	sw_session_free(fresh);
	scratch_clear();
}

static void a_file_that_lacks_state_begins_training_with_it_anew(void **state)
{
	fixture f;
	sw_pipelined *stages;
	sw_error err = {0};
	sw_pipelined_options how = {.n_stages = 2,
	                            .microbatches = 2,
	                            .schedule = SW_1F1B,
	                            .plan = {.quiet = true, .remat = "none"}};
	(void)state;
	fixture_init(&f, "mlp", 2, "zero1");
	check_loading(f.plan, NULL, &f.sidecar);
	assert_int_equal(sw_plan_strategy_parse("dp", &how.plan.strategy, &err), SW_OK);
	if (sw_pipelined_make(f.program, "program.hlo", &f.sidecar, &f.cluster, &how, &stages, &err))
		fail_msg("%s", err.message);
	check_loading(NULL, stages, &f.sidecar);
	sw_pipelined_free(stages);
	fixture_clear(&f);
}

/* After half a step there is nothing to be had, nor to be saved. */
static void after_a_failed_step_all_calls_fail(void **state)
{
	fixture f;
	sw_error err = {0};
	char folder[] = "/tmp/shardwright-session-XXXXXX";
	float whole[128] = {0};
	(void)state;
	assert_non_null(mkdtemp(folder));
	fixture_init(&f, "mlp", 2, "dp");
	sw_session *s = open_session(f.plan, NULL, &f.sidecar);
	uint32_t array = sw_session_find(s, "params.layer0.b");
	assert_int_equal(sw_session_get(s, array, whole, &err), SW_OK);
	refuses_threads = true;
	assert_int_equal(sw_session_step(s, &err), SW_ERR_IO);
	refuses_threads = false;
	assert_int_equal(sw_session_step(s, &err), SW_ERR_INPUT);
	assert_int_equal(sw_session_get(s, array, whole, &err), SW_ERR_INPUT);
	assert_int_equal(sw_session_set(s, array, whole, &err), SW_ERR_INPUT);
	assert_int_equal(sw_session_save(s, folder, &err), SW_ERR_INPUT);
	assert_int_equal(sw_session_load(s, folder, &err), SW_ERR_INPUT);
	assert_non_null(strstr(err.message, "open it again"));
	assert_int_equal(rmdir(folder), 0);
	sw_session_free(s);
	fixture_clear(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_session_does_the_steps_of_a_run),
		cmocka_unit_test(so_does_one_with_stages),
		cmocka_unit_test(files_and_a_second_program_are_those_of_a_run),
		cmocka_unit_test(a_file_that_lacks_state_begins_training_with_it_anew),
		cmocka_unit_test(after_a_failed_step_all_calls_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
