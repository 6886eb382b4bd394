/*
 * The walker runs the ops of one computation in order. A value is in interpreter->values from its
 * op to its last use. Programs have no recursion, so each value exists at most once; loop bodies
 * and called computations run through the same walker.
 */
#include <stdlib.h>
#include <string.h>

#include "interpret/frame.h"

/* ---- results and operands of a call ----------------------------------------------------- */

/* A kernel may write fewer elements than its place holds, never more. A paced run writes
 * nothing. */
static sw_status use_place(sw_call *call, uint32_t i, size_t bytes, sw_error *err)
{
	sw_buffer *place = &call->interpreter->headers[call->op->first_result + i];
	size_t capacity = (size_t)call->interpreter->options.placement->places
	                          ->values[call->op->first_result + i]
	                          .bytes;
	if (bytes > capacity && !call->interpreter->options.pace)
		return sw_fail(err, SW_ERR_INTERNAL, "'%s' has a place of %zu bytes but needs %zu",
		               call->op->name, capacity, bytes);
	place->bytes = SW_MIN(bytes, capacity);
	call->out[i].buffer = place;
	return SW_OK;
}

static sw_status give_buffer(sw_call *call, uint32_t i, int64_t elements, sw_error *err)
{
	sw_shape shape = call->shapes[i];
	size_t bytes = (size_t)(elements * sw_type_bytes(shape.type));
	call->out[i].shape = shape;
	if (call->placed)
		return use_place(call, i, bytes, err);
	call->out[i].buffer = sw_pool_take(&call->interpreter->pool, bytes);
	if (!call->out[i].buffer)
		return sw_fail(err, SW_ERR_IO, "not enough memory: '%s' needs %zu bytes",
		               call->op->name, bytes);
	return SW_OK;
}

sw_status sw_result_at_place(sw_call *call, uint32_t i, sw_error *err)
{
	return give_buffer(call, i, sw_shape_elements(call->shapes[i]), err);
}

/* Check that the result's place does not alias an operand: this kernel does not allow it. */
sw_status sw_result_of(sw_call *call, uint32_t i, int64_t elements, sw_error *err)
{
	sw_status status = give_buffer(call, i, elements, err);
	for (uint32_t k = 0; status == SW_OK && call->placed && k < call->op->n_operands; k++)
		if (call->out[i].buffer->bytes && call->in[k].buffer && call->in[k].buffer->bytes &&
		    sw_tensor_data(call->out[i]) == sw_tensor_data(call->in[k]))
			status = sw_fail(err, SW_ERR_INTERNAL,
			                 "the result of '%s' was placed over operand %u",
			                 call->op->name, k);
	return status;
}

sw_status sw_result_new(sw_call *call, uint32_t i, sw_error *err)
{
	return sw_result_of(call, i, sw_shape_elements(call->shapes[i]), err);
}

bool sw_operand_is_free(const sw_call *call, uint32_t operand)
{
	return call->plan->dies[operand] && call->in[operand].buffer->references == 1;
}

sw_status sw_result_in_place(sw_call *call, uint32_t i, int64_t elements, sw_error *err)
{
	sw_type type = call->shapes[i].type;
	size_t bytes = (size_t)(elements * sw_type_bytes(type));
	for (uint32_t k = 0; k < call->op->n_operands && !call->placed; k++) {
		if (call->in[k].shape.type == type && call->in[k].buffer->bytes == bytes &&
		    sw_operand_is_free(call, k)) {
			sw_result_forward(call, i, k);
			return SW_OK;
		}
	}
	return give_buffer(call, i, elements, err);
}

void sw_result_forward(sw_call *call, uint32_t i, uint32_t operand)
{
	call->out[i] = sw_tensor_keep(call->in[operand]);
	call->out[i].shape = call->shapes[i];
}

sw_status sw_result_copy(sw_call *call, uint32_t i, uint32_t operand, sw_error *err)
{
	if (sw_operand_is_free(call, operand)) {
		sw_result_forward(call, i, operand);
		return SW_OK;
	}
	sw_status status = sw_result_at_place(call, i, err);
	const void *from = sw_tensor_data(call->in[operand]);
	if (status == SW_OK && from != sw_tensor_data(call->out[i]))
		memcpy(sw_tensor_data(call->out[i]), from, call->out[i].buffer->bytes);
	return status;
}

sw_status sw_scratch_new(sw_interpreter *interpreter, sw_shape shape, sw_tensor *tensor,
                         sw_error *err)
{
	size_t bytes = (size_t)sw_shape_bytes(shape);
	tensor->shape = shape;
	tensor->buffer = sw_pool_take(&interpreter->pool, bytes);
	if (!tensor->buffer)
		return sw_fail(err, SW_ERR_IO, "not enough memory for %zu bytes of workspace",
		               bytes);
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

/* ---- the walk --------------------------------------------------------------------------- */

static sw_status gather_operands(sw_interpreter *interpreter, const sw_plan_op *plan,
                                 const sw_op *op, bool lanes, sw_error *err)
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

/* Return true for ops that run normally in paced runs too: regions that are no fused kernels,
 * collectives, and ops that only forward their operands. */
static bool is_never_paced(const sw_op *op, sw_aliasing aliasing)
{
	switch ((sw_opcode)op->opcode) {
	case SW_OP_FUSION:
		return aliasing == SW_ALIASING_REGION && sw_fused_kernel_of(op) == SW_FUSED_COUNT;
	case SW_OP_WHILE:
	case SW_OP_CONDITIONAL:
	case SW_OP_CALL:
	case SW_OP_ASYNC_START:
	case SW_OP_ASYNC_UPDATE:
	case SW_OP_ASYNC_DONE:
	case SW_OP_RESHAPE:
	case SW_OP_BITCAST:
	case SW_OP_OPT_BARRIER:
	case SW_OP_AFTER_ALL:
	case SW_OP_ADD_DEPENDENCY:
	case SW_OP_DOMAIN:
		return true;
	default:
		return sw_opcode_class((sw_opcode)op->opcode) == SW_CLASS_COLLECTIVE;
	}
}

/* Run the kernel, or let its predicted time pass, and report the time that it took. */
static sw_status perform(sw_call *call, sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	bool paced = it->options.pace && !is_never_paced(call->op, call->plan->kernel.aliasing);
	double begin = paced ? it->paced_end_s : it->options.timing ? sw_now_s() : 0;
	sw_status status = paced ? sw_pace_op(call, err) : call->plan->kernel.run(call, err);
	if (it->options.timing &&
	    (!sw_runs_frames(call->op, call->plan->kernel.aliasing) ||
	     call->op->opcode == SW_OP_ASYNC_START))
		it->options.timing(it->options.timing_context, call->plan->op, begin,
		                   paced ? it->paced_end_s : sw_now_s());
	return status;
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
	                .lanes = lanes,
	                .placed = interpreter->placed};
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
	if (call.placed)
		sw_frame_begin_op(interpreter, op, plan->op);
	status = perform(&call, err);
	if (call.placed && status == SW_OK)
		sw_frame_end_op(interpreter, op, plan->op, plan->out);
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
			sw_pool_drop(&interpreter->pool,
			             &interpreter->values[op->first_result + i]);
	}
}

sw_status sw_interpret_computation(sw_interpreter *interpreter, int32_t computation,
                                   const int64_t *lanes, sw_tensor *results, sw_error *err)
{
	const sw_kernel_plan *plan = &interpreter->plans[computation];
	const sw_computation *c = &interpreter->program->computations.data[computation];
	bool watched = interpreter->options.observe && computation == interpreter->program->entry;
	sw_status status = SW_OK;
	if (interpreter->placed)
		sw_frame_enter(interpreter, computation);
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
	if (interpreter->placed)
		sw_frame_leave(interpreter, computation);
	if (status == SW_OK && interpreter->placed)
		sw_frame_results(interpreter, computation, results);
	for (size_t i = 0; status == SW_OK && !interpreter->placed && i < c->results.len; i++)
		results[i] = sw_tensor_keep(interpreter->values[c->results.data[i]]);
	if (status != SW_OK && interpreter->options.drain)
		interpreter->options.drain(interpreter->options.collective_context);
	drop_values(interpreter, c);
	return status;
}

static sw_status run_in_pool(sw_interpreter *interpreter, int32_t computation, const int64_t *lanes,
                             sw_tensor *results, sw_error *err)
{
	bool placed = interpreter->placed;
	interpreter->placed = false;
	sw_status status = sw_interpret_computation(interpreter, computation, lanes, results, err);
	interpreter->placed = placed;
	return status;
}

sw_status sw_interpret_applied(sw_interpreter *interpreter, int32_t computation, sw_tensor *results,
                               sw_error *err)
{
	return run_in_pool(interpreter, computation, NULL, results, err);
}

/* Copy element `lane` of x into a scalar of its own. */
static sw_status take_lane(sw_interpreter *interpreter, sw_tensor x, int64_t lane, sw_shape scalar,
                           sw_tensor *out, sw_error *err)
{
	size_t bytes = (size_t)sw_type_bytes(scalar.type);
	sw_status status = sw_scratch_new(interpreter, scalar, out, err);
	if (status == SW_OK)
		memcpy(sw_tensor_data(*out),
		       (const char *)sw_tensor_data(x) +
		               (x.buffer->bytes == bytes ? 0 : (size_t)lane * bytes),
		       bytes);
	return status;
}

static sw_status run_lane(sw_interpreter *interpreter, int32_t computation, int64_t lane,
                          const sw_tensor *in, const sw_tensor *out, sw_tensor *results,
                          sw_error *err)
{
	const sw_kernel_plan *plan = &interpreter->plans[computation];
	const sw_computation *c = &interpreter->program->computations.data[computation];
	sw_status status = SW_OK;
	for (uint32_t i = 0; status == SW_OK && i < plan->n_inputs; i++)
		status = take_lane(interpreter, in[i], lane,
		                   sw_value_shape(interpreter->program, plan->inputs[i]),
		                   &interpreter->values[plan->inputs[i]], err);
	if (status == SW_OK)
		status = sw_interpret_applied(interpreter, computation, results, err);
	for (size_t i = 0; status == SW_OK && i < c->results.len; i++) {
		size_t bytes = results[i].buffer->bytes;
		memcpy((char *)sw_tensor_data(out[i]) + (size_t)lane * bytes,
		       sw_tensor_data(results[i]), bytes);
	}
	return status;
}

/* Run the computation for one lane after the other. */
static sw_status run_lanes_one_by_one(sw_interpreter *interpreter, int32_t computation,
                                      int64_t lanes, const sw_tensor *in, sw_tensor *out,
                                      sw_error *err)
{
	const sw_computation *c = &interpreter->program->computations.data[computation];
	sw_tensor *results = sw_alloc(sizeof *results * (c->results.len + 1));
	sw_status status = SW_OK;
	for (size_t i = 0; status == SW_OK && i < c->results.len; i++) {
		sw_shape shape = {sw_value_shape(interpreter->program, c->results.data[i]).type, 1,
		                  0, &lanes};
		status = sw_scratch_new(interpreter, shape, &out[i], err);
	}
	for (int64_t lane = 0; status == SW_OK && lane < lanes; lane++) {
		status = run_lane(interpreter, computation, lane, in, out, results, err);
		for (size_t i = 0; i < c->results.len; i++)
			sw_pool_drop(&interpreter->pool, &results[i]);
	}
	free(results);
	return status;
}

sw_status sw_interpret_lanes(sw_interpreter *interpreter, int32_t computation, int64_t lanes,
                             const sw_tensor *in, sw_tensor *out, sw_error *err)
{
	const sw_kernel_plan *plan = &interpreter->plans[computation];
	if (!plan->elementwise)
		return run_lanes_one_by_one(interpreter, computation, lanes, in, out, err);
	for (uint32_t i = 0; i < plan->n_inputs; i++)
		interpreter->values[plan->inputs[i]] = sw_tensor_keep(in[i]);
	return run_in_pool(interpreter, computation, &lanes, out, err);
}

/* ---- properties of computations --------------------------------------------------------- */

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
