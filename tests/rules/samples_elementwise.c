/* Samples of elementwise ops: shapes, types, scalar operands. */
#include "rules/brute.h"

#include <math.h>
#include <string.h>

static const char *const dims[] = {"[12]", "[4,6]", "[]", "[1,8]", "[3,4,2]"};

static void operand(brute_sample *s, const char *type, int shape, double low, double high)
{
	char text[32];

	snprintf(text, sizeof(text), "%s%s", type, dims[shape]);
	brute_operand(s, text, low, strcmp(type, "pred") == 0 ? 1 : high);
}

/* Element types to try, and the range of values; types alternate with the shapes. */
typedef struct domain {
	sw_opcode opcode;
	const char *types[3];
	double low, high;
} domain;

static const domain domains[] = {
	{SW_OP_NOT, {"pred", "s32", "u8"}, 0, 13},
	{SW_OP_AND, {"pred", "s32", "u8"}, 0, 13},
	{SW_OP_OR, {"pred", "u32", "s8"}, 0, 13},
	{SW_OP_XOR, {"pred", "u32", NULL}, 0, 13},
	{SW_OP_MAXIMUM, {"f32", "pred", "s32"}, 0, 13},
	{SW_OP_MINIMUM, {"f32", "pred", "u8"}, 0, 13},
	{SW_OP_COUNT_LEADING_ZEROS, {"s32", "u8", NULL}, 0, 100},
	{SW_OP_POPCNT, {"s32", "u8", NULL}, 0, 100},
	{SW_OP_SHIFT_LEFT, {"s32", "u32", NULL}, 0, 5},
	{SW_OP_SHIFT_RIGHT_ARITHMETIC, {"s32", "s64", NULL}, 0, 5},
	{SW_OP_SHIFT_RIGHT_LOGICAL, {"s32", "u32", NULL}, 0, 5},
	{SW_OP_REAL, {"c64", "c128", NULL}, -4, 4},
	{SW_OP_IMAG, {"c64", "c128", NULL}, -4, 4},
	{SW_OP_COMPLEX, {"f32", "f64", NULL}, -4, 4},
	{SW_OP_ADD, {"f32", "s32", "c64"}, -4, 4},
	{SW_OP_SUBTRACT, {"f32", "s32", "c64"}, -4, 4},
	{SW_OP_MULTIPLY, {"f32", "s32", "c64"}, -4, 4},
	{SW_OP_NEGATE, {"f32", "s32", "c64"}, -4, 4},
	{SW_OP_REMAINDER, {"f32", "s32", NULL}, 1, 9},
	{SW_OP_COPY, {"f32", "s32", "u8"}, 0, 9},
	{SW_OP_SIGN, {"f32", "s32", NULL}, -2, 2},
	{SW_OP_ACOSH, {"f32", NULL, NULL}, 1, 9},
};

static domain domain_of(sw_opcode opcode)
{
	for (size_t i = 0; i < SW_COUNT(domains); i++)
		if (domains[i].opcode == opcode)
			return domains[i];
	return (domain){opcode, {"f32", NULL, NULL}, -4, 4};
}

static void to_extremes(brute_sample *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		s->fill[i] = BRUTE_EXTREMES;
}

/* The last variant of floats has infinities and NaN, except for products: there a term may be a
 * zero that meets an infinity. */
static bool plain(brute_sample *s, sw_opcode opcode, int variant)
{
	domain d = domain_of(opcode);
	int types = 1, shape = variant % (int)SW_COUNT(dims);

	while (types < 3 && d.types[types])
		types++;
	bool extremes = variant == (int)SW_COUNT(dims) * types && opcode != SW_OP_MULTIPLY &&
	                strcmp(d.types[0], "f32") == 0;
	if (variant >= (int)SW_COUNT(dims) * types && !extremes)
		return false;
	for (int i = 0; i < sw_opcode_operands(opcode); i++)
		operand(s, d.types[extremes ? 0 : variant / (int)SW_COUNT(dims)], shape, d.low,
		        d.high);
	if (extremes)
		to_extremes(s);
	brute_op(s, opcode, NULL, NULL);
	return true;
}

static bool convert(brute_sample *s, int variant)
{
	static const char *const pairs[][2] = {
		{"f32", "f64[4,6]"}, {"f32", "bf16[4,6]"}, {"bf16", "f32[4,6]"},
		{"s32", "f32[4,6]"}, {"s32", "s8[4,6]"},   {"u8", "s32[4,6]"},
		{"s8", "s32[4,6]"},  {"pred", "f32[4,6]"}, {"f32", "f32[4,6]"},
		{"s32", "u32[4,6]"}, {"f32", "s32[4,6]"}};

	if (variant >= (int)SW_COUNT(pairs))
		return false;
	bool is_signed = pairs[variant][0][0] != 'u' && pairs[variant][0][0] != 'p';
	operand(s, pairs[variant][0], 1, is_signed ? -4 : 0, pairs[variant][0][0] == 'p' ? 1 : 4);
	brute_op(s, SW_OP_CONVERT, NULL, pairs[variant][1]);
	return true;
}

/* With a constant on either side, an order passes through the other operand; the last constant is
 * infinite, so no order passes. */
static bool translation(brute_sample *s, sw_opcode opcode, int variant)
{
	static const double constants[] = {1.5, -2, INFINITY};

	if (variant >= 6)
		return false;
	if (variant % 2)
		brute_constant(s, "f32[4,6]", constants[variant / 2]);
	operand(s, "f32", 1, -4, 4);
	if (variant % 2 == 0)
		brute_constant(s, "f32[4,6]", constants[variant / 2]);
	brute_op(s, opcode, NULL, NULL);
	return true;
}

static bool sum(brute_sample *s, sw_opcode opcode, int variant)
{
	int shapes = 3 * (int)SW_COUNT(dims) + 1;

	return variant < shapes ? plain(s, opcode, variant)
	                        : translation(s, opcode, variant - shapes);
}

static bool divide(brute_sample *s, int variant)
{
	if (variant >= 10)
		return false;
	operand(s, variant < 5 ? "f32" : "s32", variant % 5, -8, 8);
	char text[32];
	snprintf(text, sizeof(text), "%s%s", variant < 5 ? "f32" : "s32", dims[variant % 5]);
	/* so that sums of quotients are exact */
	brute_powers(s, text, 0, 3);
	brute_op(s, SW_OP_DIVIDE, NULL, NULL);
	return true;
}

static bool compare(brute_sample *s, int variant)
{
	const char *type = variant / 6 == 1 ? "s32" : "f32";
	sw_attrs attrs = {.compare = {.direction = (sw_direction)(variant % 6)}};

	if (variant >= 18)
		return false;
	operand(s, type, 1 + variant % 4, -2, 2);
	operand(s, type, 1 + variant % 4, -2, 2);
	if (variant >= 12)
		to_extremes(s);
	brute_op(s, SW_OP_COMPARE, &attrs, NULL);
	return true;
}

static bool clamp(brute_sample *s, int variant)
{
	if (variant >= 8)
		return false;
	operand(s, "f32", variant < 4 ? 2 : variant % 4, -2, 0);
	operand(s, "f32", variant % 4, -5, 5);
	operand(s, "f32", variant < 4 ? 2 : variant % 4, 1, 3);
	brute_op(s, SW_OP_CLAMP, NULL, NULL);
	return true;
}

static bool choose(brute_sample *s, int variant)
{
	static const char *const types[] = {"f32", "s32", "pred", "c64"};

	if (variant >= 16)
		return false;
	operand(s, "pred", variant < 8 ? variant % 4 : 2, 0, 1);
	for (int i = 0; i < 2; i++)
		operand(s, types[variant / 2 % 4], variant % 4, 0, variant / 2 % 4 == 2 ? 1 : 9);
	brute_op(s, SW_OP_SELECT, NULL, NULL);
	return true;
}

static bool reduce_precision(brute_sample *s, int variant)
{
	sw_attrs attrs = {.reduce_precision = {.exponent_bits = 5, .mantissa_bits = 2}};

	if (variant >= 4)
		return false;
	operand(s, "f32", variant, -99, 99);
	brute_op(s, SW_OP_REDUCE_PRECISION, &attrs, NULL);
	return true;
}

static bool barrier(brute_sample *s, int variant)
{
	if (variant >= 3)
		return false;
	brute_operand(s, "f32[4,6]", -4, 4);
	if (variant > 0)
		brute_operand(s, "f32[4,3,2]", -4, 4);
	if (variant > 1)
		brute_operand(s, "s32[8]", -4, 4);
	brute_op(s, SW_OP_OPT_BARRIER, NULL, NULL);
	return true;
}

static bool dependency(brute_sample *s, int variant)
{
	if (variant >= 1)
		return false;
	brute_operand(s, "f32[4,6]", -4, 4);
	sw_op_spec spec = {.opcode = SW_OP_AFTER_ALL};
	sw_id token;
	sw_error err;
	if (sw_build_op(s->program, s->c, &spec, &token, &err) != SW_OK)
		return false;
	brute_operand(s, "token[]", 0, 0);
	brute_op(s, SW_OP_ADD_DEPENDENCY, NULL, NULL);
	return true;
}

/* (x, y) -> x * y - x */
static bool map(brute_sample *s, int variant)
{
	sw_program *p = s->program;
	sw_attrs attrs = {.dims = {.dims = brute_ints(s, variant ? "0,1,2" : "0,1")}};
	int32_t c;

	if (variant >= 2)
		return false;
	c = sw_build_computation(p, "scalars");
	sw_id x = sw_emit_parameter(p, c, (sw_shape){.type = SW_F32}, NULL),
	      y = sw_emit_parameter(p, c, (sw_shape){.type = SW_F32}, NULL);
	sw_id root =
		sw_emit_binary(p, c, SW_OP_SUBTRACT, sw_emit_binary(p, c, SW_OP_MULTIPLY, x, y), x);
	sw_build_results(p, c, &root, 1, false);
	for (int i = 0; i < 2; i++)
		operand(s, "f32", variant ? 4 : 1, -4, 4);
	brute_op_calling(s, SW_OP_MAP, &attrs, NULL, &c, 1);
	return true;
}

static bool stochastic_convert(brute_sample *s, int variant)
{
	if (variant >= 1)
		return false;
	brute_operand(s, "f32[4,6]", -4, 4);
	brute_operand(s, "u32[4,6]", 0, 9);
	brute_op(s, SW_OP_STOCHASTIC_CONVERT, NULL, "bf16[4,6]");
	return true;
}

bool brute_elementwise(brute_sample *s, sw_opcode opcode, int variant)
{
	switch (opcode) {
	case SW_OP_CONVERT:
		return convert(s, variant);
	case SW_OP_ADD:
	case SW_OP_SUBTRACT:
		return sum(s, opcode, variant);
	case SW_OP_DIVIDE:
		return divide(s, variant);
	case SW_OP_COMPARE:
		return compare(s, variant);
	case SW_OP_CLAMP:
		return clamp(s, variant);
	case SW_OP_SELECT:
		return choose(s, variant);
	case SW_OP_REDUCE_PRECISION:
		return reduce_precision(s, variant);
	case SW_OP_OPT_BARRIER:
		return barrier(s, variant);
	case SW_OP_ADD_DEPENDENCY:
		return dependency(s, variant);
	case SW_OP_MAP:
		return map(s, variant);
	case SW_OP_STOCHASTIC_CONVERT:
		return stochastic_convert(s, variant);
	default:
		return plain(s, opcode, variant);
	}
}
