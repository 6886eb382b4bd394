/*
 * Repeats, by colour refinement (Weisfeiler and Leman): a node's colour says what it is; each round
 * adds the colours of what it reads, and of what reads it, by place. After r rounds two nodes have
 * one colour iff what lies around them, r uses far, is alike. Nodes are those of flow.c: ops, and
 * where values cross the edge of a region.
 */
#include "program/attributes.h"
#include "program/internal.h"

#include <string.h>

typedef struct painter {
	const sw_program *program;
	sw_flow flow;
	uint64_t *colour, *next;  /* per node */
	uint64_t *of_computation; /* of a region, what it calls */
	bool sizes; /* and attributes, which are full of them; else ops of any size are alike */
	sw_text key;
} painter;

static void key_shape(sw_text *key, sw_shape shape, bool sizes)
{
	int64_t numbers[2] = {shape.type, shape.rank};
	sw_text_add_n(key, (const char *)numbers, sizeof(numbers));
	if (shape.rank > 0 && sizes)
		sw_text_add_n(key, (const char *)shape.dims, sizeof(int64_t) * (size_t)shape.rank);
}

/* The numbers that a layer has of its own are not looked at: which input it takes, where it cuts a
 * stack, what a constant holds. */
static bool is_its_own(sw_opcode opcode)
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
	if (p->sizes && !is_its_own((sw_opcode)op->opcode))
		sw_attributes_key((sw_opcode)op->opcode, op->attrs, &p->key);
	uint64_t colour = sw_hash_bytes(p->key.data, p->key.len, 0);
	if (op->opcode == SW_OP_PARAMETER && op->computation != p->program->entry)
		colour = sw_hash_u64(colour, (uint64_t)op->attrs->parameter.number);
	for (uint32_t k = 0; k < op->n_called; k++)
		colour = sw_hash_u64(colour, p->of_computation[op->called[k]]);
	return colour;
}

/* What of it is passed on as it is, and what the rest is made by, are part of what a crossing is:
 * else all that a loop carries of one shape would be. */
static uint64_t first_colour_of_crossing(painter *p, uint32_t node)
{
	const sw_flow *flow = &p->flow;
	const sw_crossing *crossing = &flow->crossings[node - flow->n_ops];
	bool result = p->program->values.data[crossing->value].op == crossing->region;
	p->key.len = 0;
	key_shape(&p->key, sw_value_shape(p->program, crossing->value), p->sizes);
	uint64_t colour = sw_hash_bytes(p->key.data, p->key.len, result);
	for (uint32_t e = flow->in[node]; e < flow->in[node + 1]; e++) {
		uint32_t from = flow->edges[e].from;
		colour = sw_hash_u64(colour, from < flow->n_ops ? p->colour[from] : from == node);
	}
	return sw_hash_u64(p->colour[crossing->region], colour);
}

/* What is called stands before its callers. */
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
		p->colour[n] = first_colour_of_crossing(p, n);
}

/* Readers have no order. */
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

/* A number that so many ops have is one of repeated layers. */
#define LAYERS_AT_LEAST 3

/* The first and the last layers look out upon something else, and so have numbers of their own.
 * They are found from the layers beside them, whose numbers are those of all: what a node reads, or
 * is read by, is then what its neighbour's counterpart reads, or is read by. */
typedef struct matcher {
	painter p; /* whose colours are those of the first round: what a node is */
	uint32_t *number;
	int32_t *members;       /* per number */
	SW_VEC(uint32_t) pairs; /* a node, and one of the layer beside it that has its number */
} matcher;

static void match(matcher *m, uint32_t node, uint32_t beside)
{
	uint32_t own = m->number[node], wanted = m->number[beside];
	if (own == wanted || m->p.colour[node] != m->p.colour[beside] ||
	    m->members[own] >= LAYERS_AT_LEAST || m->members[wanted] < LAYERS_AT_LEAST)
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

/* The only reader of the node's result at this place that is such a node; SW_NO_ID: none, or
 * several. */
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

/* Of each number the first two nodes, and the last two. */
static void pair_ends(matcher *m, int32_t n_numbers)
{
	uint32_t n = m->p.flow.n;
	uint32_t *last = sw_alloc(sizeof(*last) *
	                          /* before the one looked at; before that */
	                          (2 * (size_t)n_numbers + 1));
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
		if (seen[number] >= LAYERS_AT_LEAST) {
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
		if (m.members[m.number[node]] < LAYERS_AT_LEAST)
			continue;
		match_operands(&m, node, beside);
		match_readers(&m, node, beside);
	}
	sw_vec_clear(&m.pairs);
	free(m.members);
}

/* ---- numbers ---------------------------------------------------------------------------- */

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
