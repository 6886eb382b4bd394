/*
 * Elementwise ops: each dimension is one PARALLEL factor of the result and of every operand; a scalar beside larger operands
 * (select's predicate, clamp's bounds) has none. What differs from row to row is which partial values pass.
 */
#include "rules/row.h"

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

/* Several values pass unchanged. Dimensions of equal size at the same place share a factor, so that one atom can split
 * the batch of all of them; a value without that dimension is not concerned by the factor. */
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

/* x of add-dependency(x, token), and the token. */
static void dependency(sw_rule_builder *b)
{
	sw_shape shape = sw_rule_result_shape(b, 0);

	for (int32_t d = 0; d < shape.rank; d++) {
		int32_t factor = sw_rule_add_parallel(b, shape.dims[d]);
		sw_rule_place_operand(b, factor, 0, d, 1);
		sw_rule_place_result(b, factor, 0, d, 1);
	}
}

/* Passages. LINEAR: f(x + y) = f(x) + f(y). BILINEAR: in each operand alone. MONOTONE: nondecreasing, also
 * where single terms of a maximum may lie (log and sqrt of a negative term are NaN: not listed). */
#define LINEAR PASSES({"*", SW_PASS_SUM, SW_WHEN_ALWAYS})
#define BILINEAR PASSES({"10", SW_PASS_SUM, SW_WHEN_ALWAYS}, {"01", SW_PASS_SUM, SW_WHEN_ALWAYS})
#define MOVE PASSES({"*", SW_PASS_ANY, SW_WHEN_ALWAYS})
#define MONOTONE PASSES({"1", SW_PASS_ORDER, SW_WHEN_ALWAYS})

static const sw_rule_row rows[] = {
	/* one operand */
	{ROW(ABS, elementwise)},
	{ROW(ACOS, elementwise)},
	{ROW(ACOSH, elementwise)},
	{ROW(ASIN, elementwise)},
	{ROW(ASINH, elementwise)},
	{ROW(ATANH, elementwise)},
	{ROW(CBRT, elementwise)},
	{ROW(CEIL, elementwise), MONOTONE},
	{ROW(CONVERT, elementwise), MOVE}, /* as far as the types bear it */
	{ROW(COPY, elementwise), MOVE},
	{ROW(COSINE, elementwise)},
	{ROW(COSH, elementwise)},
	{ROW(COUNT_LEADING_ZEROS, elementwise)},
	{ROW(ERF, elementwise)},
	{ROW(EXPONENTIAL, elementwise), MONOTONE},
	{ROW(EXPONENTIAL_MINUS_ONE, elementwise)},
	{ROW(FLOOR, elementwise), MONOTONE},
	{ROW(IMAG, elementwise), LINEAR},
	{ROW(IS_FINITE, elementwise)},
	{ROW(LOG, elementwise)},
	{ROW(LOG_PLUS_ONE, elementwise)},
	{ROW(LOGISTIC, elementwise)},
	{ROW(NEGATE, elementwise), LINEAR},
	{ROW(NOT, elementwise)},
	{ROW(POPCNT, elementwise)},
	{ROW(REAL, elementwise), LINEAR},
	{ROW(REDUCE_PRECISION, elementwise), MONOTONE},
	{ROW(ROUND_NEAREST_AFZ, elementwise), MONOTONE},
	{ROW(ROUND_NEAREST_EVEN, elementwise), MONOTONE},
	{ROW(RSQRT, elementwise)},
	{ROW(SIGN, elementwise), MONOTONE},
	{ROW(SINE, elementwise)},
	{ROW(SINH, elementwise)},
	{ROW(SQRT, elementwise)},
	{ROW(TAN, elementwise)},
	{ROW(TANH, elementwise)},
	{ROW(DOMAIN, elementwise), MOVE},
	/* two operands */
	{ROW(ADD, elementwise), LINEAR},
	{ROW(AND, elementwise), PASSES({"11", SW_PASS_AND, SW_WHEN_ALWAYS})},
	{ROW(ATAN2, elementwise)},
	{ROW(COMPARE, elementwise)},
	{ROW(COMPLEX, elementwise), LINEAR},
	{ROW(DIVIDE, elementwise), PASSES({"10", SW_PASS_SUM, SW_WHEN_FLOAT})},
	{ROW(MAXIMUM, elementwise),
         PASSES({"11", SW_PASS_MAX, SW_WHEN_ALWAYS}, {"11", SW_PASS_OR, SW_WHEN_PRED})},
	{ROW(MINIMUM, elementwise),
         PASSES({"11", SW_PASS_MIN, SW_WHEN_ALWAYS}, {"11", SW_PASS_AND, SW_WHEN_PRED})},
	{ROW(MULTIPLY, elementwise), BILINEAR},
	{ROW(OR, elementwise), PASSES({"11", SW_PASS_OR, SW_WHEN_ALWAYS})},
	{ROW(POWER, elementwise)},
	{ROW(REMAINDER, elementwise)},
	{ROW(SHIFT_LEFT, elementwise)},
	{ROW(SHIFT_RIGHT_ARITHMETIC, elementwise)},
	{ROW(SHIFT_RIGHT_LOGICAL, elementwise)},
	{ROW(STOCHASTIC_CONVERT, elementwise)},
	{ROW(SUBTRACT, elementwise), LINEAR},
	{ROW(XOR, elementwise)},
	{ROW(ADD_DEPENDENCY, dependency), PASSES({"10", SW_PASS_ANY, SW_WHEN_ALWAYS})},
	/* more */
	{ROW(CLAMP, elementwise), PASSES({"010", SW_PASS_ORDER, SW_WHEN_ALWAYS})},
	{ROW(SELECT, elementwise), PASSES({"011", SW_PASS_ANY, SW_WHEN_ALWAYS})},
	{ROW(OPT_BARRIER, barrier), MOVE},
};

const sw_rule_family sw_rules_elementwise = {"elementwise", rows, SW_COUNT(rows)};
