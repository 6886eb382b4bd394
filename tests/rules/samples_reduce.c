/* Samples of contractions, reductions, windows and linear algebra. */
#include "rules/brute.h"

/* ---- dot, convolution ----------------------------------------------------------------------------------- */

static bool dot(brute_sample *s, int variant)
{
	static const struct {
		const char *lhs, *rhs, *lb, *rb, *lc, *rc;
	} cases[] = {
		{"f32[4,6]", "f32[6,8]", "", "", "1", "0"},
		{"f32[6,4]", "f32[12,6]", "", "", "0", "1"},
		{"f32[2,4,6]", "f32[2,6,3]", "0", "0", "2", "1"},
		{"f32[4,2,3]", "f32[3,4,6]", "0", "1", "2", "0"},
		{"f32[4,6]", "f32[4,6]", "", "", "0,1", "0,1"},
		{"f32[4,6]", "f32[6,4]", "", "", "0,1", "1,0"},
		{"f32[12]", "f32[12]", "", "", "0", "0"},
		{"f32[4]", "f32[6]", "", "", "", ""},
		{"f32[2,2,4,3]", "f32[2,2,3,4]", "0,1", "0,1", "3", "2"},
		{"s32[4,6]", "s32[6,8]", "", "", "1", "0"},
		{"f64[1,6]", "f64[6,8]", "", "", "1", "0"},
		{"bf16[4,4]", "bf16[4,2]", "", "", "1", "0"},
		{"c64[4,6]", "c64[6,2]", "", "", "1", "0"},
	};

	if (variant >= (int)SW_COUNT(cases))
		return false;
	sw_attrs attrs = {.dot = {.lhs_batch = brute_ints(s, cases[variant].lb),
	                          .rhs_batch = brute_ints(s, cases[variant].rb),
	                          .lhs_contracting = brute_ints(s, cases[variant].lc),
	                          .rhs_contracting = brute_ints(s, cases[variant].rc)}};
	brute_operand(s, cases[variant].lhs, -3, 3);
	brute_operand(s, cases[variant].rhs, -3, 3);
	brute_op(s, SW_OP_DOT, &attrs, NULL);
	return true;
}

/* b01f_01io->b01f with a plain window, then strides, then groups, then other labels. */
static bool convolution(brute_sample *s, int variant)
{
	static const struct {
		const char *input, *kernel, *result;
		sw_window_dim w;
		int64_t feature_groups, batch_groups;
		bool other_labels; /* fb0_i0o->0bf, one spatial dimension */
	} cases[] = {
		{"f32[4,6,4]", "f32[3,4,6]", NULL, {3, 1, 1, 1, 1, 1, false}, 1, 1, false},
		{"f32[2,8,6]", "f32[2,6,4]", NULL, {2, 2, 0, 0, 1, 1, false}, 1, 1, false},
		{"f32[2,6,4]", "f32[3,1,8]", NULL, {3, 1, 1, 1, 1, 1, false}, 4, 1, false},
		{"f32[4,6,2]", "f32[3,2,4]", NULL, {3, 1, 0, 0, 1, 1, false}, 1, 2, false},
		{"f32[4,2,6]", "f32[4,3,8]", NULL, {3, 1, 1, 1, 1, 2, true}, 1, 1, true},
	};

	if (variant >= (int)SW_COUNT(cases))
		return false;
	sw_window_dim *w = SW_NEW(&s->program->arena, sw_window_dim);
	*w = cases[variant].w;
	bool other = cases[variant].other_labels;
	sw_attrs attrs = {.convolution = {.window = {.rank = 1, .dims = w},
	                                  .feature_groups = cases[variant].feature_groups,
	                                  .batch_groups = cases[variant].batch_groups}};
	attrs.convolution.input_batch = other ? 1 : 0;
	attrs.convolution.input_feature = other ? 0 : 2;
	attrs.convolution.input_spatial = brute_ints(s, other ? "2" : "1");
	attrs.convolution.kernel_input = other ? 0 : 1;
	attrs.convolution.kernel_output = 2;
	attrs.convolution.kernel_spatial = brute_ints(s, other ? "1" : "0");
	attrs.convolution.output_batch = other ? 1 : 0;
	attrs.convolution.output_feature = 2;
	attrs.convolution.output_spatial = brute_ints(s, other ? "0" : "1");
	brute_operand(s, cases[variant].input, -3, 3);
	brute_operand(s, cases[variant].kernel, -3, 3);
	brute_op(s, SW_OP_CONVOLUTION, &attrs, NULL);
	return true;
}

bool brute_contract(brute_sample *s, sw_opcode opcode, int variant)
{
	return opcode == SW_OP_DOT ? dot(s, variant) : convolution(s, variant);
}

/* ---- computations that ops call ------------------------------------------------------------------------------ */

/* (x, y) -> opcode(x, y), or a comparison x > y (GE for select). */
static int32_t scalars(brute_sample *s, sw_type type, sw_opcode opcode, sw_direction direction)
{
	int32_t c = sw_build_computation(s->program, "scalars");
	sw_id x = sw_emit_parameter(s->program, c, (sw_shape){.type = type}, NULL);
	sw_id y = sw_emit_parameter(s->program, c, (sw_shape){.type = type}, NULL);
	sw_id root = opcode == SW_OP_COMPARE ? sw_emit_compare(s->program, c, direction, x, y)
	                                     : sw_emit_binary(s->program, c, opcode, x, y);

	sw_build_results(s->program, c, &root, 1, false);
	return c;
}

/* (x, i, y, j) -> the larger of x and y with its index, the smaller index if they are equal: arg-max. */
static int32_t arg_max(brute_sample *s)
{
	sw_program *p = s->program;
	int32_t c = sw_build_computation(p, "arg_max");
	sw_id v[4];

	for (int i = 0; i < 4; i++)
		v[i] = sw_emit_parameter(p, c, (sw_shape){.type = i % 2 ? SW_S32 : SW_F32}, NULL);
	sw_id greater = sw_emit_compare(p, c, SW_GT, v[0], v[2]),
	      equal = sw_emit_compare(p, c, SW_EQ, v[0], v[2]);
	sw_id before = sw_emit_compare(p, c, SW_LT, v[1], v[3]);
	sw_id first =
		sw_emit_binary(p, c, SW_OP_OR, greater, sw_emit_binary(p, c, SW_OP_AND, equal, before));
	sw_id root[2] = {sw_emit_select(p, c, first, v[0], v[2]), sw_emit_select(p, c, first, v[1], v[3])};
	sw_build_results(p, c, root, 2, true);
	return c;
}

/* ---- reduce, sort, topk, batch-norm ---------------------------------------------------------------------------- */

static bool variadic_reduce(brute_sample *s)
{
	sw_attrs attrs = {.dims = {.dims = brute_ints(s, "1")}};
	int32_t called = arg_max(s);

	brute_operand(s, "f32[4,6]", -9, 9);
	brute_operand(s, "s32[4,6]", 0, 9);
	brute_operand(s, "f32[]", -99, -99);
	brute_operand(s, "s32[]", 0, 0);
	brute_op_calling(s, SW_OP_REDUCE, &attrs, NULL, &called, 1);
	return true;
}

static bool reduce(brute_sample *s, int variant)
{
	static const struct {
		const char *shape, *init, *dims;
		sw_type type;
		sw_opcode opcode;
		double low, high;
	} cases[] = {
		{"f32[4,6]", "f32[]", "1", SW_F32, SW_OP_ADD, -4, 4},
		{"f32[4,6]", "f32[]", "0", SW_F32, SW_OP_ADD, -4, 4},
		{"f32[4,6]", "f32[]", "0,1", SW_F32, SW_OP_ADD, -4, 4},
		{"f32[3,4,2]", "f32[]", "1,2", SW_F32, SW_OP_MAXIMUM, -4, 4},
		{"f32[12]", "f32[]", "0", SW_F32, SW_OP_MINIMUM, -4, 4},
		{"pred[4,6]", "pred[]", "1", SW_PRED, SW_OP_AND, 0, 1},
		{"pred[4,6]", "pred[]", "0", SW_PRED, SW_OP_OR, 0, 1},
		{"pred[8]", "pred[]", "0", SW_PRED, SW_OP_MAXIMUM, 0, 1},
		{"s32[8,3]", "s32[]", "0", SW_S32, SW_OP_MAXIMUM, -4, 4},
		{"u8[8,3]", "u8[]", "0", SW_U8, SW_OP_OR, 0, 9},
		{"f32[4,6]", "f32[]", "1", SW_F32, SW_OP_MULTIPLY, -2, 2},
		{"f32[1,8]", "f32[]", "0", SW_F32, SW_OP_ADD, -4, 4},
		{"s64[8,2]", "s64[]", "0", SW_S64, SW_OP_ADD, -4, 4},
		{"c64[4,6]", "c64[]", "1", SW_C64, SW_OP_ADD, -4, 4},
	};

	if (variant == (int)SW_COUNT(cases))
		return variadic_reduce(s);
	if (variant > (int)SW_COUNT(cases))
		return false;
	sw_attrs attrs = {.dims = {.dims = brute_ints(s, cases[variant].dims)}};
	int32_t called = scalars(s, cases[variant].type, cases[variant].opcode, SW_EQ);
	brute_operand(s, cases[variant].shape, cases[variant].low, cases[variant].high);
	brute_operand(s, cases[variant].init, cases[variant].low, cases[variant].high);
	brute_op_calling(s, SW_OP_REDUCE, &attrs, NULL, &called, 1);
	return true;
}

static bool sort(brute_sample *s, int variant)
{
	sw_attrs attrs = {.sort = {.dimension = variant % 2, .stable = true}};
	int32_t called;

	if (variant >= 2)
		return false;
	called = scalars(s, SW_F32, SW_OP_COMPARE, SW_LT);
	brute_operand(s, "f32[4,6]", -9, 9);
	brute_op_calling(s, SW_OP_SORT, &attrs, NULL, &called, 1);
	return true;
}

static bool topk(brute_sample *s, int variant)
{
	sw_attrs attrs = {.topk = {.k = 2, .largest = true}};

	if (variant >= 1)
		return false;
	brute_operand(s, "f32[4,2,6]", -9, 9);
	brute_op(s, SW_OP_TOPK, &attrs, "f32[4,2,2];s32[4,2,2]");
	return true;
}

static bool batch_norm(brute_sample *s, sw_opcode opcode, int variant)
{
	sw_attrs attrs = {.batch_norm = {.epsilon = 0.5, .feature = variant ? 1 : 2}};
	const char *tensor = variant ? "f32[3,8,2]" : "f32[3,2,8]";

	if (variant >= 2)
		return false;
	brute_operand(s, tensor, -4, 4);
	brute_operand(s, "f32[8]", -4, 4);
	brute_operand(s, "f32[8]", -4, 4);
	if (opcode != SW_OP_BATCH_NORM_TRAINING)
		brute_operand(s, "f32[8]", 1, 4);
	if (opcode == SW_OP_BATCH_NORM_INFERENCE)
		brute_operand(s, "f32[8]", 1, 4);
	if (opcode == SW_OP_BATCH_NORM_GRAD)
		brute_operand(s, tensor, -4, 4);
	s->tolerance = 1e-5; /* divisions and roots; sums may run in another order */
	brute_op(s, opcode, &attrs, NULL);
	return true;
}

bool brute_reduce(brute_sample *s, sw_opcode opcode, int variant)
{
	switch (opcode) {
	case SW_OP_REDUCE:
		return reduce(s, variant);
	case SW_OP_SORT:
		return sort(s, variant);
	case SW_OP_TOPK:
		return topk(s, variant);
	default:
		return batch_norm(s, opcode, variant);
	}
}

/* ---- windows ------------------------------------------------------------------------------------------------- */

static sw_attrs window(brute_sample *s, int kind)
{
	static const sw_window_dim middle[] = {
		{6, 1, 5, 0, 1, 1, false}, {2, 2, 0, 0, 1, 1, false}, {3, 1, 0, 0, 1, 1, false}};
	static const sw_window_dim plain = {1, 1, 0, 0, 1, 1, false};
	sw_window_dim *w = SW_NEW_N(&s->program->arena, sw_window_dim, 3);

	w[0] = w[2] = plain;
	w[1] = middle[kind];
	return (sw_attrs){.window = {.window = {.rank = 3, .dims = w}}};
}

bool brute_window(brute_sample *s, sw_opcode opcode, int variant)
{
	sw_attrs attrs = window(s, opcode == SW_OP_SELECT_AND_SCATTER ? 1 : variant % 3);

	if (variant >= (opcode == SW_OP_SELECT_AND_SCATTER ? 1 : 6))
		return false;
	brute_operand(s, "f32[4,6,2]", -4, 4);
	if (opcode == SW_OP_SELECT_AND_SCATTER) {
		int32_t called[2] = {scalars(s, SW_F32, SW_OP_COMPARE, SW_GE),
		                     scalars(s, SW_F32, SW_OP_ADD, SW_EQ)};
		brute_operand(s, "f32[4,3,2]", -4, 4);
		brute_operand(s, "f32[]", -4, 4);
		brute_op_calling(s, opcode, &attrs, NULL, called, 2);
		return true;
	}
	int32_t called = scalars(s, SW_F32, variant < 3 ? SW_OP_ADD : SW_OP_MAXIMUM, SW_EQ);
	brute_operand(s, "f32[]", 0, 0);
	brute_op_calling(s, opcode, &attrs, NULL, &called, 1);
	return true;
}

/* ---- linear algebra ------------------------------------------------------------------------------------------- */

bool brute_linalg(brute_sample *s, sw_opcode opcode, int variant)
{
	sw_attrs attrs;

	if (variant >= (opcode == SW_OP_TRIANGULAR_SOLVE ? 2 : 1))
		return false;
	s->tolerance = 1e-4; /* roots and divisions */
	if (opcode == SW_OP_CHOLESKY) {
		attrs = (sw_attrs){.cholesky = {.lower = true}};
		brute_operand(s, "f32[4,2,1,1]", 1, 4);
	} else if (opcode == SW_OP_FFT) {
		attrs = (sw_attrs){.fft = {.kind = "FFT", .length = brute_ints(s, "6")}};
		brute_operand(s, "c64[4,2,6]", -4, 4);
	} else {
		attrs = (sw_attrs){.triangular_solve = {.left_side = variant == 0,
		                                        .lower = true,
		                                        .unit_diagonal = true,
		                                        .transpose_a = "NO_TRANSPOSE"}};
		brute_operand(s, "f32[2,3,3]", -2, 2);
		brute_operand(s, variant == 0 ? "f32[2,3,8]" : "f32[2,8,3]", -4, 4);
	}
	brute_op(s, opcode, &attrs, opcode == SW_OP_FFT ? "c64[4,2,6]" : NULL);
	return true;
}
