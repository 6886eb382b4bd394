/* The order of items: a permutation per pass. */
#include "run/array_data.h"
#include "test.h"

static void every_pass_takes_each_item_once(void **state)
{
	(void)state;
	static const int64_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 100, 1000, 4097};
	for (size_t s = 0; s < SW_COUNT(sizes); s++) {
		int64_t n = sizes[s], moved = 0, same = 0;
		for (uint64_t pass = 0; pass < 3; pass++) {
			bool *seen = sw_alloc((size_t)n);
			for (int64_t i = 0; i < n; i++) {
				int64_t item = sw_shuffled(7, pass, n, i);
				assert_in_range(item, 0, n - 1);
				assert_false(seen[item]);
				seen[item] = true;
				moved += item != i;
				same += item == sw_shuffled(7, pass + 1, n, i);
			}
			free(seen);
		}
		if (n >= 100) { /* of random orders, about one item per pass stays */
			assert_true(moved > 3 * n - 30);
			assert_true(same < 30);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pass_takes_each_item_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
