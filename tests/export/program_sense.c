/* A value's hash is made of its op's and of its operands'; a computation's of its results'. */
#include "export/program_sense.h"

#include "program/attributes.h"

typedef struct sense {
	const sw_program *program;
	uint64_t *values, *computations;
} sense;

static void add_number(sw_text *key, uint64_t number)
{
	sw_text_add_n(key, (const char *)&number, sizeof(number));
}

static bool commutes(sw_opcode opcode)
{
	switch (opcode) {
	case SW_OP_ADD:
	case SW_OP_MULTIPLY:
	case SW_OP_MAXIMUM:
	case SW_OP_MINIMUM:
	case SW_OP_AND:
	case SW_OP_OR:
	case SW_OP_XOR:
		return true;
	default:
		return false;
	}
}

static uint64_t of_op(const sense *s, const sw_op *op)
{
	sw_text key = {0};
	add_number(&key, op->opcode);
	if (op->attrs)
		sw_attributes_key((sw_opcode)op->opcode, op->attrs, &key);
	bool any_order = commutes((sw_opcode)op->opcode);
	uint64_t sum = 0;
	for (uint32_t i = 0; i < op->n_operands; i++) {
		uint64_t operand = s->values[op->operands[i]];
		sum += sw_hash_u64(operand, 0);
		add_number(&key, any_order ? 0 : operand);
	}
	add_number(&key, sum);
	for (uint32_t i = 0; i < op->n_called; i++)
		add_number(&key, s->computations[op->called[i]]);
	for (uint32_t r = 0; r < op->n_results; r++)
		sw_shape_print(sw_value_shape(s->program, op->first_result + r), &key);
	uint64_t hash = sw_hash_bytes(key.data, key.len, 0);
	sw_text_clear(&key);
	return hash;
}

static uint64_t of_computation(sense *s, const sw_computation *c)
{
	uint64_t hash = c->results.len;
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(s->program, c->ops.data[i]);
		uint64_t whole = of_op(s, op);
		for (uint32_t r = 0; r < op->n_results; r++) {
			uint64_t pair[] = {whole, r};
			s->values[op->first_result + r] = sw_hash_bytes(pair, sizeof(pair), 0);
		}
	}
	for (size_t i = 0; i < c->results.len; i++)
		hash = sw_hash_bytes(&s->values[c->results.data[i]], sizeof(uint64_t), hash);
	return hash;
}

uint64_t sw_program_sense(const sw_program *program)
{
	sw_arena arena;
	sw_arena_init(&arena);
	sense s = {program, SW_NEW_N(&arena, uint64_t, program->values.len + 1),
	           SW_NEW_N(&arena, uint64_t, program->computations.len + 1)};
	for (size_t c = 0; c < program->computations.len; c++)
		s.computations[c] = of_computation(&s, &program->computations.data[c]);
	uint64_t hash = s.computations[program->entry];
	for (size_t i = 0; i < program->aliases.len; i++) {
		const sw_alias *alias = &program->aliases.data[i];
		uint64_t pair[] = {alias->output, alias->input};
		hash += sw_hash_bytes(pair, sizeof(pair), 1);
	}
	sw_arena_clear(&arena);
	return hash;
}
