/* Recognise reducing computations that apply one known operation. */
#include "program/internal.h"

typedef struct monoid_row {
	sw_opcode opcode;
	sw_monoid monoid, on_pred;
} monoid_row;

/* On pred, addition is "or" and multiplication "and", as in XLA. */
static const monoid_row rows[] = {
	{SW_OP_ADD, SW_MONOID_SUM, SW_MONOID_OR},
	{SW_OP_MULTIPLY, SW_MONOID_PRODUCT, SW_MONOID_AND},
	{SW_OP_MAXIMUM, SW_MONOID_MAX, SW_MONOID_OR},
	{SW_OP_MINIMUM, SW_MONOID_MIN, SW_MONOID_AND},
	{SW_OP_AND, SW_MONOID_AND, SW_MONOID_AND},
	{SW_OP_OR, SW_MONOID_OR, SW_MONOID_OR},
};

static bool is_parameter(const sw_program *program, sw_id value, const sw_computation *c,
                         size_t number)
{
	return c->parameters.data[number] != SW_NO_ID &&
	       program->values.data[value].op == c->parameters.data[number];
}

/* Return whether the op takes parameters m and n, in either order. */
static bool takes_both(const sw_program *program, const sw_computation *c, const sw_op *op,
                       size_t m, size_t n)
{
	sw_id x = op->operands[0], y = op->operands[1];
	return (is_parameter(program, x, c, m) && is_parameter(program, y, c, n)) ||
	       (is_parameter(program, x, c, n) && is_parameter(program, y, c, m));
}

sw_monoid sw_computation_monoid_of(const sw_program *program, int32_t computation, uint32_t result)
{
	const sw_computation *c = &program->computations.data[computation];
	size_t n = c->results.len;
	if (!c->done || result >= n || c->parameters.len != 2 * n)
		return SW_MONOID_NONE;
	sw_shape shape = sw_value_shape(program, c->results.data[result]);
	const sw_op *root = sw_op_at(program, program->values.data[c->results.data[result]].op);
	if (shape.rank != 0 || root->n_operands != 2 ||
	    !takes_both(program, c, root, result, n + result))
		return SW_MONOID_NONE;
	for (size_t i = 0; i < SW_COUNT(rows); i++) {
		if ((sw_opcode)root->opcode == rows[i].opcode)
			return shape.type == SW_PRED ? rows[i].on_pred : rows[i].monoid;
	}
	return SW_MONOID_NONE;
}

sw_monoid sw_computation_monoid(const sw_program *program, int32_t computation)
{
	bool one = program->computations.data[computation].results.len == 1;
	return one ? sw_computation_monoid_of(program, computation, 0) : SW_MONOID_NONE;
}

bool sw_computation_returns_parameter(const sw_program *program, int32_t computation, int64_t which)
{
	const sw_computation *c = &program->computations.data[computation];
	const sw_op *op = sw_op_at(program, program->values.data[c->results.data[0]].op);
	return c->results.len == 1 && op->opcode == SW_OP_PARAMETER &&
	       op->attrs->parameter.number == which;
}
