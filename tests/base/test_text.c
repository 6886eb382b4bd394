#include "helpers.h"

#include <math.h>
#include <string.h>

static void pieces_are_joined(void **state)
{
	(void)state;
	sw_text text = {0};
	sw_text_add(&text, "");
	assert_string_equal(text.data, "");
	sw_text_add(&text, "one");
	sw_text_add_n(&text, ", two, three", 5);
	sw_text_addf(&text, " and %d%%", 3);
	sw_text_add_n(&text, NULL, 0);
	assert_string_equal(text.data, "one, two and 3%");
	assert_int_equal(text.len, strlen(text.data));
	sw_text_clear(&text);
	assert_null(text.data);
	sw_text_clear(&text);
}

static void long_texts_grow(void **state)
{
	(void)state;
	sw_text text = {0};
	for (int i = 0; i < 20000; i++)
		sw_text_addf(&text, "%d,", i % 10);
	assert_int_equal(text.len, 40000);
	assert_int_equal(strlen(text.data), 40000);
	assert_memory_equal(text.data + 39980, "0,1,2,3,4,5,6,7,8,9,", 21);
	sw_text_clear(&text);
}

typedef struct number_case {
	double value;
	const char *expected;
} number_case;

static void check(void (*add)(sw_text *text, double value), const number_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		sw_text text = {0};
		add(&text, cases[i].value);
		assert_string_equal(text.data, cases[i].expected);
		sw_text_clear(&text);
	}
}

static void bytes_are_written_in_powers_of_1024(void **state)
{
	(void)state;
	static const number_case cases[] = {
		{0, "0 B"},
		{1, "1 B"},
		{1023, "1023 B"},
		{1024, "1.0 KiB"},
		{1536, "1.5 KiB"},
		{1024 * 1023.94, "1023.9 KiB"},
		{1024 * 1023.96, "1.0 MiB"},
		{1.5 * 1048576, "1.5 MiB"},
		{80.0 * (1u << 30), "80.0 GiB"},
		{0x1p40, "1.0 TiB"},
		{0x1p50, "1.0 PiB"},
		{0x1p70, "1024.0 EiB"},
		{-2048, "-2.0 KiB"},
		{0.5, "0.5 B"},
		{INFINITY, "inf"},
		{-INFINITY, "-inf"},
		{NAN, "nan"},
	};
	check(sw_text_add_bytes, cases, SW_COUNT(cases));
}

static void counts_are_written_in_powers_of_1000(void **state)
{
	(void)state;
	static const number_case cases[] = {
		{0, "0"},         {7, "7"},          {2.5, "2.5"},        {999, "999"},
		{1000, "1.0 k"},  {1234, "1.2 k"},   {999949, "999.9 k"}, {999951, "1.0 M"},
		{3.4e6, "3.4 M"}, {5.6e9, "5.6 G"},  {1e12, "1.0 T"},     {1e15, "1.0 P"},
		{1e18, "1.0 E"},  {-1500, "-1.5 k"},
	};
	check(sw_text_add_count, cases, SW_COUNT(cases));
}

static void amounts_have_one_blank_before_their_unit(void **state)
{
	(void)state;
	sw_text text = {0};
	sw_text_add_amount(&text, 8, "FLOP, ");
	sw_text_add_amount(&text, 1.2e9, "B/s");
	assert_string_equal(text.data, "8 FLOP, 1.2 GB/s");
	sw_text_clear(&text);
}

static void seconds_are_written_as_s_ms_us(void **state)
{
	(void)state;
	static const number_case cases[] = {
		{0, "0 s"},
		{1, "1.0 s"},
		{75.25, "75.2 s"},
		{0.25, "250.0 ms"},
		{0.99996, "1.0 s"},
		{0.0015, "1.5 ms"},
		{0.99996e-3, "1.0 ms"},
		{3.25e-5, "32.5 us"},
		{1e-7, "0.1 us"},
		{2e-9, "0.002 us"},
		{-0.002, "-2.0 ms"},
		{INFINITY, "inf"},
	};
	check(sw_text_add_seconds, cases, SW_COUNT(cases));
}

static void characters_are_never_cut(void **state)
{
	static const struct {
		const char *text;
		size_t length;
	} cases[] = {
		{"", 0},
		{"abc", 3},
		{"a\xc3\xa9z", 4},
		{"a\xc3", 1},
		{"\xe2\x82\xac!", 4},
		{"x\xe2\x82", 1},
		{"\xf0\x9f\x98\x80", 4},
		{"\xff", 0},
		{"ab\x80", 2},
		{"\xc0\x80", 0},
		{"\xe0\x80\x80", 0},
		{"\xed\xa0\x80", 0},
		{"\xf4\x90\x80\x80", 0},
		{"\xf8\x88\x80\x80\x80", 0},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++)
		assert_int_equal(sw_utf8_length(cases[i].text, strlen(cases[i].text)),
		                 cases[i].length);
	char five[5];
	sw_text_cut("abcdef", five, sizeof(five));
	assert_string_equal(five, "abcd");
	sw_text_cut("abc\xc3\xa9", five, sizeof(five));
	assert_string_equal(five, "abc");
	sw_text_cut("\xc3\xa9\xc3\xa9\xc3\xa9", five, sizeof(five));
	assert_string_equal(five, "\xc3\xa9\xc3\xa9");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_joined),
		cmocka_unit_test(long_texts_grow),
		cmocka_unit_test(bytes_are_written_in_powers_of_1024),
		cmocka_unit_test(counts_are_written_in_powers_of_1000),
		cmocka_unit_test(amounts_have_one_blank_before_their_unit),
		cmocka_unit_test(seconds_are_written_as_s_ms_us),
		cmocka_unit_test(characters_are_never_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
