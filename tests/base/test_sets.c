/* Disjoint sets against labels that are changed one by one. */
#include "helpers.h"

#include "base/sets.h"

enum { N = 200 };

static void joined_numbers_have_the_smallest_as_root(void **state)
{
	uint32_t parent[N], label[N];
	sw_rng rng = {1, 0};
	(void)state;
	sw_sets_init(parent, N);
	for (uint32_t i = 0; i < N; i++)
		label[i] = i;
	for (int round = 0; round < 300; round++) {
		uint32_t a = (uint32_t)sw_rng_below(&rng, N), b = (uint32_t)sw_rng_below(&rng, N);
		uint32_t least = SW_MIN(label[a], label[b]), most = SW_MAX(label[a], label[b]);
		assert_int_equal(sw_sets_join(parent, a, b), most);
		for (uint32_t i = 0; i < N; i++)
			label[i] = label[i] == most ? least : label[i];
		for (uint32_t i = 0; i < N; i++)
			assert_int_equal(sw_sets_root(parent, i), label[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joined_numbers_have_the_smallest_as_root)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
