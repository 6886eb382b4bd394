/* Samples of contractions, reductions and linear algebra. */
#include "rules/samples_window.h"

/* ---- dot -------------------------------------------------------------------------------- */

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
		/* an extent that has several panels */
		{"f32[4,24]", "f32[24,6]", "", "", "1", "0"},
		{"f32[24,2,4]", "f32[6,2,24]", "1", "1", "0", "2"},
		{"bf16[6,12]", "bf16[12,4]", "", "", "1", "0"},
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

bool brute_contract(brute_sample *s, sw_opcode opcode, int variant)
{
	return opcode == SW_OP_DOT ? dot(s, variant) : brute_convolution(s, variant);
}

/* ---- computations that ops call --------------------------------------------------------- */

/* (x, y) -> opcode(x, y), or a comparison. */
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

/* (x, i, y, j) -> the larger of x and y with its index, the smaller index if they are equal:
 * arg-max. */
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
	sw_id first = sw_emit_binary(p, c, SW_OP_OR, greater,
	                             sw_emit_binary(p, c, SW_OP_AND, equal, before));
	sw_id root[2] = {sw_emit_select(p, c, first, v[0], v[2]),
	                 sw_emit_select(p, c, first, v[1], v[3])};
	sw_build_results(p, c, root, 2, true);
	return c;
}

/* ---- reduce, sort, topk, batch-norm ----------------------------------------------------- */

/* (x, y) -> x, except that 99 is replaced by y: associative, not commutative, and 99 is neutral. */
static int32_t first_of(brute_sample *s)
{
	sw_program *p = s->program;
	int32_t c = sw_build_computation(p, "first");
	sw_id x = sw_emit_parameter(p, c, (sw_shape){.type = SW_S32}, NULL),
	      y = sw_emit_parameter(p, c, (sw_shape){.type = SW_S32}, NULL);
	sw_id none = sw_emit_compare(p, c, SW_EQ, x, sw_emit_scalar(p, c, SW_S32, 99));
	sw_id root = sw_emit_select(p, c, none, y, x);

	sw_build_results(p, c, &root, 1, false);
	return c;
}

static bool ordered_reduce(brute_sample *s)
{
	sw_attrs attrs = {.dims = {.dims = brute_ints(s, "0")}};
	int32_t called = first_of(s);

	brute_operand(s, "s32[12,2]", -9, 98);
	brute_operand(s, "s32[]", 99, 99);
	brute_op_calling(s, SW_OP_REDUCE, &attrs, NULL, &called, 1);
	return true;
}

/* The values are few, so that equal ones meet. */
static bool variadic_reduce(brute_sample *s, const char *dims)
{
	sw_attrs attrs = {.dims = {.dims = brute_ints(s, dims)}};
	int32_t called = arg_max(s);

	brute_operand(s, "f32[4,6]", -2, 2);
	brute_operand(s, "s32[4,6]", 0, 9);
	brute_operand(s, "f32[]", -99, -99);
	brute_operand(s, "s32[]", 0, 0);
	brute_op_calling(s, SW_OP_REDUCE, &attrs, NULL, &called, 1);
	return true;
}

/* One monoid for each of two pairs: the same for both, or different ones. */
static bool reduce_pairs(brute_sample *s, sw_opcode second)
{
	sw_program *p = s->program;
	sw_attrs attrs = {.dims = {.dims = brute_ints(s, "1")}};
	int32_t c = sw_build_computation(p, "pairs");
	sw_id v[4], root[2];

	for (int i = 0; i < 4; i++)
		v[i] = sw_emit_parameter(p, c, (sw_shape){.type = i % 2 ? SW_S32 : SW_F32}, NULL);
	root[0] = sw_emit_binary(p, c, SW_OP_ADD, v[2], v[0]);
	root[1] = sw_emit_binary(p, c, second, v[1], v[3]);
	sw_build_results(p, c, root, 2, true);
	brute_operand(s, "f32[2,12]", -4, 4);
	brute_operand(s, "s32[2,12]", -2, 2);
	brute_operand(s, "f32[]", -4, 4);
	brute_operand(s, "s32[]", -2, 2);
	brute_op_calling(s, SW_OP_REDUCE, &attrs, NULL, &c, 1);
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

	if (variant >= (int)SW_COUNT(cases))
		return variant == (int)SW_COUNT(cases)       ? variadic_reduce(s, "1")
		       : variant == (int)SW_COUNT(cases) + 1 ? variadic_reduce(s, "0,1")
		       : variant == (int)SW_COUNT(cases) + 2 ? ordered_reduce(s)
		       : variant == (int)SW_COUNT(cases) + 3 ? reduce_pairs(s, SW_OP_ADD)
		       : variant == (int)SW_COUNT(cases) + 4 ? reduce_pairs(s, SW_OP_MULTIPLY)
		                                             : false;
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
	static const struct {
		const char *operand, *results;
		int64_t k;
		bool largest;
	} cases[] = {
		{"f32[4,2,6]", "f32[4,2,2];s32[4,2,2]", 2, true},
		{"f32[2,24]", "f32[2,3];s32[2,3]", 3, false},
		{"s32[12]", "s32[7];s32[7]", 7, true},
		{"f32[3,12]", "f32[3,12];s32[3,12]", 12, true},
	};

	if (variant >= (int)SW_COUNT(cases))
		return false;
	sw_attrs attrs = {.topk = {.k = cases[variant].k, .largest = cases[variant].largest}};
	/* equal values meet */
	brute_operand(s, cases[variant].operand, -3, 3);
	brute_op(s, SW_OP_TOPK, &attrs, cases[variant].results);
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
	/* divisions and roots are rounded; sums may run in another order */
	s->tolerance = 1e-5;
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

/* ---- linear algebra --------------------------------------------------------------------- */

bool brute_linalg(brute_sample *s, sw_opcode opcode, int variant)
{
	sw_attrs attrs;

	if (variant >= (opcode == SW_OP_TRIANGULAR_SOLVE ? 2 : 1))
		return false;
	/* roots and divisions are rounded */
	s->tolerance = 1e-4;
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

/* ---- ragged-dot, scaled-dot ------------------------------------------------------------- */

/* The sizes leave some rows over, or exceed the number of rows. */
static bool ragged_dot(brute_sample *s, int variant)
{
	static const char *const cases[] = {
		/* rows in groups, each with a matrix of its own */
		"x = f32[12,4] parameter(0)\n y = f32[3,4,6] parameter(1)\n s = s32[3] "
		"parameter(2)\n"
		"ROOT r = f32[12,6] ragged-dot(x, y, s), lhs_contracting_dims={1}, "
		"rhs_contracting_dims={1}, "
		"lhs_ragged_dims={0}, rhs_group_dims={0}",
		/* contracted in groups, each with a result of its own */
		"x = f32[4,12] parameter(0)\n y = f32[12,2] parameter(1)\n s = s32[3] "
		"parameter(2)\n"
		"ROOT r = f32[3,4,2] ragged-dot(x, y, s), lhs_contracting_dims={1}, "
		"rhs_contracting_dims={0}, "
		"lhs_ragged_dims={1}",
		/* a list of sizes for each batch */
		"x = f32[2,12,3] parameter(0)\n y = f32[2,3,3,4] parameter(1)\n s = s64[2,3] "
		"parameter(2)\n"
		"ROOT r = f32[2,12,4] ragged-dot(x, y, s), lhs_batch_dims={0}, rhs_batch_dims={0}, "
		"lhs_contracting_dims={2}, rhs_contracting_dims={2}, lhs_ragged_dims={1}, "
		"rhs_group_dims={1}",
		/* batches in groups */
		"x = f32[12,2,3] parameter(0)\n y = f32[12,3,2] parameter(1)\n s = u32[3] "
		"parameter(2)\n"
		"ROOT r = f32[12,2,2] ragged-dot(x, y, s), lhs_batch_dims={0}, rhs_batch_dims={0}, "
		"lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={0}",
	};
	char text[512];

	if (variant >= 2 * (int)SW_COUNT(cases))
		return false;
	snprintf(text, sizeof(text), "HloModule m\nENTRY e {\n%s\n}\n", cases[variant / 2]);
	brute_from_text(s, text);
	s->low[2] = variant % 2 ? 2 : 0;
	s->high[2] = variant % 2 ? 9 : 4;
	return true;
}

static bool scaled_dot(brute_sample *s, int variant)
{
	static const char *const cases[] = {
		"x = f32[4,12] parameter(0)\n y = f32[12,2] parameter(1)\n"
		"u = f32[4,3] parameter(2)\n v = f32[6,1] parameter(3)\n"
		"ROOT r = f32[4,2] scaled-dot(x, y, u, v), lhs_contracting_dims={1}, "
		"rhs_contracting_dims={0}",
		"x = f32[2,8,6] parameter(0)\n y = f32[2,4,6] parameter(1)\n u = f32[1,2,3] "
		"parameter(2)\n"
		"ROOT r = f32[2,8,4] scaled-dot(x, y, u), lhs_batch_dims={0}, rhs_batch_dims={0}, "
		"lhs_contracting_dims={2}, rhs_contracting_dims={2}",
		"x = f32[4,6] parameter(0)\n y = f32[6,4] parameter(1)\n u = f32[4,2] "
		"parameter(2)\n"
		"v = f32[3,4] parameter(3)\n" /* blocks of 3 and of 2 do not nest */
		"ROOT r = f32[4,4] scaled-dot(x, y, u, v), lhs_contracting_dims={1}, "
		"rhs_contracting_dims={0}",
	};
	char text[512];

	if (variant >= (int)SW_COUNT(cases))
		return false;
	snprintf(text, sizeof(text), "HloModule m\nENTRY e {\n%s\n}\n", cases[variant]);
	brute_from_text(s, text);
	return true;
}

bool brute_dots(brute_sample *s, sw_opcode opcode, int variant)
{
	return opcode == SW_OP_RAGGED_DOT ? ragged_dot(s, variant) : scaled_dot(s, variant);
}
