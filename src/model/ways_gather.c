/*
 * Gradients that each device makes for itself of what all others have: of a table's the indices and
 * rows that are scattered (sparse all-gather), of a product's its two operands (sufficient factors).
 * These are gathered in place of what is made of them.
 */
#include "model/ways.h"

/* Is it an op that moves a gradient, or rounds it, between what makes it and its update? */
static bool moves(const sw_op *op)
{
	return op->opcode == SW_OP_RESHAPE || op->opcode == SW_OP_TRANSPOSE ||
	       op->opcode == SW_OP_CONVERT;
}

sw_id sw_gradient_maker(const sw_program *program, sw_id id)
{
	const sw_op *op = sw_op_at(program, id);
	while (moves(op)) {
		id = program->values.data[op->operands[0]].op;
		op = sw_op_at(program, id);
	}
	return sw_is_dot(op) || op->opcode == SW_OP_SCATTER ? id : SW_NO_ID;
}

bool sw_ways_gather(sw_analysis *a, uint32_t variable, sw_gathering gathering)
{
	const sw_program *program = a->program;
	const sw_computation *entry = sw_entry(program);
	sw_variables *v = &a->variables;
	bool any = false;
	if (!v->gathers)
		v->gathers = SW_NEW_N(v->arena, uint8_t, program->ops.len + 1);
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		sw_id maker = v->of_end[id] == (int32_t)variable ? sw_gradient_maker(program, id)
		                                                 : SW_NO_ID;
		if (maker == SW_NO_ID)
			continue;
		v->gathers[maker] = SW_MAX(v->gathers[maker], (uint8_t)gathering);
		any = true;
	}
	return any;
}
