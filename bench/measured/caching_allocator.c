#include "caching_allocator.h"

#include <stdlib.h>

#define MIB (INT64_C(1) << 20)
#define ROUNDING 512                  /* bytes of a block are a multiple */
#define SMALL_BYTES MIB               /* blocks up to this are cut of segments of their own */
#define SMALL_SEGMENT_BYTES (2 * MIB)
#define MEDIUM_BYTES (10 * MIB)       /* below, a segment holds several */
#define MEDIUM_SEGMENT_BYTES (20 * MIB)
#define SEGMENT_ROUNDING (2 * MIB)

static int64_t round_up(int64_t bytes, int64_t multiple)
{
	return (bytes + multiple - 1) / multiple * multiple;
}

static int64_t segment_bytes(int64_t bytes)
{
	if (bytes <= SMALL_BYTES)
		return SMALL_SEGMENT_BYTES;
	return bytes < MEDIUM_BYTES ? MEDIUM_SEGMENT_BYTES : round_up(bytes, SEGMENT_ROUNDING);
}

static int32_t add(caching_allocator *a, cached_block block)
{
	if (a->gone.len > 0) {
		int32_t number = a->gone.data[--a->gone.len];
		a->blocks.data[number] = block;
		return number;
	}
	sw_vec_push(&a->blocks, block);
	return (int32_t)a->blocks.len - 1;
}

/* Return the smallest free block that is large enough; -1: there is none. */
static int32_t best_fit(const caching_allocator *a, int64_t bytes, bool small)
{
	int32_t best = -1;
	for (size_t i = 0; i < a->blocks.len; i++) {
		const cached_block *b = &a->blocks.data[i];
		if (!b->used && b->small == small && b->bytes >= bytes &&
		    (best < 0 || b->bytes < a->blocks.data[best].bytes))
			best = (int32_t)i;
	}
	return best;
}

static void take_away(caching_allocator *a, int32_t block)
{
	a->blocks.data[block] = (cached_block){.before = -1, .after = -1};
	sw_vec_push(&a->gone, block);
}

/* Give back segments that are free as a whole. */
static void release(caching_allocator *a)
{
	for (size_t i = 0; i < a->blocks.len; i++) {
		const cached_block *b = &a->blocks.data[i];
		if (b->used || b->before >= 0 || b->after >= 0 || b->bytes == 0)
			continue;
		a->reserved_bytes -= b->bytes;
		take_away(a, (int32_t)i);
	}
}

static int32_t new_segment(caching_allocator *a, int64_t bytes, bool small)
{
	int64_t size = segment_bytes(bytes);
	if (a->reserved_bytes + size > a->capacity_bytes)
		release(a);
	a->exhausted |= a->reserved_bytes + size > a->capacity_bytes;
	a->reserved_bytes += size;
	a->peak_bytes = SW_MAX(a->peak_bytes, a->reserved_bytes);
	return add(a, (cached_block){.bytes = size, .before = -1, .after = -1, .small = small});
}

/* Cut what is beyond `bytes` off a block, if that is worth it. */
static void cut(caching_allocator *a, int32_t block, int64_t bytes)
{
	cached_block b = a->blocks.data[block];
	int64_t rest = b.bytes - bytes;
	if (rest < (b.small ? ROUNDING : SMALL_BYTES + 1))
		return;
	int32_t other = add(a, (cached_block){rest, block, b.after, false, b.small});
	a->blocks.data[block].bytes = bytes;
	a->blocks.data[block].after = other;
	if (b.after >= 0)
		a->blocks.data[b.after].before = other;
}

bool cached_has_room(const caching_allocator *a, int64_t bytes)
{
	bytes = round_up(SW_MAX(bytes, 1), ROUNDING);
	bool small = bytes <= SMALL_BYTES;
	return a->reserved_bytes + segment_bytes(bytes) <= a->capacity_bytes ||
	       best_fit(a, bytes, small) >= 0;
}

int32_t cached_new(caching_allocator *a, int64_t bytes)
{
	bytes = round_up(SW_MAX(bytes, 1), ROUNDING);
	bool small = bytes <= SMALL_BYTES;
	int32_t block = best_fit(a, bytes, small);
	if (block < 0)
		block = new_segment(a, bytes, small);
	cut(a, block, bytes);
	a->blocks.data[block].used = true;
	return block;
}

/* Make a free block part of the free one before it. */
static void join(caching_allocator *a, int32_t before, int32_t after)
{
	cached_block *x = &a->blocks.data[before], *y = &a->blocks.data[after];
	x->bytes += y->bytes;
	x->after = y->after;
	if (y->after >= 0)
		a->blocks.data[y->after].before = before;
	take_away(a, after);
}

void cached_free(caching_allocator *a, int32_t block)
{
	cached_block *b = &a->blocks.data[block];
	int32_t before = b->before, after = b->after;
	b->used = false;
	if (after >= 0 && !a->blocks.data[after].used)
		join(a, block, after);
	if (before >= 0 && !a->blocks.data[before].used)
		join(a, before, block);
}

void caching_allocator_clear(caching_allocator *a)
{
	sw_vec_clear(&a->blocks);
	sw_vec_clear(&a->gone);
}
