/*
 * The element types that kernels compute with, and their rounding.
 *
 * A type is stored as one C type and computed with another: bf16 and f16 are stored as their bits
 * and computed in float.
 */
#ifndef SW_INTERPRET_TYPES_H
#define SW_INTERPRET_TYPES_H

#include <stdint.h>
#include <string.h>

/* clang-format off */
/* X(NAME, tag): the real types, in the order of templates.h. */
#define SW_REAL_TYPES(X)        \
	X(PRED, pred)           \
	X(S8, s8)               \
	X(S16, s16)             \
	X(S32, s32)             \
	X(S64, s64)             \
	X(U8, u8)               \
	X(U16, u16)             \
	X(U32, u32)             \
	X(U64, u64)             \
	X(F16, f16)             \
	X(BF16, bf16)           \
	X(F32, f32)             \
	X(F64, f64)

/* Narrow types, which are computed in wider ones; an element is stored in one byte. */
#define SW_NARROW_TYPES(X)              \
	X(S1, s1)                       \
	X(S2, s2)                       \
	X(S4, s4)                       \
	X(U1, u1)                       \
	X(U2, u2)                       \
	X(U4, u4)                       \
	X(F4E2M1FN, f4e2m1fn)           \
	X(F8E5M2, f8e5m2)               \
	X(F8E4M3, f8e4m3)               \
	X(F8E4M3FN, f8e4m3fn)           \
	X(F8E4M3B11FNUZ, f8e4m3b11fnuz) \
	X(F8E3M4, f8e3m4)               \
	X(F8E5M2FNUZ, f8e5m2fnuz)       \
	X(F8E4M3FNUZ, f8e4m3fnuz)       \
	X(F8E8M0FNU, f8e8m0fnu)
/* clang-format on */

static inline uint32_t sw_bits_of_f32(float x)
{
	uint32_t u;
	memcpy(&u, &x, sizeof u);
	return u;
}

static inline float sw_f32_of_bits(uint32_t u)
{
	float x;
	memcpy(&x, &u, sizeof x);
	return x;
}

static inline uint64_t sw_bits_of_f64(double x)
{
	uint64_t u;
	memcpy(&u, &x, sizeof u);
	return u;
}

static inline double sw_f64_of_bits(uint64_t u)
{
	double x;
	memcpy(&x, &u, sizeof x);
	return x;
}

static inline float sw_f32_of_bf16(uint16_t h)
{
	return sw_f32_of_bits((uint32_t)h << 16);
}

/* Round to nearest, ties to even; NaN stays NaN. */
static inline uint16_t sw_bf16_of_f32(float x)
{
	uint32_t u = sw_bits_of_f32(x);
	uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
	return (uint16_t)(x != x ? (u >> 16) | 0x40u : rounded);
}

static inline float sw_f32_of_f16(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000u) << 16, magnitude = h & 0x7fffu;
	/* The multiplication makes subnormals normal; exponent 31 is moved up to 255. */
	float scaled = sw_f32_of_bits(magnitude << 13) * 0x1p112f;
	uint32_t special = sw_bits_of_f32(scaled) | 0x7f800000u;
	uint32_t bits = magnitude >= 0x7c00u ? special : sw_bits_of_f32(scaled);
	return sw_f32_of_bits(bits | sign);
}

static inline uint16_t sw_f16_of_f32(float x)
{
	uint32_t u = sw_bits_of_f32(x), sign = (u >> 16) & 0x8000u, m = u & 0x7fffffffu;
	/* Subnormal results: adding 0.5 aligns the mantissa with f16's last place and rounds it. */
	uint32_t subnormal = sw_bits_of_f32(sw_f32_of_bits(m) + 0.5f) - 0x3f000000u;
	uint32_t normal = (m - 0x38000000u + 0xfffu + ((m >> 13) & 1u)) >> 13;
	uint32_t finite = m < 0x38800000u ? subnormal : normal;
	uint32_t large = m > 0x7f800000u ? 0x7e00u : 0x7c00u;
	return (uint16_t)(sign | (m >= 0x477ff000u ? large : finite));
}

#endif
