/*
 * A number that is reduced from a stack of what layers left (the norm of all gradients) becomes
 * that of each layer's part: else all parts must come to one place only to be added up there.
 *
 * A STACK is a value into which each layer's part is put along one axis, by dynamic-update-slices
 * or by a concatenation. It may be read elementwise before it is reduced.
 */
#include <string.h>

#include "rewrite/internal.h"

#define ANY_AXIS (-2) /* the same number everywhere */
#define NOT_KNOWN (-3)

typedef struct splitter {
	sw_arena arena;
	const sw_program *in;
	sw_program *out;
	int32_t c;     /* the entry of `out` */
	sw_id *value;  /* of `in` -> of `out` */
	int8_t *axis;  /* per value of `in`: along which it is made of layers' parts */
	sw_id **parts; /* per value that is a stack: its parts, values of `in` */
	sw_id **made;  /* per value: its parts, values of `out`; SW_NO_ID: not written yet */
	bool any;
	sw_status status;
	sw_error *err;
} splitter;

static const sw_op *op_of(const splitter *x, sw_id value)
{
	return sw_op_at(x->in, x->in->values.data[value].op);
}

static sw_id *no_parts(splitter *x, int64_t n)
{
	sw_id *parts = SW_NEW_N(&x->arena, sw_id, n);
	for (int64_t i = 0; i < n; i++)
		parts[i] = SW_NO_ID;
	return parts;
}

/* The last update of a layer counts, and all layers must have one. */
static int8_t parts_of_updates(splitter *x, sw_id value)
{
	sw_shape whole = sw_value_shape(x->in, value);
	int8_t axis =
		(int8_t)sw_layer_axis(sw_value_shape(x->in, op_of(x, value)->operands[1]), whole);
	if (axis == SW_NO_AXIS)
		return SW_NO_AXIS;
	int64_t left = whole.dims[axis], start[SW_MAX_RANK];
	sw_id *parts = no_parts(x, left);
	for (sw_id at = value; left > 0;) {
		const sw_op *op = op_of(x, at);
		if (!sw_fold_update(x->in, op, start) ||
		    sw_layer_axis(sw_value_shape(x->in, op->operands[1]), whole) != axis)
			return SW_NO_AXIS;
		if (parts[start[axis]] == SW_NO_ID) {
			parts[start[axis]] = op->operands[1];
			left--;
		}
		at = op->operands[0];
	}
	x->parts[value] = parts;
	return axis;
}

static int8_t parts_of_concatenation(splitter *x, sw_id value)
{
	const sw_op *op = op_of(x, value);
	sw_shape whole = sw_value_shape(x->in, value);
	int8_t axis = (int8_t)op->attrs->dims.dims.v[0];
	if (op->n_operands != whole.dims[axis])
		return SW_NO_AXIS;
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (sw_value_shape(x->in, op->operands[k]).dims[axis] != 1)
			return SW_NO_AXIS;
	x->parts[value] = sw_arena_copy(&x->arena, op->operands, sizeof(sw_id) * op->n_operands);
	return axis;
}

static int8_t axis_of(splitter *x, sw_id value);

static int8_t axis_of_elementwise(splitter *x, const sw_op *op)
{
	int8_t axis = ANY_AXIS;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		int8_t its = axis_of(x, op->operands[k]);
		if (its == SW_NO_AXIS || (its != ANY_AXIS && axis != ANY_AXIS && its != axis))
			return SW_NO_AXIS;
		axis = its == ANY_AXIS ? axis : its;
	}
	return axis;
}

static int8_t find_axis(splitter *x, sw_id value)
{
	const sw_op *op = op_of(x, value);
	if (op->opcode == SW_OP_DYNAMIC_UPDATE_SLICE)
		return parts_of_updates(x, value);
	if (op->opcode == SW_OP_CONCATENATE)
		return parts_of_concatenation(x, value);
	if (op->opcode == SW_OP_BROADCAST)
		return sw_value_shape(x->in, op->operands[0]).rank == 0 ? ANY_AXIS : SW_NO_AXIS;
	return sw_opcode_is_elementwise((sw_opcode)op->opcode) ? axis_of_elementwise(x, op)
	                                                       : SW_NO_AXIS;
}

static int8_t axis_of(splitter *x, sw_id value)
{
	if (x->axis[value] == NOT_KNOWN)
		x->axis[value] = find_axis(x, value);
	return x->axis[value];
}

/* ---- writing ---------------------------------------------------------------------------- */

/* Return a layer's part of a value, in `out`. */
static sw_id part_of(splitter *x, sw_id value, int8_t axis, int64_t layer)
{
	if (x->parts[value])
		return x->value[x->parts[value][layer]];
	const sw_op *op = op_of(x, value);
	sw_shape shape = sw_value_shape(x->in, value);
	if (!x->made[value])
		x->made[value] = no_parts(x, shape.dims[axis]);
	sw_id *part = &x->made[value][layer], operands[3] = {0};
	int64_t dims[SW_MAX_RANK];
	if (*part != SW_NO_ID || x->status != SW_OK)
		return *part;
	memcpy(dims, shape.dims, sizeof(*dims) * (size_t)shape.rank);
	dims[axis] = 1;
	shape = sw_build_shape(x->out, shape.type, dims, shape.rank);
	for (uint32_t k = 0; k < op->n_operands; k++)
		operands[k] = op->opcode == SW_OP_BROADCAST
		                      ? x->value[op->operands[k]]
		                      : part_of(x, op->operands[k], axis, layer);
	if (x->status == SW_OK)
		x->status = sw_build_op_like(x->out, x->c, op, op->name, operands, shape, part,
		                             x->err);
	return *part;
}

static sw_opcode combining(sw_monoid monoid)
{
	return monoid == SW_MONOID_SUM   ? SW_OP_ADD
	       : monoid == SW_MONOID_MAX ? SW_OP_MAXIMUM
	       : monoid == SW_MONOID_AND ? SW_OP_AND
	                                 : SW_OP_TUPLE;
}

/* Is the op the reduction of a stack to one number? */
static bool is_split(splitter *x, const sw_op *op)
{
	if (op->opcode != SW_OP_REDUCE || op->n_operands != 2 ||
	    sw_value_shape(x->in, op->first_result).rank > 0)
		return false;
	return combining(sw_computation_monoid(x->in, op->called[0])) != SW_OP_TUPLE &&
	       axis_of(x, op->operands[0]) >= 0;
}

static sw_id write_split(splitter *x, const sw_op *op)
{
	int8_t axis = axis_of(x, op->operands[0]);
	sw_shape whole = sw_value_shape(x->in, op->operands[0]);
	sw_monoid monoid = sw_computation_monoid(x->in, op->called[0]);
	sw_id all = x->value[op->operands[1]],
	      none = sw_emit_identity(x->out, x->c, whole.type, monoid);
	for (int64_t layer = 0; layer < whole.dims[axis]; layer++) {
		sw_id part = part_of(x, op->operands[0], axis, layer);
		if (x->status != SW_OK)
			break;
		all = sw_emit_binary(x->out, x->c, combining(monoid), all,
		                     sw_emit_reduce(x->out, x->c, monoid, part, none,
		                                    op->attrs->dims.dims.v,
		                                    op->attrs->dims.dims.n));
	}
	x->any = true;
	return all;
}

static void write_entry(splitter *x)
{
	const sw_computation *entry = sw_entry(x->in);
	int32_t *computations = SW_NEW_N(&x->arena, int32_t, x->in->computations.len + 1);
	sw_build_copy_called(x->out, x->in, computations);
	x->c = sw_build_computation(x->out, entry->name);
	for (size_t i = 0; i < entry->ops.len && x->status == SW_OK; i++) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(x->in, id);
		sw_id first = is_split(x, op) ? write_split(x, op)
		                              : sw_build_copy_mapped(x->out, x->c, x->in, id,
		                                                     x->value, computations);
		for (uint32_t r = 0; r < op->n_results; r++)
			x->value[op->first_result + r] = first + r;
	}
	if (x->status != SW_OK)
		return;
	SW_VEC(sw_id) results = {0};
	for (size_t i = 0; i < entry->results.len; i++)
		sw_vec_push(&results, x->value[entry->results.data[i]]);
	sw_build_results(x->out, x->c, results.data, (uint32_t)results.len, entry->root_tuple);
	x->out->entry = x->c;
	sw_vec_clear(&results);
}

sw_status sw_split_reductions(const sw_program *in, sw_program **out, sw_error *err)
{
	splitter x = {.in = in, .out = sw_program_new(in->name), .err = err};
	size_t n = in->values.len + 1;
	*out = NULL;
	sw_arena_init(&x.arena);
	x.value = SW_NEW_N(&x.arena, sw_id, n);
	x.axis = SW_NEW_N(&x.arena, int8_t, n);
	x.parts = SW_NEW_N(&x.arena, sw_id *, n);
	x.made = SW_NEW_N(&x.arena, sw_id *, n);
	for (size_t v = 0; v < n; v++)
		x.axis[v] = NOT_KNOWN;
	sw_build_copy_frame(x.out, in);
	write_entry(&x);
	if (x.any && x.status == SW_OK)
		x.status = sw_rewrite_canonical(x.out, out, err);
	sw_program_free(x.out);
	sw_arena_clear(&x.arena);
	return x.status;
}
