/* Samples of ops that move elements, and of sources. */
#include "rules/brute.h"

#include <string.h>

/* ---- broadcast, transpose, reshape, ... ------------------------------------------------- */

static bool broadcast(brute_sample *s, int variant)
{
	static const char *const cases[][3] = {
		{"f32[]", "", "f32[4,6]"},      {"f32[6]", "1", "f32[4,6]"},
		{"f32[4]", "0", "f32[4,6]"},    {"f32[4,6]", "0,2", "f32[4,3,6]"},
		{"s32[12]", "0", "s32[12,1]"},  {"pred[4]", "1", "pred[2,4]"},
		{"f32[4,6]", "0,1", "f32[4,6]"}};

	if (variant >= (int)SW_COUNT(cases))
		return false;
	sw_attrs attrs = {.dims = {.dims = brute_ints(s, cases[variant][1])}};
	brute_operand(s, cases[variant][0], 0, cases[variant][0][0] == 'p' ? 1 : 9);
	brute_op(s, SW_OP_BROADCAST, &attrs, cases[variant][2]);
	return true;
}

static bool transpose(brute_sample *s, int variant)
{
	static const char *const cases[][2] = {{"f32[4,6]", "1,0"},
	                                       {"f32[2,3,4]", "2,0,1"},
	                                       {"s32[8]", "0"},
	                                       {"f32[2,1,2,3]", "3,1,2,0"}};

	if (variant >= (int)SW_COUNT(cases))
		return false;
	sw_attrs attrs = {.dims = {.dims = brute_ints(s, cases[variant][1])}};
	brute_operand(s, cases[variant][0], 0, 9);
	brute_op(s, SW_OP_TRANSPOSE, &attrs, NULL);
	return true;
}

static bool reshape(brute_sample *s, sw_opcode opcode, int variant)
{
	static const char *const cases[][2] = {
		{"f32[12]", "f32[3,4]"},    {"f32[4,6]", "f32[24]"},
		{"f32[6,4]", "f32[8,3]"},   {"f32[2,3,4]", "f32[4,6]"},
		{"f32[4,6]", "f32[6,4]"},   {"f32[1,8]", "f32[8,1]"},
		{"f32[4,3]", "f32[2,2,3]"}, {"f32[2,2,2,3]", "f32[4,1,6]"},
		{"s32[12,8]", "s32[8,12]"}, {"f32[8,12]", "f32[96]"},
		{"f32[1]", "f32[]"},        {"f32[12,2]", "f32[2,6,2]"},
	};

	if (variant >= (int)SW_COUNT(cases))
		return false;
	brute_operand(s, cases[variant][0], 0, 9);
	for (int32_t i = 0;
	     opcode == SW_OP_DYNAMIC_RESHAPE && i < brute_shape(s, cases[variant][1]).rank; i++)
		brute_operand(s, "s32[]", 1, 9);
	brute_op(s, opcode, NULL, cases[variant][1]);
	return true;
}

/* One element becomes several, or several become one. */
static bool bitcast(brute_sample *s, int variant)
{
	static const char *const cases[][2] = {
		{"u8[48]", "u32[12]"},  {"u32[12]", "u8[4,12]"},  {"u16[4,12]", "u32[8,3]"},
		{"f32[2,3]", "u8[24]"}, {"s32[12,4]", "s64[24]"}, {"f32[24]", "u32[4,6]"},
	};

	if (variant >= (int)SW_COUNT(cases))
		return reshape(s, SW_OP_BITCAST, variant - (int)SW_COUNT(cases));
	brute_operand(s, cases[variant][0], 0, 9);
	brute_op(s, SW_OP_BITCAST, NULL, cases[variant][1]);
	return true;
}

static bool dimension_size(brute_sample *s, sw_opcode opcode, int variant)
{
	sw_attrs attrs = {.dims = {.dims = brute_ints(s, variant ? "1" : "0")}};

	if (variant >= 2)
		return false;
	brute_operand(s, "f32[4,6]", 0, 9);
	if (opcode == SW_OP_SET_DIMENSION_SIZE)
		brute_operand(s, "s32[]", 1, 4);
	brute_op(s, opcode, &attrs, NULL);
	return true;
}

static bool bitcast_convert(brute_sample *s, int variant)
{
	static const char *const cases[][2] = {{"f32[4,6]", "s32[4,6]"},
	                                       {"u8[4,2,4]", "u32[4,2]"},
	                                       {"u32[6,2]", "u16[6,2,2]"},
	                                       {"f64[2,4]", "u8[2,4,8]"}};

	if (variant >= (int)SW_COUNT(cases))
		return false;
	brute_operand(s, cases[variant][0], 0, 9);
	brute_op(s, SW_OP_BITCAST_CONVERT, NULL, cases[variant][1]);
	return true;
}

static bool reverse(brute_sample *s, int variant)
{
	static const char *const cases[] = {"0", "1", "0,1"};

	if (variant >= 6)
		return false;
	sw_attrs attrs = {.dims = {.dims = brute_ints(s, cases[variant % 3])}};
	brute_operand(s, variant < 3 ? "f32[4,6]" : "s32[8,12]", 0, 9);
	brute_op(s, SW_OP_REVERSE, &attrs, NULL);
	return true;
}

bool brute_shapes(brute_sample *s, sw_opcode opcode, int variant)
{
	switch (opcode) {
	case SW_OP_BROADCAST:
		return broadcast(s, variant);
	case SW_OP_TRANSPOSE:
		return transpose(s, variant);
	case SW_OP_RESHAPE:
	case SW_OP_DYNAMIC_RESHAPE:
		return reshape(s, opcode, variant);
	case SW_OP_BITCAST:
		return bitcast(s, variant);
	case SW_OP_GET_DIMENSION_SIZE:
	case SW_OP_SET_DIMENSION_SIZE:
		return dimension_size(s, opcode, variant);
	case SW_OP_BITCAST_CONVERT:
		return bitcast_convert(s, variant);
	case SW_OP_REVERSE:
		return reverse(s, variant);
	default:
		return false;
	}
}

/* ---- slice, pad, concatenate ------------------------------------------------------------ */

static bool slice(brute_sample *s, int variant)
{
	static const char *const cases[][4] = {
		{"f32[12]", "0", "6", "1"},          {"f32[12]", "6", "12", "1"},
		{"f32[12]", "4", "8", "1"},          {"f32[12]", "0", "12", "2"},
		{"f32[12]", "1", "12", "2"},         {"f32[12]", "3", "9", "1"},
		{"f32[12]", "5", "12", "2"},         {"f32[8,6]", "4,0", "8,6", "1,1"},
		{"f32[8,12]", "0,2", "8,12", "2,3"}, {"f32[12]", "0", "12", "1"},
		{"s32[12]", "2", "3", "1"},          {"f32[4,6]", "1,1", "3,3", "1,2"},
		{"f32[8]", "0", "0", "1"},           {"f32[8,4]", "4,0", "8,0", "1,1"},
		{"f32[12]", "0", "8", "1"},          {"f32[12]", "1", "11", "1"},
		{"f32[24]", "2", "18", "1"},         {"f32[24]", "5", "23", "3"},
		{"f32[4,12]", "0,3", "4,11", "1,1"}, {"s32[12]", "0", "12", "11"},
		{"f32[24]", "2", "22", "2"},         {"pred[12]", "11", "12", "1"},
	};

	if (variant >= (int)SW_COUNT(cases))
		return false;
	sw_attrs attrs = {.slice = {.start = brute_ints(s, cases[variant][1]),
	                            .limit = brute_ints(s, cases[variant][2]),
	                            .stride = brute_ints(s, cases[variant][3])}};
	brute_operand(s, cases[variant][0], 0, 9);
	brute_op(s, SW_OP_SLICE, &attrs, NULL);
	return true;
}

static bool pad(brute_sample *s, int variant)
{
	static const char *const cases[][5] = {
		{"f32[6]", "f32[]", "0", "6", "0"},
		{"f32[6]", "f32[]", "6", "0", "0"},
		{"f32[4]", "f32[]", "4", "4", "0"},
		{"f32[6]", "f32[]", "0", "1", "1"},
		{"f32[6]", "f32[]", "1", "0", "1"},
		{"f32[12]", "f32[]", "-6", "0", "0"},
		{"f32[12]", "f32[]", "-4", "4", "0"},
		{"f32[12]", "f32[]", "-2", "-2", "0"},
		{"f32[4]", "f32[]", "2", "0", "2"},
		{"f32[4,6]", "f32[]", "0,0", "4,0", "0,0"},
		{"f32[4]", "f32[]", "-1", "1", "1"},
		{"s32[4,3]", "s32[]", "4,0", "0,3", "0,0"},
		{"f32[8]", "f32[]", "0", "-4", "0"},
		{"f32[4]", "f32[]", "4", "1", "1"},
		{"f32[6]", "f32[]", "-4", "4", "2"},
		{"f32[8]", "f32[]", "-5", "1", "1"},
		{"pred[4]", "pred[]", "4", "0", "0"},
		{"f32[12]", "f32[]", "1", "-1", "0"},
		{"f32[12]", "f32[]", "-1", "1", "0"},
		{"f32[12]", "f32[]", "2", "-2", "0"},
		{"f32[12]", "f32[]", "1", "1", "0"},
		{"f32[6]", "f32[]", "3", "4", "0"},
		{"f32[12]", "f32[]", "5", "8", "1"},
		{"f32[8]", "f32[]", "1", "1", "2"},
		{"f32[12]", "f32[]", "-5", "-1", "0"},
		{"f32[4,12]", "f32[]", "1,3", "-1,9", "0,0"},
		{"pred[12]", "pred[]", "1", "-1", "0"},
		{"f32[24]", "f32[]", "4", "-4", "0"},
		{"f32[2]", "f32[]", "3", "3", "3"},
		{"c64[6]", "c64[]", "1", "-1", "0"},
	};

	if (variant >= (int)SW_COUNT(cases))
		return false;
	sw_attrs attrs = {.pad = {.low = brute_ints(s, cases[variant][2]),
	                          .high = brute_ints(s, cases[variant][3]),
	                          .interior = brute_ints(s, cases[variant][4])}};
	double high = cases[variant][0][0] == 'p' ? 1 : 9;
	brute_operand(s, cases[variant][0], 0, high);
	brute_operand(s, cases[variant][1], 0, high);
	brute_op(s, SW_OP_PAD, &attrs, NULL);
	return true;
}

static bool concatenate(brute_sample *s, int variant)
{
	static const char *const cases[][4] = {{"f32[4]", "f32[4]", NULL, "0"},
	                                       {"f32[8]", "f32[4]", NULL, "0"},
	                                       {"f32[4,6]", "f32[4,12]", "f32[4,6]", "1"},
	                                       {"f32[4,3]", "f32[4,1]", NULL, "1"},
	                                       {"s32[6,2]", "s32[12,2]", "s32[6,2]", "0"},
	                                       {"f32[0,4]", "f32[4,4]", NULL, "0"}};

	if (variant >= (int)SW_COUNT(cases))
		return false;
	for (int i = 0; i < 3 && cases[variant][i]; i++)
		brute_operand(s, cases[variant][i], 0, 9);
	sw_attrs attrs = {.dims = {.dims = brute_ints(s, cases[variant][3])}};
	brute_op(s, SW_OP_CONCATENATE, &attrs, NULL);
	return true;
}

bool brute_affine(brute_sample *s, sw_opcode opcode, int variant)
{
	return opcode == SW_OP_SLICE ? slice(s, variant)
	       : opcode == SW_OP_PAD ? pad(s, variant)
	                             : concatenate(s, variant);
}

/* ---- iota, constant --------------------------------------------------------------------- */

static bool iota(brute_sample *s, int variant)
{
	static const char *const cases[][2] = {{"s32[12]", "0"},
	                                       {"f32[4,6]", "1"},
	                                       {"u8[8,3]", "0"},
	                                       {"bf16[2,12]", "1"},
	                                       {"s64[6,4]", "0"}};

	if (variant >= (int)SW_COUNT(cases))
		return false;
	sw_attrs attrs = {.iota = {.dimension = cases[variant][1][0] - '0'}};
	brute_op(s, SW_OP_IOTA, &attrs, cases[variant][0]);
	return true;
}

static bool constant(brute_sample *s, int variant)
{
	static const char *const cases[] = {"f32[12]", "f32[4,6]", "s32[]", "f32[2,12]",
	                                    "f32[4,6]"};

	if (variant >= (int)SW_COUNT(cases))
		return false;
	sw_shape shape = brute_shape(s, cases[variant]);
	int64_t n = sw_shape_elements(shape);
	void *data = sw_arena_alloc(&s->program->arena, (size_t)sw_shape_bytes(shape));
	for (int64_t i = 0; i < n; i++)
		/* the last is a splat */
		sw_element_set(shape.type, data, i, variant == 4 ? 7 : (double)i);
	sw_attrs attrs = {.constant = {.shape = shape, .data = data}};
	brute_op(s, SW_OP_CONSTANT, &attrs, cases[variant]);
	return true;
}

bool brute_source(brute_sample *s, sw_opcode opcode, int variant)
{
	return opcode == SW_OP_IOTA       ? iota(s, variant)
	       : opcode == SW_OP_CONSTANT ? constant(s, variant)
	                                  : false;
}

/* ---- random numbers: every generator, width and shape of a draw; counters over a word --- */

bool brute_random(brute_sample *s, sw_opcode opcode, int variant)
{
	static const char *const algorithms[] = {"rng_three_fry", "rng_philox", "rng_default"};
	static const char *const shapes[] = {"u32[12]",    "u32[3,4,2]", "u32[3,9]",  "u64[4,6]",
	                                     "u8[9,2,12]", "s16[5,6]",   "s32[2,24]", "s64[12]"};

	if (opcode != SW_OP_RNG_BIT_GENERATOR ||
	    variant >= (int)(SW_COUNT(algorithms) * SW_COUNT(shapes)))
		return false;
	sw_attrs attrs = {.rng = {.algorithm = algorithms[variant / (int)SW_COUNT(shapes)]}};
	char results[64];
	snprintf(results, sizeof(results), "u64[2];%s", shapes[variant % (int)SW_COUNT(shapes)]);
	brute_operand(s, "u64[2]", 0, 1e15);
	brute_op(s, opcode, &attrs, results);
	return true;
}
