/* How the flat operands were grouped into tuples in the text, so that they can be printed that way
 * again. */
#include "program/internal.h"

typedef struct operand_grouping {
	const sw_program *program;
	const sw_op *op;
	sw_operand_group *groups;
	uint32_t n, next; /* n: groups so far; next: the next operand */
} operand_grouping;

static void add(operand_grouping *g, uint32_t leaves, bool tuple)
{
	leaves = SW_MIN(leaves, g->op->n_operands - g->next);
	g->groups[g->n++] =
		(sw_operand_group){.first = g->next, .n = leaves, .tuple = tuple || leaves != 1};
	g->next += leaves;
}

static void add_rest(operand_grouping *g)
{
	while (g->next < g->op->n_operands)
		add(g, 1, false);
}

/* Add one group per parameter of called[k]. */
static void add_parameters(operand_grouping *g, uint32_t k)
{
	const sw_computation *callee = &g->program->computations.data[g->op->called[k]];
	for (size_t p = 0; p < callee->parameters.len; p++) {
		const sw_op *parameter = sw_op_at(g->program, callee->parameters.data[p]);
		add(g, parameter->n_results, parameter->tuple);
	}
}

/* Add one operand, which is a tuple when there are several leaves or the op itself yields a tuple
 * of one. */
static void add_one(operand_grouping *g, bool tuple)
{
	add(g, g->op->n_operands, tuple);
}

/* Add the data, which are one array or a tuple, and a token. */
static void add_data_and_token(operand_grouping *g, bool tuple)
{
	if (g->op->n_operands > 1)
		add(g, g->op->n_operands - 1, tuple);
	add_rest(g);
}

static void add_by_arity(operand_grouping *g, sw_ints arity)
{
	for (int32_t i = 0; i < arity.n; i++)
		add(g, arity.v[i] < 0 ? 1 : (uint32_t)arity.v[i], arity.v[i] >= 0);
	add_rest(g);
}

static void group_all(operand_grouping *g)
{
	const sw_op *op = g->op;
	switch (op->opcode) {
	case SW_OP_WHILE:
		add_parameters(g, 1);
		return;
	case SW_OP_CONDITIONAL:
		add(g, 1, false);
		for (uint32_t k = 0; k < op->n_called; k++)
			add_parameters(g, k);
		return;
	case SW_OP_CALL:
	case SW_OP_FUSION:
		add_parameters(g, 0);
		return;
	case SW_OP_COPY:
	case SW_OP_OPT_BARRIER:
	case SW_OP_DOMAIN:
		add_one(g, op->tuple);
		return;
	case SW_OP_ALL_REDUCE_DONE:
	case SW_OP_ALL_GATHER_DONE:
	case SW_OP_COLLECTIVE_PERMUTE_DONE:
	case SW_OP_ASYNC_UPDATE:
	case SW_OP_ASYNC_DONE:
	case SW_OP_COPY_DONE:
	case SW_OP_SEND_DONE:
	case SW_OP_RECV_DONE:
		add_one(g, false);
		return;
	case SW_OP_ADD_DEPENDENCY:
		add_data_and_token(g, op->tuple);
		return;
	case SW_OP_SEND:
	case SW_OP_OUTFEED:
		add_data_and_token(g, false);
		return;
	case SW_OP_CUSTOM_CALL:
		add_by_arity(g, op->attrs->custom.operand_arity);
		return;
	case SW_OP_UNKNOWN:
		add_by_arity(g, op->attrs->unknown.operand_arity);
		return;
	default:
		add_rest(g);
	}
}

uint32_t sw_operand_groups(const sw_program *program, const sw_op *op, sw_operand_group *groups)
{
	operand_grouping g = {.program = program, .op = op, .groups = groups};
	group_all(&g);
	return g.n;
}

size_t sw_operand_groups_limit(const sw_program *program, const sw_op *op)
{
	size_t limit = op->n_operands + 1;
	for (uint16_t k = 0; k < op->n_called; k++)
		limit += program->computations.data[op->called[k]].parameters.len;
	if (op->opcode == SW_OP_CUSTOM_CALL)
		limit += (size_t)op->attrs->custom.operand_arity.n;
	if (op->opcode == SW_OP_UNKNOWN)
		limit += (size_t)op->attrs->unknown.operand_arity.n;
	return limit;
}
