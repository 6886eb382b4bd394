/* The order of items: a permutation per pass; the order of an item's numbers. */
#include <string.h>

#include "run/array_data.h"
#include "run/npy.h"
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

/* np.arange(12).reshape(2, 3, 2), in Fortran's order. */
static void a_column_major_item_is_copied_row_by_row(void **state)
{
	(void)state;
	static const char header[] =
		"{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2), }";
	static const char numbers[] = {0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11};
	char file[128] = "\x93NUMPY\1\0", item[6];
	size_t length = sizeof(header) - 1, at = 10 + length;
	file[8] = (char)length;
	memcpy(file + 10, header, length);
	memcpy(file + at, numbers, sizeof(numbers));
	sw_npy npy;
	sw_error err = {0};
	assert_int_equal(sw_npy_parse(file, at + sizeof(numbers), &npy, &err), SW_OK);
	assert_true(npy.column_major);
	for (char i = 0; i < 2; i++) {
		sw_npy_copy_item(&npy, i, item);
		for (char e = 0; e < 6; e++)
			assert_int_equal(item[(int)e], i * 6 + e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pass_takes_each_item_once),
		cmocka_unit_test(a_column_major_item_is_copied_row_by_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
