/*
 * Writing a checkpoint: every rank writes the parts that it has, rank 0 the index.
 *
 * Of the devices that hold the same part of a value one writes it. Which one follows from the
 * value's place among all values, so that copies that many devices hold are written by all of them
 * in equal shares, and each rank knows what every other one writes.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/checkpoint.h"

/* ---- what is saved ---------------------------------------------------------------------- */

void sw_saving_add(sw_saving *s, const sw_held_value *value, const sw_input_info *info)
{
	sw_vec_push(&s->values, ((struct sw_saved_value){*value, info->name, info->init.part}));
	s->total_bytes += (double)sw_shape_bytes(value->shape);
}

void sw_saving_add_parts(sw_saving *s, const sw_parts *parts, const sw_sidecar *sidecar)
{
	for (uint32_t i = 0; i < parts->n_inputs; i++) {
		sw_held_value value = sw_held_part(parts, i);
		if (sw_checkpoint_keeps(parts->local, sidecar, i))
			sw_saving_add(s, &value, &sidecar->inputs[i]);
	}
}

void sw_saving_clear(sw_saving *s)
{
	sw_vec_clear(&s->values);
}

sw_status sw_saving_check(const sw_saving *s, sw_error *err)
{
	for (size_t i = 0; i < s->values.len; i++) {
		sw_type type = s->values.data[i].held.shape.type;
		if (!sw_tensor_file_type(type))
			return sw_fail(
				err, SW_ERR_INPUT,
				"the state can't be saved: safetensors has no type %s, which "
				"'%s' has",
				sw_type_name(type), s->values.data[i].name);
	}
	return SW_OK;
}

/* ---- who writes what -------------------------------------------------------------------- */

/* A value of the state, and how the devices hold it. */
typedef struct saved_value {
	const sw_held_value *held;
	const char *name;
	sw_shape shape;
	sw_part_grid grid;
	int32_t atom_of[SW_MAX_ATOMS];
	int64_t writer; /* among the devices that hold the same part, in their order */
} saved_value;

static int64_t copies_of(const sw_atoms *atoms, const sw_layout *layout)
{
	int64_t copies = 1;
	for (int32_t a = 0; a < layout->n; a++)
		if (layout->state[a].kind == SW_STATE_B)
			copies *= atoms->size[a];
	return copies;
}

/* The number of a device among those that hold the same part. */
static int64_t copy_number(const sw_atoms *atoms, const sw_layout *layout, int64_t device)
{
	int64_t number = 0;
	for (int32_t a = 0; a < layout->n; a++)
		if (layout->state[a].kind == SW_STATE_B)
			number = number * atoms->size[a] + sw_atoms_coordinate(atoms, device, a);
	return number;
}

/* Call these in the order of the values: *before counts the bytes of earlier ones. */
static saved_value describe(const sw_saving *s, size_t i, double *before)
{
	const sw_held_value *held = &s->values.data[i].held;
	saved_value v = {.held = held, .name = s->values.data[i].name, .shape = held->shape};
	int64_t copies = copies_of(held->atoms, held->layout);
	sw_grid_of_layout(held->atoms, held->layout, &v.grid, v.atom_of);
	v.writer = (int64_t)(*before / SW_MAX(s->total_bytes, 1) * (double)copies);
	v.writer = SW_MIN(v.writer, copies - 1);
	*before += (double)sw_shape_bytes(v.shape);
	return v;
}

/* Find the coordinates of a rank's part. Return false if it has none, if another one writes it, or
 * if all of it is padding. */
static bool writes(const saved_value *v, int64_t rank, int32_t *coordinates, int64_t *dims)
{
	const sw_atoms *atoms = v->held->atoms;
	int64_t device = rank - v->held->first;
	if (device < 0 || device >= sw_atoms_devices(atoms) ||
	    !sw_layout_has_part(atoms, v->held->layout, device) ||
	    copy_number(atoms, v->held->layout, device) != v->writer)
		return false;
	for (int32_t k = 0; k < v->grid.n; k++)
		coordinates[k] = sw_atoms_coordinate(atoms, device, v->atom_of[k]);
	sw_grid_dims(&v->grid, coordinates, v->shape, dims);
	for (int32_t d = 0; d < v->shape.rank; d++)
		if (dims[d] == 0)
			return v->grid.n == 0; /* an empty value is stored, an empty part is not */
	return true;
}

/* The name under which a part is stored: the value's, if it is whole. */
static void add_stored_name(const saved_value *v, const int32_t *coordinates, sw_text *text)
{
	int64_t number = 0;
	sw_text_add(text, v->name);
	if (v->grid.n == 0)
		return;
	for (int32_t k = 0; k < v->grid.n; k++)
		number = number * v->grid.digits[k].size + coordinates[k];
	sw_text_addf(text, ".part-%" PRId64 "-of-%" PRId64, number + 1, sw_grid_parts(&v->grid));
}

static void add_file_name(int64_t rank, int64_t size, sw_text *text)
{
	sw_text_addf(text, "model-%05" PRId64 "-of-%05" PRId64 ".safetensors", rank + 1, size);
}

/* ---- a rank's file ---------------------------------------------------------------------- */

typedef struct own_parts {
	sw_arena arena;
	SW_VEC(sw_named_tensor) tensors;
} own_parts;

/* Take the rank's part of a value without padding: as it is, or a copy. */
static sw_status take_part(own_parts *own, const char *name, sw_shape shape, sw_tensor part,
                           sw_error *err)
{
	sw_named_tensor named = {.name = name};
	if (sw_shape_equal(shape, part.shape)) {
		named.tensor = sw_tensor_keep(part);
	} else {
		SW_TRY(sw_tensor_new(shape, false, &named.tensor, err));
		sw_shape_crop(part.shape, sw_tensor_data(part), shape,
		              sw_tensor_data(named.tensor));
	}
	sw_vec_push(&own->tensors, named);
	return SW_OK;
}

static sw_status take_parts(const sw_saving *s, int64_t rank, const sw_tensor *carried,
                            own_parts *own, sw_error *err)
{
	double before = 0;
	for (size_t i = 0; i < s->values.len; i++) {
		saved_value v = describe(s, i, &before);
		int32_t coordinates[SW_MAX_ATOMS];
		int64_t *dims = SW_NEW_N(&own->arena, int64_t, SW_MAX_RANK);
		if (!writes(&v, rank, coordinates, dims))
			continue;
		sw_text name = {0};
		add_stored_name(&v, coordinates, &name);
		sw_shape shape = {.type = v.shape.type, .rank = v.shape.rank, .dims = dims};
		sw_status status = take_part(own, sw_arena_text(&own->arena, name.data), shape,
		                             carried[v.held->input], err);
		sw_text_clear(&name);
		SW_TRY(status);
	}
	return SW_OK;
}

static uint64_t hash_parts(const own_parts *own)
{
	uint64_t hash = 0;
	for (size_t i = 0; i < own->tensors.len; i++) {
		const sw_tensor *tensor = &own->tensors.data[i].tensor;
		hash = sw_saved_hash_add(hash, sw_tensor_data(*tensor),
		                         (size_t)sw_shape_bytes(tensor->shape));
	}
	return hash;
}

static sw_status write_parts(const sw_saving *s, int64_t rank, const own_parts *own,
                             const char *folder, sw_error *err)
{
	sw_text name = {0}, path = {0};
	add_file_name(rank, s->n_ranks, &name);
	sw_folder_add_part(folder, s->about.step, name.data, &path);
	json_t *metadata = sw_checkpoint_metadata(&s->about);
	json_object_set_new(metadata, "part", json_string(name.data));
	sw_status status =
		sw_tensor_file_write(path.data, own->tensors.data, own->tensors.len, metadata, err);
	json_decref(metadata);
	sw_text_clear(&name);
	sw_text_clear(&path);
	return status;
}

sw_status sw_saving_write(const sw_saving *s, int64_t rank, const sw_tensor *carried,
                          const char *folder, uint64_t *hash, sw_error *err)
{
	own_parts own = {0};
	sw_arena_init(&own.arena);
	sw_status status = take_parts(s, rank, carried, &own, err);
	if (status == SW_OK)
		status = write_parts(s, rank, &own, folder, err);
	*hash = hash_parts(&own);
	for (size_t i = 0; i < own.tensors.len; i++)
		if (own.tensors.data[i].tensor.buffer)
			sw_tensor_drop(&own.tensors.data[i].tensor);
	sw_vec_clear(&own.tensors);
	sw_arena_clear(&own.arena);
	return status;
}

/* ---- the index -------------------------------------------------------------------------- */

typedef struct index_writer {
	int64_t size; /* ranks */
	json_t *map, *tensors;
} index_writer;

static json_t *describe_shape(const saved_value *v, int32_t axis, int64_t size)
{
	json_t *dims = json_array();
	for (int32_t d = 0; d < v->shape.rank; d++)
		json_array_append_new(dims, json_integer(d == axis ? size : v->shape.dims[d]));
	return json_pack("{s:s, s:o}", "dtype", sw_tensor_file_type(v->shape.type), "shape", dims);
}

static void add_digits(const saved_value *v, json_t *to)
{
	json_t *digits = json_array();
	for (int32_t k = 0; k < v->grid.n; k++)
		json_array_append_new(digits, json_pack("[i,I,i]", v->grid.digits[k].dim,
		                                        (json_int_t)v->grid.digits[k].stride,
		                                        v->grid.digits[k].size));
	json_object_set_new(to, "digits", digits);
	json_object_set_new(to, "parts", json_array());
}

static json_t *describe_part(const saved_value *v, const char *stored, const int32_t *coordinates)
{
	json_t *list = json_pack("[s]", stored);
	for (int32_t k = 0; k < v->grid.n; k++)
		json_array_append_new(list, json_integer(coordinates[k]));
	return list;
}

/* Add the parts of a value, to what describes it (NULL: it is whole). */
static sw_status add_parts(const index_writer *w, const saved_value *v, json_t *described,
                           sw_error *err)
{
	sw_status status = SW_OK;
	for (int64_t rank = 0; rank < w->size && status == SW_OK; rank++) {
		int32_t coordinates[SW_MAX_ATOMS];
		int64_t dims[SW_MAX_RANK];
		if (!writes(v, rank, coordinates, dims))
			continue;
		sw_text stored = {0}, file = {0};
		add_stored_name(v, coordinates, &stored);
		add_file_name(rank, w->size, &file);
		if (json_object_get(w->map, stored.data) ||
		    json_object_set_new(w->map, stored.data, json_string(file.data)) != 0)
			status = sw_fail(err, SW_ERR_INPUT,
			                 "the state can't be saved: the name '%s' is not UTF-8 or "
			                 "occurs twice",
			                 stored.data);
		else if (described)
			json_array_append_new(json_object_get(described, "parts"),
			                      describe_part(v, stored.data, coordinates));
		sw_text_clear(&stored);
		sw_text_clear(&file);
	}
	return status;
}

static sw_status add_value(const index_writer *w, const saved_value *v, sw_error *err)
{
	if (v->grid.n == 0)
		return add_parts(w, v, NULL, err);
	json_t *tensor = describe_shape(v, -1, 0);
	add_digits(v, tensor);
	json_object_set_new(w->tensors, v->name, tensor);
	return add_parts(w, v, tensor, err);
}

static int64_t piece_length(const struct sw_saved_value *value)
{
	return value->held.shape.dims[value->part->axis];
}

/* Return how many values from number i on are the pieces of one tensor, all of them and in their
 * order; 1: the value is a tensor of its own. */
static size_t pieces_from(const sw_saving *s, size_t i)
{
	const sw_fill_part *first = s->values.data[i].part;
	if (!first || first->axis < 0)
		return 1;
	int64_t end = 0;
	size_t n = 0;
	for (; i + n < s->values.len && end < first->size; n++) {
		const struct sw_saved_value *value = &s->values.data[i + n];
		const sw_fill_part *part = value->part;
		if (!part || part->axis != first->axis || strcmp(part->whole, first->whole) != 0 ||
		    part->start != end || piece_length(value) < 1)
			return 1;
		end += piece_length(value);
	}
	return end == first->size ? n : 1;
}

static sw_status add_pieces(const index_writer *w, const sw_saving *s, size_t i, size_t n,
                            double *before, sw_error *err)
{
	const sw_fill_part *part = s->values.data[i].part;
	json_t *pieces = json_array(), *lengths = json_array(), *tensor = NULL;
	sw_status status = SW_OK;
	bool equal = true;
	for (size_t k = 0; k < n && status == SW_OK; k++) {
		saved_value v = describe(s, i + k, before);
		equal = equal && piece_length(&s->values.data[i + k]) ==
		                         piece_length(&s->values.data[i]);
		if (!tensor)
			tensor = describe_shape(&v, part->axis, part->size);
		json_t *piece = json_object();
		add_digits(&v, piece);
		json_array_append_new(pieces, piece);
		json_array_append_new(lengths, json_integer(piece_length(&s->values.data[i + k])));
		status = add_parts(w, &v, piece, err);
	}
	json_object_set_new(tensor, "axis", json_integer(part->axis));
	if (!equal)
		json_object_set(tensor, "lengths", lengths);
	json_decref(lengths);
	json_object_set_new(tensor, "pieces", pieces);
	json_object_set_new(w->tensors, part->whole, tensor);
	return status;
}

static json_t *describe_hashes(const uint64_t *hashes, int64_t size)
{
	json_t *object = json_object();
	for (int64_t r = 0; r < size; r++) {
		sw_text name = {0};
		char number[24];
		add_file_name(r, size, &name);
		snprintf(number, sizeof(number), "%" PRIu64, hashes[r]);
		json_object_set_new(object, name.data, json_string(number));
		sw_text_clear(&name);
	}
	return object;
}

static sw_status write_json(const char *folder, int64_t step, const json_t *index, sw_error *err)
{
	sw_text path = {0};
	sw_folder_add_part(folder, step, SW_CHECKPOINT_INDEX, &path);
	char *text = json_dumps(index, JSON_INDENT(1));
	sw_status status = text ? sw_file_write(path.data, text, strlen(text), err)
	                        : sw_fail(err, SW_ERR_INTERNAL, "the index could not be written");
	free(text);
	sw_text_clear(&path);
	return status;
}

static sw_status write_index(const sw_saving *s, const uint64_t *hashes, const char *folder,
                             sw_error *err)
{
	index_writer w = {s->n_ranks, json_object(), json_object()};
	json_t *metadata = sw_checkpoint_metadata(&s->about);
	double before = 0;
	sw_status status = SW_OK;
	for (size_t i = 0, n; i < s->values.len && status == SW_OK; i += n) {
		n = pieces_from(s, i);
		if (n > 1) {
			status = add_pieces(&w, s, i, n, &before, err);
		} else {
			saved_value v = describe(s, i, &before);
			status = add_value(&w, &v, err);
		}
	}
	json_object_set_new(metadata, "total_size", json_integer((json_int_t)s->total_bytes));
	json_t *index =
		json_pack("{s:o, s:o, s:o, s:o}", "metadata", metadata, "weight_map", w.map,
	                  "tensors", w.tensors, "hashes", describe_hashes(hashes, s->n_ranks));
	if (status == SW_OK)
		status = write_json(folder, s->about.step, index, err);
	json_decref(index);
	return status;
}

/* ---- all ranks -------------------------------------------------------------------------- */

/* Each rank has written its file, which must be in the folder that rank 0 sees. */
static sw_status check_shared(const char *folder, int64_t step, int64_t size, sw_error *err)
{
	sw_status status = SW_OK;
	for (int64_t r = 0; r < size && status == SW_OK; r++) {
		sw_text name = {0}, path = {0};
		add_file_name(r, size, &name);
		sw_folder_add_part(folder, step, name.data, &path);
		if (access(path.data, F_OK) != 0)
			status = sw_fail_at(err, SW_ERR_INPUT, folder, 0, 0,
			                    "rank %" PRId64 " has written its part, and rank 0 "
			                    "does not see it: --save needs a folder that all "
			                    "ranks share",
			                    r);
		sw_text_clear(&name);
		sw_text_clear(&path);
	}
	return status;
}

sw_status sw_saving_finish(const sw_saving *s, const sw_checkpoint_folder *folder,
                           const uint64_t *hashes, sw_error *err)
{
	SW_TRY(check_shared(folder->path, s->about.step, s->n_ranks, err));
	SW_TRY(write_index(s, hashes, folder->path, err));
	return sw_folder_finish(folder, s->about.step, err);
}

static sw_status save(const sw_saving *s, sw_transport *t, const sw_tensor *carried,
                      const sw_checkpoint_folder *folder, uint64_t *hashes, sw_error *err)
{
	uint64_t hash = 0;
	sw_status status = t->rank == 0 ? sw_folder_begin(folder, s->about.step, err) : SW_OK;
	SW_TRY(t->ops->agree(t, status, err));
	status = sw_saving_write(s, t->rank, carried, folder->path, &hash, err);
	SW_TRY(t->ops->agree(t, status, err));
	SW_TRY(t->ops->all_gather(t, t->everyone, t->size, &hash, hashes, sizeof(hash), err));
	status = t->rank == 0 ? sw_saving_finish(s, folder, hashes, err) : SW_OK;
	return t->ops->agree(t, status, err);
}

sw_status sw_checkpoint_save(const sw_saving *s, sw_transport *transport, const sw_tensor *carried,
                             const sw_checkpoint_folder *folder, sw_error *err)
{
	sw_traffic traffic = transport->traffic;
	uint64_t *hashes = sw_alloc((size_t)transport->size * sizeof(*hashes));
	sw_status status = save(s, transport, carried, folder, hashes, err);
	free(hashes);
	transport->traffic = traffic;
	return status;
}
