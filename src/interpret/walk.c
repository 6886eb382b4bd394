/*
 * The walker: runs the ops of one computation in order. A value lives in interpreter->values from its op
 * to its last use. There is no recursion in a program, so each value has at most one place; bodies of
 * loops and called computations run through the same walker.
 */
#include <string.h>

#include "interpret/kernel.h"

/* ---- results and operands of a call ------------------------------------------------------------ */

static sw_status give_buffer(sw_call *call, uint32_t i, int64_t elements, sw_error *err)
{
	sw_shape shape = call->shapes[i];
	size_t bytes = (size_t)(elements * sw_type_bytes(shape.type));
	call->out[i].shape = shape;
	call->out[i].buffer = sw_pool_take(&call->interpreter->pool, bytes);
	if (!call->out[i].buffer)
		return sw_fail(err, SW_ERR_IO, "not enough memory: '%s' needs %zu bytes", call->op->name,
		               bytes);
	return SW_OK;
}

sw_status sw_result_new(sw_call *call, uint32_t i, sw_error *err)
{
	return give_buffer(call, i, sw_shape_elements(call->shapes[i]), err);
}

bool sw_operand_is_free(const sw_call *call, uint32_t operand)
{
	return call->plan->dies[operand] && call->in[operand].buffer->references == 1;
}

sw_status sw_result_over(sw_call *call, uint32_t i, int64_t elements, sw_error *err)
{
	sw_type type = call->shapes[i].type;
	size_t bytes = (size_t)(elements * sw_type_bytes(type));
	for (uint32_t k = 0; k < call->op->n_operands; k++) {
		if (call->in[k].shape.type == type && call->in[k].buffer->bytes == bytes &&
		    sw_operand_is_free(call, k)) {
			sw_result_share(call, i, k);
			return SW_OK;
		}
	}
	return give_buffer(call, i, elements, err);
}

void sw_result_share(sw_call *call, uint32_t i, uint32_t operand)
{
	call->out[i] = sw_tensor_keep(call->in[operand]);
	call->out[i].shape = call->shapes[i];
}

sw_status sw_result_copy(sw_call *call, uint32_t i, uint32_t operand, sw_error *err)
{
	if (sw_operand_is_free(call, operand)) {
		sw_result_share(call, i, operand);
		return SW_OK;
	}
	sw_status status = sw_result_new(call, i, err);
	if (status == SW_OK)
		memcpy(sw_tensor_data(call->out[i]), sw_tensor_data(call->in[operand]),
		       call->out[i].buffer->bytes);
	return status;
}

sw_status sw_scratch_new(sw_interpreter *interpreter, sw_shape shape, sw_tensor *tensor, sw_error *err)
{
	size_t bytes = (size_t)sw_shape_bytes(shape);
	tensor->shape = shape;
	tensor->buffer = sw_pool_take(&interpreter->pool, bytes);
	if (!tensor->buffer)
		return sw_fail(err, SW_ERR_IO, "not enough memory for %zu bytes of working space", bytes);
	return SW_OK;
}

sw_status sw_write_out_splat(sw_interpreter *interpreter, sw_tensor *tensor, sw_error *err)
{
	sw_tensor dense;
	if (!sw_is_splat(*tensor))
		return SW_OK;
	sw_status status = sw_scratch_new(interpreter, tensor->shape, &dense, err);
	if (status != SW_OK)
		return status;
	sw_fill_elements(sw_tensor_data(dense), sw_tensor_data(*tensor),
	                 (size_t)sw_type_bytes(dense.shape.type), sw_shape_elements(dense.shape));
	sw_pool_drop(&interpreter->pool, tensor);
	*tensor = dense;
	return SW_OK;
}

/* ---- the walk ------------------------------------------------------------------------------------ */

static sw_status gather_operands(sw_interpreter *interpreter, const sw_plan_op *plan, const sw_op *op,
                                 bool lanes, sw_error *err)
{
	for (uint32_t i = 0; i < op->n_operands; i++) {
		sw_tensor *value = &interpreter->values[op->operands[i]];
		sw_status status = SW_OK;
		if (!plan->kernel.splats && !lanes)
			status = sw_write_out_splat(interpreter, value, err);
		if (status != SW_OK)
			return status;
		plan->in[i] = *value;
	}
	return SW_OK;
}

static sw_status observe(sw_interpreter *interpreter, const sw_plan_op *plan, const sw_op *op,
                         sw_error *err)
{
	for (uint32_t i = 0; i < op->n_results; i++) {
		sw_tensor *value = &interpreter->values[op->first_result + i];
		sw_status status = sw_write_out_splat(interpreter, value, err);
		if (status != SW_OK)
			return status;
		plan->out[i] = *value;
	}
	interpreter->options.observe(interpreter->options.observe_context, plan->op, plan->out);
	return SW_OK;
}

static sw_status run_op(sw_interpreter *interpreter, const sw_plan_op *plan, const int64_t *lanes,
                        sw_error *err)
{
	const sw_op *op = sw_op_at(interpreter->program, plan->op);
	sw_call call = {.interpreter = interpreter,
	                .program = interpreter->program,
	                .op = op,
	                .plan = plan,
	                .in = plan->in,
	                .out = plan->out,
	                .shapes = plan->shapes,
	                .lanes = lanes};
	sw_shape lane_shape;
	if (lanes) {
		lane_shape = (sw_shape){.type = plan->shapes[0].type, .rank = 1, .dims = lanes};
		if (op->n_results == 1)
			call.shapes = &lane_shape;
	}
	sw_status status = gather_operands(interpreter, plan, op, lanes != NULL, err);
	if (status != SW_OK)
		return status;
	for (uint32_t i = 0; i < op->n_results; i++)
		plan->out[i].buffer = NULL;
	status = plan->kernel.run(&call, err);
	for (uint32_t i = 0; i < op->n_operands; i++) {
		if (plan->dies[i])
			sw_pool_drop(&interpreter->pool, &interpreter->values[op->operands[i]]);
	}
	for (uint32_t i = 0; i < op->n_results; i++)
		interpreter->values[op->first_result + i] = plan->out[i];
	return status;
}

static void drop_values(sw_interpreter *interpreter, const sw_computation *computation)
{
	for (size_t k = 0; k < computation->ops.len; k++) {
		const sw_op *op = sw_op_at(interpreter->program, computation->ops.data[k]);
		if (op->opcode == SW_OP_CONSTANT)
			continue;
		for (uint32_t i = 0; i < op->n_results; i++)
			sw_pool_drop(&interpreter->pool, &interpreter->values[op->first_result + i]);
	}
}

sw_status sw_interpret_computation(sw_interpreter *interpreter, int32_t computation, const int64_t *lanes,
                                   sw_tensor *results, sw_error *err)
{
	const sw_plan *plan = &interpreter->plans[computation];
	const sw_computation *c = &interpreter->program->computations.data[computation];
	bool watched = interpreter->options.observe && computation == interpreter->program->entry;
	sw_status status = SW_OK;
	for (size_t k = 0; status == SW_OK && k < plan->n_ops; k++) {
		const sw_plan_op *op_plan = &plan->ops[k];
		const sw_op *op = sw_op_at(interpreter->program, op_plan->op);
		if (interpreter->options.stop && *interpreter->options.stop)
			status = sw_fail(err, SW_ERR_IO, "stopped before '%s'", op->name);
		else if (op_plan->kernel.run)
			status = run_op(interpreter, op_plan, lanes, err);
		if (status == SW_OK && watched)
			status = observe(interpreter, op_plan, op, err);
		for (uint32_t i = 0; op_plan->unused && i < op->n_results; i++) {
			if (op_plan->unused[i])
				sw_pool_drop(&interpreter->pool,
				             &interpreter->values[op->first_result + i]);
		}
	}
	for (size_t i = 0; status == SW_OK && i < c->results.len; i++)
		results[i] = sw_tensor_keep(interpreter->values[c->results.data[i]]);
	drop_values(interpreter, c);
	return status;
}

sw_status sw_interpret_lanes(sw_interpreter *interpreter, int32_t computation, int64_t lanes,
                             const sw_tensor *in, sw_tensor *out, sw_error *err)
{
	const sw_plan *plan = &interpreter->plans[computation];
	for (uint32_t i = 0; i < plan->n_inputs; i++)
		interpreter->values[plan->inputs[i]] = sw_tensor_keep(in[i]);
	return sw_interpret_computation(interpreter, computation, &lanes, out, err);
}

/* ---- questions about computations ------------------------------------------------------------------ */

static bool op_is_elementwise(const sw_program *program, const sw_op *op)
{
	switch (sw_opcode_class(op->opcode)) {
	case SW_CLASS_UNARY:
	case SW_CLASS_BINARY:
	case SW_CLASS_TERNARY:
		return true;
	default:
		break;
	}
	for (uint32_t i = 0; i < op->n_results; i++) {
		if (sw_value_shape(program, op->first_result + i).rank != 0)
			return false;
	}
	switch ((sw_opcode)op->opcode) {
	case SW_OP_PARAMETER:
	case SW_OP_CONSTANT:
	case SW_OP_RESHAPE:
	case SW_OP_BROADCAST:
	case SW_OP_BITCAST_CONVERT:
		return true;
	case SW_OP_CALL:
		return sw_computation_is_elementwise(program, op->called[0]);
	default:
		return false;
	}
}

bool sw_computation_is_elementwise(const sw_program *program, int32_t computation)
{
	const sw_computation *c = &program->computations.data[computation];
	for (size_t k = 0; k < c->ops.len; k++) {
		const sw_op *op = sw_op_at(program, c->ops.data[k]);
		for (uint32_t i = 0; i < op->n_operands; i++) {
			if (sw_value_shape(program, op->operands[i]).rank != 0)
				return false;
		}
		if (!op_is_elementwise(program, op))
			return false;
	}
	return true;
}

bool sw_computation_returns_parameter(const sw_program *program, int32_t computation, int64_t which)
{
	const sw_computation *c = &program->computations.data[computation];
	const sw_op *op = sw_op_at(program, program->values.data[c->results.data[0]].op);
	return c->results.len == 1 && op->opcode == SW_OP_PARAMETER && op->attrs->parameter.number == which;
}
