/*
 * Dependences of a value: on data, of the loss on it, and of a contraction on it. They pass through
 * loops and branches, so the program is walked until nothing changes.
 */
#include "papers.h"

bool contracts(const sw_op *op)
{
	return op->opcode == SW_OP_DOT || op->opcode == SW_OP_CONVOLUTION;
}

typedef struct flow {
	const sw_program *program;
	uint8_t *marks; /* per value */
	bool changed;
} flow;

static void mark(flow *f, sw_id value, uint8_t bits)
{
	f->changed |= (f->marks[value] | bits) != f->marks[value];
	f->marks[value] |= bits;
}

/* Propagate marks between two values that are equal, or of which one becomes the other: the marks
 * of origin go forwards, the marks of use go backwards. */
static void join(flow *f, sw_id earlier, sw_id later)
{
	mark(f, later, f->marks[earlier] & FLOW_FROM_DATA);
	mark(f, earlier, f->marks[later] & (FLOW_TO_LOSS | FLOW_TO_CONTRACTION));
}

static sw_id leaf(const flow *f, int32_t computation, uint32_t i)
{
	const sw_computation *c = &f->program->computations.data[computation];
	return sw_op_at(f->program, c->parameters.data[0])->first_result + i;
}

static void pass_loop(flow *f, const sw_op *op)
{
	const sw_computation *body = &f->program->computations.data[op->called[1]];
	for (uint32_t i = 0; i < op->n_operands; i++) {
		join(f, op->operands[i], leaf(f, op->called[1], i));
		join(f, op->operands[i], op->first_result + i);
		join(f, body->results.data[i], leaf(f, op->called[1], i));
		join(f, body->results.data[i], op->first_result + i);
	}
}

static void pass_branches(flow *f, const sw_op *op)
{
	uint32_t operand = 1;
	for (uint32_t k = 0; k < op->n_called; k++) {
		const sw_computation *branch = &f->program->computations.data[op->called[k]];
		uint32_t leaves = sw_op_at(f->program, branch->parameters.data[0])->n_results;
		for (uint32_t i = 0; i < leaves; i++)
			join(f, op->operands[operand++], leaf(f, op->called[k], i));
		for (uint32_t i = 0; i < op->n_results; i++)
			join(f, branch->results.data[i], op->first_result + i);
	}
}

static void pass_op(flow *f, const sw_op *op)
{
	for (uint32_t i = 0; i < op->n_operands; i++) {
		if (contracts(op))
			mark(f, op->operands[i], FLOW_TO_CONTRACTION);
		for (uint32_t r = 0; r < op->n_results; r++)
			join(f, op->operands[i], op->first_result + r);
	}
}

static void pass(flow *f, const sw_op *op)
{
	if (op->opcode == SW_OP_WHILE)
		pass_loop(f, op);
	else if (op->opcode == SW_OP_CONDITIONAL)
		pass_branches(f, op);
	else
		pass_op(f, op);
}

/* Walk in both directions: uses are known from the end. */
static void pass_all(flow *f)
{
	size_t n = f->program->ops.len;
	for (size_t i = 0; i < n; i++)
		pass(f, &f->program->ops.data[i]);
	for (size_t i = n; i-- > 0;)
		pass(f, &f->program->ops.data[i]);
}

/* Inputs that no output replaces are data; outputs that replace no input are the loss and similar
 * results. */
static void mark_ends(flow *f, sw_arena *arena)
{
	const sw_id *inputs;
	const sw_program *p = f->program;
	uint32_t n_inputs = sw_program_inputs(p, p->entry, arena, &inputs);
	size_t n_outputs = sw_entry(p)->results.len;
	bool *kept_in = SW_NEW_N(arena, bool, n_inputs),
	     *kept_out = SW_NEW_N(arena, bool, n_outputs);
	for (size_t i = 0; i < p->aliases.len; i++)
		kept_in[p->aliases.data[i].input] = kept_out[p->aliases.data[i].output] = true;
	for (uint32_t i = 0; i < n_inputs; i++)
		if (!kept_in[i])
			mark(f, inputs[i], FLOW_FROM_DATA);
	for (size_t i = 0; i < n_outputs; i++)
		if (!kept_out[i])
			mark(f, sw_entry(p)->results.data[i], FLOW_TO_LOSS);
}

const uint8_t *flow_marks(const sw_program *program, sw_arena *arena)
{
	flow f = {.program = program,
	          .marks = SW_NEW_N(arena, uint8_t, program->values.len),
	          .changed = true};
	mark_ends(&f, arena);
	while (f.changed) {
		f.changed = false;
		pass_all(&f);
	}
	return f.marks;
}
