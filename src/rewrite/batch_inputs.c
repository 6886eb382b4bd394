/*
 * Which inputs have the batch: data, row by row along the leading dimension. The words of a key of
 * random numbers are no rows, though they come with the batch; nor is the one row of a mask.
 */
#include "rewrite/time.h"

#include <stdlib.h>

/* Return whether an op takes one row of its operand, as the words of a key of random numbers are
 * taken, or draws random numbers of it. */
static bool takes_row(const sw_program *program, const sw_op *op)
{
	if (sw_opcode_class((sw_opcode)op->opcode) == SW_CLASS_RANDOM)
		return true;
	return op->opcode == SW_OP_SLICE && sw_value_shape(program, op->first_result).dims[0] == 1;
}

/* Return whether the op only takes another form of words: two keys beside each other are taken
 * apart along either dimension. */
static bool hands_words_on(const sw_program *program, const sw_op *op, const bool *rows)
{
	sw_shape from = sw_value_shape(program, op->operands[0]);
	if (sw_type_kind_of(from.type) != SW_KIND_UNSIGNED || sw_type_bytes(from.type) < 4)
		return false;
	if (op->opcode == SW_OP_RESHAPE || op->opcode == SW_OP_TRANSPOSE)
		return rows[op->first_result];
	if (op->opcode != SW_OP_SLICE)
		return false;
	sw_shape part = sw_value_shape(program, op->first_result);
	for (int32_t d = 0; d < part.rank; d++)
		if (part.dims[d] == 1 && from.dims[d] > 1)
			return true;
	return false;
}

/* Return whether a region takes its operand k only as rows. */
static bool region_takes_rows(const sw_program *program, const sw_op *op, uint32_t k,
                              const bool *rows)
{
	bool is_loop = op->opcode == SW_OP_WHILE, all = true;
	uint32_t at = op->opcode == SW_OP_CONDITIONAL, n;
	if (k < at)
		return false;
	for (uint32_t c = 0; c < op->n_called; c++) {
		sw_id first = sw_region_parameters(program, op, c, &n);
		if (is_loop)
			at = 0;
		if (k >= at && k < at + n)
			all = all && rows[first + k - at];
		at += n;
	}
	return all;
}

static bool reads_rows(const sw_program *program, const sw_op *op, uint32_t k, const bool *rows)
{
	if (op->opcode == SW_OP_WHILE || op->opcode == SW_OP_CONDITIONAL)
		return region_takes_rows(program, op, k, rows);
	return takes_row(program, op) || hands_words_on(program, op, rows);
}

/* What a computation hands back is read; what a loop carries on unchanged is not. */
static void mark_handed_back(const sw_program *program, bool *rows)
{
	for (size_t c = 0; c < program->computations.len; c++) {
		const sw_computation *of = &program->computations.data[c];
		for (size_t i = 0; i < of->results.len && (int32_t)c != program->entry; i++) {
			sw_id value = of->results.data[i];
			const sw_op *op = sw_op_at(program, program->values.data[value].op);
			rows[value] &= op->opcode == SW_OP_PARAMETER &&
			               value - op->first_result == (sw_id)i;
		}
	}
}

/* Mark the values that are read row by row alone. O(ops), for each level of regions. */
static bool *find_rows(const sw_program *program)
{
	bool *rows = sw_alloc(program->values.len + 1), changed = true;
	for (size_t v = 0; v < program->values.len; v++) {
		sw_shape shape = sw_value_shape(program, (sw_id)v);
		rows[v] = shape.rank > 0 && shape.dims[0] > 1;
	}
	mark_handed_back(program, rows);
	while (changed) {
		changed = false;
		for (size_t i = program->ops.len; i-- > 0;) {
			const sw_op *op = sw_op_at(program, (sw_id)i);
			for (uint32_t k = 0; k < op->n_operands; k++) {
				bool *row = &rows[op->operands[k]];
				changed |= *row && !reads_rows(program, op, k, rows);
				*row = *row && reads_rows(program, op, k, rows);
			}
		}
	}
	return rows;
}

int64_t sw_find_batch(const sw_program *program, const sw_id *inputs, uint32_t n, bool *has_batch)
{
	bool *rows = find_rows(program);
	int64_t batch = 0;
	for (uint32_t i = 0; i < n; i++) {
		sw_shape shape = sw_value_shape(program, inputs[i]);
		has_batch[i] = has_batch[i] && shape.rank > 0 && !rows[inputs[i]];
		if (has_batch[i] && shape.dims[0] > 1)
			batch = sw_gcd(shape.dims[0], batch);
	}
	for (uint32_t i = 0; i < n && batch; i++)
		has_batch[i] = has_batch[i] && sw_value_shape(program, inputs[i]).dims[0] != 1;
	free(rows);
	return SW_MAX(batch, 1);
}
