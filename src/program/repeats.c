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

const uint64_t *sw_program_colours(const sw_program *program, int32_t radius, bool sizes, sw_arena *arena)
{
	size_t n = program->ops.len;
	painter p = {.program = program, .users = sw_program_users(program, arena), .sizes = sizes};
	p.colour = SW_NEW_N(arena, uint64_t, n + 1);
	p.next = SW_NEW_N(arena, uint64_t, n + 1);
	p.of_computation = SW_NEW_N(arena, uint64_t, program->computations.len + 1);
	paint_first(&p);
	for (int32_t r = 0; r < radius; r++)
		paint_again(&p);
	sw_text_clear(&p.key);
	return p.colour;
}

sw_repeats sw_program_repeats(const sw_program *program, int32_t radius, sw_arena *arena)
{
	size_t n = program->ops.len;
	const uint64_t *colours = sw_program_colours(program, radius, true, arena);
	sw_map seen = {0};
	sw_repeats repeats = {.number = SW_NEW_N(arena, uint32_t, n + 1)};
	for (size_t id = 0; id < n; id++) {
		repeats.number[id] =
			sw_map_intern(&seen, &colours[id], sizeof(colours[id]), (uint32_t)repeats.n);
		if (repeats.number[id] == (uint32_t)repeats.n)
			repeats.n++;
	}
	sw_map_clear(&seen);
	return repeats;
}
