/* Parts of arrays by digits of their indices, and copying what two parts share. */
#include "run/part_grid.h"

#include <string.h>

/* Extents, strides and numbers of parts are no larger than this, so that products of them fit. */
#define MOST_EXTENT ((int64_t)1 << 40)
#define MOST_PARTS ((int64_t)1 << SW_MAX_ATOMS)

void sw_grid_of_layout(const sw_atoms *atoms, const sw_layout *layout, sw_part_grid *grid,
                       int32_t *atom_of)
{
	grid->n = 0;
	for (int32_t a = 0; a < layout->n; a++) {
		const sw_state *state = &layout->state[a];
		if (state->kind != SW_STATE_S)
			continue;
		sw_grid_digit digit = {state->dim, atoms->size[a], state->stride};
		int32_t at = grid->n++;
		for (; at > 0; at--) {
			const sw_grid_digit *before = &grid->digits[at - 1];
			if (before->dim < digit.dim ||
			    (before->dim == digit.dim && before->stride >= digit.stride))
				break;
			grid->digits[at] = *before;
			if (atom_of)
				atom_of[at] = atom_of[at - 1];
		}
		grid->digits[at] = digit;
		if (atom_of)
			atom_of[at] = a;
	}
}

int64_t sw_grid_parts(const sw_part_grid *grid)
{
	int64_t parts = 1;
	for (int32_t k = 0; k < grid->n && parts > 0; k++)
		parts = grid->digits[k].size > MOST_PARTS / parts ? 0
		                                                  : parts * grid->digits[k].size;
	return parts;
}

static bool is_digit_of(const sw_grid_digit *digit, sw_shape array)
{
	return digit->dim >= 0 && digit->dim < array.rank && digit->size >= 1 &&
	       array.dims[digit->dim] <= MOST_EXTENT && digit->stride >= 1 &&
	       digit->stride <= MOST_EXTENT / digit->size;
}

sw_status sw_grid_check(const sw_part_grid *grid, sw_shape array, sw_error *err)
{
	for (int32_t k = 0; k < grid->n; k++) {
		const sw_grid_digit *digit = &grid->digits[k], *before = k ? digit - 1 : NULL;
		if (!is_digit_of(digit, array) || (before && before->dim > digit->dim))
			return sw_fail(err, SW_ERR_INPUT,
			               "a digit must be [dimension, stride, size] of the tensor, "
			               "by ascending dimension");
		if (before && before->dim == digit->dim &&
		    before->stride % (digit->stride * digit->size) != 0)
			return sw_fail(err, SW_ERR_INPUT, "the digits of dimension %d do not nest",
			               digit->dim);
	}
	return sw_grid_parts(grid) ? SW_OK : sw_fail(err, SW_ERR_INPUT, "too many parts");
}

int64_t sw_grid_global(const sw_part_grid *grid, const int32_t *coordinates, int32_t dim,
                       int64_t local)
{
	for (int32_t k = grid->n; k-- > 0;) {
		const sw_grid_digit *digit = &grid->digits[k];
		if (digit->dim == dim)
			local = local / digit->stride * (digit->stride * digit->size) +
			        coordinates[k] * digit->stride + local % digit->stride;
	}
	return local;
}

/* Find the part's index of an element of the whole along dim; false: the part does not hold it. */
static bool find_local(const sw_part_grid *grid, const int32_t *coordinates, int32_t dim,
                       int64_t global, int64_t *local)
{
	*local = global;
	for (int32_t k = 0; k < grid->n; k++) {
		const sw_grid_digit *digit = &grid->digits[k];
		if (digit->dim != dim)
			continue;
		if (global / digit->stride % digit->size != coordinates[k])
			return false;
		*local = *local / (digit->stride * digit->size) * digit->stride +
		         *local % digit->stride;
	}
	return true;
}

void sw_grid_dims(const sw_part_grid *grid, const int32_t *coordinates, sw_shape array,
                  int64_t *dims)
{
	for (int32_t d = 0; d < array.rank; d++) {
		int64_t low = 0, high = array.dims[d];
		while (low < high) { /* the first index that lies outside */
			int64_t middle = low + (high - low) / 2;
			if (sw_grid_global(grid, coordinates, d, middle) < array.dims[d])
				low = middle + 1;
			else
				high = middle;
		}
		dims[d] = low;
	}
}

/* ---- copying ---------------------------------------------------------------------------- */

/* Runs of elements along a dimension that lie side by side in both parts. */
typedef struct shared_run {
	int64_t from, to, length;
} shared_run;
typedef struct dim_runs {
	SW_VEC(shared_run) runs;
	int64_t from_pitch, to_pitch; /* elements from one index to the next */
} dim_runs;

/* The indices of an array along dim that a part's piece has. */
typedef struct index_range {
	int64_t start, length;
} index_range;
static index_range range_of(sw_shape array, const sw_grid_part *part, int32_t dim)
{
	const sw_grid_piece *piece = &part->piece;
	return piece->length > 0 && piece->dim == dim ? (index_range){piece->start, piece->length}
						      : (index_range){0, array.dims[dim]};
}

static void find_runs(sw_shape array, const sw_grid_part *from, const sw_grid_part *to, int32_t dim,
                      bool longer, dim_runs *found)
{
	index_range source = range_of(array, from, dim), target = range_of(array, to, dim);
	for (int64_t i = 0, at; i < to->dims[dim]; i++) {
		int64_t index = sw_grid_global(to->grid, to->coordinates, dim, i),
			there = target.start + index - source.start;
		if (index >= target.length)
			break;
		if (there < 0 || there >= source.length ||
		    !find_local(from->grid, from->coordinates, dim, there, &at))
			continue;
		shared_run *last = found->runs.len ? &found->runs.data[found->runs.len - 1] : NULL;
		if (longer && last && last->from + last->length == at &&
		    last->to + last->length == i)
			last->length++;
		else
			sw_vec_push(&found->runs, ((shared_run){at, i, 1}));
	}
}

/* Runs along a dimension are joined where all that follow are whole in both parts: then they lie
 * side by side in memory too. */
static int32_t first_joined(sw_shape array, const sw_grid_part *from, const sw_grid_part *to)
{
	int32_t dim = array.rank - 1;
	while (dim > 0 && from->dims[dim] == array.dims[dim] && to->dims[dim] == array.dims[dim])
		dim--;
	return dim;
}

static void copy_runs(const dim_runs *dims, int32_t last, int32_t dim, int64_t bytes,
                      const char *data, char *out, int64_t *copied)
{
	const dim_runs *d = &dims[dim];
	for (size_t i = 0; i < d->runs.len; i++) {
		const shared_run *r = &d->runs.data[i];
		const char *source = data + r->from * d->from_pitch * bytes;
		char *target = out + r->to * d->to_pitch * bytes;
		if (dim < last) {
			copy_runs(dims, last, dim + 1, bytes, source, target, copied);
			continue;
		}
		size_t length = (size_t)(r->length * d->from_pitch * bytes);
		memcpy(target, source, length);
		*copied += (int64_t)length;
	}
}

/* Do two parts differ in a digit that both have, or are they of pieces that share nothing? */
static bool are_apart(sw_shape array, const sw_grid_part *a, const sw_grid_part *b)
{
	for (int32_t d = 0; d < array.rank; d++) {
		index_range x = range_of(array, a, d), y = range_of(array, b, d);
		if (x.start + x.length <= y.start || y.start + y.length <= x.start)
			return true;
	}
	for (int32_t i = 0; i < a->grid->n; i++)
		for (int32_t k = 0; k < b->grid->n; k++) {
			const sw_grid_digit *x = &a->grid->digits[i], *y = &b->grid->digits[k];
			if (x->dim == y->dim && x->stride == y->stride && x->size == y->size &&
			    range_of(array, a, x->dim).start == range_of(array, b, x->dim).start &&
			    a->coordinates[i] != b->coordinates[k])
				return true;
		}
	return false;
}

int64_t sw_grid_copy(sw_shape array, const sw_grid_part *from, const char *data,
                     const sw_grid_part *to, char *out)
{
	dim_runs dims[SW_MAX_RANK] = {0};
	int64_t bytes = sw_type_bytes(array.type), copied = 0, from_pitch = 1, to_pitch = 1;
	if (are_apart(array, from, to))
		return 0;
	if (array.rank == 0) {
		memcpy(out, data, (size_t)bytes);
		return bytes;
	}
	int32_t last = first_joined(array, from, to);
	for (int32_t d = array.rank; d-- > 0;) {
		dims[d].from_pitch = from_pitch;
		dims[d].to_pitch = to_pitch;
		from_pitch *= from->dims[d];
		to_pitch *= to->dims[d];
		if (d <= last)
			find_runs(array, from, to, d, d == last, &dims[d]);
	}
	if (from_pitch > 0 && to_pitch > 0)
		copy_runs(dims, last, 0, bytes, data, out, &copied);
	for (int32_t d = 0; d < array.rank; d++)
		sw_vec_clear(&dims[d].runs);
	return copied;
}

bool sw_grid_is_padded(const sw_grid_part *part, sw_shape array)
{
	int64_t dims[SW_MAX_RANK], extents[SW_MAX_RANK];
	for (int32_t d = 0; d < array.rank; d++)
		extents[d] = range_of(array, part, d).length;
	sw_shape piece = {.type = array.type, .rank = array.rank, .dims = extents};
	sw_grid_dims(part->grid, part->coordinates, piece, dims);
	for (int32_t d = 0; d < array.rank; d++)
		if (dims[d] != part->dims[d])
			return true;
	return false;
}
