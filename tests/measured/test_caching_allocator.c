/* The model of PyTorch's caching allocator (bench/measured): segments, blocks, and what is given back. */
#include "test.h"

#include "../../bench/measured/caching_allocator.c"

#define AMPLE (1024 * MIB)

/* A large block has a segment of its own size, a middling one a share of 20 MiB, a small one of 2. */
static void segments_are_of_three_sizes(void **state)
{
	static const struct {
		int64_t bytes, reserved;
	} cases[] = {{1, 2 * MIB},         {MIB, 2 * MIB},
	             {MIB + 1, 20 * MIB},  {9 * MIB, 20 * MIB},
	             {10 * MIB, 10 * MIB}, {10 * MIB + 1, 12 * MIB}};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		caching_allocator a = {.capacity_bytes = AMPLE};
		cached_new(&a, cases[i].bytes);
		assert_int_equal(a.reserved_bytes, cases[i].reserved);
		caching_allocator_clear(&a);
	}
}

/* A freed block is cut for what is smaller, by more than a mebibyte, and joins its neighbours. */
static void blocks_are_cut_and_join(void **state)
{
	(void)state;
	caching_allocator a = {.capacity_bytes = AMPLE};
	cached_free(&a, cached_new(&a, 64 * MIB));
	int32_t first = cached_new(&a, 40 * MIB), second = cached_new(&a, 24 * MIB);
	assert_int_equal(a.reserved_bytes, 64 * MIB);
	cached_free(&a, first);
	cached_free(&a, second);
	cached_free(&a, cached_new(&a, 64 * MIB));
	assert_int_equal(a.reserved_bytes, 64 * MIB);
	int32_t most = cached_new(&a, 63 * MIB + MIB / 2); /* what is left is not worth a block */
	cached_new(&a, MIB / 2 + MIB);
	assert_int_equal(a.reserved_bytes, 84 * MIB);
	cached_free(&a, most);
	caching_allocator_clear(&a);
}

/* Blocks of two sizes in turn take more than is ever live: free ones are kept apart. */
static void free_blocks_of_segments_do_not_join(void **state)
{
	(void)state;
	caching_allocator a = {.capacity_bytes = AMPLE};
	int32_t x = cached_new(&a, 30 * MIB), y = cached_new(&a, 30 * MIB);
	cached_free(&a, x);
	cached_free(&a, y);
	cached_new(&a, 60 * MIB);
	assert_int_equal(a.reserved_bytes, 120 * MIB);
	assert_int_equal(a.peak_bytes, 120 * MIB);
	caching_allocator_clear(&a);
}

/* Where the device has no more, free segments are given back; where that is too little, it is full. */
static void free_segments_are_given_back(void **state)
{
	(void)state;
	caching_allocator a = {.capacity_bytes = 100 * MIB};
	cached_free(&a, cached_new(&a, 50 * MIB));
	assert_true(cached_has_room(&a, 50 * MIB));
	assert_false(cached_has_room(&a, 80 * MIB)); /* without giving back */
	cached_new(&a, 80 * MIB);
	assert_int_equal(a.reserved_bytes, 80 * MIB);
	assert_false(a.exhausted);
	cached_new(&a, 30 * MIB);
	assert_true(a.exhausted);
	caching_allocator_clear(&a);
}

/* Random requests: used blocks never overlap, and all blocks of a segment add up to it. */
static void blocks_add_up(void **state)
{
	(void)state;
	caching_allocator a = {.capacity_bytes = AMPLE * 1024};
	uint64_t seed = 7;
	int32_t live[64];
	int64_t used = 0, sizes[64];
	size_t n = 0;
	for (int i = 0; i < 4000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		if (n < SW_COUNT(live) && (seed >> 60) % 2 == 0) {
			sizes[n] = (int64_t)(seed >> 33) % (96 * MIB) + 1;
			used += sizes[n];
			live[n] = cached_new(&a, sizes[n]);
			n++;
		} else if (n > 0) {
			size_t k = (seed >> 33) % n;
			cached_free(&a, live[k]);
			used -= sizes[k];
			live[k] = live[--n];
			sizes[k] = sizes[n];
		}
		int64_t all = 0, taken = 0;
		for (size_t b = 0; b < a.blocks.len; b++) {
			all += a.blocks.data[b].bytes;
			taken += a.blocks.data[b].used ? a.blocks.data[b].bytes : 0;
		}
		assert_int_equal(all, a.reserved_bytes);
		assert_true(taken >= used);
	}
	caching_allocator_clear(&a);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_are_of_three_sizes),
		cmocka_unit_test(blocks_are_cut_and_join),
		cmocka_unit_test(free_blocks_of_segments_do_not_join),
		cmocka_unit_test(free_segments_are_given_back),
		cmocka_unit_test(blocks_add_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
