/* Gathers and scatters whose indices count the rows: x[arange(n) // each] repeats each row, and
 * what is added up there is a sum of as many rows. What the indices are is computed, since programs
 * count and divide in many ways. */
#include "rewrite/sorted_rows.h"

#include "interpret/interpret.h"
#include "program/number.h"

#define MAX_INDEX_OPS 64

/* ---- what an index is ------------------------------------------------------------------- */

typedef struct index_copy {
	const sw_program *in;
	sw_program *out;
	int32_t c;
	int32_t n;
	sw_id from[MAX_INDEX_OPS], to[MAX_INDEX_OPS]; /* values */
} index_copy;

/* Copy what a value is made of; SW_NO_ID: of inputs, or of too many ops. */
static sw_id copy_value(index_copy *x, sw_id value)
{
	for (int32_t i = 0; i < x->n; i++)
		if (x->from[i] == value)
			return x->to[i];
	sw_id id = x->in->values.data[value].op, operands[3];
	const sw_op *op = sw_op_at(x->in, id);
	bool simple = sw_opcode_is_elementwise((sw_opcode)op->opcode) ||
	              op->opcode == SW_OP_RESHAPE || op->opcode == SW_OP_BROADCAST ||
	              op->opcode == SW_OP_IOTA ||
	              (op->opcode == SW_OP_CONSTANT && op->attrs->constant.data);
	if (!simple || op->n_results != 1 || op->n_operands > SW_COUNT(operands) ||
	    op->n_called > 0 || sw_opcode_class((sw_opcode)op->opcode) == SW_CLASS_RANDOM)
		return SW_NO_ID;
	for (uint32_t k = 0; k < op->n_operands; k++)
		if ((operands[k] = copy_value(x, op->operands[k])) == SW_NO_ID)
			return SW_NO_ID;
	if (x->n == MAX_INDEX_OPS)
		return SW_NO_ID;
	x->from[x->n] = value;
	x->to[x->n] = sw_build_copy_op(x->out, x->c, x->in, id, operands, NULL);
	return x->to[x->n++];
}

/* Is each of the elements its own number, divided? */
static bool counts_rows(sw_tensor list, int64_t each)
{
	int64_t n = sw_shape_elements(list.shape);
	for (int64_t i = 0; i < n; i++)
		if (sw_integer_get(list.shape.type, sw_tensor_data(list), (size_t)i) != i / each)
			return false;
	return true;
}

static bool is_counted(const sw_program *in, sw_id value, int64_t each)
{
	index_copy x = {.in = in, .out = sw_program_new("index")};
	sw_interpreter *interpreter = NULL;
	sw_interpret_options options = {0};
	sw_tensor list = {0};
	sw_error err = {0};
	bool counted = false;
	x.c = sw_build_computation(x.out, "index");
	sw_id made = copy_value(&x, value);
	if (made != SW_NO_ID) {
		sw_build_results(x.out, x.c, &made, 1, false);
		x.out->entry = x.c;
		if (sw_interpreter_new(x.out, &options, &interpreter, &err) == SW_OK &&
		    sw_interpret(interpreter, NULL, 0, &list, 1, &err) == SW_OK) {
			counted = counts_rows(list, each);
			sw_tensor_drop(&list);
		}
	}
	if (interpreter)
		sw_interpreter_free(interpreter);
	sw_program_free(x.out);
	return counted;
}

/* ---- gathers and scatters --------------------------------------------------------------- */

/* Return whether the op has one index per row, [rows] or [rows, 1], and takes whole slices: the
 * operand is like the slices, but for the number of rows along `dim`. */
static bool has_one_index(const sw_program *p, const sw_op *op, int32_t dim)
{
	bool gathers = op->opcode == SW_OP_GATHER;
	const sw_index_dims *at = &op->attrs->index;
	sw_shape whole = sw_value_shape(p, op->operands[0]),
		 indices = sw_value_shape(p, op->operands[1]),
		 slices = sw_value_shape(p, gathers ? op->first_result : op->operands[2]);
	if (at->start_index_map.n != 1 || at->operand_batch.n > 0 || at->collapsed.n != 1 ||
	    at->collapsed.v[0] != dim || slices.rank != whole.rank ||
	    sw_ints_has(at->offset, dim) || !sw_is_whole(indices.type))
		return false;
	bool column = indices.rank == 2 && indices.dims[1] == 1 && at->index_vector_dim == 1;
	for (int32_t d = 0; d < whole.rank; d++)
		if (d != dim && whole.dims[d] != slices.dims[d])
			return false;
	return column || (indices.rank == 1 && at->index_vector_dim == 1);
}

/* Does a scatter replace what was there? */
static bool overwrites(const sw_program *p, const sw_op *op)
{
	return sw_computation_returns_parameter(p, op->called[0], 1);
}

/* Return whether a scatter of rows is written without indices: it adds, or each row is put once. */
static bool is_put(const sw_program *p, const sw_op *op, int64_t each)
{
	return op->n_operands == 3 && (sw_computation_monoid(p, op->called[0]) == SW_MONOID_SUM ||
	                               (each == 1 && overwrites(p, op)));
}

static bool has_rows(const sw_program *p, const sw_op *op, int64_t rows)
{
	if (op->attrs->index.start_index_map.n != 1)
		return false;
	int32_t dim = (int32_t)op->attrs->index.start_index_map.v[0];
	return sw_value_shape(p, op->operands[0]).dims[dim] == rows &&
	       sw_shape_elements(sw_value_shape(p, op->operands[1])) == rows &&
	       has_one_index(p, op, dim);
}

bool sw_takes_rows(const sw_program *p, const sw_op *gather, int64_t rows)
{
	return has_rows(p, gather, rows);
}

bool sw_puts_rows(const sw_program *p, const sw_op *scatter, int64_t rows)
{
	return scatter->n_operands == 3 && has_rows(p, scatter, rows) && overwrites(p, scatter);
}

bool sw_find_counted_rows(const sw_program *p, const sw_op *op, sw_counted_rows *rows)
{
	if ((op->opcode != SW_OP_GATHER && op->opcode != SW_OP_SCATTER) ||
	    op->attrs->index.start_index_map.n != 1)
		return false;
	rows->dim = (int32_t)op->attrs->index.start_index_map.v[0];
	int64_t size = sw_value_shape(p, op->operands[0]).dims[rows->dim],
		n = sw_shape_elements(sw_value_shape(p, op->operands[1]));
	if (size == 0 || n == 0 || n % size != 0 ||
	    sw_value_shape(p, op->operands[0]).rank == SW_MAX_RANK)
		return false;
	rows->each = n / size;
	return has_one_index(p, op, rows->dim) &&
	       (op->opcode == SW_OP_GATHER || is_put(p, op, rows->each)) &&
	       is_counted(p, op->operands[1], rows->each);
}

/* The shape with a dimension more, behind `dim`, for the rows that are made of one. */
static sw_shape apart(sw_shape shape, const sw_counted_rows *rows, int64_t dims[SW_MAX_RANK])
{
	for (int32_t d = 0; d <= shape.rank; d++)
		dims[d] = d <= rows->dim       ? shape.dims[d]
		          : d == rows->dim + 1 ? rows->each
		                               : shape.dims[d - 1];
	return (sw_shape){.type = shape.type, .rank = shape.rank + 1, .dims = dims};
}

static sw_id repeat(sw_program *out, int32_t c, const sw_counted_rows *rows, sw_id x)
{
	int64_t dims[SW_MAX_RANK], from[SW_MAX_RANK], whole[SW_MAX_RANK];
	sw_shape shape = sw_value_shape(out, x), more = apart(shape, rows, dims);
	for (int32_t d = 0; d < shape.rank; d++) {
		from[d] = d <= rows->dim ? d : d + 1;
		whole[d] = shape.dims[d] * (d == rows->dim ? rows->each : 1);
	}
	more = sw_build_shape(out, more.type, more.dims, more.rank);
	return sw_emit_reshape(out, c, sw_emit_broadcast(out, c, x, more, from), whole, shape.rank);
}

static sw_id add_up(sw_program *out, int32_t c, const sw_counted_rows *rows, sw_id whole, sw_id x)
{
	int64_t dims[SW_MAX_RANK], dim = rows->dim + 1;
	sw_shape shape = sw_value_shape(out, whole);
	if (rows->each > 1) {
		sw_shape more = apart(shape, rows, dims);
		x = sw_emit_reshape(out, c, x, more.dims, more.rank);
		x = sw_emit_reduce(out, c, SW_MONOID_SUM, x,
		                   sw_emit_identity(out, c, shape.type, SW_MONOID_SUM), &dim, 1);
	}
	return sw_is_zero(out, whole) ? x : sw_emit_binary(out, c, SW_OP_ADD, whole, x);
}

sw_id sw_write_counted_rows(sw_program *out, int32_t c, const sw_program *in, const sw_op *op,
                            const sw_counted_rows *rows, const sw_id *operands)
{
	if (op->opcode == SW_OP_GATHER)
		return rows->each == 1 ? operands[0] : repeat(out, c, rows, operands[0]);
	bool adds = sw_computation_monoid(in, op->called[0]) == SW_MONOID_SUM;
	return adds ? add_up(out, c, rows, operands[0], operands[2]) : operands[2];
}
