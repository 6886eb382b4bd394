/* Functions of CHLO that HLO has no op for: their formulas are written out. */
#include "frontend/formula.h"
#include "frontend/mlir.h"

#include <string.h>

static const sw_formula *formula_of(const sw_mlir *m, const sw_mlir_op *op)
{
	static const char dialect[] = "chlo.";
	size_t n = sizeof(dialect) - 1;
	if (op->name.length <= n || memcmp(op->name.start, dialect, n) != 0 || !op->operands.n)
		return NULL;
	sw_span name = {op->name.start + n, op->name.length - n};
	return sw_formula_find(name, sw_mlir_operand_shape(m, op, 0).type);
}

bool sw_mlir_is_special(const sw_mlir *m, const sw_mlir_op *op)
{
	return formula_of(m, op) != NULL;
}

sw_status sw_mlir_emit_special(sw_mlir *m, int32_t computation, const sw_mlir_op *op)
{
	sw_shape shape = sw_mlir_operand_shape(m, op, 0);
	const sw_formula *formula = formula_of(m, op);
	uint32_t n = sw_formula_arity(formula);
	sw_id operands[2];
	SW_TRY(sw_mlir_check_counts(m, op, n, 1));
	for (uint32_t i = 0; i < n; i++) {
		operands[i] = sw_mlir_operand(m, op, i);
		if (!sw_shape_equal(sw_mlir_operand_shape(m, op, i), shape))
			return sw_mlir_fail(m, op, "the operands have different types");
	}
	return sw_mlir_forward(m, op, sw_formula_emit(m->program, computation, formula, operands));
}
