/*
 * Loops over layers, which the canonical form writes out: JAX's scan over stacked weights, forward
 * and backward. Written out, each layer has layouts, copies and a pipeline stage of its own, and
 * what one layer does can be seen to reach the next.
 */
#include "rewrite/internal.h"

/* What the values of a body are made of, by bits. */
enum {
	CARRIED = 1, /* of what the iteration before computed */
	COUNTED = 2, /* of a carried integer */
	WEIGHTS = 4  /* of a part, chosen by a counter, of a state or of what layers left */
};

typedef struct layer_search {
	const sw_program *program;
	sw_id *loop; /* per computation: the loop of which it is the body; SW_NO_ID: none */
	uint8_t *made_of;
	bool *is_layers; /* per op, of those before */
	bool *is_state;  /* per value: an input that is replaced */
} layer_search;

static const sw_op *op_of(const layer_search *s, sw_id value)
{
	return sw_op_at(s->program, s->program->values.data[value].op);
}

static const sw_computation *body_of(const layer_search *s, const sw_op *loop)
{
	return &s->program->computations.data[loop->called[1]];
}

/* Return whether a carried value is the same in all iterations. */
static bool is_invariant(const layer_search *s, const sw_op *loop, uint32_t k)
{
	const sw_computation *body = body_of(s, loop);
	sw_id passed = body->results.data[k];
	return op_of(s, passed)->opcode == SW_OP_PARAMETER &&
	       s->program->values.data[passed].op == body->parameters.data[0] &&
	       s->program->values.data[passed].index == k;
}

static bool moves(const sw_op *op)
{
	return op->opcode == SW_OP_CONVERT || op->opcode == SW_OP_RESHAPE ||
	       op->opcode == SW_OP_TRANSPOSE || op->opcode == SW_OP_COPY ||
	       op->opcode == SW_OP_OPT_BARRIER;
}

/* Return what a value was before it was moved, and before loops passed it on. */
static sw_id source_of(const layer_search *s, sw_id value)
{
	for (;;) {
		const sw_value *v = &s->program->values.data[value];
		const sw_op *op = sw_op_at(s->program, v->op);
		sw_id loop = op->opcode == SW_OP_PARAMETER ? s->loop[op->computation] : SW_NO_ID;
		if (moves(op))
			value = op->operands[0];
		else if (loop != SW_NO_ID && is_invariant(s, sw_op_at(s->program, loop), v->index))
			value = sw_op_at(s->program, loop)->operands[v->index];
		else
			return value;
	}
}

/* Does a value hold something for each layer: a state, or what a loop over layers stacked up? */
static bool is_stack(const layer_search *s, sw_id value)
{
	sw_id source = source_of(s, value);
	sw_id id = s->program->values.data[source].op;
	const sw_op *op = sw_op_at(s->program, id);
	if (op->opcode == SW_OP_WHILE)
		return s->is_layers[id];
	return s->is_state[source];
}

static uint8_t carried_bits(const layer_search *s, const sw_op *loop, uint32_t k)
{
	sw_shape shape = sw_value_shape(s->program, loop->operands[k]);
	sw_type_kind kind = sw_type_kind_of(shape.type);
	if (is_invariant(s, loop, k))
		return 0;
	return shape.rank == 0 && (kind == SW_KIND_SIGNED || kind == SW_KIND_UNSIGNED) ? COUNTED
	                                                                               : CARRIED;
}

/* Find what an op's results are made of. */
static void visit_op(layer_search *s, const sw_op *op)
{
	uint8_t all = 0;
	for (uint32_t k = 0; k < op->n_operands; k++)
		all |= s->made_of[op->operands[k]];
	if (op->opcode == SW_OP_DYNAMIC_SLICE && (all & COUNTED) && is_stack(s, op->operands[0]))
		all = WEIGHTS;
	for (uint32_t r = 0; r < op->n_results; r++)
		s->made_of[op->first_result + r] = all;
}

/* Is one factor of the product made of weights that the other, which is carried, has not met? */
static bool multiplies_weights(const layer_search *s, const sw_op *op)
{
	bool product = op->opcode == SW_OP_DOT || op->opcode == SW_OP_CONVOLUTION ||
	               op->opcode == SW_OP_RAGGED_DOT;
	for (uint32_t k = 0; product && k < 2; k++)
		if ((s->made_of[op->operands[k]] & (WEIGHTS | CARRIED)) == WEIGHTS &&
		    (s->made_of[op->operands[1 - k]] & CARRIED))
			return true;
	return false;
}

static bool is_over_layers(layer_search *s, const sw_op *loop)
{
	const sw_computation *body = body_of(s, loop);
	if (loop->attrs->loop.trip_count < 1 || body->parameters.len != 1)
		return false;
	sw_id carried = sw_op_at(s->program, body->parameters.data[0])->first_result;
	for (uint32_t k = 0; k < loop->n_operands; k++)
		s->made_of[carried + k] = carried_bits(s, loop, k);
	for (size_t i = 0; i < body->ops.len; i++) {
		const sw_op *op = sw_op_at(s->program, body->ops.data[i]);
		if (op->opcode != SW_OP_PARAMETER)
			visit_op(s, op);
		if (multiplies_weights(s, op))
			return true;
	}
	return false;
}

/* Return the ops of a computation when the marked loops are written out, up to the limit. */
static int64_t count_ops(const layer_search *s, int32_t c, const bool *is_layers)
{
	const sw_computation *computation = &s->program->computations.data[c];
	int64_t n = (int64_t)computation->ops.len;
	for (size_t i = 0; i < computation->ops.len && n <= SW_LAYER_OPS; i++) {
		sw_id id = computation->ops.data[i];
		const sw_op *op = sw_op_at(s->program, id);
		for (uint32_t k = 0; sw_is_region(op) && k < op->n_called; k++) {
			int64_t times = is_layers[id] && k == 1 ? op->attrs->loop.trip_count : 1,
				more = count_ops(s, op->called[k], is_layers);
			n += SW_MIN(times, SW_LAYER_OPS + 1) * SW_MIN(more, SW_LAYER_OPS + 1);
		}
	}
	return n;
}

/* Where no input is replaced, as in inference, each may be a state. */
static void mark_states(layer_search *s, sw_arena *arena)
{
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(s->program, s->program->entry, arena, &inputs);
	for (uint32_t i = 0; i < n; i++)
		s->is_state[inputs[i]] = s->program->aliases.len == 0 ||
		                         sw_output_of_input(s->program, i) >= 0;
}

bool sw_find_layer_loops(const sw_program *program, bool *is_layers)
{
	sw_arena arena;
	sw_arena_init(&arena);
	layer_search s = {.program = program,
	                  .loop = SW_NEW_N(&arena, sw_id, program->computations.len),
	                  .made_of = SW_NEW_N(&arena, uint8_t, program->values.len + 1),
	                  .is_layers = is_layers,
	                  .is_state = SW_NEW_N(&arena, bool, program->values.len + 1)};
	mark_states(&s, &arena);
	bool any = false;
	for (size_t c = 0; c < program->computations.len; c++)
		s.loop[c] = SW_NO_ID;
	for (sw_id id = 0; id < program->ops.len; id++)
		if (sw_op_at(program, id)->opcode == SW_OP_WHILE)
			s.loop[sw_op_at(program, id)->called[1]] = id;
	for (sw_id id = 0; id < program->ops.len; id++) {
		is_layers[id] = sw_op_at(program, id)->opcode == SW_OP_WHILE &&
		                is_over_layers(&s, sw_op_at(program, id));
		any |= is_layers[id];
	}
	any = any && count_ops(&s, program->entry, is_layers) <= SW_LAYER_OPS;
	sw_arena_clear(&arena);
	return any;
}
