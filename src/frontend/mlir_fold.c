/*
 * What JAX's own way from StableHLO to HLO simplifies, so that both forms of a program give the
 * same plan: x + 0, x * 1, arithmetic of constants, slices and pads that change nothing. Of
 * operands that may change places, a constant is the second.
 */
#include "frontend/mlir.h"

#include "program/number.h"

/* Find the one number that all elements of a value are; false if it is no such constant. */
static bool find_splat(const sw_program *p, sw_id value, double *number)
{
	const sw_op *op = sw_op_at(p, p->values.data[value].op);
	if (op->opcode == SW_OP_BROADCAST && op->attrs->dims.dims.n == 0)
		op = sw_op_at(p, p->values.data[op->operands[0]].op);
	if (op->opcode != SW_OP_CONSTANT || !op->attrs->constant.data ||
	    op->attrs->constant.shape.rank != 0)
		return false;
	sw_type type = op->attrs->constant.shape.type;
	if (type != SW_F32 && type != SW_F64 && type != SW_BF16 && type != SW_F16 && type != SW_S32)
		return false;
	*number = sw_number_get(type, op->attrs->constant.data, 0);
	return true;
}

static sw_id emit_splat(sw_mlir *m, int32_t c, sw_shape shape, double number)
{
	sw_id scalar = sw_emit_scalar(m->program, c, shape.type, number);
	if (shape.rank == 0)
		return scalar;
	return sw_emit_broadcast(m->program, c, scalar, shape, NULL);
}

/* Compute an op of floats on numbers, rounded as f32 where that is the type. */
static bool compute(sw_opcode opcode, sw_type type, double a, double b, double *result)
{
	bool single = type == SW_F32;
	if (!single && type != SW_F64)
		return false;
	float x = (float)a, y = (float)b;
	switch (opcode) {
	case SW_OP_ADD:
		*result = single ? (double)(x + y) : a + b;
		return true;
	case SW_OP_SUBTRACT:
		*result = single ? (double)(x - y) : a - b;
		return true;
	case SW_OP_MULTIPLY:
		*result = single ? (double)(x * y) : a * b;
		return true;
	case SW_OP_DIVIDE:
		*result = single ? (double)(x / y) : a / b;
		return b != 0;
	case SW_OP_NEGATE:
		*result = -a;
		return true;
	default:
		return false;
	}
}

/* Return the operand that an op is equal to, SW_NO_ID if there is none. */
static sw_id neutral(sw_opcode opcode, const sw_id *x, const bool *known, const double *number)
{
	bool sum = opcode == SW_OP_ADD, product = opcode == SW_OP_MULTIPLY;
	double unit = sum || opcode == SW_OP_SUBTRACT ? 0 : 1;
	if (!sum && !product && opcode != SW_OP_SUBTRACT && opcode != SW_OP_DIVIDE)
		return SW_NO_ID;
	if (known[1] && number[1] == unit)
		return x[0];
	return (sum || product) && known[0] && number[0] == unit ? x[1] : SW_NO_ID;
}

bool sw_mlir_fold(sw_mlir *m, int32_t c, const sw_mlir_op *op, sw_opcode opcode)
{
	uint32_t n = op->operands.n;
	if (op->results.n != 1 || n < 1 || n > 2)
		return false;
	sw_shape shape = sw_mlir_result_shape(m, op, 0);
	sw_id x[2] = {SW_NO_ID, SW_NO_ID}, result = SW_NO_ID;
	bool known[2] = {false, false};
	double number[2] = {0, 0}, value;
	for (uint32_t i = 0; i < n; i++) {
		x[i] = sw_mlir_operand(m, op, i);
		known[i] = find_splat(m->program, x[i], &number[i]);
		if (!sw_shape_equal(sw_value_shape(m->program, x[i]), shape))
			return false;
	}
	if (n == 1 && opcode == SW_OP_MULTIPLY) { /* chlo.square */
		x[1] = x[0];
		known[1] = known[0];
		number[1] = number[0];
		n = 2;
	}
	if (known[0] && (n == 1 || known[1]) && (opcode == SW_OP_NEGATE) == (n == 1) &&
	    compute(opcode, shape.type, number[0], number[1], &value))
		result = emit_splat(m, c, shape, value);
	else if (n == 2 && !(known[0] && known[1]))
		result = neutral(opcode, x, known, number);
	if (result == SW_NO_ID)
		return false;
	m->ids[op->results.first] = result;
	return true;
}

void sw_mlir_constant_right(const sw_mlir *m, sw_opcode opcode, sw_id operands[2])
{
	static const sw_opcode commutative[] = {SW_OP_ADD,     SW_OP_MULTIPLY, SW_OP_MAXIMUM,
	                                        SW_OP_MINIMUM, SW_OP_AND,      SW_OP_OR,
	                                        SW_OP_XOR};
	double ignored;
	bool swaps = false;
	for (size_t i = 0; i < SW_COUNT(commutative); i++)
		swaps = swaps || commutative[i] == opcode;
	if (!swaps || !find_splat(m->program, operands[0], &ignored) ||
	    find_splat(m->program, operands[1], &ignored))
		return;
	sw_id first = operands[0];
	operands[0] = operands[1];
	operands[1] = first;
}

bool sw_mlir_forward_alike(sw_mlir *m, const sw_mlir_op *op)
{
	sw_id x = sw_mlir_operand(m, op, 0);
	if (!sw_shape_equal(sw_value_shape(m->program, x), sw_mlir_result_shape(m, op, 0)))
		return false;
	m->ids[op->results.first] = x;
	return true;
}
