/* safetensors files: written tensors are read back, and broken files are rejected with a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "interpret/interpret.h"

static char path[] = SW_BINARY_DIR "/safetensors_XXXXXX";

static int make_file(void **state)
{
	(void)state;
	int fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static void check(sw_status status, const sw_error *err)
{
	if (status != SW_OK)
		fail_msg("%s", err->message);
}

static void tensors_are_read_back(void **state)
{
	(void)state;
	static const sw_type types[] = {SW_PRED, SW_S8,  SW_U16, SW_S64, SW_BF16,
	                                SW_F16,  SW_F32, SW_F64, SW_C64};
	static const int64_t dims[][3] = {{2, 3, 1}, {0, 4, 1}, {5, 1, 1}};
	sw_named_tensor tensors[SW_COUNT(types) * 4];
	char names[SW_COUNT(tensors)][16];
	sw_error err = {0};
	size_t n = 0;
	for (size_t t = 0; t < SW_COUNT(types); t++) {
		for (int32_t rank = 0; rank < 4; rank++, n++) {
			sw_shape shape = {types[t], rank, 0, dims[t % SW_COUNT(dims)]};
			snprintf(names[n], sizeof names[n], "t%zu.\"%d\"", t, rank);
			tensors[n].name = names[n];
			check(sw_tensor_new(shape, true, &tensors[n].tensor, &err), &err);
			for (int64_t e = 0; e < sw_shape_elements(shape); e++)
				sw_element_set(types[t], sw_tensor_data(tensors[n].tensor), e,
				               (double)(e % 2));
		}
	}
	sw_tensor_file file;
	check(sw_tensor_file_write(path, tensors, n, NULL, &err), &err);
	check(sw_tensor_file_read(path, &file, &err), &err);
	assert_int_equal(file.tensors.len, n);
	for (size_t i = 0; i < n; i++) {
		const sw_tensor *read = sw_tensor_file_get(&file, names[i]);
		assert_non_null(read);
		sw_difference d = sw_tensor_compare(*read, tensors[i].tensor);
		assert_true(d.relative == 0 && d.first_bad == -1);
		sw_tensor_drop(&tensors[i].tensor);
	}
	assert_null(sw_tensor_file_get(&file, "t"));
	sw_tensor_file_clear(&file);
}

static void write_raw(uint64_t header_bytes, const char *header, size_t data_bytes)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	fwrite(&header_bytes, 1, 8, f); /* little-endian, as everywhere here */
	fwrite(header, 1, strlen(header), f);
	for (size_t i = 0; i < data_bytes; i++)
		fputc(0, f);
	fclose(f);
}

static void broken_files_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *header;
		size_t data_bytes;
		const char *message; /* a part of it */
	} cases[] = {
		{"{", 0, ""},
		{"[]", 0, "JSON object"},
		{"{\"a\":1}", 0, "must be an object"},
		{"{\"a\":{}}", 0, "dtype"},
		{"{\"a\":{\"dtype\":\"F99\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "F99"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "shape"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", 4, "shape"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,"
	         "0]}}",
	         0, "fits"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],\"data_"
	         "offsets\":"
	         "[0,4]}}",
	         4, "dimensions"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
	         "not as large"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4, "beyond"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4,
	         "data_offsets"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4,
	         "data_offsets"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4,
	         "data_offsets"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "gap"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 8,
	         "after the last"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
	         "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
	         8, "overlaps"},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_error err = {0};
		sw_tensor_file file;
		write_raw(strlen(cases[i].header), cases[i].header, cases[i].data_bytes);
		assert_int_equal(sw_tensor_file_read(path, &file, &err), SW_ERR_INPUT);
		if (!strstr(err.message, cases[i].message))
			fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].header, err.message,
			         cases[i].message);
		assert_string_equal(err.file, path);
	}
}

static void short_files_are_refused(void **state)
{
	(void)state;
	sw_error err = {0};
	sw_tensor_file file;
	write_raw(UINT64_MAX, "{}", 0);
	assert_int_equal(sw_tensor_file_read(path, &file, &err), SW_ERR_INPUT);
	write_raw(3, "{}", 0);
	assert_int_equal(sw_tensor_file_read(path, &file, &err), SW_ERR_INPUT);
	FILE *f = fopen(path, "wb");
	fclose(f);
	assert_int_equal(sw_tensor_file_read(path, &file, &err), SW_ERR_INPUT);
	write_raw(2, "{}", 0);
	check(sw_tensor_file_read(path, &file, &err), &err);
	assert_int_equal(file.tensors.len, 0);
	sw_tensor_file_clear(&file);
}

static void types_without_a_safetensors_name_are_refused(void **state)
{
	(void)state;
	sw_error err = {0};
	sw_named_tensor tensors[2] = {{.name = "a"}, {.name = "a"}};
	check(sw_tensor_new((sw_shape){SW_C128, 0, 0, NULL}, true, &tensors[0].tensor, &err), &err);
	check(sw_tensor_new((sw_shape){SW_F32, 0, 0, NULL}, true, &tensors[1].tensor, &err), &err);
	assert_int_equal(sw_tensor_file_write(path, tensors, 1, NULL, &err), SW_ERR_INPUT);
	assert_non_null(strstr(err.message, "c128"));
	sw_tensor_drop(&tensors[0].tensor);
	tensors[0].tensor = sw_tensor_keep(tensors[1].tensor);
	assert_int_equal(sw_tensor_file_write(path, tensors, 2, NULL, &err), SW_ERR_INPUT);
	assert_non_null(strstr(err.message, "twice"));
	sw_tensor_drop(&tensors[0].tensor);
	sw_tensor_drop(&tensors[1].tensor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tensors_are_read_back),
		cmocka_unit_test(broken_files_are_refused),
		cmocka_unit_test(short_files_are_refused),
		cmocka_unit_test(types_without_a_safetensors_name_are_refused),
	};
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
