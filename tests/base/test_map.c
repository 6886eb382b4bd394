#include "helpers.h"

#include <string.h>

static void an_empty_map_has_nothing(void **state)
{
	(void)state;
	sw_map map = {0};
	assert_int_equal(sw_map_get(&map, "a", 1), SW_ABSENT);
	sw_map_clear(&map);
	sw_map_clear(&map);
}

static void put_gives_the_earlier_value(void **state)
{
	(void)state;
	sw_map map = {0};
	assert_int_equal(sw_map_put(&map, "key", 3, 7), SW_ABSENT);
	assert_int_equal(sw_map_put(&map, "key", 3, 8), 7);
	assert_int_equal(sw_map_get(&map, "key", 3), 8);
	assert_int_equal(sw_map_get(&map, "key", 2), SW_ABSENT);
	assert_int_equal(map.len, 1);
	sw_map_clear(&map);
}

static void intern_keeps_the_first_value(void **state)
{
	(void)state;
	sw_map map = {0};
	assert_int_equal(sw_map_intern(&map, "x", 1, 0), 0);
	assert_int_equal(sw_map_intern(&map, "x", 1, 1), 0);
	assert_int_equal(sw_map_intern(&map, "y", 1, 1), 1);
	assert_int_equal(sw_map_get(&map, "x", 1), 0);
	assert_int_equal(map.len, 2);
	sw_map_clear(&map);
}

static void the_value_absent_means_absent(void **state)
{
	(void)state;
	sw_map map = {0};
	sw_map_put(&map, "x", 1, 5);
	assert_int_equal(sw_map_put(&map, "x", 1, SW_ABSENT), 5);
	assert_int_equal(sw_map_get(&map, "x", 1), SW_ABSENT);
	assert_int_equal(sw_map_intern(&map, "x", 1, 6), 6);
	sw_map_clear(&map);
}

static void keys_are_copied(void **state)
{
	(void)state;
	sw_map map = {0};
	char key[] = "abc";
	sw_map_put(&map, key, 3, 1);
	key[0] = 'z';
	assert_int_equal(sw_map_get(&map, "abc", 3), 1);
	assert_int_equal(sw_map_get(&map, "zbc", 3), SW_ABSENT);
	sw_map_clear(&map);
}

static void the_empty_key_is_a_key(void **state)
{
	(void)state;
	sw_map map = {0};
	assert_int_equal(sw_map_put(&map, "", 0, 3), SW_ABSENT);
	assert_int_equal(sw_map_get(&map, NULL, 0), 3);
	assert_int_equal(sw_map_get(&map, "\0", 1), SW_ABSENT);
	sw_map_clear(&map);
}

static void a_large_map_keeps_every_key(void **state)
{
	(void)state;
	enum { N = 50000 };
	sw_map map = {0};
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(sw_map_put(&map, &i, sizeof(i), i + 1), SW_ABSENT);
	assert_int_equal(map.len, N);
	assert_true(4 * map.len <= 3 * map.cap);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(sw_map_get(&map, &i, sizeof(i)), i + 1);
	for (uint32_t i = N; i < 2 * N; i++)
		assert_int_equal(sw_map_get(&map, &i, sizeof(i)), SW_ABSENT);
	sw_map_clear(&map);
}

/* Compare the map with an array, in random order. */
static void a_map_behaves_as_an_array_does(void **state)
{
	(void)state;
	enum { KEYS = 300 };
	uint32_t expected[KEYS];
	memset(expected, 0xff, sizeof(expected));
	sw_map map = {0};
	sw_rng rng = {.seed = 1};
	for (int step = 0; step < 20000; step++) {
		int64_t key = sw_rng_below(&rng, KEYS);
		uint32_t value = (uint32_t)sw_rng_below(&rng, 1000);
		if (sw_rng_below(&rng, 2)) {
			assert_int_equal(sw_map_put(&map, &key, sizeof(key), value), expected[key]);
			expected[key] = value;
		} else {
			if (expected[key] == SW_ABSENT)
				expected[key] = value;
			assert_int_equal(sw_map_intern(&map, &key, sizeof(key), value),
			                 expected[key]);
		}
		assert_int_equal(sw_map_get(&map, &key, sizeof(key)), expected[key]);
	}
	sw_map_clear(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_map_has_nothing),
		cmocka_unit_test(put_gives_the_earlier_value),
		cmocka_unit_test(intern_keeps_the_first_value),
		cmocka_unit_test(the_value_absent_means_absent),
		cmocka_unit_test(keys_are_copied),
		cmocka_unit_test(the_empty_key_is_a_key),
		cmocka_unit_test(a_large_map_keeps_every_key),
		cmocka_unit_test(a_map_behaves_as_an_array_does),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
