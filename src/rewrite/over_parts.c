/*
 * What is made of values in parts, part by part.
 *
 * A variable in parts is read as their concatenation, and so is its gradient, where each part has
 * an owner that adds up its terms. Where an update takes a part of what is made of these, element
 * by element, as of exp(w) for a gradient, that is made of the part. Where all elements of a
 * gradient are added up, as for the norm of all, they are so part by part: else an owner would need
 * the parts of others. The additions are then in another order.
 */
#include "rewrite/over_parts.h"

#include <string.h>

#include "rewrite/internal.h"

static sw_value_parts *new_parts(sw_over_parts *o, sw_id value, int32_t axis, int32_t n, bool sums)
{
	sw_value_parts *parts = SW_NEW_N(o->arena, sw_value_parts, 1);
	*parts = (sw_value_parts){axis, n, sums, SW_NEW_N(o->arena, sw_id, n)};
	for (int32_t i = 0; i < n; i++)
		parts->of[i] = SW_NO_ID;
	o->parts[value] = parts;
	return parts;
}

void sw_over_parts_set(sw_over_parts *o, sw_id value, int32_t axis, const sw_id *parts, int32_t n)
{
	memcpy(new_parts(o, value, axis, n, true)->of, parts, sizeof(*parts) * (size_t)n);
}

static const sw_op *maker(const sw_over_parts *o, sw_id value)
{
	return sw_op_at(o->in, o->in->values.data[value].op);
}

/* Is the value one number everywhere, which is whole and of any shape? */
static bool is_number(const sw_over_parts *o, sw_id value)
{
	const sw_op *op = maker(o, value);
	return sw_value_shape(o->in, value).rank == 0 ||
	       (op->opcode == SW_OP_BROADCAST && sw_value_shape(o->in, op->operands[0]).rank == 0);
}

/* Return the size of part i of a value along its axis. Of what is not written yet it is that of the
 * operand in parts. */
static int64_t part_size(const sw_over_parts *o, sw_id value, int32_t i)
{
	const sw_value_parts *parts = o->parts[value];
	if (parts->of[i] != SW_NO_ID)
		return sw_value_shape(o->out, parts->of[i]).dims[parts->axis];
	const sw_op *op = maker(o, value);
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (o->parts[op->operands[k]])
			return part_size(o, op->operands[k], i);
	return 0;
}

static bool same_parts(const sw_over_parts *o, sw_id a, sw_id b)
{
	const sw_value_parts *x = o->parts[a], *y = o->parts[b];
	bool same = x->axis == y->axis && x->n == y->n;
	for (int32_t i = 0; i < x->n && same; i++)
		same = part_size(o, a, i) == part_size(o, b, i);
	return same;
}

/* ---- values in parts -------------------------------------------------------------------- */

/* Parts of a variable, joined: inputs alone. */
static void note_concatenation(sw_over_parts *o, const sw_op *op)
{
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (maker(o, op->operands[k])->opcode != SW_OP_PARAMETER)
			return;
	sw_value_parts *parts = new_parts(o, op->first_result, (int32_t)op->attrs->dims.dims.v[0],
	                                  (int32_t)op->n_operands, false);
	for (int32_t i = 0; i < parts->n; i++)
		parts->of[i] = o->value[op->operands[i]];
}

/* Made, element by element, of values in the same parts and of numbers. */
static void note_elements(sw_over_parts *o, const sw_op *op)
{
	sw_id first = SW_NO_ID;
	bool sums = true;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id operand = op->operands[k];
		if (is_number(o, operand))
			continue;
		if (!o->parts[operand] || (first != SW_NO_ID && !same_parts(o, first, operand)))
			return;
		first = first == SW_NO_ID ? operand : first;
		sums = sums && o->parts[operand]->sums;
	}
	if (first != SW_NO_ID)
		(void)new_parts(o, op->first_result, o->parts[first]->axis, o->parts[first]->n,
		                sums);
}

/* Write part i of a value in parts, if it is not written. */
static sw_status write_part(sw_over_parts *o, sw_id value, int32_t i)
{
	sw_value_parts *parts = o->parts[value];
	const sw_op *op = maker(o, value);
	if (parts->of[i] != SW_NO_ID)
		return SW_OK;
	sw_id *operands = SW_NEW_N(o->arena, sw_id, op->n_operands + 1);
	int64_t dims[SW_MAX_RANK];
	sw_shape shape = sw_value_shape(o->in, value);
	memcpy(dims, shape.dims, sizeof(*dims) * (size_t)shape.rank);
	dims[parts->axis] = part_size(o, value, i);
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id operand = op->operands[k];
		sw_shape whole = sw_value_shape(o->in, operand);
		if (o->parts[operand]) {
			SW_TRY(write_part(o, operand, i));
			operands[k] = o->parts[operand]->of[i];
		} else if (whole.rank == 0) {
			operands[k] = o->value[operand];
		} else {
			operands[k] = sw_emit_broadcast(
				o->out, o->c, o->value[maker(o, operand)->operands[0]],
				sw_build_shape(o->out, whole.type, dims, whole.rank), NULL);
		}
	}
	return sw_build_op_like(
		o->out, o->c, op, sw_arena_printf(o->arena, "%s.part%d", op->name, i), operands,
		sw_build_shape(o->out, shape.type, dims, shape.rank), &parts->of[i], o->err);
}

/* ---- what is made of parts -------------------------------------------------------------- */

/* Return the part that a slice of a value in parts is, -1: it is none. */
static int32_t part_cut(const sw_over_parts *o, const sw_op *op)
{
	sw_id value = op->operands[0];
	const sw_value_parts *parts = o->parts[value];
	sw_shape whole = sw_value_shape(o->in, value),
		 cut = sw_value_shape(o->in, op->first_result);
	int64_t start = op->attrs->slice.start.v[parts->axis], begin = 0;
	for (int32_t d = 0; d < whole.rank; d++)
		if (d != parts->axis && cut.dims[d] != whole.dims[d])
			return -1;
	if (op->attrs->slice.stride.n > parts->axis && op->attrs->slice.stride.v[parts->axis] != 1)
		return -1;
	for (int32_t i = 0; i < parts->n; i++) {
		int64_t size = part_size(o, value, i);
		if (begin == start && size == cut.dims[parts->axis])
			return i;
		begin += size;
	}
	return -1;
}

/* Is it a sum, from zero, over the axis of parts that are sums of gradients? */
static bool adds_parts(const sw_over_parts *o, const sw_op *op)
{
	if (op->opcode != SW_OP_REDUCE || op->n_results != 1 || op->n_operands != 2 ||
	    !o->parts[op->operands[0]] || !o->parts[op->operands[0]]->sums ||
	    sw_computation_monoid(o->in, op->called[0]) != SW_MONOID_SUM ||
	    !sw_is_zero(o->in, op->operands[1]))
		return false;
	for (int32_t d = 0; d < op->attrs->dims.dims.n; d++)
		if (op->attrs->dims.dims.v[d] == o->parts[op->operands[0]]->axis)
			return true;
	return false;
}

static sw_status write_sum(sw_over_parts *o, const sw_op *op)
{
	sw_value_parts *parts = o->parts[op->operands[0]];
	sw_id sum = SW_NO_ID;
	for (int32_t i = 0; i < parts->n; i++) {
		SW_TRY(write_part(o, op->operands[0], i));
		sw_id term = sw_emit_reduce(o->out, o->c, SW_MONOID_SUM, parts->of[i],
		                            o->value[op->operands[1]], op->attrs->dims.dims.v,
		                            op->attrs->dims.dims.n);
		sum = i == 0 ? term : sw_emit_binary(o->out, o->c, SW_OP_ADD, sum, term);
	}
	o->value[op->first_result] = sum;
	return SW_OK;
}

sw_status sw_over_parts_op(sw_over_parts *o, sw_id id, bool *written)
{
	const sw_op *op = sw_op_at(o->in, id);
	*written = false;
	if (op->n_results != 1 || op->n_operands == 0 || o->parts[op->first_result])
		return SW_OK;
	if (op->opcode == SW_OP_CONCATENATE) {
		note_concatenation(o, op);
	} else if (sw_opcode_is_elementwise((sw_opcode)op->opcode)) {
		note_elements(o, op);
	} else if (op->opcode == SW_OP_SLICE && o->parts[op->operands[0]]) {
		int32_t part = part_cut(o, op);
		*written = part >= 0;
		if (*written) {
			SW_TRY(write_part(o, op->operands[0], part));
			o->value[op->first_result] = o->parts[op->operands[0]]->of[part];
		}
	} else if (adds_parts(o, op)) {
		*written = true;
		return write_sum(o, op);
	}
	return SW_OK;
}
