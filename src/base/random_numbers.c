/* Random numbers by position, and a sequence. Each level of the triple (seed, stream, index) is one
 * splitmix64 generator; its n-th output seeds the generator of the level below. */
#include "base/base.h"
#include "base/mix.h"

#include <math.h>

static uint64_t nth_output(uint64_t seed, uint64_t n)
{
	return mix64(seed + (n + 1) * GOLDEN_GAMMA);
}

/* Convert the upper 53 bits: a double's mantissa holds no more. */
static double to_unit(uint64_t bits)
{
	return (double)(bits >> 11) * 0x1p-53;
}

uint64_t sw_random_bits(uint64_t seed, uint64_t stream, uint64_t index)
{
	return nth_output(nth_output(nth_output(seed, 0), stream), index);
}

double sw_random_unit(uint64_t seed, uint64_t stream, uint64_t index)
{
	return to_unit(sw_random_bits(seed, stream, index));
}

/* Return a normal random number. Only one of the two numbers of a Box-Muller pair is used, so that
 * an index does not depend on its neighbour. 1 - u is in (0, 1], so the logarithm is finite. */
double sw_random_normal(uint64_t seed, uint64_t stream, uint64_t index)
{
	static const double two_pi = 6.283185307179586;
	uint64_t bits = sw_random_bits(seed, stream, index);
	double radius = sqrt(-2.0 * log(1.0 - to_unit(bits)));
	return radius * cos(two_pi * to_unit(nth_output(bits, 0)));
}

uint64_t sw_rng_bits(sw_rng *rng)
{
	return nth_output(rng->seed, rng->next++);
}

/* Numbers from the incomplete last multiple of the bound are drawn again, so that there is no
 * bias. */
int64_t sw_rng_below(sw_rng *rng, int64_t bound)
{
	uint64_t range = (uint64_t)bound, limit = UINT64_MAX - UINT64_MAX % range, bits;
	do
		bits = sw_rng_bits(rng);
	while (bits >= limit);
	return (int64_t)(bits % range);
}

double sw_rng_unit(sw_rng *rng)
{
	return to_unit(sw_rng_bits(rng));
}
