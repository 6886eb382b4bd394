/* Batch normalisations written out compute the results of the ops, and none of their dimensions
 * stays whole. */
#include "rewrite/programs.h"

#include <math.h>
#include <string.h>

#include "interpret/interpret.h"
#include "rules/rules.h"

typedef struct norm_case {
	const char *op, *results;
	int n_operands; /* the first, and a fifth, in the shape of the input */
} norm_case;

static const norm_case cases[] = {
	{"batch-norm-training(a, b, c)", "(%s, %s, %s)", 3},
	{"batch-norm-inference(a, b, c, d, e)", "%s", 5},
	{"batch-norm-grad(a, b, c, d, e)", "(%s, %s, %s)", 5},
};

typedef struct norm_shape {
	const char *type, *whole, *vector;
	int feature;
	double tolerance;
} norm_shape;

static const norm_shape shapes[] = {
	{"f32", "f32[4,3,5]", "f32[3]", 1, 2e-6},
	{"f64", "f64[6,2]", "f64[2]", 1, 1e-14},
	{"f32", "f32[3,4]", "f32[3]", 0, 2e-6},
	{"bf16", "bf16[2,8,3]", "bf16[3]", 2, 1e-2}, /* a bit or two of eight */
};

static sw_program *write_program(const norm_case *n, const norm_shape *s)
{
	char text[2048], results[256];
	bool grad = strstr(n->op, "grad") != NULL;
	int at = snprintf(text, sizeof(text), "HloModule m\nENTRY e {\n");

	for (int i = 0; i < n->n_operands; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "  %c = %s parameter(%d)\n",
		               'a' + i, i == 0 || (i == 4 && grad) ? s->whole : s->vector, i);
	snprintf(results, sizeof(results), n->results, s->whole, s->vector, s->vector);
	snprintf(text + at, sizeof(text) - (size_t)at,
	         "  ROOT r = %s %s, epsilon=0.25, feature_index=%d\n}\n", results, n->op,
	         s->feature);
	return read_text(text);
}

/* Return positive numbers with a mean far from zero. */
static sw_tensor random_tensor(sw_shape shape, sw_rng *rng)
{
	sw_tensor tensor;
	sw_error err;

	assert_int_equal(sw_tensor_new(shape, true, &tensor, &err), SW_OK);
	for (int64_t i = 0; i < sw_shape_elements(shape); i++)
		sw_element_set(shape.type, sw_tensor_data(tensor), i,
		               1 + (double)sw_rng_below(rng, 64) / 16);
	return tensor;
}

static void run(const sw_program *program, uint64_t seed, sw_tensor *out, uint32_t n_out)
{
	sw_interpreter *interpreter;
	sw_interpret_options options = {0};
	sw_tensor in[5];
	sw_rng rng = {.seed = seed};
	sw_error err = {0};
	const sw_computation *entry = sw_entry(program);
	uint32_t n = (uint32_t)entry->parameters.len;

	for (uint32_t i = 0; i < n; i++)
		in[i] = random_tensor(
			sw_value_shape(program,
		                       sw_op_at(program, entry->parameters.data[i])->first_result),
			&rng);
	if (sw_interpreter_new(program, &options, &interpreter, &err) != SW_OK ||
	    sw_interpret(interpreter, in, n, out, n_out, &err) != SW_OK)
		fail_msg("%s", err.message);
	sw_interpreter_free(interpreter);
}

static void assert_close(sw_tensor got, sw_tensor expected, double tolerance)
{
	double apart = 0, size = 0;
	sw_type type = expected.shape.type;

	assert_true(sw_shape_equal(got.shape, expected.shape));
	for (int64_t i = 0; i < sw_shape_elements(expected.shape); i++) {
		double x = sw_element_get(type, sw_tensor_data(got), i),
		       y = sw_element_get(type, sw_tensor_data(expected), i);
		apart = fmax(apart, fabs(x - y));
		size = fmax(size, fabs(y));
		assert_true(isfinite(x));
	}
	if (apart > tolerance * fmax(size, 1))
		fail_msg("%g apart, of %g", apart, size);
}

static void assert_nothing_whole(const sw_program *program)
{
	sw_arena arena;

	sw_arena_init(&arena);
	for (sw_id op = 0; op < program->ops.len; op++) {
		const sw_rule *rule = sw_rule_make(program, op, &arena);
		if (rule->whole)
			fail_msg("%s", rule->whole);
		if (sw_op_at(program, op)->opcode != SW_OP_REDUCE)
			continue;
		for (int32_t f = 0; f < rule->n_factors; f++)
			assert_true(rule->factors[f].kind != SW_FACTOR_REDUCED ||
			            rule->factors[f].monoid == SW_MONOID_SUM);
	}
	sw_arena_clear(&arena);
}

static void written_out_they_compute_the_same(void **state)
{
	(void)state;
	for (size_t c = 0; c < SW_COUNT(cases); c++)
		for (size_t s = 0; s < SW_COUNT(shapes); s++) {
			sw_program *program = write_program(&cases[c], &shapes[s]),
				   *written = canonical(program);
			uint32_t n = (uint32_t)sw_entry(program)->results.len;
			sw_tensor expected[3], got[3];
			for (size_t op = 0; op < written->ops.len; op++)
				assert_null(strstr(sw_op_opcode_name(sw_op_at(written, (sw_id)op)),
				                   "batch-norm"));
			run(program, 7 * c + s, expected, n);
			run(written, 7 * c + s, got, n);
			for (uint32_t k = 0; k < n; k++) {
				assert_close(got[k], expected[k], shapes[s].tolerance);
				sw_tensor_drop(&got[k]);
				sw_tensor_drop(&expected[k]);
			}
			assert_nothing_whole(written);
			sw_program_free(written);
			sw_program_free(program);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(written_out_they_compute_the_same)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
