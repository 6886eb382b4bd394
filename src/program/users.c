/* The users of each value, as a compressed list. An op that takes a value twice stands there
 * twice. */
#include "program/internal.h"

sw_users sw_program_users(const sw_program *program, sw_arena *arena)
{
	size_t n = program->values.len, uses = 0;
	uint32_t *start = SW_NEW_N(arena, uint32_t, n + 1);
	uint32_t *next = SW_NEW_N(arena, uint32_t, n + 1);
	for (size_t o = 0; o < program->ops.len; o++) {
		const sw_op *op = &program->ops.data[o];
		uses += op->n_operands;
		for (uint32_t i = 0; i < op->n_operands; i++)
			start[op->operands[i] + 1]++;
	}
	for (size_t v = 0; v < n; v++)
		start[v + 1] += next[v] = start[v];
	sw_id *ops = SW_NEW_N(arena, sw_id, uses + 1);
	for (size_t o = 0; o < program->ops.len; o++) {
		const sw_op *op = &program->ops.data[o];
		for (uint32_t i = 0; i < op->n_operands; i++)
			ops[next[op->operands[i]]++] = (sw_id)o;
	}
	return (sw_users){.start = start, .ops = ops};
}
