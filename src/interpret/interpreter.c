/* Prepare a program, and run it. */
#include <stdlib.h>
#include <string.h>

#include "interpret/blas.h"
#include "interpret/flush.h"
#include "interpret/frame.h"
#include "interpret/guard.h"

/* ---- preparing -------------------------------------------------------------------------- */

static sw_status refuse(const sw_program *program, const sw_op *op, const char *why, sw_error *err)
{
	sw_text types = {0};
	for (uint32_t i = 0; i < op->n_operands; i++)
		sw_text_addf(&types, "%s%s", i ? ", " : " of ",
		             sw_type_name(sw_value_shape(program, op->operands[i]).type));
	if (op->n_results)
		sw_text_addf(&types, " giving %s",
		             sw_type_name(sw_value_shape(program, op->first_result).type));
	sw_status status = sw_fail_at(err, SW_ERR_INPUT, program->source, op->line, 0,
	                              "'%s': the interpreter does not support %s%s%s%s", op->name,
	                              sw_op_opcode_name(op), types.data ? types.data : "",
	                              why ? ": " : "", why ? why : "");
	sw_text_clear(&types);
	return status;
}

/* A parameter whose size is known only at run time is rejected here; a size that an op sets is
 * checked where it is set. */
static sw_status check_shapes(const sw_program *program, const sw_op *op, sw_error *err)
{
	for (uint32_t i = 0; i < op->n_results && op->opcode == SW_OP_PARAMETER; i++) {
		if (op->computation == program->entry &&
		    sw_value_shape(program, op->first_result + i).bounded)
			return refuse(program, op, "a bounded size", err);
	}
	return SW_OK;
}

static sw_status prepare_constant(sw_interpreter *interpreter, const sw_op *op, sw_error *err)
{
	const sw_literal *literal = &op->attrs->constant;
	sw_tensor *value = &interpreter->values[op->first_result];
	if (!literal->data && sw_shape_elements(literal->shape))
		return refuse(interpreter->program, op,
		              "its elements were left out of the text ({...})", err);
	sw_shape shape = sw_value_shape(interpreter->program, op->first_result);
	sw_status status = SW_OK;
	if (interpreter->frames) {
		*value = (sw_tensor){shape, sw_frame_place(interpreter, op->first_result)};
		sw_guard_open(sw_tensor_data(*value), value->buffer->bytes);
	} else {
		status = sw_scratch_new(interpreter, shape, value, err);
	}
	if (status == SW_OK && value->buffer->bytes)
		memcpy(sw_tensor_data(*value), literal->data, value->buffer->bytes);
	return status;
}

/* Set last[v] to the position of the last op that reads v. The results of the computation are read
 * after all ops. */
static void find_last_uses(const sw_program *program, const sw_computation *c, uint32_t *last)
{
	for (size_t k = 0; k < c->ops.len; k++) {
		const sw_op *op = sw_op_at(program, c->ops.data[k]);
		for (uint32_t i = 0; i < op->n_results; i++)
			last[op->first_result + i] = (uint32_t)k;
		for (uint32_t i = 0; i < op->n_operands; i++)
			last[op->operands[i]] = (uint32_t)k;
	}
	for (size_t i = 0; i < c->results.len; i++)
		last[c->results.data[i]] = UINT32_MAX;
}

static bool is_constant(const sw_program *program, sw_id value)
{
	return sw_op_at(program, program->values.data[value].op)->opcode == SW_OP_CONSTANT;
}

static void prepare_lifetimes(sw_interpreter *interpreter, const sw_op *op, sw_plan_op *plan,
                              size_t position, const uint32_t *last)
{
	sw_arena *arena = &interpreter->arena;
	bool *dies = SW_NEW_N(arena, bool, op->n_operands + 1), *unused = NULL;
	for (uint32_t i = 0; i < op->n_operands; i++) {
		sw_id value = op->operands[i];
		dies[i] = last[value] == position && !is_constant(interpreter->program, value);
		/* A value that is read twice by an op dies once, with the last operand. */
		for (uint32_t j = 0; dies[i] && j < i; j++)
			dies[j] = dies[j] && op->operands[j] != value;
	}
	for (uint32_t i = 0; i < op->n_results; i++) {
		bool idle = last[op->first_result + i] == position && op->opcode != SW_OP_CONSTANT;
		if (idle && !unused)
			unused = SW_NEW_N(arena, bool, op->n_results);
		if (idle)
			unused[i] = true;
	}
	plan->dies = dies;
	plan->unused = unused;
	plan->in = SW_NEW_N(arena, sw_tensor, op->n_operands + 1);
	plan->out = SW_NEW_N(arena, sw_tensor, op->n_results + 1);
	plan->shapes = SW_NEW_N(arena, sw_shape, op->n_results + 1);
	for (uint32_t i = 0; i < op->n_results; i++)
		plan->shapes[i] = sw_value_shape(interpreter->program, op->first_result + i);
}

static sw_status prepare_kernel(sw_interpreter *interpreter, const sw_op *op, sw_plan_op *plan,
                                sw_error *err)
{
	const sw_program *program = interpreter->program;
	if (!sw_choose_kernel(program, op, plan))
		return refuse(program, op, plan->refused, err);
	if (plan->kernel.widens && sw_op_is_narrow(program, op))
		sw_widen_kernel(&interpreter->arena, op, plan);
	if (sw_opcode_class(op->opcode) == SW_CLASS_COLLECTIVE && !interpreter->options.collective)
		return refuse(program, op, "nobody is there to communicate with", err);
	return SW_OK;
}

static sw_status prepare_computation(sw_interpreter *interpreter, int32_t index, uint32_t *last,
                                     sw_error *err)
{
	const sw_program *program = interpreter->program;
	const sw_computation *c = &program->computations.data[index];
	sw_kernel_plan *plan = &interpreter->plans[index];
	plan->n_inputs = sw_program_inputs(program, index, &interpreter->arena, &plan->inputs);
	plan->ops = SW_NEW_N(&interpreter->arena, sw_plan_op, c->ops.len);
	plan->n_ops = c->ops.len;
	plan->elementwise = sw_computation_is_elementwise(program, index);
	find_last_uses(program, c, last);
	for (size_t k = 0; k < c->ops.len; k++) {
		const sw_op *op = sw_op_at(program, c->ops.data[k]);
		plan->ops[k].op = c->ops.data[k];
		sw_status status = check_shapes(program, op, err);
		if (status == SW_OK && op->opcode == SW_OP_CONSTANT)
			status = prepare_constant(interpreter, op, err);
		else if (status == SW_OK && op->opcode != SW_OP_PARAMETER)
			status = prepare_kernel(interpreter, op, &plan->ops[k], err);
		if (status != SW_OK)
			return status;
		prepare_lifetimes(interpreter, op, &plan->ops[k], k, last);
	}
	return SW_OK;
}

/* A paced run multiplies nothing. */
static sw_status reserve_blas(sw_interpreter *it, sw_error *err)
{
	if (it->options.pace || !sw_blas_needed(it->program))
		return SW_OK;
	sw_status status = sw_blas_reserve(it->options.blas_threads, err);
	it->multiplies = status == SW_OK;
	return status;
}

sw_status sw_interpreter_new(const sw_program *program, const sw_interpret_options *options,
                             sw_interpreter **interpreter, sw_error *err)
{
	sw_interpreter *it = sw_alloc(sizeof *it);
	it->program = program;
	if (options)
		it->options = *options;
	sw_arena_init(&it->arena);
	it->plans = SW_NEW_N(&it->arena, sw_kernel_plan, program->computations.len);
	it->values = SW_NEW_N(&it->arena, sw_tensor, program->values.len);
	it->drawn = sw_arena_alloc(&it->arena, sizeof *it->drawn * program->ops.len);
	it->tickets = SW_NEW_N(&it->arena, uint64_t, program->ops.len);
	uint32_t *last = SW_NEW_N(&it->arena, uint32_t, program->values.len);
	sw_status status = sw_frames_init(it, err);
	for (size_t c = 0; status == SW_OK && c < program->computations.len; c++)
		status = prepare_computation(it, (int32_t)c, last, err);
	if (status == SW_OK)
		status = reserve_blas(it, err);
	if (status == SW_OK) {
		sw_frames_bind(it);
		sw_tiles_init(it);
	}
	if (status != SW_OK) {
		sw_interpreter_free(it);
		it = NULL;
	}
	*interpreter = it;
	return status;
}

void sw_interpreter_free(sw_interpreter *interpreter)
{
	if (!interpreter)
		return;
	for (size_t v = 0; v < interpreter->program->values.len; v++)
		sw_pool_drop(&interpreter->pool, &interpreter->values[v]);
	sw_pool_clear(&interpreter->pool);
	if (interpreter->multiplies)
		sw_blas_release();
	sw_tiles_clear(interpreter);
	free(interpreter->arena_data);
	sw_vec_clear(&interpreter->begun);
	sw_arena_clear(&interpreter->arena);
	free(interpreter);
}

size_t sw_interpreter_peak_bytes(const sw_interpreter *interpreter)
{
	const sw_placement *placement = interpreter->options.placement;
	return placement ? (size_t)placement->arena_bytes : interpreter->pool.peak_bytes;
}

sw_status sw_interpreter_input(sw_interpreter *it, uint32_t i, sw_tensor *tensor, sw_error *err)
{
	sw_id value = it->plans[it->program->entry].inputs[i];
	sw_shape shape = sw_value_shape(it->program, value);
	if (!it->frames)
		return sw_tensor_new(shape, false, tensor, err);
	*tensor = (sw_tensor){shape, sw_frame_place(it, value)};
	return SW_OK;
}

/* ---- running ---------------------------------------------------------------------------- */

static void drop_all(sw_pool *pool, sw_tensor *tensors, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		sw_pool_drop(pool, &tensors[i]);
}

static sw_status check_inputs(const sw_interpreter *it, const sw_tensor *inputs, uint32_t n_inputs,
                              uint32_t n_outputs, sw_error *err)
{
	const sw_kernel_plan *entry = &it->plans[it->program->entry];
	if (n_inputs != entry->n_inputs || n_outputs != sw_entry(it->program)->results.len)
		return sw_fail(err, SW_ERR_INPUT,
		               "the program has %u inputs and %zu outputs, not %u and %u",
		               entry->n_inputs, sw_entry(it->program)->results.len, n_inputs,
		               n_outputs);
	for (uint32_t i = 0; i < n_inputs; i++) {
		sw_shape want = sw_value_shape(it->program, entry->inputs[i]);
		if (!inputs[i].buffer || !sw_shape_equal(inputs[i].shape, want) ||
		    inputs[i].buffer->bytes != (size_t)sw_shape_bytes(want)) {
			sw_text text = {0};
			sw_shape_print(want, &text);
			sw_status status = sw_fail(err, SW_ERR_INPUT,
			                           "input %u must be a tensor %s", i, text.data);
			sw_text_clear(&text);
			return status;
		}
	}
	return SW_OK;
}

/* Copy inputs that are stored elsewhere to their places. */
static void copy_inputs_to_places(sw_interpreter *it, sw_tensor *inputs, uint32_t n)
{
	const sw_id *values = it->plans[it->program->entry].inputs;
	for (uint32_t i = 0; i < n; i++) {
		sw_buffer *from = inputs[i].buffer, *place = &it->headers[values[i]];
		if (from != place) {
			sw_frame_place(it, values[i]);
			if (from->data != place->data && place->bytes)
				memcpy(place->data, from->data, place->bytes);
			sw_tensor_drop(&inputs[i]);
		}
		it->values[values[i]] = (sw_tensor){sw_value_shape(it->program, values[i]), place};
		inputs[i].buffer = NULL;
	}
}

static void set_inputs(sw_interpreter *it, sw_tensor *inputs, uint32_t n)
{
	const sw_id *values = it->plans[it->program->entry].inputs;
	it->pool.live_bytes = 0;
	for (uint32_t i = 0; i < n; i++) {
		it->values[values[i]] = inputs[i];
		it->values[values[i]].shape = sw_value_shape(it->program, values[i]);
		it->pool.live_bytes += inputs[i].buffer->bytes;
		inputs[i].buffer = NULL;
	}
	it->pool.peak_bytes = SW_MAX(it->pool.peak_bytes, it->pool.live_bytes);
}

/* Return the outputs as dense tensors. Outputs that share a buffer, and outputs that are constants,
 * have several references, so that they are not overwritten later. */
static sw_status finish_outputs(sw_interpreter *it, sw_tensor *outputs, uint32_t n, sw_error *err)
{
	sw_status status = SW_OK;
	for (uint32_t i = 0; status == SW_OK && i < n; i++)
		status = sw_write_out_splat(it, &outputs[i], err);
	if (status != SW_OK)
		drop_all(&it->pool, outputs, n);
	return status;
}

sw_status sw_interpret(sw_interpreter *it, sw_tensor *inputs, uint32_t n_inputs, sw_tensor *outputs,
                       uint32_t n_outputs, sw_error *err)
{
	sw_status status = check_inputs(it, inputs, n_inputs, n_outputs, err);
	if (status != SW_OK) {
		for (uint32_t i = 0; i < n_inputs; i++)
			sw_tensor_drop(&inputs[i]);
		return status;
	}
	if (it->multiplies)
		sw_blas_set_threads(1); /* the team shares out products */
	it->placed = it->frames != NULL;
	(it->placed ? copy_inputs_to_places : set_inputs)(it, inputs, n_inputs);
	it->paced_end_s = sw_now_s();
	unsigned flush = sw_flush_begin();
	status = sw_interpret_computation(it, it->program->entry, NULL, outputs, err);
	sw_flush_end(flush);
	if (it->options.pace)
		(void)sw_pace_wait(it);
	if (status == SW_OK)
		status = finish_outputs(it, outputs, n_outputs, err);
	for (uint32_t i = 0; status != SW_OK && i < n_outputs; i++)
		outputs[i].buffer = NULL;
	sw_pool_end_step(&it->pool);
	return status;
}
