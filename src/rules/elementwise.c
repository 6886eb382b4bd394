/*
 * Elementwise ops: each dimension is one PARALLEL factor of the result and of every operand; a
 * scalar beside larger operands (select's predicate, clamp's bounds) has none. The rows differ in
 * the partial values that pass.
 */
#include "program/number.h"
#include "rules/row.h"

#include <math.h>

static void elementwise(sw_rule_builder *b)
{
	sw_shape shape = sw_rule_result_shape(b, 0);

	for (int32_t d = 0; d < shape.rank; d++) {
		int32_t factor = sw_rule_add_parallel(b, shape.dims[d]);
		for (int32_t i = 0; i < b->rule->n_operands; i++)
			if (sw_rule_operand_shape(b, i).rank == shape.rank)
				sw_rule_place_operand(b, factor, i, d, 1);
		sw_rule_place_result(b, factor, 0, d, 1);
	}
}

/* Describe a barrier, which passes several values unchanged. Dimensions of equal size at the same
 * place share a factor, so that one atom can split the batch of all of them; the factor does not
 * concern a value without that dimension. */
static void barrier(sw_rule_builder *b)
{
	for (int32_t i = 0; i < b->rule->n_results; i++) {
		sw_shape shape = sw_rule_result_shape(b, i);
		for (int32_t d = 0; d < shape.rank; d++) {
			int32_t factor = -1;
			for (int32_t j = 0; j < i && factor < 0; j++) {
				const sw_dim_map *earlier = b->results[j];
				if (b->rule->result_ranks[j] > d && earlier[d].n &&
				    b->factors[earlier[d].refs[0].factor].size == shape.dims[d])
					factor = earlier[d].refs[0].factor;
			}
			if (factor < 0)
				factor = sw_rule_add_parallel(b, shape.dims[d]);
			sw_rule_place_operand(b, factor, i, d, 1);
			sw_rule_place_result(b, factor, i, d, 1);
		}
	}
}

/* Describe add-dependency(x, token): the factors of x; the token has none. */
static void dependency(sw_rule_builder *b)
{
	sw_shape shape = sw_rule_result_shape(b, 0);

	for (int32_t d = 0; d < shape.rank; d++) {
		int32_t factor = sw_rule_add_parallel(b, shape.dims[d]);
		sw_rule_place_operand(b, factor, 0, d, 1);
		sw_rule_place_result(b, factor, 0, d, 1);
	}
}

/* ---- linearities that depend on more than the opcode ------------------------------------ */

static bool literal_is_finite(sw_literal literal)
{
	if (!literal.data || sw_type_kind_of(literal.shape.type) != SW_KIND_FLOAT)
		return false;
	for (int64_t i = 0; i < sw_shape_elements(literal.shape); i++)
		if (!isfinite(sw_number_get(literal.shape.type, literal.data, i)))
			return false;
	return true;
}

/* Return whether an operand is a float that the program shows to be finite: a constant, or a
 * broadcast one. */
static bool is_finite_constant(const sw_rule_builder *b, int32_t operand)
{
	const sw_op *op =
		sw_op_at(b->program, b->program->values.data[b->op->operands[operand]].op);

	if (op->opcode == SW_OP_BROADCAST)
		op = sw_op_at(b->program, b->program->values.data[op->operands[0]].op);
	return op->opcode == SW_OP_CONSTANT && literal_is_finite(op->attrs->constant);
}

static void pass_order(sw_rule_builder *b, int32_t operand, bool reverses)
{
	bool *operands = SW_NEW_N(b->arena, bool, b->rule->n_operands);
	sw_monoid becomes[SW_MONOID_OR + 1] = {
		[SW_MONOID_MAX] = reverses ? SW_MONOID_MIN : SW_MONOID_MAX,
		[SW_MONOID_MIN] = reverses ? SW_MONOID_MAX : SW_MONOID_MIN,
	};

	operands[operand] = true;
	sw_rule_add_linearity_as(b, operands, becomes);
}

/* Adding c keeps an order where c is a finite float. An integer sum may wrap, and inf may meet the
 * -inf of a device without any element: x - max over keys that are all masked on one device. */
static void add(sw_rule_builder *b)
{
	elementwise(b);
	for (int32_t i = 0; i < 2; i++)
		if (is_finite_constant(b, 1 - i))
			pass_order(b, i, false);
}

static void subtract(sw_rule_builder *b)
{
	elementwise(b);
	for (int32_t i = 0; i < 2; i++)
		if (is_finite_constant(b, 1 - i))
			pass_order(b, i, i == 1);
}

/* max_i(x_i) > c is or_i(x_i > c). This does not hold for floats: for a NaN and a large term the
 * left side is false, the right side true. */
static void compare(sw_rule_builder *b)
{
	sw_direction direction = b->op->attrs->compare.direction;
	sw_type_kind kind = sw_type_kind_of(sw_rule_operand_shape(b, 0).type);

	elementwise(b);
	if (direction == SW_EQ || direction == SW_NE ||
	    (kind != SW_KIND_SIGNED && kind != SW_KIND_UNSIGNED))
		return;
	for (int32_t i = 0; i < 2; i++) {
		bool operands[2] = {i == 0, i == 1};
		bool grows = (direction == SW_GT || direction == SW_GE) == (i == 0);
		sw_monoid becomes[SW_MONOID_OR + 1] = {
			[SW_MONOID_MAX] = grows ? SW_MONOID_OR : SW_MONOID_AND,
			[SW_MONOID_MIN] = grows ? SW_MONOID_AND : SW_MONOID_OR,
		};
		sw_rule_add_linearity_as(b, operands, becomes);
	}
}

/* Predicates become 0 and 1: and becomes min, or becomes max. */
static void convert(sw_rule_builder *b)
{
	static const sw_monoid becomes[SW_MONOID_OR + 1] = {
		[SW_MONOID_AND] = SW_MONOID_MIN,
		[SW_MONOID_OR] = SW_MONOID_MAX,
	};
	static const bool operand = true;

	elementwise(b);
	if (sw_rule_operand_shape(b, 0).type == SW_PRED)
		sw_rule_add_linearity_as(b, &operand, becomes);
}

/* ---- rows ------------------------------------------------------------------------------- */

#define SW_PASS_LATTICE (SW_PASS_ORDER | SW_PASS_AND | SW_PASS_OR)

/* LINEAR: f(x + y) = f(x) + f(y). BILINEAR: linear in each operand alone. MONOTONE: nondecreasing
 * everywhere, also where single terms of a maximum may lie. ABOVE: nondecreasing only on [a, inf),
 * where all terms of a minimum lie if the minimum does. The operands of max, min, and, or may be
 * partial under either end of the order, one at a time, because the lattices are distributive. */
#define LINEAR PASSES({"*", SW_PASS_SUM, SW_WHEN_ALWAYS})
#define BILINEAR PASSES({"10", SW_PASS_SUM, SW_WHEN_ALWAYS}, {"01", SW_PASS_SUM, SW_WHEN_ALWAYS})
#define MOVE PASSES({"*", SW_PASS_ANY, SW_WHEN_ALWAYS})
#define MONOTONE PASSES({"1", SW_PASS_ORDER, SW_WHEN_ALWAYS})
#define ABOVE PASSES({"1", SW_PASS_MIN, SW_WHEN_ALWAYS})
#define LATTICE(BOTH)                                                                              \
	PASSES({"11", BOTH, SW_WHEN_ALWAYS}, {"10", SW_PASS_AND | SW_PASS_OR, SW_WHEN_ALWAYS},     \
	       {"01", SW_PASS_AND | SW_PASS_OR, SW_WHEN_ALWAYS})
#define EXTREME(BOTH, BOTH_OF_PREDICATES)                                                          \
	PASSES({"11", BOTH, SW_WHEN_ALWAYS}, {"10", SW_PASS_ORDER, SW_WHEN_ALWAYS},                \
	       {"01", SW_PASS_ORDER, SW_WHEN_ALWAYS}, {"11", BOTH_OF_PREDICATES, SW_WHEN_PRED},    \
	       {"10", SW_PASS_AND | SW_PASS_OR, SW_WHEN_PRED},                                     \
	       {"01", SW_PASS_AND | SW_PASS_OR, SW_WHEN_PRED})
/* The bits move in the same way in all terms. */
#define SHIFT PASSES({"10", SW_PASS_AND | SW_PASS_OR, SW_WHEN_ALWAYS})

static const sw_rule_row rows[] = {
	/* one operand */
	{ROW(ABS, elementwise)},
	{ROW(ACOS, elementwise)},
	{ROW(ACOSH, elementwise), ABOVE},
	{ROW(ASIN, elementwise)},
	{ROW(ASINH, elementwise), MONOTONE},
	{ROW(ATANH, elementwise)},
	{ROW(CBRT, elementwise), MONOTONE},
	{ROW(CEIL, elementwise), MONOTONE},
	/* as far as the types allow */
	{ROW(CONVERT, convert), MOVE},
	{ROW(COPY, elementwise), MOVE},
	{ROW(COSINE, elementwise)},
	{ROW(COSH, elementwise)},
	{ROW(COUNT_LEADING_ZEROS, elementwise)},
	{ROW(ERF, elementwise), MONOTONE},
	{ROW(EXPONENTIAL, elementwise), MONOTONE},
	{ROW(EXPONENTIAL_MINUS_ONE, elementwise), MONOTONE},
	{ROW(FLOOR, elementwise), MONOTONE},
	{ROW(IMAG, elementwise), LINEAR},
	{ROW(IS_FINITE, elementwise)},
	{ROW(LOG, elementwise), ABOVE},
	{ROW(LOG_PLUS_ONE, elementwise), ABOVE},
	{ROW(LOGISTIC, elementwise), MONOTONE},
	/* The least integer is its own negative, so only floats pass an order. */
	{ROW(NEGATE, elementwise), PASSES({"1", SW_PASS_SUM, SW_WHEN_ALWAYS},
                                          {"1", SW_PASS_ORDER, SW_WHEN_FLOAT, .reverses = true})},
	{ROW(NOT, elementwise), PASSES({"1", SW_PASS_LATTICE, SW_WHEN_ALWAYS, .reverses = true})},
	{ROW(POPCNT, elementwise)},
	{ROW(REAL, elementwise), LINEAR},
	{ROW(REDUCE_PRECISION, elementwise), MONOTONE},
	{ROW(ROUND_NEAREST_AFZ, elementwise), MONOTONE},
	{ROW(ROUND_NEAREST_EVEN, elementwise), MONOTONE},
	{ROW(RSQRT, elementwise), PASSES({"1", SW_PASS_MIN, SW_WHEN_ALWAYS, .reverses = true})},
	{ROW(SIGN, elementwise), MONOTONE},
	{ROW(SINE, elementwise)},
	{ROW(SINH, elementwise), MONOTONE},
	{ROW(SQRT, elementwise), ABOVE},
	{ROW(TAN, elementwise)},
	{ROW(TANH, elementwise), MONOTONE},
	{ROW(DOMAIN, elementwise), MOVE},
	/* two operands */
	{ROW(ADD, add), LINEAR},
	{ROW(AND, elementwise), LATTICE(SW_PASS_AND)},
	{ROW(ATAN2, elementwise)},
	{ROW(COMPARE, compare)},
	{ROW(COMPLEX, elementwise), LINEAR},
	{ROW(DIVIDE, elementwise), PASSES({"10", SW_PASS_SUM, SW_WHEN_FLOAT})},
	{ROW(MAXIMUM, elementwise), EXTREME(SW_PASS_MAX, SW_PASS_OR)},
	{ROW(MINIMUM, elementwise), EXTREME(SW_PASS_MIN, SW_PASS_AND)},
	{ROW(MULTIPLY, elementwise), BILINEAR},
	{ROW(OR, elementwise), LATTICE(SW_PASS_OR)},
	{ROW(POWER, elementwise)},
	{ROW(REMAINDER, elementwise)},
	{ROW(SHIFT_LEFT, elementwise),
         PASSES({"10", SW_PASS_SUM | SW_PASS_AND | SW_PASS_OR, SW_WHEN_ALWAYS})},
	{ROW(SHIFT_RIGHT_ARITHMETIC, elementwise), SHIFT},
	{ROW(SHIFT_RIGHT_LOGICAL, elementwise), SHIFT},
	{ROW(STOCHASTIC_CONVERT, elementwise)},
	{ROW(SUBTRACT, subtract), LINEAR},
	{ROW(XOR, elementwise)},
	{ROW(ADD_DEPENDENCY, dependency), PASSES({"10", SW_PASS_ANY, SW_WHEN_ALWAYS})},
	/* more */
	{ROW(CLAMP, elementwise),
         PASSES({"100", SW_PASS_ORDER, SW_WHEN_ALWAYS}, {"010", SW_PASS_ORDER, SW_WHEN_ALWAYS},
                {"001", SW_PASS_ORDER, SW_WHEN_ALWAYS})},
	{ROW(SELECT, elementwise), PASSES({"011", SW_PASS_ANY, SW_WHEN_ALWAYS})},
	{ROW(OPT_BARRIER, barrier), MOVE},
	/* The computation of a map is one of scalars. */
	{ROW(MAP, elementwise)},
};

const sw_rule_family sw_rules_elementwise = {"elementwise", rows, SW_COUNT(rows)};
