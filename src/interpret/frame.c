/*
 * Running in an arena: what a placement says about each computation is bound to addresses when the
 * computation is entered. Every value has a buffer of its own to speak of, which nobody frees: it
 * only says where the value lies.
 */
#include "interpret/frame.h"

#include <string.h>

#include "interpret/guard.h"

/* So many that they never come to an end. */
#define IMMORTAL (INT32_MAX / 2)

struct sw_frame {
	char *base;
	void **inputs, **results; /* where the caller has them */
	sw_buffer *outs;          /* per result, where it ends up */
};

static void point(sw_buffer *buffer, void *data, int64_t bytes)
{
	*buffer = (sw_buffer){.references = IMMORTAL, .bytes = (size_t)bytes, .data = data};
}

static char *address(const sw_interpreter *it, const sw_frame *frame,
                     const sw_equivalence_key *place)
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

/* The value's own buffer, at its place. */
sw_buffer *sw_frame_place(sw_interpreter *it, sw_id value)
{
	const sw_equivalence_key *place = &it->options.placement->places->values[value];
	const sw_op *op = sw_op_at(it->program, it->program->values.data[value].op);
	point(&it->headers[value], address(it, &it->frames[op->computation], place), place->bytes);
	return &it->headers[value];
}

static void take_room(sw_interpreter *it, int32_t c)
{
	const sw_computation *computation = &it->program->computations.data[c];
	sw_frame *frame = &it->frames[c];
	frame->inputs = SW_NEW_N(&it->arena, void *, it->plans[c].n_inputs + 1);
	frame->results = SW_NEW_N(&it->arena, void *, computation->results.len + 1);
	frame->outs = SW_NEW_N(&it->arena, sw_buffer, computation->results.len + 1);
}

sw_status sw_frames_init(sw_interpreter *it, sw_error *err)
{
	const sw_placement *placement = it->options.placement;
	const sw_program *program = it->program;
	if (!placement)
		return SW_OK;
	if (it->options.observe)
		return sw_fail(err, SW_ERR_INTERNAL,
		               "values that share an arena can't be observed");
	it->headers = SW_NEW_N(&it->arena, sw_buffer, program->values.len + 1);
	it->frames = SW_NEW_N(&it->arena, sw_frame, program->computations.len);
	it->pool.bounded = true;
	if (placement->arena_bytes < INT64_MAX)
		it->arena_data = sw_try_alloc((size_t)SW_MAX(placement->arena_bytes, SW_ALIGNMENT));
	if (!it->arena_data)
		return sw_fail(err, SW_ERR_IO, "not enough memory for an arena of %lld bytes",
		               (long long)placement->arena_bytes);
	it->frames[program->entry].base = it->arena_data + placement->places->constant_bytes;
	sw_guard_close(it->arena_data, (size_t)placement->places->constant_bytes);
	return SW_OK;
}

void sw_frames_bind(sw_interpreter *it)
{
	for (size_t c = 0; it->frames && c < it->program->computations.len; c++)
		take_room(it, (int32_t)c);
}

void sw_frame_enter(sw_interpreter *it, int32_t computation)
{
	sw_guard_enter(it, computation, it->frames[computation].base);
}

void sw_frame_leave(sw_interpreter *it, int32_t computation)
{
	sw_guard_leave(it, computation, it->frames[computation].base);
}

/* Results lie at their places before the kernel looks for them, and it has its working space. */
void sw_frame_begin_op(sw_interpreter *it, const sw_op *op, sw_id id)
{
	const sw_workspace *room = &it->options.placement->places->rooms[id];
	for (uint32_t i = 0; i < op->n_results; i++)
		sw_frame_place(it, op->first_result + i);
	sw_pool_bound(&it->pool, it->frames[op->computation].base + room->at, (size_t)room->bytes);
	sw_guard_begin_op(it, op);
}

/* What a kernel left elsewhere is brought to its place, and elements that somebody wants are
 * written out. */
void sw_frame_end_op(sw_interpreter *it, const sw_op *op, sw_id id, sw_tensor *out)
{
	for (uint32_t i = 0; i < op->n_results; i++) {
		sw_buffer *here = &it->headers[op->first_result + i];
		const sw_equivalence_key *place =
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

/* First what would be written over, to its stage. */
static void bring_home(sw_interpreter *it, int32_t computation)
{
	const sw_frame_plan *plan = &it->options.placement->places->frames[computation];
	const sw_computation *c = &it->program->computations.data[computation];
	const sw_frame *frame = &it->frames[computation];
	for (uint32_t h = 0; h < plan->n_homings; h++) {
		const sw_homing *homing = &plan->homings[h];
		sw_tensor value = it->values[c->results.data[homing->result]];
		if (homing->stage >= 0 && value.buffer->bytes)
			memcpy(frame->base + homing->stage, sw_tensor_data(value),
			       value.buffer->bytes);
	}
	for (uint32_t h = 0; h < plan->n_homings; h++) {
		const sw_homing *homing = &plan->homings[h];
		sw_tensor value = it->values[c->results.data[homing->result]];
		char *to = address(it, frame, &homing->to);
		const char *from =
			homing->stage >= 0 ? frame->base + homing->stage : sw_tensor_data(value);
		if (from != to && value.buffer->bytes)
			memcpy(to, from, value.buffer->bytes);
	}
}

/* Results where they end up. */
void sw_frame_results(sw_interpreter *it, int32_t computation, sw_tensor *results)
{
	const sw_frame_plan *plan = &it->options.placement->places->frames[computation];
	const sw_computation *c = &it->program->computations.data[computation];
	sw_frame *frame = &it->frames[computation];
	bring_home(it, computation);
	for (size_t i = 0; i < c->results.len; i++) {
		results[i] = it->values[c->results.data[i]];
		point(&frame->outs[i], results[i].buffer->data, (int64_t)results[i].buffer->bytes);
		results[i].buffer = &frame->outs[i];
	}
	for (uint32_t h = 0; h < plan->n_homings; h++)
		frame->outs[plan->homings[h].result].data =
			address(it, frame, &plan->homings[h].to);
}

void sw_frame_bind_input(sw_interpreter *it, int32_t computation, uint32_t i, void *data)
{
	sw_id value = it->plans[computation].inputs[i];
	it->frames[computation].inputs[i] = data;
	it->values[value].shape = sw_value_shape(it->program, value);
	it->values[value].buffer = sw_frame_place(it, value);
}

/* A computation that runs as a whole has its frame in the working space of the op that calls it. */
sw_status sw_frame_run(sw_call *call, int32_t computation, const sw_tensor *in, sw_tensor *out,
                       void *answer, sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	sw_frame *frame = &it->frames[computation];
	const sw_computation *c = &it->program->computations.data[computation];
	const sw_workspace *room = &it->options.placement->places->rooms[call->plan->op];
	frame->base = it->frames[call->op->computation].base + room->at;
	for (size_t i = 0; i < c->results.len; i++)
		frame->results[i] = out ? sw_tensor_data(out[i]) : answer;
	for (uint32_t i = 0; i < it->plans[computation].n_inputs; i++)
		sw_frame_bind_input(it, computation, i, sw_tensor_data(in[i]));
	sw_tensor *ends = sw_alloc((c->results.len + 1) * sizeof *ends);
	sw_status status = sw_interpret_computation(it, computation, NULL, ends, err);
	free(ends);
	return status;
}

/* A body that carries starts from what its results are to be. */
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
	if (status == SW_OK && it->options.placement->places->frames[computation].carries) {
		start_from(call->out + first_result, in, n);
		in = call->out + first_result;
	}
	return status == SW_OK
	               ? sw_frame_run(call, computation, in, call->out + first_result, NULL, err)
	               : status;
}
