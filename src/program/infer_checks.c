/*
 * Helpers of the inference rules: messages, operands and results, and the checks that many rules
 * need.
 */
#include "program/attributes.h"
#include "program/internal.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- messages --------------------------------------------------------------------------- */

static const char *spec_opcode_name(const sw_inference *x)
{
	bool unknown = x->spec->opcode == SW_OP_UNKNOWN && x->attrs->unknown.spelling;
	return unknown ? x->attrs->unknown.spelling : sw_opcode_name(x->spec->opcode);
}

sw_status sw_infer_fail(const sw_inference *x, const char *format, ...)
{
	char message[400];
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	const char *name = x->spec->name;
	return sw_fail_at(x->err, SW_ERR_INPUT, x->program->source, x->spec->line, 0,
	                  "%s%s%.100s%s: %s", spec_opcode_name(x), name ? " '" : "",
	                  name ? name : "", name ? "'" : "", message);
}

const char *sw_infer_text(const sw_inference *x, sw_shape shape)
{
	sw_text text = {0};
	sw_shape_print(shape, &text);
	const char *copy = sw_arena_text(x->arena, text.data);
	sw_text_clear(&text);
	return copy;
}

/* ---- operands and results --------------------------------------------------------------- */

sw_shape sw_infer_operand(const sw_inference *x, uint32_t i)
{
	return sw_value_shape(x->program, x->spec->operands[i]);
}

const sw_shape *sw_infer_declared(const sw_inference *x, uint32_t i)
{
	return x->spec->shapes && i < x->spec->n_results ? &x->spec->shapes[i] : NULL;
}

sw_shape *sw_infer_results(sw_inference *x, uint32_t n)
{
	x->n_out = n;
	x->out = SW_NEW_N(x->arena, sw_shape, SW_MAX(n, 1));
	return x->out;
}

sw_status sw_infer_one(sw_inference *x, sw_shape shape)
{
	*sw_infer_results(x, 1) = shape;
	return SW_OK;
}

int64_t *sw_infer_dims(const sw_inference *x, int32_t rank)
{
	return rank > 0 ? SW_NEW_N(x->arena, int64_t, rank) : NULL;
}

sw_type sw_infer_result_type(const sw_inference *x)
{
	const sw_shape *declared = sw_infer_declared(x, 0);
	return declared ? declared->type : sw_infer_operand(x, 0).type;
}

/* ---- checks that many rules need -------------------------------------------------------- */

sw_status sw_infer_dim(const sw_inference *x, const char *what, int64_t dimension, int64_t rank)
{
	if (dimension < 0 || dimension >= rank)
		return sw_infer_fail(x, "%s: expected a dimension in [0, %lld), found %lld", what,
		                     (long long)rank, (long long)dimension);
	return SW_OK;
}

sw_status sw_infer_dim_list(const sw_inference *x, const char *what, sw_ints list, int64_t rank)
{
	if (list.n > rank)
		return sw_infer_fail(x, "%s: expected at most %lld dimensions, found %d", what,
		                     (long long)rank, list.n);
	uint64_t seen = 0;
	for (int32_t i = 0; i < list.n; i++) {
		sw_status status = sw_infer_dim(x, what, list.v[i], rank);
		if (status != SW_OK)
			return status;
		if (seen >> list.v[i] & 1)
			return sw_infer_fail(x, "%s: dimension %lld stands twice", what,
			                     (long long)list.v[i]);
		seen |= UINT64_C(1) << list.v[i];
	}
	return SW_OK;
}

sw_status sw_infer_count(const sw_inference *x, bool enough, const char *expected)
{
	if (enough)
		return SW_OK;
	return sw_infer_fail(x, "expected %s, found %u operand%s", expected, x->spec->n_operands,
	                     x->spec->n_operands == 1 ? "" : "s");
}

sw_status sw_infer_same_shape(const sw_inference *x, uint32_t i, sw_shape expected)
{
	sw_shape found = sw_infer_operand(x, i);
	if (sw_shape_same(found, expected))
		return SW_OK;
	return sw_infer_fail(x, "operand %u: expected %s, found %s", i, sw_infer_text(x, expected),
	                     sw_infer_text(x, found));
}

sw_status sw_infer_integer_scalar(const sw_inference *x, uint32_t i)
{
	sw_shape shape = sw_infer_operand(x, i);
	sw_type_kind kind = sw_type_kind_of(shape.type);
	if (shape.rank == 0 && (kind == SW_KIND_SIGNED || kind == SW_KIND_UNSIGNED))
		return SW_OK;
	return sw_infer_fail(x, "operand %u: expected an integer scalar, found %s", i,
	                     sw_infer_text(x, shape));
}

sw_status sw_infer_scalar_like(const sw_inference *x, uint32_t i, sw_type type)
{
	return sw_infer_same_shape(x, i, (sw_shape){.type = type});
}

static bool dilate(int64_t size, int64_t factor, int64_t *dilated)
{
	*dilated = 0;
	if (size == 0)
		return true;
	if (!sw_mul_i64(size - 1, factor, dilated) || *dilated == INT64_MAX)
		return false;
	*dilated += 1;
	return true;
}

sw_status sw_infer_window_dim(const sw_inference *x, const sw_window_dim *w, int64_t size,
                              int64_t *out)
{
	if (w->size < 1 || w->stride < 1 || w->lhs_dilate < 1 || w->rhs_dilate < 1)
		return sw_infer_fail(x,
		                     "window: expected sizes, strides and dilations of at least 1");
	int64_t base, window, padded;
	if (!dilate(size, w->lhs_dilate, &base) || !dilate(w->size, w->rhs_dilate, &window) ||
	    __builtin_add_overflow(base, w->pad_low, &padded) ||
	    __builtin_add_overflow(padded, w->pad_high, &padded))
		return sw_infer_fail(x, "window: sizes overflow");
	*out = padded < window ? 0 : (padded - window) / w->stride + 1;
	return SW_OK;
}

/* ---- called computations ---------------------------------------------------------------- */

const sw_computation *sw_infer_callee(const sw_inference *x, uint32_t k)
{
	return &x->program->computations.data[x->spec->called[k]];
}

static sw_status callee_differs(const sw_inference *x, uint32_t k, const char *side, uint32_t i,
                                sw_shape expected, sw_shape found)
{
	return sw_infer_fail(x, "computation '%s': expected %s %u to be %s, found %s",
	                     sw_infer_callee(x, k)->name, side, i, sw_infer_text(x, expected),
	                     sw_infer_text(x, found));
}

sw_status sw_infer_callee_takes(const sw_inference *x, uint32_t k, const sw_shape *shapes,
                                uint32_t n)
{
	const sw_computation *callee = sw_infer_callee(x, k);
	uint32_t leaf = 0;
	for (size_t p = 0; p < callee->parameters.len; p++) {
		if (callee->parameters.data[p] == SW_NO_ID)
			return sw_infer_fail(x, "computation '%s' has no parameter(%zu)",
			                     callee->name, p);
		const sw_op *op = sw_op_at(x->program, callee->parameters.data[p]);
		for (uint32_t r = 0; r < op->n_results; r++, leaf++) {
			sw_shape found = sw_value_shape(x->program, op->first_result + r);
			if (leaf < n && !sw_shape_same(found, shapes[leaf]))
				return callee_differs(x, k, "parameter", leaf, shapes[leaf], found);
		}
	}
	if (leaf != n)
		return sw_infer_fail(x, "computation '%s': expected %u parameters, found %u",
		                     callee->name, n, leaf);
	return SW_OK;
}

sw_status sw_infer_callee_gives(const sw_inference *x, uint32_t k, const sw_shape *shapes,
                                uint32_t n)
{
	const sw_computation *callee = sw_infer_callee(x, k);
	if (callee->results.len != n)
		return sw_infer_fail(x, "computation '%s': expected %u results, found %zu",
		                     callee->name, n, callee->results.len);
	for (uint32_t i = 0; i < n; i++) {
		sw_shape found = sw_value_shape(x->program, callee->results.data[i]);
		if (!sw_shape_same(found, shapes[i]))
			return callee_differs(x, k, "result", i, shapes[i], found);
	}
	return SW_OK;
}

sw_status sw_infer_reducer(const sw_inference *x, uint32_t k, const sw_type *types, uint32_t n)
{
	sw_shape *scalars = SW_NEW_N(x->arena, sw_shape, 2 * (size_t)n + 1);
	for (uint32_t i = 0; i < n; i++)
		scalars[i].type = scalars[n + i].type = types[i];
	sw_status status = sw_infer_callee_takes(x, k, scalars, 2 * n);
	return status == SW_OK ? sw_infer_callee_gives(x, k, scalars, n) : status;
}
