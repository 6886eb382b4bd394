/*
 * Ops that run called computations as a whole. Tensors are passed by reference: a dying operand
 * moves into the called computation, so that loops update loop-carried tensors in place.
 */
#include <string.h>

#include "interpret/frame.h"

/* Operand i of the call becomes input `input` of a computation. If the operand dies, the caller's
 * reference is dropped, so that the called computation holds the only one. (The walker later drops
 * what is left of it, which is nothing.) */
static void pass_operand(sw_call *call, uint32_t operand, sw_id input)
{
	sw_interpreter *it = call->interpreter;
	sw_tensor *value = &it->values[call->op->operands[operand]];
	it->values[input] = sw_tensor_keep(call->in[operand]);
	it->values[input].shape = sw_value_shape(call->program, input);
	if (call->plan->dies[operand])
		sw_pool_drop(&it->pool, value);
}

static void take_shapes(sw_call *call)
{
	for (uint32_t i = 0; i < call->op->n_results; i++)
		call->out[i].shape = call->shapes[i];
}

static sw_status run_with(sw_call *call, int32_t computation, uint32_t first_operand, sw_error *err)
{
	const sw_kernel_plan *plan = &call->interpreter->plans[computation];
	if (call->placed)
		return sw_frame_call(call, computation, first_operand, 0, err);
	for (uint32_t i = 0; i < plan->n_inputs; i++)
		pass_operand(call, first_operand + i, plan->inputs[i]);
	sw_status status =
		sw_interpret_computation(call->interpreter, computation, NULL, call->out, err);
	if (status == SW_OK)
		take_shapes(call);
	return status;
}

sw_status sw_kernel_call(sw_call *call, sw_error *err)
{
	if (call->lanes)
		return sw_interpret_lanes(call->interpreter, call->op->called[0], *call->lanes,
		                          call->in, call->out, err);
	return run_with(call, call->op->called[0], 0, err);
}

static bool read_pred(sw_tensor t)
{
	return *(const uint8_t *)sw_tensor_data(t) != 0;
}

/* Choose the branch by a pred (true: the first) or by an index (an index out of range: the
 * last). */
sw_status sw_kernel_conditional(sw_call *call, sw_error *err)
{
	int64_t branches = call->op->n_called, chosen;
	const sw_pace *pace = call->interpreter->options.pace;
	if (pace) {
		chosen = pace->branch(pace->context, call->program, call->plan->op);
	} else if (call->in[0].shape.type == SW_PRED) {
		chosen = read_pred(call->in[0]) ? 0 : 1;
	} else {
		chosen = sw_index_at(call->in[0].shape.type, sw_tensor_data(call->in[0]), 0);
		chosen = chosen < 0 || chosen >= branches ? branches - 1 : chosen;
	}
	uint32_t first = 1;
	for (int64_t b = 0; b < chosen; b++)
		first += call->interpreter->plans[call->op->called[b]].n_inputs;
	return run_with(call, call->op->called[chosen], first, err);
}

/* `iteration` counts from 0. */
static sw_status condition_holds(sw_call *call, const sw_tensor *carried, int64_t iteration,
                                 bool *holds, sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	const sw_kernel_plan *plan = &it->plans[call->op->called[0]];
	sw_tensor answer = {0};
	for (uint32_t i = 0; i < plan->n_inputs; i++)
		it->values[plan->inputs[i]] = sw_tensor_keep(carried[i]);
	sw_status status = sw_interpret_computation(it, call->op->called[0], NULL, &answer, err);
	if (it->options.pace)
		*holds = iteration < sw_op_trips(call->op);
	else
		*holds = status == SW_OK && read_pred(answer);
	sw_pool_drop(&it->pool, &answer);
	return status;
}

/* The body carries its values in the buffers of the loop's results. */
static sw_status run_loop(sw_call *call, sw_error *err)
{
	const sw_pace *pace = call->interpreter->options.pace;
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < call->op->n_results && status == SW_OK; i++)
		status = sw_result_copy(call, i, i, err);
	for (int64_t iteration = 0; status == SW_OK; iteration++) {
		uint8_t holds = 0;
		status = sw_frame_run(call, call->op->called[0], call->out, NULL, &holds, err);
		if (status || !(pace ? iteration < sw_op_trips(call->op) : holds))
			break;
		status = sw_frame_run(call, call->op->called[1], call->out, call->out, NULL, err);
	}
	return status;
}

sw_status sw_kernel_while(sw_call *call, sw_error *err)
{
	if (call->placed)
		return run_loop(call, err);
	sw_interpreter *it = call->interpreter;
	const sw_kernel_plan *body = &it->plans[call->op->called[1]];
	uint32_t n = call->op->n_results;
	sw_tensor *carried = call->out;
	for (uint32_t i = 0; i < n; i++)
		carried[i] = sw_tensor_keep(call->in[i]);
	for (uint32_t i = 0; i < n; i++) {
		if (call->plan->dies[i])
			sw_pool_drop(&it->pool, &it->values[call->op->operands[i]]);
	}
	for (int64_t iteration = 0;; iteration++) {
		bool holds;
		sw_status status = condition_holds(call, carried, iteration, &holds, err);
		if (status == SW_OK && !holds) {
			take_shapes(call);
			return SW_OK;
		}
		for (uint32_t i = 0; status == SW_OK && i < n; i++) {
			it->values[body->inputs[i]] = carried[i];
			carried[i].buffer = NULL;
		}
		if (status == SW_OK)
			status = sw_interpret_computation(it, call->op->called[1], NULL, carried,
			                                  err);
		if (status != SW_OK)
			return status; /* the walker drops the loop-carried values */
	}
}

int64_t sw_workspace_map(const sw_program *program, const sw_op *op, const sw_plan_op *plan)
{
	(void)plan;
	return sw_workspace_lanes(program, op->called[0],
	                          sw_shape_elements(sw_value_shape(program, op->first_result)));
}

sw_status sw_kernel_map(sw_call *call, sw_error *err)
{
	sw_shape shape = call->shapes[0];
	sw_status status = sw_interpret_lanes(call->interpreter, call->op->called[0],
	                                      sw_shape_elements(shape), call->in, call->out, err);
	if (status == SW_OK)
		take_shapes(call);
	return status;
}

/* Annotations of partitioners state the sharding of a value and compute nothing. */
static bool is_mark(const sw_program *program, const sw_op *op)
{
	return strcmp(op->attrs->custom.target, "Sharding") == 0 && op->n_operands == 1 &&
	       op->n_results == 1 &&
	       sw_shape_equal(sw_value_shape(program, op->operands[0]),
	                      sw_value_shape(program, op->first_result));
}

bool sw_prepare_custom_call(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	plan->refused = op->attrs->custom.target;
	if (is_mark(program, op) || op->n_results == 0) /* a print of JAX's, say */
		return true;
	plan->kernel = (sw_kernel){.run = sw_kernel_lapack, .workspace = sw_workspace_lapack};
	return sw_prepare_lapack(program, op, plan);
}

/* ---- asynchronous pairs ----------------------------------------------------------------- */

/* A start op does all the work and its done op forwards the results. A start op returns its
 * operands, its results and contexts, which only the done op reads. */
static sw_status give_contexts(sw_call *call, uint32_t first, sw_error *err)
{
	sw_status status = SW_OK;
	for (uint32_t i = first; status == SW_OK && i < call->op->n_results; i++) {
		status = sw_result_new(call, i, err);
		if (status == SW_OK)
			memset(sw_tensor_data(call->out[i]), 0, call->out[i].buffer->bytes);
	}
	return status;
}

static void forward_operands(sw_call *call)
{
	uint32_t first = sw_first_forwarded_operand(call->program, call->op);
	for (uint32_t i = 0; i < call->op->n_results; i++)
		sw_result_forward(call, i, first + i);
}

/* Call the transport. A paced run first waits until the predicted time of the ops so far has
 * passed. */
static sw_status call_transport(sw_call *call, sw_id collective, sw_tensor *out, bool begin,
                                sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	const sw_interpret_options *o = &it->options;
	double call_begin = o->pace ? sw_pace_wait(it) : 0;
	sw_status status = begin ? o->begin(o->collective_context, call->program, collective,
	                                    call->in, out, &it->tickets[call->plan->op], err)
	                         : o->collective(o->collective_context, call->program, collective,
	                                         call->in, out, err);
	if (o->pace)
		sw_pace_resume(it, call_begin);
	return status;
}

static sw_status begin_collective(sw_call *call, sw_id collective, sw_error *err)
{
	uint32_t n = call->op->n_operands, end = n + sw_op_at(call->program, collective)->n_results;
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < n; i++)
		sw_result_forward(call, i, i);
	for (uint32_t i = n; i < end && status == SW_OK; i++)
		status = sw_result_new(call, i, err);
	if (status == SW_OK)
		status = call_transport(call, collective, call->out + n, true, err);
	return status == SW_OK ? give_contexts(call, end, err) : status;
}

sw_status sw_kernel_async_start(sw_call *call, sw_error *err)
{
	uint32_t n = call->op->n_operands;
	sw_id collective = sw_async_collective(call->program, call->op);
	if (collective != SW_NO_ID && call->interpreter->options.begin)
		return begin_collective(call, collective, err);
	const sw_kernel_plan *plan = &call->interpreter->plans[call->op->called[0]];
	uint32_t computed =
		(uint32_t)call->program->computations.data[call->op->called[0]].results.len;
	for (uint32_t i = 0; i < n; i++)
		sw_result_forward(call, i, i);
	if (call->placed) {
		sw_status status = sw_frame_call(call, call->op->called[0], 0, n, err);
		return status == SW_OK ? give_contexts(call, n + computed, err) : status;
	}
	for (uint32_t i = 0; i < n; i++)
		pass_operand(call, i, plan->inputs[i]);
	sw_status status = sw_interpret_computation(call->interpreter, call->op->called[0], NULL,
	                                            call->out + n, err);
	for (uint32_t i = 0; status == SW_OK && i < computed; i++)
		call->out[n + i].shape = call->shapes[n + i];
	return status == SW_OK ? give_contexts(call, n + computed, err) : status;
}

bool sw_prepare_async_done(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	plan->refused = "its async-start stands elsewhere";
	return sw_async_start_of(program, op) != NULL;
}

sw_status sw_kernel_async_done(sw_call *call, sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	const sw_op *start = sw_async_start_of(call->program, call->op);
	sw_status status = SW_OK;
	forward_operands(call);
	if (it->options.begin && sw_async_collective(call->program, start) != SW_NO_ID) {
		double call_begin = it->options.pace ? sw_pace_wait(it) : 0;
		status = it->options.finish(it->options.collective_context,
		                            it->tickets[start - call->program->ops.data], err);
		if (it->options.pace)
			sw_pace_resume(it, call_begin);
	}
	return status;
}

/* Results: (copy, original, context). */
sw_status sw_kernel_copy_start(sw_call *call, sw_error *err)
{
	sw_result_forward(call, 0, 0);
	sw_result_forward(call, 1, 0);
	return give_contexts(call, 2, err);
}

static bool forwards_operands(const sw_op *op)
{
	return op->opcode == SW_OP_ALL_GATHER_START || op->opcode == SW_OP_COLLECTIVE_PERMUTE_START;
}

sw_status sw_kernel_collective(sw_call *call, sw_error *err)
{
	bool hands_on = forwards_operands(call->op);
	uint32_t first = hands_on ? call->op->n_operands : 0,
		 end = hands_on ? 2 * first : call->op->n_results;
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < first; i++)
		sw_result_forward(call, i, i);
	for (uint32_t i = first; status == SW_OK && i < end; i++)
		status = sw_result_new(call, i, err);
	if (status == SW_OK)
		status = call_transport(call, call->plan->op, call->out + first, false, err);
	return status == SW_OK ? give_contexts(call, end, err) : status;
}

sw_status sw_kernel_collective_done(sw_call *call, sw_error *err)
{
	(void)err;
	forward_operands(call);
	return SW_OK;
}

/* Reject ops that a single program on every device cannot perform. */
bool sw_prepare_never(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	(void)program;
	bool is_feed = op->opcode == SW_OP_INFEED || op->opcode == SW_OP_OUTFEED;
	plan->refused = is_feed ? "there is no host to exchange data with"
	                        : "the program does not name its communication partner";
	return false;
}
