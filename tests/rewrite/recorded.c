#include "rewrite/recorded.h"

#include <string.h>

void assert_ok(sw_status status, const sw_error *err)
{
	if (status != SW_OK)
		fail_msg("%s:%d:%d: %s", err->file, err->line, err->column, err->message);
}

recorded read_recorded(const char *path)
{
	char recording[512];
	recorded inputs;
	sw_error err;
	snprintf(recording, sizeof(recording), "%.*s.recorded.safetensors.gz",
	         (int)(strlen(path) - strlen(".hlo.gz")), path);
	assert_ok(sw_tensor_file_read(recording, &inputs.file, &err), &err);
	return inputs;
}

void recorded_clear(recorded *inputs)
{
	sw_tensor_file_clear(&inputs->file);
}

static sw_tensor input_of(const recorded *inputs, size_t i)
{
	char name[32];
	snprintf(name, sizeof(name), "input.%zu", i);
	const sw_tensor *tensor = sw_tensor_file_get(&inputs->file, name);
	if (!tensor)
		fail_msg("%s is not in the recording", name);
	return sw_tensor_keep(*tensor);
}

/* Return the outputs, which the caller drops and frees. */
static sw_tensor *interpret(const sw_program *program, const recorded *recorded_inputs)
{
	sw_error err;
	sw_arena arena = {0};
	const sw_id *values;
	uint32_t n_inputs = sw_program_inputs(program, program->entry, &arena, &values);
	uint32_t n_outputs = (uint32_t)sw_entry(program)->results.len;
	sw_interpret_options options = {.blas_threads = 1};
	sw_interpreter *interpreter;
	sw_tensor *inputs = SW_NEW_N(&arena, sw_tensor, n_inputs),
		  *outputs = sw_alloc(sizeof(*outputs) * n_outputs);
	for (uint32_t i = 0; i < n_inputs; i++)
		inputs[i] = input_of(recorded_inputs, i);
	assert_ok(sw_interpreter_new(program, &options, &interpreter, &err), &err);
	assert_ok(sw_interpret(interpreter, inputs, n_inputs, outputs, n_outputs, &err), &err);
	sw_interpreter_free(interpreter);
	sw_arena_clear(&arena);
	return outputs;
}

void assert_near(const sw_program *a, const sw_program *b, const recorded *inputs,
                 double tolerance, const char *what)
{
	sw_tensor *before = interpret(a, inputs), *after = interpret(b, inputs);
	for (size_t i = 0; i < sw_entry(a)->results.len; i++) {
		bool same = memcmp(sw_tensor_data(before[i]), sw_tensor_data(after[i]),
		                   (size_t)sw_shape_bytes(before[i].shape)) == 0;
		double off = same ? 0 : sw_tensor_compare(before[i], after[i]).relative;
		if (!same && !(off <= tolerance))
			fail_msg("%s: output %zu differs by %g", what, i, off);
		sw_tensor_drop(&before[i]);
		sw_tensor_drop(&after[i]);
	}
	free(before);
	free(after);
}

void assert_same_bits(const sw_program *a, const sw_program *b, const recorded *inputs,
                      const char *what)
{
	assert_near(a, b, inputs, -1, what);
}
