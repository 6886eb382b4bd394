/* Samples of gather, scatter, dynamic slices. Indices run out of bounds on both sides. */
#include "rules/brute.h"

typedef struct numbers {
	const char *offset, *collapsed, *map, *operand_batch, *index_batch;
	int64_t vector_dim;
} numbers;

static sw_index_dims index_dims(brute_sample *s, const numbers *n)
{
	return (sw_index_dims){.offset = brute_ints(s, n->offset),
	                       .collapsed = brute_ints(s, n->collapsed),
	                       .start_index_map = brute_ints(s, n->map),
	                       .operand_batch = brute_ints(s, n->operand_batch),
	                       .index_batch = brute_ints(s, n->index_batch),
	                       .index_vector_dim = n->vector_dim};
}

static bool gather(brute_sample *s, int variant)
{
	static const struct {
		const char *operand, *indices;
		numbers n;
		const char *sizes;
		double low, high;
	} cases[] = {
		{"f32[12,4]", "s32[6]", {"1", "0", "0", "", "", 1}, "1,4", -2, 14},
		{"f32[12,4]", "s32[6,1]", {"1", "0", "0", "", "", 1}, "1,4", -2, 14},
		{"f32[4,12]", "s32[2,3,1]", {"1", "1", "1", "", "", 2}, "4,1", -2, 14},
		{"f32[4,8,12]", "s32[4,8,1]", {"", "2", "2", "0,1", "0,1", 2}, "1,1,1", -2, 14},
		{"f32[4,12]", "s32[1,4]", {"", "1", "1", "0", "1", 0}, "1,1", -2, 14},
		{"f32[12,8]", "s32[4,2]", {"", "0,1", "0,1", "", "", 1}, "1,1", -2, 14},
		{"f32[12,8,2]", "s32[2,4]", {"1", "0,1", "1,0", "", "", 0}, "1,1,2", -2, 14},
		{"f32[8,6]", "s32[4]", {"1,2", "", "0", "", "", 1}, "3,6", -2, 9},
		{"f32[8,6]", "s32[4]", {"1,2", "", "0", "", "", 1}, "1,6", -2, 9},
		{"f32[8,6]", "s32[4,2]", {"0,1", "", "0,1", "", "", 1}, "1,6", -2, 9},
		{"pred[12,4]", "s32[6]", {"1", "0", "0", "", "", 1}, "1,4", -2, 14},
		{"f32[12]", "u32[8]", {"", "0", "0", "", "", 1}, "1", 0, 14},
		{"s32[12]", "s64[8]", {"", "0", "0", "", "", 1}, "1", -2, 14},
		{"f32[12]", "u8[8]", {"", "0", "0", "", "", 1}, "1", 0, 200},
		{"f32[12,6]", "s32[1]", {"0", "0", "0", "", "", 0}, "1,6", -2, 14},
		{"c64[6,4]", "s32[4]", {"1", "0", "0", "", "", 1}, "1,4", -2, 14},
		{"f32[12,8]", "s32[4,2]", {"1,2", "", "0,1", "", "", 1}, "3,2", -2, 14},
		{"f32[8,12]", "s32[2,3]", {"0,1", "", "1,0", "", "", 0}, "3,5", -2, 14},
		{"f32[12,4]", "s32[2,4]", {"1,3", "", "0", "", "", 2}, "2,4", -2, 14},
		{"f32[2,12,3]", "s32[3,2,1]", {"2", "2", "1", "0", "1", 2}, "1,4,1", -2, 14},
		{"pred[12]", "u8[6]", {"0", "", "0", "", "", 1}, "5", 0, 20},
		{"f32[12,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2]",
	         "s32[1]",
	         {"0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15", "", "0", "", "", 0},
	         "3,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2",
	         -2,
	         14},
	};

	if (variant >= (int)SW_COUNT(cases))
		return false;
	sw_attrs attrs = {.index = index_dims(s, &cases[variant].n)};
	attrs.index.slice_sizes = brute_ints(s, cases[variant].sizes);
	brute_operand(s, cases[variant].operand, 0, cases[variant].operand[0] == 'p' ? 1 : 9);
	brute_operand(s, cases[variant].indices, cases[variant].low, cases[variant].high);
	brute_op(s, SW_OP_GATHER, &attrs, NULL);
	return true;
}

/* (x, y) -> y */
static int32_t replace(brute_sample *s, sw_type type)
{
	int32_t c = sw_build_computation(s->program, "replace");
	sw_emit_parameter(s->program, c, (sw_shape){.type = type}, NULL);
	sw_id y = sw_emit_parameter(s->program, c, (sw_shape){.type = type}, NULL);
	sw_build_results(s->program, c, &y, 1, false);
	return c;
}

static bool scatter(brute_sample *s, int variant)
{
	static const struct {
		const char *operand, *indices, *updates;
		numbers n;
		sw_monoid monoid;
		sw_type type;
		double low, high;
	} cases[] = {
		{"f32[12,4]",
	         "s32[6]",
	         "f32[6,4]",
	         {"1", "0", "0", "", "", 1},
	         SW_MONOID_SUM,
	         SW_F32,
	         -2,
	         14},
		{"f32[12,4]",
	         "s32[6,1]",
	         "f32[6,4]",
	         {"1", "0", "0", "", "", 1},
	         SW_MONOID_SUM,
	         SW_F32,
	         -2,
	         14},
		{"f32[4,8,12]",
	         "s32[4,8,1]",
	         "f32[4,8]",
	         {"", "2", "2", "0,1", "0,1", 2},
	         SW_MONOID_SUM,
	         SW_F32,
	         -2,
	         14},
		{"f32[12,8]",
	         "s32[4,2]",
	         "f32[4]",
	         {"", "0,1", "0,1", "", "", 1},
	         SW_MONOID_SUM,
	         SW_F32,
	         -2,
	         14},
		{"f32[12,8,2]",
	         "s32[2,4]",
	         "f32[4,2]",
	         {"1", "0,1", "1,0", "", "", 0},
	         SW_MONOID_MAX,
	         SW_F32,
	         -2,
	         14},
		{"f32[12,4]",
	         "s32[6]",
	         "f32[6,4]",
	         {"1", "0", "0", "", "", 1},
	         SW_MONOID_NONE,
	         SW_F32,
	         -2,
	         14},
		{"f32[8,6]",
	         "s32[4]",
	         "f32[4,3,6]",
	         {"1,2", "", "0", "", "", 1},
	         SW_MONOID_SUM,
	         SW_F32,
	         -2,
	         9},
		{"f32[8,6]",
	         "s32[4]",
	         "f32[4,1,6]",
	         {"1,2", "", "0", "", "", 1},
	         SW_MONOID_SUM,
	         SW_F32,
	         -2,
	         9},
		{"f32[8,6]",
	         "s32[4,2]",
	         "f32[1,6,4]",
	         {"0,1", "", "0,1", "", "", 1},
	         SW_MONOID_SUM,
	         SW_F32,
	         -1,
	         3},
		{"pred[12]",
	         "s32[6]",
	         "pred[6]",
	         {"", "0", "0", "", "", 1},
	         SW_MONOID_OR,
	         SW_PRED,
	         -2,
	         14},
		{"s32[12]",
	         "u32[8]",
	         "s32[8]",
	         {"", "0", "0", "", "", 1},
	         SW_MONOID_MIN,
	         SW_S32,
	         0,
	         14},
		{"s32[12]",
	         "s64[8]",
	         "s32[8]",
	         {"", "0", "0", "", "", 1},
	         SW_MONOID_AND,
	         SW_S32,
	         -2,
	         14},
		{"f32[12]",
	         "u8[8]",
	         "f32[8]",
	         {"", "0", "0", "", "", 1},
	         SW_MONOID_SUM,
	         SW_F32,
	         0,
	         20},
		{"f32[12]",
	         "s32[6]",
	         "f32[6]",
	         {"", "0", "0", "", "", 1},
	         SW_MONOID_PRODUCT,
	         SW_F32,
	         -2,
	         14},
		{"f32[8,12,1]",
	         "s32[1]",
	         "f32[8,12]",
	         {"0,1", "2", "2", "", "", 0},
	         SW_MONOID_SUM,
	         SW_F32,
	         -1,
	         1},
		{"f32[12,8]",
	         "s32[4,2]",
	         "f32[4,3,2]",
	         {"1,2", "", "0,1", "", "", 1},
	         SW_MONOID_SUM,
	         SW_F32,
	         -2,
	         14},
		{"f32[8,12]",
	         "s32[2,3]",
	         "f32[3,5,3]",
	         {"0,1", "", "1,0", "", "", 0},
	         SW_MONOID_MAX,
	         SW_F32,
	         -2,
	         10},
		{"f32[12,4]",
	         "s32[5]",
	         "f32[5,2,4]",
	         {"1,2", "", "0", "", "", 1},
	         SW_MONOID_NONE,
	         SW_F32,
	         -2,
	         14},
		{"f32[12,4]",
	         "s32[5]",
	         "f32[2,5,4]",
	         {"0,2", "", "0", "", "", 1},
	         SW_MONOID_NONE,
	         SW_F32,
	         -2,
	         14},
		{"f32[4,12]",
	         "s32[1,4]",
	         "f32[4]",
	         {"", "1", "1", "0", "1", 0},
	         SW_MONOID_NONE,
	         SW_F32,
	         -2,
	         14},
	};

	if (variant >= (int)SW_COUNT(cases))
		return false;
	sw_attrs attrs = {.index = index_dims(s, &cases[variant].n)};
	double high = cases[variant].type == SW_PRED ? 1 : 9;
	int32_t called = cases[variant].monoid ? sw_build_reducer(s->program, cases[variant].monoid,
	                                                          cases[variant].type)
	                                       : replace(s, cases[variant].type);
	brute_operand(s, cases[variant].operand, 0, high);
	brute_operand(s, cases[variant].indices, cases[variant].low, cases[variant].high);
	brute_operand(s, cases[variant].updates, 0, high);
	brute_op_calling(s, SW_OP_SCATTER, &attrs, NULL, &called, 1);
	return true;
}

/* Two operands whose updates are combined by one monoid. */
static bool scatter_pairs(brute_sample *s)
{
	static const numbers n = {"1", "0", "0", "", "", 1};
	sw_program *p = s->program;
	sw_attrs attrs = {.index = index_dims(s, &n)};
	int32_t c = sw_build_computation(p, "pairs");
	sw_id v[4], root[2];

	for (int i = 0; i < 4; i++)
		v[i] = sw_emit_parameter(p, c, (sw_shape){.type = i % 2 ? SW_S32 : SW_F32}, NULL);
	for (int i = 0; i < 2; i++)
		root[i] = sw_emit_binary(p, c, SW_OP_MAXIMUM, v[i], v[2 + i]);
	sw_build_results(p, c, root, 2, true);
	brute_operand(s, "f32[12,2]", -4, 4);
	brute_operand(s, "s32[12,2]", -4, 4);
	brute_operand(s, "s32[6]", -2, 14);
	brute_operand(s, "f32[6,2]", -4, 9);
	brute_operand(s, "s32[6,2]", -4, 9);
	brute_op_calling(s, SW_OP_SCATTER, &attrs, NULL, &c, 1);
	return true;
}

static bool dynamic_slice(brute_sample *s, int variant)
{
	static const char *const cases[][2] = {{"f32[8,6]", "1,6"},     {"f32[8,6]", "8,3"},
	                                       {"s32[4,6,2]", "4,2,2"}, {"f32[12]", "12"},
	                                       {"f32[12,6]", "5,2"},    {"pred[24]", "7"},
	                                       {"c64[12,2]", "1,2"}};

	if (variant >= (int)SW_COUNT(cases))
		return false;
	sw_attrs attrs = {.dynamic_slice = {.sizes = brute_ints(s, cases[variant][1])}};
	brute_operand(s, cases[variant][0], 0, cases[variant][0][0] == 'p' ? 1 : 9);
	for (int32_t i = 0; i < attrs.dynamic_slice.sizes.n; i++)
		brute_operand(s, variant == 5 ? "u8[]" : "s32[]", variant == 5 ? 0 : -2, 9);
	brute_op(s, SW_OP_DYNAMIC_SLICE, &attrs, NULL);
	return true;
}

static bool dynamic_update_slice(brute_sample *s, int variant)
{
	static const char *const cases[][2] = {
		{"f32[8,6]", "f32[1,6]"}, {"f32[8,6]", "f32[8,3]"},  {"s32[4,6]", "s32[4,6]"},
		{"f32[12]", "f32[4]"},    {"s32[12,8]", "s32[5,3]"}, {"f32[12,4]", "f32[1,4]"}};

	if (variant >= (int)SW_COUNT(cases))
		return false;
	brute_operand(s, cases[variant][0], 0, 9);
	brute_operand(s, cases[variant][1], 0, 9);
	for (int32_t i = 0; i < (variant == 3 ? 1 : 2); i++)
		brute_operand(s, "s32[]", -2, 9);
	brute_op(s, SW_OP_DYNAMIC_UPDATE_SLICE, NULL, NULL);
	return true;
}

bool brute_index(brute_sample *s, sw_opcode opcode, int variant)
{
	switch (opcode) {
	case SW_OP_GATHER:
		return gather(s, variant);
	case SW_OP_SCATTER:
		return variant == 0 ? scatter_pairs(s) : scatter(s, variant - 1);
	case SW_OP_DYNAMIC_SLICE:
		return dynamic_slice(s, variant);
	default:
		return dynamic_update_slice(s, variant);
	}
}
