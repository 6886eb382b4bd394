/* Samples of windows: convolutions and their gradients, pools and their gradients, running
 * totals. */
#include "rules/samples_window.h"

#include <string.h>

/* The computations of two values that windows call, each of one op. */
static const struct {
	const char *name, *type, *result, *op;
} pairs[] = {
	{"add", "f32", "f32", "add(x, y)"},
	{"max", "f32", "f32", "maximum(x, y)"},
	{"min", "f32", "f32", "minimum(x, y)"},
	{"multiply", "f32", "f32", "multiply(x, y)"},
	{"any", "pred", "pred", "or(x, y)"},
	{"add_s32", "s32", "s32", "add(x, y)"},
	{"add_bf16", "bf16", "bf16", "add(x, y)"},
	{"add_f16", "f16", "f16", "add(x, y)"},
	{"add_f64", "f64", "f64", "add(x, y)"},
	{"ge", "f32", "pred", "compare(x, y), direction=GE"},
	{"gt", "f32", "pred", "compare(x, y), direction=GT"},
	{"le", "f32", "pred", "compare(x, y), direction=LE"},
	{"ge_s32", "s32", "pred", "compare(x, y), direction=GE"},
	{"ge_bf16", "bf16", "pred", "compare(x, y), direction=GE"},
	{"ge_f16", "f16", "pred", "compare(x, y), direction=GE"},
	{"ge_f64", "f64", "pred", "compare(x, y), direction=GE"},
};

/* last: associative, not commutative. not_lt: keeps a NaN. arg_max: the larger value and its index,
 * the smaller index if they are equal. */
static const char computations[] = "last {\n"
				   "  x = f32[] parameter(0)\n"
				   "  y = f32[] parameter(1)\n"
				   "  none = f32[] constant(-7)\n"
				   "  absent = pred[] compare(y, none), direction=EQ\n"
				   "  ROOT r = f32[] select(absent, x, y)\n"
				   "}\n"
				   "not_lt {\n"
				   "  x = f32[] parameter(0)\n"
				   "  y = f32[] parameter(1)\n"
				   "  less = pred[] compare(x, y), direction=LT\n"
				   "  ROOT r = pred[] not(less)\n"
				   "}\n"
				   "arg_max {\n"
				   "  x = f32[] parameter(0)\n"
				   "  i = s32[] parameter(1)\n"
				   "  y = f32[] parameter(2)\n"
				   "  j = s32[] parameter(3)\n"
				   "  greater = pred[] compare(x, y), direction=GT\n"
				   "  equal = pred[] compare(x, y), direction=EQ\n"
				   "  before = pred[] compare(i, j), direction=LT\n"
				   "  tie = pred[] and(equal, before)\n"
				   "  first = pred[] or(greater, tie)\n"
				   "  value = f32[] select(first, x, y)\n"
				   "  index = s32[] select(first, i, j)\n"
				   "  ROOT r = (f32[], s32[]) tuple(value, index)\n"
				   "}\n";

static void range(brute_sample *s, uint32_t operand, double low, double high)
{
	s->low[operand] = low;
	s->high[operand] = high;
}

/* Choose values for which results are exact, and inits that are neutral where the rules do not
 * recognise the computation. */
static void choose_values(brute_sample *s, const char *op, const char *attributes)
{
	uint32_t arrays = s->n / 2; /* of a reduce-window */

	for (uint32_t i = 0; i < s->n; i++)
		if (sw_value_shape(s->program, s->operands[i]).type == SW_PRED)
			range(s, i, 0, 1);
	if (strstr(attributes, "multiply"))
		for (uint32_t i = 0; i < s->n; i++) {
			s->fill[i] = BRUTE_POWERS_OF_TWO;
			range(s, i, -1, 1);
		}
	if (strstr(attributes, "to_apply=last"))
		range(s, arrays, -7, -7);
	if (strstr(attributes, "arg_max")) {
		range(s, arrays, -99, -99);
		range(s, arrays + 1, 99, 99);
	}
	if (strcmp(op, "select-and-scatter") == 0 &&
	    sw_type_kind_of(sw_value_shape(s->program, s->operands[0]).type) == SW_KIND_FLOAT)
		s->fill[0] = BRUTE_EXTREMES;
}

void window_sample(brute_sample *sample, const char *result, const char *operands, const char *op,
                   const char *attributes)
{
	sw_text text = {0};
	int n = 0;

	sw_text_add(&text, "HloModule sample\n");
	for (size_t i = 0; i < SW_COUNT(pairs); i++)
		sw_text_addf(&text,
		             "%s {\n  x = %s[] parameter(0)\n  y = %s[] parameter(1)\n  ROOT r = "
		             "%s[] %s\n}\n",
		             pairs[i].name, pairs[i].type, pairs[i].type, pairs[i].result,
		             pairs[i].op);
	sw_text_addf(&text, "%sENTRY main {\n", computations);
	for (const char *at = operands; *at; n++) {
		int length = (int)strcspn(at, " ");
		sw_text_addf(&text, "  p%d = %.*s parameter(%d)\n", n, length, at, n);
		at += length + (at[length] == ' ');
	}
	sw_text_addf(&text, "  ROOT r = %s %s(", result, op);
	for (int i = 0; i < n; i++)
		sw_text_addf(&text, "%sp%d", i ? ", " : "", i);
	sw_text_addf(&text, "), %s\n}\n", attributes);
	brute_from_text(sample, text.data);
	choose_values(sample, op, attributes);
	sw_text_clear(&text);
}

typedef struct line {
	const char *result, *operands, *attributes;
} line;

static bool lines(brute_sample *s, const char *op, const line *all, size_t n, int variant)
{
	if (variant >= (int)n)
		return false;
	window_sample(s, all[variant].result, all[variant].operands, op, all[variant].attributes);
	return true;
}

/* ---- convolution ------------------------------------------------------------------------ */

#define LABELS_1 "dim_labels=b0f_0io->b0f"
#define LABELS_2 "dim_labels=b01f_01io->b01f"

static const line convolutions[] = {
	/* the ones whose factors test_rules counts */
	{"f32[4,6,6]", "f32[4,6,4] f32[3,4,6]", "window={size=3 pad=1_1}, " LABELS_1},
	{"f32[2,4,4]", "f32[2,8,6] f32[2,6,4]", "window={size=2 stride=2}, " LABELS_1},
	{"f32[2,6,8]", "f32[2,6,4] f32[3,1,8]",
         "window={size=3 pad=1_1}, " LABELS_1 ", feature_group_count=4"},
	{"f32[2,4,4]", "f32[4,6,2] f32[3,2,4]",
         "window={size=3}, " LABELS_1 ", batch_group_count=2"},
	/* a contraction */
	{"f32[12,1,3]", "f32[12,12,1] f32[12,1,3]", "window={size=12}, " LABELS_1},
	/* other labels; dilated windows */
	{"f32[4,2,8]", "f32[4,2,6] f32[4,3,8]",
         "window={size=3 pad=1_1 rhs_dilate=2}, dim_labels=fb0_i0o->0bf"},
	/* a small residual network: stem, block, first of a stage, shortcut; then their
         * gradients */
	{"f32[1,4,4,2]", "f32[1,8,8,3] f32[7,7,3,2]",
         "window={size=7x7 stride=2x2 pad=3_3x3_3}, " LABELS_2},
	{"f32[1,4,6,2]", "f32[1,4,6,2] f32[3,3,2,2]", "window={size=3x3 pad=1_1x1_1}, " LABELS_2},
	{"f32[1,4,6,2]", "f32[1,8,12,2] f32[3,3,2,2]",
         "window={size=3x3 stride=2x2 pad=0_1x1_1}, " LABELS_2},
	{"f32[1,4,6,4]", "f32[1,8,12,2] f32[1,1,2,4]", "window={size=1x1 stride=2x2}, " LABELS_2},
	{"f32[1,8,8,3]", "f32[1,4,4,2] f32[7,7,3,2]",
         "window={size=7x7 pad=3_4x3_4 lhs_dilate=2x2 rhs_reversal=1x1}, "
         "dim_labels=b01f_01oi->b01f"},
	{"f32[7,7,3,2]", "f32[2,8,8,3] f32[2,4,4,2]",
         "window={size=4x4 pad=3_2x3_2 rhs_dilate=2x2}, dim_labels=f01b_i01o->01bf"},
	{"f32[3,3,2,2]", "f32[2,4,6,2] f32[2,4,6,2]",
         "window={size=4x6 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf"},
	{"f32[3,3,2,2]", "f32[2,8,12,2] f32[2,4,6,2]",
         "window={size=4x6 pad=0_1x1_0 rhs_dilate=2x2}, dim_labels=f01b_i01o->01bf"},
	{"f32[1,8,12,2]", "f32[1,4,6,4] f32[1,1,2,4]",
         "window={size=1x1 pad=0_1x0_1 lhs_dilate=2x2}, dim_labels=b01f_01oi->b01f"},
	{"f32[1,1,2,4]", "f32[2,8,12,2] f32[2,4,6,4]",
         "window={size=4x6 pad=0_-1x0_-1 rhs_dilate=2x2}, dim_labels=f01b_i01o->01bf"},
	/* depthwise, and in groups; their gradients with respect to the kernel */
	{"f32[2,6,8]", "f32[2,6,8] f32[3,1,8]",
         "window={size=3 pad=1_1}, " LABELS_1 ", feature_group_count=8"},
	{"f32[2,6,12]", "f32[2,6,8] f32[3,4,12]",
         "window={size=3 pad=1_1}, " LABELS_1 ", feature_group_count=2"},
	{"f32[3,1,8]", "f32[8,6,2] f32[6,2,8]",
         "window={size=6 pad=1_1}, dim_labels=b0f_0io->0bf, batch_group_count=8"},
	{"f32[4,6,12]", "f32[8,6,3] f32[3,3,12]",
         "window={size=3 pad=1_1}, " LABELS_1 ", batch_group_count=2"},
	/* patches; a transposed convolution; a causal one; reversal; negative padding; blocks
         * smaller than the halo */
	{"f32[1,4,2,5]", "f32[1,16,8,2] f32[4,4,2,5]", "window={size=4x4 stride=4x4}, " LABELS_2},
	{"f32[1,12,2]", "f32[1,6,3] f32[3,3,2]", "window={size=3 pad=1_2 lhs_dilate=2}, " LABELS_1},
	{"f32[1,18,2]", "f32[1,6,3] f32[4,3,2]", "window={size=4 pad=2_3 lhs_dilate=3}, " LABELS_1},
	{"f32[1,8,2]", "f32[1,8,3] f32[3,3,2]", "window={size=3 pad=4_0 rhs_dilate=2}, " LABELS_1},
	{"f32[1,8,2]", "f32[1,8,3] f32[4,3,2]",
         "window={size=4 pad=1_2 rhs_reversal=1}, " LABELS_1},
	{"f32[1,6,2]", "f32[1,12,3] f32[2,3,2]", "window={size=2 pad=-3_-2}, " LABELS_1},
	{"f32[1,12,2]", "f32[1,12,1] f32[11,1,2]", "window={size=11 pad=5_5}, " LABELS_1},
	{"f32[1,8,2]", "f32[1,12,1] f32[5,1,2]", "window={size=5}, " LABELS_1},
	{"f32[1,8,2]", "f32[1,4,1] f32[3,1,2]",
         "window={size=3 pad=3_2 lhs_dilate=2 rhs_dilate=2}, " LABELS_1},
	/* the kernel's space, reversed and not, drifting, dilated input */
	{"f32[1,5,2]", "f32[1,12,1] f32[12,1,2]",
         "window={size=12 pad=2_2 rhs_reversal=1}, " LABELS_1},
	{"f32[1,4,2]", "f32[1,12,1] f32[9,1,2]", "window={size=9}, " LABELS_1},
	{"f32[1,2,2]", "f32[1,6,1] f32[12,1,2]",
         "window={size=12 pad=1_1 lhs_dilate=2}, " LABELS_1},
	{"f32[1,3,2]", "f32[1,12,1] f32[4,1,2]",
         "window={size=4 rhs_dilate=3 pad=-1_1 rhs_reversal=1}, " LABELS_1},
	/* other types, three dimensions, none */
	{"s32[1,8,2]", "s32[1,8,3] s32[3,3,2]", "window={size=3 pad=1_1}, " LABELS_1},
	{"bf16[1,8,2]", "bf16[1,8,2] bf16[3,2,2]", "window={size=3 pad=1_1}, " LABELS_1},
	{"f32[1,4,2,6,1]", "f32[1,4,2,6,2] f32[3,3,3,2,1]",
         "window={size=3x3x3 pad=1_1x1_1x1_1}, dim_labels=b012f_012io->b012f"},
	{"f32[4,6]", "f32[4,8] f32[8,6]", "dim_labels=bf_io->bf"},
};

bool brute_convolution(brute_sample *s, int variant)
{
	return lines(s, "convolution", convolutions, SW_COUNT(convolutions), variant);
}

/* ---- reduce-window ---------------------------------------------------------------------- */

static const line reductions[] = {
	{"f32[4,6,2]", "f32[4,6,2] f32[]", "window={size=1x6x1 pad=0_0x5_0x0_0}, to_apply=add"},
	{"f32[4,3,2]", "f32[4,6,2] f32[]", "window={size=1x2x1 stride=1x2x1}, to_apply=add"},
	{"f32[4,4,2]", "f32[4,6,2] f32[]", "window={size=1x3x1}, to_apply=max"},
	/* pools: same padding, overlapping, ends that are left over, dilated */
	{"f32[4,6]", "f32[8,12] f32[]", "window={size=3x3 stride=2x2 pad=0_1x1_1}, to_apply=max"},
	{"f32[4,6]", "f32[4,6] f32[]", "window={size=3x3 pad=1_1x1_1}, to_apply=add"},
	{"f32[4,3]", "f32[12,7] f32[]", "window={size=2x2 stride=3x2}, to_apply=min"},
	{"f32[6]", "f32[12] f32[]",
         "window={size=3 stride=2 pad=2_1 rhs_dilate=2}, to_apply=multiply"},
	{"f32[12]", "f32[6] f32[]", "window={size=3 pad=1_2 lhs_dilate=2}, to_apply=add"},
	{"f32[12]", "f32[4] f32[]", "window={size=2 pad=2_1 lhs_dilate=3}, to_apply=max"},
	{"f32[8]", "f32[12] f32[]", "window={size=5}, to_apply=add"},
	{"f32[6]", "f32[12] f32[]", "window={size=2 pad=-3_-2}, to_apply=add"},
	{"pred[8]", "pred[8] pred[]", "window={size=4 pad=2_1}, to_apply=any"},
	{"s32[4]", "s32[8] s32[]", "window={size=3 stride=2 pad=1_0}, to_apply=add_s32"},
	/* over everything: as a reduction */
	{"f32[1,2]", "f32[12,2] f32[]", "window={size=12x1}, to_apply=add"},
	{"f32[1,1]", "f32[4,6] f32[]", "window={size=4x6 stride=4x6}, to_apply=max"},
	{"f32[2]", "f32[4] f32[]", "window={size=3}, to_apply=add"},
	{"f32[3]", "f32[12] f32[]", "window={size=12 pad=1_1}, to_apply=add"},
	/* running totals: forwards, backwards, in two dimensions, beside a pool, wider than the
         * dimension */
	{"f32[12]", "f32[12] f32[]", "window={size=12 pad=11_0}, to_apply=multiply"},
	{"f32[8,3]", "f32[8,3] f32[]", "window={size=8x1 pad=0_7x0_0}, to_apply=max"},
	{"f32[4,6]", "f32[4,6] f32[]", "window={size=4x6 pad=3_0x0_5}, to_apply=add"},
	{"f32[4,6]", "f32[4,6] f32[]", "window={size=4x3 pad=3_0x1_1}, to_apply=add"},
	{"f32[12]", "f32[12] f32[]", "window={size=14 pad=0_13}, to_apply=add"},
	{"f32[6]", "f32[12] f32[]", "window={size=12 pad=11_0 stride=2}, to_apply=add"},
	{"f32[12]", "f32[12] f32[]", "window={size=12 pad=12_-1}, to_apply=add"},
	/* any computation: one that does not commute, several inputs */
	{"f32[12]", "f32[12] f32[]", "window={size=12 pad=11_0}, to_apply=last"},
	{"f32[8]", "f32[8] f32[]", "window={size=3 pad=1_1}, to_apply=last"},
	{"f32[2,4]", "f32[2,4] f32[]", "window={size=2x3 pad=1_0x1_1}, to_apply=last"},
	{"(f32[4,6], s32[4,6])", "f32[8,6] s32[8,6] f32[] s32[]",
         "window={size=3x1 stride=2x1 pad=1_0x0_0}, to_apply=arg_max"},
	{"(f32[4,6], s32[4,6])", "f32[4,6] s32[4,6] f32[] s32[]",
         "window={size=1x6 pad=0_0x0_5}, to_apply=arg_max"},
};

/* ---- select-and-scatter ----------------------------------------------------------------- */

static const line scatters[] = {
	{"f32[4,6,2]", "f32[4,6,2] f32[4,3,2] f32[]",
         "window={size=1x2x1 stride=1x2x1}, select=ge, scatter=add"},
	{"f32[8,12]", "f32[8,12] f32[4,6] f32[]",
         "window={size=3x3 stride=2x2 pad=0_1x1_1}, select=ge, scatter=add"},
	{"f32[8,6]", "f32[8,6] f32[4,6] f32[]",
         "window={size=3x3 stride=2x1 pad=1_1x1_1}, select=gt, scatter=add"},
	{"f32[12]", "f32[12] f32[6] f32[]",
         "window={size=5 stride=2 pad=2_2}, select=le, scatter=add"},
	{"f32[12]", "f32[12] f32[8] f32[]", "window={size=5}, select=ge, scatter=add"},
	{"f32[12]", "f32[12] f32[4] f32[]",
         "window={size=2 stride=3 pad=1_0}, select=ge, scatter=add"},
	{"f32[12]", "f32[12] f32[4] f32[]",
         "window={size=2 stride=2 pad=-2_-2}, select=gt, scatter=max"},
	{"f32[12]", "f32[12] f32[12] f32[]",
         "window={size=4 pad=1_2}, select=gt, scatter=multiply"},
	{"f32[8]", "f32[8] f32[4] f32[]",
         "window={size=3 stride=2 pad=1_0}, select=not_lt, scatter=add"},
	{"f32[8]", "f32[8] f32[4] f32[]",
         "window={size=3 stride=2 pad=1_2 rhs_dilate=2}, select=ge, scatter=add"},
	{"f32[4]", "f32[4] f32[8] f32[]",
         "window={size=3 pad=1_2 lhs_dilate=2}, select=ge, scatter=add"},
	{"bf16[8]", "bf16[8] bf16[4] bf16[]",
         "window={size=3 stride=2 pad=0_1}, select=ge_bf16, scatter=add_bf16"},
	{"f16[8]", "f16[8] f16[4] f16[]",
         "window={size=3 stride=2 pad=1_0}, select=ge_f16, scatter=add_f16"},
	{"f64[8]", "f64[8] f64[4] f64[]",
         "window={size=3 stride=2 pad=1_0}, select=ge_f64, scatter=add_f64"},
	{"s32[8]", "s32[8] s32[6] s32[]", "window={size=3}, select=ge_s32, scatter=add_s32"},
	{"s32[8]", "s32[8] s32[4] s32[]",
         "window={size=3 stride=2 pad=0_1}, select=ge_s32, scatter=add_s32"},
	{"f32[8]", "f32[8] f32[4] f32[]", "window={size=2 stride=2}, select=ge, scatter=last"},
};

bool brute_window(brute_sample *s, sw_opcode opcode, int variant)
{
	return opcode == SW_OP_REDUCE_WINDOW
	               ? lines(s, "reduce-window", reductions, SW_COUNT(reductions), variant)
	               : lines(s, "select-and-scatter", scatters, SW_COUNT(scatters), variant);
}
