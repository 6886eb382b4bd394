/*
 * Fusions of a product and an addend, as where a loop adds up the gradients of a weight: the
 * product is added to the addend where it lies, so that it has no buffer, and the sum is written
 * once. The library adds it up in parts of the contracted dimension, each of which is rounded.
 */
#include <string.h>

#include "interpret/kernel.h"

static const sw_op *op_of(const sw_program *program, sw_id value)
{
	return sw_op_at(program, program->values.data[value].op);
}

/* Find which operand of the fusion a value of its computation is, perhaps in another shape. */
static bool is_parameter(const sw_program *program, sw_id value, uint32_t *operand)
{
	const sw_op *op = op_of(program, value);
	while (op->opcode == SW_OP_RESHAPE)
		op = op_of(program, op->operands[0]);
	if (op->opcode == SW_OP_PARAMETER)
		*operand = (uint32_t)op->attrs->parameter.number;
	return op->opcode == SW_OP_PARAMETER;
}

/* Are there but one product and one addition, beside parameters and other shapes? Then the addition
 * alone reads the product, as all is read by something. */
static bool has_two_ops(const sw_program *program, const sw_computation *c)
{
	size_t ops = 0;
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(program, c->ops.data[i]);
		ops += op->opcode != SW_OP_PARAMETER && op->opcode != SW_OP_RESHAPE;
	}
	return ops == 2;
}

static bool is_library_type(sw_type type)
{
	return type == SW_F32 || type == SW_F64 || type == SW_C64 || type == SW_C128;
}

bool sw_dot_add_find(const sw_program *program, const sw_op *op, sw_dot_add *found)
{
	if (op->opcode != SW_OP_FUSION || op->n_results != 1)
		return false;
	const sw_computation *c = &program->computations.data[op->called[0]];
	if (!has_two_ops(program, c) || c->results.len != 1 || op->n_operands != c->parameters.len)
		return false;
	const sw_op *add = op_of(program, c->results.data[0]);
	if (add->opcode != SW_OP_ADD)
		return false;
	for (uint32_t side = 0; side < 2; side++) {
		const sw_op *dot = op_of(program, add->operands[side]);
		sw_type type = sw_value_shape(program, add->first_result).type;
		if (dot->opcode != SW_OP_DOT || !is_library_type(type) ||
		    !is_parameter(program, add->operands[1 - side], &found->addend))
			continue;
		found->dot = dot;
		return is_parameter(program, dot->operands[0], &found->lhs) &&
		       is_parameter(program, dot->operands[1], &found->rhs) &&
		       sw_value_shape(program, dot->operands[0]).type == type &&
		       sw_value_shape(program, dot->operands[1]).type == type &&
		       found->addend != found->lhs && found->addend != found->rhs;
	}
	return false;
}

int64_t sw_workspace_dot_add(const sw_program *program, const sw_op *op, const sw_plan_op *plan)
{
	sw_dot_add found;
	return sw_dot_add_find(program, op, &found) ? sw_workspace_dot(program, found.dot, plan)
	                                            : INT64_MAX;
}

/* Where the addend is an operand of the product too, the sum can't be made in its place. */
static sw_status start_with_addend(sw_call *call, const sw_dot_add *found, sw_error *err)
{
	const sw_tensor *addend = &call->in[found->addend];
	if (addend->buffer != call->in[found->lhs].buffer &&
	    addend->buffer != call->in[found->rhs].buffer)
		return sw_result_copy(call, 0, found->addend, err);
	SW_TRY(sw_result_at_place(call, 0, err));
	memcpy(sw_tensor_data(call->out[0]), sw_tensor_data(*addend), call->out[0].buffer->bytes);
	return SW_OK;
}

sw_status sw_kernel_dot_add(sw_call *call, sw_error *err)
{
	sw_dot_add found;
	if (!sw_dot_add_find(call->program, call->op, &found))
		return sw_fail(err, SW_ERR_INTERNAL, "'%s' is no product with an addend",
		               call->op->name);
	sw_tensor lhs = call->in[found.lhs], rhs = call->in[found.rhs];
	lhs.shape = sw_value_shape(call->program, found.dot->operands[0]);
	rhs.shape = sw_value_shape(call->program, found.dot->operands[1]);
	SW_TRY(start_with_addend(call, &found, err));
	return sw_dot_add_to(call->interpreter, lhs, rhs, found.dot->attrs, call->out[0], err);
}
