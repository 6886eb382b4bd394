#include "export/random_run.h"

#include <stdlib.h>

#include "frontend/frontend.h"
#include "rewrite/rewrite.h"

static void check(sw_status status, const sw_error *err, const char *what)
{
	if (status != SW_OK)
		fail_msg("%s: %s", what, err->message);
}

sw_program *read_canonical(const char *path)
{
	sw_program *read = NULL, *program = NULL;
	sw_error err = {0};
	check(sw_read_program(path, &read, &err), &err, path);
	if (read->num_partitions > 1)
		return read;
	check(sw_rewrite_canonical(read, &program, &err), &err, path);
	sw_program_free(read);
	return program;
}

static void fill(sw_tensor tensor, random_inputs inputs, sw_rng *rng)
{
	bool real = sw_type_kind_of(tensor.shape.type) == SW_KIND_FLOAT;
	for (int64_t i = 0; i < sw_shape_elements(tensor.shape); i++)
		sw_element_set(tensor.shape.type, sw_tensor_data(tensor), i,
		               real ? inputs.low + (inputs.high - inputs.low) * sw_rng_unit(rng)
		                    : (double)sw_rng_below(rng, 2));
}

sw_tensor *run_random(const sw_program *program, random_inputs inputs, const char *what)
{
	sw_arena arena;
	sw_interpreter *interpreter;
	const sw_id *values;
	sw_error err = {0};
	sw_rng rng = {.seed = inputs.seed};
	uint32_t n_outputs = (uint32_t)sw_entry(program)->results.len;
	sw_tensor *outputs = calloc(n_outputs, sizeof(*outputs));
	sw_arena_init(&arena);
	uint32_t n = sw_program_inputs(program, program->entry, &arena, &values);
	sw_tensor *tensors = SW_NEW_N(&arena, sw_tensor, n);
	for (uint32_t i = 0; i < n; i++) {
		check(sw_tensor_new(sw_value_shape(program, values[i]), true, &tensors[i], &err),
		      &err, what);
		fill(tensors[i], inputs, &rng);
	}
	check(sw_interpreter_new(program, NULL, &interpreter, &err), &err, what);
	check(sw_interpret(interpreter, tensors, n, outputs, n_outputs, &err), &err, what);
	sw_interpreter_free(interpreter);
	sw_arena_clear(&arena);
	return outputs;
}

void drop_outputs(const sw_program *program, sw_tensor *outputs)
{
	for (size_t i = 0; i < sw_entry(program)->results.len; i++)
		sw_tensor_drop(&outputs[i]);
	free(outputs);
}
