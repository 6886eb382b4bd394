/* Rules of elementwise ops: the element types that each takes and yields. */
#include "program/internal.h"

/* Kinds of element types, as bits of a set. */
enum {
	P = 1 << SW_KIND_PRED,
	S = 1 << SW_KIND_SIGNED,
	U = 1 << SW_KIND_UNSIGNED,
	F = 1 << SW_KIND_FLOAT,
	C = 1 << SW_KIND_COMPLEX,
	I = S | U,
	FC = F | C,
	NUMBER = I | F | C,
	ANY = P | NUMBER,
};

typedef enum yield { SAME, PRED, REAL_PART } yield;

typedef struct elementwise_row {
	unsigned kinds;
	yield result;
} elementwise_row;

static const elementwise_row rows[SW_OPCODE_COUNT] = {
	[SW_OP_ABS] = {NUMBER, REAL_PART},
	[SW_OP_ACOS] = {FC, SAME},
	[SW_OP_ACOSH] = {FC, SAME},
	[SW_OP_ASIN] = {FC, SAME},
	[SW_OP_ASINH] = {FC, SAME},
	[SW_OP_ATANH] = {FC, SAME},
	[SW_OP_CBRT] = {FC, SAME},
	[SW_OP_CEIL] = {F, SAME},
	[SW_OP_COSINE] = {FC, SAME},
	[SW_OP_COSH] = {FC, SAME},
	[SW_OP_COUNT_LEADING_ZEROS] = {I, SAME},
	[SW_OP_ERF] = {FC, SAME},
	[SW_OP_EXPONENTIAL] = {FC, SAME},
	[SW_OP_EXPONENTIAL_MINUS_ONE] = {FC, SAME},
	[SW_OP_FLOOR] = {F, SAME},
	[SW_OP_IMAG] = {FC, REAL_PART},
	[SW_OP_IS_FINITE] = {F, PRED},
	[SW_OP_LOG] = {FC, SAME},
	[SW_OP_LOG_PLUS_ONE] = {FC, SAME},
	[SW_OP_LOGISTIC] = {FC, SAME},
	[SW_OP_NEGATE] = {NUMBER, SAME},
	[SW_OP_NOT] = {P | I, SAME},
	[SW_OP_POPCNT] = {I, SAME},
	[SW_OP_REAL] = {FC, REAL_PART},
	[SW_OP_ROUND_NEAREST_AFZ] = {F, SAME},
	[SW_OP_ROUND_NEAREST_EVEN] = {F, SAME},
	[SW_OP_RSQRT] = {FC, SAME},
	[SW_OP_SIGN] = {NUMBER, SAME},
	[SW_OP_SINE] = {FC, SAME},
	[SW_OP_SINH] = {FC, SAME},
	[SW_OP_SQRT] = {FC, SAME},
	[SW_OP_TAN] = {FC, SAME},
	[SW_OP_TANH] = {FC, SAME},
	[SW_OP_ADD] = {ANY, SAME},
	[SW_OP_AND] = {P | I, SAME},
	[SW_OP_ATAN2] = {FC, SAME},
	[SW_OP_COMPARE] = {ANY, PRED},
	[SW_OP_DIVIDE] = {NUMBER, SAME},
	[SW_OP_MAXIMUM] = {ANY, SAME},
	[SW_OP_MINIMUM] = {ANY, SAME},
	[SW_OP_MULTIPLY] = {ANY, SAME},
	[SW_OP_OR] = {P | I, SAME},
	[SW_OP_POWER] = {NUMBER, SAME},
	[SW_OP_REMAINDER] = {I | F, SAME},
	[SW_OP_SHIFT_LEFT] = {I, SAME},
	[SW_OP_SHIFT_RIGHT_ARITHMETIC] = {I, SAME},
	[SW_OP_SHIFT_RIGHT_LOGICAL] = {I, SAME},
	[SW_OP_SUBTRACT] = {NUMBER, SAME},
	[SW_OP_XOR] = {P | I, SAME},
	[SW_OP_CONVERT] = {ANY, SAME},
	[SW_OP_REDUCE_PRECISION] = {F, SAME},
	[SW_OP_STOCHASTIC_CONVERT] = {F, SAME},
	[SW_OP_CLAMP] = {I | F, SAME},
};

static sw_status check_kind(const sw_inference *x)
{
	static const char *const words[] = {
		[P | I] = "pred or integer",  [I] = "integer",           [F] = "float",
		[I | F] = "integer or float", [FC] = "float or complex", [NUMBER] = "numeric",
	};
	unsigned kinds = rows[x->spec->opcode].kinds;
	sw_shape shape = sw_infer_operand(x, 0);
	if (kinds >> sw_type_kind_of(shape.type) & 1)
		return SW_OK;
	const char *word = kinds < SW_COUNT(words) && words[kinds] ? words[kinds] : "array";
	return sw_infer_fail(x, "expected %s operands, found %s", word, sw_infer_text(x, shape));
}

static sw_type real_part(sw_type type)
{
	return type == SW_C64 ? SW_F32 : type == SW_C128 ? SW_F64 : type;
}

static sw_status check_equal_operands(const sw_inference *x)
{
	sw_status status = check_kind(x);
	for (uint32_t i = 1; i < x->spec->n_operands && status == SW_OK; i++)
		status = sw_infer_same_shape(x, i, sw_infer_operand(x, 0));
	return status;
}

sw_status sw_infer_elementwise(sw_inference *x)
{
	sw_status status = check_equal_operands(x);
	if (status != SW_OK)
		return status;
	sw_shape result = sw_infer_operand(x, 0);
	if (rows[x->spec->opcode].result == PRED)
		result.type = SW_PRED;
	else if (rows[x->spec->opcode].result == REAL_PART)
		result.type = real_part(result.type);
	return sw_infer_one(x, result);
}

sw_status sw_infer_compare(sw_inference *x)
{
	if ((unsigned)x->attrs->compare.direction > SW_LT)
		return sw_infer_fail(x, "expected a direction, one of EQ, NE, GE, GT, LE, LT");
	bool ordered = x->attrs->compare.direction > SW_NE;
	if (ordered && sw_type_kind_of(sw_infer_operand(x, 0).type) == SW_KIND_COMPLEX)
		return sw_infer_fail(x,
		                     "complex numbers have no order: expected direction EQ or NE");
	return sw_infer_elementwise(x);
}

sw_status sw_infer_complex(sw_inference *x)
{
	sw_shape shape = sw_infer_operand(x, 0);
	if (shape.type != SW_F32 && shape.type != SW_F64)
		return sw_infer_fail(x, "expected f32 or f64 operands, found %s",
		                     sw_infer_text(x, shape));
	sw_status status = sw_infer_same_shape(x, 1, shape);
	shape.type = shape.type == SW_F32 ? SW_C64 : SW_C128;
	return status == SW_OK ? sw_infer_one(x, shape) : status;
}

/* Check a bound of a clamp, which may be a scalar. */
static sw_status check_bound(const sw_inference *x, uint32_t i)
{
	sw_shape value = sw_infer_operand(x, 1);
	if (sw_infer_operand(x, i).rank == 0)
		return sw_infer_scalar_like(x, i, value.type);
	return sw_infer_same_shape(x, i, value);
}

sw_status sw_infer_clamp(sw_inference *x)
{
	sw_status status = check_kind(x);
	if (status == SW_OK)
		status = check_bound(x, 0);
	if (status == SW_OK)
		status = check_bound(x, 2);
	return status == SW_OK ? sw_infer_one(x, sw_infer_operand(x, 1)) : status;
}

sw_status sw_infer_select(sw_inference *x)
{
	sw_shape predicate = sw_infer_operand(x, 0), value = sw_infer_operand(x, 1);
	if (predicate.type != SW_PRED)
		return sw_infer_fail(x, "operand 0: expected pred, found %s",
		                     sw_infer_text(x, predicate));
	if (predicate.rank != 0 && !sw_shape_same_dims(predicate, value))
		return sw_infer_fail(
			x, "operand 0: expected a scalar or the dimensions of %s, found %s",
			sw_infer_text(x, value), sw_infer_text(x, predicate));
	sw_status status = sw_infer_same_shape(x, 2, value);
	return status == SW_OK ? sw_infer_one(x, value) : status;
}

static sw_status check_declared_dims(sw_inference *x)
{
	const sw_shape *declared = sw_infer_declared(x, 0);
	if (!declared)
		return SW_OK;
	if (x->spec->n_results != 1)
		return sw_infer_fail(x, "expected one result, found %u", x->spec->n_results);
	sw_shape operand = sw_infer_operand(x, 0);
	if (!sw_shape_same_dims(*declared, operand))
		return sw_infer_fail(x, "expected a result with the dimensions of %s, found %s",
		                     sw_infer_text(x, operand), sw_infer_text(x, *declared));
	if (sw_type_kind_of(declared->type) == SW_KIND_TOKEN)
		return sw_infer_fail(x, "expected an array as result, found %s",
		                     sw_infer_text(x, *declared));
	return SW_OK;
}

sw_status sw_infer_convert(sw_inference *x)
{
	sw_status status = check_kind(x);
	return status == SW_OK ? check_declared_dims(x) : status;
}

sw_status sw_infer_stochastic_convert(sw_inference *x)
{
	sw_status status = check_kind(x);
	sw_shape value = sw_infer_operand(x, 0), random = sw_infer_operand(x, 1);
	if (status != SW_OK)
		return status;
	if (sw_type_kind_of(random.type) != SW_KIND_UNSIGNED ||
	    !sw_shape_same_dims(value, random) ||
	    sw_type_bits(value.type) != sw_type_bits(random.type))
		return sw_infer_fail(
			x, "operand 1: expected unsigned integers as wide as %s, found %s",
			sw_infer_text(x, value), sw_infer_text(x, random));
	return check_declared_dims(x);
}

sw_status sw_infer_reduce_precision(sw_inference *x)
{
	if (x->attrs->reduce_precision.exponent_bits < 1 ||
	    x->attrs->reduce_precision.mantissa_bits < 0)
		return sw_infer_fail(x, "expected exponent_bits >= 1 and mantissa_bits >= 0");
	return sw_infer_elementwise(x);
}

/* copy and domain: an array, or the leaves of a tuple, with unchanged shapes. */
sw_status sw_infer_copy(sw_inference *x)
{
	return sw_infer_pass_through(x);
}
