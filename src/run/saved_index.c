/* Reading an index: model.safetensors.index.json, and the files that it names. */
#include <stdlib.h>
#include <string.h>

#include "run/checkpoint.h"

/* A tensor of one of the files. */
typedef struct stored_tensor {
	uint32_t file, place;
	bool used; /* as a part of a tensor that is cut */
} stored_tensor;
typedef struct saved_reader {
	sw_checkpoint *c;
	const char *folder;
	sw_map files; /* name -> number */
	sw_map names; /* of a tensor in a file -> number in `stored` */
	SW_VEC(stored_tensor) stored;
} saved_reader;

static sw_status find_file(saved_reader *r, const char *name, uint32_t *file, sw_error *err)
{
	*file = sw_map_get(&r->files, name, strlen(name));
	if (*file != SW_ABSENT)
		return SW_OK;
	if (strchr(name, '/') || !name[0])
		return sw_fail(err, SW_ERR_INPUT, "'%.100s' must be a file of the same folder",
		               name);
	sw_text path = {0};
	sw_text_addf(&path, "%s/%s", r->folder, name);
	sw_status status = sw_saved_open_file(r->c, path.data, err);
	sw_text_clear(&path);
	if (status)
		return status;
	*file = (uint32_t)r->c->files.len - 1;
	sw_map_put(&r->files, name, strlen(name), *file);
	const sw_tensor_places *places = &r->c->files.data[*file].places;
	for (size_t i = 0; i < places->n; i++) {
		sw_vec_push(&r->stored, ((stored_tensor){*file, (uint32_t)i, false}));
		if (sw_map_intern(&r->names, places->items[i].name, strlen(places->items[i].name),
		                  (uint32_t)r->stored.len - 1) != r->stored.len - 1)
			return sw_fail(err, SW_ERR_INPUT, "tensor '%s' is in two files",
			               places->items[i].name);
	}
	return SW_OK;
}

static sw_status open_files(saved_reader *r, const json_t *map, sw_error *err)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)map, name, value)
	{
		uint32_t file;
		if (!json_is_string(value))
			return sw_fail(err, SW_ERR_INPUT, "weight_map: '%s' must name a file",
			               name);
		SW_TRY(find_file(r, json_string_value(value), &file, err));
		uint32_t at = sw_map_get(&r->names, name, strlen(name));
		if (at == SW_ABSENT || r->stored.data[at].file != file)
			return sw_fail(err, SW_ERR_INPUT, "tensor '%s' is not in %s, as it says",
			               name, json_string_value(value));
	}
	return SW_OK;
}

/* Return a list of integers in the range of int64_t; false if it is none. */
static bool read_integers(const json_t *list, size_t skipped, size_t n, int64_t *numbers)
{
	if (!json_is_array(list) || json_array_size(list) != skipped + n)
		return false;
	for (size_t i = 0; i < n; i++) {
		const json_t *item = json_array_get(list, skipped + i);
		if (!json_is_integer(item) || json_integer_value(item) < 0)
			return false;
		numbers[i] = json_integer_value(item);
	}
	return true;
}

/* A tensor that is cut into parts, or a piece of one. */
typedef struct saved_piece {
	const char *name; /* of the tensor */
	sw_shape shape;
	sw_part_grid grid;
	size_t n_parts;
	sw_saved_part *parts;
} saved_piece;

static sw_status read_grid(const json_t *entry, saved_piece *piece, sw_error *err)
{
	json_t *list;
	SW_TRY(sw_json_get_array(entry, "digits", piece->name, &list, err));
	if (json_array_size(list) > SW_MAX_ATOMS)
		return sw_fail(err, SW_ERR_INPUT, "tensor '%s': too many digits", piece->name);
	for (size_t k = 0; k < json_array_size(list); k++) {
		int64_t n[3];
		if (!read_integers(json_array_get(list, k), 0, 3, n) || n[0] > SW_MAX_RANK ||
		    n[2] > INT32_MAX)
			return sw_fail(err, SW_ERR_INPUT,
			               "tensor '%s': a digit must be [dimension, stride, size]",
			               piece->name);
		piece->grid.digits[piece->grid.n++] =
			(sw_grid_digit){(int32_t)n[0], (int32_t)n[2], n[1]};
	}
	return sw_grid_check(&piece->grid, piece->shape, err);
}

/* The first items of the list are the name under which the part is stored; coordinates follow. */
static sw_status read_part(saved_reader *r, const json_t *list, const saved_piece *piece,
                           sw_saved_part *part, sw_error *err)
{
	int64_t at[SW_MAX_ATOMS];
	const char *stored = json_string_value(json_array_get(list, 0));
	bool good = stored && read_integers(list, 1, (size_t)piece->grid.n, at);
	for (int32_t k = 0; k < piece->grid.n && good; k++) {
		good = at[k] < piece->grid.digits[k].size;
		part->coordinates[k] = (int32_t)at[k];
	}
	if (!good)
		return sw_fail(err, SW_ERR_INPUT,
		               "tensor '%s': a part must be [name, a coordinate per digit]",
		               piece->name);
	uint32_t n = sw_map_get(&r->names, stored, strlen(stored));
	if (n == SW_ABSENT)
		return sw_fail(err, SW_ERR_INPUT, "tensor '%s': its part '%s' is in no file",
		               piece->name, stored);
	const sw_saved_file *file = &r->c->files.data[r->stored.data[n].file];
	const sw_tensor_place *place = &file->places.items[r->stored.data[n].place];
	r->stored.data[n].used = true;
	part->file = r->stored.data[n].file;
	part->data = file->mapping.data + place->begin;
	sw_grid_dims(&piece->grid, part->coordinates, piece->shape, part->dims);
	sw_shape shape = {.type = piece->shape.type, .rank = piece->shape.rank, .dims = part->dims};
	if (!sw_shape_equal(shape, place->shape))
		return sw_fail(err, SW_ERR_INPUT,
		               "tensor '%s': its part '%s' has another type or shape than its "
		               "digits say",
		               piece->name, stored);
	return SW_OK;
}

static int by_coordinates(const void *x, const void *y)
{
	const sw_saved_part *a = x, *b = y;
	return memcmp(a->coordinates, b->coordinates, sizeof(a->coordinates));
}

/* Parts with different coordinates share no element, so all of them together are the whole if they
 * have as many. */
static sw_status check_parts(const saved_piece *piece, sw_error *err)
{
	int64_t elements = 0;
	qsort(piece->parts, piece->n_parts, sizeof(*piece->parts), by_coordinates);
	for (size_t i = 0; i < piece->n_parts; i++) {
		int64_t part = 1;
		for (int32_t d = 0; d < piece->shape.rank; d++)
			part *= piece->parts[i].dims[d];
		elements += part;
		if (i && by_coordinates(&piece->parts[i - 1], &piece->parts[i]) == 0)
			return sw_fail(err, SW_ERR_INPUT, "tensor '%s': a part occurs twice",
			               piece->name);
	}
	return elements == sw_shape_elements(piece->shape)
	               ? SW_OK
	               : sw_fail(err, SW_ERR_INPUT, "tensor '%s': parts are missing", piece->name);
}

static sw_status read_piece(saved_reader *r, const json_t *entry, saved_piece *piece, sw_error *err)
{
	json_t *list;
	SW_TRY(read_grid(entry, piece, err));
	SW_TRY(sw_json_get_array(entry, "parts", piece->name, &list, err));
	piece->n_parts = json_array_size(list);
	piece->parts = SW_NEW_N(&r->c->arena, sw_saved_part, piece->n_parts + 1);
	for (size_t i = 0; i < piece->n_parts; i++)
		SW_TRY(read_part(r, json_array_get(list, i), piece, &piece->parts[i], err));
	return check_parts(piece, err);
}

/* Append a piece's parts to those of the tensor. */
static void add_piece(saved_reader *r, sw_saved_tensor *tensor, const saved_piece *piece,
                      const sw_grid_piece *at)
{
	sw_saved_part *parts =
		SW_NEW_N(&r->c->arena, sw_saved_part, tensor->n_parts + piece->n_parts + 1);
	sw_part_grid *grid = SW_NEW(&r->c->arena, sw_part_grid);
	*grid = piece->grid;
	if (tensor->n_parts > 0)
		memcpy(parts, tensor->parts, sizeof(*parts) * tensor->n_parts);
	for (size_t i = 0; i < piece->n_parts; i++) {
		sw_saved_part *part = &parts[tensor->n_parts++];
		*part = piece->parts[i];
		part->piece = *at;
		part->grid = grid;
	}
	tensor->parts = parts;
}

/* Read the dimension along which the tensor is cut into n pieces, and how long each is: equally
 * long where nothing is said. */
static sw_status read_axis(saved_reader *r, const json_t *entry, const sw_saved_tensor *tensor,
                           size_t n, int32_t *dim, int64_t **lengths, sw_error *err)
{
	const json_t *axis = json_object_get(entry, "axis"),
		     *list = json_object_get(entry, "lengths");
	json_int_t number = json_is_integer(axis) ? json_integer_value(axis) : -1;
	bool good = number >= 0 && number < tensor->shape.rank && n >= 1;
	int64_t size = good ? tensor->shape.dims[number] : 0, left = size;
	*dim = (int32_t)number;
	*lengths = SW_NEW_N(&r->c->arena, int64_t, n + 1);
	if (list)
		good = good && read_integers(list, 0, n, *lengths);
	for (size_t i = 0; i < n && good; i++) {
		if (!list)
			(*lengths)[i] = size % (int64_t)n == 0 ? size / (int64_t)n : 0;
		good = (*lengths)[i] >= 1 && (*lengths)[i] <= left;
		left -= (*lengths)[i];
	}
	return good && left == 0
	               ? SW_OK
	               : sw_fail(err, SW_ERR_INPUT,
	                         "tensor '%s': axis must be a dimension that its pieces divide",
	                         tensor->name);
}

static sw_status read_pieces(saved_reader *r, const json_t *entry, const json_t *pieces,
                             sw_saved_tensor *tensor, sw_error *err)
{
	sw_grid_piece at = {0};
	int64_t dims[SW_MAX_RANK], *lengths;
	size_t n = json_array_size(pieces);
	SW_TRY(read_axis(r, entry, tensor, n, &at.dim, &lengths, err));
	memcpy(dims, tensor->shape.dims, sizeof(*dims) * (size_t)tensor->shape.rank);
	for (size_t i = 0; i < n; i++, at.start += at.length) {
		saved_piece piece = {.name = tensor->name, .shape = tensor->shape};
		piece.shape.dims = dims;
		at.length = dims[at.dim] = lengths[i];
		SW_TRY(read_piece(r, json_array_get(pieces, i), &piece, err));
		add_piece(r, tensor, &piece, &at);
	}
	return SW_OK;
}

static sw_status read_tensor(saved_reader *r, const char *name, const json_t *entry, sw_error *err)
{
	sw_saved_tensor tensor = {.name = sw_arena_text(&r->c->arena, name)};
	if (!json_is_object(entry))
		return sw_fail(err, SW_ERR_INPUT, "tensors: '%s' must be an object", name);
	SW_TRY(sw_tensor_entry_shape(entry, tensor.name, &r->c->arena, &tensor.shape, err));
	const json_t *pieces = json_object_get(entry, "pieces");
	if (pieces) {
		SW_TRY(read_pieces(r, entry, pieces, &tensor, err));
	} else {
		static const sw_grid_piece all = {0};
		saved_piece piece = {.name = tensor.name, .shape = tensor.shape};
		SW_TRY(read_piece(r, entry, &piece, err));
		add_piece(r, &tensor, &piece, &all);
	}
	sw_vec_push(&r->c->tensors, tensor);
	return SW_OK;
}

/* Tensors that are cut into parts have an entry; all others are whole. */
static sw_status read_tensors(saved_reader *r, const json_t *root, sw_error *err)
{
	const char *name;
	json_t *entry;
	json_object_foreach(json_object_get(root, "tensors"), name, entry)
		SW_TRY(read_tensor(r, name, entry, err));
	for (size_t i = 0; i < r->stored.len; i++) {
		stored_tensor at = r->stored.data[i];
		if (!at.used)
			sw_saved_add_whole(r->c, at.file,
			                   &r->c->files.data[at.file].places.items[at.place]);
	}
	return SW_OK;
}

static void read_hashes(saved_reader *r, const json_t *hashes)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)hashes, name, value)
	{
		uint32_t file = sw_map_get(&r->files, name, strlen(name));
		if (file != SW_ABSENT &&
		    !sw_saved_number(hashes, name, UINT64_MAX, &r->c->files.data[file].hash))
			r->c->files.data[file].hash = 0;
	}
}

sw_status sw_saved_read_index(const char *folder, const char *path, sw_checkpoint *c, sw_error *err)
{
	json_t *root;
	saved_reader r = {.c = c, .folder = folder};
	SW_TRY(sw_json_read(path, &root, err));
	const json_t *map = json_object_get(root, "weight_map");
	sw_status status = json_is_object(map)
	                           ? open_files(&r, map, err)
	                           : sw_fail(err, SW_ERR_INPUT,
	                                     "an index has an object 'weight_map': the file of "
	                                     "each tensor");
	if (status == SW_OK)
		status = read_tensors(&r, root, err);
	if (status == SW_OK)
		status = sw_saved_metadata(json_object_get(root, "metadata"), c, err);
	read_hashes(&r, json_object_get(root, "hashes"));
	json_decref(root);
	sw_map_clear(&r.files);
	sw_map_clear(&r.names);
	sw_vec_clear(&r.stored);
	return status;
}
