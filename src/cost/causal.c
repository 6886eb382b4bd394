/*
 * Whether attention's mask is causal: whether it compares two iotas, one for each position. The
 * comparison may stand outside of the kernel, and outside of loops: what enters a kernel or a loop is
 * followed to where it was made.
 */
#include "cost/matmul.h"

/* Steps of one walk: more than moves, masks and borders that models stack up. */
#define MOST_STEPS 64

/* Return which of the flattened parameters of its computation a parameter's value is. */
static uint32_t leaf_of(const sw_program *program, sw_id value)
{
	const sw_op *op = sw_op_at(program, program->values.data[value].op);
	const sw_computation *computation = &program->computations.data[op->computation];
	uint32_t leaf = program->values.data[value].index;
	for (size_t i = 0; i < computation->parameters.len; i++) {
		const sw_op *before = sw_op_at(program, computation->parameters.data[i]);
		if (before == op)
			break;
		leaf += before->n_results;
	}
	return leaf;
}

/* The kernel that is asked about: most walks leave it by its operands. */
typedef struct mask_search {
	const sw_program *program;
	const sw_op *kernel;
} mask_search;

static bool calls(const sw_op *op, int32_t computation)
{
	for (uint16_t k = 0; k < op->n_called; k++)
		if (op->called[k] == computation)
			return true;
	return false;
}

/* Return the op that calls a computation; NULL: none does. Of another than the kernel it is mostly
 * written soon after what it calls, so that all ops are looked at from there on. */
static const sw_op *caller_of(const mask_search *s, int32_t computation)
{
	const sw_program *program = s->program;
	const sw_computation *c = &program->computations.data[computation];
	size_t n = program->ops.len, first = c->ops.len ? c->ops.data[c->ops.len - 1] : 0;
	if (calls(s->kernel, computation))
		return s->kernel;
	for (size_t i = 0; i < n && computation != program->entry; i++) {
		const sw_op *op = &program->ops.data[(first + i) % n];
		if (calls(op, computation))
			return op;
	}
	return NULL;
}

/* Return the value that a parameter's value is when its loop or kernel begins; SW_NO_ID: not known.
 */
static sw_id entered_as(const mask_search *s, sw_id value)
{
	const sw_op *op = sw_op_at(s->program, s->program->values.data[value].op);
	const sw_op *caller = caller_of(s, op->computation);
	uint32_t leaf = leaf_of(s->program, value);
	bool enters = caller && (caller->opcode == SW_OP_FUSION || caller->opcode == SW_OP_WHILE ||
	                         caller->opcode == SW_OP_CALL);
	return enters && leaf < caller->n_operands ? caller->operands[leaf] : SW_NO_ID;
}

/* Return the value that this one is taken from by a move or a choice, or that it is inside of the
 * kernel that gives it, or before its loop; SW_NO_ID: it is computed. */
static sw_id taken_from(const mask_search *s, sw_id value)
{
	const sw_program *program = s->program;
	const sw_op *op = sw_op_at(program, program->values.data[value].op);
	uint32_t result = program->values.data[value].index;
	switch (op->opcode) {
	case SW_OP_BROADCAST:
	case SW_OP_RESHAPE:
	case SW_OP_BITCAST:
	case SW_OP_CONVERT:
	case SW_OP_TRANSPOSE:
	case SW_OP_COPY:
	case SW_OP_SLICE:
	case SW_OP_DYNAMIC_SLICE:
	case SW_OP_AND:
	case SW_OP_SELECT:
	case SW_OP_ALL_GATHER:
	case SW_OP_ALL_TO_ALL:
	case SW_OP_ASYNC_START:
	case SW_OP_ASYNC_DONE:
		return op->operands[0];
	case SW_OP_OPT_BARRIER:
	case SW_OP_GET_TUPLE_ELEMENT:
	case SW_OP_WHILE:
		return result < op->n_operands ? op->operands[result] : SW_NO_ID;
	case SW_OP_FUSION:
		return program->computations.data[op->called[0]].results.data[result];
	case SW_OP_PARAMETER:
		return entered_as(s, value);
	default:
		return SW_NO_ID;
	}
}

/* Return the op at which the walk from a value ends; at once at `stop`. */
static const sw_op *source_of(const mask_search *s, sw_id value, sw_opcode stop)
{
	for (int step = 0; step < MOST_STEPS; step++) {
		const sw_op *op = sw_op_at(s->program, s->program->values.data[value].op);
		sw_id from = op->opcode == stop ? SW_NO_ID : taken_from(s, value);
		if (from == SW_NO_ID)
			return op;
		value = from;
	}
	return NULL;
}

/* Return whether the value is an iota, or one and something that is added to it. */
static bool is_position(const mask_search *s, sw_id value)
{
	const sw_op *op = source_of(s, value, SW_OP_IOTA);
	if (op && (op->opcode == SW_OP_ADD || op->opcode == SW_OP_SUBTRACT))
		return is_position(s, op->operands[0]) || is_position(s, op->operands[1]);
	return op && op->opcode == SW_OP_IOTA;
}

bool attention_is_causal(const sw_program *program, const sw_op *kernel)
{
	mask_search s = {program, kernel};
	const sw_computation *body = &program->computations.data[kernel->called[kernel->n_called - 1]];
	for (size_t i = 0; i < body->ops.len; i++) {
		const sw_op *op = sw_op_at(program, body->ops.data[i]);
		if (op->opcode != SW_OP_SELECT)
			continue;
		const sw_op *mask = source_of(&s, op->operands[0], SW_OP_COMPARE);
		if (mask && mask->opcode == SW_OP_COMPARE && is_position(&s, mask->operands[0]) &&
		    is_position(&s, mask->operands[1]))
			return true;
	}
	return false;
}
