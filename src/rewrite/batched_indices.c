/* Gathers and scatters whose indices count the rows they stand in: x[arange(n), y]. Such a
 * dimension is a batch of operand and indices, which splits as the rows do, where an indexed
 * dimension takes all of it. */
#include "rewrite/sorted_rows.h"

#include "program/number.h"

bool sw_is_wrap(const sw_program *p, const sw_op *op, sw_id *x)
{
	const sw_op *compare = sw_op_at(p, p->values.data[op->operands[0]].op);
	const sw_op *number;
	*x = op->operands[2];
	if (compare->opcode != SW_OP_COMPARE || compare->operands[0] != *x ||
	    compare->attrs->compare.direction != SW_LT)
		return false;
	number = sw_constant_of(p, compare->operands[1]);
	return number && number->attrs->constant.shape.rank == 0 &&
	       sw_is_whole(number->attrs->constant.shape.type) &&
	       sw_integer_get(number->attrs->constant.shape.type, number->attrs->constant.data,
	                      0) <= 0;
}

/* Return the dimension of a reshape's operand that is dimension `dim` of its result; -1: none is.
 * Dimensions of size 1 may come and go. */
static int32_t dim_before(sw_shape before, sw_shape after, int32_t dim)
{
	int32_t i = 0, found = -1;
	for (int32_t d = 0; d < after.rank; d++) {
		if (after.dims[d] == 1)
			continue;
		while (i < before.rank && before.dims[i] == 1)
			i++;
		if (i == before.rank || before.dims[i] != after.dims[d])
			return -1;
		found = d == dim ? i : found;
		i++;
	}
	return found;
}

/* Return whether each element of a constant is its own place along a dimension. */
static bool counts(const sw_literal *list, int32_t dim)
{
	int64_t elements = sw_shape_elements(list->shape), stride = 1;
	for (int32_t d = dim + 1; d < list->shape.rank; d++)
		stride *= list->shape.dims[d];
	for (int64_t i = 0; i < elements; i++)
		if (sw_integer_get(list->shape.type, list->data, (size_t)i) !=
		    i / stride % list->shape.dims[dim])
			return false;
	return true;
}

/* Return the value of which one is a copy along `dim`, and set the dimension there; SW_NO_ID: it is
 * none. */
static sw_id moved_from(const sw_program *p, const sw_op *op, int32_t *dim)
{
	sw_shape shape = sw_value_shape(p, op->first_result), before;
	sw_id x;
	int32_t from = -1;
	if (op->n_operands == 0)
		return SW_NO_ID;
	before = sw_value_shape(p, op->operands[0]);
	switch (op->opcode) {
	case SW_OP_BROADCAST:
		for (int32_t i = 0; i < op->attrs->dims.dims.n; i++)
			if (op->attrs->dims.dims.v[i] == *dim)
				from = i;
		break;
	case SW_OP_RESHAPE:
		from = dim_before(before, shape, *dim);
		break;
	case SW_OP_SELECT:
		return sw_is_wrap(p, op, &x) ? x : SW_NO_ID;
	default:
		return SW_NO_ID;
	}
	if (from < 0 || before.dims[from] != shape.dims[*dim])
		return SW_NO_ID;
	*dim = from;
	return op->operands[0];
}

static bool fits(sw_shape shape, int32_t dim)
{
	int64_t low, high = 1;
	if (sw_type_kind_of(shape.type) != SW_KIND_PRED)
		sw_integer_range(shape.type, &low, &high);
	return shape.dims[dim] - 1 <= high;
}

bool sw_is_place(const sw_program *p, sw_id value, int32_t dim)
{
	while (value != SW_NO_ID) {
		const sw_op *op = sw_op_at(p, p->values.data[value].op);
		sw_shape shape = sw_value_shape(p, value);
		if (!sw_is_whole(shape.type) || !fits(shape, dim))
			return false;
		if (op->opcode == SW_OP_IOTA)
			return op->attrs->iota.dimension == dim;
		if (op->opcode == SW_OP_CONSTANT)
			return op->attrs->constant.data && counts(&op->attrs->constant, dim);
		value = moved_from(p, op, &dim);
	}
	return false;
}

static sw_ints without(sw_program *out, sw_ints list, int64_t number)
{
	int64_t v[SW_MAX_RANK];
	int32_t n = 0;
	for (int32_t i = 0; i < list.n; i++)
		if (list.v[i] != number)
			v[n++] = list.v[i];
	return sw_build_ints(out, v, n);
}

static sw_ints with(sw_program *out, sw_ints list, int32_t at, int64_t number)
{
	int64_t v[SW_MAX_RANK + 1];
	for (int32_t i = 0; i <= list.n; i++)
		v[i] = i < at ? list.v[i] : i == at ? number : list.v[i - 1];
	return sw_build_ints(out, v, list.n + 1);
}

/* Make dimension `dim` of the operand, which the indices' dimension `row` counts, a batch. */
static void add_batch(sw_program *out, sw_index_dims *x, int64_t dim, int32_t row)
{
	int32_t at = 0;
	while (at < x->operand_batch.n && x->operand_batch.v[at] < dim)
		at++;
	x->operand_batch = with(out, x->operand_batch, at, dim);
	x->index_batch = with(out, x->index_batch, at, row);
	x->start_index_map = without(out, x->start_index_map, dim);
	x->collapsed = without(out, x->collapsed, dim);
	x->sorted = false;
}

/* Return the dimension of the indices that counts what one column of them says; -1: none does. */
static int32_t counted_by(const sw_program *out, const sw_index_dims *x, sw_id column, int64_t size)
{
	sw_shape shape = sw_value_shape(out, column);
	for (int32_t row = 0; row < shape.rank; row++)
		if (row != x->index_vector_dim && shape.dims[row] == size &&
		    !sw_ints_has(x->index_batch, row) && sw_is_place(out, column, row))
			return row;
	return -1;
}

bool sw_batch_indices(sw_program *out, const sw_op *op, const sw_id *operands, sw_index_dims *x,
                      sw_id *columns, uint32_t *n_columns)
{
	if (op->opcode != SW_OP_GATHER && op->opcode != SW_OP_SCATTER)
		return false;
	/* a scatter's operands are several arrays, its indices, and as many updates */
	uint32_t which = op->opcode == SW_OP_GATHER ? 1 : op->n_operands / 2;
	const sw_op *list = sw_op_at(out, out->values.data[operands[which]].op);
	sw_shape whole = sw_value_shape(out, operands[0]);
	*x = sw_build_copy_attrs(out, op)->index;
	*n_columns = 0;
	if (list->opcode != SW_OP_CONCATENATE ||
	    list->attrs->dims.dims.v[0] != x->index_vector_dim ||
	    list->n_operands != (uint32_t)x->start_index_map.n || list->n_operands > SW_MAX_RANK)
		return false;
	sw_ints map = x->start_index_map;
	for (uint32_t k = 0; k < list->n_operands; k++) {
		int64_t dim = map.v[k];
		int32_t row = sw_ints_has(x->collapsed, dim)
		                      ? counted_by(out, x, list->operands[k], whole.dims[dim])
		                      : -1;
		bool last = *n_columns == 0 && k + 1 == list->n_operands;
		if (row < 0 || last)
			columns[(*n_columns)++] = list->operands[k];
		else
			add_batch(out, x, dim, row);
	}
	return *n_columns < list->n_operands;
}
