/* The known word nearest to one that is not known. */
#include "test.h"

#include <string.h>

static const char *nearest(const char *word)
{
	static const char *const known[] = {"latency", "bandwidth", "memory", "memory_bandwidth",
	                                    "flops",   "fusion",    "a"};
	sw_nearest found = {.word = word};
	for (size_t i = 0; i < SW_COUNT(known); i++)
		sw_nearest_try(&found, known[i]);
	return found.found;
}

static void the_nearest_word_is_found(void **state)
{
	(void)state;
	assert_string_equal(nearest("latnecy"), "latency");
	assert_string_equal(nearest("bandwith"), "bandwidth");
	assert_string_equal(nearest("memory_bandwith"), "memory_bandwidth");
	assert_string_equal(nearest("memroy"), "memory");
	assert_string_equal(nearest("flop"), "flops");
	assert_string_equal(nearest("flops"), "flops");
	assert_string_equal(nearest("lfops"), "flops"); /* an exchange is one difference */
}

static void words_that_are_far_are_not(void **state)
{
	(void)state;
	assert_null(nearest("overhead"));
	assert_null(nearest("xyz"));
	char long_word[1000];
	memset(long_word, 'a', sizeof(long_word));
	long_word[sizeof(long_word) - 1] = '\0';
	assert_null(nearest(long_word));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_nearest_word_is_found),
		cmocka_unit_test(words_that_are_far_are_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
