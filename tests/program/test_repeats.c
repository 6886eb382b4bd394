/* Repeats: the ops in the same position of each layer are in one class, and no other op is in
 * it. */
#include "program/program.h"

#include "program/helpers.h"
#include "test.h"

#define LAYERS 6
#define LAYER_OPS 3

/* x = tanh(x * w) + x, LAYERS times; ops[layer][k] are product, tanh, sum. */
static sw_program *make_layers(sw_id ops[LAYERS][LAYER_OPS], sw_id *weights)
{
	sw_program *p = sw_program_new("test");
	int32_t c = sw_build_computation(p, "main");
	sw_id x = sw_emit_parameter(p, c, shape_of(p, "f32[8,8]"), "x");
	for (int l = 0; l < LAYERS; l++) {
		weights[l] = sw_emit_parameter(p, c, shape_of(p, "f32[8,8]"), "w");
		ops[l][0] = sw_emit_binary(p, c, SW_OP_MULTIPLY, x, weights[l]);
		ops[l][1] = sw_emit_unary(p, c, SW_OP_TANH, ops[l][0]);
		ops[l][2] = sw_emit_binary(p, c, SW_OP_ADD, ops[l][1], x);
		x = ops[l][2];
	}
	finish(p, c, x);
	return p;
}

static uint32_t number_of(const sw_program *p, const sw_equivalence *r, sw_id value)
{
	return r->number[p->values.data[value].op];
}

static void inner_layers_have_one_class_per_position(void **state)
{
	(void)state;
	sw_id ops[LAYERS][LAYER_OPS], weights[LAYERS];
	sw_program *p = make_layers(ops, weights);
	sw_equivalence r = sw_program_equivalence(p, 2, &p->arena);
	for (int k = 0; k < LAYER_OPS; k++)
		for (int l = 2; l < LAYERS - 2; l++)
			assert_int_equal(number_of(p, &r, ops[l][k]), number_of(p, &r, ops[2][k]));
	for (int l = 2; l < LAYERS - 2; l++)
		assert_int_equal(number_of(p, &r, weights[l]), number_of(p, &r, weights[2]));
	for (int k = 0; k < LAYER_OPS; k++)
		for (int other = 0; other < k; other++)
			assert_int_not_equal(number_of(p, &r, ops[2][k]),
			                     number_of(p, &r, ops[2][other]));
	sw_program_free(p);
}

/* With a large radius, the surroundings of every layer contain an end. */
static void ends_are_seen_within_the_radius(void **state)
{
	(void)state;
	sw_id ops[LAYERS][LAYER_OPS], weights[LAYERS];
	sw_program *p = make_layers(ops, weights);
	sw_equivalence near = sw_program_equivalence(p, 0, &p->arena),
		       far = sw_program_equivalence(p, 20, &p->arena);
	assert_int_equal(near.n, 4); /* parameter, product, tanh, sum */
	assert_int_equal(number_of(p, &near, ops[0][2]), number_of(p, &near, ops[LAYERS - 1][2]));
	assert_int_equal(far.n, p->ops.len);
	sw_program_free(p);
}

/* a - b and b - a differ: the first operand is distinguished from the second. */
static void operand_positions_are_compared(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("test");
	int32_t c = sw_build_computation(p, "main");
	sw_id a = sw_emit_parameter(p, c, shape_of(p, "f32[8]"), "a");
	sw_id b = sw_emit_parameter(p, c, shape_of(p, "f32[8]"), "b");
	sw_id difference = sw_emit_binary(p, c, SW_OP_SUBTRACT, a, b);
	finish(p, c, difference);
	sw_equivalence r = sw_program_equivalence(p, 1, &p->arena);
	assert_int_not_equal(number_of(p, &r, a), number_of(p, &r, b));
	sw_program_free(p);
}

/* ---- loops ------------------------------------------------------------------------------ */

/* A loop carries x and the weights of some layers. condition, body, result: the first carried value
 * in its condition, its body and the entry. */
#define MAX_LAYERS 24
typedef struct looped {
	sw_program *program;
	sw_id condition, body, result;
	sw_id products[MAX_LAYERS]; /* in the body */
} looped;

static sw_id carried_parameter(sw_program *p, int32_t c, uint32_t n)
{
	sw_shape leaves[MAX_LAYERS + 1];
	sw_attrs attrs = {.parameter = {0}};
	for (uint32_t k = 0; k < n; k++)
		leaves[k] = shape_of(p, "f32[8,8]");
	return add_op(p, c,
	              (sw_op_spec){.opcode = SW_OP_PARAMETER,
	                           .attrs = &attrs,
	                           .shapes = leaves,
	                           .n_results = n,
	                           .tuple = true});
}

static sw_id emit_loop(sw_program *p, int32_t condition, int32_t body, uint32_t n)
{
	const int32_t called[2] = {condition, body};
	sw_id start[MAX_LAYERS + 1];
	int32_t c = sw_build_computation(p, "main");
	for (uint32_t k = 0; k < n; k++)
		start[k] = sw_emit_parameter(p, c, shape_of(p, "f32[8,8]"), "p");
	sw_id loop = add_op(p, c,
	                    (sw_op_spec){.opcode = SW_OP_WHILE,
	                                 .operands = start,
	                                 .n_operands = n,
	                                 .called = called,
	                                 .n_called = 2});
	finish(p, c, loop);
	return loop;
}

/* Build the layers above in the body of a loop, whose weights differ only by their position in the
 * loop's list. */
static looped make_loop(uint32_t layers)
{
	looped l = {.program = sw_program_new("test")};
	sw_program *p = l.program;
	int32_t condition = sw_build_computation(p, "condition"),
		body = sw_build_computation(p, "body");
	l.condition = carried_parameter(p, condition, layers + 1);
	sw_id never = sw_emit_scalar(p, condition, SW_PRED, 0), next[MAX_LAYERS + 1];
	sw_build_results(p, condition, &never, 1, false);
	sw_id x = l.body = carried_parameter(p, body, layers + 1);
	for (uint32_t i = 0; i < layers; i++) {
		next[i + 1] = l.body + 1 + i;
		l.products[i] = sw_emit_binary(p, body, SW_OP_MULTIPLY, x, next[i + 1]);
		x = sw_emit_unary(p, body, SW_OP_TANH, l.products[i]);
	}
	next[0] = x;
	sw_build_results(p, body, next, layers + 1, true);
	l.result = emit_loop(p, condition, body, layers + 1);
	return l;
}

static void loop_carried_values_are_identified_by_their_uses(void **state)
{
	(void)state;
	looped l = make_loop(LAYERS);
	sw_equivalence r = sw_program_equivalence(l.program, 2, &l.program->arena);
	for (int i = 3; i < LAYERS - 2; i++) {
		assert_int_equal(r.of_value[l.body + 1 + i], r.of_value[l.body + 3]);
		assert_int_equal(r.of_value[l.condition + 1 + i], r.of_value[l.condition + 3]);
		assert_int_equal(number_of(l.program, &r, l.products[i]),
		                 number_of(l.program, &r, l.products[2]));
	}
	assert_int_not_equal(r.of_value[l.body], r.of_value[l.body + 3]);
	sw_program_free(l.program);
}

/* The planner's problem therefore does not grow with the number of layers. */
static void more_layers_add_no_classes(void **state)
{
	(void)state;
	looped some = make_loop(MAX_LAYERS / 2), twice = make_loop(MAX_LAYERS);
	sw_equivalence a = sw_program_equivalence(some.program, 3, &some.program->arena),
		       b = sw_program_equivalence(twice.program, 3, &twice.program->arena);
	assert_int_equal(a.n, b.n);
	sw_program_free(some.program);
	sw_program_free(twice.program);
}

/* A gradient may be a partial sum within the loop, and complete after it. */
static void values_in_a_loop_and_after_it_are_in_different_classes(void **state)
{
	(void)state;
	looped l = make_loop(LAYERS);
	sw_equivalence r = sw_program_equivalence(l.program, 2, &l.program->arena);
	assert_int_not_equal(r.of_value[l.body], r.of_value[l.result]);
	assert_int_not_equal(r.of_value[l.body], r.of_value[l.condition]);
	sw_program_free(l.program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inner_layers_have_one_class_per_position),
		cmocka_unit_test(ends_are_seen_within_the_radius),
		cmocka_unit_test(operand_positions_are_compared),
		cmocka_unit_test(loop_carried_values_are_identified_by_their_uses),
		cmocka_unit_test(more_layers_add_no_classes),
		cmocka_unit_test(values_in_a_loop_and_after_it_are_in_different_classes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
