/* Linear algebra: leading (batch) dimensions are parallel; the matrices, and dimensions that are
 * transformed, are whole, because every element of the result depends on all of them. */
#include "rules/row.h"

static void leading(sw_rule_builder *b, int32_t n)
{
	sw_shape shape = sw_rule_result_shape(b, 0);

	for (int32_t d = 0; d < n; d++) {
		int32_t factor = sw_rule_add_parallel(b, shape.dims[d]);
		for (int32_t i = 0; i < b->rule->n_operands; i++)
			sw_rule_place_operand(b, factor, i, d, 1);
		sw_rule_place_result(b, factor, 0, d, 1);
	}
}

static void cholesky(sw_rule_builder *b)
{
	sw_rule_whole(b, "cholesky needs its whole matrix");
	leading(b, b->rule->result_ranks[0] - 2);
}

static void fft(sw_rule_builder *b)
{
	sw_rule_whole(b, "fft needs the dimensions that it transforms");
	leading(b, b->rule->result_ranks[0] - b->op->attrs->fft.length.n);
}

/* In a x = b the columns of b are independent of each other (its rows, if x a = b). */
static void triangular_solve(sw_rule_builder *b)
{
	int32_t rank = b->rule->result_ranks[0];
	int32_t dim = b->op->attrs->triangular_solve.left_side ? rank - 1 : rank - 2;

	sw_rule_whole(b, "triangular-solve needs its whole matrix");
	leading(b, rank - 2);
	int32_t factor = sw_rule_add_parallel(b, sw_rule_result_shape(b, 0).dims[dim]);
	sw_rule_place_operand(b, factor, 1, dim, 1);
	sw_rule_place_result(b, factor, 0, dim, 1);
}

static const sw_rule_row rows[] = {
	{ROW(CHOLESKY, cholesky)},
	{ROW(FFT, fft), PASSES({"1", SW_PASS_SUM, SW_WHEN_ALWAYS})},
	{ROW(TRIANGULAR_SOLVE, triangular_solve), PASSES({"01", SW_PASS_SUM, SW_WHEN_ALWAYS})},
};

const sw_rule_family sw_rules_linalg = {"linalg", rows, SW_COUNT(rows)};
