/*
 * Which result of a step replaces which input, as the ops say.
 *
 * The new value of a state is made from the old one element by element: w - lr * g, b * m +
 * (1 - b) * g, n + 1. So a result's distance to an input of the same shape is the number of ops on
 * the shortest way back through elementwise ops, calls, branches, loops' carried values, and
 * updates of slices. Gradients end such ways, since contractions and reductions make them.
 *
 * Integers that are made of one input alone, whatever the ops, are its next value as well: a key of
 * random numbers is split into the next one.
 */
#include "frontend/state_pairs.h"

#include <stdlib.h>

#define MAX_VISITS 4096    /* values that are looked at for one result */
#define LONE_DISTANCE 1000 /* of what is made of an input by any ops: farther than elementwise */

/* A call whose computation the walk has entered. */
typedef struct context {
	const sw_op *call;
	uint32_t first_operand; /* of the computation's first leaf */
	int32_t parent;         /* -1: the entry */
} context;

typedef struct visited {
	sw_id value;
	int32_t context;
	uint32_t distance;
} visited;

typedef struct walk {
	const sw_program *program;
	sw_shape shape;
	uint32_t *leaf_of;     /* per value: the leaf of its computation's parameters that it is */
	uint64_t *seen;        /* per value: the walk and the context that saw it last */
	uint64_t number;       /* of this walk */
	SW_VEC(visited) queue; /* ascending distances */
	SW_VEC(context) contexts;
} walk;

static void visit(walk *w, sw_id value, int32_t in, uint32_t distance)
{
	uint64_t mark = w->number << 32 | (uint32_t)(in + 1);
	if (w->queue.len == MAX_VISITS || w->seen[value] == mark ||
	    !sw_shape_same_dims(sw_value_shape(w->program, value), w->shape))
		return;
	w->seen[value] = mark;
	sw_vec_push(&w->queue, ((visited){value, in, distance}));
}

static void enter(walk *w, visited at, const sw_op *call, uint32_t called, uint32_t first_operand)
{
	const sw_computation *c = &w->program->computations.data[call->called[called]];
	context in = {call, first_operand, at.context};
	sw_vec_push(&w->contexts, in);
	visit(w, c->results.data[w->program->values.data[at.value].index],
	      (int32_t)w->contexts.len - 1, at.distance + 1);
}

static void enter_branches(walk *w, visited at, const sw_op *op)
{
	uint32_t first = 1; /* the operand after the predicate */
	for (uint32_t b = 0; b < op->n_called; b++) {
		const sw_computation *c = &w->program->computations.data[op->called[b]];
		enter(w, at, op, b, first);
		for (size_t i = 0; i < c->parameters.len; i++)
			first += sw_op_at(w->program, c->parameters.data[i])->n_results;
	}
}

/* Leave a computation that a call entered: a parameter is the operand it stands for. */
static void leave(walk *w, visited at)
{
	if (at.context < 0)
		return;
	context in = w->contexts.data[at.context];
	visit(w, in.call->operands[in.first_operand + w->leaf_of[at.value]], in.parent,
	      at.distance + 1);
}

static void step_back(walk *w, visited at)
{
	const sw_value *value = &w->program->values.data[at.value];
	const sw_op *op = sw_op_at(w->program, value->op);
	switch (op->opcode) {
	case SW_OP_PARAMETER:
		leave(w, at);
		return;
	case SW_OP_CALL:
	case SW_OP_FUSION:
		enter(w, at, op, 0, 0);
		return;
	case SW_OP_CONDITIONAL:
		enter_branches(w, at, op);
		return;
	case SW_OP_WHILE:
	case SW_OP_OPT_BARRIER:
		visit(w, op->operands[value->index], at.context, at.distance + 1);
		return;
	case SW_OP_DYNAMIC_UPDATE_SLICE:
	case SW_OP_SCATTER:
		visit(w, op->operands[value->index], at.context, at.distance + 1);
		return;
	default:
		break;
	}
	if (sw_opcode_is_elementwise(op->opcode))
		for (uint32_t i = 0; i < op->n_operands; i++)
			visit(w, op->operands[i], at.context, at.distance + 1);
}

/* Append the entry inputs that result `output` is made from, with their distances. */
static void walk_back(walk *w, uint32_t output, sw_state_uses *uses)
{
	const sw_program *p = w->program;
	sw_id root = sw_entry(p)->results.data[output];
	w->number++;
	w->queue.len = 0;
	w->contexts.len = 0;
	w->shape = sw_value_shape(p, root);
	visit(w, root, -1, 0);
	for (size_t i = 0; i < w->queue.len; i++) {
		visited at = w->queue.data[i];
		const sw_op *op = sw_op_at(p, p->values.data[at.value].op);
		bool input = op->opcode == SW_OP_PARAMETER && op->computation == p->entry;
		if (input && sw_shape_equal(sw_value_shape(p, at.value), w->shape))
			sw_vec_push(uses,
			            ((sw_state_use){output, w->leaf_of[at.value], at.distance}));
		else
			step_back(w, at);
	}
}

/* Return the leaf of the one entry input that a value is made of; UINT32_MAX: there are others, or
 * none. */
static uint32_t lone_source(walk *w, sw_id root)
{
	const sw_program *p = w->program;
	uint32_t source = UINT32_MAX;
	w->number++;
	w->queue.len = 0;
	sw_vec_push(&w->queue, ((visited){.value = root}));
	for (size_t i = 0; i < w->queue.len; i++) {
		const sw_op *op = sw_op_at(p, p->values.data[w->queue.data[i].value].op);
		if (op->opcode == SW_OP_PARAMETER) {
			if (source != UINT32_MAX)
				return UINT32_MAX;
			source = w->leaf_of[w->queue.data[i].value];
		}
		for (uint32_t k = 0; k < op->n_operands; k++) {
			if (w->seen[op->operands[k]] == w->number << 32)
				continue;
			w->seen[op->operands[k]] = w->number << 32;
			sw_vec_push(&w->queue, ((visited){.value = op->operands[k]}));
		}
		if (w->queue.len > MAX_VISITS)
			return UINT32_MAX;
	}
	return source;
}

static void add_lone_source(walk *w, uint32_t output, const sw_id *inputs, sw_state_uses *uses)
{
	const sw_program *p = w->program;
	sw_id root = sw_entry(p)->results.data[output];
	sw_type_kind kind = sw_type_kind_of(sw_value_shape(p, root).type);
	if (kind != SW_KIND_SIGNED && kind != SW_KIND_UNSIGNED)
		return;
	uint32_t source = lone_source(w, root);
	if (source != UINT32_MAX &&
	    sw_shape_equal(sw_value_shape(p, inputs[source]), sw_value_shape(p, root)))
		sw_vec_push(uses, ((sw_state_use){output, source, LONE_DISTANCE}));
}

static void number_leaves(walk *w, sw_arena *arena)
{
	const sw_program *p = w->program;
	w->leaf_of = SW_NEW_N(arena, uint32_t, p->values.len + 1);
	for (size_t c = 0; c < p->computations.len; c++) {
		const sw_id *leaves;
		uint32_t n = sw_program_inputs(p, (int32_t)c, arena, &leaves);
		for (uint32_t i = 0; i < n; i++)
			w->leaf_of[leaves[i]] = i;
	}
}

void sw_state_find_uses(const sw_program *program, sw_state_uses *uses)
{
	sw_arena arena;
	sw_arena_init(&arena);
	walk w = {.program = program};
	number_leaves(&w, &arena);
	w.seen = SW_NEW_N(&arena, uint64_t, program->values.len + 1);
	const sw_id *inputs;
	sw_program_inputs(program, program->entry, &arena, &inputs);
	for (uint32_t o = 0; o < sw_entry(program)->results.len; o++) {
		size_t found = uses->len;
		walk_back(&w, o, uses);
		if (uses->len == found)
			add_lone_source(&w, o, inputs, uses);
	}
	sw_vec_clear(&w.queue);
	sw_vec_clear(&w.contexts);
	sw_arena_clear(&arena);
}
