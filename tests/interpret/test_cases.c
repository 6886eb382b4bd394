/*
 * Known answers: every program of tests/interpret/cases returns pairs (computed, expected), with
 * the expected values as XLA computes them. f32 and f64 may differ by a relative 1e-6 per element,
 * parts of complex numbers by 1e-6 of the largest; everything else, and the positions of infinities
 * and NaN, must be equal.
 */
#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frontend/frontend.h"
#include "interpret/interpret.h"

static void check(sw_status status, const sw_error *err)
{
	if (status != SW_OK)
		fail_msg("%s:%d:%d: %s", err->file, err->line, err->column, err->message);
}

/* Return true if x equals y, up to rounding at this scale; NaN equals NaN, and the sign of zero is
 * ignored. */
static bool agree(double x, double y, double scale)
{
	if (x == y || (isnan(x) && isnan(y)))
		return true;
	return isfinite(x) && isfinite(y) && fabs(x - y) <= 1e-6 * scale;
}

static double largest(sw_type type, const void *data, int64_t n)
{
	double most = 0;
	for (int64_t e = 0; e < n; e++) {
		double x = fabs(sw_element_get(type, data, e));
		most = isfinite(x) ? fmax(most, x) : most;
	}
	return most;
}

/* Return the number of pairs that differ. */
static int compare_pairs(const char *path, const sw_tensor *outputs, uint32_t n)
{
	int bad = 0;
	for (uint32_t i = 0; i + 1 < n; i += 2) {
		sw_shape shape = outputs[i + 1].shape;
		bool is_complex = sw_type_kind_of(shape.type) == SW_KIND_COMPLEX;
		sw_type part = shape.type == SW_C64 ? SW_F32 : is_complex ? SW_F64 : shape.type;
		bool rounds = part == SW_F32 || part == SW_F64;
		int64_t parts = sw_shape_elements(shape) * (is_complex ? 2 : 1);
		double scale =
			is_complex ? largest(part, sw_tensor_data(outputs[i + 1]), parts) : 0;
		assert_true(sw_shape_equal(outputs[i].shape, shape));
		for (int64_t e = 0; e < parts; e++) {
			double x = sw_element_get(part, sw_tensor_data(outputs[i]), e);
			double y = sw_element_get(part, sw_tensor_data(outputs[i + 1]), e);
			if (agree(x, y, is_complex ? scale : rounds ? fabs(y) : 0))
				continue;
			bad++;
			print_error("%s: pair %u, element %lld is %.9g, not %.9g\n", path, i / 2,
			            (long long)e, x, y);
		}
	}
	return bad;
}

/* Run the case twice, to check that the first step leaves nothing behind that changes the
 * second. */
static int run_case(const char *path)
{
	sw_error err = {0};
	sw_program *program;
	sw_interpreter *interpreter;
	int bad = 0;
	check(sw_read_program(path, &program, &err), &err);
	check(sw_interpreter_new(program, NULL, &interpreter, &err), &err);
	uint32_t n = (uint32_t)sw_entry(program)->results.len;
	sw_tensor *outputs = sw_alloc(sizeof *outputs * n);
	assert_int_equal(n % 2, 0);
	for (int step = 0; step < 2; step++) {
		check(sw_interpret(interpreter, NULL, 0, outputs, n, &err), &err);
		bad += compare_pairs(path, outputs, n);
		for (uint32_t i = 0; i < n; i++)
			sw_tensor_drop(&outputs[i]);
	}
	free(outputs);
	sw_interpreter_free(interpreter);
	sw_program_free(program);
	return bad;
}

static void cases_have_the_known_answers(void **state)
{
	(void)state;
	glob_t found;
	int bad = 0;
	assert_int_equal(glob(SW_SOURCE_DIR "/tests/interpret/cases/*.hlo", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++)
		bad += run_case(found.gl_pathv[i]);
	globfree(&found);
	assert_int_equal(bad, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(cases_have_the_known_answers)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
