#include "helpers.h"

#include <string.h>
#include <zlib.h>

#define WINDOW 65536 /* bytes of the stream's window; tests put tokens across its borders */

typedef struct opened {
	sw_source *source;
	sw_json_stream *s;
	sw_error err;
} opened;

static void open_text(opened *o, const char *text, size_t length)
{
	o->err = (sw_error){0};
	o->source = sw_source_memory(text, length);
	o->s = sw_json_stream_new(o->source, &o->err);
}

static sw_status close_text(opened *o)
{
	sw_status status = sw_json_stream_free(o->s);
	sw_source_close(o->source);
	return status;
}

/* ---- numbers ---------------------------------------------------------------------------- */

/* Read the number as it stands, in a list between others, before white space, and at the end of the
 * text. */
static void numbers_are_integers_however_they_are_written(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t value;
	} cases[] = {
		{"0", 0},
		{"-0", 0},
		{"7", 7},
		{"1234567", 1234567},
		{"12345678", 12345678},
		{"123456789", 123456789},
		{"1234567890123456", 1234567890123456},
		{"12345678901234567", 12345678901234567},
		{"1000000000000000000", 1000000000000000000},
		{"9223372036854775807", INT64_MAX},
		{"-9223372036854775808", INT64_MIN},
		{"1e18", 1000000000000000000},
		{"1.0E+18", 1000000000000000000},
		{"1000000000000000000.0", 1000000000000000000},
		{"9.223372036854775807e18", INT64_MAX},
		{"-250e-1", -25},
		{"0.000e99999999999999999999", 0},
		{"0.00012e5", 12},
		{"100000000000000000000000000000000000000000000000e-46", 10},
		{"1.50e1", 15},
	};
	static const char *const around[][2] = {
		{"[", "]"}, {"[8,", ",9]"}, {"[ 8 , ", " ,\n9]"}, {"[8,8,8,8,", "]"}};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		for (size_t k = 0; k < SW_COUNT(around); k++) {
			opened o;
			char text[200];
			sw_numbers list = {0};
			snprintf(text, sizeof(text), "%s%s%s", around[k][0], cases[i].text,
			         around[k][1]);
			open_text(&o, text, strlen(text));
			if (!sw_json_take_ints(o.s, &list) || !sw_json_finish(o.s))
				fail_msg("%s: %s", text, o.err.message);
			size_t at = k == 0 ? 0 : k == 3 ? 4 : 1;
			assert_int_equal(list.len, at + (k == 1 || k == 2 ? 2 : 1));
			assert_int_equal(list.data[at], cases[i].value);
			assert_int_equal(close_text(&o), SW_OK);
			sw_vec_clear(&list);
		}
	}
}

static void other_numbers_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"9223372036854775808", "beyond 64 bits"},
		{"-9223372036854775809", "beyond 64 bits"},
		{"18446744073709551617", "beyond 64 bits"},
		{"123456789012345678901234567890", "beyond 64 bits"},
		{"1e19", "beyond 64 bits"},
		{"1e999999999999", "beyond 64 bits"},
		{"1.5", "found a number with a fraction"},
		{"1e-1", "found a number with a fraction"},
		{"1.00000000000000000000000000000000000001", "found a number with a fraction"},
		{"007", "must not begin with 0"},
		{"-01", "must not begin with 0"},
		{"-", "expected a digit, found the end of the text"},
		{"1.", "expected a digit, found the end of the text"},
		{"1e+", "expected the digits of an exponent"},
		{".5", "expected an integer, found '.'"},
		{"+5", "expected an integer, found '+'"},
		{"\"5\"", "expected an integer, found a string"},
		{"null", "expected an integer, found null"},
		{"[5]", "expected an integer, found an array"},
		{"\x01", "expected an integer, found byte 0x01"},
		{"", "expected an integer, found the end of the text"},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		opened o;
		int64_t value;
		char text[100];
		snprintf(text, sizeof(text), "\n  %s", cases[i].text);
		open_text(&o, text, strlen(text));
		assert_false(sw_json_take_int(o.s, &value));
		sw_status status = close_text(&o);
		assert_int_equal(status, SW_ERR_INPUT);
		assert_contains(o.err.message, cases[i].message);
		assert_int_equal(o.err.line, 2);
	}
}

static void lists_across_the_window_are_whole(void **state)
{
	(void)state;
	sw_text text = {0};
	sw_numbers list = {0};
	sw_rng rng = {5, 0};
	int64_t expected[4000];
	for (int shift = 0; shift < 48; shift++) {
		opened o;
		text.len = 0;
		for (int i = 0; i < WINDOW - 1000 + shift; i++)
			sw_text_add(&text, " ");
		sw_text_add(&text, "[");
		for (size_t i = 0; i < SW_COUNT(expected); i++) {
			expected[i] =
				(int64_t)(sw_rng_bits(&rng) >> 1 >> sw_rng_below(&rng, 60)) - 3;
			sw_text_addf(&text, "%s%lld", i ? "," : "", (long long)expected[i]);
		}
		sw_text_add(&text, "]");
		open_text(&o, text.data, text.len);
		assert_true(sw_json_take_ints(o.s, &list));
		assert_true(sw_json_finish(o.s));
		assert_int_equal(list.len, SW_COUNT(expected));
		assert_memory_equal(list.data, expected, sizeof(expected));
		close_text(&o);
	}
	sw_vec_clear(&list);
	sw_text_clear(&text);
}

/* ---- everything ------------------------------------------------------------------------- */

static const char everything[] = "{\"a\": [1, {\"b\": {}, \"c\": [] , \"d\\u0041\\\"\\\\\\/\": "
				 "\"x\\ud83d\\ude00\\n\"}, [[-1.5e+3], true, false, null, 0]],\r\n"
				 "\t\"e\": \"\", \"a\": 0.25 }\n ";

static sw_status skip_text(const char *text, size_t length, sw_error *err)
{
	opened o;
	open_text(&o, text, length);
	sw_json_skip(o.s);
	sw_json_finish(o.s);
	sw_status status = close_text(&o);
	*err = o.err;
	return status;
}

static void skipped_values_are_checked(void **state)
{
	(void)state;
	sw_error err;
	size_t length = strlen(everything);
	assert_int_equal(skip_text(everything, length, &err), SW_OK);
	for (size_t cut = 0; cut < length - 3; cut++) {
		assert_int_equal(skip_text(everything, cut, &err), SW_ERR_INPUT);
		assert_contains(err.message, "the ");
	}
}

static void tokens_across_the_window_are_whole(void **state)
{
	(void)state;
	sw_text text = {0};
	sw_error err;
	for (size_t shift = 0; shift <= strlen(everything); shift++) {
		text.len = 0;
		while (text.len < WINDOW - shift)
			sw_text_add(&text, "\n");
		sw_text_add(&text, everything);
		if (skip_text(text.data, text.len, &err) != SW_OK)
			fail_msg("%zu: %s", shift, err.message);
		text.data[text.len - 3] = ']';
		assert_int_equal(skip_text(text.data, text.len, &err), SW_ERR_INPUT);
		assert_int_equal(err.line, WINDOW - shift + 2);
		assert_contains(err.message, "expected ',' or '}', found ']'");
	}
	sw_text_clear(&text);
}

static void bad_texts_are_one_clear_line(void **state)
{
	(void)state;
	static const struct {
		const char *text, *message;
		int column;
	} cases[] = {
		{"", "expected a value, found the end of the text", 1},
		{"x", "expected a value, found 'x'", 1},
		{"nul", "the text ends in a word", 4},
		{"[trues]", "[0]: expected ',' or ']', found 's'", 6},
		{"folse", "expected true, false or null", 2},
		{"[1,]", "[1]: expected a value, found ']'", 4},
		{"[1 2]", "[0]: expected ',' or ']', found a number", 4},
		{"[1}", "[0]: expected ',' or ']', found '}'", 3},
		{"{\"a\": 1,}", "a: expected a key in quotes, found '}'", 9},
		{"{a: 1}", "expected a key in quotes, found 'a'", 2},
		{"{\"a\" 1}", "a: expected ':' after the key, found a number", 6},
		{"{\"a\": {\"b c\": [0, [\"", "a.b c[1][0]: the text ends in a string", 21},
		{"\"\t\"", "control character in a string", 2},
		{"\"\\x\"", "bad escape in a string", 2},
		{"\"\\u12g4\"", "bad escape in a string", 2},
		{"{\"a\": 1} {", "expected the end of the text, found an object", 10},
		{"[1]x", "expected the end of the text, found 'x'", 4},
		{"\xff", "expected a value, found byte 0xff", 1},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_error err;
		sw_status status = skip_text(cases[i].text, strlen(cases[i].text), &err);
		assert_error(status, &err, SW_ERR_INPUT, 1, cases[i].column, cases[i].message);
	}
	sw_error err;
	assert_error(skip_text("[\0]", 3, &err), &err, SW_ERR_INPUT, 1, 2, "found byte 0x00");
	assert_error(skip_text("\"\0\"", 3, &err), &err, SW_ERR_INPUT, 1, 2, "control character");
}

static void deep_nesting_is_refused(void **state)
{
	(void)state;
	char text[200000];
	sw_error err;
	memset(text, '[', sizeof(text));
	assert_error(skip_text(text, sizeof(text), &err), &err, SW_ERR_INPUT, 1, 65,
	             "nested more than 64 deep");
	memset(text + 64, ']', 64);
	assert_int_equal(skip_text(text, 128, &err), SW_OK);
}

/* ---- pulling ---------------------------------------------------------------------------- */

static void values_are_pulled_in_order(void **state)
{
	(void)state;
	static const char text[] = "{\"none\": null, \"list\": [[3, 4], []], \"\\u006ed\": 5}";
	opened o;
	const char *key;
	int64_t value = 0;
	sw_numbers list = {0};
	open_text(&o, text, strlen(text));
	assert_true(sw_json_enter_object(o.s));
	assert_true(sw_json_next_key(o.s, &key));
	assert_string_equal(key, "none");
	assert_true(sw_json_take_null(o.s));
	assert_true(sw_json_next_key(o.s, &key));
	assert_false(sw_json_take_null(o.s));
	assert_true(sw_json_enter_array(o.s));
	assert_true(sw_json_next_item(o.s));
	assert_true(sw_json_take_ints(o.s, &list));
	assert_int_equal(list.len, 2);
	assert_true(sw_json_next_item(o.s));
	assert_int_equal(sw_json_stream_place(o.s).column, 33);
	assert_true(sw_json_take_ints(o.s, &list));
	assert_int_equal(list.len, 0);
	assert_false(sw_json_next_item(o.s));
	assert_true(sw_json_next_key(o.s, &key));
	assert_string_equal(key, "nd");
	assert_true(sw_json_take_int(o.s, &value));
	assert_int_equal(value, 5);
	assert_false(sw_json_next_key(o.s, &key));
	assert_true(sw_json_finish(o.s));
	assert_int_equal(close_text(&o), SW_OK);
	sw_vec_clear(&list);
}

static void long_keys_are_cut(void **state)
{
	(void)state;
	opened o;
	const char *key, text[] = "{\"0123456789012345678901234567890123456789-and-on\": 1}";
	open_text(&o, text, strlen(text));
	sw_json_enter_object(o.s);
	assert_true(sw_json_next_key(o.s, &key));
	assert_string_equal(key, "012345678901234567890123456789012345678");
	assert_true(sw_json_skip(o.s));
	assert_false(sw_json_next_key(o.s, &key));
	assert_int_equal(close_text(&o), SW_OK);
}

static void the_first_error_is_kept(void **state)
{
	(void)state;
	opened o;
	const char *key;
	int64_t value;
	sw_numbers list = {0};
	open_text(&o, "{\"a\": [1, 2", 11);
	sw_json_enter_object(o.s);
	sw_json_next_key(o.s, &key);
	assert_false(sw_json_stream_fail(o.s, NULL, "no %s", "luck"));
	assert_false(sw_json_stream_fail(o.s, &(sw_json_place){3, 4}, "later"));
	assert_false(sw_json_take_ints(o.s, &list) || sw_json_take_int(o.s, &value) ||
	             sw_json_take_null(o.s) || sw_json_enter_array(o.s) ||
	             sw_json_enter_object(o.s) || sw_json_next_item(o.s) ||
	             sw_json_next_key(o.s, &key) || sw_json_skip(o.s) || sw_json_finish(o.s));
	assert_error(close_text(&o), &o.err, SW_ERR_INPUT, 1, 6, "a: no luck");
	sw_vec_clear(&list);
}

/* ---- packed ----------------------------------------------------------------------------- */

static size_t pack(const char *text, unsigned char *packed, size_t capacity)
{
	z_stream stream = {.next_in = (Bytef *)text, .avail_in = (uInt)strlen(text)};
	assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
	                 Z_OK);
	stream.next_out = packed;
	stream.avail_out = (uInt)capacity;
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	deflateEnd(&stream);
	return stream.total_out;
}

/* Damage of the gzip data mostly makes bad JSON, but the error must name the gzip data. */
static void damaged_gzip_is_named_rather_than_the_damaged_text(void **state)
{
	(void)state;
	unsigned char packed[1000];
	sw_error err;
	size_t length = pack(everything, packed, sizeof(packed));
	assert_int_equal(skip_text((char *)packed, length, &err), SW_OK);
	for (size_t cut = 2; cut < length; cut++) {
		assert_int_equal(skip_text((char *)packed, cut, &err), SW_ERR_INPUT);
		assert_contains(err.message, "truncated gzip data");
	}
	for (size_t at = 12; at < length; at++) {
		packed[at] ^= 0x15;
		assert_int_equal(skip_text((char *)packed, length, &err), SW_ERR_INPUT);
		assert_contains(err.message, " gzip data");
		packed[at] ^= 0x15;
	}
	length = pack("[1, 2}", packed, sizeof(packed));
	assert_error(skip_text((char *)packed, length, &err), &err, SW_ERR_INPUT, 1, 6,
	             "[1]: expected ',' or ']'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_integers_however_they_are_written),
		cmocka_unit_test(other_numbers_are_refused),
		cmocka_unit_test(lists_across_the_window_are_whole),
		cmocka_unit_test(skipped_values_are_checked),
		cmocka_unit_test(tokens_across_the_window_are_whole),
		cmocka_unit_test(bad_texts_are_one_clear_line),
		cmocka_unit_test(deep_nesting_is_refused),
		cmocka_unit_test(values_are_pulled_in_order),
		cmocka_unit_test(long_keys_are_cut),
		cmocka_unit_test(the_first_error_is_kept),
		cmocka_unit_test(damaged_gzip_is_named_rather_than_the_damaged_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
