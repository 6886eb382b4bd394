/* Fixtures with softmaxes, and what is true of every kernel of one. */
#include "fuse/softmaxes.h"

#include <string.h>

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
		const sw_op *op = sw_op_at(kernels->program,
		                           kernels->program->values.data[value].op);
		assert_true(kernels->stored[value]);
		if (elements(kernels, value) >= scores)
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

void check_softmaxes(const char *folder, const softmax_case *c, sw_fused_kernel forward,
                     sw_fused_kernel gradient)
{
	sw_program *program = read_fixture(folder, c->program);
	sw_kernels kernels;
	sw_kernels_find(&kernels, program, SW_FUSION_LOOPS);
	if (count_kernels(&kernels, forward) != c->forward ||
	    count_kernels(&kernels, gradient) != c->gradient)
		fail_msg("%s: %d kernels forward and %d backward, not %d and %d", c->program,
		         count_kernels(&kernels, forward), count_kernels(&kernels, gradient),
		         c->forward, c->gradient);
	assert_stores_no_scores(&kernels, forward);
	assert_stores_no_scores(&kernels, gradient);
	check_notes(&kernels, c);
	sw_kernels_clear(&kernels);
	sw_program_free(program);
}
