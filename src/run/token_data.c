/* Read tokens from files, and make batches of them. */
#include "run/run.h"

#include <string.h>

#include "run/npy.h"

/* A file that has been read. */
typedef struct source {
	const char *path;
	char *text;
	size_t length;
	bool is_npy;
	sw_npy npy;
} source;

static int64_t count_of(const source *s)
{
	return s->is_npy ? s->npy.count : (int64_t)s->length;
}

static int64_t token_of(const source *s, int64_t i)
{
	if (!s->is_npy)
		return (int64_t)(uint8_t)s->text[i];
	int64_t item = 0; /* the data need not be aligned */
	size_t bytes = (size_t)sw_type_bytes(s->npy.type);
	memcpy(&item, s->npy.data + (size_t)i * bytes, bytes);
	/* above 2^53 a number is rounded, and outside every vocabulary all the same */
	double token = sw_element_get(s->npy.type, &item, 0);
	return token < 0x1p62 ? (int64_t)token : INT64_MAX;
}

static sw_status check_npy(const sw_npy *npy, sw_error *err)
{
	sw_type_kind kind = sw_type_kind_of(npy->type);
	if (kind != SW_KIND_SIGNED && kind != SW_KIND_UNSIGNED)
		return sw_fail(err, SW_ERR_INPUT,
		               "its items are %s; tokens must be little-endian integers, such as "
		               "dtype uint16",
		               sw_type_name(npy->type));
	if (npy->rank != 1)
		return sw_fail(err, SW_ERR_INPUT,
		               "it has %d dimensions; tokens must have one dimension: flatten them",
		               npy->rank);
	return SW_OK;
}

static sw_status read_source(const char *path, source *s, sw_error *err)
{
	s->path = path;
	sw_status status = sw_file_read(path, &s->text, &s->length, err);
	if (status)
		return sw_error_in_file(err, status, path);
	s->is_npy = sw_npy_recognise(s->text, s->length);
	if (s->is_npy)
		status = sw_npy_parse(s->text, s->length, &s->npy, err);
	if (s->is_npy && status == SW_OK)
		status = check_npy(&s->npy, err);
	return sw_error_in_file(err, status, path);
}

static sw_status check_tokens(const source *s, int64_t vocabulary, sw_error *err)
{
	int64_t count = count_of(s);
	if (!s->is_npy && vocabulary > UINT8_MAX)
		return SW_OK;
	for (int64_t i = 0; i < count; i++) {
		int64_t token = token_of(s, i);
		if (token < 0 || token >= vocabulary)
			return sw_fail_at(
				err, SW_ERR_INPUT, s->path, 0, 0,
				"token %lld is %lld, and the program's vocabulary is 0 to %lld",
				(long long)i, (long long)token, (long long)vocabulary - 1);
	}
	return SW_OK;
}

static bool any_is_npy(const source *sources, int n)
{
	for (int i = 0; i < n; i++)
		if (sources[i].is_npy)
			return true;
	return false;
}

/* Concatenate all tokens: as bytes if all files are bytes, otherwise as int32_t. */
static sw_status join(const source *sources, int n, sw_data *data, sw_error *err)
{
	bool wide = any_is_npy(sources, n);
	size_t width = wide ? sizeof(int32_t) : 1;
	uint8_t *all = sw_try_alloc((size_t)data->tokens * width + 1);
	if (!all)
		return sw_fail(err, SW_ERR_IO, "no memory for %lld tokens",
		               (long long)data->tokens);
	int64_t at = 0;
	for (int k = 0; k < n; k++) {
		if (!wide)
			memcpy(all + at, sources[k].text, sources[k].length);
		for (int64_t i = 0; wide && i < count_of(&sources[k]); i++)
			((int32_t *)(void *)all)[at + i] = (int32_t)token_of(&sources[k], i);
		at += count_of(&sources[k]);
	}
	data->values = wide ? (int32_t *)(void *)all : NULL;
	data->bytes = wide ? NULL : all;
	return SW_OK;
}

static sw_status read_sources(const char *const *paths, int n, int64_t vocabulary, source *sources,
                              sw_data *data, sw_error *err)
{
	sw_status status = SW_OK;
	for (int i = 0; i < n && status == SW_OK; i++) {
		status = read_source(paths[i], &sources[i], err);
		if (status == SW_OK)
			status = check_tokens(&sources[i], vocabulary, err);
		if (status == SW_OK)
			data->tokens += count_of(&sources[i]);
	}
	return status;
}

sw_status sw_data_open(const char *const *paths, int n_paths, int64_t vocabulary,
                       int64_t row_tokens, sw_data *data, sw_error *err)
{
	*data = (sw_data){0};
	sw_arena_init(&data->arena);
	data->path = n_paths ? sw_arena_text(&data->arena, paths[0]) : "";
	source *sources = sw_alloc((size_t)SW_MAX(n_paths, 1) * sizeof(*sources));
	sw_status status =
		read_sources(paths, n_paths, SW_MIN(vocabulary, INT32_MAX), sources, data, err);
	if (status == SW_OK && data->tokens < row_tokens)
		status = sw_fail_at(
			err, SW_ERR_INPUT, data->path, 0, 0,
			"%lld tokens are too few: one row of the program's batch takes %lld",
			(long long)data->tokens, (long long)row_tokens);
	if (status == SW_OK)
		status = join(sources, n_paths, data, err);
	for (int i = 0; i < n_paths; i++)
		free(sources[i].text);
	free(sources);
	if (status)
		sw_data_close(data);
	return status;
}

void sw_data_close(sw_data *data)
{
	free(data->values);
	free((void *)(uintptr_t)data->bytes);
	sw_arena_clear(&data->arena);
	*data = (sw_data){0};
}

void sw_data_batch(const sw_data *data, uint64_t seed, int64_t step, int64_t rows, int64_t length,
                   int32_t *out)
{
	double positions = (double)(data->tokens - length + 1);
	for (int64_t row = 0; row < rows; row++) {
		int64_t begin =
			(int64_t)(positions * sw_random_unit(seed, (uint64_t)step, (uint64_t)row));
		begin = SW_MIN(begin, data->tokens - length);
		for (int64_t i = 0; i < length; i++)
			out[row * length + i] =
				data->values ? data->values[begin + i] : data->bytes[begin + i];
	}
}
