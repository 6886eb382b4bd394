/* Repeats: what stands in the same place of each layer has one number, and nothing else has. */
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

static uint32_t number_of(const sw_program *p, const sw_repeats *r, sw_id value)
{
	return r->number[p->values.data[value].op];
}

static void inner_layers_have_one_number_per_place(void **state)
{
	(void)state;
	sw_id ops[LAYERS][LAYER_OPS], weights[LAYERS];
	sw_program *p = make_layers(ops, weights);
	sw_repeats r = sw_program_repeats(p, 2, &p->arena);
	for (int k = 0; k < LAYER_OPS; k++)
		for (int l = 2; l < LAYERS - 2; l++)
			assert_int_equal(number_of(p, &r, ops[l][k]), number_of(p, &r, ops[2][k]));
	for (int l = 2; l < LAYERS - 2; l++)
		assert_int_equal(number_of(p, &r, weights[l]), number_of(p, &r, weights[2]));
	for (int k = 0; k < LAYER_OPS; k++)
		for (int other = 0; other < k; other++)
			assert_int_not_equal(number_of(p, &r, ops[2][k]), number_of(p, &r, ops[2][other]));
	sw_program_free(p);
}

/* From far enough every layer sees an end. */
static void ends_are_seen_within_the_radius(void **state)
{
	(void)state;
	sw_id ops[LAYERS][LAYER_OPS], weights[LAYERS];
	sw_program *p = make_layers(ops, weights);
	sw_repeats near = sw_program_repeats(p, 0, &p->arena), far = sw_program_repeats(p, 20, &p->arena);
	assert_int_equal(near.n, 4); /* parameter, product, tanh, sum */
	assert_int_equal(number_of(p, &near, ops[0][2]), number_of(p, &near, ops[LAYERS - 1][2]));
	assert_int_equal(far.n, p->ops.len);
	sw_program_free(p);
}

/* a - b and b - a: what is read first is told from what is read second. */
static void places_of_operands_count(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("test");
	int32_t c = sw_build_computation(p, "main");
	sw_id a = sw_emit_parameter(p, c, shape_of(p, "f32[8]"), "a");
	sw_id b = sw_emit_parameter(p, c, shape_of(p, "f32[8]"), "b");
	sw_id difference = sw_emit_binary(p, c, SW_OP_SUBTRACT, a, b);
	finish(p, c, difference);
	sw_repeats r = sw_program_repeats(p, 1, &p->arena);
	assert_int_not_equal(number_of(p, &r, a), number_of(p, &r, b));
	sw_program_free(p);
}

/* The same layers as the body of a loop that carries x and the weights; the last layer's weight comes before the first one's. */
static sw_program *make_loop(sw_id ops[LAYERS][LAYER_OPS], sw_id *weights, sw_id *x_after)
{
	sw_program *p = sw_program_new("test");
	int32_t called[2] = {computation_of(p, "true f32[8,8] f32[8,8] f32[8,8] f32[8,8] f32[8,8] "
	                                       "f32[8,8] f32[8,8]"),
	                     sw_build_computation(p, "body")};
	sw_shape shapes[1 + LAYERS];
	sw_id next[1 + LAYERS], inputs[1 + LAYERS];
	for (int k = 0; k <= LAYERS; k++)
		shapes[k] = shape_of(p, "f32[8,8]");
	sw_id leaf = add_op(p, called[1],
	                    (sw_op_spec){.opcode = SW_OP_PARAMETER,
	                                 .shapes = shapes,
	                                 .n_results = 1 + LAYERS,
	                                 .tuple = true}),
	      x = leaf;
	for (int l = 0; l < LAYERS; l++) {
		next[LAYERS - l] = leaf + (sw_id)(LAYERS - l);
		ops[l][0] = sw_emit_binary(p, called[1], SW_OP_MULTIPLY, x, next[LAYERS - l]);
		ops[l][1] = sw_emit_unary(p, called[1], SW_OP_TANH, ops[l][0]);
		ops[l][2] = sw_emit_binary(p, called[1], SW_OP_ADD, ops[l][1], x);
		x = ops[l][2];
	}
	next[0] = x;
	sw_build_results(p, called[1], next, 1 + LAYERS, true);
	int32_t c = sw_build_computation(p, "main");
	for (int k = 0; k <= LAYERS; k++)
		inputs[k] = sw_emit_parameter(p, c, shapes[k], NULL);
	*x_after = add_op(p, c,
	                  (sw_op_spec){.opcode = SW_OP_WHILE,
	                               .operands = inputs,
	                               .n_operands = 1 + LAYERS,
	                               .called = called,
	                               .n_called = 2});
	for (int l = 0; l < LAYERS; l++)
		weights[l] = *x_after + (sw_id)(LAYERS - l);
	finish(p, c, *x_after);
	return p;
}

static uint32_t number_of_place(const sw_repeats *r, sw_id value)
{
	return r->number[r->place[value]];
}

static void layers_in_a_loop_are_told_by_use_not_by_where_they_are_carried(void **state)
{
	(void)state;
	sw_id ops[LAYERS][LAYER_OPS], weights[LAYERS], x;
	sw_program *p = make_loop(ops, weights, &x);
	sw_repeats r = sw_program_repeats(p, 2, &p->arena);
	for (int l = 2; l < LAYERS - 2; l++) {
		for (int k = 0; k < LAYER_OPS; k++)
			assert_int_equal(number_of(p, &r, ops[l][k]), number_of(p, &r, ops[2][k]));
		assert_int_equal(number_of_place(&r, weights[l]), number_of_place(&r, weights[2]));
	}
	assert_int_not_equal(number_of_place(&r, x), number_of_place(&r, weights[2]));
	assert_int_equal(r.place[x], r.place[sw_op_at(p, p->values.data[ops[0][2]].op)->operands[1]]);
	sw_program_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inner_layers_have_one_number_per_place),
		cmocka_unit_test(ends_are_seen_within_the_radius),
		cmocka_unit_test(places_of_operands_count),
		cmocka_unit_test(layers_in_a_loop_are_told_by_use_not_by_where_they_are_carried),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
