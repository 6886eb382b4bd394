/* Numbers that follow from constants, and boxes that are cut out where something was put in. Loops
 * that are written out leave both: their counters are constants, and what one loop stacks up
 * another takes apart. */
#include "rewrite/internal.h"

#include <string.h>

#include "program/number.h"

/* ---- numbers ---------------------------------------------------------------------------- */

const sw_op *sw_constant_of(const sw_program *program, sw_id value)
{
	const sw_op *op = sw_op_at(program, program->values.data[value].op);
	bool broadcast = op->opcode == SW_OP_BROADCAST;
	if (broadcast)
		op = sw_op_at(program, program->values.data[op->operands[0]].op);
	if (op->opcode != SW_OP_CONSTANT || !op->attrs->constant.data)
		return NULL;
	return broadcast && op->attrs->constant.shape.rank > 0 ? NULL : op;
}

bool sw_is_zero(const sw_program *program, sw_id value)
{
	static const unsigned char zeros[16];
	const sw_op *op = sw_op_at(program, program->values.data[value].op);
	if (op->opcode == SW_OP_BROADCAST)
		return sw_is_zero(program, op->operands[0]);
	return op->opcode == SW_OP_CONSTANT && op->attrs->constant.shape.rank == 0 &&
	       op->attrs->constant.data &&
	       !memcmp(op->attrs->constant.data, zeros,
	               (size_t)sw_type_bytes(op->attrs->constant.shape.type));
}

/* Return the constant number that all elements of a value are; NULL: they are none. */
static const sw_literal *number_of(const sw_program *out, sw_id value)
{
	const sw_op *op = sw_constant_of(out, value);
	return op && op->attrs->constant.shape.rank == 0 ? &op->attrs->constant : NULL;
}

static bool integer_of(const sw_program *out, sw_id value, int64_t *number)
{
	const sw_literal *literal = number_of(out, value);
	if (!literal || !sw_is_whole(literal->shape.type))
		return false;
	*number = sw_integer_get(literal->shape.type, literal->data, 0);
	return literal->shape.type != SW_U64 || *number >= 0;
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

/* Return the number of the type that the last bits are. */
static int64_t wrap(sw_type type, uint64_t bits)
{
	int unused = 64 - sw_type_bits(type);
	if (sw_type_kind_of(type) == SW_KIND_PRED)
		return bits & 1;
	return sw_type_kind_of(type) == SW_KIND_SIGNED ? (int64_t)(bits << unused) >> unused
	                                               : (int64_t)(bits << unused >> unused);
}

/* Shift an integer; by its width or more, nothing of it is left but its sign. */
static int64_t shift(sw_opcode opcode, sw_type type, int64_t x, int64_t by)
{
	int width = sw_type_bits(type);
	bool all = by < 0 || by >= width;
	uint64_t bits = (uint64_t)x << (64 - width) >> (64 - width);
	if (opcode == SW_OP_SHIFT_RIGHT_ARITHMETIC && sw_type_kind_of(type) == SW_KIND_SIGNED)
		return x >> (all ? width - 1 : by);
	if (all)
		return 0;
	return wrap(type, opcode == SW_OP_SHIFT_LEFT ? bits << by : bits >> by);
}

/* Compute exactly; false: it is another op, or has no such result. */
static bool compute(const sw_op *op, sw_type type, const int64_t *x, int64_t *result)
{
	switch (op->opcode) {
	case SW_OP_AND:
		*result = x[0] & x[1];
		return true;
	case SW_OP_OR:
		*result = x[0] | x[1];
		return true;
	case SW_OP_XOR:
		*result = x[0] ^ x[1];
		return true;
	case SW_OP_NOT:
		*result = wrap(type, ~(uint64_t)x[0]);
		return true;
	case SW_OP_SHIFT_LEFT:
	case SW_OP_SHIFT_RIGHT_LOGICAL:
	case SW_OP_SHIFT_RIGHT_ARITHMETIC:
		*result = shift((sw_opcode)op->opcode, type, x[0], x[1]);
		return true;
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
		*result = sw_type_kind_of(type) == SW_KIND_PRED ? x[0] != 0
		                                                : wrap(type, (uint64_t)x[0]);
		return true;
	default:
		return false;
	}
}

static bool fold_integer(const sw_program *out, sw_type type, const sw_op *op,
                         const sw_id *operands, uint64_t element[2])
{
	int64_t x[3], result, low = 0, high = 1;
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (!integer_of(out, operands[k], &x[k]))
			return false;
	if (!compute(op, type, x, &result))
		return false;
	if (sw_type_kind_of(type) != SW_KIND_PRED)
		sw_integer_range(type, &low, &high);
	if (result < low || result > high)
		return false;
	sw_integer_set(type, element, 0, result);
	return true;
}

bool sw_fold_number(const sw_program *out, const sw_program *in, const sw_op *op,
                    const sw_id *operands, uint64_t element[2])
{
	if (op->n_operands < 1 || op->n_operands > 3 || op->n_results != 1 ||
	    !sw_opcode_is_elementwise((sw_opcode)op->opcode))
		return false;
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (!number_of(out, operands[k]))
			return false;
	sw_type type = sw_value_shape(in, op->first_result).type;
	element[0] = element[1] = 0;
	return sw_is_whole(type) ? fold_integer(out, type, op, operands, element)
	                         : sw_fold_by_running(out, in, op, operands, true, element);
}

/* Return whether x op number is x. */
static bool is_neutral(sw_opcode opcode, const sw_literal *number)
{
	sw_type type = number->shape.type;
	sw_type_kind kind = sw_type_kind_of(type);
	bool integer = kind == SW_KIND_SIGNED || kind == SW_KIND_UNSIGNED;
	switch (opcode) {
	case SW_OP_ADD:
	case SW_OP_SUBTRACT:
		return (integer || kind == SW_KIND_FLOAT) &&
		       sw_number_get(type, number->data, 0) == 0;
	case SW_OP_MULTIPLY:
	case SW_OP_DIVIDE:
		return (integer || kind == SW_KIND_FLOAT) &&
		       sw_number_get(type, number->data, 0) == 1;
	case SW_OP_OR:
	case SW_OP_XOR:
	case SW_OP_SHIFT_LEFT:
	case SW_OP_SHIFT_RIGHT_LOGICAL:
	case SW_OP_SHIFT_RIGHT_ARITHMETIC:
		return sw_is_whole(type) && sw_integer_get(type, number->data, 0) == 0;
	case SW_OP_AND:
		return sw_is_whole(type) &&
		       wrap(type, ~(uint64_t)sw_integer_get(type, number->data, 0)) == 0;
	default:
		return false;
	}
}

sw_id sw_fold_neutral(const sw_program *out, const sw_op *op, const sw_id *operands)
{
	if (op->opcode == SW_OP_SELECT && operands[1] == operands[2])
		return operands[1];
	const sw_literal *number = op->n_operands == 2 ? number_of(out, operands[1]) : NULL;
	return number && is_neutral((sw_opcode)op->opcode, number) ? operands[0] : SW_NO_ID;
}

int32_t sw_fold_branch(const sw_program *out, const sw_op *op, sw_id chosen)
{
	int64_t number;
	if (!integer_of(out, chosen, &number))
		return -1;
	if (sw_value_shape(out, chosen).type == SW_PRED)
		number = number ? 0 : 1;
	int32_t last = op->n_called - 1;
	return number < 0 || number > last ? last : (int32_t)number;
}

/* ---- places of operands ----------------------------------------------------------------- */

void sw_fold_constant_right(const sw_program *out, const sw_op *op, sw_id *operands)
{
	static const sw_opcode commutative[] = {SW_OP_ADD,     SW_OP_MULTIPLY, SW_OP_MAXIMUM,
	                                        SW_OP_MINIMUM, SW_OP_AND,      SW_OP_OR,
	                                        SW_OP_XOR};
	for (size_t i = 0; i < SW_COUNT(commutative); i++)
		if (op->opcode == commutative[i] && number_of(out, operands[0]) &&
		    !number_of(out, operands[1])) {
			sw_id number = operands[0];
			operands[0] = operands[1];
			operands[1] = number;
			return;
		}
}

/* ---- boxes ------------------------------------------------------------------------------ */

bool sw_fold_starts(const sw_program *program, sw_shape whole, const sw_id *starts,
                    const int64_t *size, int64_t *start)
{
	for (int32_t d = 0; d < whole.rank; d++) {
		if (!integer_of(program, starts[d], &start[d]))
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
