/*
 * exp, log and tanh of floats, without branches, so that loops over them are vectorised. The
 * relative error is at most 2 units in the last place over the whole range
 * (tests/interpret/test_math.c); subnormal results and arguments, infinities and NaN behave as in
 * <math.h>.
 *
 * Method: exp and tanh use range reduction and the polynomials of S. Moshier's Cephes library
 * (expf.c, tanhf.c); log uses the series in f / (2 + f) with the minimax coefficients of FreeBSD's
 * msun logf.
 */
#ifndef SW_INTERPRET_MATH32_H
#define SW_INTERPRET_MATH32_H

#include <math.h>

#include "interpret/types.h"

static inline float sw_exp_f32(float x)
{
	/* Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits. */
	const float magic = 12582912.0f;
	float c = x < -104.0f ? -104.0f : x;
	c = c > 89.0f ? 89.0f : c;
	float shifted = c * 1.44269504088896341f + magic;
	float n = shifted - magic;
	float r = (c - n * 0.693359375f) - n * -2.12194440e-4f;
	float p = 1.9875691500e-4f;
	p = p * r + 1.3981999507e-3f;
	p = p * r + 8.3334519073e-3f;
	p = p * r + 4.1665795894e-2f;
	p = p * r + 1.6666665459e-1f;
	p = p * r + 5.0000001201e-1f;
	p = p * (r * r) + r + 1.0f;
	/* Multiply by 2^n in two factors, so that neither leaves the normal range. n + 256 is
	 * positive. */
	uint32_t k = sw_bits_of_f32(shifted) - sw_bits_of_f32(magic) + 256u;
	uint32_t half = k >> 1;
	float low = sw_f32_of_bits((half - 128u + 127u) << 23);
	float high = sw_f32_of_bits((k - half - 128u + 127u) << 23);
	return p * low * high;
}

static inline float sw_log_f32(float x)
{
	uint32_t tiny = x < 1.17549435e-38f ? 1u : 0u;
	uint32_t u = sw_bits_of_f32(tiny ? x * 8388608.0f : x) + (0x3f800000u - 0x3f3504f3u);
	float k = (float)((int32_t)(u >> 23) - 127 - (tiny ? 23 : 0));
	float f = sw_f32_of_bits((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
	float s = f / (2.0f + f), z = s * s, w = z * z;
	float t1 = w * (0.40000972152f + w * 0.24279078841f);
	float t2 = z * (0.66666662693f + w * 0.28498786688f);
	float half_square = 0.5f * f * f;
	float r = s * (half_square + (t1 + t2)) + k * 9.0580006145e-6f - half_square + f +
	          k * 6.9313812256e-1f;
	r = x < INFINITY ? r : x;
	r = x == 0.0f ? -INFINITY : r;
	return x < 0.0f ? NAN : r;
}

static inline float sw_tanh_f32(float x)
{
	float a = fabsf(x), z = x * x;
	float p = -5.70498872745e-3f;
	p = p * z + 2.06390887954e-2f;
	p = p * z - 5.37397155531e-2f;
	p = p * z + 1.33314422036e-1f;
	p = p * z - 3.33332819422e-1f;
	p = p * z * x + x;
	float large = 1.0f - 2.0f / (sw_exp_f32(2.0f * a) + 1.0f);
	return copysignf(a < 0.625f ? p : large, x); /* keeps -0 */
}

#endif
