/* Fixtures with softmaxes, and what is true of every kernel of one. */
#include "fuse/softmaxes.h"

#include <stdlib.h>
#include <string.h>

#include "interpret/interpret.h"
#include "rewrite/rewrite.h"

static sw_program *canonical_of(sw_program *program)
{
	sw_program *out = NULL;
	sw_error err = {0};
	/* a program of one of several devices has no canonical form */
	if (sw_rewrite_canonical(program, &out, &err) != SW_OK)
		return program;
	sw_program_free(program);
	return out;
}

sw_program *read_fixture(const char *folder, const char *name)
{
	char path[256];
	sw_program *program = NULL;
	sw_error err = {0};
	snprintf(path, sizeof(path), "%s/%s.hlo.gz", folder, name);
	if (sw_read_program(path, &program, &err) != SW_OK)
		fail_msg("%s: %s", path, err.message);
	return canonical_of(program);
}

sw_program *read_hlo(const char *text)
{
	sw_program *program = NULL;
	sw_error err = {0};
	if (sw_read_hlo(text, strlen(text), "test", &program, &err) != SW_OK)
		fail_msg("%d: %s", err.line, err.message);
	return canonical_of(program);
}

int count_kernels(const sw_kernels *kernels, sw_fused_kernel kind)
{
	int n = 0;
	for (size_t i = 0; i < kernels->list.len; i++)
		n += kernels->list.data[i].kind == kind;
	return n;
}

static int64_t elements(const sw_kernels *kernels, sw_id value)
{
	return sw_shape_elements(sw_value_shape(kernels->program, value));
}

static bool reads(const sw_kernels *kernels, const sw_kernel_ops *kernel, sw_id value)
{
	for (uint32_t i = 0; i < kernel->n_ops; i++) {
		const sw_op *op = sw_op_at(kernels->program, kernel->ops[i]);
		for (uint32_t k = 0; k < op->n_operands; k++)
			if (op->operands[k] == value)
				return true;
	}
	return false;
}

/* What the kernel doesn't read itself is no score, whatever its size: a product of scores. */
static void check_kernel(const sw_kernels *kernels, const sw_kernel_ops *kernel)
{
	int64_t scores = 0;
	for (uint32_t i = 0; i < kernel->n_ops; i++) {
		sw_id value = sw_op_at(kernels->program, kernel->ops[i])->first_result;
		scores = SW_MAX(scores, elements(kernels, value));
	}
	assert_true(kernel->n_results > 0);
	for (uint32_t i = 0; i < kernel->n_results; i++) {
		sw_id value = kernel->results[i];
		const sw_op *op =
			sw_op_at(kernels->program, kernels->program->values.data[value].op);
		assert_true(kernels->stored[value]);
		if (elements(kernels, value) >= scores && reads(kernels, kernel, value))
			fail_msg("%s stores %s, as large as its scores",
			         sw_fused_kernel_name(kernel->kind), op->name);
	}
}

void assert_stores_no_scores(const sw_kernels *kernels, sw_fused_kernel kind)
{
	for (size_t i = 0; i < kernels->list.len; i++)
		if (kernels->list.data[i].kind == kind)
			check_kernel(kernels, &kernels->list.data[i]);
}

static void check_notes(const sw_kernels *kernels, const softmax_case *c)
{
	for (size_t i = 0; i < kernels->notes.len; i++) {
		const char *text = kernels->notes.data[i].text;
		if (!c->note)
			fail_msg("%s: unexpected note: %s", c->program, text);
		else if (!strstr(text, c->note))
			fail_msg("%s: the note says '%s', not '%s'", c->program, text, c->note);
	}
	if (c->note && kernels->notes.len == 0)
		fail_msg("%s: no note says '%s'", c->program, c->note);
}

static void check_case(const softmax_table *table, const softmax_case *c)
{
	sw_program *program = read_fixture(table->folder, c->program);
	sw_kernels kernels;
	sw_kernels_find(&kernels, program, table->device);
	int forward = count_kernels(&kernels, table->forward),
	    gradient = count_kernels(&kernels, table->gradient);
	if (forward != c->forward || gradient != c->gradient)
		fail_msg("%s: %d kernels forward and %d backward, not %d and %d", c->program,
		         forward, gradient, c->forward, c->gradient);
	assert_stores_no_scores(&kernels, table->forward);
	assert_stores_no_scores(&kernels, table->gradient);
	check_notes(&kernels, c);
	sw_kernels_clear(&kernels);
	sw_program_free(program);
}

void check_softmaxes(const softmax_table *table)
{
	for (size_t i = 0; i < table->n; i++)
		check_case(table, &table->cases[i]);
}

/* ---- fused programs --------------------------------------------------------------------- */

static void assert_ok(sw_status status, const sw_error *err, const char *what)
{
	if (status != SW_OK)
		fail_msg("%s: %s", what, err->message);
}

/* Small numbers: tokens of any vocabulary, and activations whose softmax is no single one. */
static void fill(sw_tensor tensor, sw_rng *rng)
{
	sw_type_kind kind = sw_type_kind_of(tensor.shape.type);
	for (int64_t i = 0; i < sw_shape_elements(tensor.shape); i++) {
		double value = kind == SW_KIND_FLOAT ? sw_rng_unit(rng) - 0.5
		                                     : (double)sw_rng_below(rng, 2);
		sw_element_set(tensor.shape.type, sw_tensor_data(tensor), i, value);
	}
}

static void run_program(const sw_program *program, uint64_t seed, const char *what,
                        sw_tensor *outputs, uint32_t n_outputs)
{
	sw_arena arena;
	sw_interpreter *interpreter;
	const sw_id *values;
	sw_error err = {0};
	sw_rng rng = {.seed = seed};
	sw_arena_init(&arena);
	uint32_t n = sw_program_inputs(program, program->entry, &arena, &values);
	sw_tensor *inputs = SW_NEW_N(&arena, sw_tensor, n);
	for (uint32_t i = 0; i < n; i++) {
		assert_ok(sw_tensor_new(sw_value_shape(program, values[i]), true, &inputs[i], &err),
		          &err, what);
		fill(inputs[i], &rng);
	}
	assert_ok(sw_interpreter_new(program, NULL, &interpreter, &err), &err, what);
	assert_ok(sw_interpret(interpreter, inputs, n, outputs, n_outputs, &err), &err, what);
	sw_interpreter_free(interpreter);
	sw_arena_clear(&arena);
}

static void compare_outputs(const sw_program *program, const sw_program *fused, uint64_t seed,
                            const char *what)
{
	uint32_t n = (uint32_t)sw_entry(program)->results.len;
	sw_tensor *a = calloc(n, sizeof(*a)), *b = calloc(n, sizeof(*b));
	run_program(program, seed, what, a, n);
	run_program(fused, seed, what, b, n);
	for (uint32_t i = 0; i < n; i++) {
		size_t bytes = (size_t)sw_shape_bytes(a[i].shape);
		if (memcmp(sw_tensor_data(a[i]), sw_tensor_data(b[i]), bytes) != 0)
			fail_msg("%s, seed %llu: output %u is another in the fused program", what,
			         (unsigned long long)seed, i);
		sw_tensor_drop(&a[i]);
		sw_tensor_drop(&b[i]);
	}
	free(a);
	free(b);
}

static int count_fusions(const sw_program *program, sw_fused_kernel kind)
{
	int n = 0;
	for (sw_id id = 0; id < program->ops.len; id++)
		n += sw_fused_kernel_of(sw_op_at(program, id)) == kind;
	return n;
}

void check_fused_programs(const softmax_table *table, uint64_t seed)
{
	for (size_t i = 0; i < table->n; i++) {
		const char *what = table->cases[i].program;
		sw_program *program = read_fixture(table->folder, what), *fused;
		sw_error err = {0};
		assert_ok(sw_fuse(program, table->device, &fused, &err), &err, what);
		assert_ok(sw_program_verify(fused, &err), &err, what);
		assert_int_equal(count_fusions(fused, table->forward), table->cases[i].forward);
		assert_int_equal(count_fusions(fused, table->gradient), table->cases[i].gradient);
		if (program->num_partitions == 1)
			compare_outputs(program, fused, seed, what);
		sw_program_free(fused);
		sw_program_free(program);
	}
}
