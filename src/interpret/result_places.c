/*
 * The second step of a placement: results that must end up in a given buffer, that of an input or
 * one of the caller, and which buffers callers may provide for both.
 */
#include "interpret/placer.h"

/* ---- overwriting ------------------------------------------------------------------------ */

/* Find the called computation, and its input, that operand k of a region becomes. Return false if
 * the operand is read before the call (the predicate of a conditional). */
static bool find_called_input(sw_placer *p, const sw_op *op, uint32_t k,
                              const sw_frame_plan **frame, uint32_t *input)
{
	uint32_t first = op->opcode == SW_OP_CONDITIONAL;
	for (uint32_t c = 0; c < op->n_called && k >= first; c++) {
		*frame = &p->places->frames[op->called[c]];
		*input = k - first;
		first += (*frame)->n_inputs;
		if (k < first)
			return true;
	}
	return false;
}

/* Return true if every called computation that reads this class allows result i to overwrite it. */
static bool region_may_overwrite(sw_placer *p, const sw_op *op, uint32_t i, sw_id class)
{
	const sw_frame_plan *frame;
	uint32_t input;
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (p->class[op->operands[k]] == class &&
		    find_called_input(p, op, k, &frame, &input) &&
		    (frame->is_loop_body ? (int64_t)i : frame->aliased_input[i]) != (int64_t)input)
			return false;
	return true;
}

bool sw_placer_may_overwrite(sw_placer *p, const sw_op *op, sw_aliasing aliasing, uint32_t i,
                             uint32_t k)
{
	sw_id value = op->first_result + i, operand = op->operands[k];
	if (*sw_placer_bytes_of(p, value) != *sw_placer_bytes_of(p, operand))
		return false;
	if (aliasing == SW_ALIASING_REGION)
		return region_may_overwrite(p, op, i, p->class[operand]);
	return sw_placer_kernel_may_overwrite(p, op, i, k);
}

/* Return true if class `next` can take over the buffer of class `before`, whose last read is at
 * program point `last`. */
static bool follows(sw_placer *p, sw_id next, sw_id before, int32_t last)
{
	const sw_value *value = &p->program->values.data[next];
	const sw_op *op = sw_op_at(p->program, value->op);
	if (p->first[next] != last)
		return p->first[next] > last;
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (p->class[op->operands[k]] == before &&
		    sw_placer_may_overwrite(p, op, p->aliasing[value->op], value->index, k))
			return true;
	return false;
}

/* ---- targets ---------------------------------------------------------------------------- */

sw_id *sw_placer_targets(sw_placer *p, const sw_computation *c)
{
	const sw_id *inputs;
	int32_t index = (int32_t)(c - p->program->computations.data);
	uint32_t n = sw_program_inputs(p->program, index, &p->arena, &inputs);
	sw_id *targets = SW_NEW_N(&p->arena, sw_id, c->results.len + 1);
	for (size_t i = 0; i < c->results.len; i++)
		targets[i] = p->places->frames[index].is_loop_body && i < n ? inputs[i] : SW_NO_ID;
	for (size_t a = 0; sw_placer_in_entry(p, c) && a < p->program->aliases.len; a++) {
		sw_alias alias = p->program->aliases.data[a];
		if (*sw_placer_bytes_of(p, c->results.data[alias.output]) ==
		    *sw_placer_bytes_of(p, inputs[alias.input]))
			targets[alias.output] = inputs[alias.input];
	}
	return targets;
}

void sw_placer_keep_inputs(sw_placer *p, const sw_computation *c, const sw_id *targets)
{
	for (size_t i = 0; i < c->results.len; i++)
		if (targets[i] != SW_NO_ID)
			p->is_target[targets[i]] = true;
	for (size_t k = 0; k < c->parameters.len; k++) {
		const sw_op *op = sw_op_at(p->program, c->parameters.data[k]);
		for (sw_id v = op->first_result; v < op->first_result + op->n_results; v++) {
			p->read[v] = p->last[v];
			p->last[v] = p->is_target[v] ? p->last[v] : SW_FOREVER;
		}
	}
}

static void place_in_input(sw_placer *p, uint32_t result, sw_id class, sw_id target)
{
	sw_place_buffer *b = &p->buffers.data[p->buffer_of[target]];
	if (class == target)
		return;
	if (p->buffer_of[class] == SW_NO_BUFFER && b->reserved == SW_FOREVER &&
	    follows(p, class, target, p->last[target])) {
		p->buffer_of[class] = p->buffer_of[target];
		b->reserved = p->first[class];
	} else {
		sw_vec_push(&p->copies_back, ((sw_pending_copy){.result = result,
		                                                .to = p->buffer_of[target],
		                                                .staging = SW_NO_BUFFER}));
		b->reserved = SW_MIN(b->reserved, p->end);
	}
}

/* Place the result in the buffer that the caller provides, or copy it there at the end. */
static void place_in_result(sw_placer *p, uint32_t result, sw_id class)
{
	sw_place place = {SW_PLACE_RESULT, result, 0};
	if (p->buffer_of[class] == SW_NO_BUFFER) {
		sw_placer_add_buffer(p, class, place);
		return;
	}
	sw_place_buffer b = {.place = place,
	                     .begin = p->end,
	                     .end = p->end,
	                     .reserved = p->end,
	                     .occupant = SW_NO_ID};
	sw_vec_push(&p->buffers, b);
	sw_vec_push(&p->copies_back, ((sw_pending_copy){.result = result,
	                                                .to = (uint32_t)p->buffers.len - 1,
	                                                .staging = SW_NO_BUFFER}));
}

void sw_placer_place_results(sw_placer *p, const sw_computation *c, const sw_id *targets)
{
	for (uint32_t i = 0; i < c->results.len; i++) {
		sw_id class = p->class[c->results.data[i]];
		if (targets[i] != SW_NO_ID)
			place_in_input(p, i, class, targets[i]);
		else if (!sw_placer_in_entry(p, c))
			place_in_result(p, i, class);
	}
}

/* ---- aliasing that callers may use ------------------------------------------------------ */

/* Return true if the caller may provide the buffer of `input` for this result: either the result is
 * the input itself, or it is written directly into the caller's buffer once the input is dead. */
static bool caller_may_alias(sw_placer *p, sw_id value, uint32_t result, sw_id input)
{
	sw_id class = p->class[value];
	const sw_place *place = &p->buffers.data[p->buffer_of[class]].place;
	if (class == input)
		return true;
	return *sw_placer_bytes_of(p, value) == *sw_placer_bytes_of(p, input) &&
	       place->kind == SW_PLACE_RESULT && place->at == (int64_t)result &&
	       follows(p, class, input, p->read[input]);
}

void sw_placer_allow_callers(sw_placer *p, const sw_computation *c, sw_frame_plan *frame)
{
	const sw_id *inputs;
	frame->n_inputs = sw_program_inputs(
		p->program, (int32_t)(c - p->program->computations.data), &p->arena, &inputs);
	frame->aliased_input = SW_NEW_N(&p->places->arena, int64_t, c->results.len + 1);
	bool *taken = SW_NEW_N(&p->arena, bool, frame->n_inputs + 1);
	for (uint32_t i = 0; i < c->results.len; i++)
		frame->aliased_input[i] = -1;
	for (uint32_t i = 0;
	     i < c->results.len && !sw_placer_in_entry(p, c) && !frame->is_loop_body; i++) {
		for (uint32_t k = 0; k < frame->n_inputs && frame->aliased_input[i] < 0; k++)
			if (!taken[k] && caller_may_alias(p, c->results.data[i], i, inputs[k])) {
				frame->aliased_input[i] = (int64_t)k;
				taken[k] = true;
			}
	}
}
