/*
 * Aliasing of results and operands: which results are, or may be, in the buffer of an operand, as
 * far as the placement must know it. A row of the kernel table states the kind (sw_aliasing); this
 * file adds the conditions of each kind.
 */
#include "interpret/kernel.h"

bool sw_choose_kernel(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	plan->kernel = sw_kernels[op->opcode];
	if (!plan->kernel.run)
		return false;
	if (op->n_called)
		plan->monoid = sw_computation_monoid(program, op->called[op->n_called - 1]);
	return !plan->kernel.prepare || plan->kernel.prepare(program, op, plan);
}

uint32_t sw_first_forwarded_operand(const sw_program *program, const sw_op *op)
{
	switch ((sw_opcode)op->opcode) {
	case SW_OP_ASYNC_DONE:
		return sw_async_start_of(program, op)->n_operands;
	case SW_OP_ALL_GATHER_DONE:
	case SW_OP_COLLECTIVE_PERMUTE_DONE:
		return op->n_results;
	default:
		return 0;
	}
}

bool sw_transpose_is_view(const sw_program *program, const sw_op *op)
{
	sw_shape from = sw_value_shape(program, op->operands[0]);
	const int64_t *order = op->attrs->dims.dims.v;
	int64_t last = -1;
	for (int d = 0; d < from.rank; d++) {
		if (from.dims[order[d]] == 1)
			continue;
		if (order[d] < last)
			return false;
		last = order[d];
	}
	return true;
}

bool sw_loop_forwards(const sw_program *program, const sw_op *op, uint32_t leaf)
{
	if (op->opcode != SW_OP_WHILE)
		return false;
	const sw_computation *body = &program->computations.data[op->called[1]];
	return body->results.data[leaf] ==
	       sw_op_at(program, body->parameters.data[0])->first_result + leaf;
}

sw_id sw_aliased_operand(const sw_program *program, const sw_op *op, sw_aliasing aliasing,
                         uint32_t i, bool stays)
{
	uint32_t from = i;
	switch (aliasing) {
	case SW_ALIASING_FORWARDED:
		from += sw_first_forwarded_operand(program, op);
		break;
	case SW_ALIASING_STARTED:
		from = op->opcode == SW_OP_COPY_START && i < 2 ? 0 : i;
		break;
	case SW_ALIASING_VIEW:
		if (!stays)
			return SW_NO_ID;
		break;
	case SW_ALIASING_IN_PLACE:
		if (!sw_loop_forwards(program, op, i))
			return SW_NO_ID;
		break;
	default:
		return SW_NO_ID;
	}
	return from < op->n_operands ? op->operands[from] : SW_NO_ID;
}

bool sw_kernel_keeps_splat(const sw_op *op, sw_aliasing aliasing)
{
	return aliasing == SW_ALIASING_POINTWISE || aliasing == SW_ALIASING_VIEW ||
	       op->opcode == SW_OP_CLAMP;
}

/* Is no other operand in the buffer of operand k? */
static bool is_only_reader(const sw_op *op, uint32_t k, const sw_id *class)
{
	for (uint32_t j = 0; j < op->n_operands; j++)
		if (j != k && class[op->operands[j]] == class[op->operands[k]])
			return false;
	return true;
}

static bool may_add_to(const sw_program *program, const sw_op *op, uint32_t k, const sw_id *class)
{
	sw_dot_add found;
	return sw_dot_add_find(program, op, &found) && found.addend == k &&
	       is_only_reader(op, k, class);
}

/* An operand that the fusion takes twice is read through both. */
static bool tile_may_overwrite(const sw_op *op, uint64_t over, uint32_t k, const sw_id *class)
{
	if (k >= 64 || !(over >> k & 1))
		return false;
	for (uint32_t j = 0; j < op->n_operands; j++)
		if (class[op->operands[j]] == class[op->operands[k]] &&
		    (j >= 64 || !(over >> j & 1)))
			return false;
	return true;
}

bool sw_kernel_may_overwrite(const sw_program *program, const sw_op *op, sw_aliasing aliasing,
                             uint32_t i, uint32_t k, const sw_id *class, const uint64_t *over)
{
	sw_id operand = op->operands[k];
	if (aliasing == SW_ALIASING_POINTWISE)
		return sw_value_shape(program, op->first_result + i).type ==
		       sw_value_shape(program, operand).type;
	if (aliasing == SW_ALIASING_TILE)
		return tile_may_overwrite(op, over[i], k, class);
	if (aliasing == SW_ALIASING_ADDEND)
		return may_add_to(program, op, k, class);
	return aliasing == SW_ALIASING_IN_PLACE && i == k && is_only_reader(op, k, class);
}

bool sw_is_region(const sw_op *op)
{
	return op->opcode == SW_OP_WHILE || op->opcode == SW_OP_CONDITIONAL ||
	       op->opcode == SW_OP_CALL || op->opcode == SW_OP_FUSION ||
	       op->opcode == SW_OP_ASYNC_START;
}
