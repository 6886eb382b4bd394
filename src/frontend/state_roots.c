/*
 * Which inputs must not be negative: those of which a root or a broken power is taken, or of the
 * next value of a state, as Adam does of second moments and batch normalisation of variances.
 *
 * An input is followed forward through ops that keep its sign where what they add or multiply does:
 * sums with anything else, products with scalars, selections and moves of elements. Where two inputs
 * meet, or an input meets itself (a square), neither is followed on.
 */
#include "frontend/sidecar.h"

#include <math.h>
#include <stdlib.h>

#include "program/number.h"

typedef struct following {
	const sw_program *program;
	int32_t *input; /* per value: the input + 1 that it is made of; 0: none */
} following;

/* Return whether all elements of a value are one scalar. */
static bool is_scalar(const sw_program *p, sw_id value)
{
	const sw_op *op = sw_op_at(p, p->values.data[value].op);
	if (op->opcode == SW_OP_BROADCAST)
		return sw_value_shape(p, op->operands[0]).rank == 0;
	return sw_value_shape(p, value).rank == 0 || op->opcode == SW_OP_CONSTANT;
}

/* Return the input that the first result goes on being made of, as in `input` of `following`. */
static int32_t goes_on(const following *x, const sw_op *op)
{
	int32_t a = op->n_operands ? x->input[op->operands[0]] : 0;
	int32_t b = op->n_operands > 1 ? x->input[op->operands[1]] : 0;
	switch (op->opcode) {
	case SW_OP_COPY:
	case SW_OP_CONVERT:
	case SW_OP_RESHAPE:
	case SW_OP_BROADCAST:
	case SW_OP_TRANSPOSE:
		return a;
	case SW_OP_ADD:
	case SW_OP_MAXIMUM:
		return a && b ? 0 : a + b;
	case SW_OP_SELECT:
		a = x->input[op->operands[2]];
		return b && a && a != b ? 0 : SW_MAX(a, b);
	case SW_OP_DIVIDE:
		return a && !b && is_scalar(x->program, op->operands[1]) ? a : 0;
	case SW_OP_MULTIPLY:
		if (a && b)
			return 0;
		return is_scalar(x->program, op->operands[a ? 1 : 0]) ? a + b : 0;
	default:
		return 0;
	}
}

bool sw_state_real_constant(const sw_program *program, sw_id value, double *number)
{
	const sw_op *op = sw_op_at(program, program->values.data[value].op);
	if (op->opcode == SW_OP_BROADCAST)
		op = sw_op_at(program, program->values.data[op->operands[0]].op);
	sw_shape shape = sw_value_shape(program, op->first_result);
	if (op->opcode != SW_OP_CONSTANT || !op->attrs->constant.data || shape.rank != 0 ||
	    sw_type_kind_of(shape.type) != SW_KIND_FLOAT)
		return false;
	*number = sw_number_get(shape.type, op->attrs->constant.data, 0);
	return true;
}

/* Return whether an exponent is known to be a whole number, which takes negative numbers too. */
static bool is_whole(const sw_program *p, sw_id exponent)
{
	double number;
	if (sw_type_kind_of(sw_value_shape(p, exponent).type) != SW_KIND_FLOAT)
		return true;
	return sw_state_real_constant(p, exponent, &number) && number == floor(number);
}

/* Return whether the first operand must not be negative. */
static bool takes_root(const sw_program *p, const sw_op *op)
{
	return op->opcode == SW_OP_SQRT || op->opcode == SW_OP_RSQRT ||
	       (op->opcode == SW_OP_POWER && !is_whole(p, op->operands[1]));
}

void sw_state_find_roots(const sw_program *program, const sw_id *inputs, uint32_t n_inputs,
                         bool *rooted)
{
	following x = {.program = program,
	               .input = sw_alloc((program->values.len + 1) * sizeof(*x.input))};
	const sw_computation *entry = sw_entry(program);
	for (uint32_t i = 0; i < n_inputs; i++)
		if (sw_type_kind_of(sw_value_shape(program, inputs[i]).type) == SW_KIND_FLOAT)
			x.input[inputs[i]] = (int32_t)i + 1;
	for (size_t k = 0; k < entry->ops.len; k++) {
		const sw_op *op = sw_op_at(program, entry->ops.data[k]);
		if (op->opcode == SW_OP_PARAMETER || op->n_results != 1)
			continue;
		if (takes_root(program, op) && x.input[op->operands[0]])
			rooted[x.input[op->operands[0]] - 1] = true;
		x.input[op->first_result] = goes_on(&x, op);
	}
	free(x.input);
}
