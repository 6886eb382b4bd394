/*
 * Repeats, by colour refinement (Weisfeiler and Leman): a place's colour says what it is; each round adds the colours of what it reads, and of what reads
 * it, by operand. After r rounds two places have one colour iff what lies around them, r uses far, is alike.
 *
 * A PLACE is an op, or one value that a loop carries: it reads what goes into the loop and what the body makes of it, and is read in the loop and after it.
 * So layers are alike inside a loop as outside, wherever among the carried values theirs stand. The loop itself reads nothing.
 */
#include "program/attributes.h"
#include "program/internal.h"

#include <string.h>

/* By whom a place is read: which of its results, and as which operand. */
typedef struct reading {
	uint32_t place, result, operand;
} reading;

typedef struct painter {
	const sw_program *program;
	uint32_t n;               /* places: ops, then what loops carry */
	uint32_t *place, *result; /* per value: where it is made, and as which result of it */
	const sw_id *carried;     /* per place that is no op: what it reads, two values each */
	uint32_t *read_from;      /* per place, and one more: into readings */
	reading *readings;
	uint64_t *colour, *next;  /* per place */
	uint64_t *of_computation; /* of a region, what it calls */
	bool sizes; /* and attributes, which are full of them; else ops of any size are alike */
	sw_text key;
} painter;

/* ---- places -------------------------------------------------------------------------------------------------- */

#define CARRIED_READS 2

static uint32_t count_reads(const painter *p, uint32_t place)
{
	if (place >= p->program->ops.len)
		return CARRIED_READS;
	const sw_op *op = sw_op_at(p->program, place);
	return op->opcode == SW_OP_WHILE ? 0 : op->n_operands;
}

static const sw_id *reads_of(const painter *p, uint32_t place)
{
	size_t n = p->program->ops.len;
	return place < n ? sw_op_at(p->program, place)->operands : p->carried + CARRIED_READS * (place - n);
}

/* What value number `leaf` is inside a computation that takes one tuple. */
static sw_id leaf_of(const sw_program *program, int32_t computation, uint32_t leaf)
{
	const sw_computation *c = &program->computations.data[computation];
	return sw_op_at(program, c->parameters.data[0])->first_result + leaf;
}

/* What a loop carries is one place, of which the leaves inside and the loop's result are results. */
enum { IN_BODY, IN_CONDITION, AFTER_LOOP };

static void place_value(painter *p, sw_id value, uint32_t place, uint32_t result)
{
	p->place[value] = place;
	p->result[value] = result;
}

static void place_carried(painter *p, const sw_op *loop, uint32_t first, sw_id *reads)
{
	const sw_program *program = p->program;
	int32_t condition = loop->called[0], body = loop->called[1];
	for (uint32_t k = 0; k < loop->n_operands; k++) {
		place_value(p, leaf_of(program, condition, k), first + k, IN_CONDITION);
		place_value(p, leaf_of(program, body, k), first + k, IN_BODY);
		place_value(p, loop->first_result + k, first + k, AFTER_LOOP);
		reads[CARRIED_READS * k] = loop->operands[k];
		reads[CARRIED_READS * k + 1] = program->computations.data[body].results.data[k];
	}
}

static void find_places(painter *p, sw_arena *arena)
{
	const sw_program *program = p->program;
	size_t n = program->ops.len, carried = 0;
	for (sw_id v = 0; v < program->values.len; v++) {
		p->place[v] = program->values.data[v].op;
		p->result[v] = v - sw_op_at(program, p->place[v])->first_result;
	}
	for (size_t id = 0; id < n; id++)
		if (program->ops.data[id].opcode == SW_OP_WHILE)
			carried += program->ops.data[id].n_operands;
	sw_id *reads = SW_NEW_N(arena, sw_id, CARRIED_READS * carried + 1);
	p->n = (uint32_t)n;
	for (size_t id = 0; id < n; id++) {
		const sw_op *op = &program->ops.data[id];
		if (op->opcode != SW_OP_WHILE)
			continue;
		place_carried(p, op, p->n, reads + CARRIED_READS * (p->n - n));
		p->n += op->n_operands;
	}
	p->carried = reads;
}

static void list_readings(painter *p, sw_arena *arena)
{
	uint32_t *from = SW_NEW_N(arena, uint32_t, (size_t)p->n + 2) + 1;
	for (uint32_t at = 0; at < p->n; at++)
		for (uint32_t i = 0; i < count_reads(p, at); i++)
			from[p->place[reads_of(p, at)[i]] + 1]++;
	for (uint32_t at = 0; at < p->n; at++)
		from[at + 1] += from[at];
	p->readings = SW_NEW_N(arena, reading, (size_t)from[p->n] + 1);
	for (uint32_t at = 0; at < p->n; at++)
		for (uint32_t i = 0; i < count_reads(p, at); i++) {
			sw_id value = reads_of(p, at)[i];
			p->readings[from[p->place[value]]++] = (reading){at, p->result[value], i};
		}
	p->read_from = from - 1; /* each has moved on to where the next one's begin */
}

/* ---- colours ------------------------------------------------------------------------------------------------- */

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

static void paint_carried(painter *p)
{
	for (uint32_t at = (uint32_t)p->program->ops.len; at < p->n; at++) {
		p->key.len = 0;
		key_shape(&p->key, sw_value_shape(p->program, reads_of(p, at)[0]), p->sizes);
		p->colour[at] = sw_hash_bytes(p->key.data, p->key.len, SW_OP_WHILE);
	}
}

/* Readers have no order. */
static uint64_t colour_of_readers(const painter *p, uint32_t place)
{
	uint64_t sum = 0;
	for (uint32_t u = p->read_from[place]; u < p->read_from[place + 1]; u++) {
		const reading *r = &p->readings[u];
		sum += sw_hash_u64(sw_hash_u64(p->colour[r->place], r->result), r->operand);
	}
	return sum;
}

static void paint_again(painter *p)
{
	for (uint32_t at = 0; at < p->n; at++) {
		uint64_t colour = sw_hash_u64(p->colour[at], colour_of_readers(p, at));
		for (uint32_t i = 0; i < count_reads(p, at); i++) {
			sw_id value = reads_of(p, at)[i];
			colour = sw_hash_u64(colour,
			                     sw_hash_u64(p->colour[p->place[value]], p->result[value]));
		}
		p->next[at] = colour;
	}
	memcpy(p->colour, p->next, sizeof(uint64_t) * p->n);
}

static painter begin(const sw_program *program, bool sizes, sw_arena *arena)
{
	painter p = {.program = program, .sizes = sizes};
	p.place = SW_NEW_N(arena, uint32_t, program->values.len + 1);
	p.result = SW_NEW_N(arena, uint32_t, program->values.len + 1);
	find_places(&p, arena);
	list_readings(&p, arena);
	p.colour = SW_NEW_N(arena, uint64_t, (size_t)p.n + 1);
	p.next = SW_NEW_N(arena, uint64_t, (size_t)p.n + 1);
	p.of_computation = SW_NEW_N(arena, uint64_t, program->computations.len + 1);
	paint_first(&p);
	paint_carried(&p);
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
 * numbers are those of all: what a place reads, or is read by, is then what its neighbour's counterpart reads, or is read by. */
typedef struct matcher {
	painter p; /* whose colours are those of the first round: what a place is */
	uint32_t *number;
	int32_t *members;       /* per number */
	SW_VEC(uint32_t) pairs; /* a place, and one of the layer beside it that has its number */
} matcher;

static void match(matcher *m, uint32_t place, uint32_t beside)
{
	uint32_t own = m->number[place], wanted = m->number[beside];
	if (own == wanted || m->p.colour[place] != m->p.colour[beside] ||
	    m->members[own] >= LAYERS_AT_LEAST || m->members[wanted] < LAYERS_AT_LEAST)
		return;
	m->members[own]--;
	m->members[wanted]++;
	m->number[place] = wanted;
	sw_vec_push(&m->pairs, place);
	sw_vec_push(&m->pairs, beside);
}

static void match_reads(matcher *m, uint32_t place, uint32_t beside)
{
	const painter *p = &m->p;
	const sw_id *own = reads_of(p, place), *others = reads_of(p, beside);
	for (uint32_t i = 0; i < SW_MIN(count_reads(p, place), count_reads(p, beside)); i++)
		match(m, p->place[own[i]], p->place[others[i]]);
}

/* The only reader that is such a place, and reads this result as this operand; SW_NO_ID: none, or several. */
static uint32_t only_reader(const matcher *m, uint32_t place, const reading *like)
{
	const painter *p = &m->p;
	uint32_t found = SW_NO_ID;
	for (uint32_t u = p->read_from[place]; u < p->read_from[place + 1]; u++) {
		const reading *r = &p->readings[u];
		if (p->colour[r->place] != p->colour[like->place] || r->result != like->result ||
		    r->operand != like->operand)
			continue;
		if (found != SW_NO_ID)
			return SW_NO_ID;
		found = r->place;
	}
	return found;
}

static void match_readers(matcher *m, uint32_t place, uint32_t beside)
{
	const painter *p = &m->p;
	for (uint32_t u = p->read_from[place]; u < p->read_from[place + 1]; u++) {
		const reading *r = &p->readings[u];
		uint32_t same = only_reader(m, beside, r);
		if (same != SW_NO_ID && only_reader(m, place, r) == r->place)
			match(m, r->place, same);
	}
}

/* Of each number the first two places, and the last two. */
static void pair_ends(matcher *m, int32_t n_numbers)
{
	uint32_t *last = sw_alloc(sizeof(*last) *
	                          (2 * (size_t)n_numbers + 1)); /* before the one looked at; before that */
	int32_t *seen = sw_alloc(sizeof(*seen) * ((size_t)n_numbers + 1));
	for (uint32_t at = 0; at < m->p.n; at++) {
		uint32_t number = m->number[at];
		if (seen[number]++ == 1) {
			sw_vec_push(&m->pairs, last[2 * number]);
			sw_vec_push(&m->pairs, at);
		}
		last[2 * number + 1] = last[2 * number];
		last[2 * number] = at;
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
	m.members = sw_alloc(sizeof(*m.members) * ((size_t)repeats->n + 1));
	for (uint32_t at = 0; at < first->n; at++)
		m.members[m.number[at]]++;
	pair_ends(&m, repeats->n);
	for (size_t i = 0; i < m.pairs.len; i += 2) {
		uint32_t place = m.pairs.data[i], beside = m.pairs.data[i + 1];
		if (m.members[m.number[place]] < LAYERS_AT_LEAST)
			continue;
		match_reads(&m, place, beside);
		match_readers(&m, place, beside);
	}
	sw_vec_clear(&m.pairs);
	free(m.members);
}

static void number_colours(const painter *p, sw_repeats *repeats)
{
	sw_map seen = {0};
	for (uint32_t at = 0; at < p->n; at++) {
		repeats->number[at] =
			sw_map_intern(&seen, &p->colour[at], sizeof(p->colour[at]), (uint32_t)repeats->n);
		if (repeats->number[at] == (uint32_t)repeats->n)
			repeats->n++;
	}
	sw_map_clear(&seen);
}

sw_repeats sw_program_repeats(const sw_program *program, int32_t radius, sw_arena *arena)
{
	painter p = begin(program, true, arena), first = p;
	first.colour = sw_arena_copy(arena, p.colour, sizeof(uint64_t) * ((size_t)p.n + 1));
	for (int32_t r = 0; r < radius; r++)
		paint_again(&p);
	sw_repeats repeats = {
		.number = SW_NEW_N(arena, uint32_t, (size_t)p.n + 1), .place = p.place, .result = p.result};
	number_colours(&p, &repeats);
	extend_to_ends(&first, &repeats);
	sw_text_clear(&p.key);
	return repeats;
}
