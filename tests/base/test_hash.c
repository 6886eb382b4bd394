#include "helpers.h"

/* The expected values come from the reference implementation of xxHash 0.8. */
static void bytes_hash_as_xxh3(void **state)
{
	(void)state;
	assert_true(sw_hash_bytes("", 0, 0) == UINT64_C(0x2d06800538d394c2));
	assert_true(sw_hash_bytes("abc", 3, 0) == UINT64_C(0x78af5f94892f3950));
	assert_true(sw_hash_bytes("abc", 3, 1) != sw_hash_bytes("abc", 3, 0));
}

static void the_order_of_a_pair_counts(void **state)
{
	(void)state;
	assert_true(sw_hash_u64(1, 2) != sw_hash_u64(2, 1));
	assert_true(sw_hash_u64(0, 0) != 0);
}

/* Each bit of the input flips about half of the output's bits. */
static void a_pair_is_mixed_well(void **state)
{
	(void)state;
	for (int bit = 0; bit < 64; bit++) {
		int flips[2] = {0};
		for (uint64_t i = 0; i < 200; i++) {
			uint64_t flip = UINT64_C(1) << bit, whole = sw_hash_u64(i, 3 * i);
			flips[0] += __builtin_popcountll(whole ^ sw_hash_u64(i ^ flip, 3 * i));
			flips[1] += __builtin_popcountll(whole ^ sw_hash_u64(i, (3 * i) ^ flip));
		}
		assert_in_range(flips[0], 200 * 29, 200 * 35);
		assert_in_range(flips[1], 200 * 29, 200 * 35);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_hash_as_xxh3),
		cmocka_unit_test(the_order_of_a_pair_counts),
		cmocka_unit_test(a_pair_is_mixed_well),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
