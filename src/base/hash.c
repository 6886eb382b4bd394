/* Hashes: XXH3 for bytes, splitmix64's finaliser for pairs of numbers. */
#include "base/base.h"
#include "base/mix.h"

#include <xxhash.h>

uint64_t sw_hash_bytes(const void *data, size_t bytes, uint64_t seed)
{
	return XXH3_64bits_withSeed(data, bytes, seed);
}

uint64_t sw_hash_u64(uint64_t a, uint64_t b)
{
	return mix64(mix64(a + GOLDEN_GAMMA) + b);
}
