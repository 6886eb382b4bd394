/* Effects of ops, and the order of ops: depth first, or constants where they are read. */
#include "program/internal.h"

#include <string.h>

/* ---- effects ---------------------------------------------------------------------------- */

static bool has_effect(const sw_op *op, const bool *computations)
{
	for (uint32_t k = 0; k < op->n_called; k++)
		if (computations[op->called[k]])
			return true;
	return op->opcode == SW_OP_OUTFEED || op->opcode == SW_OP_INFEED ||
	       op->opcode == SW_OP_RNG_GET_AND_UPDATE_STATE ||
	       (op->opcode == SW_OP_CUSTOM_CALL && !op->attrs->custom.signature);
}

static void mark_effects(const sw_program *program, const int32_t *callees_first, bool *ops,
                         bool *computations)
{
	for (size_t i = 0; i < program->computations.len; i++) {
		int32_t c = callees_first[i];
		const sw_computation *computation = &program->computations.data[c];
		computations[c] = false;
		for (size_t k = 0; k < computation->ops.len; k++) {
			sw_id op = computation->ops.data[k];
			ops[op] = has_effect(sw_op_at(program, op), computations);
			computations[c] |= ops[op];
		}
	}
}

void sw_program_effects(const sw_program *program, bool *ops, bool *computations)
{
	sw_arena arena;
	int32_t *callees_first;
	sw_arena_init(&arena);
	if (sw_program_order(program, &arena, &callees_first))
		mark_effects(program, callees_first, ops, computations);
	sw_arena_clear(&arena);
}

/* ---- order ------------------------------------------------------------------------------ */

enum { NEW, ON_STACK, PLACED };

typedef struct orderer {
	const sw_program *program;
	const sw_id *before; /* per op: the one that it follows besides its operands, or SW_NO_ID */
	bool *varies;        /* per op: it follows from parameters, or has a meaning of its own */
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

/* Set what each op of the computation follows: if it has an effect, the one before it that has. */
static void link_effects(const sw_computation *computation, const bool *effect, sw_id *before)
{
	sw_id last = SW_NO_ID;
	for (size_t i = 0; i < computation->ops.len; i++) {
		sw_id op = computation->ops.data[i];
		before[op] = effect[op] ? last : SW_NO_ID;
		if (effect[op])
			last = op;
	}
}

/* Place the ops that follow from parameters, or have a meaning of their own, in their order, and
 * parameters before their readers. */
static void place_varying(orderer *o, const sw_computation *computation, const bool *effect)
{
	const sw_program *program = o->program;
	for (size_t i = 0; i < computation->ops.len; i++) {
		sw_id id = computation->ops.data[i];
		const sw_op *op = sw_op_at(program, id);
		sw_op_class class = sw_opcode_class((sw_opcode)op->opcode);
		bool varies = op->opcode == SW_OP_PARAMETER || class == SW_CLASS_RANDOM ||
		              class == SW_CLASS_REGION || class == SW_CLASS_OTHER || effect[id];
		for (uint32_t k = 0; k < op->n_operands && !varies; k++)
			varies = o->varies[program->values.data[op->operands[k]].op];
		o->varies[id] = varies;
		if (varies && op->opcode != SW_OP_PARAMETER)
			place_op(o, id);
	}
}

static void order_computation(orderer *o, sw_computation *computation, const bool *effect,
                              bool constants)
{
	o->placed = 0;
	if (constants)
		place_varying(o, computation, effect);
	for (size_t i = 0; i < computation->results.len; i++)
		place_op(o, o->program->values.data[computation->results.data[i]].op);
	for (size_t i = 0; i < computation->ops.len; i++)
		place_op(o, computation->ops.data[i]);
	if (o->placed)
		memcpy(computation->ops.data, o->order, o->placed * sizeof(*o->order));
}

static void order_ops(sw_program *program, bool constants)
{
	sw_arena arena;
	sw_arena_init(&arena);
	size_t n = program->ops.len + 1, n_computations = program->computations.len;
	sw_id *before = SW_NEW_N(&arena, sw_id, n);
	bool *effect = SW_NEW_N(&arena, bool, n),
	     *effects = SW_NEW_N(&arena, bool, n_computations + 1);
	orderer o = {.program = program,
	             .before = before,
	             .varies = SW_NEW_N(&arena, bool, n),
	             .state = SW_NEW_N(&arena, uint8_t, n),
	             .order = SW_NEW_N(&arena, sw_id, n)};
	sw_loop_order loops;
	int32_t *callees_first;
	if (!sw_program_order(program, &arena, &callees_first))
		n_computations = 0; /* no verified program calls itself */
	else
		mark_effects(program, callees_first, effect, effects);
	sw_loop_order_init(&loops, program, &arena);
	for (size_t c = 0; c < n_computations; c++)
		sw_loop_order_set(&loops, (int32_t)c, false);
	for (size_t i = 0; i < n_computations; i++) {
		sw_computation *computation = &program->computations.data[callees_first[i]];
		sw_loop_order_set(&loops, callees_first[i], true);
		link_effects(computation, effect, before);
		order_computation(&o, computation, effect, constants);
	}
	sw_vec_clear(&o.stack);
	sw_arena_clear(&arena);
}

void sw_program_order_ops(sw_program *program)
{
	order_ops(program, false);
}

void sw_program_order_constants(sw_program *program)
{
	order_ops(program, true);
}
