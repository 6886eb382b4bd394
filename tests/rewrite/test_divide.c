/*
 * Variables in parts: one step of a divided program gives the parts of what the program gives, bit
 * for bit, from the parts of its inputs; its sidecar says which parts.
 */
#include "rewrite/programs.h"
#include "rewrite/recorded.h"

#include <string.h>

#include "run/run.h"

#define PROGRAMS SW_SOURCE_DIR "/tests/programs/"

typedef struct subject {
	const char *name;
	sw_program *program, *divided; /* canonical */
	sw_sidecar sidecar, own;
	sw_arena arena;
	sw_variable_forms forms;
} subject;

/* Return the forms in which each variable has the sizes that `cut` says along the axis. */
typedef int32_t cut(int64_t size, int64_t *sizes);

static int32_t into_two(int64_t size, int64_t *sizes)
{
	sizes[0] = size / 2;
	sizes[1] = size - size / 2;
	return size > 1 ? 2 : 0;
}

static int32_t unevenly(int64_t size, int64_t *sizes)
{
	sizes[0] = 1;
	sizes[1] = (size - 1) / 3;
	sizes[2] = size - 1 - sizes[1];
	return size > 6 ? 3 : 0;
}

static void list_forms(subject *s, cut *how, int32_t axis)
{
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(s->program, s->program->entry, &s->arena, &inputs);
	sw_variable_form *list = SW_NEW_N(&s->arena, sw_variable_form, n + 1);
	s->forms = (sw_variable_forms){0, list};
	for (uint32_t i = 0; i < n; i++) {
		sw_shape shape = sw_value_shape(s->program, inputs[i]);
		int64_t *sizes = SW_NEW_N(&s->arena, int64_t, 4);
		if (s->sidecar.inputs[i].role != SW_ROLE_PARAMETER || shape.rank <= axis)
			continue;
		int32_t parts = how(shape.dims[axis], sizes);
		if (parts > 1)
			list[s->forms.n++] = (sw_variable_form){
				.input = i, .axis = axis, .sizes = {parts, sizes}};
	}
	assert_true(s->forms.n > 0);
}

static void open_subject(subject *s, const char *name, cut *how, int32_t axis)
{
	char path[512];
	sw_error err = {0};
	*s = (subject){.name = name};
	snprintf(path, sizeof(path), PROGRAMS "%s.hlo.gz", name);
	sw_program *read = read_file(path);
	s->program = canonical(read);
	assert_ok(sw_sidecar_find(path, read, &s->sidecar, &err), &err);
	sw_program_free(read);
	list_forms(s, how, axis);
	assert_ok(sw_rewrite_variables(s->program, &s->sidecar, &s->forms, &s->divided, &s->own,
	                               &err),
	          &err);
	assert_ok(sw_program_verify(s->divided, &err), &err);
}

static void close_subject(subject *s)
{
	sw_program_free(s->program);
	sw_program_free(s->divided);
	sw_sidecar_clear(&s->sidecar);
	sw_sidecar_clear(&s->own);
	sw_arena_clear(&s->arena);
}

static sw_tensor *step(const sw_program *program, const sw_sidecar *sidecar)
{
	sw_error err = {0};
	sw_arena arena = {0};
	const sw_id *values;
	uint32_t n = sw_program_inputs(program, program->entry, &arena, &values),
		 n_outputs = (uint32_t)sw_entry(program)->results.len;
	sw_tensor *inputs = SW_NEW_N(&arena, sw_tensor, n + 1),
		  *outputs = sw_alloc(sizeof(*outputs) * (n_outputs + 1));
	sw_atoms none = {0};
	sw_layout whole = sw_layout_replicated(&none);
	sw_interpret_options options = {.blas_threads = 1};
	assert_int_equal(sidecar->n_inputs, n);
	assert_int_equal(sidecar->n_outputs, n_outputs);
	for (uint32_t i = 0; i < n; i++) {
		sw_shape shape = sw_value_shape(program, values[i]);
		assert_ok(sw_tensor_new(shape, false, &inputs[i], &err), &err);
		assert_ok(sw_fill_local(&none, shape, NULL, &whole, 0, &sidecar->inputs[i].random,
		                        7, i, &inputs[i], &err),
		          &err);
	}
	sw_interpreter *interpreter;
	assert_ok(sw_interpreter_new(program, &options, &interpreter, &err), &err);
	assert_ok(sw_interpret(interpreter, inputs, n, outputs, n_outputs, &err), &err);
	sw_interpreter_free(interpreter);
	sw_arena_clear(&arena);
	return outputs;
}

/* Is the part, which stands from `start` on along the axis, what the whole has there? */
static bool is_part(sw_tensor whole, sw_tensor part, int32_t axis, int64_t start)
{
	int64_t inner = sw_type_bytes(whole.shape.type), outer = 1;
	for (int32_t d = 0; d < whole.shape.rank; d++) {
		inner *= d > axis ? whole.shape.dims[d] : 1;
		outer *= d < axis ? whole.shape.dims[d] : 1;
	}
	int64_t size = whole.shape.dims[axis], own = part.shape.dims[axis];
	for (int64_t o = 0; o < outer; o++)
		if (memcmp((char *)sw_tensor_data(part) + o * own * inner,
		           (char *)sw_tensor_data(whole) + (o * size + start) * inner,
		           (size_t)(own * inner)) != 0)
			return false;
	return true;
}

/* The parts of an output follow each other in the sidecar: return their form; NULL: it is whole. */
static const sw_variable_form *form_of_output(const subject *s, uint32_t output, uint32_t first)
{
	static sw_variable_form form;
	static int64_t sizes[4];
	int32_t n = 0;
	for (uint32_t k = first; k < s->own.n_outputs; k++) {
		int32_t input = s->own.outputs[k].input;
		const sw_fill_part *part = input < 0 ? NULL : s->own.inputs[input].init.part;
		if (!part || part->axis < 0 ||
		    (int32_t)part->input != s->sidecar.outputs[output].input)
			break;
		form.axis = part->axis;
		sizes[n++] = sw_value_shape(s->divided, sw_entry(s->divided)->results.data[k])
		                     .dims[part->axis];
	}
	form.sizes = (sw_ints){n, sizes};
	return n > 0 ? &form : NULL;
}

static void check_step(const char *name, cut *how, int32_t axis)
{
	subject s;
	uint32_t next = 0;
	open_subject(&s, name, how, axis);
	sw_tensor *whole = step(s.program, &s.sidecar), *parts = step(s.divided, &s.own);
	for (uint32_t o = 0; o < s.sidecar.n_outputs; o++) {
		const sw_variable_form *form = form_of_output(&s, o, next);
		int64_t start = 0;
		for (int32_t k = 0; k < (form ? form->sizes.n : 0); k++, next++) {
			if (!is_part(whole[o], parts[next], form->axis, start))
				fail_msg("%s: %s is no part of %s", name, s.own.outputs[next].name,
				         s.sidecar.outputs[o].name);
			start += form->sizes.v[k];
			sw_tensor_drop(&parts[next]);
		}
		if (!form) {
			assert_memory_equal(sw_tensor_data(whole[o]), sw_tensor_data(parts[next]),
			                    (size_t)sw_shape_bytes(whole[o].shape));
			sw_tensor_drop(&parts[next++]);
		}
		sw_tensor_drop(&whole[o]);
	}
	assert_int_equal(next, s.own.n_outputs);
	free(whole);
	free(parts);
	close_subject(&s);
}

/* ---- the tests -------------------------------------------------------------------------- */

static void a_step_gives_the_parts_of_what_it_gave(void **state)
{
	static const char *const names[] = {
		"mlp",       "gpt-tiny", "gpt-tiny-clip", "mlp-bf16", "gpt-tiny-scan",
		"dlrm-tiny", "odd-tiny", "ncf-tiny",      "vgg-tiny", "lstm-lm-tiny"};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(names); i++) {
		check_step(names[i], into_two, 0);
		check_step(names[i], unevenly, 0);
	}
	check_step("gpt-tiny", unevenly, 1);
	check_step("vgg-tiny", into_two, 3);
}

/* Updates run part by part: no op of the update's shape is left but the parameter as the step reads
 * it. */
static void parts_are_updated_apart(void **state)
{
	subject s;
	(void)state;
	open_subject(&s, "mlp", into_two, 0);
	size_t roots = count_opcode(s.program, SW_OP_SQRT),
	       parts = count_opcode(s.divided, SW_OP_SQRT);
	assert_true(roots > 0);
	assert_int_equal(parts, 2 * roots);
	assert_int_equal(count_opcode(s.divided, SW_OP_CONCATENATE), s.forms.n);
	for (uint32_t i = 0; i < 2; i++) {
		const sw_fill_part *part = s.own.inputs[i].init.part;
		char name[128];
		snprintf(name, sizeof(name), "%s.part%u", s.sidecar.inputs[0].name, i);
		assert_string_equal(s.own.inputs[i].name, name);
		assert_string_equal(part->whole, s.sidecar.inputs[0].name);
		assert_int_equal(part->start, i * 64);
		assert_int_equal(part->size, 128);
	}
	close_subject(&s);
}

/* The gradient of each part is a value of which devices have terms: also where two biases of a sum have
 * one gradient, which is squared or clipped for both, and where a part has one element. */
static void parts_have_gradients_of_their_own(void **state)
{
	static const char *const names[] = {"unet-tiny", "bert-tiny-clip"};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(names); i++) {
		subject s;
		sw_error err = {0};
		open_subject(&s, names[i], into_two, 0);
		sw_program_free(s.divided);
		sw_sidecar_clear(&s.own);
		sw_variable_form *list = (sw_variable_form *)(uintptr_t)s.forms.list;
		for (size_t k = 0; k < s.forms.n; k++) {
			list[k].codec.kind = SW_CODEC_TERMS;
			list[k].devices = 2;
		}
		assert_ok(sw_rewrite_variables(s.program, &s.sidecar, &s.forms, &s.divided, &s.own,
		                               &err),
		          &err);
		assert_ok(sw_program_verify(s.divided, &err), &err);
		assert_true(count_opcode(s.divided, SW_OP_TERMS) > s.forms.n);
		close_subject(&s);
	}
}

static void what_is_no_division_is_refused(void **state)
{
	static const int64_t short_of[] = {8, 8}, negative[] = {-8, 24};
	static const sw_variable_form wrong[] = {
		{.input = 1, .axis = 0, .sizes = {2, short_of}},
		{.input = 1, .axis = 0, .sizes = {2, negative}},
		{.input = 1, .axis = 2, .sizes = {2, short_of}},
		{.input = 1, .axis = 0, .sizes = {1, short_of}},
		{.input = 19, .axis = 0, .sizes = {2, short_of}},
		{.input = 99, .axis = 0, .sizes = {2, short_of}}};
	subject s;
	(void)state;
	open_subject(&s, "mlp", into_two, 0);
	for (size_t i = 0; i < SW_COUNT(wrong); i++) {
		sw_variable_forms forms = {1, &wrong[i]};
		sw_program *out;
		sw_sidecar own;
		sw_error err = {0};
		assert_int_equal(
			sw_rewrite_variables(s.program, &s.sidecar, &forms, &out, &own, &err),
			SW_ERR_INPUT);
		assert_null(out);
	}
	close_subject(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_gives_the_parts_of_what_it_gave),
		cmocka_unit_test(parts_are_updated_apart),
		cmocka_unit_test(parts_have_gradients_of_their_own),
		cmocka_unit_test(what_is_no_division_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
