#include "helpers.h"

#include <string.h>

static void a_failure_keeps_code_and_message(void **state)
{
	(void)state;
	sw_error err = {.line = 9, .column = 9, .file = "old"};
	assert_int_equal(sw_fail(&err, SW_ERR_INPUT, "expected %d, found %s", 3, "nothing"),
	                 SW_ERR_INPUT);
	assert_error(SW_ERR_INPUT, &err, SW_ERR_INPUT, 0, 0, "expected 3, found nothing");
	assert_string_equal(err.file, "");
}

static void a_failure_at_a_place_keeps_the_place(void **state)
{
	(void)state;
	sw_error err;
	sw_status status = sw_fail_at(&err, SW_ERR_IO, "a.hlo", 12, 34, "bad %c", 'x');
	assert_error(status, &err, SW_ERR_IO, 12, 34, "bad x");
	assert_string_equal(err.file, "a.hlo");
}

static void the_error_may_be_null(void **state)
{
	(void)state;
	assert_int_equal(sw_fail(NULL, SW_NO, "unheard"), SW_NO);
	assert_int_equal(sw_fail_at(NULL, SW_ERR_IO, "f", 1, 1, "unheard"), SW_ERR_IO);
	assert_int_equal(sw_error_in_file(NULL, SW_ERR_IO, "f"), SW_ERR_IO);
}

static void an_error_can_be_reworded_in_place(void **state)
{
	(void)state;
	sw_error err;
	sw_fail_at(&err, SW_ERR_INPUT, "a.yaml", 2, 3, "odd number");
	sw_fail_at(&err, SW_ERR_INPUT, err.file, err.line, err.column, "link 4: %s", err.message);
	assert_error(SW_ERR_INPUT, &err, SW_ERR_INPUT, 2, 3, "link 4: odd number");
	assert_string_equal(err.file, "a.yaml");
}

static void the_first_file_name_stays(void **state)
{
	(void)state;
	sw_error err;
	sw_fail(&err, SW_ERR_INPUT, "bad");
	assert_int_equal(sw_error_in_file(&err, SW_ERR_INPUT, "inner"), SW_ERR_INPUT);
	assert_int_equal(sw_error_in_file(&err, SW_ERR_INPUT, "outer"), SW_ERR_INPUT);
	assert_string_equal(err.file, "inner");
}

static void success_names_no_file(void **state)
{
	(void)state;
	sw_error err = {0};
	assert_int_equal(sw_error_in_file(&err, SW_OK, "file"), SW_OK);
	assert_string_equal(err.file, "");
}

static void long_texts_are_cut_not_overrun(void **state)
{
	(void)state;
	char text[2000];
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	sw_error err;
	sw_fail_at(&err, SW_ERR_INPUT, text, 1, 1, "%s", text);
	assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
	assert_int_equal(strlen(err.file), sizeof(err.file) - 1);
}

static void a_message_is_one_line(void **state)
{
	(void)state;
	sw_error err;
	sw_fail(&err, SW_ERR_INPUT, "key \"%s\"", "a\nb\tc\x1b[0m");
	assert_string_equal(err.message, "key \"a\\nb\\tc\\x1b[0m\"");
	sw_fail(&err, SW_ERR_INPUT, "key \"%s\"", "\xc3\xa9\xff\xe2\x80\xae\x7f");
	assert_string_equal(err.message, "key \"\xc3\xa9\\xff\\xe2\\x80\\xae\\x7f\"");
}

static void statuses_have_names_and_exit_codes(void **state)
{
	(void)state;
	static const struct {
		sw_status status;
		const char *name;
		int exit_code;
	} cases[] = {
		{SW_OK, "ok", 0},
		{SW_NO, "no", 1},
		{SW_ERR_INPUT, "bad-input", 2},
		{SW_ERR_IO, "io", 2},
		{SW_ERR_INTERNAL, "internal", 2},
		{(sw_status)99, "unknown", 2},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		assert_string_equal(sw_status_name(cases[i].status), cases[i].name);
		assert_int_equal(sw_status_exit_code(cases[i].status), cases[i].exit_code);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failure_keeps_code_and_message),
		cmocka_unit_test(a_failure_at_a_place_keeps_the_place),
		cmocka_unit_test(the_error_may_be_null),
		cmocka_unit_test(an_error_can_be_reworded_in_place),
		cmocka_unit_test(the_first_file_name_stays),
		cmocka_unit_test(success_names_no_file),
		cmocka_unit_test(long_texts_are_cut_not_overrun),
		cmocka_unit_test(a_message_is_one_line),
		cmocka_unit_test(statuses_have_names_and_exit_codes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
