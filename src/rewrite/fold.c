/* Scalars that follow from constants, and boxes that are cut out where something was put in. Loops
 * that are written out leave both: their counters are constants, and what one loop stacks up
 * another takes apart. */
#include "rewrite/internal.h"

#include "program/number.h"

/* ---- scalars ---------------------------------------------------------------------------- */

static bool is_exact(sw_shape shape)
{
	sw_type_kind kind = sw_type_kind_of(shape.type);
	return shape.rank == 0 &&
	       (kind == SW_KIND_SIGNED || kind == SW_KIND_UNSIGNED || kind == SW_KIND_PRED);
}

static bool scalar_of(const sw_program *out, sw_id value, int64_t *number)
{
	sw_shape shape = sw_value_shape(out, value);
	const sw_op *op = sw_op_at(out, out->values.data[value].op);
	if (!is_exact(shape) || op->opcode != SW_OP_CONSTANT || !op->attrs->constant.data)
		return false;
	*number = sw_integer_get(shape.type, op->attrs->constant.data, 0);
	return shape.type != SW_U64 || *number >= 0;
}

static bool compare(sw_direction direction, int64_t a, int64_t b)
{
	switch (direction) {
	case SW_EQ:
		return a == b;
	case SW_NE:
		return a != b;
	case SW_LT:
		return a < b;
	case SW_LE:
		return a <= b;
	case SW_GT:
		return a > b;
	default:
		return a >= b;
	}
}

/* Compute exactly; false: it is another op, or has no such result. */
static bool compute(const sw_op *op, const int64_t *x, int64_t *result)
{
	switch (op->opcode) {
	case SW_OP_ADD:
		return !__builtin_add_overflow(x[0], x[1], result);
	case SW_OP_SUBTRACT:
		return !__builtin_sub_overflow(x[0], x[1], result);
	case SW_OP_MULTIPLY:
		return !__builtin_mul_overflow(x[0], x[1], result);
	case SW_OP_DIVIDE:
		*result = x[1] > 0 ? x[0] / x[1] : 0;
		return x[1] > 0;
	case SW_OP_REMAINDER:
		*result = x[1] > 0 ? x[0] % x[1] : 0;
		return x[1] > 0;
	case SW_OP_MINIMUM:
		*result = SW_MIN(x[0], x[1]);
		return true;
	case SW_OP_MAXIMUM:
		*result = SW_MAX(x[0], x[1]);
		return true;
	case SW_OP_CLAMP:
		*result = SW_MIN(SW_MAX(x[1], x[0]), x[2]);
		return true;
	case SW_OP_COMPARE:
		*result = compare(op->attrs->compare.direction, x[0], x[1]);
		return true;
	case SW_OP_SELECT:
		*result = x[0] ? x[1] : x[2];
		return true;
	case SW_OP_CONVERT:
		*result = x[0];
		return true;
	default:
		return false;
	}
}

bool sw_fold_scalar(const sw_program *out, const sw_program *in, const sw_op *op,
                    const sw_id *operands, uint64_t element[2])
{
	int64_t x[3], result, low, high;
	if (op->n_operands < 1 || op->n_operands > 3 || op->n_results != 1)
		return false;
	sw_shape shape = sw_value_shape(in, op->first_result);
	if (!is_exact(shape))
		return false;
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (!scalar_of(out, operands[k], &x[k]))
			return false;
	if (!compute(op, x, &result))
		return false;
	if (sw_type_kind_of(shape.type) == SW_KIND_PRED) {
		low = 0;
		high = 1;
	} else {
		sw_integer_range(shape.type, &low, &high);
	}
	if (result < low || result > high)
		return false;
	element[0] = element[1] = 0;
	sw_integer_set(shape.type, element, 0, result);
	return true;
}

/* ---- boxes ------------------------------------------------------------------------------ */

bool sw_fold_starts(const sw_program *program, sw_shape whole, const sw_id *starts,
                    const int64_t *size, int64_t *start)
{
	for (int32_t d = 0; d < whole.rank; d++) {
		if (!scalar_of(program, starts[d], &start[d]))
			return false;
		start[d] = SW_MAX(SW_MIN(start[d], whole.dims[d] - size[d]), 0);
	}
	return true;
}

bool sw_fold_update(const sw_program *program, const sw_op *op, int64_t *start)
{
	if (op->opcode != SW_OP_DYNAMIC_UPDATE_SLICE)
		return false;
	sw_shape whole = sw_value_shape(program, op->operands[0]);
	return op->n_operands == 2 + (uint32_t)whole.rank &&
	       sw_fold_starts(program, whole, op->operands + 2,
	                      sw_value_shape(program, op->operands[1]).dims, start);
}

static bool is_apart(int32_t rank, const int64_t *a, const int64_t *a_size, const int64_t *b,
                     const int64_t *b_size)
{
	for (int32_t d = 0; d < rank; d++)
		if (a[d] + a_size[d] <= b[d] || b[d] + b_size[d] <= a[d])
			return true;
	return false;
}

static bool is_within(int32_t rank, const int64_t *a, const int64_t *a_size, const int64_t *b,
                      const int64_t *b_size)
{
	for (int32_t d = 0; d < rank; d++)
		if (a[d] < b[d] || a[d] + a_size[d] > b[d] + b_size[d])
			return false;
	return true;
}

/* Return the operand of a concatenation that has all of a box, and set the start there. */
static sw_id part_of(const sw_program *out, const sw_op *op, const int64_t *size, int64_t *start)
{
	int64_t d = op->attrs->dims.dims.v[0], first = 0;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		int64_t end = first + sw_value_shape(out, op->operands[k]).dims[d];
		if (start[d] >= first && start[d] + size[d] <= end && size[d] > 0) {
			start[d] -= first;
			return op->operands[k];
		}
		first = end;
	}
	return SW_NO_ID;
}

sw_id sw_fold_box(const sw_program *out, sw_id x, const int64_t *size, int64_t *start)
{
	for (;;) {
		const sw_op *op = sw_op_at(out, out->values.data[x].op);
		sw_shape whole = sw_value_shape(out, x);
		if (op->opcode == SW_OP_CONCATENATE) {
			sw_id part = part_of(out, op, size, start);
			if (part == SW_NO_ID)
				return x;
			x = part;
			continue;
		}
		int64_t put[SW_MAX_RANK];
		if (!sw_fold_update(out, op, put))
			return x;
		const int64_t *put_size = sw_value_shape(out, op->operands[1]).dims;
		if (is_within(whole.rank, start, size, put, put_size)) {
			for (int32_t d = 0; d < whole.rank; d++)
				start[d] -= put[d];
			x = op->operands[1];
		} else if (is_apart(whole.rank, start, size, put, put_size)) {
			x = op->operands[0];
		} else {
			return x;
		}
	}
}
