/* The tests of arenas, included once for the arenas of this build and once for separate objects. */
#include "helpers.h"

#include <string.h>

static void objects_are_zeroed_aligned_and_apart(void **state)
{
	(void)state;
	enum { N = 3000 };
	static unsigned char *object[N];
	sw_arena arena;
	sw_arena_init(&arena);
	size_t total = 0;
	for (size_t i = 0; i < N; i++) {
		size_t bytes = (i * 37) % 301;
		object[i] = sw_arena_alloc(&arena, bytes);
		assert_int_equal((uintptr_t)object[i] % 16, 0);
		for (size_t k = 0; k < bytes; k++)
			assert_int_equal(object[i][k], 0);
		memset(object[i], (int)(i % 255) + 1, bytes);
		total += bytes;
	}
	assert_int_equal(arena.bytes, total);
	for (size_t i = 0; i < N; i++)
		for (size_t k = 0; k < (i * 37) % 301; k++)
			assert_int_equal(object[i][k], i % 255 + 1);
	sw_arena_clear(&arena);
}

static void objects_of_no_bytes_have_addresses_of_their_own(void **state)
{
	(void)state;
	sw_arena arena = {0};
	void *a = sw_arena_alloc(&arena, 0), *b = sw_arena_alloc(&arena, 0);
	assert_non_null(a);
	assert_ptr_not_equal(a, b);
	assert_int_equal(arena.bytes, 0);
	sw_arena_clear(&arena);
}

static void large_objects_leave_the_small_ones_in_place(void **state)
{
	(void)state;
	sw_arena arena = {0};
	char *small = sw_arena_text(&arena, "small");
	char *large = sw_arena_alloc(&arena, (size_t)5 << 20);
	char *after = sw_arena_text(&arena, "after");
	memset(large, 1, (size_t)5 << 20);
	assert_string_equal(small, "small");
	assert_string_equal(after, "after");
	sw_arena_clear(&arena);
}

static void a_cleared_arena_can_be_used_again(void **state)
{
	(void)state;
	sw_arena arena = {0};
	sw_arena_clear(&arena);
	for (int round = 0; round < 3; round++) {
		assert_string_equal(sw_arena_printf(&arena, "round %d", round),
		                    round == 0   ? "round 0"
		                    : round == 1 ? "round 1"
		                                 : "round 2");
		assert_true(arena.bytes > 0);
		sw_arena_clear(&arena);
		assert_null(arena.blocks);
		assert_int_equal(arena.bytes, 0);
	}
}

static void copies_are_exact(void **state)
{
	(void)state;
	sw_arena arena = {0};
	static const unsigned char bytes[] = {1, 0, 255, 7};
	assert_memory_equal(sw_arena_copy(&arena, bytes, sizeof(bytes)), bytes, sizeof(bytes));
	assert_non_null(sw_arena_copy(&arena, NULL, 0));
	assert_string_equal(sw_arena_text(&arena, ""), "");
	assert_string_equal(sw_arena_text_n(&arena, "abcdef", 3), "abc");
	assert_string_equal(sw_arena_text_n(&arena, NULL, 0), "");
	assert_string_equal(sw_arena_printf(&arena, "%s-%05.1f", "x", 2.25), "x-002.2");
	int64_t *numbers = SW_NEW_N(&arena, int64_t, 100);
	numbers[99] = 1;
	sw_error *err = SW_NEW(&arena, sw_error);
	assert_int_equal(err->code, SW_OK);
	sw_arena_clear(&arena);
}

static void take_too_much(void *context)
{
	sw_arena_alloc(context, SIZE_MAX - 8);
}

static void a_refused_object_calls_the_handler(void **state)
{
	(void)state;
	sw_arena arena = {0};
	assert_true(runs_out_of_memory(take_too_much, &arena));
	sw_arena_clear(&arena);
}

#if defined(__SANITIZE_ADDRESS__) && defined(SW_ARENA_SEPARATE)
int __asan_address_is_poisoned(void const volatile *address);

static void the_byte_behind_an_object_is_watched(void **state)
{
	(void)state;
	sw_arena arena = {0};
	for (size_t bytes = 1; bytes < 100; bytes++) {
		char *object = sw_arena_alloc(&arena, bytes);
		assert_false(__asan_address_is_poisoned(object + bytes - 1));
		assert_true(__asan_address_is_poisoned(object + bytes));
	}
	sw_arena_clear(&arena);
}
#else
static void the_byte_behind_an_object_is_watched(void **state)
{
	(void)state;
	skip();
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_are_zeroed_aligned_and_apart),
		cmocka_unit_test(objects_of_no_bytes_have_addresses_of_their_own),
		cmocka_unit_test(large_objects_leave_the_small_ones_in_place),
		cmocka_unit_test(a_cleared_arena_can_be_used_again),
		cmocka_unit_test(copies_are_exact),
		cmocka_unit_test(a_refused_object_calls_the_handler),
		cmocka_unit_test(the_byte_behind_an_object_is_watched),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
