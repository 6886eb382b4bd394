/*
 * Ops that run computations as a whole. Tensors are handed over by reference: what dies here moves into the
 * called computation, so that loops update their carried tensors in place.
 */
#include <string.h>

#include "interpret/kernel.h"

/* Operand i of the call becomes input `input` of a computation. A dying operand leaves the caller: it has no
 * other holder then. (The walker drops what is left, which is nothing.) */
static void pass(sw_call *call, uint32_t operand, sw_id input)
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
	const sw_plan *plan = &call->interpreter->plans[computation];
	for (uint32_t i = 0; i < plan->n_inputs; i++)
		pass(call, first_operand + i, plan->inputs[i]);
	sw_status status = sw_interpret_computation(call->interpreter, computation, NULL, call->out, err);
	if (status == SW_OK)
		take_shapes(call);
	return status;
}

sw_status sw_kernel_call(sw_call *call, sw_error *err)
{
	if (call->lanes)
		return sw_interpret_lanes(call->interpreter, call->op->called[0], *call->lanes, call->in,
		                          call->out, err);
	return run_with(call, call->op->called[0], 0, err);
}

static bool read_pred(sw_tensor t)
{
	return *(const uint8_t *)sw_tensor_data(t) != 0;
}

/* The branch is chosen by a pred (true is the first) or by an index (any other than those there are is the last). */
sw_status sw_kernel_conditional(sw_call *call, sw_error *err)
{
	int64_t branches = call->op->n_called, chosen;
	if (call->in[0].shape.type == SW_PRED) {
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

static sw_status condition_holds(sw_call *call, const sw_tensor *carried, bool *holds, sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	const sw_plan *plan = &it->plans[call->op->called[0]];
	sw_tensor answer = {0};
	for (uint32_t i = 0; i < plan->n_inputs; i++)
		it->values[plan->inputs[i]] = sw_tensor_keep(carried[i]);
	sw_status status = sw_interpret_computation(it, call->op->called[0], NULL, &answer, err);
	*holds = status == SW_OK && read_pred(answer);
	sw_pool_drop(&it->pool, &answer);
	return status;
}

sw_status sw_kernel_while(sw_call *call, sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	const sw_plan *body = &it->plans[call->op->called[1]];
	uint32_t n = call->op->n_results;
	sw_tensor *carried = call->out;
	for (uint32_t i = 0; i < n; i++)
		carried[i] = sw_tensor_keep(call->in[i]);
	for (uint32_t i = 0; i < n; i++) {
		if (call->plan->dies[i])
			sw_pool_drop(&it->pool, &it->values[call->op->operands[i]]);
	}
	for (;;) {
		bool holds;
		sw_status status = condition_holds(call, carried, &holds, err);
		if (status == SW_OK && !holds) {
			take_shapes(call);
			return SW_OK;
		}
		for (uint32_t i = 0; status == SW_OK && i < n; i++) {
			it->values[body->inputs[i]] = carried[i];
			carried[i].buffer = NULL;
		}
		if (status == SW_OK)
			status = sw_interpret_computation(it, call->op->called[1], NULL, carried, err);
		if (status != SW_OK)
			return status; /* the walker drops what is carried */
	}
}

bool sw_prepare_map(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	plan->refused = "its computation is not elementwise";
	return sw_computation_is_elementwise(program, op->called[0]);
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

bool sw_prepare_collective(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	(void)program;
	(void)op;
	(void)plan;
	return true;
}

sw_status sw_kernel_collective(sw_call *call, sw_error *err)
{
	const sw_interpret_options *options = &call->interpreter->options;
	sw_status status = SW_OK;
	for (uint32_t i = 0; status == SW_OK && i < call->op->n_results; i++)
		status = sw_result_new(call, i, err);
	if (status == SW_OK)
		status = options->collective(options->collective_context, call->program, call->plan->op,
		                             call->in, call->out, err);
	return status;
}

/* Marks of partitioners say where a value should lie, and compute nothing. */
bool sw_prepare_custom_call(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	const char *target = op->attrs ? op->attrs->custom.target : NULL;
	plan->refused = target;
	return target && strcmp(target, "Sharding") == 0 && op->n_operands == 1 && op->n_results == 1 &&
	       sw_shape_equal(sw_value_shape(program, op->operands[0]),
	                      sw_value_shape(program, op->first_result));
}
