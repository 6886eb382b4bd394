#include "helpers.h"

static void expect_table(int columns, const char *const headings[], const char *const cells[],
                         size_t count, const char *expected)
{
	sw_table table;
	sw_table_init(&table, columns, headings);
	for (size_t i = 0; i < count; i++)
		sw_table_cell(&table, "%s", cells[i]);
	sw_text text = {0};
	sw_table_add_to(&table, &text);
	assert_string_equal(text.data, expected);
	sw_text_clear(&text);
	sw_table_clear(&table);
}

static void numbers_stand_right_and_words_left(void **state)
{
	(void)state;
	expect_table(3, (const char *const[]){"op", "bytes", "share"},
	             (const char *const[]){"dot", "1.5 MiB", "7%", "all-reduce", "12 B", "93%"}, 6,
	             "op            bytes  share\n"
	             "dot         1.5 MiB     7%\n"
	             "all-reduce     12 B    93%\n");
}

static void a_word_may_begin_with_a_digit(void **state)
{
	(void)state;
	expect_table(2, (const char *const[]){"mesh", "n"},
	             (const char *const[]){"8x4", "-3", "16x2x2", "1e9"}, 4,
	             "mesh      n\n"
	             "8x4      -3\n"
	             "16x2x2  1e9\n");
}

static void one_word_makes_a_column_of_words(void **state)
{
	(void)state;
	expect_table(2, (const char *const[]){"a", "b"},
	             (const char *const[]){"100", "1", "none", "2"}, 4,
	             "a     b\n"
	             "100   1\n"
	             "none  2\n");
}

static void empty_cells_leave_no_blanks_at_the_end(void **state)
{
	(void)state;
	expect_table(2, (const char *const[]){"name", "note"},
	             (const char *const[]){"x", "", "y", "long note"}, 4,
	             "name  note\n"
	             "x\n"
	             "y     long note\n");
}

static void empty_cells_do_not_turn_numbers_into_words(void **state)
{
	(void)state;
	expect_table(2, (const char *const[]){"n", "w"},
	             (const char *const[]){"", "a", "5 GB/s", "b"}, 4,
	             "     n  w\n"
	             "        a\n"
	             "5 GB/s  b\n");
}

static void width_counts_characters(void **state)
{
	(void)state;
	expect_table(2, (const char *const[]){"name", "w"},
	             (const char *const[]){"\xce\xb1\xce\xb2", "a", "four", "b"}, 4,
	             "name  w\n"
	             "\xce\xb1\xce\xb2    a\n"
	             "four  b\n");
}

static void a_table_without_rows_is_its_heading(void **state)
{
	(void)state;
	expect_table(2, (const char *const[]){"left", "right"}, NULL, 0, "left  right\n");
}

static void printing_twice_gives_the_same(void **state)
{
	(void)state;
	sw_table table;
	sw_table_init(&table, 1, (const char *const[]){"n"});
	sw_table_cell(&table, "%d", 5);
	sw_text text = {0};
	sw_table_add_to(&table, &text);
	sw_table_add_to(&table, &text);
	assert_string_equal(text.data, "n\n5\nn\n5\n");
	sw_text_clear(&text);
	sw_table_clear(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_stand_right_and_words_left),
		cmocka_unit_test(a_word_may_begin_with_a_digit),
		cmocka_unit_test(one_word_makes_a_column_of_words),
		cmocka_unit_test(empty_cells_leave_no_blanks_at_the_end),
		cmocka_unit_test(empty_cells_do_not_turn_numbers_into_words),
		cmocka_unit_test(width_counts_characters),
		cmocka_unit_test(a_table_without_rows_is_its_heading),
		cmocka_unit_test(printing_twice_gives_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
