/* Checkpoints as files: reading the catalogue of a file or of an index, and whole tensors. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/checkpoint.h"

/* ---- metadata --------------------------------------------------------------------------- */

json_t *sw_checkpoint_metadata(const sw_checkpoint_about *about)
{
	char step[24], seed[24], plan[24], data[24];
	snprintf(step, sizeof(step), "%" PRId64, about->step);
	snprintf(seed, sizeof(seed), "%" PRIu64, about->seed);
	snprintf(plan, sizeof(plan), "%" PRIu64, about->plan_hash);
	snprintf(data, sizeof(data), "%" PRIu64, about->data_hash);
	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "format", "shardwright", "step", step, "seed",
	                 seed, "plan", plan, "data", data);
}

bool sw_saved_number(const json_t *metadata, const char *key, uint64_t most, uint64_t *number)
{
	const char *text = json_string_value(json_object_get(metadata, key));
	*number = 0;
	for (; text && *text >= '0' && *text <= '9'; text++) {
		uint64_t digit = (uint64_t)(*text - '0');
		if (*number > (most - digit) / 10)
			return false;
		*number = 10 * *number + digit;
	}
	return text && !*text;
}

/* A file of another program has neither number: it holds initial values. */
sw_status sw_saved_metadata(const json_t *metadata, sw_checkpoint *c, sw_error *err)
{
	uint64_t step = 0;
	c->has_step = json_object_get(metadata, "step") != NULL;
	if (!c->has_step)
		return SW_OK;
	if (!sw_saved_number(metadata, "step", INT64_MAX / 2, &step))
		return sw_fail(err, SW_ERR_INPUT,
		               "__metadata__: 'step' must be a count of steps as a text");
	if (!sw_saved_number(metadata, "seed", UINT64_MAX, &c->seed))
		return sw_fail(err, SW_ERR_INPUT, "__metadata__: 'seed' must be a count as a text");
	c->step = (int64_t)step;
	if (!sw_saved_number(metadata, "plan", UINT64_MAX, &c->plan_hash))
		c->plan_hash = 0;
	if (!sw_saved_number(metadata, "data", UINT64_MAX, &c->data_hash))
		c->data_hash = 0;
	return SW_OK;
}

/* ---- files ------------------------------------------------------------------------------ */

sw_status sw_saved_open_file(sw_checkpoint *c, const char *path, sw_error *err)
{
	sw_saved_file file = {.path = sw_arena_text(&c->arena, path)};
	SW_TRY(sw_mapping_open(path, &file.mapping, err));
	sw_status status =
		sw_tensor_places_read(file.mapping.data, file.mapping.length, &file.places, err);
	if (status) {
		sw_mapping_close(&file.mapping);
		return sw_error_in_file(err, status, path);
	}
	file.whole = SW_NEW(&c->arena, atomic_bool);
	sw_vec_push(&c->files, file);
	return SW_OK;
}

static const sw_part_grid whole_grid = {0};

void sw_saved_add_whole(sw_checkpoint *c, uint32_t file, const sw_tensor_place *place)
{
	sw_saved_tensor tensor = {.name = place->name, .shape = place->shape, .n_parts = 1};
	tensor.parts = SW_NEW(&c->arena, sw_saved_part);
	tensor.parts->file = file;
	tensor.parts->grid = &whole_grid;
	tensor.parts->data = c->files.data[file].mapping.data + place->begin;
	for (int32_t d = 0; d < place->shape.rank; d++)
		tensor.parts->dims[d] = place->shape.dims[d];
	sw_vec_push(&c->tensors, tensor);
}

static sw_status read_file(const char *path, sw_checkpoint *c, sw_error *err)
{
	SW_TRY(sw_saved_open_file(c, path, err));
	const sw_tensor_places *places = &c->files.data[0].places;
	if (json_object_get(places->metadata, "part"))
		return sw_fail(err, SW_ERR_INPUT,
		               "it is one part of a checkpoint: give the folder that it is in");
	SW_TRY(sw_saved_metadata(places->metadata, c, err));
	for (size_t i = 0; i < places->n; i++)
		sw_saved_add_whole(c, 0, &places->items[i]);
	return SW_OK;
}

/* ---- a checkpoint ----------------------------------------------------------------------- */

static bool is_folder(const char *path)
{
	struct stat info;
	return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static sw_status no_index(const char *folder, sw_error *err)
{
	int64_t step;
	SW_TRY(sw_checkpoint_newest(folder, &step, err));
	return step < 0 ? sw_fail(err, SW_ERR_INPUT, "the folder has no " SW_CHECKPOINT_INDEX)
	                : sw_fail(err, SW_ERR_INPUT,
	                          "it is no checkpoint, but a folder of them: give one, such as "
	                          "%s/" SW_CHECKPOINT_NAME,
	                          folder, step);
}

static sw_status read_folder(const char *folder, sw_checkpoint *c, sw_error *err)
{
	sw_text path = {0};
	sw_text_addf(&path, "%s/" SW_CHECKPOINT_INDEX, folder);
	sw_status status = access(path.data, F_OK) == 0
	                           ? sw_saved_read_index(folder, path.data, c, err)
	                           : no_index(folder, err);
	sw_text_clear(&path);
	return status;
}

static void index_names(sw_checkpoint *c)
{
	for (size_t i = 0; i < c->tensors.len; i++) {
		const char *name = c->tensors.data[i].name;
		sw_map_put(&c->names, name, strlen(name), (uint32_t)i);
	}
}

sw_status sw_checkpoint_read(const char *path, sw_checkpoint *checkpoint, sw_error *err)
{
	static const char ending[] = SW_CHECKPOINT_INDEX;
	size_t length = strlen(path), end = sizeof(ending) - 1;
	*checkpoint = (sw_checkpoint){0};
	sw_arena_init(&checkpoint->arena);
	sw_status status;
	if (is_folder(path))
		status = read_folder(path, checkpoint, err);
	else if (length >= end && strcmp(path + length - end, ending) == 0)
		status = read_folder(
			length == end ? "."
				      : sw_arena_text_n(&checkpoint->arena, path, length - end),
			checkpoint, err);
	else
		status = read_file(path, checkpoint, err);
	if (status == SW_OK) {
		index_names(checkpoint);
		return SW_OK;
	}
	sw_checkpoint_close(checkpoint);
	return sw_error_in_file(err, status, path);
}

void sw_checkpoint_close(sw_checkpoint *checkpoint)
{
	for (size_t i = 0; i < checkpoint->files.len; i++) {
		sw_tensor_places_clear(&checkpoint->files.data[i].places);
		sw_mapping_close(&checkpoint->files.data[i].mapping);
	}
	sw_vec_clear(&checkpoint->files);
	sw_vec_clear(&checkpoint->tensors);
	sw_map_clear(&checkpoint->names);
	sw_arena_clear(&checkpoint->arena);
	*checkpoint = (sw_checkpoint){0};
}

const sw_saved_tensor *sw_checkpoint_get(const sw_checkpoint *checkpoint, const char *name)
{
	uint32_t at = sw_map_get(&checkpoint->names, name, strlen(name));
	return at == SW_ABSENT ? NULL : &checkpoint->tensors.data[at];
}

uint64_t sw_saved_hash_add(uint64_t hash, const char *data, size_t bytes)
{
	return sw_hash_bytes(data, bytes, hash);
}

sw_status sw_saved_check_file(const sw_saved_file *file, sw_error *err)
{
	uint64_t hash = 0;
	if (!file->hash || atomic_load(file->whole))
		return SW_OK;
	for (size_t i = 0; i < file->places.n; i++) {
		const sw_tensor_place *place = &file->places.items[i];
		hash = sw_saved_hash_add(hash, file->mapping.data + place->begin,
		                         (size_t)(place->end - place->begin));
	}
	if (hash != file->hash)
		return sw_fail_at(err, SW_ERR_INPUT, file->path, 0, 0,
		                  "its contents are not those that were written");
	atomic_store(file->whole, true);
	return SW_OK;
}

sw_status sw_checkpoint_check_contents(const sw_checkpoint *checkpoint, sw_error *err)
{
	for (size_t f = 0; f < checkpoint->files.len; f++)
		SW_TRY(sw_saved_check_file(&checkpoint->files.data[f], err));
	return SW_OK;
}

/* ---- whole tensors ---------------------------------------------------------------------- */

void sw_saved_whole(const sw_saved_tensor *tensor, char *out)
{
	static const int32_t nothing[1] = {0};
	sw_grid_part to = {.grid = &whole_grid, .coordinates = nothing, .dims = tensor->shape.dims};
	for (size_t i = 0; i < tensor->n_parts; i++) {
		const sw_saved_part *part = &tensor->parts[i];
		sw_grid_part from = {part->grid, part->coordinates, part->dims, part->piece};
		sw_grid_copy(tensor->shape, &from, part->data, &to, out);
	}
}

static sw_status make_whole(const sw_checkpoint *checkpoint, sw_named_tensor *tensors,
                            sw_error *err)
{
	for (size_t i = 0; i < checkpoint->tensors.len; i++) {
		const sw_saved_tensor *tensor = &checkpoint->tensors.data[i];
		tensors[i].name = tensor->name;
		SW_TRY(sw_tensor_new(tensor->shape, false, &tensors[i].tensor, err));
		sw_saved_whole(tensor, sw_tensor_data(tensors[i].tensor));
	}
	return SW_OK;
}

sw_status sw_checkpoint_join(const sw_checkpoint *checkpoint, const char *path, sw_error *err)
{
	size_t n = checkpoint->tensors.len;
	sw_named_tensor *tensors = sw_alloc((n + 1) * sizeof(*tensors));
	sw_checkpoint_about about = {checkpoint->step, checkpoint->seed, checkpoint->plan_hash,
	                             checkpoint->data_hash};
	json_t *metadata = checkpoint->has_step ? sw_checkpoint_metadata(&about) : NULL;
	sw_status status = make_whole(checkpoint, tensors, err);
	if (status == SW_OK)
		status = sw_tensor_file_write(path, tensors, n, metadata, err);
	json_decref(metadata);
	for (size_t i = 0; i < n; i++)
		sw_tensor_drop(&tensors[i].tensor);
	free(tensors);
	return status;
}
