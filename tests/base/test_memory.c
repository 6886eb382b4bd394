#include "helpers.h"

#include <string.h>

static void allocations_are_zeroed_and_aligned(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 63, 64, 65, 1032, 1033, 4096, 1 << 20};
	for (size_t i = 0; i < 2 * SW_COUNT(sizes); i++) {
		size_t bytes = sizes[i / 2];
		unsigned char *data = i % 2 ? sw_alloc(bytes) : sw_try_alloc(bytes);
		assert_non_null(data);
		assert_int_equal((uintptr_t)data % (i % 2 && bytes < 1033 ? 16 : 64), 0);
		/* what was freed full is zeroed when it is handed out again */
		for (size_t k = 0; k < bytes; k++) {
			assert_int_equal(data[k], 0);
			((volatile unsigned char *)data)[k] = 0xff;
		}
		free(data);
	}
}

static void a_size_from_input_may_be_refused(void **state)
{
	(void)state;
	assert_null(sw_try_alloc(SIZE_MAX));
	assert_null(sw_try_alloc(SIZE_MAX / 2));
}

static void take_everything(void *context)
{
	free(sw_alloc(*(size_t *)context));
}

static void bookkeeping_calls_the_handler(void **state)
{
	(void)state;
	size_t too_much = SIZE_MAX / 2, little = 10;
	assert_true(runs_out_of_memory(take_everything, &too_much));
	assert_false(runs_out_of_memory(take_everything, &little));
}

static void products_are_checked(void **state)
{
	(void)state;
	static const struct {
		int64_t a, b, product; /* product < 0: it does not fit */
	} cases[] = {
		{0, 0, 0},
		{0, INT64_MAX, 0},
		{INT64_MAX, 1, INT64_MAX},
		{INT64_C(1) << 31, INT64_C(1) << 31, INT64_C(1) << 62},
		{INT64_C(3037000499), INT64_C(3037000499), INT64_C(9223372030926249001)},
		{INT64_C(3037000500), INT64_C(3037000500), -1},
		{INT64_C(1) << 32, INT64_C(1) << 31, -1},
		{INT64_MAX, 2, -1},
		{INT64_MAX, INT64_MAX, -1},
		{-1, 1, -1},
		{1, -1, -1},
		{-1, -1, -1},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		int64_t product = 77;
		bool fits = sw_mul_i64(cases[i].a, cases[i].b, &product);
		assert_int_equal(fits, cases[i].product >= 0);
		assert_int_equal(product, fits ? cases[i].product : 77);
	}
}

static void vectors_grow_and_keep_their_items(void **state)
{
	(void)state;
	SW_VEC(int64_t) v = {0};
	for (int64_t i = 0; i < 10000; i++)
		sw_vec_push(&v, i * i);
	assert_int_equal(v.len, 10000);
	assert_true(v.cap >= v.len);
	for (int64_t i = 0; i < 10000; i++)
		assert_int_equal(v.data[i], i * i);
	sw_vec_clear(&v);
	assert_null(v.data);
	assert_int_equal(v.len + v.cap, 0);
	sw_vec_push(&v, 1);
	assert_int_equal(v.data[0], 1);
	sw_vec_clear(&v);
}

static void reserved_capacity_is_not_allocated_twice(void **state)
{
	(void)state;
	SW_VEC(char) v = {0};
	sw_vec_reserve(&v, 1000);
	const char *before = v.data;
	for (int i = 0; i < 1000; i++)
		sw_vec_push(&v, (char)i);
	assert_ptr_equal(v.data, before);
	sw_vec_clear(&v);
}

static void reserve_too_much(void *context)
{
	(void)context;
	SW_VEC(int64_t) v = {0};
	sw_vec_reserve(&v, SIZE_MAX / 4);
	sw_vec_clear(&v);
}

static void a_vector_larger_than_memory_calls_the_handler(void **state)
{
	(void)state;
	assert_true(runs_out_of_memory(reserve_too_much, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocations_are_zeroed_and_aligned),
		cmocka_unit_test(a_size_from_input_may_be_refused),
		cmocka_unit_test(bookkeeping_calls_the_handler),
		cmocka_unit_test(products_are_checked),
		cmocka_unit_test(vectors_grow_and_keep_their_items),
		cmocka_unit_test(reserved_capacity_is_not_allocated_twice),
		cmocka_unit_test(a_vector_larger_than_memory_calls_the_handler),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
