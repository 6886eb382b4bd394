/*
 * Attention in plain ops becomes calls, and these, read back, compute the same: in every style in
 * which it is recognised, forward and derivative. What is no attention, or more than it, gets no
 * call that would compute something else.
 */
#include "export/random_run.h"

#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/attention_calls.h"
#include "export/export.h"
#include "frontend/calls.h"
#include "frontend/frontend.h"
#include "program/number.h"

/* Write the calls, and read them as the ops that they stand for. */
static sw_program *through_calls(const sw_program *program, const char *what, uint32_t *n_calls)
{
	sw_program *called, *back = NULL;
	sw_error err = {0};
	sw_text text = {0};
	if (sw_attention_calls(program, SW_CALLS_OF_FLOATS, &called, n_calls, &err) != SW_OK)
		fail_msg("%s: %s", what, err.message);
	if (sw_program_verify(called, &err) != SW_OK)
		fail_msg("%s: %s", what, err.message);
	if (sw_export_program(called, &text, &err) != SW_OK)
		fail_msg("%s: %s", what, err.message);
	if (sw_read_program_text(text.data, text.len, "calls.mlir", &back, &err) != SW_OK)
		fail_msg("%s: %d: %s", what, err.line, err.message);
	if (sw_calls_expand(&back, &err) != SW_OK)
		fail_msg("%s: %s", what, err.message);
	for (size_t i = 0; i < back->ops.len; i++)
		assert_int_not_equal(back->ops.data[i].opcode, SW_OP_CUSTOM_CALL);
	sw_text_clear(&text);
	sw_program_free(called);
	return back;
}

/* ---- equal results ---------------------------------------------------------------------- */

/* Return the largest difference relative to the largest element. */
static double difference(sw_tensor a, sw_tensor b)
{
	double largest = 1e-30, most = 0;
	for (int64_t i = 0; i < sw_shape_elements(a.shape); i++) {
		double x = sw_element_get(a.shape.type, sw_tensor_data(a), i),
		       y = sw_element_get(b.shape.type, sw_tensor_data(b), i);
		largest = fmax(largest, fabs(x));
		most = isnan(x) == isnan(y) ? fmax(most, fabs(x - y)) : INFINITY;
	}
	return most / largest;
}

static void compare(const sw_program *program, const sw_program *back, double tolerance,
                    const char *what)
{
	static const random_inputs inputs = {.seed = 3, .low = -0.25, .high = 0.25};
	sw_tensor *a = run_random(program, inputs, what), *b = run_random(back, inputs, what);
	for (uint32_t i = 0; i < sw_entry(program)->results.len; i++) {
		double error = difference(a[i], b[i]);
		if (!(error <= tolerance))
			fail_msg("%s: output %u differs by %g", what, i, error);
	}
	drop_outputs(program, a);
	drop_outputs(back, b);
}

/* ---- styles ------------------------------------------------------------------------------- */

typedef struct style {
	const char *name;
	uint32_t calls;
} style;

/* All others get none. */
static const style styles[] = {
	{"jax_causal", 2},
	{"gated", 2},
	/* two layers: forward, and in the derivative both ways */
	{"checkpointed", 6},
	{"kept_products", 6},
	{"scanned", 3},
	{"scanned_stored", 1},   /* the scores are kept beside it */
	{"weights_returned", 2}, /* which are computed beside the calls */
	{"differential_values", 4}, /* of two softmaxes */
	{"gqa.cudnn", 2},
	{"plain", 2},
};

static uint32_t expected_calls(const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	for (size_t i = 0; i < SW_COUNT(styles); i++) {
		size_t n = strlen(styles[i].name);
		if (strncmp(name, styles[i].name, n) == 0 && name[n] == '.')
			return styles[i].calls;
	}
	return 0;
}

static void check_style(const char *path)
{
	uint32_t calls;
	sw_program *program = read_canonical(path);
	if (program->num_partitions == 1) {
		sw_program *back = through_calls(program, path, &calls);
		if (calls != expected_calls(path))
			fail_msg("%s: %u calls, not %u", path, calls, expected_calls(path));
		const sw_op *first = sw_op_at(program, sw_entry(program)->parameters.data[0]);
		sw_type type = sw_value_shape(program, first->first_result).type;
		bool halves = type == SW_BF16 || type == SW_F16;
		/* gradients of scores are differences of nearly equal numbers */
		compare(program, back, halves ? 4e-2 : 1e-5, path);
		sw_program_free(back);
	}
	sw_program_free(program);
}

static void calls_compute_the_same(void **state)
{
	(void)state;
	static const char *const folders[] = {"tests/fuse/programs/*.hlo.gz",
	                                      "tests/fuse/blocks/*.mlir",
	                                      "tests/frontend/calls/*.mlir"};
	glob_t found = {0};
	for (size_t i = 0; i < SW_COUNT(folders); i++)
		assert_int_equal(glob(folders[i], i ? GLOB_APPEND : 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++)
		check_style(found.gl_pathv[i]);
	globfree(&found);
}

/* ---- attacks ------------------------------------------------------------------------------ */

static sw_opcode another(sw_opcode opcode, sw_rng *rng)
{
	static const sw_opcode binary[] = {SW_OP_ADD,     SW_OP_SUBTRACT, SW_OP_MULTIPLY,
	                                   SW_OP_MAXIMUM, SW_OP_MINIMUM,  SW_OP_DIVIDE},
			       unary[] = {SW_OP_NEGATE, SW_OP_ABS, SW_OP_EXPONENTIAL, SW_OP_TANH};
	for (size_t i = 0; i < SW_COUNT(binary); i++)
		if (opcode == binary[i])
			return binary[sw_rng_below(rng, SW_COUNT(binary) - 1)]; /* a quotient of
			                                                           what is near 0
			                                                           says nothing */
	for (size_t i = 0; i < SW_COUNT(unary); i++)
		if (opcode == unary[i])
			return unary[sw_rng_below(rng, SW_COUNT(unary))];
	return opcode;
}

/* Change one op of real numbers, one direction of a comparison, or one constant. */
static bool mutate(sw_program *program, sw_rng *rng)
{
	const sw_computation *entry = sw_entry(program);
	sw_op *op = &program->ops.data[entry->ops.data[sw_rng_below(rng, entry->ops.len)]];
	if (op->n_results != 1)
		return false;
	sw_shape shape = sw_value_shape(program, op->first_result);
	sw_attrs *attrs = SW_NEW(&program->arena, sw_attrs);
	if (op->attrs)
		*attrs = *op->attrs;
	if (op->opcode == SW_OP_COMPARE) {
		attrs->compare.direction = (sw_direction)sw_rng_below(rng, SW_LT + 1);
		op->attrs = attrs;
		return true;
	}
	if (shape.type != SW_F32)
		return false;
	if (op->opcode == SW_OP_CONSTANT && shape.rank == 0) {
		float *number = SW_NEW(&program->arena, float);
		*number = (float)(sw_number_get(SW_F32, attrs->constant.data, 0) *
		                          (0.5 + sw_rng_unit(rng)) +
		                  0.25); /* 0 too */
		attrs->constant.data = number;
		op->attrs = attrs;
		return true;
	}
	sw_opcode to = another((sw_opcode)op->opcode, rng);
	bool changed = to != (sw_opcode)op->opcode;
	op->opcode = (uint8_t)to;
	return changed;
}

/* Programs that are nearly attention: what is called must still be all of it. */
static void nearly_attention_computes_the_same(void **state)
{
	(void)state;
	static const struct {
		const char *path;
		double tolerance;
	} programs[] = {{"tests/fuse/programs/jax_causal.hlo.gz", 1e-4},
	                {"tests/fuse/programs/checkpointed.hlo.gz", 1e-4},
	                {"tests/fuse/programs/weights_returned.hlo.gz", 1e-4},
	                {"tests/frontend/calls/plain.cudnn.mlir", 3e-2}};
	uint32_t called = 0, mutants = 0;
	for (uint64_t seed = 0; seed < 2400; seed++) {
		char path[100];
		uint32_t calls;
		sw_rng rng = {.seed = seed};
		size_t which = seed % SW_COUNT(programs);
		sw_program *program = read_canonical(programs[which].path);
		if (mutate(program, &rng)) {
			snprintf(path, sizeof(path), "%s, seed %llu", programs[which].path,
			         (unsigned long long)seed);
			sw_program *back = through_calls(program, path, &calls);
			compare(program, back, programs[which].tolerance, path);
			mutants++;
			called += calls > 0;
			sw_program_free(back);
		}
		sw_program_free(program);
	}
	print_message("%u of %u mutants have calls\n", called, mutants);
	assert_in_range(called, mutants / 20, mutants);
}

/* Whole steps, whose heads may have other sizes than a library's: the calls that there are. */
static void steps_with_calls_compute_the_same(void **state)
{
	(void)state;
	static const style steps[] = {
		{"gpt-tiny", 0}, {"gpt", 4}, {"gpt-scan", 4}, {"llama-gqa-tiny", 4}};
	for (size_t i = 0; i < SW_COUNT(steps); i++) {
		char path[100];
		uint32_t calls;
		snprintf(path, sizeof(path), "tests/programs/%s.hlo.gz", steps[i].name);
		sw_program *program = read_canonical(path),
			   *back = through_calls(program, path, &calls);
		if (calls != steps[i].calls)
			fail_msg("%s: %u calls, not %u", path, calls, steps[i].calls);
		compare(program, back, 1e-3, path);
		sw_program_free(program);
		sw_program_free(back);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_compute_the_same),
		cmocka_unit_test(nearly_attention_computes_the_same),
		cmocka_unit_test(steps_with_calls_compute_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
