/* Batches of any inputs from .npy files. */
#include "run/array_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/npy.h"

typedef struct array_file {
	const char *path;
	sw_mapping mapping;
	sw_npy npy;
	int64_t first, items; /* among those of all files of the input */
} array_file;

/* The files of an input. */
typedef struct array_input {
	SW_VEC(array_file) files;
	int64_t items;
	bool per_step;    /* an item is a whole value */
	sw_shape item;    /* of the input's type */
	double low, high; /* of integers with a range */
} array_input;

struct sw_arrays {
	sw_arena arena;
	uint32_t n_inputs;
	array_input *inputs; /* without files: not given */
	int64_t items;
};

/* ---- opening ---------------------------------------------------------------------------- */

static sw_status open_file(const char *path, array_file *file, sw_error *err)
{
	*file = (array_file){.path = path};
	SW_TRY(sw_mapping_open(path, &file->mapping, err));
	sw_status status = SW_OK;
	if (!sw_npy_recognise(file->mapping.data, file->mapping.length))
		status = sw_fail(err, SW_ERR_INPUT, "it is no .npy file: save it with numpy.save");
	if (status == SW_OK)
		status = sw_npy_parse(file->mapping.data, file->mapping.length, &file->npy, err);
	if (status)
		sw_mapping_close(&file->mapping);
	return sw_error_in_file(err, status, path);
}

static bool same_kind(sw_type a, sw_type b)
{
	sw_type_kind x = sw_type_kind_of(a), y = sw_type_kind_of(b);
	bool integers = (x == SW_KIND_SIGNED || x == SW_KIND_UNSIGNED) &&
	                (y == SW_KIND_SIGNED || y == SW_KIND_UNSIGNED);
	return integers || (x == y && (x != SW_KIND_COMPLEX || a == b));
}

/* Does the file hold items of the input's shape, from its dimension `skipped` on? */
static bool has_items(const sw_npy *npy, sw_shape input, int32_t skipped)
{
	if (npy->rank != input.rank + 1 - skipped || npy->rank < 1)
		return false;
	for (int32_t d = skipped; d < input.rank; d++)
		if (npy->dims[d + 1 - skipped] != input.dims[d])
			return false;
	return true;
}

static sw_status bad_shape(const sw_npy *npy, sw_shape input, const char *name, sw_error *err)
{
	sw_text is = {0}, should = {0};
	sw_shape shape = {.type = npy->type, .rank = npy->rank, .dims = (int64_t *)npy->dims};
	sw_shape_print(shape, &is);
	sw_shape_print(input, &should);
	sw_status status = sw_fail(err, SW_ERR_INPUT,
	                           "it is %s, and input '%s' is %s: expected items of the same "
	                           "kind along a first dimension",
	                           is.data, name, should.data);
	sw_text_clear(&is);
	sw_text_clear(&should);
	return status;
}

static sw_status add_file(sw_arrays *arrays, array_input *in, sw_shape shape, const char *name,
                          const char *path, sw_error *err)
{
	array_file file;
	SW_TRY(open_file(path, &file, err));
	bool rows = shape.rank > 0 && has_items(&file.npy, shape, 1),
	     per_step = !rows && has_items(&file.npy, shape, 0);
	bool fits = (rows || per_step) && same_kind(file.npy.type, shape.type) &&
	            (!in->files.len || in->per_step == per_step);
	if (!fits) {
		sw_status status = bad_shape(&file.npy, shape, name, err);
		sw_mapping_close(&file.mapping);
		return sw_error_in_file(err, status, path);
	}
	in->per_step = per_step;
	in->item = shape;
	if (rows) {
		int64_t *dims = SW_NEW_N(&arrays->arena, int64_t, shape.rank);
		memcpy(dims, shape.dims, (size_t)shape.rank * sizeof(*dims));
		dims[0] = 1;
		in->item.dims = dims;
	}
	file.path = sw_arena_text(&arrays->arena, path);
	file.first = in->items;
	file.items = file.npy.dims[0];
	in->items += file.items;
	sw_vec_push(&in->files, file);
	return SW_OK;
}

/* All inputs in batches take the same items, so they have equally many, and one batch at least. */
static sw_status check_items(sw_arrays *arrays, const sw_shape *shapes, const sw_sidecar *sidecar,
                             sw_error *err)
{
	const char *first = NULL;
	for (uint32_t i = 0; i < arrays->n_inputs; i++) {
		const array_input *in = &arrays->inputs[i];
		if (!in->files.len)
			continue;
		const char *name = sidecar->inputs[i].name, *path = in->files.data[0].path;
		int64_t least = in->per_step ? 1 : shapes[i].dims[0];
		if (in->items < least)
			return sw_fail_at(err, SW_ERR_INPUT, path, 0, 0,
			                  "%lld items are too few: a batch of '%s' takes %lld",
			                  (long long)in->items, name, (long long)least);
		if (in->per_step)
			continue;
		if (first && in->items != arrays->items)
			return sw_fail_at(err, SW_ERR_INPUT, path, 0, 0,
			                  "'%s' has %lld items and '%s' has %lld: they belong "
			                  "together, so give equally many",
			                  name, (long long)in->items, first,
			                  (long long)arrays->items);
		first = name;
		arrays->items = in->items;
	}
	return SW_OK;
}

static void find_range(array_input *in, const sw_input_info *info)
{
	bool integers = info->init.kind == SW_FILL_INTEGERS;
	in->low = integers ? info->init.a : -INFINITY;
	in->high = integers ? info->init.b - 1 : INFINITY;
}

static sw_status open_all(sw_arrays *arrays, const sw_shape *shapes, const sw_sidecar *sidecar,
                          const char *const *paths, const uint32_t *of, size_t n, sw_error *err)
{
	for (size_t k = 0; k < n; k++) {
		array_input *in = &arrays->inputs[of[k]];
		find_range(in, &sidecar->inputs[of[k]]);
		SW_TRY(add_file(arrays, in, shapes[of[k]], sidecar->inputs[of[k]].name, paths[k],
		                err));
	}
	return check_items(arrays, shapes, sidecar, err);
}

sw_status sw_arrays_open(const sw_program *serial, const sw_sidecar *sidecar,
                         const char *const *paths, const uint32_t *of, size_t n, sw_arrays **arrays,
                         sw_error *err)
{
	sw_arrays *a = sw_alloc(sizeof(*a));
	const sw_program *program = serial;
	const sw_id *inputs;
	sw_arena_init(&a->arena);
	a->n_inputs = sw_program_inputs(program, program->entry, &a->arena, &inputs);
	a->inputs = SW_NEW_N(&a->arena, array_input, a->n_inputs + 1);
	sw_shape *shapes = SW_NEW_N(&a->arena, sw_shape, a->n_inputs + 1);
	for (uint32_t i = 0; i < a->n_inputs; i++)
		shapes[i] = sw_value_shape(program, inputs[i]);
	sw_status status = open_all(a, shapes, sidecar, paths, of, n, err);
	if (status) {
		sw_arrays_free(a);
		a = NULL;
	}
	*arrays = a;
	return status;
}

void sw_arrays_free(sw_arrays *arrays)
{
	if (!arrays)
		return;
	for (uint32_t i = 0; i < arrays->n_inputs; i++) {
		array_input *in = &arrays->inputs[i];
		for (size_t f = 0; f < in->files.len; f++)
			sw_mapping_close(&in->files.data[f].mapping);
		sw_vec_clear(&in->files);
	}
	sw_arena_clear(&arrays->arena);
	free(arrays);
}

bool sw_arrays_has(const sw_arrays *arrays, uint32_t input)
{
	return arrays && arrays->inputs[input].files.len > 0;
}

int64_t sw_arrays_items(const sw_arrays *arrays)
{
	return arrays ? arrays->items : 0;
}

uint64_t sw_arrays_hash(const sw_arrays *arrays)
{
	uint64_t hash = 0;
	for (uint32_t i = 0; arrays && i < arrays->n_inputs; i++) {
		const array_input *in = &arrays->inputs[i];
		for (size_t f = 0; f < in->files.len; f++)
			hash = sw_mapping_sample(&in->files.data[f].mapping, hash + i);
	}
	return hash;
}

/* ---- the order of items ----------------------------------------------------------------- */

#define ROUNDS 4

int64_t sw_shuffled(uint64_t seed, uint64_t pass, int64_t n, int64_t place)
{
	int half = 1;
	while (half < 31 && ((int64_t)1 << (2 * half)) < n)
		half++;
	uint64_t mask = ((uint64_t)1 << half) - 1, x = (uint64_t)place,
		 key = sw_hash_u64(seed, pass);
	do {
		uint64_t left = x >> half, right = x & mask;
		for (uint64_t r = 0; r < ROUNDS; r++) {
			uint64_t mixed = left ^ (sw_random_bits(key, r, right) & mask);
			left = right;
			right = mixed;
		}
		x = left << half | right;
	} while (x >= (uint64_t)n);
	return (int64_t)x;
}

/* ---- filling ---------------------------------------------------------------------------- */

static const array_file *file_of(const array_input *in, int64_t item)
{
	size_t low = 0, high = in->files.len;
	while (high - low > 1) {
		size_t middle = (low + high) / 2;
		if (in->files.data[middle].first <= item)
			low = middle;
		else
			high = middle;
	}
	while (in->files.data[low].items == 0) /* an empty file has no item */
		low++;
	return &in->files.data[low];
}

/* One rank's part of one item. */
typedef struct item_copy {
	const array_input *in;
	const array_file *file;
	int64_t item; /* in the file */
	sw_grid_part to;
	char *out;
} item_copy;

static sw_status bad_number(const item_copy *c, double number, sw_error *err)
{
	return sw_fail_at(err, SW_ERR_INPUT, c->file->path, 0, 0,
	                  "item %lld has %.10g, which the input cannot have%s", (long long)c->item,
	                  number, isfinite(c->in->low) ? ": its range is that of the sidecar" : "");
}

/* Convert an item to the input's type, in `converted`. */
static sw_status convert(const item_copy *c, const char *data, char *converted, sw_error *err)
{
	sw_type from = c->file->npy.type, to = c->in->item.type;
	size_t bytes = (size_t)sw_type_bytes(from);
	bool integer = sw_type_kind_of(to) != SW_KIND_FLOAT;
	int64_t n = sw_shape_elements(c->in->item);
	for (int64_t e = 0; e < n; e++) {
		uint64_t aligned[2] = {0};
		memcpy(aligned, data + (size_t)e * bytes, bytes);
		double number = sw_element_get(from, aligned, 0);
		if (number < c->in->low || number > c->in->high)
			return bad_number(c, number, err);
		sw_element_set(to, converted, e, number);
		if (integer && sw_element_get(to, converted, e) != number)
			return bad_number(c, number, err);
	}
	return SW_OK;
}

/* Return the item's numbers in row-major order: where the file has them, or in *made, which the
 * caller frees. NULL: there is no memory for them. */
static const char *numbers_of(const item_copy *c, char **made)
{
	const sw_npy *npy = &c->file->npy;
	size_t bytes = (size_t)(npy->count / npy->dims[0] * sw_type_bytes(npy->type));
	*made = npy->column_major ? sw_try_alloc(SW_MAX(bytes, 1)) : NULL;
	if (*made)
		sw_npy_copy_item(npy, c->item, *made);
	return npy->column_major ? *made : npy->data + (size_t)c->item * bytes;
}

static sw_status copy_item(const item_copy *c, sw_error *err)
{
	static const sw_part_grid whole = {0};
	static const int32_t nothing[1] = {0};
	sw_shape item = c->in->item;
	bool converts = c->file->npy.type != item.type || isfinite(c->in->low);
	char *made, *converted = NULL;
	const char *data = numbers_of(c, &made);
	if (converts && data)
		converted = sw_try_alloc((size_t)SW_MAX(sw_shape_bytes(item), 1));
	sw_status status = SW_OK;
	if (!data || (converts && !converted))
		status = sw_fail(err, SW_ERR_IO, "no memory for an item of data");
	else if (converts)
		status = convert(c, data, converted, err);
	if (status == SW_OK) {
		sw_grid_part from = {.grid = &whole, .coordinates = nothing, .dims = item.dims};
		sw_grid_copy(item, &from, converted ? converted : data, &c->to, c->out);
	}
	free(made);
	free(converted);
	return status;
}

/* The grid of a device's part of one row: without the digits of the rows. */
static void grid_of_rows(const sw_part_grid *grid, const int32_t *coordinates, sw_part_grid *row,
                         int32_t *row_coordinates)
{
	row->n = 0;
	for (int32_t k = 0; k < grid->n; k++) {
		if (grid->digits[k].dim == 0)
			continue;
		row_coordinates[row->n] = coordinates[k];
		row->digits[row->n++] = grid->digits[k];
	}
}

typedef struct array_batch {
	const sw_arrays *arrays;
	const array_input *in;
	uint64_t seed;
	int64_t step, rows; /* of the whole batch */
	sw_part_grid grid;
	int32_t coordinates[SW_MAX_ATOMS];
} array_batch;

static sw_status fill_rows(const array_batch *b, const sw_tensor *tensor, sw_error *err)
{
	sw_part_grid row;
	int32_t coordinates[SW_MAX_ATOMS];
	int64_t dims[SW_MAX_RANK];
	grid_of_rows(&b->grid, b->coordinates, &row, coordinates);
	memcpy(dims, tensor->shape.dims, (size_t)tensor->shape.rank * sizeof(*dims));
	int64_t rows = dims[0], pitch = rows ? sw_shape_bytes(tensor->shape) / rows : 0;
	dims[0] = 1;
	for (int64_t r = 0; r < rows; r++) {
		int64_t global = sw_grid_global(&b->grid, b->coordinates, 0, r);
		if (global >= b->rows)
			break;
		uint64_t place = (uint64_t)b->step * (uint64_t)b->rows + (uint64_t)global,
			 n = (uint64_t)b->in->items;
		int64_t item = sw_shuffled(b->seed, place / n, b->in->items, (int64_t)(place % n));
		const array_file *file = file_of(b->in, item);
		item_copy c = {b->in,
		               file,
		               item - file->first,
		               {.grid = &row, .coordinates = coordinates, .dims = dims},
		               (char *)sw_tensor_data(*tensor) + r * pitch};
		SW_TRY(copy_item(&c, err));
	}
	return SW_OK;
}

static sw_status fill_value(const array_batch *b, const sw_tensor *tensor, sw_error *err)
{
	int64_t item = b->step % b->in->items;
	const array_file *file = file_of(b->in, item);
	item_copy c = {b->in,
	               file,
	               item - file->first,
	               {.grid = &b->grid,
	                .coordinates = b->coordinates,
	                .dims = tensor->shape.dims},
	               sw_tensor_data(*tensor)};
	return copy_item(&c, err);
}

sw_status sw_arrays_fill(const sw_arrays *arrays, const sw_held_value *value, int64_t rank,
                         uint64_t seed, int64_t step, const sw_tensor *tensor, sw_error *err)
{
	array_batch b = {.arrays = arrays,
	                 .in = &arrays->inputs[value->input],
	                 .seed = seed,
	                 .step = step};
	sw_held_grid(value, rank, &b.grid, b.coordinates);
	sw_grid_part part = {
		.grid = &b.grid, .coordinates = b.coordinates, .dims = tensor->shape.dims};
	if (sw_grid_is_padded(&part, value->shape))
		memset(sw_tensor_data(*tensor), 0, (size_t)sw_shape_bytes(tensor->shape));
	if (b.in->per_step)
		return fill_value(&b, tensor, err);
	b.rows = value->shape.dims[0];
	return fill_rows(&b, tensor, err);
}
