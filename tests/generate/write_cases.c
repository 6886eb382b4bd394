/*
 * Write random or given programs, with inputs and outputs, for tools/compare_with_xla.py, which
 * runs them in XLA.
 *
 *     write_cases FOLDER COUNT SEED [ONLY]   random programs from SEED on, of the makers whose
 *                                            names contain ONLY
 *     write_cases FOLDER PROGRAM...          these programs; their inputs are recorded, or filled
 *                                            as their sidecar says
 *
 * Each program is run in the interpreter, and NAME.hlo and NAME.safetensors are written: inputs
 * in0 .., outputs out0 .., and for random programs errors, f64[outputs]: the largest error that an
 * element of each output may have. Element types that safetensors lacks: c128 becomes f64[...,2],
 * others of one byte become u8.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generate/generate.h"
#include "interpret/interpret.h"
#include "run/run.h"

typedef struct trial {
	const sw_program *program;
	const char *folder, *name, *path; /* path: of the program; NULL if it is random */
	sw_arena arena;
	uint32_t n_inputs, n_outputs;
	const sw_id *values;
	sw_tensor *inputs, *outputs;
} trial;

static sw_shape shape_in_file(sw_arena *arena, sw_shape shape)
{
	sw_type_kind kind = sw_type_kind_of(shape.type);
	if (shape.type == SW_C128) {
		int64_t *dims = SW_NEW_N(arena, int64_t, shape.rank + 1);
		for (int32_t d = 0; d < shape.rank; d++)
			dims[d] = shape.dims[d];
		dims[shape.rank] = 2;
		return (sw_shape){SW_F64, shape.rank + 1, 0, dims};
	}
	if (kind != SW_KIND_PRED && shape.type != SW_S8 && sw_type_bytes(shape.type) == 1)
		shape.type = SW_U8;
	return shape;
}

static void add(trial *t, sw_named_tensor *list, size_t *n, const char *kind, uint32_t i,
                sw_tensor tensor)
{
	char name[32];
	snprintf(name, sizeof name, "%s%u", kind, i);
	tensor.shape = shape_in_file(&t->arena, tensor.shape);
	list[(*n)++] = (sw_named_tensor){.name = sw_arena_text(&t->arena, name), .tensor = tensor};
}

/* Take the text of a program that was read as it was, with the layouts on which custom calls
 * depend. */
static sw_status take_text(const trial *t, sw_text *text, sw_error *err)
{
	char *data;
	size_t length;
	if (!t->path) {
		sw_program_print(t->program, text);
		return SW_OK;
	}
	sw_status status = sw_file_read(t->path, &data, &length, err);
	if (status != SW_OK)
		return status;
	sw_text_add_n(text, data, length);
	free(data);
	return SW_OK;
}

static sw_status write_case(trial *t, const double *errors, sw_error *err)
{
	sw_text text = {0}, path = {0};
	sw_named_tensor *list =
		SW_NEW_N(&t->arena, sw_named_tensor, t->n_inputs + t->n_outputs + 1);
	int64_t outputs = t->n_outputs;
	sw_tensor bounds = {0};
	size_t n = 0;
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < t->n_inputs; i++)
		add(t, list, &n, "in", i, t->inputs[i]);
	for (uint32_t i = 0; i < t->n_outputs; i++)
		if (sw_type_kind_of(t->outputs[i].shape.type) != SW_KIND_TOKEN)
			add(t, list, &n, "out", i, t->outputs[i]);
	if (errors)
		status = sw_tensor_new((sw_shape){SW_F64, 1, 0, &outputs}, true, &bounds, err);
	if (errors && status == SW_OK) {
		memcpy(sw_tensor_data(bounds), errors, sizeof *errors * t->n_outputs);
		list[n++] = (sw_named_tensor){.name = "errors", .tensor = bounds};
	}
	if (status == SW_OK)
		status = take_text(t, &text, err);
	sw_text_addf(&path, "%s/%s.safetensors", t->folder, t->name);
	if (status == SW_OK)
		status = sw_tensor_file_write(path.data, list, n, NULL, err);
	sw_text_clear(&path);
	sw_text_addf(&path, "%s/%s.hlo", t->folder, t->name);
	if (status == SW_OK)
		status = sw_file_write(path.data, text.data, text.len, err);
	sw_tensor_drop(&bounds);
	sw_text_clear(&path);
	sw_text_clear(&text);
	return status;
}

/* The interpreter takes ownership of its inputs, hence the second reference. */
static sw_status run(trial *t, sw_error *err)
{
	sw_interpreter *interpreter;
	sw_interpret_options options = {.blas_threads = 1};
	sw_status status = sw_interpreter_new(t->program, &options, &interpreter, err);
	if (status == SW_OK) {
		sw_tensor *taken = SW_NEW_N(&t->arena, sw_tensor, t->n_inputs + 1);
		for (uint32_t i = 0; i < t->n_inputs; i++)
			taken[i] = sw_tensor_keep(t->inputs[i]);
		status = sw_interpret(interpreter, taken, t->n_inputs, t->outputs, t->n_outputs,
		                      err);
	}
	sw_interpreter_free(interpreter);
	return status;
}

static sw_status fill(trial *t, const sw_sidecar *sidecar, uint64_t seed, sw_error *err)
{
	sw_atoms alone = {0};
	sw_layout whole = sw_layout_replicated(&alone);
	sw_status status = SW_OK;
	for (uint32_t i = 0; status == SW_OK && i < t->n_inputs; i++) {
		sw_shape shape = sw_value_shape(t->program, t->values[i]);
		status = sw_tensor_new(shape, true, &t->inputs[i], err);
		if (status == SW_OK)
			status = sw_fill_local(&alone, shape, NULL, &whole, 0,
			                       &sidecar->inputs[i].random, seed, i, &t->inputs[i],
			                       err);
	}
	return status;
}

static void trial_init(trial *t, const char *folder, const char *name, const sw_program *program)
{
	*t = (trial){.program = program, .folder = folder, .name = name};
	sw_arena_init(&t->arena);
	t->n_inputs = sw_program_inputs(program, program->entry, &t->arena, &t->values);
	t->n_outputs = (uint32_t)sw_entry(program)->results.len;
	t->inputs = SW_NEW_N(&t->arena, sw_tensor, t->n_inputs + 1);
	t->outputs = SW_NEW_N(&t->arena, sw_tensor, t->n_outputs + 1);
}

static void trial_clear(trial *t)
{
	for (uint32_t i = 0; i < t->n_inputs; i++)
		sw_tensor_drop(&t->inputs[i]);
	for (uint32_t i = 0; i < t->n_outputs; i++)
		sw_tensor_drop(&t->outputs[i]);
	sw_arena_clear(&t->arena);
}

static sw_status write_generated(const char *folder, uint64_t seed, const char *only, sw_error *err)
{
	generated g;
	trial t;
	char name[40];
	snprintf(name, sizeof name, "generated_%llu", (unsigned long long)seed);
	generate_program(seed, &(generate_options){.only = only, .portable = true}, &g);
	trial_init(&t, folder, name, g.program);
	sw_status status = fill(&t, &g.sidecar, seed, err);
	if (status == SW_OK)
		status = run(&t, err);
	if (status == SW_OK)
		status = write_case(&t, g.errors, err);
	trial_clear(&t);
	generated_clear(&g);
	return status;
}

/* For path/NAME.hlo or path/NAME.hlo.gz: return NAME, and path/NAME in `stem`. */
static const char *name_of(const char *path, sw_text *stem)
{
	const char *slash = strrchr(path, '/'), *end = strstr(slash ? slash : path, ".hlo");
	sw_text_add_n(stem, path, end ? (size_t)(end - path) : strlen(path));
	return slash ? stem->data + (slash + 1 - path) : stem->data;
}

/* Read the inputs from NAME.recorded.safetensors.gz, if there is one. */
static sw_status fill_recorded(trial *t, const char *stem, bool *found, sw_error *err)
{
	sw_text path = {0};
	sw_tensor_file file;
	sw_text_addf(&path, "%s.recorded.safetensors.gz", stem);
	FILE *there = fopen(path.data, "rb");
	*found = there != NULL;
	if (there)
		fclose(there);
	sw_status status = there ? sw_tensor_file_read(path.data, &file, err) : SW_OK;
	sw_text_clear(&path);
	if (status != SW_OK || !there)
		return status;
	for (uint32_t i = 0; status == SW_OK && i < t->n_inputs; i++) {
		char name[32];
		snprintf(name, sizeof name, "input.%u", i);
		const sw_tensor *input = sw_tensor_file_get(&file, name);
		if (!input) {
			status = sw_fail(err, SW_ERR_INPUT, "%s.recorded has no %s", stem, name);
			continue;
		}
		t->inputs[i] = sw_tensor_keep(*input);
		t->inputs[i].shape = sw_value_shape(t->program, t->values[i]);
	}
	sw_tensor_file_clear(&file);
	return status;
}

static sw_status write_program(const char *folder, const char *path, sw_error *err)
{
	sw_program *program;
	sw_sidecar sidecar;
	sw_text stem = {0};
	trial t;
	bool recorded;
	sw_status status = sw_read_program(path, &program, err);
	if (status != SW_OK)
		return status;
	trial_init(&t, folder, name_of(path, &stem), program);
	t.path = path;
	status = fill_recorded(&t, stem.data, &recorded, err);
	if (status == SW_OK && !recorded) {
		status = sw_sidecar_find(path, program, &sidecar, err);
		if (status == SW_OK) {
			status = fill(&t, &sidecar, 1, err);
			sw_sidecar_clear(&sidecar);
		}
	}
	if (status == SW_OK)
		status = run(&t, err);
	if (status == SW_OK)
		status = write_case(&t, NULL, err);
	trial_clear(&t);
	sw_text_clear(&stem);
	sw_program_free(program);
	return status;
}

static bool is_number(const char *text)
{
	return text[0] && strspn(text, "0123456789") == strlen(text);
}

static bool report(sw_status status, const sw_error *err, const char *what)
{
	if (status != SW_OK)
		fprintf(stderr, "write_cases: %s: %s\n", what, err->message);
	return status == SW_OK;
}

int main(int argc, char **argv)
{
	sw_error err = {0};
	bool good = true;
	if (argc < 3 || (is_number(argv[2]) && (argc < 4 || argc > 5))) {
		fprintf(stderr, "usage: write_cases FOLDER COUNT SEED [ONLY] | write_cases FOLDER "
		                "PROGRAM...\n");
		return 2;
	}
	if (!is_number(argv[2])) {
		for (int i = 2; i < argc; i++)
			good = report(write_program(argv[1], argv[i], &err), &err, argv[i]) && good;
		return good ? 0 : 1;
	}
	uint64_t count = strtoull(argv[2], NULL, 10), seed = strtoull(argv[3], NULL, 10);
	for (uint64_t i = 0; i < count; i++)
		good = report(write_generated(argv[1], seed + i, argc > 4 ? argv[4] : NULL, &err),
		              &err, "a random program") &&
		       good;
	return good ? 0 : 1;
}
