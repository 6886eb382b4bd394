/* Elements of every type as doubles, and literals as text. */
#include "program/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/helpers.h"
#include "test.h"

typedef struct bits_case {
	sw_type type;
	double value;
	uint64_t bits;
} bits_case;

static const bits_case cases[] = {
	{SW_F32, 1.0, 0x3f800000},
	{SW_F32, -0.0, 0x80000000},
	{SW_F32, 1e300, 0x7f800000},
	{SW_F32, 0x1p-149, 1},
	{SW_F32, 0x1p-150, 0},
	{SW_F32, 0x1.8p-149, 2},
	{SW_BF16, 1.00390625, 0x3f80},
	{SW_BF16, 1.01171875, 0x3f82},
	{SW_BF16, 3.4e38, 0x7f80},
	{SW_F16, 65504, 0x7bff},
	{SW_F16, 65519, 0x7bff},
	{SW_F16, 65520, 0x7c00},
	{SW_F16, 0x1p-24, 1},
	{SW_F16, 0x1p-25, 0},
	{SW_F64, 0.1, 0x3fb999999999999aULL},
	{SW_F64, -INFINITY, 0xfff0000000000000ULL},
	{SW_F8E4M3FN, 448, 0x7e},
	{SW_F8E4M3FN, 464, 0x7e},
	{SW_F8E4M3FN, 465, 0x7f},
	{SW_F8E4M3FN, -2, 0xc0},
	{SW_F8E4M3FN, 0x1p-9, 1},
	{SW_F8E5M2, 57344, 0x7b},
	{SW_F8E5M2, 65536, 0x7c},
	{SW_F8E4M3, 240, 0x77},
	{SW_F8E4M3, 256, 0x78},
	{SW_F8E3M4, 15.5, 0x6f},
	{SW_F8E4M3FNUZ, 240, 0x7f},
	{SW_F8E4M3FNUZ, -0.0, 0},
	{SW_F8E4M3FNUZ, 1, 0x40},
	{SW_F8E5M2FNUZ, 57344, 0x7f},
	{SW_F8E4M3B11FNUZ, 30, 0x7f},
	{SW_F8E4M3FNUZ, INFINITY, 0x80},
	{SW_F4E2M1FN, 6, 7},
	{SW_F4E2M1FN, 100, 7},
	{SW_F4E2M1FN, -0.5, 9},
	{SW_F8E8M0FNU, 1, 127},
	{SW_F8E8M0FNU, 0x1p-127, 0},
	{SW_F8E8M0FNU, 3.5, 129},
	{SW_S8, -128, 0x80},
	{SW_S8, 1000, 0x7f},
	{SW_S8, -1000, 0x80},
	{SW_U8, -3, 0},
	{SW_U8, 300, 0xff},
	{SW_S4, 100, 7},
	{SW_U64, 1e300, UINT64_MAX},
	{SW_U64, 0x1p63, UINT64_C(1) << 63},
	{SW_S64, 1e300, INT64_MAX},
	{SW_S32, NAN, 0},
	{SW_PRED, 2, 1},
};

static void rounds_to_every_type(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		uint64_t data = 0;
		sw_number_set(cases[i].type, &data, 0, cases[i].value);
		if (data != cases[i].bits)
			fail_msg("%s %g: expected %llx, found %llx", sw_type_name(cases[i].type),
			         cases[i].value, (unsigned long long)cases[i].bits,
			         (unsigned long long)data);
	}
}

/* The value of every code of the narrow types rounds to the same code. */
static void reads_back_every_narrow_float(void **state)
{
	(void)state;
	const sw_type types[] = {SW_F8E5M2, SW_F8E4M3,     SW_F8E4M3FN,   SW_F8E4M3B11FNUZ,
	                         SW_F8E3M4, SW_F8E5M2FNUZ, SW_F8E4M3FNUZ, SW_F8E8M0FNU,
	                         SW_F16,    SW_BF16};
	for (size_t t = 0; t < SW_COUNT(types); t++) {
		for (uint32_t code = 0; code < 1u << 8 * sw_type_bytes(types[t]); code++) {
			uint32_t again = 0;
			double value = sw_number_get(types[t], &code, 0);
			sw_number_set(types[t], &again, 0, value);
			if (!isnan(value))
				assert_int_equal(again, code);
			else
				assert_true(isnan(sw_number_get(types[t], &again, 0)));
		}
	}
}

/* ---- literals --------------------------------------------------------------------------- */

static void expect_text(sw_type type, const void *data, const int64_t *dims, int32_t rank,
                        const char *expected)
{
	sw_program *p = sw_program_new("test");
	int32_t c = sw_build_computation(p, "main");
	sw_id x = sw_emit_literal(
		p, c,
		(sw_literal){.shape = {.type = type, .rank = rank, .dims = dims}, .data = data});
	char *text = op_text(p, x);
	const char *open = strstr(text, "constant(");
	if (strcmp(open, expected) != 0)
		fail_msg("expected %s, found %s", expected, open);
	free(text);
	sw_program_free(p);
}

static void prints_scalars(void **state)
{
	(void)state;
	const struct {
		sw_type type;
		uint64_t bits;
		const char *expected;
	} scalars[] = {
		{SW_F32, 0x3f800000, "constant(1)"},
		{SW_F32, 0x80000000, "constant(-0)"},
		{SW_F32, 0x3dcccccd, "constant(0.1)"},
		{SW_F32, 0x3f800001, "constant(1.0000001)"},
		{SW_F32, 0x7f800000, "constant(inf)"},
		{SW_F32, 0xff800000, "constant(-inf)"},
		{SW_F32, 0x7fc00000, "constant(nan)"},
		{SW_F32, 0xffc00000, "constant(-nan)"},
		{SW_F32, 0x7f800001, "constant(nan(0x1))"},
		{SW_F32, 0x7fc00001, "constant(nan(0x400001))"},
		{SW_F32, 1, "constant(1.4013e-45)"},
		{SW_F64, 0x3fb999999999999aULL, "constant(0.1)"},
		{SW_F64, 0x3ff0000000000001ULL, "constant(1.0000000000000002)"},
		{SW_BF16, 0x3dcd, "constant(0.100097656)"},
		{SW_BF16, 0x7fc0, "constant(nan)"},
		{SW_BF16, 0x7f81, "constant(nan(0x1))"},
		{SW_F16, 0x7e00, "constant(nan)"},
		{SW_F8E4M3FN, 0x7f, "constant(nan)"},
		{SW_F8E4M3FN, 0x7e, "constant(448)"},
		{SW_PRED, 1, "constant(true)"},
		{SW_PRED, 0, "constant(false)"},
		{SW_S8, 0xff, "constant(-1)"},
		{SW_U8, 0xff, "constant(255)"},
		{SW_U64, UINT64_MAX, "constant(18446744073709551615)"},
		{SW_S64, UINT64_C(1) << 63, "constant(-9223372036854775808)"},
		{SW_C64, 0x400000003f800000ULL, "constant((1, 2))"},
	};
	for (size_t i = 0; i < SW_COUNT(scalars); i++)
		expect_text(scalars[i].type, &scalars[i].bits, NULL, 0, scalars[i].expected);
}

static void prints_arrays(void **state)
{
	(void)state;
	const int32_t data[] = {1, 2, 3, 4, 5, 6};
	const int64_t flat[] = {6}, table[] = {2, 3}, cube[] = {1, 2, 3}, none[] = {2, 0};
	const float complex_data[] = {1, -0.5f, INFINITY, 0};
	const int64_t two[] = {2};
	expect_text(SW_S32, data, flat, 1, "constant({1, 2, 3, 4, 5, 6})");
	expect_text(SW_S32, data, table, 2, "constant({ {1, 2, 3}, {4, 5, 6} })");
	expect_text(SW_S32, data, cube, 3, "constant({ { {1, 2, 3}, {4, 5, 6} } })");
	expect_text(SW_S32, data, none, 2, "constant({ {}, {} })");
	expect_text(SW_S32, data, none + 1, 1, "constant({})");
	expect_text(SW_S32, NULL, table, 2, "constant({...})");
	expect_text(SW_C64, complex_data, two, 1, "constant({(1, -0.5), (inf, 0)})");
}

/* ---- neutral elements ------------------------------------------------------------------- */

static void emits_neutral_elements(void **state)
{
	(void)state;
	const struct {
		sw_type type;
		sw_monoid monoid;
		const char *expected;
	} identities[] = {
		{SW_F32, SW_MONOID_SUM, "constant(0)"},
		{SW_F32, SW_MONOID_PRODUCT, "constant(1)"},
		{SW_F32, SW_MONOID_MAX, "constant(-inf)"},
		{SW_BF16, SW_MONOID_MIN, "constant(inf)"},
		{SW_S32, SW_MONOID_MAX, "constant(-2147483648)"},
		{SW_S64, SW_MONOID_MIN, "constant(9223372036854775807)"},
		{SW_U64, SW_MONOID_MIN, "constant(18446744073709551615)"},
		{SW_U8, SW_MONOID_MAX, "constant(0)"},
		{SW_PRED, SW_MONOID_AND, "constant(true)"},
		{SW_PRED, SW_MONOID_OR, "constant(false)"},
		{SW_PRED, SW_MONOID_MAX, "constant(false)"},
		{SW_PRED, SW_MONOID_MIN, "constant(true)"},
		{SW_U8, SW_MONOID_AND, "constant(255)"},
		{SW_S8, SW_MONOID_AND, "constant(-1)"},
		{SW_F8E4M3FN, SW_MONOID_MAX, "constant(-448)"},
		{SW_F8E4M3FNUZ, SW_MONOID_MIN, "constant(240)"},
		{SW_F8E8M0FNU, SW_MONOID_MAX, "constant(5.877472e-39)"},
		{SW_F8E8M0FNU, SW_MONOID_MIN, "constant(1.7014118e+38)"},
	};
	sw_program *p = sw_program_new("test");
	int32_t c = sw_build_computation(p, "main");
	for (size_t i = 0; i < SW_COUNT(identities); i++) {
		char *text = op_text(
			p, sw_emit_identity(p, c, identities[i].type, identities[i].monoid));
		assert_contains(text, identities[i].expected);
		free(text);
	}
	sw_program_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounds_to_every_type),
		cmocka_unit_test(reads_back_every_narrow_float),
		cmocka_unit_test(prints_scalars),
		cmocka_unit_test(prints_arrays),
		cmocka_unit_test(emits_neutral_elements),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
