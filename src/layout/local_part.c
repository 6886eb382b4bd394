/* One device's part of a tensor: its shape, its indices, and copying it out of the whole and
 * back. */
#include "layout/digits.h"

#include <string.h>

/* ---- shapes and indices ----------------------------------------------------------------- */

void sw_layout_local_dims(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout,
                          int64_t *dims)
{
	for (int32_t dim = 0; dim < shape.rank; dim++)
		dims[dim] = shape.dims[dim];
	for (int32_t a = 0; a < layout->n; a++)
		if (layout->state[a].kind == SW_STATE_S)
			dims[layout->state[a].dim] /= atoms->size[a];
}

int64_t sw_layout_local_bytes(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout)
{
	int64_t dims[SW_MAX_RANK];
	int64_t bytes = sw_type_bytes(shape.type);
	sw_layout_local_dims(atoms, shape, layout, dims);
	for (int32_t dim = 0; dim < shape.rank; dim++)
		bytes *= dims[dim];
	return bytes;
}

int64_t sw_layout_mean_bytes(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout)
{
	return sw_layout_local_bytes(atoms, shape, layout) /
	       sw_atoms_group_size(atoms, sw_layout_owned_atoms(layout));
}

/* Put the device's digits back, smallest stride first: the part of the index below each digit is
 * then already complete. */
static int64_t insert_digits(const sw_atoms *atoms, const digit *digits, int32_t n, int64_t device,
                             int64_t local)
{
	for (int32_t k = n - 1; k >= 0; k--) {
		int64_t t = digits[k].stride, p = digits[k].size;
		int64_t c = sw_atoms_coordinate(atoms, device, digits[k].atom);
		local = local / t * (t * p) + c * t + local % t;
	}
	return local;
}

int64_t sw_layout_global_index(const sw_atoms *atoms, const sw_layout *layout, int32_t dim,
                               int64_t device, int64_t local)
{
	digit digits[SW_MAX_ATOMS];
	int32_t n = layout_digits(atoms, layout, ALL_ATOMS, dim, digits);
	return insert_digits(atoms, digits, n, device, local);
}

bool sw_layout_holds(const sw_atoms *atoms, const sw_layout *layout, int64_t device,
                     const int64_t *index)
{
	for (int32_t a = 0; a < layout->n; a++) {
		sw_state s = layout->state[a];
		if (s.kind == SW_STATE_S && index[s.dim] / s.stride % atoms->size[a] !=
		                                    sw_atoms_coordinate(atoms, device, a))
			return false;
	}
	return sw_layout_has_part(atoms, layout, device);
}

/* ---- copying ---------------------------------------------------------------------------- */

/* A part as runs of bytes: run r of the part lies at part + r * run_bytes, and in the whole at the
 * sum of one offset per outer dimension. The last outer dimension counts runs, not elements. */
typedef struct run_list {
	int32_t n;                      /* outer dimensions */
	int64_t count[SW_MAX_RANK];     /* entries of each */
	const int64_t *at[SW_MAX_RANK]; /* byte offsets in the whole */
	int64_t run_bytes;
	int64_t *offsets; /* owns the entries */
} run_list;

static int32_t last_split_dim(sw_shape shape, const sw_layout *layout)
{
	for (int32_t dim = shape.rank - 1; dim >= 0; dim--)
		if (sw_layout_split_atoms(layout, dim))
			return dim;
	return -1;
}

/* List the byte offsets of dimension dim, one per `step` local indices. */
static void list_offsets(const sw_atoms *atoms, const digit *digits, int32_t n, int64_t device,
                         int64_t step, int64_t pitch, int64_t count, int64_t *offsets)
{
	for (int64_t i = 0; i < count; i++)
		offsets[i] = insert_digits(atoms, digits, n, device, i * step) * pitch;
}

/* List the runs of a part: everything after the last split dimension, and below that dimension's
 * smallest digit, is one run. */
static void list_runs(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout,
                      int64_t device, int64_t element_bytes, run_list *runs)
{
	int64_t dims[SW_MAX_RANK], pitch = element_bytes, entries = 0;
	int32_t last = last_split_dim(shape, layout);
	*runs = (run_list){.n = last + 1, .run_bytes = element_bytes};
	sw_layout_local_dims(atoms, shape, layout, dims);
	for (int32_t dim = 0; dim <= last; dim++)
		entries += dims[dim];
	runs->offsets = sw_alloc((size_t)SW_MAX(entries, 1) * sizeof(int64_t));
	int64_t *next = runs->offsets;
	for (int32_t dim = shape.rank - 1; dim >= 0; dim--) {
		digit digits[SW_MAX_ATOMS];
		int32_t n = layout_digits(atoms, layout, ALL_ATOMS, dim, digits);
		int64_t step = dim == last ? digits[n - 1].stride : 1;
		if (dim == last)
			runs->run_bytes = pitch * step;
		if (dim <= last) {
			runs->count[dim] = dims[dim] / step;
			runs->at[dim] = next;
			list_offsets(atoms, digits, n, device, step, pitch, runs->count[dim], next);
			next += runs->count[dim];
		}
		pitch *= shape.dims[dim];
	}
	if (last < 0)
		runs->run_bytes = pitch;
}

static int64_t run_offset(const run_list *runs, const int64_t *position)
{
	int64_t offset = 0;
	for (int32_t dim = 0; dim < runs->n; dim++)
		offset += runs->at[dim][position[dim]];
	return offset;
}

static bool step_position(const run_list *runs, int64_t *position)
{
	for (int32_t dim = runs->n - 1; dim >= 0; dim--) {
		if (++position[dim] < runs->count[dim])
			return true;
		position[dim] = 0;
	}
	return false;
}

/* Copy all runs from the whole to the part (cut) or the other way round. */
static void copy_runs(const run_list *runs, const char *whole, char *part, char *whole_out,
                      const char *part_in)
{
	int64_t position[SW_MAX_RANK] = {0};
	size_t bytes = (size_t)runs->run_bytes;
	do {
		int64_t at = run_offset(runs, position);
		if (part) {
			memcpy(part, whole + at, bytes);
			part += bytes;
		} else {
			memcpy(whole_out + at, part_in, bytes);
			part_in += bytes;
		}
	} while (step_position(runs, position));
}

static bool is_empty(sw_shape shape)
{
	for (int32_t dim = 0; dim < shape.rank; dim++)
		if (shape.dims[dim] == 0)
			return true;
	return false;
}

void sw_layout_cut(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout, int64_t device,
                   int64_t element_bytes, const void *whole, void *part)
{
	run_list runs;
	if (is_empty(shape))
		return;
	list_runs(atoms, shape, layout, device, element_bytes, &runs);
	copy_runs(&runs, whole, part, NULL, NULL);
	free(runs.offsets);
}

void sw_layout_paste(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout, int64_t device,
                     int64_t element_bytes, const void *part, void *whole)
{
	run_list runs;
	if (is_empty(shape))
		return;
	list_runs(atoms, shape, layout, device, element_bytes, &runs);
	copy_runs(&runs, NULL, NULL, whole, part);
	free(runs.offsets);
}

/* ---- local data as digits --------------------------------------------------------------- */

typedef struct factor_list {
	int32_t n;
	int64_t *extents;
	int32_t *atom_of;
	int64_t run; /* undivided extent not yet written */
} factor_list;

static void end_run(factor_list *list)
{
	if (list->run != 1) {
		list->extents[list->n] = list->run;
		list->atom_of[list->n++] = -1;
	}
	list->run = 1;
}

static void add_digit(factor_list *list, digit d)
{
	end_run(list);
	list->extents[list->n] = d.size;
	list->atom_of[list->n++] = d.atom;
}

int32_t sw_layout_local_digits(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout,
                               const sw_layout *with, uint32_t extra, int32_t dim, int64_t *extents,
                               int32_t *atom_of)
{
	digit own[SW_MAX_ATOMS], kept[SW_MAX_ATOMS];
	int32_t n_own = layout_digits(atoms, layout, ALL_ATOMS, dim, own);
	int32_t n_kept = layout_digits(atoms, with, extra, dim, kept);
	factor_list list = {.extents = extents, .atom_of = atom_of, .run = 1};
	int64_t above = shape.dims[dim];
	for (int32_t i = 0, j = 0; i < n_own || j < n_kept;) {
		bool keep = i == n_own || (j < n_kept && kept[j].stride > own[i].stride);
		digit d = keep ? kept[j++] : own[i++];
		list.run *= above / (d.stride * d.size);
		if (keep)
			add_digit(&list, d);
		above = d.stride;
	}
	list.run *= above;
	end_run(&list);
	return list.n;
}
