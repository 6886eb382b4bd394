/* Programs in microbatches and stages, on recorded inputs. */
#include "stages/staged.h"

#include <string.h>

#include "test.h"

static void check(const staged *t, sw_status status, const sw_error *err)
{
	if (status)
		fail_msg("%s: %s:%d: %s", t->name, err->file, err->line, err->message);
}

static void read_recording(staged *t, const char *path)
{
	char recording[512];
	sw_error err;
	int n = snprintf(recording, sizeof(recording), "%.*s.recorded.safetensors.gz",
	                 (int)(strlen(path) - strlen(".hlo.gz")), path);
	assert_true(n > 0);
	/* Large fixtures have none: they are cut and not run. */
	(void)sw_tensor_file_read(recording, &t->recorded, &err);
}

void staged_init(staged *t, const char *fixture, int32_t microbatches, int32_t n_stages)
{
	staged_init_remat(t, fixture, NULL, microbatches, n_stages);
}

void staged_init_remat(staged *t, const char *fixture, const char *policy, int32_t microbatches,
                       int32_t n_stages)
{
	char path[256];
	sw_error err;
	sw_program *program, *canonical, *again;
	sw_stage_options options = {.n_stages = n_stages, .device = {1e12, 1e11}, .tolerance = 0.05};
	*t = (staged){.name = fixture};
	snprintf(path, sizeof(path), SW_SOURCE_DIR "/tests/programs/%s.hlo.gz", fixture);
	check(t, sw_read_program(path, &program, &err), &err);
	check(t, sw_sidecar_find(path, program, &t->sidecar, &err), &err);
	check(t, sw_rewrite_canonical(program, &canonical, &err), &err);
	if (policy) {
		check(t, sw_rewrite_remat_policy(canonical, policy, options.device, &again, &err),
		      &err);
		sw_program_free(canonical);
		canonical = again;
	}
	read_recording(t, path);
	if (sw_rewrite_microbatches(canonical, &t->sidecar, microbatches, &t->looped,
	                            &t->refusal) == SW_OK)
		t->found = sw_stages_init(&t->stages, t->looped, &options, &t->refusal) == SW_OK;
	sw_program_free(canonical);
	sw_program_free(program);
}

void staged_clear(staged *t)
{
	if (t->found)
		sw_stages_clear(&t->stages);
	sw_tensor_file_clear(&t->recorded);
	sw_program_free(t->looped);
	sw_sidecar_clear(&t->sidecar);
}

sw_tensor *staged_take_inputs(staged *t, uint32_t *n)
{
	sw_arena arena = {0};
	const sw_id *values;
	*n = sw_program_inputs(t->looped, t->looped->entry, &arena, &values);
	sw_arena_clear(&arena);
	sw_tensor *inputs = sw_alloc(sizeof(sw_tensor) * (*n + 1));
	for (uint32_t i = 0; i < *n; i++) {
		char name[32];
		snprintf(name, sizeof(name), "input.%u", i);
		const sw_tensor *tensor = sw_tensor_file_get(&t->recorded, name);
		if (!tensor)
			fail_msg("%s: %s is not in the recording", t->name, name);
		inputs[i] = sw_tensor_keep(*tensor);
	}
	return inputs;
}

sw_tensor *staged_run_whole(staged *t)
{
	sw_error err;
	uint32_t n, n_results = (uint32_t)sw_entry(t->looped)->results.len;
	sw_tensor *inputs = staged_take_inputs(t, &n), *results = sw_alloc(sizeof(sw_tensor) * n_results);
	sw_interpret_options options = {.blas_threads = 1};
	sw_interpreter *interpreter;
	check(t, sw_interpreter_new(t->looped, &options, &interpreter, &err), &err);
	check(t, sw_interpret(interpreter, inputs, n, results, n_results, &err), &err);
	sw_interpreter_free(interpreter);
	free(inputs);
	return results;
}

sw_tensor *staged_run_pieces(staged *t, const sw_stage_pieces *pieces,
                             const sw_pipeline_schedule *schedule)
{
	sw_error err;
	uint32_t n;
	sw_tensor *inputs = staged_take_inputs(t, &n),
		  *results = sw_alloc(sizeof(sw_tensor) * sw_entry(t->looped)->results.len);
	check(t, sw_stages_run(pieces, schedule, inputs, results, &err), &err);
	for (uint32_t i = 0; i < n; i++)
		sw_tensor_drop(&inputs[i]);
	free(inputs);
	return results;
}

void staged_drop(const staged *t, sw_tensor *results)
{
	for (size_t i = 0; i < sw_entry(t->looped)->results.len; i++)
		sw_tensor_drop(&results[i]);
	free(results);
}

void staged_assert_same(const staged *t, const sw_tensor *expected, const sw_tensor *actual,
                        const char *how)
{
	for (size_t i = 0; i < sw_entry(t->looped)->results.len; i++) {
		size_t bytes = (size_t)sw_shape_bytes(expected[i].shape);
		if (memcmp(sw_tensor_data(expected[i]), sw_tensor_data(actual[i]), bytes))
			fail_msg("%s, %d stages, %s: result %zu differs", t->name,
			         t->stages.n_stages, how, i);
	}
}
