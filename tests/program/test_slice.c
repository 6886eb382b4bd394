/* Slices of a program: what is read stays, what is given is an input, and numbers of inputs are
 * kept. */
#include "frontend/frontend.h"
#include "test.h"

static const char TEXT[] = "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n"
			   "add {\n"
			   "  a = f32[] parameter(0)\n"
			   "  b = f32[] parameter(1)\n"
			   "  ROOT c = f32[] add(a, b)\n"
			   "}\n"
			   "ENTRY main {\n"
			   "  w = f32[4] parameter(0)\n"
			   "  x = f32[8,4] parameter(1)\n"
			   "  unused = s32[3] parameter(2)\n"
			   "  zero = f32[] constant(0)\n"
			   "  sum = f32[4] reduce(x, zero), dimensions={0}, to_apply=add\n"
			   "  next = f32[4] subtract(w, sum)\n"
			   "  other = f32[8,4] negate(x)\n"
			   "  ROOT out = (f32[4], f32[8,4]) tuple(next, other)\n"
			   "}\n";

static sw_program *read_program(void)
{
	sw_program *program;
	sw_error err;
	if (sw_read_program_text(TEXT, sizeof(TEXT) - 1, "m.hlo", &program, &err))
		fail_msg("%s", err.message);
	return program;
}

static size_t count(const sw_program *program, sw_opcode opcode)
{
	const sw_computation *entry = sw_entry(program);
	size_t n = 0;
	for (size_t i = 0; i < entry->ops.len; i++)
		n += sw_op_at(program, entry->ops.data[i])->opcode == opcode;
	return n;
}

static void verify(const sw_program *program)
{
	sw_error err;
	if (sw_program_verify(program, &err))
		fail_msg("%s", err.message);
}

static void what_is_given_is_an_input_behind_those_that_are_read(void **state)
{
	(void)state;
	sw_program *program = read_program();
	bool reads[3];
	sw_id next = sw_entry(program)->results.data[0];
	sw_id sum = sw_op_at(program, program->values.data[next].op)->operands[1];
	sw_slice what = {.results = &next, .given = &sum, .n_results = 1, .n_given = 1};
	sw_program *slice = sw_program_slice(program, &what, reads);
	verify(slice);
	assert_true(reads[0] && !reads[1] && !reads[2]);
	assert_int_equal(sw_entry(slice)->parameters.len, 2);
	assert_int_equal(count(slice, SW_OP_REDUCE), 0);
	assert_int_equal(count(slice, SW_OP_SUBTRACT), 1);
	assert_int_equal(slice->aliases.len, 0);
	sw_program_free(slice);
	sw_program_free(program);
}

static void inputs_that_are_not_kept_are_empty(void **state)
{
	(void)state;
	static const bool keep[] = {false, true, true};
	sw_program *program = read_program();
	sw_id other = sw_entry(program)->results.data[1];
	sw_slice what = {.results = &other, .n_results = 1, .keep = keep};
	sw_program *slice = sw_program_slice(program, &what, NULL);
	verify(slice);
	assert_int_equal(sw_entry(slice)->parameters.len, 3);
	for (uint32_t i = 0; i < 3; i++) {
		static const int64_t elements[] = {0, 32, 3};
		const sw_op *op = sw_op_at(slice, sw_entry(slice)->parameters.data[i]);
		sw_shape shape = sw_value_shape(slice, op->first_result);
		assert_int_equal(sw_shape_elements(shape), elements[i]);
	}
	assert_int_equal(count(slice, SW_OP_NEGATE), 1);
	assert_int_equal(count(slice, SW_OP_REDUCE), 0);
	sw_program_free(slice);
	sw_program_free(program);
}

static void what_is_given_may_be_a_result(void **state)
{
	(void)state;
	sw_program *program = read_program();
	sw_id next = sw_entry(program)->results.data[0];
	sw_slice what = {.results = &next, .given = &next, .n_results = 1, .n_given = 1};
	sw_program *slice = sw_program_slice(program, &what, NULL);
	verify(slice);
	assert_int_equal(sw_entry(slice)->ops.len, 1);
	sw_program_free(slice);
	sw_program_free(program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_given_is_an_input_behind_those_that_are_read),
		cmocka_unit_test(inputs_that_are_not_kept_are_empty),
		cmocka_unit_test(what_is_given_may_be_a_result),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
