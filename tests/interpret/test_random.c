/* Random numbers, sizes set at run time, and the kernel table: rng, rng-get-and-update-state. */
#include "test.h"

#include <math.h>
#include <string.h>

#include "frontend/frontend.h"
#include "interpret/kernel.h"

static void check(sw_status status, const sw_error *err)
{
	if (status != SW_OK)
		fail_msg("%s:%d:%d: %s", err->file, err->line, err->column, err->message);
}

static sw_interpreter *open_text(const char *text, sw_program **program)
{
	sw_error err = {0};
	sw_interpreter *it;
	check(sw_read_hlo(text, strlen(text), "test", program, &err), &err);
	check(sw_interpreter_new(*program, NULL, &it, &err), &err);
	return it;
}

static void step(sw_interpreter *it, sw_tensor *outputs, uint32_t n)
{
	sw_error err = {0};
	check(sw_interpret(it, NULL, 0, outputs, n, &err), &err);
}

static void drop(sw_tensor *outputs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		sw_tensor_drop(&outputs[i]);
}

/* Run a program with one rng op of n elements, for example with "f32", "2", "5", "rng_uniform". */
static sw_tensor draw_once(const char *type, const char *a, const char *b, const char *distribution,
                           int n, int steps)
{
	char text[512];
	sw_program *program;
	sw_tensor out;
	snprintf(text, sizeof text,
	         "HloModule m\nENTRY e {\n  a = %s[] constant(%s)\n  b = %s[] constant(%s)\n"
	         "  ROOT r = %s[%d] rng(a, b), distribution=%s\n}\n",
	         type, a, type, b, type, n, distribution);
	sw_interpreter *it = open_text(text, &program);
	for (int i = 0; i < steps; i++) {
		if (i)
			sw_tensor_drop(&out);
		step(it, &out, 1);
	}
	out.shape.rank = 0; /* its dims are freed with the program */
	out.shape.dims = NULL;
	sw_interpreter_free(it);
	sw_program_free(program);
	return out;
}

static void numbers_have_their_distribution(void **state)
{
	(void)state;
	enum { N = 20000 };
	static const struct {
		const char *type, *a, *b, *distribution;
		sw_type element;
		double low, high, mean, deviation;
	} cases[] = {
		{"f32", "2", "5", "rng_uniform", SW_F32, 2, 5, 3.5, 0.8660},
		{"f64", "-1", "1", "rng_uniform", SW_F64, -1, 1, 0, 0.5774},
		{"bf16", "0", "1", "rng_uniform", SW_BF16, 0, 1, 0.5, 0.2887},
		{"f8e4m3fn", "0", "1", "rng_uniform", SW_F8E4M3FN, 0, 1, 0.4375, 0.2864},
		{"f32", "1", "2", "rng_normal", SW_F32, -INFINITY, INFINITY, 1, 2},
		{"s32", "-3", "4", "rng_uniform", SW_S32, -3, 4, 0, 2},
		{"u8", "10", "21", "rng_uniform", SW_U8, 10, 21, 15, 3.1623},
		{"u64", "0", "2", "rng_uniform", SW_U64, 0, 2, 0.5, 0.5},
		{"s8", "5", "5", "rng_uniform", SW_S8, 5, 6, 5, 0},
	};
	for (size_t c = 0; c < SW_COUNT(cases); c++) {
		sw_tensor t = draw_once(cases[c].type, cases[c].a, cases[c].b,
		                        cases[c].distribution, N, 1);
		double sum = 0, squares = 0;
		for (int64_t e = 0; e < N; e++) {
			double x = sw_element_get(cases[c].element, sw_tensor_data(t), e);
			if (!(x >= cases[c].low && x < cases[c].high))
				fail_msg("case %zu: %g is out of range", c, x);
			sum += x;
			squares += x * x;
		}
		double mean = sum / N, deviation = sqrt(fmax(squares / N - mean * mean, 0));
		double tolerance = 5 * cases[c].deviation / sqrt(N);
		if (fabs(mean - cases[c].mean) > tolerance ||
		    fabs(deviation - cases[c].deviation) > tolerance)
			fail_msg("case %zu: mean %g, deviation %g", c, mean, deviation);
		sw_tensor_drop(&t);
	}
}

/* Element e does not depend on how many elements are drawn; another step draws other numbers. */
static void an_element_is_drawn_by_its_index(void **state)
{
	(void)state;
	sw_tensor few = draw_once("f32", "0", "1", "rng_uniform", 10, 1),
		  more = draw_once("f32", "0", "1", "rng_uniform", 25, 1);
	sw_tensor later = draw_once("f32", "0", "1", "rng_uniform", 10, 2);
	assert_memory_equal(sw_tensor_data(few), sw_tensor_data(more), 10 * sizeof(float));
	assert_memory_not_equal(sw_tensor_data(few), sw_tensor_data(later), 10 * sizeof(float));
	sw_tensor_drop(&few);
	sw_tensor_drop(&more);
	sw_tensor_drop(&later);
}

static void two_ops_draw_different_numbers(void **state)
{
	(void)state;
	sw_program *program;
	sw_tensor out[2];
	sw_interpreter *it = open_text(
		"HloModule m\nENTRY e {\n  a = f32[] constant(0)\n  b = f32[] constant(1)\n"
		"  x = f32[8] rng(a, b), distribution=rng_uniform\n"
		"  y = f32[8] rng(a, b), distribution=rng_uniform\n"
		"  ROOT t = (f32[8], f32[8]) tuple(x, y)\n}\n",
		&program);
	step(it, out, 2);
	assert_memory_not_equal(sw_tensor_data(out[0]), sw_tensor_data(out[1]), 8 * sizeof(float));
	drop(out, 2);
	sw_interpreter_free(it);
	sw_program_free(program);
}

/* The counters are those of XLA on CPU (observed in JAX 0.12): each op counts for itself from
 * 117515157 on, with a carry into the upper word. */
static void the_rng_state_advances(void **state)
{
	(void)state;
	static const uint64_t wanted[3][4] = {
		{117515157, 0, 117515157, 0},
		{117515162, 0, 9223372036972290964u, 0},
		{117515167, 0, 117515155, 1},
	};
	sw_program *program;
	sw_tensor out[2];
	sw_interpreter *it = open_text(
		"HloModule m\nENTRY e {\n  a = u64[2] rng-get-and-update-state(), delta=5\n"
		"  b = u64[2] rng-get-and-update-state(), delta=9223372036854775807\n"
		"  ROOT t = (u64[2], u64[2]) tuple(a, b)\n}\n",
		&program);
	for (int s = 0; s < 3; s++) {
		step(it, out, 2);
		for (int i = 0; i < 2; i++)
			assert_memory_equal(sw_tensor_data(out[i]), &wanted[s][2 * i],
			                    2 * sizeof(uint64_t));
		drop(out, 2);
	}
	sw_interpreter_free(it);
	sw_program_free(program);
}

static void a_size_that_is_not_the_declared_one_ends_the_run(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"HloModule m\nENTRY e {\n  x = f32[4] iota(), iota_dimension=0\n  n = u32[] "
		"partition-id()\n"
		"  s = s32[] convert(n)\n  d = f32[<=4] set-dimension-size(x, s), dimensions={0}\n"
		"  ROOT r = f32[<=4] negate(d)\n}\n",
		"HloModule m\nENTRY e {\n  x = f32[4] iota(), iota_dimension=0\n  n = u32[] "
		"partition-id()\n"
		"  s = s32[] convert(n)\n  ROOT r = f32[<=4,<=1] dynamic-reshape(x, s, s)\n}\n",
	};
	for (size_t i = 0; i < SW_COUNT(texts); i++) {
		sw_program *program;
		sw_error err = {0};
		sw_tensor out;
		sw_interpreter *it = open_text(texts[i], &program);
		assert_int_equal(sw_interpret(it, NULL, 0, &out, 1, &err), SW_ERR_INPUT);
		assert_non_null(strstr(err.message, "a size of 0, not 4"));
		sw_interpreter_free(it);
		sw_program_free(program);
	}
}

static void every_opcode_has_a_row(void **state)
{
	(void)state;
	static const sw_opcode others[] = {SW_OP_PARAMETER, SW_OP_CONSTANT, SW_OP_TUPLE,
	                                   SW_OP_GET_TUPLE_ELEMENT, SW_OP_UNKNOWN};
	for (int o = 0; o < SW_OPCODE_COUNT; o++) {
		bool other = false;
		for (size_t i = 0; i < SW_COUNT(others); i++)
			other |= others[i] == (sw_opcode)o;
		if (!sw_kernels[o].run != other)
			fail_msg("%s has %s row", sw_opcode_name((sw_opcode)o), other ? "a" : "no");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_their_distribution),
		cmocka_unit_test(an_element_is_drawn_by_its_index),
		cmocka_unit_test(two_ops_draw_different_numbers),
		cmocka_unit_test(the_rng_state_advances),
		cmocka_unit_test(a_size_that_is_not_the_declared_one_ends_the_run),
		cmocka_unit_test(every_opcode_has_a_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
