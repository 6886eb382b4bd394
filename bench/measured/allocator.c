/* What PyTorch's caching allocator reserves beyond what is live: frameworks print what is reserved.
 * It keeps the blocks that it got, and cuts a free one for what is smaller, but joins none. */
#include "measured.h"

#include <stdlib.h>

/* Optimizer states that the first step makes behind its backward pass, in what activations have
 * left: two moments in f32 for each weight of two bytes. */
#define MOMENTS_PER_WEIGHT_BYTE 4

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return x > y ? -1 : x < y;
}

/* Return how many of n equal chunks fit in free blocks. */
static int64_t chunks_in(const int64_t *blocks, size_t n_blocks, int64_t chunk, int64_t n)
{
	int64_t fit = 0;
	for (size_t i = 0; i < n_blocks && fit < n && blocks[i] >= chunk; i++)
		fit += blocks[i] / chunk;
	return SW_MIN(fit, n);
}

int64_t gathered_weights_bytes(const configuration *c, int64_t weight_bytes,
                               const sw_program *program, int64_t times)
{
	sw_arena_peak peak = {0};
	SW_VEC(int64_t) blocks = {0};
	if (!c->gathers_flat || weight_bytes == 0)
		return 0;
	sw_placement_peak(program, &peak);
	for (size_t i = 0; i < peak.residents.len; i++)
		for (int64_t k = 0; k < times && peak.residents.data[i].kind == SW_RESIDENT_VALUE;
		     k++)
			sw_vec_push(&blocks, peak.residents.data[i].bytes);
	sw_arena_peak_clear(&peak);
	if (blocks.len > 0)
		qsort(blocks.data, blocks.len, sizeof(int64_t), by_size);
	int64_t chunk = weight_bytes / c->dp,
		chunks = c->dp - chunks_in(blocks.data, blocks.len, chunk, c->dp);
	bool flat = blocks.len == 0 || blocks.data[0] < weight_bytes;
	sw_vec_clear(&blocks);
	return SW_MAX((flat ? weight_bytes : 0) + chunks * chunk - MOMENTS_PER_WEIGHT_BYTE * chunk,
	              0);
}
