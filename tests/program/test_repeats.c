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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inner_layers_have_one_number_per_place),
		cmocka_unit_test(ends_are_seen_within_the_radius),
		cmocka_unit_test(places_of_operands_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
