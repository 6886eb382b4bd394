/*
 * caching_allocator: PyTorch's allocator of device memory, as it is documented in
 * c10/cuda/CUDACachingAllocator.cpp (its constants are those below).
 *
 * It gets SEGMENTS of the device, and cuts BLOCKS of them: the smallest free one that is large
 * enough, whose rest stays a block. A block that is freed joins its free neighbours, and is kept. If
 * the device has no segment more, it gives back those that are free as a whole, and tries again.
 */
#ifndef SW_BENCH_CACHING_ALLOCATOR_H
#define SW_BENCH_CACHING_ALLOCATOR_H

#include "base/base.h"

typedef struct cached_block {
	int64_t bytes;         /* 0: it has become part of another */
	int32_t before, after; /* of its segment; -1: it is the first, the last */
	bool used, small;
} cached_block;
typedef struct caching_allocator {
	SW_VEC(cached_block) blocks;
	SW_VEC(int32_t) gone; /* numbers of those that have become part of others */
	int64_t capacity_bytes; /* of the device */
	/* of all segments: now, and at most; the latter is what PyTorch prints */
	int64_t reserved_bytes, peak_bytes;
	bool exhausted; /* some block did not fit */
} caching_allocator;

/* Is there a block of so many bytes without giving segments back? O(blocks). */
bool cached_has_room(const caching_allocator *a, int64_t bytes);
/* Return the number of a block of so many bytes. O(blocks). */
int32_t cached_new(caching_allocator *a, int64_t bytes);
void cached_free(caching_allocator *a, int32_t block);
void caching_allocator_clear(caching_allocator *a);

#endif
