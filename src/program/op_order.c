/* The order of ops: depth first. */
#include "program/internal.h"

#include <string.h>

enum { NEW, ON_STACK, PLACED };

typedef struct orderer {
	const sw_program *program;
	const sw_id *before; /* per op: the one that it follows besides its operands, or SW_NO_ID */
	uint8_t *state;      /* per op */
	SW_VEC(sw_id) stack;
	sw_id *order;
	size_t placed;
} orderer;

static void push_new(orderer *o, sw_id op)
{
	if (op != SW_NO_ID && o->state[op] == NEW)
		sw_vec_push(&o->stack, op);
}

/* Place an op behind all that it needs. */
static void place_op(orderer *o, sw_id root)
{
	push_new(o, root);
	while (o->stack.len) {
		sw_id id = o->stack.data[o->stack.len - 1];
		const sw_op *op = sw_op_at(o->program, id);
		if (o->state[id] != NEW) {
			o->stack.len--;
			if (o->state[id] == ON_STACK)
				o->order[o->placed++] = id;
			o->state[id] = PLACED;
			continue;
		}
		o->state[id] = ON_STACK;
		for (uint32_t i = op->n_operands; i-- > 0;)
			push_new(o, o->program->values.data[op->operands[i]].op);
		for (const sw_id *c = op->control; c && *c != SW_NO_ID; c++)
			push_new(o, *c);
		push_new(o, o->before[id]);
	}
}

/* Set what each op of the computation follows: if it is kept, the kept one before it. */
static void link_kept(const sw_computation *computation, const bool *kept, sw_id *before)
{
	sw_id last = SW_NO_ID;
	for (size_t i = 0; i < computation->ops.len; i++) {
		sw_id op = computation->ops.data[i];
		bool is_kept = kept && kept[op];
		before[op] = is_kept ? last : SW_NO_ID;
		if (is_kept)
			last = op;
	}
}

static void order_computation(orderer *o, sw_computation *computation)
{
	o->placed = 0;
	for (size_t i = 0; i < computation->results.len; i++)
		place_op(o, o->program->values.data[computation->results.data[i]].op);
	for (size_t i = 0; i < computation->ops.len; i++)
		place_op(o, computation->ops.data[i]);
	if (o->placed)
		memcpy(computation->ops.data, o->order, o->placed * sizeof(*o->order));
}

void sw_program_order_ops(sw_program *program, const bool *kept)
{
	sw_arena arena;
	sw_arena_init(&arena);
	size_t n = program->ops.len + 1;
	sw_id *before = SW_NEW_N(&arena, sw_id, n);
	orderer o = {.program = program,
	             .before = before,
	             .state = SW_NEW_N(&arena, uint8_t, n),
	             .order = SW_NEW_N(&arena, sw_id, n)};
	sw_loop_order loops;
	int32_t *callees_first, n_computations = (int32_t)program->computations.len;
	bool acyclic = sw_program_order(program, &arena, &callees_first);
	sw_loop_order_init(&loops, program, &arena);
	for (int32_t c = 0; c < n_computations; c++)
		sw_loop_order_set(&loops, c, false);
	for (int32_t i = 0; acyclic && i < n_computations; i++) {
		sw_computation *computation = &program->computations.data[callees_first[i]];
		sw_loop_order_set(&loops, callees_first[i], true);
		link_kept(computation, kept, before);
		order_computation(&o, computation);
	}
	sw_vec_clear(&o.stack);
	sw_arena_clear(&arena);
}
