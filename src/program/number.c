/* Elements of every type as doubles and integers. */
#include "program/number.h"

#include <math.h>
#include <string.h>

#include "program/internal.h"

/* The meaning of the topmost codes of a float format. */
typedef enum top { IEEE, FN, FNUZ, FINITE, SCALE } top;

typedef struct float_format {
	int exponent_bits, mantissa_bits, bias;
	top top;
} float_format;

/* FN: no infinity, NaN is all ones. FNUZ: neither infinity nor -0, NaN is the code of -0. FINITE:
 * neither infinity nor NaN. SCALE: a power of two, no sign, NaN is all ones. Sources: OCP 8-bit and
 * microscaling formats, XLA. */
static const float_format formats[SW_TYPE_COUNT] = {
	[SW_F4E2M1FN] = {2, 1, 1, FINITE},     [SW_F8E5M2] = {5, 2, 15, IEEE},
	[SW_F8E4M3] = {4, 3, 7, IEEE},         [SW_F8E4M3FN] = {4, 3, 7, FN},
	[SW_F8E4M3B11FNUZ] = {4, 3, 11, FNUZ}, [SW_F8E3M4] = {3, 4, 3, IEEE},
	[SW_F8E5M2FNUZ] = {5, 2, 16, FNUZ},    [SW_F8E4M3FNUZ] = {4, 3, 8, FNUZ},
	[SW_F8E8M0FNU] = {8, 0, 127, SCALE},   [SW_F16] = {5, 10, 15, IEEE},
	[SW_BF16] = {8, 7, 127, IEEE},         [SW_F32] = {8, 23, 127, IEEE},
	[SW_F64] = {11, 52, 1023, IEEE},
};

/* ---- bits in memory --------------------------------------------------------------------- */

static uint64_t load(sw_type type, const void *data, int64_t index)
{
	size_t bytes = (size_t)sw_type_bytes(type);
	const char *at = (const char *)data + (size_t)index * bytes;
	uint64_t u64 = 0;
	uint32_t u32;
	uint16_t u16;
	switch (bytes) {
	case 1:
		return *(const uint8_t *)at;
	case 2:
		memcpy(&u16, at, sizeof(u16));
		return u16;
	case 4:
		memcpy(&u32, at, sizeof(u32));
		return u32;
	default:
		memcpy(&u64, at, sizeof(u64));
		return u64;
	}
}

static void store(sw_type type, void *data, int64_t index, uint64_t bits)
{
	size_t bytes = (size_t)sw_type_bytes(type);
	char *at = (char *)data + (size_t)index * bytes;
	uint32_t u32 = (uint32_t)bits;
	uint16_t u16 = (uint16_t)bits;
	switch (bytes) {
	case 1:
		*(uint8_t *)at = (uint8_t)bits;
		return;
	case 2:
		memcpy(at, &u16, sizeof(u16));
		return;
	case 4:
		memcpy(at, &u32, sizeof(u32));
		return;
	default:
		memcpy(at, &bits, sizeof(bits));
	}
}

/* ---- floats ----------------------------------------------------------------------------- */

uint64_t sw_float_bits(sw_type type, const void *data, int64_t index)
{
	return load(type, data, index);
}

int sw_float_mantissa_bits(sw_type type)
{
	return formats[type].mantissa_bits;
}

static bool is_special(const float_format *f, uint64_t magnitude, uint64_t sign)
{
	uint64_t all_ones = (UINT64_C(1) << (f->exponent_bits + f->mantissa_bits)) - 1;
	switch (f->top) {
	case IEEE:
		return magnitude >> f->mantissa_bits == (UINT64_C(1) << f->exponent_bits) - 1;
	case FN:
	case SCALE:
		return magnitude == all_ones;
	case FNUZ:
		return magnitude == 0 && sign;
	default:
		return false;
	}
}

static double decode(const float_format *f, uint64_t bits)
{
	int width = f->exponent_bits + f->mantissa_bits;
	uint64_t magnitude = bits & ((UINT64_C(1) << width) - 1);
	uint64_t sign = f->top == SCALE ? 0 : bits >> width & 1;
	uint64_t mantissa = magnitude & ((UINT64_C(1) << f->mantissa_bits) - 1);
	int exponent = (int)(magnitude >> f->mantissa_bits);
	if (is_special(f, magnitude, sign))
		return f->top == IEEE && mantissa == 0 ? (sign ? -INFINITY : INFINITY)
		                                       : (double)NAN;
	if (f->top == SCALE)
		return ldexp(1, exponent - f->bias);
	if (exponent > 0)
		mantissa |= UINT64_C(1) << f->mantissa_bits;
	double value = ldexp((double)mantissa, SW_MAX(exponent, 1) - f->bias - f->mantissa_bits);
	return sign ? -value : value;
}

static uint64_t nan_code(const float_format *f, uint64_t sign)
{
	int width = f->exponent_bits + f->mantissa_bits;
	uint64_t all_ones = (UINT64_C(1) << width) - 1;
	switch (f->top) {
	case IEEE:
		return sign | ((UINT64_C(1) << f->exponent_bits) - 1) << f->mantissa_bits |
		       UINT64_C(1) << (f->mantissa_bits - 1);
	case FNUZ:
		return UINT64_C(1) << width;
	default:
		return sign | all_ones;
	}
}

/* Return the code for a magnitude beyond the largest number. */
static uint64_t overflow_code(const float_format *f, uint64_t sign)
{
	if (f->top == IEEE)
		return sign | ((UINT64_C(1) << f->exponent_bits) - 1) << f->mantissa_bits;
	if (f->top == FINITE)
		return sign | ((UINT64_C(1) << (f->exponent_bits + f->mantissa_bits)) - 1);
	return nan_code(f, sign);
}

static uint64_t encode_scale(const float_format *f, double value)
{
	int exponent;
	if (!(value > 0) || isinf(value))
		return nan_code(f, 0);
	double fraction = frexp(value, &exponent); /* in [0.5, 1) */
	int code = exponent - 1 + f->bias + (fraction > 0.75);
	return code < 0 ? 0 : code > 254 ? nan_code(f, 0) : (uint64_t)code;
}

/* Round to the format's quantum at this magnitude. A carry into the next exponent gives the right
 * code, because codes of neighbouring numbers are neighbours. */
static uint64_t encode(const float_format *f, double value)
{
	int width = f->exponent_bits + f->mantissa_bits, exponent;
	uint64_t sign = signbit(value) ? UINT64_C(1) << width : 0;
	if (f->top == SCALE)
		return encode_scale(f, value);
	if (isnan(value))
		return f->top == FINITE ? 0 : nan_code(f, sign);
	if (isinf(value))
		return overflow_code(f, sign);
	frexp(value, &exponent);
	int biased = value == 0 ? 1 : SW_MAX(exponent - 1 + f->bias, 1);
	double steps = nearbyint(ldexp(fabs(value), f->bias - biased + f->mantissa_bits));
	if (biased > 1 << f->exponent_bits)
		return overflow_code(f, sign);
	uint64_t code = ((uint64_t)(biased - 1) << f->mantissa_bits) + (uint64_t)steps;
	if (code == 0 && f->top == FNUZ)
		return 0;
	if (code >> width || is_special(f, code, 0))
		return overflow_code(f, sign);
	return sign | code;
}

/* ---- integers --------------------------------------------------------------------------- */

void sw_integer_range(sw_type type, int64_t *low, int64_t *high)
{
	int bits = type == SW_PRED ? 1 : sw_type_bits(type);
	bool is_signed = sw_type_kind_of(type) == SW_KIND_SIGNED;
	int magnitude = is_signed ? bits - 1 : SW_MIN(bits, 63);
	*high = magnitude == 63 ? INT64_MAX : (INT64_C(1) << magnitude) - 1;
	*low = is_signed ? -*high - 1 : 0;
}

int64_t sw_integer_get(sw_type type, const void *data, int64_t index)
{
	uint64_t bits = load(type, data, index);
	if (sw_type_kind_of(type) != SW_KIND_SIGNED)
		return (int64_t)bits;
	int unused = 64 - 8 * (int)sw_type_bytes(type);
	return (int64_t)(bits << unused) >> unused;
}

void sw_integer_set(sw_type type, void *data, int64_t index, int64_t value)
{
	store(type, data, index, (uint64_t)value);
}

static int64_t cut_to_range(sw_type type, double value)
{
	int64_t low, high;
	sw_integer_range(type, &low, &high);
	if (isnan(value))
		return 0;
	if (value <= (double)low)
		return low;
	if (type == SW_U64 && value >= 0x1p63)
		return value >= 0x1p64 ? -1 : (int64_t)(uint64_t)value;
	return value >= (double)high ? high : (int64_t)value;
}

/* ---- any type --------------------------------------------------------------------------- */

double sw_number_get(sw_type type, const void *data, int64_t index)
{
	double complex_part;
	switch (sw_type_kind_of(type)) {
	case SW_KIND_FLOAT:
		return decode(&formats[type], load(type, data, index));
	case SW_KIND_COMPLEX:
		if (type == SW_C64)
			return sw_number_get(SW_F32, data, 2 * index);
		memcpy(&complex_part, (const double *)data + 2 * index, sizeof(complex_part));
		return complex_part;
	case SW_KIND_TOKEN:
		return 0;
	default:
		if (type == SW_U64)
			return (double)load(type, data, index);
		return (double)sw_integer_get(type, data, index);
	}
}

void sw_number_set(sw_type type, void *data, int64_t index, double value)
{
	sw_type part = type == SW_C64 ? SW_F32 : SW_F64;
	switch (sw_type_kind_of(type)) {
	case SW_KIND_FLOAT:
		store(type, data, index, encode(&formats[type], value));
		return;
	case SW_KIND_COMPLEX:
		sw_number_set(part, data, 2 * index, value);
		sw_number_set(part, data, 2 * index + 1, 0);
		return;
	case SW_KIND_PRED:
		store(type, data, index, value != 0);
		return;
	case SW_KIND_TOKEN:
		return;
	default:
		sw_integer_set(type, data, index, cut_to_range(type, value));
	}
}
