/*
 * Masks of groups of sorted rows. Rows are sorted by a key, n[g] of them have the key g, begin[g]
 * is the sum of n[0 .. g-1], and end[g] that of n[0 .. g]. So the row at place p has the key g
 * where begin[g] <= p < end[g]: this is how a product of ragged groups is written out.
 *
 * Let the row at place p have the key k. As all rows of lower keys stand before it and no other do,
 * begin[g] <= p if and only if g <= k, and p < end[g] if and only if k <= g. Keys of more than the
 * last group are not counted, which changes neither; a negative key that is not would.
 */
#include "rewrite/sorted_rows.h"

#include "program/number.h"

bool sw_repeats_whole(const sw_program *p, sw_id value, int64_t *number)
{
	const sw_op *op = sw_constant_of(p, value);
	if (!op || !sw_is_whole(op->attrs->constant.shape.type) || !op->attrs->constant.data ||
	    sw_shape_elements(op->attrs->constant.shape) != 1)
		return false;
	*number = sw_integer_get(op->attrs->constant.shape.type, op->attrs->constant.data, 0);
	return true;
}

static bool is_at_least_0(const sw_program *p, sw_id value)
{
	int64_t number;
	return sw_repeats_whole(p, value, &number) && number >= 0;
}

/* ---- keys ------------------------------------------------------------------------------- */

static bool is_natural(const sw_program *p, sw_id value, int depth);

/* Return whether a value of a reduction's computation is one of the elements that it is given as
 * parameters `k` of operands and first values. */
static bool is_chosen(const sw_program *p, const sw_op *reduce, sw_id value, uint32_t k, int depth)
{
	const sw_op *op = sw_made_by(p, value);
	if (op->opcode == SW_OP_PARAMETER)
		return op->attrs->parameter.number % (reduce->n_operands / 2) == k;
	bool chooses = op->opcode == SW_OP_SELECT || op->opcode == SW_OP_MINIMUM ||
	               op->opcode == SW_OP_MAXIMUM;
	for (uint32_t i = op->opcode == SW_OP_SELECT; i < op->n_operands && chooses; i++)
		chooses = depth > 0 && is_chosen(p, reduce, op->operands[i], k, depth - 1);
	return chooses;
}

/* A reduction to the place of the largest element. */
static bool chooses_natural(const sw_program *p, const sw_op *op, uint32_t k, int depth)
{
	sw_id result = p->computations.data[op->called[0]].results.data[k];
	return is_chosen(p, op, result, k, depth) && is_natural(p, op->operands[k], depth - 1) &&
	       is_natural(p, op->operands[op->n_operands / 2 + k], depth - 1);
}

/* Return whether no element is negative. */
static bool is_natural(const sw_program *p, sw_id value, int depth)
{
	const sw_op *op = sw_made_by(p, value);
	sw_type_kind kind = sw_type_kind_of(sw_value_shape(p, value).type);
	sw_id x;
	if (kind == SW_KIND_UNSIGNED || kind == SW_KIND_PRED || is_at_least_0(p, value))
		return true;
	if (kind != SW_KIND_SIGNED || depth == 0)
		return false;
	switch (op->opcode) {
	case SW_OP_IOTA:
		return true;
	case SW_OP_TOPK:
		return value == op->first_result + 1;
	case SW_OP_REDUCE:
		return chooses_natural(p, op, value - op->first_result, depth);
	case SW_OP_MAXIMUM:
		return is_natural(p, op->operands[0], depth - 1) ||
		       is_natural(p, op->operands[1], depth - 1);
	case SW_OP_MINIMUM:
		return is_natural(p, op->operands[0], depth - 1) &&
		       is_natural(p, op->operands[1], depth - 1);
	case SW_OP_CLAMP:
		return is_natural(p, op->operands[0], depth - 1);
	case SW_OP_SELECT:
		return (sw_is_wrap(p, op, &x) || is_natural(p, op->operands[1], depth - 1)) &&
		       is_natural(p, op->operands[2], depth - 1);
	case SW_OP_RESHAPE:
	case SW_OP_BROADCAST:
	case SW_OP_TRANSPOSE:
	case SW_OP_SLICE:
	case SW_OP_COPY:
		return is_natural(p, op->operands[0], depth - 1);
	default:
		return false;
	}
}

/* Return the value that a key is made of by a bound, or by a wrap of what is not negative, both of
 * which keep the order; SW_NO_ID: it is made otherwise. */
static sw_id before_bound(const sw_program *p, sw_id value)
{
	const sw_op *op = sw_made_by(p, value);
	int64_t number;
	sw_id x;
	bool bounds = op->opcode == SW_OP_MAXIMUM || op->opcode == SW_OP_MINIMUM;
	if (bounds && sw_repeats_whole(p, op->operands[1], &number))
		return op->operands[0];
	if (op->opcode == SW_OP_CLAMP && sw_repeats_whole(p, op->operands[0], &number) &&
	    sw_repeats_whole(p, op->operands[2], &number))
		return op->operands[1];
	if (op->opcode == SW_OP_SELECT && sw_is_wrap(p, op, &x) && is_natural(p, x, 8))
		return x;
	return SW_NO_ID;
}

/* Return whether a value is a key of each row, as described in sw_group_mask, of this sort. */
static bool is_key(const sw_program *p, sw_id value, const sw_op *sort)
{
	if (sw_value_shape(p, value).rank != 1 || !is_natural(p, value, 8))
		return false;
	while (value != SW_NO_ID && value != sort->operands[0])
		value = before_bound(p, value);
	return value != SW_NO_ID;
}

bool sw_sort_ascends(const sw_program *p, const sw_op *sort)
{
	const sw_computation *c = &p->computations.data[sort->called[0]];
	const sw_op *compare = sw_made_by(p, c->results.data[0]);
	return compare->opcode == SW_OP_COMPARE && compare->attrs->compare.direction == SW_LT &&
	       compare->operands[0] == sw_op_at(p, c->parameters.data[0])->first_result &&
	       compare->operands[1] == sw_op_at(p, c->parameters.data[1])->first_result;
}

/* ---- how many rows each key has --------------------------------------------------------- */

/* zeros.at[key].add(ones) */
static bool is_histogram(const sw_program *p, const sw_op *op, const sw_op *sort, sw_id *key)
{
	int64_t zero, one;
	if (op->opcode != SW_OP_SCATTER || op->n_operands != 3 ||
	    sw_computation_monoid(p, op->called[0]) != SW_MONOID_SUM ||
	    !sw_repeats_whole(p, op->operands[0], &zero) || zero != 0 ||
	    !sw_repeats_whole(p, op->operands[2], &one) || one != 1)
		return false;
	const sw_op *list = sw_made_by(p, op->operands[1]);
	sw_shape indices = sw_value_shape(p, op->operands[1]);
	if (sw_value_shape(p, op->operands[2]).rank != 1 || indices.rank > 2)
		return false;
	bool column = indices.rank == 2 && indices.dims[1] == 1 && list->opcode == SW_OP_RESHAPE;
	*key = column ? list->operands[0] : op->operands[1];
	return is_key(p, *key, sort);
}

/* Return the value that is repeated along all dimensions of a broadcast but `dim`; SW_NO_ID. */
static sw_id repeated_along(const sw_program *p, sw_id value, int32_t *dim)
{
	const sw_op *op = sw_made_by(p, value);
	if (op->opcode != SW_OP_BROADCAST || op->attrs->dims.dims.n != 1)
		return SW_NO_ID;
	*dim = (int32_t)op->attrs->dims.dims.v[0];
	return op->operands[0];
}

/* (key == numbers of the groups).sum(rows) */
static bool is_count(const sw_program *p, const sw_op *op, const sw_op *sort, sw_id *key)
{
	int64_t zero;
	if (op->opcode != SW_OP_REDUCE || op->n_operands != 2 || op->attrs->dims.dims.n != 1 ||
	    sw_computation_monoid(p, op->called[0]) != SW_MONOID_SUM ||
	    !sw_repeats_whole(p, op->operands[1], &zero) || zero != 0)
		return false;
	const sw_op *convert = sw_made_by(p, op->operands[0]);
	const sw_op *equal =
		convert->opcode == SW_OP_CONVERT ? sw_made_by(p, convert->operands[0]) : NULL;
	if (!equal || equal->opcode != SW_OP_COMPARE || equal->attrs->compare.direction != SW_EQ ||
	    sw_value_shape(p, equal->first_result).rank != 2)
		return false;
	int32_t row_dim = (int32_t)op->attrs->dims.dims.v[0], dim = -1;
	for (int k = 0; k < 2; k++) {
		*key = repeated_along(p, equal->operands[k], &dim);
		if (*key != SW_NO_ID && dim == row_dim && is_key(p, *key, sort) &&
		    sw_is_place(p, equal->operands[1 - k], 1 - row_dim))
			return true;
	}
	return false;
}

/* The running total of the numbers of rows. */
static bool is_end(const sw_program *p, sw_id value, const sw_op *sort, sw_id *key)
{
	const sw_op *op = sw_made_by(p, value);
	int64_t zero;
	if (op->opcode != SW_OP_REDUCE_WINDOW || op->n_operands != 2 ||
	    op->attrs->window.window.rank != 1 ||
	    sw_computation_monoid(p, op->called[0]) != SW_MONOID_SUM ||
	    !sw_repeats_whole(p, op->operands[1], &zero) || zero != 0)
		return false;
	const sw_window_dim *w = op->attrs->window.window.dims;
	const sw_op *counts = sw_made_by(p, op->operands[0]);
	int64_t n = sw_value_shape(p, value).dims[0];
	bool total = w->size == n && w->pad_low == n - 1 && w->pad_high == 0 && w->stride == 1 &&
	             w->lhs_dilate == 1 && w->rhs_dilate == 1;
	return total && (is_histogram(p, counts, sort, key) || is_count(p, counts, sort, key));
}

/* The same without the last, behind a 0. */
static bool is_begin(const sw_program *p, sw_id value, const sw_op *sort, sw_id *key)
{
	const sw_op *op = sw_made_by(p, value);
	int64_t zero;
	if (op->opcode != SW_OP_CONCATENATE || op->n_operands != 2 ||
	    !sw_repeats_whole(p, op->operands[0], &zero) || zero != 0 ||
	    sw_value_shape(p, op->operands[0]).dims[0] != 1)
		return false;
	const sw_op *cut = sw_made_by(p, op->operands[1]);
	if (cut->opcode != SW_OP_SLICE || cut->attrs->slice.start.v[0] != 0 ||
	    cut->attrs->slice.stride.v[0] != 1)
		return false;
	return sw_value_shape(p, cut->operands[0]).dims[0] == sw_value_shape(p, value).dims[0] &&
	       is_end(p, cut->operands[0], sort, key);
}

/* ---- masks ------------------------------------------------------------------------------ */

/* Of compare(bound, place) and compare(place, bound): the comparison of a key with a group's
 * number. */
static const struct {
	bool ends, place_first;
	sw_direction from, to;
} masks[] = {
	{false, false, SW_LE, SW_GE}, {false, false, SW_GT, SW_LT}, {false, true, SW_GE, SW_GE},
	{false, true, SW_LT, SW_LT},  {true, false, SW_GT, SW_LE},  {true, false, SW_LE, SW_GT},
	{true, true, SW_LT, SW_LE},   {true, true, SW_GE, SW_GT},
};

bool sw_find_group_mask(const sw_program *p, const sw_op *compare, const sw_op *sort,
                        sw_group_mask *mask)
{
	sw_shape shape = sw_value_shape(p, compare->first_result);
	int64_t rows = sw_value_shape(p, sort->operands[0]).dims[0];
	if (!sw_sort_ascends(p, sort))
		return false;
	for (uint32_t k = 0; k < 2; k++) {
		sw_id bound = repeated_along(p, compare->operands[k], &mask->group_dim);
		if (bound == SW_NO_ID)
			continue;
		bool begins = is_begin(p, bound, sort, &mask->key);
		if (!begins && !is_end(p, bound, sort, &mask->key))
			continue;
		for (int32_t d = 0; d < shape.rank; d++) {
			if (d == mask->group_dim || shape.dims[d] != rows ||
			    !sw_is_place(p, compare->operands[1 - k], d))
				continue;
			mask->row_dim = d;
			for (size_t i = 0; i < SW_COUNT(masks); i++) {
				mask->direction = masks[i].to;
				if (masks[i].ends == !begins && masks[i].place_first == (k == 1) &&
				    masks[i].from == compare->attrs->compare.direction)
					return true;
			}
		}
	}
	return false;
}
