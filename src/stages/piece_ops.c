/* What all programs of stages are written with: an op is inside a piece or not; what a piece needs
 * is marked backwards from what is wanted of it. */
#include <string.h>

#include "stages/internal.h"

bool sw_piece_has(const sw_stages *stages, sw_piece_place at, sw_id id)
{
	const sw_op *op = sw_op_at(stages->program, id);
	if (op->opcode == SW_OP_PARAMETER || id == stages->loop)
		return false;
	int32_t stage = stages->stage[id];
	/* What has no stage is computed wherever it is read. */
	if (stage < 0)
		return true;
	return (stage == at.stage || stage == at.other) &&
	       (at.round < 0 || stages->round[id] == at.round);
}

static bool is_needed(const sw_op *op, const bool *needed)
{
	for (uint32_t r = 0; r < op->n_results; r++)
		if (needed[op->first_result + r])
			return true;
	return false;
}

void sw_piece_find_needed(const sw_stages *stages, sw_piece_place at, const sw_stage_values *wanted,
                          bool *needed, sw_stage_values *inputs)
{
	const sw_program *p = stages->program;
	const sw_computation *c = &p->computations.data[at.computation];
	for (size_t i = 0; i < wanted->len; i++)
		needed[wanted->data[i]] = true;
	for (size_t i = c->ops.len; i-- > 0;) {
		const sw_op *op = sw_op_at(p, c->ops.data[i]);
		if (!is_needed(op, needed) || !sw_piece_has(stages, at, c->ops.data[i]))
			continue;
		for (uint32_t k = 0; k < op->n_operands; k++)
			needed[op->operands[k]] = true;
	}
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(p, c->ops.data[i]);
		if (sw_piece_has(stages, at, c->ops.data[i]))
			continue;
		for (uint32_t r = 0; r < op->n_results; r++)
			if (needed[op->first_result + r])
				sw_vec_push(inputs, op->first_result + r);
	}
}

/* ---- copies ------------------------------------------------------------------------------ */

typedef struct op_writer {
	const sw_stages *stages;
	sw_program *out;
	int32_t to;
	sw_id *map;
	int32_t *computations; /* copies of those that are called; -1: there is none yet */
	bool *waits;           /* per op: it is to be written, and is not yet */
	sw_stage_values stack; /* ops that wait for their operands */
} op_writer;

static void write_op(op_writer *w, sw_id id)
{
	const sw_program *p = w->stages->program;
	const sw_op *op = sw_op_at(p, id);
	sw_id first = sw_build_copy_mapped(w->out, w->to, p, id, w->map, w->computations);
	for (uint32_t r = 0; r < op->n_results; r++)
		w->map[op->first_result + r] = first + r;
	w->waits[id] = false;
}

/* The op that has to be written before this one: the maker of its first operand that waits. */
static sw_id find_missing(const op_writer *w, sw_id id)
{
	const sw_program *p = w->stages->program;
	const sw_op *op = sw_op_at(p, id);
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id maker = p->values.data[op->operands[k]].op;
		if (w->waits[maker])
			return maker;
	}
	return SW_NO_ID;
}

static void write_with_operands(op_writer *w, sw_id id)
{
	sw_vec_push(&w->stack, id);
	while (w->stack.len) {
		sw_id last = w->stack.data[w->stack.len - 1], missing = find_missing(w, last);
		if (missing != SW_NO_ID) {
			sw_vec_push(&w->stack, missing);
			continue;
		}
		write_op(w, last);
		w->stack.len--;
	}
}

/* What has no stage is written where it is read first: stages that do the same then are the same
 * program, wherever in the whole program it was computed. */
void sw_piece_write_ops(const sw_stages *stages, sw_piece_place at, const bool *needed,
                        const bool *only, bool is, sw_program *out, int32_t to, sw_id *map)
{
	const sw_program *p = stages->program;
	const sw_computation *c = &p->computations.data[at.computation];
	op_writer w = {.stages = stages, .out = out, .to = to, .map = map};
	w.computations = sw_alloc(sizeof(int32_t) * p->computations.len);
	memset(w.computations, 0xff, sizeof(int32_t) * p->computations.len);
	w.waits = sw_alloc(p->ops.len + 1);
	for (size_t i = 0; i < c->ops.len; i++) {
		sw_id id = c->ops.data[i];
		w.waits[id] = !(only && only[id] != is) && is_needed(sw_op_at(p, id), needed) &&
		              sw_piece_has(stages, at, id);
	}
	for (size_t i = 0; i < c->ops.len; i++)
		if (w.waits[c->ops.data[i]] && stages->stage[c->ops.data[i]] >= 0)
			write_with_operands(&w, c->ops.data[i]);
	for (size_t i = 0; i < c->ops.len; i++)
		if (w.waits[c->ops.data[i]])
			write_with_operands(&w, c->ops.data[i]);
	sw_vec_clear(&w.stack);
	free(w.waits);
	free(w.computations);
}

sw_id sw_piece_emit_parameter(const sw_stages *stages, sw_program *out, int32_t to, sw_id value,
                              const char *name)
{
	sw_shape shape = sw_value_shape(stages->program, value);
	return sw_emit_parameter(out, to, sw_build_shape(out, shape.type, shape.dims, shape.rank),
	                         name);
}
