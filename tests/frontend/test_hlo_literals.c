/* Literals of every type: their bytes, and that printing preserves them. */
#include "frontend/helpers.h"

#include <string.h>

#include "program/number.h"

typedef struct literal_case {
	const char *shape, *literal;
	double values[6]; /* of the first elements */
	int n;
} literal_case;

#define INF __builtin_inf()

static const literal_case numbers[] = {
	{"pred[]", "true", {1}, 1},
	{"pred[]", "false", {0}, 1},
	{"pred[3]", "{1, 0, true}", {1, 0, 1}, 3},
	{"s4[2]", "{-8, 7}", {-8, 7}, 2},
	{"u4[2]", "{0, 15}", {0, 15}, 2},
	{"s8[2]", "{-128,127}", {-128, 127}, 2},
	{"u8[2]", "{0,255}", {0, 255}, 2},
	{"s16[]", "-32768", {-32768}, 1},
	{"u16[]", "65535", {65535}, 1},
	{"s32[2]", "{-2147483648, 2147483647}", {-2147483648., 2147483647.}, 2},
	{"u32[]", "4294967295", {4294967295.}, 1},
	{"s64[]", "-9223372036854775808", {-9223372036854775808.}, 1},
	{"u64[]", "4503599627370496", {4503599627370496.}, 1},
	{"f32[4]", "{1, -0.5, 1e-45, 3.40282347e+38}", {1, -0.5, 0x1p-149, 0x1.fffffep127}, 4},
	{"f32[2]", "{ inf, -inf }", {INF, -INF}, 2},
	{"f32[]", "1.17549435e-38", {0x1p-126}, 1},
	{"f32[]", "123456789012345678901234567890", {(double)123456789012345678901234567890.f}, 1},
	{"f64[3]", "{0.1, 1e308, 4.9406564584124654e-324}", {0.1, 1e308, 0x1p-1074}, 3},
	{"f64[]", "2.2250738585072011e-308", {2.2250738585072011e-308}, 1},
	{"f16[3]", "{65504, 6e-08, 0.333}", {65504, 0x1p-24, 0.333007812}, 2},
	{"bf16[3]", "{1.5, 3.39e+38, 0.0078125}", {1.5, 0x1.fep127, 0.0078125}, 3},
	{"f8e5m2[2]", "{57344, -inf}", {57344, -INF}, 2},
	{"f8e4m3fn[2]", "{448, -0.001953125}", {448, -0.001953125}, 2},
	{"f8e4m3[]", "240", {240}, 1},
	{"f8e4m3b11fnuz[]", "30", {30}, 1},
	{"f8e3m4[]", "15.5", {15.5}, 1},
	{"f8e5m2fnuz[]", "57344", {57344}, 1},
	{"f8e4m3fnuz[]", "240", {240}, 1},
	{"f8e8m0fnu[]", "0.5", {0.5}, 1},
	{"f4e2m1fn[2]", "{6, -0.5}", {6, -0.5}, 2},
	{"f32[2,3]", "{ { 1, 2, 3 }, { 4, 5, 6 } }", {1, 2, 3, 4, 5, 6}, 6},
	{"f32[2,1,2]", "{ { /*i0=0*/ { 1, 2 } }, { /*i0=1*/ { 3, 4 } } }", {1, 2, 3, 4}, 4},
	{"f32[2,3]{0,1}", "{\n  {1,2,3},\n  {4,5,6}\n}", {1, 2, 3, 4, 5, 6}, 6},
	{"f32[<=2]", "{1, 2}", {1, 2}, 2},
};

static void numbers_become_the_nearest_elements(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(numbers); i++) {
		sw_program *program;
		const literal_case *c = &numbers[i];
		const sw_literal *literal = read_literal(c->shape, c->literal, &program);
		for (int k = 0; k < c->n; k++) {
			double found = sw_number_get(literal->shape.type, literal->data, k);
			if (found != c->values[k])
				fail_msg("%s %s: element %d is %.17g, expected %.17g", c->shape,
				         c->literal, k, found, c->values[k]);
		}
		check_round_trip(program, c->literal);
		sw_program_free(program);
	}
}

static void the_largest_u64_keeps_its_bits(void **state)
{
	(void)state;
	sw_program *program;
	const sw_literal *literal = read_literal("u64[]", "18446744073709551615", &program);
	assert_true(*(const uint64_t *)literal->data == UINT64_MAX);
	check_round_trip(program, "u64");
	sw_program_free(program);
}

static void nans_keep_sign_and_payload(void **state)
{
	(void)state;
	static const struct {
		const char *type, *literal;
		uint64_t bits;
	} cases[] = {
		{"f32[]", "nan", 0x7fc00000},
		{"f32[]", "-nan", 0xffc00000},
		{"f32[]", "nan(0x400000)", 0x7fc00000},
		{"f32[]", "nan(0x1)", 0x7f800001},
		{"f32[]", "-nan(0x7FFFFF)", 0xffffffff},
		{"f64[]", "nan(0xfffffffffffff)", 0x7fffffffffffffff},
		{"f16[]", "nan(0x200)", 0x7e00},
		{"bf16[]", "-nan(0x41)", 0xffc1},
		{"f8e5m2[]", "nan(0x1)", 0x7d},
		{"f8e4m3fn[]", "nan", 0x7f},
		{"f8e4m3fn[]", "-nan", 0xff},
		{"f8e4m3fnuz[]", "nan", 0x80},
		{"f8e8m0fnu[]", "nan", 0xff},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_program *program;
		const sw_literal *literal = read_literal(cases[i].type, cases[i].literal, &program);
		uint64_t bits = sw_float_bits(literal->shape.type, literal->data, 0);
		if (bits != cases[i].bits)
			fail_msg("%s %s: bits %llx, expected %llx", cases[i].type, cases[i].literal,
			         (unsigned long long)bits, (unsigned long long)cases[i].bits);
		check_round_trip(program, cases[i].literal);
		sw_program_free(program);
	}
}

static void complex_numbers_have_two_parts(void **state)
{
	(void)state;
	sw_program *program;
	const sw_literal *literal = read_literal("c64[3]", "{(1, -2.5), (-inf, nan), 3}", &program);
	const float *parts = literal->data;
	assert_true(parts[0] == 1 && parts[1] == -2.5f && parts[2] == -(float)INF &&
	            parts[3] != parts[3]);
	assert_true(parts[4] == 3 && parts[5] == 0);
	check_round_trip(program, "c64");
	sw_program_free(program);
	literal = read_literal("c128[]", "(0.1, 1e-300)", &program);
	assert_true(((const double *)literal->data)[1] == 1e-300);
	check_round_trip(program, "c128");
	sw_program_free(program);
}

static void elided_literals_have_no_data(void **state)
{
	(void)state;
	sw_program *program;
	const sw_literal *literal = read_literal("f32[1000000,1000000]", "{...}", &program);
	assert_null(literal->data);
	check_round_trip(program, "elided");
	sw_program_free(program);
}

static void literals_without_elements_have_no_bytes(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{"f32[0]", "{}"},
		{"f32[0,5]", "{}"},
		{"f32[2,0]", "{}"},
		{"f32[2,0]", "{ {  }, {  } }"},
		{"s32[1000000000,0]", "{}"},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_program *program;
		assert_non_null(read_literal(cases[i][0], cases[i][1], &program)->data);
		check_round_trip(program, cases[i][0]);
		sw_program_free(program);
	}
}

static void a_constant_tuple_is_a_constant_per_leaf(void **state)
{
	(void)state;
	sw_program *program = read_text("HloModule m\nENTRY e {\n  ROOT c = (f32[], (s32[2], ())) "
	                                "constant((1.5, ({2, 3}, ())))\n}\n");
	assert_int_equal(program->ops.len, 2);
	assert_int_equal(sw_entry(program)->results.len, 2);
	check_round_trip(program, "tuple");
	sw_program_free(program);
}

/* Test every code of the types of one byte or less, and of f16 and bf16. */
static void all_codes_of_small_floats_survive_printing(void **state)
{
	(void)state;
	static const char *const types[] = {"f4e2m1fn",      "f8e5m2", "f8e4m3",     "f8e4m3fn",
	                                    "f8e4m3b11fnuz", "f8e3m4", "f8e5m2fnuz", "f8e4m3fnuz",
	                                    "f8e8m0fnu",     "f16",    "bf16"};
	for (size_t i = 0; i < SW_COUNT(types); i++) {
		sw_type type;
		assert_true(sw_type_find(types[i], strlen(types[i]), &type));
		int64_t n = type == SW_F4E2M1FN ? 16 : sw_type_bytes(type) == 1 ? 256 : 65536;
		sw_program *program = sw_program_new("codes");
		sw_shape shape = sw_build_shape(program, type, &n, 1);
		unsigned char *data =
			sw_arena_alloc(&program->arena, (size_t)sw_shape_bytes(shape));
		for (int64_t code = 0; code < n; code++) {
			if (sw_type_bytes(type) == 1)
				data[code] = (unsigned char)code;
			else
				((uint16_t *)(void *)data)[code] = (uint16_t)code;
		}
		int32_t c = program->entry = sw_build_computation(program, "e");
		sw_id id = sw_emit_literal(program, c, (sw_literal){shape, data});
		sw_build_results(program, c, &id, 1, false);
		check_round_trip(program, types[i]);
		sw_program_free(program);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_become_the_nearest_elements),
		cmocka_unit_test(the_largest_u64_keeps_its_bits),
		cmocka_unit_test(nans_keep_sign_and_payload),
		cmocka_unit_test(complex_numbers_have_two_parts),
		cmocka_unit_test(elided_literals_have_no_data),
		cmocka_unit_test(literals_without_elements_have_no_bytes),
		cmocka_unit_test(a_constant_tuple_is_a_constant_per_leaf),
		cmocka_unit_test(all_codes_of_small_floats_survive_printing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
