/* Tokens from files: bytes, .npy, and rejected files. */
#include "fixtures.h"

#include <string.h>

/* Write a .npy file: version, header as given, data. */
static size_t write_npy(char *out, int version, const char *header, const void *data, size_t bytes)
{
	size_t fixed = version == 1 ? 10 : 12, length = strlen(header);
	memcpy(out, "\x93NUMPY", 6);
	out[6] = (char)version;
	memset(out + 7, 0, 5);
	out[8] = (char)length;
	memcpy(out + fixed, header, length);
	memcpy(out + fixed + length, data, bytes);
	return fixed + length + bytes;
}

static sw_status open_file(const char *path, int64_t vocabulary, int64_t row, sw_data *data,
                           sw_error *err)
{
	return sw_data_open(&path, 1, vocabulary, row, data, err);
}

static void bytes_are_tokens(void **state)
{
	(void)state;
	sw_data data;
	sw_error err;
	const char *path = scratch_file("a", "hello \xff", 7);
	assert_int_equal(open_file(path, 256, 7, &data, &err), SW_OK);
	assert_int_equal(data.tokens, 7);
	assert_null(data.values);
	int32_t row[7];
	sw_data_batch(&data, 0, 0, 1, 7, row);
	assert_int_equal(row[0], 'h');
	assert_int_equal(row[6], 0xff);
	sw_data_close(&data);
}

static void several_files_are_joined(void **state)
{
	(void)state;
	char a[128], b[128], npy[256];
	static const uint16_t numbers[] = {300, 301};
	size_t length = write_npy(
		npy, 1, "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }", numbers, 4);
	snprintf(a, sizeof(a), "%s", scratch_file("a", "xyz", 3));
	snprintf(b, sizeof(b), "%s", scratch_file("b", npy, length));
	const char *paths[] = {a, b};
	sw_data data;
	sw_error err;
	assert_int_equal(sw_data_open(paths, 2, 400, 5, &data, &err), SW_OK);
	assert_int_equal(data.tokens, 5);
	assert_int_equal(data.values[2], 'z');
	assert_int_equal(data.values[3], 300);
	assert_int_equal(data.values[4], 301);
	sw_data_close(&data);
}

static void npy_of_every_kind_is_read(void **state)
{
	(void)state;
	static const uint8_t u1[] = {1, 2, 200};
	static const int16_t i2[] = {1, 2, 200};
	static const uint16_t u2[] = {1, 2, 200};
	static const int32_t i4[] = {1, 2, 200};
	static const uint32_t u4[] = {1, 2, 200};
	static const int64_t i8[] = {1, 2, 200};
	static const uint64_t u8[] = {1, 2, 200};
	static const struct {
		const char *kind;
		const void *data;
		size_t bytes;
	} cases[] = {
		{"|u1", u1, sizeof(u1)}, {"<i2", i2, sizeof(i2)}, {"<u2", u2, sizeof(u2)},
		{"<i4", i4, sizeof(i4)}, {"<u4", u4, sizeof(u4)}, {"<i8", i8, sizeof(i8)},
		{"<u8", u8, sizeof(u8)},
	};
	for (int version = 1; version <= 3; version++) {
		for (size_t i = 0; i < SW_COUNT(cases); i++) {
			char header[128], npy[256];
			snprintf(header, sizeof(header),
			         "{'descr': '%s', 'fortran_order': False, 'shape': (3,), }\n",
			         cases[i].kind);
			size_t length =
				write_npy(npy, version, header, cases[i].data, cases[i].bytes);
			sw_data data;
			sw_error err;
			assert_int_equal(
				open_file(scratch_file("a", npy, length), 256, 1, &data, &err),
				SW_OK);
			assert_int_equal(data.tokens, 3);
			assert_int_equal(data.values[0], 1);
			assert_int_equal(data.values[2], 200);
			sw_data_close(&data);
		}
	}
}

static void assert_refused(const char *bytes, size_t length, int64_t vocabulary, int64_t row,
                           const char *part)
{
	sw_data data;
	sw_error err = {0};
	const char *path = scratch_file("a", bytes, length);
	assert_int_equal(open_file(path, vocabulary, row, &data, &err), SW_ERR_INPUT);
	assert_string_equal(err.file, path);
	if (!strstr(err.message, part))
		fail_msg("\"%s\" lacks \"%s\"", err.message, part);
}

static void bad_npy_is_refused(void **state)
{
	(void)state;
	static const int32_t numbers[] = {1, -2, 3};
	static const struct {
		const char *header, *message;
	} cases[] = {
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
	         "must be little-endian integers"},
		{"{'descr': '>i4', 'fortran_order': False, 'shape': (3,), }",
	         "they must be little-endian numbers"},
		{"{'descr': '<i4', 'fortran_order': False, 'shape': (3, 1), }",
	         "must have one dimension"},
		{"{'descr': '<i4', 'fortran_order': False, 'shape': (), }",
	         "must have one dimension"},
		{"{'descr': '<i4', 'fortran_order': False}", "its shape is missing"},
		{"{'descr': '<i4', 'fortran_order': False, 'shape': (3, }", "its shape is (3, }"},
		{"{'descr': '<i4', 'fortran_order': False, 'shape': (-3,), }",
	         "its shape is (-3,)"},
		{"{'descr': '<i4', 'fortran_order': True, 'shape': (1, 3), }",
	         "must have one dimension"},
		{"{}", "its items are unknown"},
		{"{'descr': '<i4', 'fortran_order': False, 'shape': (4,), }",
	         "the file ends early: 4 items"},
		{"{'descr': '<i4', 'fortran_order': False, 'shape': (9223372036854775807,), }",
	         "the file ends early"},
		{"{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }", "token 1 is -2"},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		char npy[256];
		size_t length = write_npy(npy, 1, cases[i].header, numbers, sizeof(numbers));
		assert_refused(npy, length, 256, 1, cases[i].message);
	}
	char npy[256];
	size_t length = write_npy(npy, 1, cases[0].header, numbers, sizeof(numbers));
	assert_refused(npy, 8, 256, 1, "ends in the header");
	assert_refused(npy, 40, 256, 1, "ends in the header");
	assert_true(length > 40);
}

static void tokens_outside_the_vocabulary_are_named(void **state)
{
	(void)state;
	assert_refused("ab\x7f", 3, 100, 1,
	               "token 2 is 127, and the program's vocabulary is 0 to 99");
}

static void data_shorter_than_a_row_is_refused(void **state)
{
	(void)state;
	assert_refused("abc", 3, 256, 4,
	               "3 tokens are too few: one row of the program's batch takes 4");
	assert_refused("", 0, 256, 1, "0 tokens are too few");
}

static void a_missing_file_is_named(void **state)
{
	(void)state;
	sw_data data;
	sw_error err = {0};
	const char *path = "no/such/file";
	assert_int_not_equal(sw_data_open(&path, 1, 256, 1, &data, &err), SW_OK);
	assert_string_equal(err.file, path);
}

static void batches_are_windows_that_seed_step_and_row_decide(void **state)
{
	(void)state;
	char text[1000];
	int32_t a[4 * 10], b[4 * 10];
	sw_data data;
	sw_error err;
	for (int i = 0; i < 1000; i++)
		text[i] = (char)(i % 251);
	assert_int_equal(open_file(scratch_file("a", text, sizeof(text)), 256, 10, &data, &err),
	                 SW_OK);
	sw_data_batch(&data, 1, 2, 4, 10, a);
	sw_data_batch(&data, 1, 2, 4, 10, b);
	assert_memory_equal(a, b, sizeof(a));
	for (int row = 0; row < 4; row++)
		for (int i = 1; i < 10; i++)
			assert_int_equal(a[row * 10 + i], (a[row * 10] + i) % 251);
	sw_data_batch(&data, 1, 3, 4, 10, b);
	assert_memory_not_equal(a, b, sizeof(a));
	sw_data_batch(&data, 2, 2, 4, 10, b);
	assert_memory_not_equal(a, b, sizeof(a));
	sw_data_close(&data);
}

static int remove_files(void **state)
{
	(void)state;
	scratch_clear();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_tokens),
		cmocka_unit_test(several_files_are_joined),
		cmocka_unit_test(npy_of_every_kind_is_read),
		cmocka_unit_test(bad_npy_is_refused),
		cmocka_unit_test(tokens_outside_the_vocabulary_are_named),
		cmocka_unit_test(data_shorter_than_a_row_is_refused),
		cmocka_unit_test(a_missing_file_is_named),
		cmocka_unit_test(batches_are_windows_that_seed_step_and_row_decide),
	};
	return cmocka_run_group_tests(tests, NULL, remove_files);
}
