/*
 * Padding: the dimensions that are padded and those that are not, and whole training steps.
 */
#include "rewrite/padded.h"

#include <stdio.h>

/* ---- the dimensions that are padded ----------------------------------------------------- */

static sw_program *pad_text(const char *text, sw_pad_rule rule, sw_padded_list *list)
{
	sw_program *program = read_text(text), *before = canonical(program), *after;
	sw_error err;
	check_status(sw_rewrite_pad(before, rule, &after, list, &err), &err, "text");
	sw_program_free(before);
	sw_program_free(program);
	return after;
}

static const char two_layers[] =
	STATE "ENTRY e { w = f32[53,16] parameter(0)\n x = f32[6,53] parameter(1)\n y = f32[9,5] "
	      "parameter(2)\n"
	      "  d = f32[6,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n n = "
	      "f32[9,5] "
	      "negate(y)\n"
	      "  ROOT t = (f32[53,16], f32[6,16], f32[9,5]) tuple(w, d, n) }\n";

static void inputs_and_results_state_their_true_sizes(void **state)
{
	(void)state;
	static const sw_padding wanted[] = {
		{false, 0, 0, 53}, {false, 1, 0, 6}, {false, 1, 1, 53}, {false, 2, 0, 9},
		{true, 0, 0, 53},  {true, 1, 0, 6},  {true, 2, 0, 9},
	};
	sw_padded_list list = {0};
	sw_program *program = pad_text(two_layers, (sw_pad_rule){.multiple = 4, .share = 2}, &list);
	assert_int_equal(program->paddings.len, SW_COUNT(wanted));
	for (size_t i = 0; i < SW_COUNT(wanted); i++) {
		const sw_padding *p = &program->paddings.data[i];
		assert_int_equal(p->output, wanted[i].output);
		assert_int_equal(p->leaf, wanted[i].leaf);
		assert_int_equal(p->dim, wanted[i].dim);
		assert_int_equal(p->size, wanted[i].size);
	}
	static const sw_padded sizes[] = {{6, 8, 2}, {9, 12, 2}, {53, 56, 2}};
	assert_int_equal(list.len, SW_COUNT(sizes));
	for (size_t i = 0; i < SW_COUNT(sizes); i++) {
		assert_int_equal(list.data[i].size, sizes[i].size);
		assert_int_equal(list.data[i].padded, sizes[i].padded);
		assert_int_equal(list.data[i].values, sizes[i].values);
	}
	sw_program *again = canonical(program);
	assert_same_program(again, program);
	assert_int_equal(sw_program_hash(again), sw_program_hash(program));
	again->paddings.data[0].size = 54;
	assert_false(sw_program_equal(again, program, NULL));
	assert_int_not_equal(sw_program_hash(again), sw_program_hash(program));
	sw_program_free(again);
	sw_program_free(program);
	sw_vec_clear(&list);
}

static void only_dimensions_within_the_share_are_padded(void **state)
{
	(void)state;
	static const struct {
		int64_t multiple, share;
		int64_t sizes[4]; /* ended by 0 */
	} wanted[] = {
		{4, 16, {53}},       {4, 3, {6, 9, 53}}, {4, 4, {53}},
		{9, 2, {6, 16, 53}}, {1, 1, {0}},        {0, 1, {0}},
	};
	for (size_t i = 0; i < SW_COUNT(wanted); i++) {
		sw_padded_list list = {0};
		sw_pad_rule rule = {.multiple = wanted[i].multiple, .share = wanted[i].share};
		sw_program *program = pad_text(two_layers, rule, &list);
		size_t n = 0;
		for (; wanted[i].sizes[n]; n++)
			assert_true(n < list.len && list.data[n].size == wanted[i].sizes[n]);
		assert_int_equal(list.len, n);
		assert_int_equal(program != NULL, n > 0);
		sw_program_free(program);
		sw_vec_clear(&list);
	}
}

/* The custom-call calls the branch too, with the true size. */
static void computations_that_a_foreign_op_calls_are_not_padded(void **state)
{
	(void)state;
	sw_padded_list list = {0};
	sw_program *program = pad_text(
		STATE
		"yes { a = f32[53] parameter(0)\n ROOT b = f32[53] negate(a) }\n no { c = f32[53] "
		"parameter(0)\n ROOT d = f32[53] sine(c) }\n"
		"ENTRY e { x = f32[53] parameter(0)\n p = pred[] parameter(1)\n"
		"  y = f32[53] conditional(p, x, x), true_computation=yes, false_computation=no\n"
		"  z = f32[53] custom-call(x), custom_call_target=\"foreign\", "
		"called_computations={yes}\n w = f32[53] add(y, z)\n"
		"  ROOT t = (f32[53]) tuple(w) }\n",
		(sw_pad_rule){.multiple = 4, .share = 1}, &list);
	assert_non_null(program); /* the conditional has branches of its own */
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		if (op->opcode == SW_OP_CUSTOM_CALL)
			assert_int_equal(sw_value_shape(program, op->operands[0]).dims[0], 53);
	}
	sw_program_free(program);
	sw_vec_clear(&list);
}

static void sizes_beyond_memory_are_not_padded(void **state)
{
	(void)state;
	sw_padded_list list = {0};
	assert_null(pad_text(STATE "ENTRY e { x = pred[900000001,900000001] parameter(0)\n"
	                           "  ROOT t = (pred[900000001,900000001]) tuple(x) }\n",
	                     (sw_pad_rule){.multiple = 4, .share = 1}, &list));
	sw_vec_clear(&list);
}

/* ---- training steps --------------------------------------------------------------------- */

static void check_step(const char *name, int64_t multiple, double tolerance)
{
	char path[256], recording[256];
	sw_tensor_file file;
	sw_error err;
	snprintf(path, sizeof(path), SW_SOURCE_DIR "/tests/programs/%s.hlo.gz", name);
	snprintf(recording, sizeof(recording),
	         SW_SOURCE_DIR "/tests/programs/%s.recorded.safetensors.gz", name);
	check_status(sw_tensor_file_read(recording, &file, &err), &err, name);
	sw_program *program = read_file(path);
	double begin = sw_now_s();
	sw_program *padded = pad_and_compare(
		program, (sw_pad_rule){.multiple = multiple, .share = 1}, &file, tolerance, name);
	assert_non_null(padded);
	assert_true(padded->paddings.len > 0);
	print_message(
		"%-16s multiples of %lld: %zu ops, %zu slices, %zu pads, %zu selects, %.2f s\n",
		name, (long long)multiple, padded->ops.len, count_opcode(padded, SW_OP_SLICE),
		count_opcode(padded, SW_OP_PAD), count_opcode(padded, SW_OP_SELECT),
		sw_now_s() - begin);
	sw_program_free(padded);
	sw_program_free(program);
	sw_tensor_file_clear(&file);
}

/* Neither 7 nor 11 divides any dimension in them: all dimensions that can be padded are. */
static void training_steps_give_the_same_results(void **state)
{
	(void)state;
	static const char *const names[] = {
		"mlp",       "mlp-clip",     "gpt-tiny",          "gpt-tiny-scan",
		"bert-tiny", "t5-tiny-clip", "gpt-tiny-scan-clip"};
	for (size_t i = 0; i < SW_COUNT(names); i++) {
		check_step(names[i], 7, 1e-4);
		check_step(names[i], 11, 1e-4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inputs_and_results_state_their_true_sizes),
		cmocka_unit_test(only_dimensions_within_the_share_are_padded),
		cmocka_unit_test(computations_that_a_foreign_op_calls_are_not_padded),
		cmocka_unit_test(sizes_beyond_memory_are_not_padded),
		cmocka_unit_test(training_steps_give_the_same_results),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
