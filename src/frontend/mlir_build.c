/* Short forms for the writers of ops. */
#include "frontend/mlir.h"

#include <stdarg.h>
#include <stdio.h>

sw_status sw_mlir_fail(sw_mlir *m, const sw_mlir_op *op, const char *format, ...)
{
	char message[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	return sw_lex_fail(&m->lexer, op->place, "%.*s: %s", (int)SW_MIN(op->name.length, 60),
	                   op->name.start, message);
}

sw_shape sw_mlir_result_shape(const sw_mlir *m, const sw_mlir_op *op, uint32_t i)
{
	return m->values.data[op->results.first + i].shape;
}

sw_id sw_mlir_operand(const sw_mlir *m, const sw_mlir_op *op, uint32_t i)
{
	return m->ids[m->uses.data[op->operands.first + i]];
}

sw_shape sw_mlir_operand_shape(const sw_mlir *m, const sw_mlir_op *op, uint32_t i)
{
	return m->values.data[m->uses.data[op->operands.first + i]].shape;
}

sw_status sw_mlir_check_counts(sw_mlir *m, const sw_mlir_op *op, uint32_t operands,
                               uint32_t results)
{
	if (op->operands.n != operands)
		return sw_mlir_fail(m, op, "expected %u operand%s, found %u", operands,
		                    operands == 1 ? "" : "s", op->operands.n);
	if (op->results.n != results)
		return sw_mlir_fail(m, op, "expected %u result%s, found %u", results,
		                    results == 1 ? "" : "s", op->results.n);
	return SW_OK;
}

sw_status sw_mlir_build(sw_mlir *m, int32_t computation, const sw_mlir_op *op, sw_op_spec *spec)
{
	uint32_t n = op->results.n;
	sw_error trouble = {0};
	sw_id first;
	sw_id *operands = SW_NEW_N(&m->scratch, sw_id, op->operands.n + 1);
	sw_shape *shapes = SW_NEW_N(&m->scratch, sw_shape, n + 1);
	for (uint32_t i = 0; i < op->operands.n; i++)
		operands[i] = sw_mlir_operand(m, op, i);
	for (uint32_t i = 0; i < n; i++)
		shapes[i] = sw_mlir_result_shape(m, op, i);
	if (!spec->operands) {
		spec->operands = operands;
		spec->n_operands = op->operands.n;
	}
	if (!spec->shapes) {
		spec->shapes = shapes;
		spec->n_results = n;
	}
	spec->line = op->line;
	if (sw_build_op(m->program, computation, spec, &first, &trouble) != SW_OK)
		return sw_mlir_fail(m, op, "%s", trouble.message);
	for (uint32_t i = 0; i < n; i++)
		m->ids[op->results.first + i] = first + i;
	return SW_OK;
}

sw_status sw_mlir_build_inner(sw_mlir *m, int32_t computation, const sw_mlir_op *op,
                              sw_opcode opcode, const sw_id *operands, uint32_t n,
                              const sw_attrs *attrs, const sw_shape *shape, sw_id *result)
{
	sw_op_spec spec = {.opcode = opcode,
	                   .operands = operands,
	                   .n_operands = n,
	                   .attrs = attrs,
	                   .shapes = shape,
	                   .n_results = shape != NULL,
	                   .line = op->line};
	sw_error trouble = {0};
	if (sw_build_op(m->program, computation, &spec, result, &trouble) != SW_OK)
		return sw_mlir_fail(m, op, "%s", trouble.message);
	return SW_OK;
}

sw_status sw_mlir_forward(sw_mlir *m, const sw_mlir_op *op, sw_id value)
{
	SW_TRY(sw_mlir_check_counts(m, op, op->operands.n, 1));
	if (!sw_shape_equal(sw_value_shape(m->program, value), sw_mlir_result_shape(m, op, 0)))
		return sw_mlir_fail(m, op, "the result has another type than the operand");
	m->ids[op->results.first] = value;
	return SW_OK;
}

sw_status sw_mlir_ints(sw_mlir *m, const sw_mlir_op *op, const char *pretty, const char *generic,
                       sw_ints *ints)
{
	sw_span value = sw_mlir_attribute_of(m, op, pretty);
	if (!value.length)
		value = sw_mlir_attribute_of(m, op, generic);
	*ints = (sw_ints){0};
	if (!value.length)
		return sw_mlir_fail(m, op, "the attribute '%s' is missing", generic);
	return sw_mlir_ints_of(m, value, ints);
}

sw_status sw_mlir_ints_or(sw_mlir *m, const sw_mlir_op *op, const char *pretty, const char *generic,
                          int32_t n, int64_t otherwise, sw_ints *ints)
{
	int64_t filled[2 * SW_MAX_RANK];
	if (sw_mlir_attribute_of(m, op, pretty).length ||
	    sw_mlir_attribute_of(m, op, generic).length) {
		SW_TRY(sw_mlir_ints(m, op, pretty, generic, ints));
		if (ints->n != n)
			return sw_mlir_fail(m, op, "%s: expected %d integers, found %d", generic, n,
			                    ints->n);
		return SW_OK;
	}
	for (int32_t i = 0; i < n && i < 2 * SW_MAX_RANK; i++)
		filled[i] = otherwise;
	*ints = sw_build_ints(m->program, filled, SW_MIN(n, 2 * SW_MAX_RANK));
	return SW_OK;
}

sw_status sw_mlir_int(sw_mlir *m, const sw_mlir_op *op, const char *pretty, const char *generic,
                      int64_t *value)
{
	sw_ints ints;
	SW_TRY(sw_mlir_ints(m, op, pretty, generic, &ints));
	if (ints.n != 1)
		return sw_mlir_fail(m, op, "%s: expected one integer, found %d", generic, ints.n);
	*value = ints.v[0];
	return SW_OK;
}

bool sw_mlir_forward_alike(sw_mlir *m, const sw_mlir_op *op)
{
	sw_id x = sw_mlir_operand(m, op, 0);
	if (!sw_shape_equal(sw_value_shape(m->program, x), sw_mlir_result_shape(m, op, 0)))
		return false;
	m->ids[op->results.first] = x;
	return true;
}
