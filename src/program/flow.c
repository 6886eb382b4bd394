/*
 * Dataflow: which node reads which value, across regions too. A value that enters a loop or a
 * branch, is carried around a loop, or leaves a region passes through a node of its own, its region
 * boundary value. The many values that one loop carries are thus identified by their uses, not by
 * their positions in the loop's list.
 */
#include "program/internal.h"

typedef struct flow_builder {
	const sw_program *program;
	sw_flow *flow;
	SW_VEC(sw_flow_edge) edges; /* edges into boundary values, in their order */
	SW_VEC(sw_flow_boundary) boundaries;
} flow_builder;

static bool is_region(const sw_op *op)
{
	return op->opcode == SW_OP_WHILE || op->opcode == SW_OP_CONDITIONAL;
}

static sw_id leaf_of(const sw_program *p, int32_t c, uint32_t leaf)
{
	return sw_op_at(p, p->computations.data[c].parameters.data[0])->first_result + leaf;
}

static sw_id result_of(const sw_program *p, int32_t c, uint32_t result)
{
	return p->computations.data[c].results.data[result];
}

/* Append the boundary value that defines `value`. */
static uint32_t add_boundary(flow_builder *b, sw_id region, sw_id value)
{
	sw_vec_push(&b->boundaries, ((sw_flow_boundary){region, value}));
	return b->flow->n_ops + (uint32_t)b->boundaries.len - 1;
}

static void set_definition(flow_builder *b, sw_id value, uint32_t boundary, uint32_t which)
{
	b->flow->node[value] = boundary;
	b->flow->which[value] = which;
}

/* Append an edge from `value`. Its node is resolved later, when all boundary values are known. */
static void add_read(flow_builder *b, sw_id value, uint32_t boundary, uint32_t place)
{
	sw_vec_push(&b->edges, ((sw_flow_edge){value, 0, boundary, place}));
}

static void add_loop_boundaries(flow_builder *b, sw_id id)
{
	const sw_program *p = b->program;
	const sw_op *op = sw_op_at(p, id);
	int32_t condition = op->called[0], body = op->called[1];
	for (uint32_t k = 0; k < op->n_operands; k++) {
		uint32_t boundary = add_boundary(b, id, op->first_result + k);
		add_read(b, op->operands[k], boundary, 0);
		add_read(b, result_of(p, body, k), boundary, 1);
		set_definition(b, leaf_of(p, condition, k), boundary, 0);
		set_definition(b, leaf_of(p, body, k), boundary, 1);
		set_definition(b, op->first_result + k, boundary, 2);
	}
}

static void add_branch_boundaries(flow_builder *b, sw_id id)
{
	const sw_program *p = b->program;
	const sw_op *op = sw_op_at(p, id);
	uint32_t operand = 1;
	for (uint32_t k = 0; k < op->n_called; k++) {
		const sw_computation *branch = &p->computations.data[op->called[k]];
		uint32_t leaves = sw_op_at(p, branch->parameters.data[0])->n_results;
		for (uint32_t i = 0; i < leaves; i++, operand++) {
			sw_id leaf = leaf_of(p, op->called[k], i);
			uint32_t boundary = add_boundary(b, id, leaf);
			add_read(b, op->operands[operand], boundary, k);
			set_definition(b, leaf, boundary, 0);
		}
	}
	for (uint32_t i = 0; i < op->n_results; i++) {
		uint32_t boundary = add_boundary(b, id, op->first_result + i);
		for (uint32_t k = 0; k < op->n_called; k++)
			add_read(b, result_of(p, op->called[k], i), boundary, k);
		set_definition(b, op->first_result + i, boundary, 0);
	}
}

static void find_boundaries(flow_builder *b)
{
	for (sw_id id = 0; id < b->program->ops.len; id++) {
		const sw_op *op = sw_op_at(b->program, id);
		for (uint32_t k = 0; k < op->n_results; k++) {
			b->flow->node[op->first_result + k] = id;
			b->flow->which[op->first_result + k] = k;
		}
	}
	for (sw_id id = 0; id < b->program->ops.len; id++) {
		const sw_op *op = sw_op_at(b->program, id);
		if (op->opcode == SW_OP_WHILE)
			add_loop_boundaries(b, id);
		else if (op->opcode == SW_OP_CONDITIONAL)
			add_branch_boundaries(b, id);
	}
}

static void add_edge(sw_flow *flow, sw_id value, uint32_t to, uint32_t place)
{
	flow->edges[flow->n_edges++] =
		(sw_flow_edge){flow->node[value], flow->which[value], to, place};
}

/* Sort the edges by the node that they lead to, ops first. The operands of a region op are read by
 * its boundary values. */
static void list_edges(flow_builder *b, sw_arena *arena)
{
	const sw_program *p = b->program;
	sw_flow *flow = b->flow;
	size_t capacity = b->edges.len, next = 0;
	for (size_t i = 0; i < p->ops.len; i++)
		capacity += p->ops.data[i].n_operands;
	flow->edges = SW_NEW_N(arena, sw_flow_edge, capacity + 1);
	flow->in = SW_NEW_N(arena, uint32_t, flow->n + 1);
	for (uint32_t to = 0; to < flow->n; to++) {
		const sw_op *op = to < flow->n_ops ? sw_op_at(p, to) : NULL;
		flow->in[to] = flow->n_edges;
		for (uint32_t k = 0; op && !is_region(op) && k < op->n_operands; k++)
			add_edge(flow, op->operands[k], to, k);
		for (; next < b->edges.len && b->edges.data[next].to == to; next++)
			add_edge(flow, b->edges.data[next].from, to, b->edges.data[next].place);
	}
	flow->in[flow->n] = flow->n_edges;
}

static void list_readers(sw_flow *flow, sw_arena *arena)
{
	flow->out_start = SW_NEW_N(arena, uint32_t, flow->n + 2);
	flow->out = SW_NEW_N(arena, uint32_t, flow->n_edges + 1);
	uint32_t *next = flow->out_start + 1;
	for (uint32_t e = 0; e < flow->n_edges; e++)
		next[flow->edges[e].from + 1]++;
	for (uint32_t n = 0; n < flow->n; n++)
		next[n + 1] += next[n];
	for (uint32_t e = 0; e < flow->n_edges; e++)
		flow->out[next[flow->edges[e].from]++] = e;
}

sw_flow sw_flow_of(const sw_program *program, sw_arena *arena)
{
	sw_flow flow = {.n_ops = (uint32_t)program->ops.len};
	flow_builder b = {.program = program, .flow = &flow};
	flow.node = SW_NEW_N(arena, uint32_t, program->values.len + 1);
	flow.which = SW_NEW_N(arena, uint32_t, program->values.len + 1);
	find_boundaries(&b);
	flow.n = flow.n_ops + (uint32_t)b.boundaries.len;
	flow.boundaries = sw_arena_copy(arena, b.boundaries.data,
	                                sizeof(sw_flow_boundary) * b.boundaries.len);
	list_edges(&b, arena);
	list_readers(&flow, arena);
	sw_vec_clear(&b.edges);
	sw_vec_clear(&b.boundaries);
	return flow;
}
