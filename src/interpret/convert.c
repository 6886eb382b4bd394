/*
 * convert, reduce-precision, bitcast-convert, and reading and writing single elements.
 *
 * Any type is converted to any other in two steps through the widest type of the source's kind
 * (double, int64_t, uint64_t), in blocks that stay in the cache. The pairs of types that are
 * frequent in training have loops of their own. An f64 is converted to bf16 or f16 by way of f32.
 */
#include "interpret/vector.h"

#include <complex.h>
#include <math.h>

#include "interpret/kernel.h"
#include "interpret/types.h"
#include "program/number.h"

enum { WIDE_REAL, WIDE_SIGNED, WIDE_UNSIGNED };
typedef struct converter {
	sw_unary_fn *widen;
	int kind;
	sw_unary_fn *narrow[3]; /* by kind */
} converter;

#define SW_TEMPLATE "interpret/convert_template.h"
#include "interpret/templates.h"

/* Rare types that are narrower than the smallest C type are converted element by element. Floats
 * are rounded once, from the widest type. An integer saturates if it comes from a float and wraps
 * if it comes from an integer. */
#define LOOP(name, A, R, statement)                                                                \
	static void name(int64_t n, const void *in, void *out)                                     \
	{                                                                                          \
		const A *a = in;                                                                   \
		R *r = out;                                                                        \
		for (int64_t i = 0; i < n; i++)                                                    \
			statement;                                                                 \
	}
#define NARROW_FLOAT(NAME, tag)                                                                    \
	LOOP(widen_##tag, uint8_t, double, r[i] = sw_number_get(SW_##NAME, a, i))                  \
	LOOP(narrow_real_##tag, double, uint8_t, sw_number_set(SW_##NAME, r, i, a[i]))             \
	LOOP(narrow_signed_##tag, int64_t, uint8_t, sw_number_set(SW_##NAME, r, i, (double)a[i]))  \
	LOOP(narrow_unsigned_##tag, uint64_t, uint8_t,                                             \
	     sw_number_set(SW_##NAME, r, i, (double)a[i]))                                         \
	NARROW_CONVERTER(tag, WIDE_REAL)
#define NARROW_INTEGER(NAME, tag, WIDEST, bits, KIND)                                              \
	LOOP(widen_##tag, uint8_t, WIDEST, r[i] = (WIDEST)sw_integer_get(SW_##NAME, a, i))         \
	LOOP(narrow_real_##tag, double, uint8_t, sw_number_set(SW_##NAME, r, i, a[i]))             \
	LOOP(narrow_signed_##tag, int64_t, uint8_t,                                                \
	     r[i] = (uint8_t)((WIDEST)((uint64_t)a[i] << (64 - bits)) >> (64 - bits)))             \
	LOOP(narrow_unsigned_##tag, uint64_t, uint8_t,                                             \
	     r[i] = (uint8_t)((WIDEST)(a[i] << (64 - bits)) >> (64 - bits)))                       \
	NARROW_CONVERTER(tag, KIND)
#define NARROW_CONVERTER(tag, KIND)                                                                \
	static const converter converter_##tag = {                                                 \
		widen_##tag,                                                                       \
		KIND,                                                                              \
		{narrow_real_##tag, narrow_signed_##tag, narrow_unsigned_##tag}};
NARROW_INTEGER(S1, s1, int64_t, 1, WIDE_SIGNED)
NARROW_INTEGER(S2, s2, int64_t, 2, WIDE_SIGNED)
NARROW_INTEGER(S4, s4, int64_t, 4, WIDE_SIGNED)
NARROW_INTEGER(U1, u1, uint64_t, 1, WIDE_UNSIGNED)
NARROW_INTEGER(U2, u2, uint64_t, 2, WIDE_UNSIGNED)
NARROW_INTEGER(U4, u4, uint64_t, 4, WIDE_UNSIGNED)
NARROW_FLOAT(F4E2M1FN, f4e2m1fn)
NARROW_FLOAT(F8E5M2, f8e5m2)
NARROW_FLOAT(F8E4M3, f8e4m3)
NARROW_FLOAT(F8E4M3FN, f8e4m3fn)
NARROW_FLOAT(F8E4M3B11FNUZ, f8e4m3b11fnuz)
NARROW_FLOAT(F8E3M4, f8e3m4)
NARROW_FLOAT(F8E5M2FNUZ, f8e5m2fnuz)
NARROW_FLOAT(F8E4M3FNUZ, f8e4m3fnuz)
NARROW_FLOAT(F8E8M0FNU, f8e8m0fnu)
#undef LOOP
#undef NARROW_FLOAT
#undef NARROW_INTEGER
#undef NARROW_CONVERTER

static const converter *const converters[SW_TYPE_COUNT] = {
#define X(name, tag) [SW_##name] = &converter_##tag,
	SW_REAL_TYPES(X) SW_NARROW_TYPES(X)
#undef X
};

#define DIRECT(name, S, D, expression)                                                             \
	SW_CLONES static void name(int64_t n, const void *in, void *out)                           \
	{                                                                                          \
		const S *a = in;                                                                   \
		D *r = out;                                                                        \
		for (int64_t i = 0; i < n; i++)                                                    \
			r[i] = expression;                                                         \
	}
DIRECT(bf16_to_f32, uint16_t, float, sw_f32_of_bf16(a[i]))
DIRECT(f32_to_bf16, float, uint16_t, sw_bf16_of_f32(a[i]))
DIRECT(f32_to_f64, float, double, a[i])
DIRECT(f64_to_f32, double, float, (float)a[i])
DIRECT(s32_to_f32, int32_t, float, (float)a[i])
DIRECT(pred_to_f32, uint8_t, float, (float)(a[i] != 0))
DIRECT(pred_to_s32, uint8_t, int32_t, a[i] != 0)
#undef DIRECT

static sw_unary_fn *find_direct(sw_type from, sw_type to)
{
	static const struct {
		sw_type from, to;
		sw_unary_fn *convert;
	} pairs[] = {
		{SW_BF16, SW_F32, bf16_to_f32}, {SW_F32, SW_BF16, f32_to_bf16},
		{SW_F32, SW_F64, f32_to_f64},   {SW_F64, SW_F32, f64_to_f32},
		{SW_S32, SW_F32, s32_to_f32},   {SW_PRED, SW_F32, pred_to_f32},
		{SW_PRED, SW_S32, pred_to_s32},
	};
	for (size_t i = 0; i < SW_COUNT(pairs); i++) {
		if (pairs[i].from == from && pairs[i].to == to)
			return pairs[i].convert;
	}
	return NULL;
}

static bool is_complex(sw_type type)
{
	return sw_type_kind_of(type) == SW_KIND_COMPLEX;
}

bool sw_can_convert(sw_type from, sw_type to)
{
	return (converters[from] || is_complex(from)) && (converters[to] || is_complex(to));
}

/* Convert from or to a complex type: the imaginary part is set to 0, or is dropped. */
static void convert_complex(sw_type from, const void *x, sw_type to, void *out, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		double part[2] = {0, 0};
		if (from == SW_C64) {
			part[0] = ((const float *)x)[2 * i];
			part[1] = ((const float *)x)[2 * i + 1];
		} else if (from == SW_C128) {
			part[0] = ((const double *)x)[2 * i];
			part[1] = ((const double *)x)[2 * i + 1];
		} else {
			part[0] = sw_element_get(from, x, i);
		}
		if (to == SW_C64) {
			((float *)out)[2 * i] = (float)part[0];
			((float *)out)[2 * i + 1] = (float)part[1];
		} else if (to == SW_C128) {
			((double *)out)[2 * i] = part[0];
			((double *)out)[2 * i + 1] = part[1];
		} else {
			sw_element_set(to, out, i, part[0]);
		}
	}
}

void sw_convert_elements(sw_type from, const void *x, sw_type to, void *out, int64_t n)
{
	enum { BLOCK = 512 };
	int64_t block[BLOCK]; /* or double, or uint64_t */
	sw_unary_fn *direct = find_direct(from, to);
	if (from == to) {
		memcpy(out, x, (size_t)(n * sw_type_bytes(from)));
	} else if (direct) {
		direct(n, x, out);
	} else if (is_complex(from) || is_complex(to)) {
		convert_complex(from, x, to, out, n);
	} else {
		const converter *source = converters[from], *target = converters[to];
		for (int64_t i = 0; i < n; i += BLOCK) {
			int64_t count = SW_MIN(n - i, (int64_t)BLOCK);
			source->widen(count, (const char *)x + i * sw_type_bytes(from), block);
			target->narrow[source->kind](count, block,
			                             (char *)out + i * sw_type_bytes(to));
		}
	}
}

bool sw_prepare_convert(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	(void)plan;
	return sw_can_convert(sw_value_shape(program, op->operands[0]).type,
	                      sw_value_shape(program, op->first_result).type);
}

sw_status sw_kernel_convert(sw_call *call, sw_error *err)
{
	sw_type from = call->in[0].shape.type, to = call->shapes[0].type;
	if (from == to) {
		sw_result_forward(call, 0, 0);
		return SW_OK;
	}
	int64_t n = sw_stride_of(call->in[0]) ? sw_shape_elements(call->shapes[0]) : 1;
	sw_status status = sw_result_in_place(call, 0, n, err);
	if (status == SW_OK)
		sw_convert_elements(from, sw_tensor_data(call->in[0]), to,
		                    sw_tensor_data(call->out[0]), n);
	return status;
}

sw_status sw_convert_tensor(sw_interpreter *interpreter, sw_tensor x, sw_type to, sw_tensor *out,
                            sw_error *err)
{
	sw_shape shape = x.shape;
	shape.type = to;
	if (to == x.shape.type) {
		*out = sw_tensor_keep(x);
		return SW_OK;
	}
	sw_status status = sw_scratch_new(interpreter, shape, out, err);
	if (status == SW_OK)
		sw_convert_elements(x.shape.type, sw_tensor_data(x), to, sw_tensor_data(*out),
		                    sw_shape_elements(shape));
	return status;
}

double sw_element_get(sw_type type, const void *data, int64_t e)
{
	double real = 0;
	const char *x = (const char *)data + e * sw_type_bytes(type);
	if (type == SW_C64)
		sw_convert_elements(SW_F32, x, SW_F64, &real, 1);
	else if (type == SW_C128)
		memcpy(&real, x, sizeof real);
	else if (converters[type])
		sw_convert_elements(type, x, SW_F64, &real, 1);
	return real;
}

void sw_element_set(sw_type type, void *data, int64_t e, double value)
{
	char *x = (char *)data + e * sw_type_bytes(type);
	if (is_complex(type))
		convert_complex(SW_F64, &value, type, x, 1);
	else if (converters[type])
		sw_convert_elements(SW_F64, &value, type, x, 1);
}

int64_t sw_index_at(sw_type type, const void *data, int64_t e)
{
	if (type == SW_S32)
		return ((const int32_t *)data)[e];
	if (type == SW_S64)
		return ((const int64_t *)data)[e];
	uint64_t wide = 0;
	const converter *c = converters[type];
	c->widen(1, (const char *)data + e * sw_type_bytes(type), &wide);
	return c->kind == WIDE_UNSIGNED && wide > INT64_MAX ? INT64_MAX : (int64_t)wide;
}

static bool is_packed(sw_type type)
{
	return sw_type_bits(type) < 8;
}

/* Treat the elements as a sequence of bits, the lowest first, and divide it into elements of the
 * other type. XLA packs two f4 or s4 elements into a byte; here each has a byte of its own. */
static void cut_bits(sw_type from, const uint8_t *x, sw_type to, uint8_t *out, int64_t n)
{
	int64_t from_bits = sw_type_bits(from), to_bits = sw_type_bits(to);
	int64_t from_bytes = sw_type_bytes(from), to_bytes = sw_type_bytes(to);
	memset(out, 0, (size_t)(n * to_bytes));
	for (int64_t k = 0; k < n * to_bits; k++) {
		int64_t i = k % from_bits, o = k % to_bits;
		int bit = x[k / from_bits * from_bytes + i / 8] >> (i % 8) & 1;
		out[k / to_bits * to_bytes + o / 8] |= (uint8_t)(bit << (o % 8));
	}
	for (int64_t e = 0; sw_type_kind_of(to) == SW_KIND_SIGNED && is_packed(to) && e < n; e++)
		out[e] = (uint8_t)((int8_t)(out[e] << (8 - to_bits)) >> (8 - to_bits));
}

bool sw_prepare_bitcast_convert(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	(void)plan;
	sw_type from = sw_value_shape(program, op->operands[0]).type;
	sw_type to = sw_value_shape(program, op->first_result).type;
	bool whole = (converters[from] || is_complex(from)) && (converters[to] || is_complex(to));
	return whole && (from == to || (from != SW_PRED && to != SW_PRED));
}

/* The bytes stay where they are, whatever their number: a narrower result type adds a last
 * dimension. */
sw_status sw_kernel_bitcast_convert(sw_call *call, sw_error *err)
{
	sw_type from = call->in[0].shape.type, to = call->shapes[0].type;
	if (from == to || (!is_packed(from) && !is_packed(to))) {
		sw_result_forward(call, 0, 0);
		return SW_OK;
	}
	sw_status status = sw_result_new(call, 0, err);
	if (status == SW_OK)
		cut_bits(from, sw_tensor_data(call->in[0]), to, sw_tensor_data(call->out[0]),
		         sw_shape_elements(call->shapes[0]));
	return status;
}

/* Round the mantissa to nearest even, then limit the exponent: a number that is too large becomes
 * infinity, one that is too small zero. `mantissa` and `exponent` are the numbers of bits of the
 * type, m and e the numbers of bits to keep. */
static uint64_t reduce_bits(uint64_t u, int mantissa, int exponent, int64_t m, int64_t e)
{
	uint64_t sign_bit = (uint64_t)1 << (mantissa + exponent), sign = u & sign_bit;
	uint64_t x = u & (sign_bit - 1), infinity = (((uint64_t)1 << exponent) - 1) << mantissa;
	if (x > infinity)
		return m > 0 ? u : infinity | sign;
	if (m < mantissa) {
		int drop = (int)(mantissa - m);
		uint64_t last = (uint64_t)1 << drop;
		x = (x + (last >> 1) - 1 + ((x & last) ? 1 : 0)) & ~(last - 1);
	}
	if (e < exponent) {
		uint64_t bias = ((uint64_t)1 << (exponent - 1)) - 1,
			 reduced = ((uint64_t)1 << (e - 1)) - 1;
		uint64_t field = x >> mantissa;
		if (field > bias + reduced)
			x = infinity;
		else if (field <= bias - reduced)
			x = 0;
	}
	return x | sign;
}

bool sw_prepare_reduce_precision(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	(void)plan;
	const sw_attrs *attrs = op->attrs;
	sw_type type = sw_operand_type(program, op, 0);
	return sw_type_kind_of(type) == SW_KIND_FLOAT &&
	       attrs->reduce_precision.exponent_bits >= 1 &&
	       attrs->reduce_precision.mantissa_bits >= 0;
}

sw_status sw_kernel_reduce_precision(sw_call *call, sw_error *err)
{
	int64_t n = sw_stride_of(call->in[0]) ? sw_shape_elements(call->shapes[0]) : 1;
	sw_status status = sw_result_in_place(call, 0, n, err);
	if (status != SW_OK)
		return status;
	sw_type type = call->shapes[0].type;
	size_t bytes = (size_t)sw_type_bytes(type);
	int mantissa = type == SW_F64 ? 52 : type == SW_F32 ? 23 : type == SW_F16 ? 10 : 7;
	int exponent = (int)bytes * 8 - 1 - mantissa;
	const char *x = sw_tensor_data(call->in[0]);
	char *r = sw_tensor_data(call->out[0]);
	/* The bits are in little-endian order, as in all of this file. */
	for (int64_t i = 0; i < n; i++) {
		uint64_t u = 0;
		memcpy(&u, x + (size_t)i * bytes, bytes);
		u = reduce_bits(u, mantissa, exponent,
		                call->op->attrs->reduce_precision.mantissa_bits,
		                call->op->attrs->reduce_precision.exponent_bits);
		memcpy(r + (size_t)i * bytes, &u, bytes);
	}
	return SW_OK;
}
