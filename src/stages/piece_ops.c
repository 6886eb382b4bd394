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

void sw_piece_write_ops(const sw_stages *stages, sw_piece_place at, const bool *needed,
                        const bool *only, bool is, sw_program *out, int32_t to, sw_id *map)
{
	const sw_program *p = stages->program;
	const sw_computation *c = &p->computations.data[at.computation];
	int32_t *computations = sw_alloc(sizeof(int32_t) * p->computations.len);
	memset(computations, 0xff, sizeof(int32_t) * p->computations.len);
	for (size_t i = 0; i < c->ops.len; i++) {
		sw_id id = c->ops.data[i];
		const sw_op *op = sw_op_at(p, id);
		if ((only && only[id] != is) || !is_needed(op, needed) ||
		    !sw_piece_has(stages, at, id))
			continue;
		sw_id *operands = SW_NEW_N(&out->arena, sw_id, op->n_operands + 1);
		int32_t *called = SW_NEW_N(&out->arena, int32_t, op->n_called + 1);
		for (uint32_t k = 0; k < op->n_operands; k++)
			operands[k] = map[op->operands[k]];
		for (uint32_t k = 0; k < op->n_called; k++)
			called[k] = sw_build_copy_computation(out, p, op->called[k], computations);
		sw_id first = sw_build_copy_op(out, to, p, id, operands, called);
		for (uint32_t r = 0; r < op->n_results; r++)
			map[op->first_result + r] = first + r;
	}
	free(computations);
}

sw_id sw_piece_emit_parameter(const sw_stages *stages, sw_program *out, int32_t to, sw_id value,
                              const char *name)
{
	sw_shape shape = sw_value_shape(stages->program, value);
	return sw_emit_parameter(out, to, sw_build_shape(out, shape.type, shape.dims, shape.rank),
	                         name);
}
