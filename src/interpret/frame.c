/*
 * Run a program in an arena: the offsets of a placement become addresses when a computation is
 * entered. Every value has a sw_buffer header of its own, which is never freed and only points to
 * the value's place.
 */
#include "interpret/frame.h"

#include <string.h>

#include "interpret/guard.h"

/* A reference count that is never used up. */
#define IMMORTAL (INT32_MAX / 2)

struct sw_frame {
	char *base;
	void **inputs, **results; /* addresses in the caller */
	sw_buffer *outs;          /* per result: its final place */
};

static void point(sw_buffer *buffer, void *data, int64_t bytes)
{
	*buffer = (sw_buffer){.references = IMMORTAL, .bytes = (size_t)bytes, .data = data};
}

static char *address(const sw_interpreter *it, const sw_frame *frame, const sw_place *place)
{
	switch (place->kind) {
	case SW_PLACE_INPUT:
		return frame->inputs[place->at];
	case SW_PLACE_RESULT:
		return frame->results[place->at];
	case SW_PLACE_CONSTANT:
		return it->arena_data + place->at;
	default:
		return frame->base + place->at;
	}
}

sw_buffer *sw_frame_place(sw_interpreter *it, sw_id value)
{
	const sw_place *place = &it->options.placement->places->values[value];
	const sw_op *op = sw_op_at(it->program, it->program->values.data[value].op);
	point(&it->headers[value], address(it, &it->frames[op->computation], place), place->bytes);
	return &it->headers[value];
}

static void allocate_addresses(sw_interpreter *it, int32_t c)
{
	const sw_computation *computation = &it->program->computations.data[c];
	sw_frame *frame = &it->frames[c];
	frame->inputs = SW_NEW_N(&it->arena, void *, it->plans[c].n_inputs + 1);
	frame->results = SW_NEW_N(&it->arena, void *, computation->results.len + 1);
	frame->outs = SW_NEW_N(&it->arena, sw_buffer, computation->results.len + 1);
}

/* Name the op at which most of the arena is in use. */
static sw_status no_arena(const sw_program *program, int64_t bytes, sw_error *err)
{
	sw_arena_peak peak = {0};
	sw_placement_peak(program, &peak);
	const sw_op *op = peak.op == SW_NO_ID ? NULL : sw_op_at(program, peak.op);
	sw_status status = sw_fail_at(err, SW_ERR_IO, program->source, op ? op->line : 0, 0,
	                              "not enough memory for an arena of %lld bytes, most of it "
	                              "in use at '%s'",
	                              (long long)bytes, op ? op->name : "its inputs");
	sw_arena_peak_clear(&peak);
	return status;
}

sw_status sw_frames_init(sw_interpreter *it, sw_error *err)
{
	const sw_placement *placement = it->options.placement;
	const sw_program *program = it->program;
	if (!placement)
		return SW_OK;
	if (it->options.observe)
		return sw_fail(err, SW_ERR_INTERNAL,
		               "options 'observe' and 'placement' can't be combined");
	it->headers = SW_NEW_N(&it->arena, sw_buffer, program->values.len + 1);
	it->frames = SW_NEW_N(&it->arena, sw_frame, program->computations.len);
	it->pool.bounded = true;
	if (placement->arena_bytes < INT64_MAX)
		it->arena_data = sw_try_alloc((size_t)SW_MAX(placement->arena_bytes, SW_ALIGNMENT));
	if (!it->arena_data)
		return no_arena(program, placement->arena_bytes, err);
	it->frames[program->entry].base = it->arena_data + placement->places->constant_bytes;
	sw_guard_close(it->arena_data, (size_t)placement->places->constant_bytes);
	return SW_OK;
}

void sw_frames_bind(sw_interpreter *it)
{
	for (size_t c = 0; it->frames && c < it->program->computations.len; c++)
		allocate_addresses(it, (int32_t)c);
}

void sw_frame_enter(sw_interpreter *it, int32_t computation)
{
	sw_guard_enter(it, computation, it->frames[computation].base);
}

void sw_frame_leave(sw_interpreter *it, int32_t computation)
{
	sw_guard_leave(it, computation, it->frames[computation].base);
}

/* Point the results to their places and the pool to the op's workspace before the kernel needs
 * them. */
void sw_frame_begin_op(sw_interpreter *it, const sw_op *op, sw_id id)
{
	const sw_workspace *workspace = &it->options.placement->places->workspaces[id];
	for (uint32_t i = 0; i < op->n_results; i++)
		sw_frame_place(it, op->first_result + i);
	sw_pool_bound(&it->pool, it->frames[op->computation].base + workspace->at,
	              (size_t)workspace->bytes);
	sw_guard_begin_op(it, op);
}

/* Copy results that the kernel left elsewhere to their places, and expand splats where a reader
 * needs all elements. */
void sw_frame_end_op(sw_interpreter *it, const sw_op *op, sw_id id, sw_tensor *out)
{
	for (uint32_t i = 0; i < op->n_results; i++) {
		sw_buffer *here = &it->headers[op->first_result + i];
		const sw_place *place =
			&it->options.placement->places->values[op->first_result + i];
		sw_buffer *there = out[i].buffer;
		if (!there)
			continue;
		size_t element = (size_t)sw_type_bytes(out[i].shape.type),
		       bytes = (size_t)place->bytes;
		size_t written = SW_MIN(there->bytes, bytes);
		if (there->data != here->data && written)
			memmove(here->data, there->data, written);
		if (there != here)
			sw_pool_drop(&it->pool, &out[i]);
		if (written == element && bytes > element)
			sw_fill_elements((char *)here->data + element, here->data, element,
			                 (int64_t)(bytes / element) - 1);
		here->bytes = bytes;
		out[i].buffer = here;
	}
	sw_guard_end_op(it, id, it->frames[op->computation].base);
}

/* Copy results to their final places; first those that would be overwritten, to their staging
 * buffers. */
static void copy_results_back(sw_interpreter *it, int32_t computation)
{
	const sw_frame_plan *plan = &it->options.placement->places->frames[computation];
	const sw_computation *c = &it->program->computations.data[computation];
	const sw_frame *frame = &it->frames[computation];
	for (uint32_t h = 0; h < plan->n_copies_back; h++) {
		const sw_copy_back *copy_back = &plan->copies_back[h];
		sw_tensor value = it->values[c->results.data[copy_back->result]];
		if (copy_back->staging >= 0 && value.buffer->bytes)
			memcpy(frame->base + copy_back->staging, sw_tensor_data(value),
			       value.buffer->bytes);
	}
	for (uint32_t h = 0; h < plan->n_copies_back; h++) {
		const sw_copy_back *copy_back = &plan->copies_back[h];
		sw_tensor value = it->values[c->results.data[copy_back->result]];
		char *to = address(it, frame, &copy_back->to);
		const char *from = copy_back->staging >= 0 ? frame->base + copy_back->staging
		                                           : sw_tensor_data(value);
		if (from != to && value.buffer->bytes)
			memcpy(to, from, value.buffer->bytes);
	}
}

void sw_frame_results(sw_interpreter *it, int32_t computation, sw_tensor *results)
{
	const sw_frame_plan *plan = &it->options.placement->places->frames[computation];
	const sw_computation *c = &it->program->computations.data[computation];
	sw_frame *frame = &it->frames[computation];
	copy_results_back(it, computation);
	for (size_t i = 0; i < c->results.len; i++) {
		results[i] = it->values[c->results.data[i]];
		point(&frame->outs[i], results[i].buffer->data, (int64_t)results[i].buffer->bytes);
		results[i].buffer = &frame->outs[i];
	}
	for (uint32_t h = 0; h < plan->n_copies_back; h++)
		frame->outs[plan->copies_back[h].result].data =
			address(it, frame, &plan->copies_back[h].to);
}

void sw_frame_bind_input(sw_interpreter *it, int32_t computation, uint32_t i, void *data)
{
	sw_id value = it->plans[computation].inputs[i];
	it->frames[computation].inputs[i] = data;
	it->values[value].shape = sw_value_shape(it->program, value);
	it->values[value].buffer = sw_frame_place(it, value);
}

/* The frame of a called computation is in the workspace of the op that calls it. */
sw_status sw_frame_run(sw_call *call, int32_t computation, const sw_tensor *in, sw_tensor *out,
                       void *answer, sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	sw_frame *frame = &it->frames[computation];
	const sw_computation *c = &it->program->computations.data[computation];
	const sw_workspace *workspace = &it->options.placement->places->workspaces[call->plan->op];
	frame->base = it->frames[call->op->computation].base + workspace->at;
	for (size_t i = 0; i < c->results.len; i++)
		frame->results[i] = out ? sw_tensor_data(out[i]) : answer;
	for (uint32_t i = 0; i < it->plans[computation].n_inputs; i++)
		sw_frame_bind_input(it, computation, i, sw_tensor_data(in[i]));
	sw_tensor *ends = sw_alloc((c->results.len + 1) * sizeof *ends);
	sw_status status = sw_interpret_computation(it, computation, NULL, ends, err);
	free(ends);
	return status;
}

/* A loop body computes in the buffers of the results, so copy its operands there first. */
static void start_from(const sw_tensor *out, const sw_tensor *in, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (sw_tensor_data(out[i]) != sw_tensor_data(in[i]) && out[i].buffer->bytes)
			memcpy(sw_tensor_data(out[i]), sw_tensor_data(in[i]), out[i].buffer->bytes);
}

sw_status sw_frame_call(sw_call *call, int32_t computation, uint32_t first_operand,
                        uint32_t first_result, sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	const sw_computation *c = &it->program->computations.data[computation];
	const sw_tensor *in = call->in + first_operand;
	sw_status status = SW_OK;
	uint32_t n = (uint32_t)c->results.len;
	for (uint32_t i = first_result; i < first_result + n && status == SW_OK; i++)
		status = sw_result_at_place(call, i, err);
	if (status == SW_OK && it->options.placement->places->frames[computation].is_loop_body) {
		start_from(call->out + first_result, in, n);
		in = call->out + first_result;
	}
	return status == SW_OK
	               ? sw_frame_run(call, computation, in, call->out + first_result, NULL, err)
	               : status;
}
