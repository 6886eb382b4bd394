/*
 * Equivalence classes of ops, by colour refinement (Weisfeiler and Leman): the first colour of a
 * node describes the node; each round adds the colours of the nodes that it reads, and of those
 * that read it, by operand position. After r rounds two nodes have one colour iff their
 * surroundings, r uses far, are alike. The nodes are those of flow.c: ops and region boundary
 * values.
 */
#include "program/attributes.h"
#include "program/internal.h"

#include <string.h>

typedef struct painter {
	const sw_program *program;
	sw_flow flow;
	uint64_t *colour, *next;  /* per node */
	uint64_t *of_computation; /* per computation: hash of its ops */
	/* Compare sizes and attributes (which contain sizes); otherwise ops of any size may be
	 * alike. */
	bool sizes;
	sw_text key;
} painter;

static void key_shape(sw_text *key, sw_shape shape, bool sizes)
{
	int64_t numbers[2] = {shape.type, shape.rank};
	sw_text_add_n(key, (const char *)numbers, sizeof(numbers));
	if (shape.rank > 0 && sizes)
		sw_text_add_n(key, (const char *)shape.dims, sizeof(int64_t) * (size_t)shape.rank);
}

/* Return whether the op's attributes differ between otherwise equal layers, and so are not
 * compared: the number of an input, the bounds of a slice of stacked weights, the contents of a
 * constant. */
static bool varies_between_layers(sw_opcode opcode)
{
	return opcode == SW_OP_PARAMETER || opcode == SW_OP_CONSTANT || opcode == SW_OP_SLICE;
}

static uint64_t first_colour(painter *p, const sw_op *op)
{
	int64_t opcode = op->opcode;
	p->key.len = 0;
	sw_text_add_n(&p->key, (const char *)&opcode, sizeof(opcode));
	for (uint32_t i = 0; i < op->n_operands; i++)
		key_shape(&p->key, sw_value_shape(p->program, op->operands[i]), p->sizes);
	for (uint32_t i = 0; i < op->n_results; i++)
		key_shape(&p->key, sw_value_shape(p->program, op->first_result + i), p->sizes);
	if (p->sizes && !varies_between_layers((sw_opcode)op->opcode))
		sw_attributes_key((sw_opcode)op->opcode, op->attrs, &p->key);
	uint64_t colour = sw_hash_bytes(p->key.data, p->key.len, 0);
	if (op->opcode == SW_OP_PARAMETER && op->computation != p->program->entry)
		colour = sw_hash_u64(colour, (uint64_t)op->attrs->parameter.number);
	for (uint32_t k = 0; k < op->n_called; k++)
		colour = sw_hash_u64(colour, p->of_computation[op->called[k]]);
	return colour;
}

/* The first colour of a boundary value includes whether it is passed on unchanged and which ops
 * define it: without these, all loop-carried values of one shape would start in one class. */
static uint64_t first_colour_of_boundary(painter *p, uint32_t node)
{
	const sw_flow *flow = &p->flow;
	const sw_flow_boundary *boundary = &flow->boundaries[node - flow->n_ops];
	bool result = p->program->values.data[boundary->value].op == boundary->region;
	p->key.len = 0;
	key_shape(&p->key, sw_value_shape(p->program, boundary->value), p->sizes);
	uint64_t colour = sw_hash_bytes(p->key.data, p->key.len, result);
	for (uint32_t e = flow->in[node]; e < flow->in[node + 1]; e++) {
		uint32_t from = flow->edges[e].from;
		colour = sw_hash_u64(colour, from < flow->n_ops ? p->colour[from] : from == node);
	}
	return sw_hash_u64(p->colour[boundary->region], colour);
}

/* Computations stand before their callers, so that the colours of called computations are ready. */
static void paint_first(painter *p)
{
	const sw_program *program = p->program;
	for (size_t c = 0; c < program->computations.len; c++) {
		const sw_computation *computation = &program->computations.data[c];
		for (size_t i = 0; i < computation->ops.len; i++) {
			sw_id id = computation->ops.data[i];
			p->colour[id] = first_colour(p, sw_op_at(program, id));
			p->of_computation[c] = sw_hash_u64(p->of_computation[c], p->colour[id]);
		}
	}
	for (uint32_t n = p->flow.n_ops; n < p->flow.n; n++)
		p->colour[n] = first_colour_of_boundary(p, n);
}

/* Return the sum of the readers' colours, which does not depend on their order. */
static uint64_t colour_of_readers(const painter *p, uint32_t node)
{
	const sw_flow *flow = &p->flow;
	uint64_t sum = 0;
	for (uint32_t k = flow->out_start[node]; k < flow->out_start[node + 1]; k++) {
		const sw_flow_edge *use = &flow->edges[flow->out[k]];
		sum += sw_hash_u64(sw_hash_u64(p->colour[use->to], use->which), use->place);
	}
	return sum;
}

static void paint_again(painter *p)
{
	const sw_flow *flow = &p->flow;
	for (uint32_t n = 0; n < flow->n; n++) {
		uint64_t colour = sw_hash_u64(p->colour[n], colour_of_readers(p, n));
		for (uint32_t e = flow->in[n]; e < flow->in[n + 1]; e++) {
			const sw_flow_edge *read = &flow->edges[e];
			colour = sw_hash_u64(colour,
			                     sw_hash_u64(p->colour[read->from], read->which));
		}
		p->next[n] = colour;
	}
	memcpy(p->colour, p->next, sizeof(uint64_t) * flow->n);
}

static painter begin(const sw_program *program, bool sizes, sw_arena *arena)
{
	painter p = {.program = program, .flow = sw_flow_of(program, arena), .sizes = sizes};
	p.colour = SW_NEW_N(arena, uint64_t, p.flow.n + 1);
	p.next = SW_NEW_N(arena, uint64_t, p.flow.n + 1);
	p.of_computation = SW_NEW_N(arena, uint64_t, program->computations.len + 1);
	paint_first(&p);
	return p;
}

const uint64_t *sw_program_colours(const sw_program *program, int32_t radius, bool sizes,
                                   sw_arena *arena)
{
	painter p = begin(program, sizes, arena);
	for (int32_t r = 0; r < radius; r++)
		paint_again(&p);
	sw_text_clear(&p.key);
	return p.colour;
}

/* ---- the ends --------------------------------------------------------------------------- */

/* A class with at least this many ops is one of repeated layers. */
#define MIN_LAYERS 3

/* The surroundings of the first and the last layers differ from those of the others, so that their
 * ops have classes of their own. They are matched to the neighbouring layer, whose ops are in the
 * common classes: an operand (or reader) of a node is matched to the same operand (or reader) of
 * the node's counterpart in the neighbouring layer. */
typedef struct matcher {
	painter p; /* holds the first colours, which describe the nodes by themselves */
	uint32_t *number;
	int32_t *members; /* per class: its number of nodes */
	/* a node, and its counterpart in the neighbouring layer, which is in the same class */
	SW_VEC(uint32_t) pairs;
} matcher;

static void match(matcher *m, uint32_t node, uint32_t beside)
{
	uint32_t own = m->number[node], wanted = m->number[beside];
	if (own == wanted || m->p.colour[node] != m->p.colour[beside] ||
	    m->members[own] >= MIN_LAYERS || m->members[wanted] < MIN_LAYERS)
		return;
	m->members[own]--;
	m->members[wanted]++;
	m->number[node] = wanted;
	sw_vec_push(&m->pairs, node);
	sw_vec_push(&m->pairs, beside);
}

static void match_operands(matcher *m, uint32_t node, uint32_t beside)
{
	const sw_flow *flow = &m->p.flow;
	uint32_t reads = flow->in[node + 1] - flow->in[node],
		 others = flow->in[beside + 1] - flow->in[beside];
	for (uint32_t i = 0; i < SW_MIN(reads, others); i++)
		match(m, flow->edges[flow->in[node] + i].from,
		      flow->edges[flow->in[beside] + i].from);
}

/* Return the only node that reads the node's result in the same way as the edge `like` and has the
 * same colour; SW_NO_ID: none, or several. */
static uint32_t only_reader(const matcher *m, uint32_t node, const sw_flow_edge *like)
{
	const sw_flow *flow = &m->p.flow;
	uint32_t found = SW_NO_ID;
	for (uint32_t k = flow->out_start[node]; k < flow->out_start[node + 1]; k++) {
		const sw_flow_edge *use = &flow->edges[flow->out[k]];
		if (use->which != like->which || use->place != like->place ||
		    m->p.colour[use->to] != m->p.colour[like->to] || use->to == found)
			continue;
		if (found != SW_NO_ID)
			return SW_NO_ID;
		found = use->to;
	}
	return found;
}

static void match_readers(matcher *m, uint32_t node, uint32_t beside)
{
	const sw_flow *flow = &m->p.flow;
	for (uint32_t k = flow->out_start[node]; k < flow->out_start[node + 1]; k++) {
		const sw_flow_edge *use = &flow->edges[flow->out[k]];
		uint32_t same = only_reader(m, beside, use);
		if (same != SW_NO_ID && only_reader(m, node, use) == use->to)
			match(m, use->to, same);
	}
}

/* Add the first two and the last two nodes of each class as pairs. */
static void pair_ends(matcher *m, int32_t n_numbers)
{
	uint32_t n = m->p.flow.n;
	/* last: per class the latest node, and the one before it */
	uint32_t *last = sw_alloc(sizeof(*last) * (2 * (size_t)n_numbers + 1));
	int32_t *seen = sw_alloc(sizeof(*seen) * ((size_t)n_numbers + 1));
	for (uint32_t node = 0; node < n; node++) {
		uint32_t number = m->number[node];
		if (seen[number]++ == 1) {
			sw_vec_push(&m->pairs, last[2 * number]);
			sw_vec_push(&m->pairs, node);
		}
		last[2 * number + 1] = last[2 * number];
		last[2 * number] = node;
	}
	for (int32_t number = 0; number < n_numbers; number++)
		if (seen[number] >= MIN_LAYERS) {
			sw_vec_push(&m->pairs, last[2 * number]);
			sw_vec_push(&m->pairs, last[2 * number + 1]);
		}
	free(last);
	free(seen);
}

static void extend_to_ends(const painter *first, sw_equivalence *repeats)
{
	matcher m = {.p = *first, .number = repeats->number};
	m.members = sw_alloc(sizeof(*m.members) * ((size_t)repeats->n + 1));
	for (uint32_t node = 0; node < first->flow.n; node++)
		m.members[m.number[node]]++;
	pair_ends(&m, repeats->n);
	for (size_t i = 0; i < m.pairs.len; i += 2) {
		uint32_t node = m.pairs.data[i], beside = m.pairs.data[i + 1];
		if (m.members[m.number[node]] < MIN_LAYERS)
			continue;
		match_operands(&m, node, beside);
		match_readers(&m, node, beside);
	}
	sw_vec_clear(&m.pairs);
	free(m.members);
}

/* ---- classes ---------------------------------------------------------------------------- */

static void number_colours(const painter *p, sw_equivalence *repeats)
{
	sw_map seen = {0};
	for (uint32_t node = 0; node < p->flow.n; node++) {
		repeats->number[node] = sw_map_intern(
			&seen, &p->colour[node], sizeof(p->colour[node]), (uint32_t)repeats->n);
		if (repeats->number[node] == (uint32_t)repeats->n)
			repeats->n++;
	}
	sw_map_clear(&seen);
}

static void number_values(const painter *p, sw_equivalence *repeats)
{
	sw_map seen = {0};
	uint32_t n = 0;
	for (size_t v = 0; v < p->program->values.len; v++) {
		const uint32_t key[] = {repeats->number[p->flow.node[v]], p->flow.which[v]};
		repeats->of_value[v] = sw_map_intern(&seen, key, sizeof(key), n);
		n += repeats->of_value[v] == n;
	}
	sw_map_clear(&seen);
}

sw_equivalence sw_program_equivalence(const sw_program *program, int32_t radius, sw_arena *arena)
{
	painter p = begin(program, true, arena), first = p;
	first.colour = sw_arena_copy(arena, p.colour, sizeof(uint64_t) * (p.flow.n + 1));
	for (int32_t r = 0; r < radius; r++)
		paint_again(&p);
	sw_equivalence repeats = {.number = SW_NEW_N(arena, uint32_t, p.flow.n + 1),
	                          .of_value = SW_NEW_N(arena, uint32_t, program->values.len + 1)};
	number_colours(&p, &repeats);
	extend_to_ends(&first, &repeats);
	number_values(&p, &repeats);
	sw_text_clear(&p.key);
	return repeats;
}
