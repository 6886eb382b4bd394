/* Lowered moves that need to know the first device ask for it once. */
#include "partition/execute.h"

static int count_ops(const sw_program *program, sw_opcode opcode)
{
	int n = 0;
	for (sw_id id = 0; id < program->ops.len; id++)
		n += sw_op_at(program, id)->opcode == opcode;
	return n;
}

static void the_test_for_the_first_device_is_written_once(void **state)
{
	(void)state;
	const sw_atoms atoms = {.n = 2, .size = {2, 2}};
	const int64_t dims[] = {4};
	sw_program *program = sw_program_new("terms");
	int32_t entry = sw_build_computation(program, "main");
	sw_shape shape = sw_build_shape(program, SW_F32, dims, 1);
	sw_coordinates at;
	sw_coordinates_init(&at, program, entry, &atoms);
	sw_layout whole = sw_layout_replicated(&atoms);
	sw_move move = {.kind = SW_MOVE_TO_PARTIAL, .atoms = 3, .after = whole};
	move.after.monoid = SW_MONOID_SUM;
	move.after.state[0].kind = move.after.state[1].kind = SW_STATE_P;
	for (int i = 0; i < 3; i++)
		sw_lower_move(&at, shape, &whole, &move,
		              sw_emit_parameter(program, entry, shape, NULL));
	assert_int_equal(count_ops(program, SW_OP_SELECT), 3);
	assert_int_equal(count_ops(program, SW_OP_COMPARE), 2);
	assert_int_equal(count_ops(program, SW_OP_AND), 1);
	sw_program_free(program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_test_for_the_first_device_is_written_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
