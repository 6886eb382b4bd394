/* What a device of a stage holds: of its plan's peak, what each microbatch in flight holds anew,
 * what crosses of microbatches that are not under way, and the rest. */
#include "pipelined/internal.h"

typedef struct bytes_finder {
	const sw_program *program; /* of one device, scheduled */
	const sw_stage_part *part; /* per op */
	const sw_op *loop;
	const sw_computation *body;
	sw_id inner;    /* the loop's first element, in its body */
	bool *crossing; /* per value: it is what crosses, of all microbatches */
} bytes_finder;

/* ---- activations ------------------------------------------------------------------------- */

/* The value of which this one is another view: a broadcast has no buffer. */
static sw_id root_of(const sw_program *p, sw_id value)
{
	const sw_op *op = sw_op_at(p, p->values.data[value].op);
	while (op->opcode == SW_OP_RESHAPE || op->opcode == SW_OP_BITCAST ||
	       op->opcode == SW_OP_BROADCAST) {
		value = op->operands[0];
		op = sw_op_at(p, p->values.data[value].op);
	}
	return value;
}

/* What forward ops of the loop compute and backward ones read. */
static int64_t held_bytes(const bytes_finder *f)
{
	const sw_program *p = f->program;
	const sw_computation *body = f->body;
	bool *held = sw_alloc(p->values.len + 1);
	int64_t bytes = 0;
	for (size_t i = 0; i < body->ops.len; i++) {
		const sw_op *op = sw_op_at(p, body->ops.data[i]);
		for (uint32_t k = 0; k < op->n_operands && sw_stage_is_backward(f->part[body->ops.data[i]]);
		     k++) {
			sw_id value = root_of(p, op->operands[k]);
			const sw_op *maker = sw_op_at(p, p->values.data[value].op);
			bool forward = f->part[p->values.data[value].op] == SW_STAGE_FORWARD;
			if (!forward || maker->opcode == SW_OP_PARAMETER || held[value])
				continue;
			held[value] = true;
			bytes += sw_shape_bytes(sw_value_shape(p, value));
		}
	}
	free(held);
	return bytes;
}

/* ---- what crosses ------------------------------------------------------------------------ */

static void set_crossing(bytes_finder *f, sw_id value)
{
	f->crossing[value] = true;
}

/* Does the op hand on all microbatches of an operand? Not in the loop where it slices one, or writes
 * one into what it hands on. Of a kernel that is fused with that only a result as large as the
 * operand has all microbatches. */
static bool hands_on(const bytes_finder *f, const sw_op *op, uint32_t operand, uint32_t result)
{
	const sw_program *p = f->program;
	bool in_loop = &p->computations.data[op->computation] == f->body;
	int64_t from = sw_shape_bytes(sw_value_shape(p, op->operands[operand])),
		to = sw_shape_bytes(sw_value_shape(p, op->first_result + result));
	if (in_loop && op->opcode == SW_OP_FUSION)
		return from == to;
	if (op->opcode == SW_OP_DYNAMIC_UPDATE_SLICE)
		return operand == 0;
	return !in_loop || op->opcode != SW_OP_DYNAMIC_SLICE;
}

/* What is made of what comes in. */
static void mark_readers(bytes_finder *f, const sw_computation *c)
{
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(f->program, c->ops.data[i]);
		for (uint32_t k = 0; k < op->n_operands && op != f->loop; k++)
			for (uint32_t r = 0; r < op->n_results && f->crossing[op->operands[k]]; r++)
				if (hands_on(f, op, k, r))
					set_crossing(f, op->first_result + r);
	}
	for (uint32_t k = 0; k < f->loop->n_operands && c != f->body; k++)
		if (f->crossing[f->loop->operands[k]])
			set_crossing(f, f->inner + k);
}

/* What goes out is made of this. */
static void mark_makers(bytes_finder *f, const sw_computation *c)
{
	for (size_t i = c->ops.len; i-- > 0;) {
		const sw_op *op = sw_op_at(f->program, c->ops.data[i]);
		for (uint32_t r = 0; r < op->n_results && op != f->loop; r++)
			for (uint32_t k = 0; k < op->n_operands && f->crossing[op->first_result + r]; k++)
				if (hands_on(f, op, k, r))
					set_crossing(f, op->operands[k]);
		if (op == f->loop)
			break;
	}
}

/* An element of the loop that crosses does so before it, in it and behind it. */
static void mark_elements(bytes_finder *f)
{
	for (uint32_t k = 0; k < f->loop->n_operands; k++) {
		sw_id places[] = {f->loop->operands[k], f->inner + k, f->body->results.data[k],
		                  f->loop->first_result + k};
		bool found = false;
		for (size_t i = 0; i < SW_COUNT(places); i++)
			found |= f->crossing[places[i]];
		for (size_t i = 0; i < SW_COUNT(places) && found; i++)
			set_crossing(f, places[i]);
	}
}

/* Ports of the step are inputs and results of the program of one device, in the same order. */
static void find_crossing(bytes_finder *f, const sw_stage_step *step)
{
	sw_arena arena = {0};
	const sw_id *inputs;
	sw_program_inputs(f->program, f->program->entry, &arena, &inputs);
	for (uint32_t i = 0; i < step->n_inputs; i++)
		if (step->inputs[i].kind == SW_PORT_MICROBATCHES)
			set_crossing(f, inputs[i]);
	mark_readers(f, sw_entry(f->program));
	mark_readers(f, f->body);
	for (uint32_t i = 0; i < step->n_results; i++)
		if (step->results[i].kind == SW_PORT_MICROBATCHES)
			set_crossing(f, sw_entry(f->program)->results.data[i]);
	mark_makers(f, sw_entry(f->program));
	mark_elements(f);
	mark_makers(f, f->body);
	sw_arena_clear(&arena);
}

/* Bytes at the program's peak of what crosses, as often as it is there. */
static int64_t crossing_bytes(const bytes_finder *f)
{
	sw_arena_peak peak = {0};
	int64_t bytes = 0;
	sw_placement_peak(f->program, &peak);
	for (size_t i = 0; i < peak.residents.len; i++) {
		const sw_resident *r = &peak.residents.data[i];
		bool value = r->kind == SW_RESIDENT_VALUE || r->kind == SW_RESIDENT_STAGED;
		bytes += value && f->crossing[r->id] ? r->bytes : 0;
	}
	sw_arena_peak_clear(&peak);
	return bytes;
}

/* Bytes of inputs, and of what the loop sums up; without what crosses. */
static int64_t resting_bytes(const bytes_finder *f, const sw_stage_step *step)
{
	const sw_program *p = f->program;
	sw_arena arena = {0};
	const sw_id *inputs;
	int64_t bytes = 0;
	sw_program_inputs(p, p->entry, &arena, &inputs);
	for (uint32_t i = 0; i < step->n_inputs; i++)
		bytes += f->crossing[inputs[i]] ? 0 : sw_shape_bytes(sw_value_shape(p, inputs[i]));
	for (uint32_t k = 0; k < f->loop->n_operands; k++) {
		bool carried = f->body->results.data[k] != f->inner + k &&
			       !f->crossing[f->inner + k];
		bytes += carried ? sw_shape_bytes(sw_value_shape(p, f->inner + k)) : 0;
	}
	sw_arena_clear(&arena);
	return bytes;
}

/* ---- the whole --------------------------------------------------------------------------- */

void sw_stage_find_bytes(const sw_stage_step *step, const sw_stages *stages,
                         const sw_program *scheduled, const sw_stage_part *part,
                         sw_stage_times *times)
{
	bytes_finder f = {.program = scheduled, .part = part};
	int64_t m = stages->n_microbatches;
	f.loop = sw_op_at(scheduled, sw_stage_loop_of(step, scheduled));
	f.body = &scheduled->computations.data[f.loop->called[1]];
	f.inner = sw_op_at(scheduled, f.body->parameters.data[0])->first_result;
	f.crossing = sw_alloc(scheduled->values.len + 1);
	find_crossing(&f, step);
	times->activation_bytes = held_bytes(&f);
	times->fixed_bytes = SW_MAX(
		times->peak_bytes - times->activation_bytes - crossing_bytes(&f) / m * (m - 1), 0);
	times->resting_bytes = SW_MIN(resting_bytes(&f, step), times->fixed_bytes);
	free(f.crossing);
}
