/*
 * Kernels that go through rows. A reduction of neighbours gives a number per ROW of its operand; what
 * reads that number for the elements of the same row can run in the same kernel, which holds one
 * row at a time: a softmax, a layer norm. Elementwise ops and reshapes keep elements in order, so
 * that a row is a run of N / rows neighbours, whatever the dimensions are called.
 */
#include "fuse/internal.h"

/* What a member is to the rows. APART: it reads no number of a row. */
enum { APART, PER_ROW, FULL, LAST };

int64_t sw_fuse_row_of(const sw_program *program, const sw_op *op)
{
	sw_shape x = sw_value_shape(program, op->operands[0]);
	int64_t row = 1;
	int32_t d = x.rank - 1, reduced = 0;
	for (; d >= 0 && (x.dims[d] == 1 || sw_ints_has(op->attrs->dims.dims, d)); d--)
		row *= x.dims[d];
	for (int32_t e = 0; e <= d; e++)
		reduced += x.dims[e] != 1 && sw_ints_has(op->attrs->dims.dims, e);
	return reduced ? 0 : row;
}

/* Return whether a broadcast repeats each element `row` times in a row: the dimensions that it adds
 * are the innermost ones. */
static bool repeats_rows(const sw_program *program, const sw_op *op, int64_t row)
{
	sw_shape x = sw_value_shape(program, op->operands[0]),
		 y = sw_value_shape(program, op->first_result);
	sw_ints dims = op->attrs->dims.dims;
	int64_t last = -1, inner = 1, outer = 1;
	for (int32_t i = 0; i < dims.n; i++) {
		if (x.dims[i] == 1)
			continue;
		if (dims.v[i] <= last || x.dims[i] != y.dims[dims.v[i]])
			return false;
		last = dims.v[i];
	}
	for (int32_t d = 0; d < y.rank; d++)
		*(d > last ? &inner : &outer) *= y.dims[d];
	return inner == row && outer == sw_shape_elements(x);
}

static uint8_t of_elementwise(const sw_fuser *f, const sw_op *op)
{
	uint8_t mark = APART;
	for (uint32_t k = 0; k < op->n_operands; k++)
		mark = SW_MAX(mark, f->mark[sw_fuse_source(f->program, op->operands[k])]);
	return mark;
}

/* Return what the member is; *agrees becomes false where it can't go through these rows. */
static uint8_t mark_of(const sw_fuser *f, sw_id id, int64_t row, bool *agrees)
{
	const sw_op *op = sw_op_at(f->program, id);
	uint8_t mark = of_elementwise(f, op);
	if (mark == APART)
		return APART;
	if (mark == LAST) {
		*agrees = false;
		return APART;
	}
	if (sw_fuse_is_elementwise(op))
		return mark;
	if (op->opcode == SW_OP_REDUCE)
		return mark == FULL && sw_fuse_row_of(f->program, op) == row ? PER_ROW : LAST;
	*agrees = *agrees && op->opcode == SW_OP_BROADCAST && mark == PER_ROW &&
	          repeats_rows(f->program, op, row);
	return FULL;
}

bool sw_fuse_rows_agree(sw_fuser *f, sw_id id, uint32_t node, int64_t *row)
{
	const sw_op *op = sw_op_at(f->program, id);
	const sw_fuse_node *n = &f->nodes.data[node];
	int64_t elements = sw_shape_elements(sw_value_shape(f->program, op->operands[0]));
	bool agrees = true;
	*row = sw_fuse_row_of(f->program, op);
	if (*row <= 1 || *row > f->rules->max_row || (n->row && n->row != *row) ||
	    (n->elements != elements && n->elements != elements / *row))
		return false;
	f->mark[id] = PER_ROW;
	for (size_t i = n->members.len; i-- > 0 && agrees;)
		f->mark[n->members.data[i]] = mark_of(f, n->members.data[i], *row, &agrees);
	f->mark[id] = APART;
	for (size_t i = 0; i < n->members.len; i++)
		f->mark[n->members.data[i]] = APART;
	return agrees;
}
