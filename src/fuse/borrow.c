/*
 * Which values are cheaper to compute again than to read: masks of positions, biases that a
 * broadcast repeats, heads of keys that several queries share, narrow numbers that are widened,
 * rows of zeros with one other number.
 *
 * cost(v) is the fewest bytes that have to be read to have v: those of v itself, or, if a simple op
 * computes it, the sum of its operands' costs. What two operands share is counted twice, so that a
 * value is never borrowed by mistake. Numbers of one element are read, unless they are constants.
 */
#include "fuse/kernel_drafts.h"

static bool is_simple(const sw_op *op)
{
	switch (op->opcode) {
	case SW_OP_BITCAST_CONVERT:
	case SW_OP_BROADCAST:
	case SW_OP_IOTA:
	case SW_OP_RESHAPE:
	case SW_OP_TRANSPOSE:
		return true;
	default:
		return sw_opcode_is_elementwise((sw_opcode)op->opcode);
	}
}

bool sw_fuse_picks(const sw_program *program, sw_id id)
{
	const sw_op *op = sw_op_at(program, id);
	if ((op->opcode != SW_OP_GATHER && op->opcode != SW_OP_SCATTER) || op->n_results != 1)
		return false;
	const sw_index_dims *x = &op->attrs->index;
	int64_t batch = 1, rows = 1;
	sw_shape whole = sw_value_shape(program, op->operands[0]),
		 slices = sw_value_shape(program, op->opcode == SW_OP_GATHER ? op->first_result
	                                                                     : op->operands[2]);
	if (x->start_index_map.n != 1 || (x->operand_batch.n == 0 && whole.rank > 1))
		return false;
	for (int32_t d = 0; d < whole.rank; d++) {
		batch *= sw_ints_has(x->operand_batch, d) ? whole.dims[d] : 1;
		rows *= d == x->start_index_map.v[0] ? 1 : whole.dims[d];
	}
	return sw_shape_elements(sw_value_shape(program, op->operands[1])) == batch &&
	       sw_shape_elements(slices) == rows;
}

static double cost_of(const sw_kernel_drafts *d, const sw_op *op, sw_id value)
{
	sw_shape shape = sw_value_shape(d->f->program, value);
	double bytes = (double)sw_shape_bytes(shape), sum = 0;
	if (sw_shape_elements(shape) == 1)
		return op->opcode == SW_OP_CONSTANT ? 0 : bytes;
	bool picks = op->opcode == SW_OP_SCATTER &&
	             sw_fuse_picks(d->f->program, d->f->program->values.data[value].op);
	if (!is_simple(op) && !picks)
		return bytes;
	for (uint32_t i = 0; i < op->n_operands; i++)
		sum += d->cost[op->operands[i] - d->first_value];
	return SW_MIN(bytes, sum);
}

static void find_costs(sw_kernel_drafts *d)
{
	const sw_computation *c = &d->f->program->computations.data[d->computation];
	d->cost = SW_NEW_N(&d->arena, double, d->n_values);
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(d->f->program, c->ops.data[i]);
		for (uint32_t k = 0; k < op->n_results; k++) {
			sw_id value = op->first_result + k;
			d->cost[value - d->first_value] = cost_of(d, op, value);
		}
	}
}

bool sw_draft_may_borrow(sw_kernel_drafts *d, sw_id value)
{
	if (!d->cost)
		find_costs(d);
	const sw_program *p = d->f->program;
	return d->cost[value - d->first_value] < (double)sw_shape_bytes(sw_value_shape(p, value));
}
