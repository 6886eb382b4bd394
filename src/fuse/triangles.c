/* Constants and masks, followed back to what they are made of. */
#include "fuse/triangles.h"

#include <stdlib.h>
#include <string.h>

#include "program/number.h"

void sw_sources_open(sw_sources *o, const sw_program *program)
{
	*o = (sw_sources){program, sw_alloc((program->computations.len + 1) * sizeof(sw_id))};
	for (size_t c = 0; c < program->computations.len; c++)
		o->loop[c] = SW_NO_ID;
	for (sw_id id = 0; id < program->ops.len; id++)
		if (program->ops.data[id].opcode == SW_OP_WHILE)
			o->loop[program->ops.data[id].called[1]] = id;
}

void sw_sources_close(sw_sources *o)
{
	free(o->loop);
}

static sw_shape shape_of(const sw_sources *o, sw_id value)
{
	return sw_value_shape(o->program, value);
}

static const sw_op *op_of(const sw_sources *o, sw_id value)
{
	return sw_op_at(o->program, o->program->values.data[value].op);
}

bool sw_map_reshape(sw_shape from, sw_shape into, int8_t to[SW_MAX_RANK])
{
	int32_t i = 0, j = 0;
	memset(to, -1, SW_MAX_RANK);
	for (;; i++, j++) {
		for (; i < from.rank && from.dims[i] == 1;)
			i++;
		for (; j < into.rank && into.dims[j] == 1;)
			j++;
		if (i == from.rank || j == into.rank)
			return i == from.rank && j == into.rank;
		if (from.dims[i] != into.dims[j])
			return false;
		to[i] = (int8_t)j;
	}
}

/* Return what a value is without barriers, and outside of the loops that carry it from iteration to
 * iteration as it is: constants and masks are often computed before a loop. */
static sw_id unmoved(const sw_sources *o, sw_id value)
{
	for (;;) {
		const sw_value *v = &o->program->values.data[value];
		const sw_op *op = sw_op_at(o->program, v->op);
		if (op->opcode == SW_OP_OPT_BARRIER) {
			value = op->operands[v->index];
			continue;
		}
		sw_id loop = op->opcode == SW_OP_PARAMETER ? o->loop[op->computation] : SW_NO_ID;
		const sw_computation *body = &o->program->computations.data[op->computation];
		if (loop == SW_NO_ID || body->results.data[v->index] != value)
			return value;
		value = sw_op_at(o->program, loop)->operands[v->index];
	}
}

bool sw_is_uniform(const sw_sources *o, sw_id value, double *number)
{
	const sw_op *op = op_of(o, unmoved(o, value));
	switch (op->opcode) {
	case SW_OP_CONSTANT: {
		sw_literal literal = op->attrs->constant;
		if (sw_shape_elements(literal.shape) != 1)
			return false;
		*number = sw_number_get(literal.shape.type, literal.data, 0);
		return true;
	}
	case SW_OP_BROADCAST:
	case SW_OP_CONVERT:
	case SW_OP_RESHAPE:
		return sw_is_uniform(o, op->operands[0], number);
	default:
		return false;
	}
}

/* A value that counts along dimensions: constant + sum over d of factor[d] * (index along d). */
typedef struct count {
	double constant, factor[SW_MAX_RANK];
} count;

static bool find_count(const sw_sources *o, sw_id value, count *c);

static bool count_broadcast(const sw_sources *o, const sw_op *op, count *c)
{
	count x;
	sw_ints dims = op->attrs->dims.dims;
	if (!find_count(o, op->operands[0], &x))
		return false;
	c->constant = x.constant;
	for (int32_t i = 0; i < dims.n; i++)
		c->factor[dims.v[i]] = x.factor[i];
	return true;
}

static bool count_sum(const sw_sources *o, const sw_op *op, double sign, count *c)
{
	count x, y;
	if (!find_count(o, op->operands[0], &x) || !find_count(o, op->operands[1], &y))
		return false;
	c->constant = x.constant + sign * y.constant;
	for (int32_t d = 0; d < SW_MAX_RANK; d++)
		c->factor[d] = x.factor[d] + sign * y.factor[d];
	return true;
}

static bool find_count(const sw_sources *o, sw_id value, count *c)
{
	const sw_op *op = op_of(o, value = unmoved(o, value));
	*c = (count){0};
	if (sw_is_uniform(o, value, &c->constant))
		return true;
	switch (op->opcode) {
	case SW_OP_IOTA:
		c->factor[op->attrs->iota.dimension] = 1;
		return true;
	case SW_OP_CONVERT:
		return find_count(o, op->operands[0], c);
	case SW_OP_BROADCAST:
		return count_broadcast(o, op, c);
	case SW_OP_RESHAPE: {
		count x;
		int8_t to[SW_MAX_RANK];
		if (!find_count(o, op->operands[0], &x) ||
		    !sw_map_reshape(shape_of(o, op->operands[0]), shape_of(o, value), to))
			return false;
		c->constant = x.constant;
		for (int32_t d = 0; d < SW_MAX_RANK; d++)
			if (to[d] >= 0)
				c->factor[to[d]] = x.factor[d];
		return true;
	}
	case SW_OP_ADD:
		return count_sum(o, op, 1, c);
	case SW_OP_SUBTRACT:
		return count_sum(o, op, -1, c);
	default:
		return false;
	}
}

/* Read row - column + constant >= 0 out of a comparison; both directions, strict or not. */
static bool compared(const sw_sources *o, const sw_op *op, sw_triangle *t)
{
	count c;
	if (!count_sum(o, op, -1, &c))
		return false;
	t->row = t->column = -1;
	for (int32_t d = 0; d < SW_MAX_RANK; d++) {
		if (c.factor[d] == 1 && t->row < 0)
			t->row = d;
		else if (c.factor[d] == -1 && t->column < 0)
			t->column = d;
		else if (c.factor[d] != 0)
			return false;
	}
	if (t->row < 0 || t->column < 0)
		return false;
	switch (op->attrs->compare.direction) {
	case SW_GE:
		t->inverse = false;
		return c.constant == 0;
	case SW_GT: /* row - column + constant > 0 */
		t->inverse = false;
		return c.constant == 1;
	case SW_LT:
		t->inverse = true;
		return c.constant == 0;
	case SW_LE:
		t->inverse = true;
		return c.constant == 1;
	default:
		return false;
	}
}

/* A comparison the other way round is of column - row. */
static bool compared_either(const sw_sources *o, const sw_op *op, sw_triangle *t)
{
	sw_op turned = *op;
	sw_id operands[] = {op->operands[1], op->operands[0]};
	sw_attrs attrs = *op->attrs;
	static const sw_direction other[] = {[SW_EQ] = SW_EQ, [SW_NE] = SW_NE, [SW_GE] = SW_LE,
	                                     [SW_GT] = SW_LT, [SW_LE] = SW_GE, [SW_LT] = SW_GT};
	if (compared(o, op, t))
		return true;
	attrs.compare.direction = other[op->attrs->compare.direction];
	turned.operands = operands;
	turned.attrs = &attrs;
	return compared(o, &turned, t);
}

bool sw_find_triangle(const sw_sources *o, sw_id value, sw_triangle *t)
{
	const sw_op *op = op_of(o, value = unmoved(o, value));
	double yes, no;
	switch (op->opcode) {
	case SW_OP_COMPARE:
		return compared_either(o, op, t);
	case SW_OP_NOT:
		if (!sw_find_triangle(o, op->operands[0], t))
			return false;
		t->inverse = !t->inverse;
		return true;
	case SW_OP_SELECT:
		if (!sw_is_uniform(o, op->operands[1], &yes) ||
		    !sw_is_uniform(o, op->operands[2], &no) || (yes != 0) == (no != 0) ||
		    !sw_find_triangle(o, op->operands[0], t))
			return false;
		t->inverse ^= yes == 0;
		return true;
	case SW_OP_RESHAPE: {
		int8_t to[SW_MAX_RANK];
		if (!sw_find_triangle(o, op->operands[0], t) ||
		    !sw_map_reshape(shape_of(o, op->operands[0]), shape_of(o, value), to) ||
		    to[t->row] < 0 || to[t->column] < 0)
			return false;
		t->row = to[t->row];
		t->column = to[t->column];
		return true;
	}
	case SW_OP_BROADCAST:
		if (!sw_find_triangle(o, op->operands[0], t))
			return false;
		t->row = (int32_t)op->attrs->dims.dims.v[t->row];
		t->column = (int32_t)op->attrs->dims.dims.v[t->column];
		return true;
	default:
		return false;
	}
}
