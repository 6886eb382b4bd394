/*
 * Functions of CHLO in StableHLO text give what JAX gives for them: tests/interpret/special has the
 * operands and the results, recorded by tools/record_special_functions.py, with zeros of both
 * signs, infinities, NaN, poles and what lies outside of the domain.
 *
 * Places of NaN and infinities must be equal, and integers too. Reals may differ by a number of
 * rounding errors (units of 2^-p) of the larger of the result and `floor`; XLA's own formulas are
 * that far from the exact values. A floor other than 0 is there where a sum cancels: near the zeros
 * of the function. Types of 16 bits may differ by a unit in the last place: XLA computes some
 * functions in them, where ours are rounded once.
 */
#include "test.h"

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "interpret/interpret.h"

#define MAX_VALUES 512

typedef struct tolerance {
	const char *function;
	double f32, f64; /* rounding errors of f32 and f64 */
	double floor;
} tolerance;

static const tolerance tolerances[] = {
	{"erf_inv", 4, 8, 0},     {"erfc", 64, 2048, 0}, /* exp(-x^2) has the error of x^2 */
	{"lgamma", 8, 16, 1},     {"digamma", 16, 16, 1},   {"zeta", 16, 16, 0},
	{"polygamma", 64, 64, 1}, {"bessel_i1e", 16, 8, 0}, /* XLA takes the other series at 8 */
	{"sinh", 16, 32, 0},      {"cosh", 16, 32, 0},      {"next_after", 0, 0, 0},
	{"mulhi", 0, 0, 0},       {NULL, 4, 4, 0}, /* ops that HLO has */
};

static const tolerance *tolerance_of(const char *function)
{
	const tolerance *t = tolerances;
	while (t->function && strcmp(t->function, function) != 0)
		t++;
	return t;
}

/* The values of one function in one type. */
typedef struct group {
	const char *file;
	char function[32];
	char operands[2][MAX_VALUES][32], want[MAX_VALUES][32];
	uint32_t n_operands, n;
} group;

/* Return the type as MLIR writes it. */
static const char *mlir_type(const char *type)
{
	static const char *const words[][2] = {{"s8", "i8"},   {"u8", "ui8"},   {"s16", "i16"},
	                                       {"s32", "i32"}, {"u32", "ui32"}, {"s64", "i64"},
	                                       {"u64", "ui64"}};
	for (size_t i = 0; i < SW_COUNT(words); i++)
		if (strcmp(type, words[i][0]) == 0)
			return words[i][1];
	return type;
}

/* Write a program of one op, whose operands are arguments. */
static char *program_of(const group *g, const char *type)
{
	sw_text text = {0};
	char tensor[64];
	bool two = g->n_operands == 2;
	snprintf(tensor, sizeof(tensor), "tensor<%ux%s>", g->n, mlir_type(type));
	sw_text_addf(&text, "func.func public @main(%%a: %s%s%s) -> %s {\n", tensor,
	             two ? ", %b: " : "", two ? tensor : "", tensor);
	sw_text_addf(&text, "  %%0 = chlo.%s %%a%s : %s%s%s -> %s\n", g->function,
	             two ? ", %b" : "", tensor, two ? ", " : "", two ? tensor : "", tensor);
	sw_text_addf(&text, "  return %%0 : %s\n}\n", tensor);
	return text.data;
}

static void set(sw_tensor tensor, uint32_t e, const char *number)
{
	void *data = sw_tensor_data(tensor);
	if (tensor.shape.type == SW_S64)
		((int64_t *)data)[e] = strtoll(number, NULL, 10);
	else if (tensor.shape.type == SW_U64)
		((uint64_t *)data)[e] = strtoull(number, NULL, 10);
	else
		sw_element_set(tensor.shape.type, data, e, strtod(number, NULL));
}

/* ---- comparing -------------------------------------------------------------------------- */

/* Return how far an element may be from the wanted value. */
static double allowed(const group *g, sw_type type, double want)
{
	const tolerance *t = tolerance_of(g->function);
	double size = fmax(fabs(want), t->floor);
	switch (type) {
	case SW_F64:
		return t->f64 * size * 0x1p-53;
	case SW_F32:
		return t->f32 * size * 0x1p-24;
	case SW_BF16:
		return t->f32 > 0 ? fmax(size * 0x1p-7, 0x1p-133) : 0;
	default:
		return t->f32 > 0 ? fmax(size * 0x1p-10, 0x1p-24) : 0;
	}
}

static bool agrees(const group *g, sw_tensor got, sw_tensor want, uint32_t e)
{
	sw_type type = got.shape.type;
	if (sw_type_kind_of(type) != SW_KIND_FLOAT) {
		size_t size = (size_t)sw_type_bytes(type);
		return memcmp((char *)sw_tensor_data(got) + e * size,
		              (char *)sw_tensor_data(want) + e * size, size) == 0;
	}
	double x = sw_element_get(type, sw_tensor_data(got), e);
	double y = sw_element_get(type, sw_tensor_data(want), e);
	if (x == y || (isnan(x) && isnan(y)))
		return true;
	return isfinite(x) && isfinite(y) && fabs(x - y) <= allowed(g, type, y);
}

static int compare(const group *g, sw_tensor got, sw_tensor want)
{
	int bad = 0;
	for (uint32_t e = 0; e < g->n; e++) {
		if (agrees(g, got, want, e))
			continue;
		bad++;
		print_error("%s: %s(%s%s%s) is %.17g, not %s\n", g->file, g->function,
		            g->operands[0][e], g->n_operands > 1 ? ", " : "",
		            g->n_operands > 1 ? g->operands[1][e] : "",
		            sw_element_get(got.shape.type, sw_tensor_data(got), e), g->want[e]);
	}
	return bad;
}

/* ---- running ---------------------------------------------------------------------------- */

static void check(sw_status status, const sw_error *err)
{
	if (status != SW_OK)
		fail_msg("%s", err->message);
}

/* Return how many values differ. */
static int run_group(const group *g, const char *type)
{
	sw_error err = {0};
	sw_program *program;
	sw_interpreter *interpreter;
	sw_tensor operands[2], got, want;
	char *text = program_of(g, type);
	check(sw_read_stablehlo(text, strlen(text), g->function, &program, &err), &err);
	check(sw_interpreter_new(program, NULL, &interpreter, &err), &err);
	sw_shape shape = sw_value_shape(program, sw_entry(program)->results.data[0]);
	check(sw_tensor_new(shape, true, &want, &err), &err);
	for (uint32_t i = 0; i < g->n_operands; i++) {
		check(sw_tensor_new(shape, true, &operands[i], &err), &err);
		for (uint32_t e = 0; e < g->n; e++)
			set(operands[i], e, g->operands[i][e]);
	}
	for (uint32_t e = 0; e < g->n; e++)
		set(want, e, g->want[e]);
	check(sw_interpret(interpreter, operands, g->n_operands, &got, 1, &err), &err);
	int bad = compare(g, got, want);
	sw_tensor_drop(&got);
	sw_tensor_drop(&want);
	sw_interpreter_free(interpreter);
	sw_program_free(program);
	free(text);
	return bad;
}

/* Append the words of a line to a group. */
static void add_value(group *g, char words[][32], int n)
{
	assert_true(n == 3 || n == 4);
	assert_true(g->n < MAX_VALUES);
	g->n_operands = (uint32_t)n - 2;
	memcpy(g->function, words[0], sizeof(g->function));
	for (uint32_t i = 0; i < g->n_operands; i++)
		memcpy(g->operands[i][g->n], words[1 + i], 32);
	memcpy(g->want[g->n++], words[n - 1], 32);
}

static int run_file(const char *path)
{
	char type[8] = "", line[160], words[4][32];
	group *g = sw_alloc(sizeof(*g));
	int bad = 0;
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(sscanf(strrchr(path, '/'), "/%7[a-z0-9].txt", type), 1);
	memset(g, 0, sizeof(*g));
	g->file = path;
	while (fgets(line, sizeof(line), file)) {
		int n = sscanf(line, "%31s %31s %31s %31s", words[0], words[1], words[2], words[3]);
		if (g->n && strcmp(words[0], g->function) != 0) {
			bad += run_group(g, type);
			g->n = 0;
		}
		add_value(g, words, n);
	}
	bad += run_group(g, type);
	fclose(file);
	free(g);
	return bad;
}

static void functions_give_what_jax_gives(void **state)
{
	(void)state;
	glob_t found;
	int bad = 0;
	assert_int_equal(glob(SW_SOURCE_DIR "/tests/interpret/special/*.txt", 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 11);
	for (size_t i = 0; i < found.gl_pathc; i++)
		bad += run_file(found.gl_pathv[i]);
	globfree(&found);
	assert_int_equal(bad, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(functions_give_what_jax_gives)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
