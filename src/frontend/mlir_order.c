/*
 * The order of a computation's ops: depth first from the results, operands from the first to the
 * last, as XLA prints them. Both forms of a program then run in the same order, which overlap and
 * memory depend on.
 */
#include "frontend/mlir.h"

#include <string.h>

typedef struct orderer {
	const sw_program *program;
	uint8_t *state; /* per op: 0 new, 1 on the stack, 2 placed */
	SW_VEC(sw_id) stack, placed;
} orderer;

/* Place an op behind all that it needs. */
static void place_op(orderer *o, sw_id root)
{
	sw_vec_push(&o->stack, root);
	while (o->stack.len) {
		sw_id id = o->stack.data[o->stack.len - 1];
		const sw_op *op = sw_op_at(o->program, id);
		if (o->state[id]) {
			o->stack.len--;
			if (o->state[id] == 1)
				sw_vec_push(&o->placed, id);
			o->state[id] = 2;
			continue;
		}
		o->state[id] = 1;
		for (uint32_t i = op->n_operands; i-- > 0;) {
			sw_id operand = o->program->values.data[op->operands[i]].op;
			if (!o->state[operand])
				sw_vec_push(&o->stack, operand);
		}
	}
}

void sw_mlir_order(sw_mlir *m, int32_t c)
{
	sw_computation *computation = &m->program->computations.data[c];
	orderer o = {.program = m->program};
	sw_arena arena;
	sw_arena_init(&arena);
	o.state = SW_NEW_N(&arena, uint8_t, m->program->ops.len + 1);
	for (size_t i = 0; i < computation->results.len; i++)
		place_op(&o, m->program->values.data[computation->results.data[i]].op);
	for (size_t i = 0; i < computation->ops.len; i++)
		if (!o.state[computation->ops.data[i]])
			place_op(&o, computation->ops.data[i]);
	memcpy(computation->ops.data, o.placed.data, o.placed.len * sizeof(*o.placed.data));
	sw_vec_clear(&o.stack);
	sw_vec_clear(&o.placed);
	sw_arena_clear(&arena);
}
