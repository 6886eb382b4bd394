/*
 * Repeats, by colour refinement (Weisfeiler and Leman): an op's colour says what it is; each round adds the colours of what it reads, and of what reads
 * it, by place. After r rounds two ops have one colour iff what lies around them, r uses far, is alike.
 */
#include "program/attributes.h"
#include "program/internal.h"

#include <string.h>

typedef struct painter {
	const sw_program *program;
	sw_users users;
	uint64_t *colour, *next;  /* per op */
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

/* The numbers that a layer has of its own are not looked at: which input it takes, where it cuts a stack, what a constant holds. */
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
}

/* Readers have no order. */
static uint64_t colour_of_readers(const painter *p, const sw_op *op)
{
	uint64_t sum = 0;
	for (uint32_t k = 0; k < op->n_results; k++) {
		sw_id value = op->first_result + k;
		for (uint32_t u = p->users.start[value]; u < p->users.start[value + 1]; u++) {
			const sw_op *reader = sw_op_at(p->program, p->users.ops[u]);
			uint64_t colour = sw_hash_u64(p->colour[p->users.ops[u]], k);
			for (uint32_t i = 0; i < reader->n_operands; i++)
				if (reader->operands[i] == value)
					sum += sw_hash_u64(colour, i);
		}
	}
	return sum;
}

static void paint_again(painter *p)
{
	const sw_program *program = p->program;
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		uint64_t colour = sw_hash_u64(p->colour[id], colour_of_readers(p, op));
		for (uint32_t i = 0; i < op->n_operands; i++) {
			const sw_value *read = &program->values.data[op->operands[i]];
			colour = sw_hash_u64(
				colour,
				sw_hash_u64(p->colour[read->op],
			                    op->operands[i] - sw_op_at(program, read->op)->first_result));
		}
		p->next[id] = colour;
	}
	memcpy(p->colour, p->next, sizeof(uint64_t) * program->ops.len);
}

static painter begin(const sw_program *program, bool sizes, sw_arena *arena)
{
	size_t n = program->ops.len;
	painter p = {.program = program, .users = sw_program_users(program, arena), .sizes = sizes};
	p.colour = SW_NEW_N(arena, uint64_t, n + 1);
	p.next = SW_NEW_N(arena, uint64_t, n + 1);
	p.of_computation = SW_NEW_N(arena, uint64_t, program->computations.len + 1);
	paint_first(&p);
	return p;
}

const uint64_t *sw_program_colours(const sw_program *program, int32_t radius, bool sizes, sw_arena *arena)
{
	painter p = begin(program, sizes, arena);
	for (int32_t r = 0; r < radius; r++)
		paint_again(&p);
	sw_text_clear(&p.key);
	return p.colour;
}

/* ---- the ends -------------------------------------------------------------------------------------------- */

/* A number that so many ops have is one of repeated layers. */
#define LAYERS_AT_LEAST 3

/* The first and the last layers look out upon something else, and so have numbers of their own. They are found from the layers beside them, whose
 * numbers are those of all: what an op reads, or is read by, is then what its neighbour's counterpart reads, or is read by. */
typedef struct matcher {
	painter p; /* whose colours are those of the first round: what an op is */
	uint32_t *number;
	int32_t *members;    /* per number */
	SW_VEC(sw_id) pairs; /* an op, and one of the layer beside it that has its number */
} matcher;

static void match(matcher *m, sw_id op, sw_id beside)
{
	uint32_t own = m->number[op], wanted = m->number[beside];
	if (own == wanted || m->p.colour[op] != m->p.colour[beside] || m->members[own] >= LAYERS_AT_LEAST ||
	    m->members[wanted] < LAYERS_AT_LEAST)
		return;
	m->members[own]--;
	m->members[wanted]++;
	m->number[op] = wanted;
	sw_vec_push(&m->pairs, op);
	sw_vec_push(&m->pairs, beside);
}

static void match_operands(matcher *m, const sw_op *op, const sw_op *beside)
{
	for (uint32_t i = 0; i < SW_MIN(op->n_operands, beside->n_operands); i++)
		match(m, m->p.program->values.data[op->operands[i]].op,
		      m->p.program->values.data[beside->operands[i]].op);
}

/* The only reader of the value at this place that is such an op; SW_NO_ID: none, or several. */
static sw_id only_reader(const matcher *m, sw_id value, uint32_t place, uint64_t colour)
{
	sw_id found = SW_NO_ID;
	for (uint32_t u = m->p.users.start[value]; u < m->p.users.start[value + 1]; u++) {
		sw_id id = m->p.users.ops[u];
		const sw_op *reader = sw_op_at(m->p.program, id);
		if (m->p.colour[id] != colour || place >= reader->n_operands ||
		    reader->operands[place] != value || id == found)
			continue;
		if (found != SW_NO_ID)
			return SW_NO_ID;
		found = id;
	}
	return found;
}

static void match_readers(matcher *m, const sw_op *op, const sw_op *beside)
{
	for (uint32_t k = 0; k < SW_MIN(op->n_results, beside->n_results); k++) {
		sw_id value = op->first_result + k, other = beside->first_result + k;
		for (uint32_t u = m->p.users.start[value]; u < m->p.users.start[value + 1]; u++) {
			sw_id reader = m->p.users.ops[u];
			const sw_op *at = sw_op_at(m->p.program, reader);
			for (uint32_t i = 0; i < at->n_operands; i++) {
				if (at->operands[i] != value)
					continue;
				sw_id same = only_reader(m, other, i, m->p.colour[reader]);
				if (same != SW_NO_ID &&
				    only_reader(m, value, i, m->p.colour[reader]) == reader)
					match(m, reader, same);
			}
		}
	}
}

/* Of each number the first two ops, and the last two. */
static void pair_ends(matcher *m, int32_t n_numbers)
{
	size_t n = m->p.program->ops.len;
	sw_id *last = sw_alloc(sizeof(*last) *
	                       (2 * (size_t)n_numbers + 1)); /* before the one looked at; before that */
	int32_t *seen = sw_alloc(sizeof(*seen) * ((size_t)n_numbers + 1));
	for (sw_id id = 0; id < n; id++) {
		uint32_t number = m->number[id];
		if (seen[number]++ == 1) {
			sw_vec_push(&m->pairs, last[2 * number]);
			sw_vec_push(&m->pairs, id);
		}
		last[2 * number + 1] = last[2 * number];
		last[2 * number] = id;
	}
	for (int32_t number = 0; number < n_numbers; number++)
		if (seen[number] >= LAYERS_AT_LEAST) {
			sw_vec_push(&m->pairs, last[2 * number]);
			sw_vec_push(&m->pairs, last[2 * number + 1]);
		}
	free(last);
	free(seen);
}

static void extend_to_ends(const painter *first, sw_repeats *repeats)
{
	matcher m = {.p = *first, .number = repeats->number};
	size_t n = first->program->ops.len;
	m.members = sw_alloc(sizeof(*m.members) * ((size_t)repeats->n + 1));
	for (size_t id = 0; id < n; id++)
		m.members[m.number[id]]++;
	pair_ends(&m, repeats->n);
	for (size_t i = 0; i < m.pairs.len; i += 2) {
		const sw_op *op = sw_op_at(first->program, m.pairs.data[i]);
		const sw_op *beside = sw_op_at(first->program, m.pairs.data[i + 1]);
		if (m.members[m.number[m.pairs.data[i]]] < LAYERS_AT_LEAST)
			continue;
		match_operands(&m, op, beside);
		match_readers(&m, op, beside);
	}
	sw_vec_clear(&m.pairs);
	free(m.members);
}

static void number_colours(const painter *p, sw_repeats *repeats)
{
	sw_map seen = {0};
	for (size_t id = 0; id < p->program->ops.len; id++) {
		repeats->number[id] =
			sw_map_intern(&seen, &p->colour[id], sizeof(p->colour[id]), (uint32_t)repeats->n);
		if (repeats->number[id] == (uint32_t)repeats->n)
			repeats->n++;
	}
	sw_map_clear(&seen);
}

sw_repeats sw_program_repeats(const sw_program *program, int32_t radius, sw_arena *arena)
{
	size_t n = program->ops.len;
	painter p = begin(program, true, arena), first = p;
	first.colour = sw_arena_copy(arena, p.colour, sizeof(uint64_t) * (n + 1));
	for (int32_t r = 0; r < radius; r++)
		paint_again(&p);
	sw_repeats repeats = {.number = SW_NEW_N(arena, uint32_t, n + 1)};
	number_colours(&p, &repeats);
	extend_to_ends(&first, &repeats);
	sw_text_clear(&p.key);
	return repeats;
}
