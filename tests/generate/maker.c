/* Writing ops, picking values, opening computations: the steps from which makers are built. */
#include "generate/maker.h"
#include "interpret/kernel.h"
#include "program/number.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing ---------------------------------------------------------------------------- */

sw_shape shape_of(const maker *m, sw_id value)
{
	return sw_value_shape(m->program, value);
}

sw_type type_of(const maker *m, sw_id value)
{
	return shape_of(m, value).type;
}

value_facts *fact(maker *m, sw_id value)
{
	while (m->facts.len < m->program->values.len)
		sw_vec_push(&m->facts, ((value_facts){0}));
	return &m->facts.data[value];
}

sw_ints ints_of(maker *m, const int64_t *v, int32_t n)
{
	return sw_build_ints(m->program, v, n);
}

sw_id write_op(maker *m, const sw_op_spec *spec)
{
	sw_id first = SW_NO_ID;
	sw_error err = {0};
	sw_status status = sw_build_op(m->program, m->scope->computation, spec, &first, &err);
	if (status != SW_OK)
		fprintf(stderr, "generate: %s\n", err.message);
	assert(status == SW_OK);
	return first;
}

sw_id write_simple_op(maker *m, sw_opcode opcode, const sw_id *operands, uint32_t n,
                      const sw_attrs *attrs, const sw_shape *shape)
{
	sw_op_spec spec = {.opcode = opcode,
	                   .operands = operands,
	                   .n_operands = n,
	                   .attrs = attrs,
	                   .shapes = shape,
	                   .n_results = shape != NULL};
	return write_op(m, &spec);
}

sw_id write_calling_op(maker *m, sw_opcode opcode, const sw_id *operands, uint32_t n,
                       const sw_attrs *attrs, int32_t called)
{
	sw_op_spec spec = {.opcode = opcode,
	                   .operands = operands,
	                   .n_operands = n,
	                   .attrs = attrs,
	                   .called = &called,
	                   .n_called = 1};
	return write_op(m, &spec);
}

sw_id set_facts(maker *m, sw_id value, value_facts k)
{
	*fact(m, value) = k;
	return value;
}

/* Return the size above which a value is scaled back: sums of small integers stay exact, and other
 * values do not run away. */
static double tame_size(sw_type type, value_facts k)
{
	if (!is_kind(type, INEXACT))
		return INFINITY;
	double exact = largest_integer(type);
	return k.integral && k.error == 0 ? fmin(exact / 16 + 4, 0x1p20) : fmin(exact, 0x1p10);
}

/* Scale integers back by their remainder, other values by a power of two. */
static sw_id made_smaller(maker *m, sw_id value)
{
	value_facts k = *fact(m, value);
	sw_shape shape = shape_of(m, value);
	double to = fmin(8, largest_integer(shape.type) / 4);
	if (k.integral && k.error == 0 && is_kind(shape.type, KIND(FLOAT))) {
		sw_id two[] = {value, constant_like(m, shape, to)};
		k = (value_facts){k.low < 0 ? 1 - to : 0, k.high > 0 ? to - 1 : 0, 0, true};
		return set_facts(m, write_simple_op(m, SW_OP_REMAINDER, two, 2, NULL, NULL), k);
	}
	double scale = exp2(floor(log2(to / size_of(k))));
	sw_id two[] = {value, constant_like(m, shape, scale)};
	k = (value_facts){k.low * scale, k.high * scale,
	                  fmax(k.error, 6 * unit_of(shape.type) * size_of(k)) * scale, false};
	return set_facts(m, write_simple_op(m, SW_OP_MULTIPLY, two, 2, NULL, NULL), k);
}

static bool overflows(sw_type type, value_facts k)
{
	double stored[2];
	if (!is_kind(type, INEXACT))
		return false;
	sw_element_set(type, stored, 0, size_of(k));
	return !(fabs(sw_element_get(type, stored, 0)) < 1e30);
}

/* A value that may be infinite, or is mostly error, is neither compared nor used. */
static bool is_unusable(sw_type type, value_facts k)
{
	return overflows(type, k) || k.error > size_of(k) / 24;
}

sw_id add_to_pool(maker *m, sw_id value, value_facts k)
{
	sw_type type = type_of(m, value);
	set_facts(m, value, k);
	if (is_unusable(type, k))
		return value;
	if (size_of(k) > tame_size(type, k))
		value = made_smaller(m, value);
	if (elements(shape_of(m, value)) > 0 && !too_large(m, shape_of(m, value)))
		sw_vec_push(&m->scope->pool, value);
	return value;
}

sw_id scalar(maker *m, sw_type type, double value)
{
	return set_facts(m, sw_emit_scalar(m->program, m->scope->computation, type, value),
	                 facts_exactly(value));
}

sw_id broadcast_to(maker *m, sw_id x, sw_shape shape, const int64_t *dims)
{
	if (shape.rank == 0)
		return x;
	return set_facts(m, sw_emit_broadcast(m->program, m->scope->computation, x, shape, dims),
	                 *fact(m, x));
}

sw_id constant_like(maker *m, sw_shape shape, double value)
{
	return broadcast_to(m, scalar(m, shape.type, value), shape, NULL);
}

/* Each part of a complex product is a sum of two real products. */
static value_facts product_of(sw_type type, value_facts a, value_facts b)
{
	value_facts k = facts_multiply(a, b);
	if (!is_kind(type, KIND(COMPLEX)))
		return k;
	double size = 2 * size_of(k);
	return (value_facts){-size, size, 2 * k.error, k.integral};
}

sw_id binary(maker *m, sw_opcode opcode, sw_id x, sw_id y)
{
	value_facts a = *fact(m, x), b = *fact(m, y), k = facts_either(a, b);
	sw_type type = type_of(m, x);
	sw_id result = sw_emit_binary(m->program, m->scope->computation, opcode, x, y);
	if (opcode == SW_OP_ADD && type != SW_PRED)
		k = round_facts(type, facts_add(a, b));
	else if (opcode == SW_OP_SUBTRACT)
		k = round_facts(type,
		                facts_add(a, (value_facts){-b.high, -b.low, b.error, b.integral}));
	else if (opcode == SW_OP_MULTIPLY && type != SW_PRED)
		k = round_facts(type, product_of(type, a, b));
	return set_facts(m, result, k);
}

static bool is_within(value_facts k, double low, double high)
{
	return k.low >= low && k.high <= high;
}

sw_id clamped(maker *m, sw_id x, double low, double high)
{
	value_facts k = *fact(m, x);
	if (is_within(k, low, high))
		return x;
	sw_shape shape = shape_of(m, x);
	sw_id three[] = {scalar(m, shape.type, low), x, scalar(m, shape.type, high)};
	bool integral = k.integral && low == floor(low) && high == floor(high);
	k = (value_facts){fmin(fmax(k.low, low), high), fmax(fmin(k.high, high), low), k.error,
	                  integral};
	return set_facts(m, write_simple_op(m, SW_OP_CLAMP, three, 3, NULL, NULL), k);
}

sw_id in_box(maker *m, sw_id x, double low, double high)
{
	value_facts k = *fact(m, x);
	if (!is_kind(type_of(m, x), KIND(COMPLEX)))
		return clamped(m, x, low, high);
	double side = fmin(fabs(low), fabs(high));
	sw_id parts[2] = {write_simple_op(m, SW_OP_REAL, &x, 1, NULL, NULL),
	                  write_simple_op(m, SW_OP_IMAG, &x, 1, NULL, NULL)};
	for (int i = 0; i < 2; i++) {
		set_facts(m, parts[i], k);
		parts[i] = clamped(m, parts[i], i ? -side : low, i ? side : high);
	}
	k = facts_either(*fact(m, parts[0]), *fact(m, parts[1]));
	return set_facts(m, write_simple_op(m, SW_OP_COMPLEX, parts, 2, NULL, NULL), k);
}

sw_id reshaped(maker *m, sw_id x, const int64_t *dims, int32_t rank)
{
	return set_facts(m, sw_emit_reshape(m->program, m->scope->computation, x, dims, rank),
	                 *fact(m, x));
}

int32_t reducer(maker *m, sw_monoid monoid, sw_type type)
{
	return sw_build_reducer(m->program, monoid, type);
}

sw_id summed(maker *m, sw_id x, sw_monoid monoid, const int64_t *dims, int32_t n)
{
	value_facts k = *fact(m, x);
	sw_shape shape = shape_of(m, x);
	double terms = 1;
	for (int32_t i = 0; i < n; i++)
		terms *= (double)shape.dims[dims[i]];
	sw_id init = set_facts(
		m, sw_emit_identity(m->program, m->scope->computation, shape.type, monoid), k);
	sw_id result = sw_emit_reduce(m->program, m->scope->computation, monoid, x, init, dims, n);
	return set_facts(
		m, result,
		monoid == SW_MONOID_SUM ? round_sum(shape.type, facts_times(k, terms), terms) : k);
}

sw_id converted(maker *m, sw_id x, sw_type type)
{
	value_facts k = *fact(m, x);
	if (type_of(m, x) == type)
		return x;
	if (type == SW_PRED)
		k = (value_facts){0, 1, 0, true};
	if (is_kind(type, KIND(UNSIGNED)) && is_kind(type_of(m, x), KIND(FLOAT)))
		k.low = fmax(k.low, 0);
	return set_facts(m, sw_emit_convert(m->program, m->scope->computation, x, type),
	                 round_facts(type, k));
}

/* ---- picking ---------------------------------------------------------------------------- */

int32_t depth_of(const maker *m)
{
	int32_t depth = 0;
	for (const scope *s = m->scope->outer; s; s = s->outer)
		depth++;
	return depth;
}

static sw_id parameter(maker *m, sw_shape shape, sw_fill fill, value_facts k)
{
	sw_vec_push(&m->fills, fill);
	return add_to_pool(m, sw_emit_parameter(m->program, m->scope->computation, shape, NULL), k);
}

static sw_id literal(maker *m, sw_shape shape, int64_t low, int64_t high)
{
	void *data = sw_alloc((size_t)sw_shape_bytes(shape) + 1);
	for (int64_t e = 0; e < elements(shape); e++)
		sw_element_set(shape.type, data, e, (double)between(m, low, high));
	sw_id id = sw_emit_literal(m->program, m->scope->computation, (sw_literal){shape, data});
	free(data);
	return add_to_pool(m, id, (value_facts){(double)low, (double)high, 0, true});
}

sw_id fresh_integers(maker *m, sw_shape shape, int64_t low, int64_t high)
{
	if (!is_kind(shape.type, INEXACT)) {
		low = (int64_t)fmax((double)low, integer_end(shape.type, true));
		high = (int64_t)fmin((double)high, integer_end(shape.type, false));
	}
	value_facts k = {(double)low, (double)high, 0, true};
	if (depth_of(m) == 0 && chance(m, 85))
		return parameter(
			m, shape,
			(sw_fill){.kind = SW_FILL_INTEGERS, .a = (double)low, .b = (double)high + 1}, k);
	return literal(m, shape, low, high);
}

static sw_id fresh_real(maker *m, sw_shape shape)
{
	if (chance(m, 50)) {
		double low = chance(m, 30) ? 0.5 : -2;
		return parameter(m, shape, (sw_fill){.kind = SW_FILL_UNIFORM, .a = low, .b = 2},
		                 (value_facts){low, 2, 0, false});
	}
	return parameter(m, shape, (sw_fill){.kind = SW_FILL_NORMAL, .a = 0, .b = 0.4},
	                 (value_facts){-4, 4, 0, false});
}

static sw_id fresh_iota(maker *m, sw_shape shape)
{
	int64_t dim = below(m, shape.rank);
	sw_id id = sw_emit_iota(m->program, m->scope->computation, shape, dim);
	return add_to_pool(
		m, id,
		round_facts(shape.type, (value_facts){0, (double)shape.dims[dim] - 1, 0, true}));
}

static sw_id fresh_complex(maker *m, sw_shape shape)
{
	sw_shape part = shape;
	part.type = shape.type == SW_C64 ? SW_F32 : SW_F64;
	sw_id two[] = {fresh(m, part), fresh(m, part)};
	value_facts k = facts_either(*fact(m, two[0]), *fact(m, two[1]));
	return add_to_pool(m, write_simple_op(m, SW_OP_COMPLEX, two, 2, NULL, NULL), k);
}

sw_id fresh(maker *m, sw_shape shape)
{
	double most = fmin(largest_integer(shape.type), 4);
	if (is_kind(shape.type, KIND(COMPLEX)))
		return fresh_complex(m, shape);
	if (shape.type != SW_PRED && shape.rank > 0 && chance(m, 6))
		return fresh_iota(m, shape);
	if (chance(m, 5))
		return constant_like(m, shape, (double)between(m, 0, (int64_t)most));
	if (is_kind(shape.type, KIND(FLOAT)) && depth_of(m) == 0 && chance(m, 35))
		return fresh_real(m, shape);
	if (is_kind(shape.type, INTEGERS) && chance(m, 30))
		most = fmin(largest_integer(shape.type), 0x1p40);
	bool is_signed = !is_kind(shape.type, KIND(UNSIGNED) | KIND(PRED));
	return fresh_integers(m, shape, is_signed ? -(int64_t)most : 0, (int64_t)most);
}

static bool suits(maker *m, sw_id value, operand_need w)
{
	sw_shape shape = shape_of(m, value);
	value_facts k = *fact(m, value);
	return is_kind(shape.type, w.kinds) && shape.rank >= w.min_rank &&
	       shape.rank <= w.max_rank && ((!w.exact && !w.integral) || k.error == 0) &&
	       (!w.integral || k.integral);
}

/* Pick an operand of the op: half of the time among the last four values. */
sw_id pick(maker *m, operand_need w)
{
	int64_t n = (int64_t)m->scope->pool.len;
	for (int attempt = 0; n > 0 && attempt < 12; attempt++) {
		int64_t back = chance(m, 50) ? below(m, SW_MIN(n, 4)) : below(m, n);
		sw_id value = m->scope->pool.data[n - 1 - back];
		if (suits(m, value, w))
			return value;
	}
	sw_type type = random_type(m, w.kinds);
	sw_shape shape = random_shape(m, type, w.min_rank, SW_MIN(w.max_rank, 4));
	if (w.integral)
		return fresh_integers(m, shape, is_kind(type, KIND(SIGNED) | KIND(FLOAT)) ? -3 : 0,
		                      type == SW_PRED ? 1 : 3);
	return fresh(m, shape);
}

/* Is the value's shape a subset of the dimensions of `to`, in order? */
static bool as_broadcast(sw_shape from, sw_shape to, int64_t *dims)
{
	int32_t next = 0;
	for (int32_t d = 0; d < to.rank && next < from.rank; d++)
		if (to.dims[d] == from.dims[next])
			dims[next++] = d;
	return next == from.rank;
}

static bool same_dims(sw_shape a, sw_shape b)
{
	return a.rank == b.rank &&
	       (a.rank == 0 || !memcmp(a.dims, b.dims, sizeof(int64_t) * (size_t)a.rank));
}

sw_id pick_like(maker *m, sw_shape shape, bool exact)
{
	int64_t n = (int64_t)m->scope->pool.len, dims[SW_MAX_RANK];
	operand_need w = {.kinds = 1u << sw_type_kind_of(shape.type),
	                  .max_rank = SW_MAX_RANK,
	                  .exact = exact};
	for (int attempt = 0; n > 0 && attempt < 10; attempt++) {
		sw_id value = m->scope->pool.data[n - 1 - below(m, n)];
		sw_shape found = shape_of(m, value);
		if (!suits(m, value, w) || found.type != shape.type)
			continue;
		if (same_dims(found, shape))
			return value;
		if (attempt < 4)
			continue;
		if (elements(found) == elements(shape))
			return reshaped(m, value, shape.dims, shape.rank);
		if (as_broadcast(found, shape, dims))
			return broadcast_to(m, value, shape, dims);
	}
	return fresh(m, shape);
}

/* ---- computations ----------------------------------------------------------------------- */

void scope_open(maker *m, scope *s, const char *name)
{
	*s = (scope){.outer = m->scope, .computation = sw_build_computation(m->program, name)};
	m->scope = s;
}

sw_id scope_parameter(maker *m, const sw_shape *shapes, const value_facts *facts, uint32_t n,
                      bool tuple)
{
	sw_attrs attrs = {.parameter = {.number = (int64_t)m->program->computations
	                                                  .data[m->scope->computation]
	                                                  .parameters.len}};
	sw_op_spec spec = {.opcode = SW_OP_PARAMETER,
	                   .attrs = &attrs,
	                   .shapes = shapes,
	                   .n_results = n,
	                   .tuple = tuple};
	sw_id first = write_op(m, &spec);
	for (uint32_t i = 0; i < n; i++) {
		set_facts(m, first + i, facts[i]);
		sw_vec_push(&m->scope->pool, first + i);
	}
	return first;
}

int32_t scope_close(maker *m, scope *s, const sw_id *results, uint32_t n, bool tuple)
{
	sw_build_results(m->program, s->computation, results, n, tuple);
	sw_vec_clear(&s->pool);
	m->scope = s->outer;
	return s->computation;
}
