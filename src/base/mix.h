/* Private to base: splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
 * OOPSLA 2014), its increment and its finaliser (Stafford's variant 13). */
#ifndef SW_BASE_MIX_H
#define SW_BASE_MIX_H

#include <stdint.h>

#define GOLDEN_GAMMA UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t mix64(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

#endif
