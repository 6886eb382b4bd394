/*
 * safetensors: 8 bytes of length, a JSON header, then the bytes of all tensors. A file is not
 * trusted: every offset, size and overlap is checked, and the tensors must cover the data exactly,
 * as the format demands.
 */
#include <stdlib.h>
#include <string.h>

#include "interpret/kernel.h"

static const struct {
	const char *name;
	sw_type type;
} type_names[] = {
	{"BOOL", SW_PRED},
	{"U8", SW_U8},
	{"I8", SW_S8},
	{"I16", SW_S16},
	{"U16", SW_U16},
	{"I32", SW_S32},
	{"U32", SW_U32},
	{"I64", SW_S64},
	{"U64", SW_U64},
	{"F16", SW_F16},
	{"BF16", SW_BF16},
	{"F32", SW_F32},
	{"F64", SW_F64},
	{"C64", SW_C64},
	{"F8_E4M3", SW_F8E4M3FN},
	{"F8_E5M2", SW_F8E5M2},
	{"F8_E8M0", SW_F8E8M0FNU},
};

static bool find_type(const char *name, sw_type *type)
{
	for (size_t i = 0; i < SW_COUNT(type_names); i++) {
		if (strcmp(type_names[i].name, name) == 0) {
			*type = type_names[i].type;
			return true;
		}
	}
	return false;
}

const char *sw_tensor_file_type(sw_type type)
{
	for (size_t i = 0; i < SW_COUNT(type_names); i++) {
		if (type_names[i].type == type)
			return type_names[i].name;
	}
	return NULL;
}

/* ---- reading ---------------------------------------------------------------------------- */

static sw_status bad(sw_error *err, const char *name, const char *what)
{
	return sw_fail(err, SW_ERR_INPUT, "tensor '%s': %s", name, what);
}

sw_status sw_tensor_entry_shape(const json_t *entry, const char *name, sw_arena *arena,
                                sw_shape *shape, sw_error *err)
{
	const char *type;
	json_t *list;
	sw_status status = sw_json_get_text(entry, "dtype", name, &type, err);
	if (status == SW_OK)
		status = sw_json_get_array(entry, "shape", name, &list, err);
	if (status != SW_OK)
		return status;
	if (!find_type(type, &shape->type))
		return sw_fail(err, SW_ERR_INPUT, "tensor '%s': type %s is not supported", name,
		               type);
	if (json_array_size(list) > SW_MAX_RANK)
		return bad(err, name, "too many dimensions");
	shape->rank = (int32_t)json_array_size(list);
	shape->bounded = 0;
	int64_t *dims = shape->rank ? SW_NEW_N(arena, int64_t, shape->rank) : NULL;
	int64_t bytes = sw_type_bytes(shape->type);
	for (int d = 0; d < shape->rank; d++) {
		const json_t *dim = json_array_get(list, (size_t)d);
		dims[d] = json_is_integer(dim) ? (int64_t)json_integer_value(dim) : -1;
		if (dims[d] < 0 || !sw_mul_i64(bytes, dims[d], &bytes))
			return bad(err, name,
			           "its shape must be a list of sizes whose product fits");
	}
	shape->dims = dims;
	return SW_OK;
}

static sw_status read_offsets(const json_t *entry, uint64_t available, sw_tensor_place *p,
                              sw_error *err)
{
	json_t *offsets;
	sw_status status = sw_json_get_array(entry, "data_offsets", p->name, &offsets, err);
	if (status != SW_OK)
		return status;
	const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
	if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
	    json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
		return bad(err, p->name, "data_offsets must be [begin, end]");
	p->begin = (uint64_t)json_integer_value(begin);
	p->end = (uint64_t)json_integer_value(end);
	if (p->end > available)
		return bad(err, p->name, "its data lies beyond the end of the file");
	if (p->end - p->begin != (uint64_t)sw_shape_bytes(p->shape))
		return bad(err, p->name, "its data is not as large as its shape says");
	return SW_OK;
}

static int by_begin(const void *x, const void *y)
{
	const sw_tensor_place *a = x, *b = y;
	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return a->end < b->end ? -1 : a->end > b->end;
}

static sw_status check_cover(const sw_tensor_place *parts, size_t n, uint64_t available,
                             sw_error *err)
{
	sw_tensor_place *sorted = sw_alloc(sizeof *sorted * (n + 1));
	uint64_t at = 0;
	sw_status status = SW_OK;
	memcpy(sorted, parts, sizeof *sorted * n);
	qsort(sorted, n, sizeof *sorted, by_begin);
	for (size_t i = 0; status == SW_OK && i < n; i++) {
		if (sorted[i].begin < at)
			status = bad(err, sorted[i].name,
			             "its data overlaps that of another tensor");
		else if (sorted[i].begin > at)
			status = bad(err, sorted[i].name, "there is a gap before its data");
		at = sorted[i].end;
	}
	if (status == SW_OK && at != available)
		status = sw_fail(err, SW_ERR_INPUT, "there is data after the last tensor");
	free(sorted);
	return status;
}

static sw_status read_entries(json_t *header, uint64_t available, sw_tensor_places *places,
                              sw_error *err)
{
	const char *name;
	json_t *entry;
	places->items = SW_NEW_N(&places->arena, sw_tensor_place, json_object_size(header) + 1);
	json_object_foreach(header, name, entry)
	{
		if (!json_is_object(entry))
			return strcmp(name, "__metadata__") == 0
			               ? sw_fail(err, SW_ERR_INPUT,
			                         "__metadata__ must be an object")
			               : bad(err, name, "must be an object");
		if (strcmp(name, "__metadata__") == 0) {
			places->metadata = json_incref(entry);
			continue;
		}
		sw_tensor_place *p = &places->items[places->n++];
		p->name = sw_arena_text(&places->arena, name);
		SW_TRY(sw_tensor_entry_shape(entry, p->name, &places->arena, &p->shape, err));
		SW_TRY(read_offsets(entry, available, p, err));
	}
	return check_cover(places->items, places->n, available, err);
}

static sw_status read_header(const char *text, size_t length, sw_tensor_places *places,
                             sw_error *err)
{
	uint64_t header_bytes = 0;
	json_t *header;
	if (length < 8)
		return sw_fail(
			err, SW_ERR_INPUT,
			"not a safetensors file: it is shorter than the length of its header");
	for (int i = 7; i >= 0; i--)
		header_bytes = header_bytes << 8 | (uint8_t)text[i];
	if (header_bytes > length - 8)
		return sw_fail(
			err, SW_ERR_INPUT,
			"not a safetensors file, or cut short: a header of %llu bytes in %zu",
			(unsigned long long)header_bytes, length);
	sw_status status = sw_json_parse(text + 8, (size_t)header_bytes, &header, err);
	if (status != SW_OK)
		return status;
	if (json_is_object(header))
		status = read_entries(header, length - 8 - header_bytes, places, err);
	else
		status = sw_fail(err, SW_ERR_INPUT, "a safetensors header must be a JSON object");
	json_decref(header);
	for (size_t i = 0; i < places->n; i++) {
		places->items[i].begin += 8 + header_bytes;
		places->items[i].end += 8 + header_bytes;
	}
	return status;
}

sw_status sw_tensor_places_read(const char *text, size_t length, sw_tensor_places *places,
                                sw_error *err)
{
	*places = (sw_tensor_places){0};
	sw_arena_init(&places->arena);
	sw_status status = read_header(text, length, places, err);
	if (status != SW_OK)
		sw_tensor_places_clear(places);
	return status;
}

void sw_tensor_places_clear(sw_tensor_places *places)
{
	json_decref(places->metadata);
	sw_arena_clear(&places->arena);
	*places = (sw_tensor_places){0};
}

/* The file takes names, shapes and metadata. */
static sw_status take_tensors(sw_tensor_places *places, const char *text, sw_tensor_file *file,
                              sw_error *err)
{
	file->arena = places->arena;
	file->metadata = places->metadata;
	sw_arena_init(&places->arena);
	places->metadata = NULL;
	for (size_t i = 0; i < places->n; i++) {
		const sw_tensor_place *place = &places->items[i];
		sw_named_tensor named = {.name = place->name};
		SW_TRY(sw_tensor_new(place->shape, false, &named.tensor, err));
		if (place->end > place->begin)
			memcpy(sw_tensor_data(named.tensor), text + place->begin,
			       place->end - place->begin);
		sw_vec_push(&file->tensors, named);
	}
	return SW_OK;
}

sw_status sw_tensor_file_read(const char *path, sw_tensor_file *file, sw_error *err)
{
	char *text;
	size_t length;
	sw_tensor_places places;
	*file = (sw_tensor_file){0};
	sw_arena_init(&file->arena);
	sw_status status = sw_file_read(path, &text, &length, err);
	if (status != SW_OK)
		return status;
	status = sw_tensor_places_read(text, length, &places, err);
	if (status == SW_OK) {
		status = take_tensors(&places, text, file, err);
		sw_tensor_places_clear(&places);
	}
	free(text);
	if (status == SW_OK)
		return SW_OK;
	sw_tensor_file_clear(file);
	return sw_error_in_file(err, status, path);
}

const sw_tensor *sw_tensor_file_get(const sw_tensor_file *file, const char *name)
{
	for (size_t i = 0; i < file->tensors.len; i++) {
		if (strcmp(file->tensors.data[i].name, name) == 0)
			return &file->tensors.data[i].tensor;
	}
	return NULL;
}

void sw_tensor_file_clear(sw_tensor_file *file)
{
	for (size_t i = 0; i < file->tensors.len; i++)
		sw_tensor_drop(&file->tensors.data[i].tensor);
	sw_vec_clear(&file->tensors);
	json_decref(file->metadata);
	file->metadata = NULL; /* as after reading an empty file: clearing again is harmless */
	sw_arena_clear(&file->arena);
}

/* ---- writing ---------------------------------------------------------------------------- */

static json_t *describe(sw_tensor tensor, uint64_t begin)
{
	json_t *dims = json_array();
	for (int d = 0; d < tensor.shape.rank; d++)
		json_array_append_new(dims, json_integer(tensor.shape.dims[d]));
	uint64_t end = begin + (uint64_t)sw_shape_bytes(tensor.shape);
	return json_pack("{s:s, s:o, s:[I,I]}", "dtype", sw_tensor_file_type(tensor.shape.type),
	                 "shape", dims, "data_offsets", (json_int_t)begin, (json_int_t)end);
}

static sw_status make_header(const sw_named_tensor *tensors, size_t n, json_t *metadata,
                             sw_text *text, sw_error *err)
{
	json_t *header = json_object();
	if (metadata)
		json_object_set(header, "__metadata__", metadata);
	uint64_t at = 0;
	sw_status status = SW_OK;
	for (size_t i = 0; status == SW_OK && i < n; i++) {
		sw_tensor tensor = tensors[i].tensor;
		if (!sw_tensor_file_type(tensor.shape.type))
			status = sw_fail(err, SW_ERR_INPUT,
			                 "tensor '%s': safetensors has no type %s", tensors[i].name,
			                 sw_type_name(tensor.shape.type));
		else if (json_object_get(header, tensors[i].name) ||
		         json_object_set_new(header, tensors[i].name, describe(tensor, at)) != 0)
			status = sw_fail(err, SW_ERR_INPUT,
			                 "tensor '%s': its name is not UTF-8 or occurs twice",
			                 tensors[i].name);
		else
			at += (uint64_t)sw_shape_bytes(tensor.shape);
	}
	char *dumped = status == SW_OK ? json_dumps(header, JSON_COMPACT) : NULL;
	if (dumped)
		sw_text_add(text, dumped);
	else if (status == SW_OK)
		status = sw_fail(err, SW_ERR_INTERNAL, "the header could not be written");
	free(dumped);
	json_decref(header);
	while (status == SW_OK && text->len % 8)
		sw_text_add(text, " ");
	return status;
}

static sw_status put_all(const char *path, const sw_text *header, const sw_named_tensor *tensors,
                         size_t n, sw_error *err)
{
	sw_sink *sink;
	sw_status status = sw_sink_open(path, &sink, err);
	if (status != SW_OK)
		return status;
	char length[8];
	for (int i = 0; i < 8; i++)
		length[i] = (char)((uint64_t)header->len >> (8 * i) & 0xff);
	sw_sink_put(sink, length, 8);
	sw_sink_put(sink, header->data, header->len);
	for (size_t i = 0; i < n; i++)
		sw_sink_put(sink, sw_tensor_data(tensors[i].tensor),
		            (size_t)sw_shape_bytes(tensors[i].tensor.shape));
	return sw_sink_close(sink, err);
}

sw_status sw_tensor_file_write(const char *path, const sw_named_tensor *tensors, size_t n,
                               json_t *metadata, sw_error *err)
{
	sw_text header = {0};
	sw_status status = make_header(tensors, n, metadata, &header, err);
	if (status == SW_OK)
		status = put_all(path, &header, tensors, n, err);
	sw_text_clear(&header);
	return status;
}
