/* Live ranges, peak memory, users. */
#include "program/program.h"

#include <stdlib.h>
#include <string.h>

#include "program/helpers.h"
#include "test.h"

/* x, y, a = -x, b = a + y, unused = -b, c = b * b; result c */
static sw_program *make_chain(sw_id v[6])
{
	sw_program *p = sw_program_new("test");
	int32_t c = sw_build_computation(p, "main");
	v[0] = sw_emit_parameter(p, c, shape_of(p, "f32[25]"), "x");
	v[1] = sw_emit_parameter(p, c, shape_of(p, "f32[25]"), "y");
	v[2] = sw_emit_unary(p, c, SW_OP_NEGATE, v[0]);
	v[3] = sw_emit_binary(p, c, SW_OP_ADD, v[2], v[1]);
	v[4] = sw_emit_unary(p, c, SW_OP_NEGATE, v[3]);
	v[5] = sw_emit_binary(p, c, SW_OP_MULTIPLY, v[3], v[3]);
	finish(p, c, v[5]);
	return p;
}

static void gives_live_ranges(void **state)
{
	(void)state;
	sw_id v[6];
	sw_program *p = make_chain(v);
	const int32_t expected[6][2] = {{0, 3}, {0, 4}, {2, 4}, {3, 6}, {4, 5}, {5, 6}};
	sw_live_range *ranges = sw_program_liveness(p, p->entry, &p->arena);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(ranges[v[i]].begin, expected[i][0]);
		assert_int_equal(ranges[v[i]].end, expected[i][1]);
	}
	sw_program_free(p);
}

static void gives_the_peak(void **state)
{
	(void)state;
	sw_id v[6];
	sw_program *p = make_chain(v);
	/* x, y, a are live; then y, a, b */
	assert_int_equal(sw_program_peak_bytes(p, p->entry), 300);
	sw_program_free(p);
}

static void unused_parameters_live_for_a_point(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("test");
	int32_t c = sw_build_computation(p, "main");
	sw_id x = sw_emit_parameter(p, c, shape_of(p, "f32[25]"), "x"),
	      y = sw_emit_parameter(p, c, shape_of(p, "f32[25]"), "y");
	sw_id z = sw_emit_unary(p, c, SW_OP_NEGATE, y);
	finish(p, c, z);
	sw_live_range *ranges = sw_program_liveness(p, c, &p->arena);
	assert_int_equal(ranges[x].begin, 0);
	assert_int_equal(ranges[x].end, 1);
	assert_int_equal(ranges[y].end, 3);
	assert_int_equal(ranges[z].end, 3);
	sw_program_free(p);
}

static void other_computations_are_left_out(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("test");
	int32_t f = computation_of(p, "negate f32"), g = computation_of(p, "negate f64");
	sw_live_range *ranges = sw_program_liveness(p, g, &p->arena);
	for (size_t v = 0; v < p->values.len; v++) {
		bool mine = sw_op_at(p, p->values.data[v].op)->computation == g;
		assert_int_equal(ranges[v].end > 0, mine);
	}
	(void)f;
	sw_program_free(p);
}

/* f(x) = -(x broadcast to 10 times its size) reduced again. Its temporaries count where it is
 * called. */
static void regions_add_their_peak(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("test");
	int32_t f = sw_build_computation(p, "f");
	const int64_t to[] = {1}, from[] = {0};
	sw_id x = sw_emit_parameter(p, f, shape_of(p, "f32[25]"), NULL),
	      zero = sw_emit_scalar(p, f, SW_F32, 0);
	sw_id wide = sw_emit_broadcast(p, f, x, shape_of(p, "f32[10,25]"), to);
	sw_id other = sw_emit_unary(p, f, SW_OP_NEGATE, wide);
	sw_id y = sw_emit_reduce(p, f, SW_MONOID_SUM, other, zero, from, 1);
	sw_build_results(p, f, &y, 1, false);
	/* wide, other and zero are live; x is not */
	assert_int_equal(sw_program_peak_bytes(p, f), 2000 + 4);
	int32_t c = sw_build_computation(p, "main");
	sw_id a = sw_emit_parameter(p, c, shape_of(p, "f32[25]"), NULL),
	      kept = sw_emit_parameter(p, c, shape_of(p, "f32[1000]"), NULL);
	sw_id b = add_op(p, c,
	                 (sw_op_spec){.opcode = SW_OP_CALL,
	                              .operands = &a,
	                              .n_operands = 1,
	                              .called = &f,
	                              .n_called = 1});
	sw_id results[2] = {b, kept};
	sw_build_results(p, c, results, 2, true);
	p->entry = c;
	assert_int_equal(sw_program_peak_bytes(p, c), 4000 + 2000 + 4);
	sw_program_free(p);
}

static void lists_users(void **state)
{
	(void)state;
	sw_id v[6];
	sw_program *p = make_chain(v);
	sw_users users = sw_program_users(p, &p->arena);
	const uint32_t counts[6] = {1, 1, 1, 3, 0, 0};
	for (int i = 0; i < 6; i++)
		assert_int_equal(users.start[v[i] + 1] - users.start[v[i]], counts[i]);
	const sw_id *of_b = users.ops + users.start[v[3]];
	assert_int_equal(of_b[0], p->values.data[v[4]].op);
	assert_int_equal(of_b[1], p->values.data[v[5]].op);
	assert_int_equal(of_b[2], p->values.data[v[5]].op);
	sw_program_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_live_ranges),
		cmocka_unit_test(gives_the_peak),
		cmocka_unit_test(unused_parameters_live_for_a_point),
		cmocka_unit_test(other_computations_are_left_out),
		cmocka_unit_test(regions_add_their_peak),
		cmocka_unit_test(lists_users),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
