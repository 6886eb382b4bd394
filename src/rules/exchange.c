/*
 * Parts of a local op that communicate: the rows that a block of a split dimension needs from other
 * blocks. Windows, slices, scans and merges are written with these functions; each states only the
 * range that it needs, and this file alone computes which blocks hold it.
 */
#include "rules/row.h"

#include <assert.h>

const char *sw_exchange_name(sw_exchange exchange)
{
	static const char *const names[] = {[SW_EXCHANGE_NONE] = "",
	                                    [SW_EXCHANGE_HALO] = "halo",
	                                    [SW_EXCHANGE_SCAN] = "scan",
	                                    [SW_EXCHANGE_MERGE] = "merge",
	                                    [SW_EXCHANGE_FLIP] = "flip"};
	return (size_t)exchange < SW_COUNT(names) ? names[exchange] : "unknown";
}

/* ---- blocks ----------------------------------------------------------------------------- */

sw_blocks sw_exchange_blocks(const sw_local_op *local, const sw_layout *layout, int32_t dim)
{
	sw_digit digits[SW_MAX_ATOMS];
	int32_t n = sw_rule_digits(local->atoms, layout, dim, digits);
	sw_blocks blocks = {.count = 1};

	for (int32_t i = 0; i < n; i++) {
		const sw_choice *choice = &local->in->strategy->atom[digits[i].atom];
		if (local->in->rule->factors[choice->index].exchange == SW_EXCHANGE_NONE)
			continue;
		blocks.atom[blocks.n++] = digits[i].atom;
		blocks.count *= digits[i].size;
	}
	return blocks;
}

static sw_id scalar(sw_local_op *local, int64_t value)
{
	return sw_emit_scalar(local->out, local->computation, SW_S32, (double)value);
}

sw_id sw_blocks_index(sw_local_op *local, const sw_blocks *blocks)
{
	sw_id index = SW_NO_ID;

	for (int32_t i = 0; i < blocks->n; i++) {
		sw_id digit = sw_coordinate(local->in->coordinates, blocks->atom[i]);
		if (index != SW_NO_ID)
			index = sw_local_binary(local, SW_OP_MULTIPLY, index,
			                        scalar(local, local->atoms->size[blocks->atom[i]]));
		index = index == SW_NO_ID ? digit : sw_local_binary(local, SW_OP_ADD, index, digit);
	}
	return index == SW_NO_ID ? scalar(local, 0) : index;
}

static int64_t block_of(const sw_atoms *atoms, const sw_blocks *blocks, int64_t device)
{
	int64_t block = 0;

	for (int32_t i = 0; i < blocks->n; i++)
		block = block * atoms->size[blocks->atom[i]] +
		        sw_atoms_coordinate(atoms, device, blocks->atom[i]);
	return block;
}

/* Return the device that differs from this one in the block alone. */
static int64_t device_with(const sw_atoms *atoms, const sw_blocks *blocks, int64_t device,
                           int64_t block)
{
	for (int32_t i = blocks->n - 1; i >= 0; i--) {
		int32_t a = blocks->atom[i];
		int64_t digit = block % atoms->size[a] - sw_atoms_coordinate(atoms, device, a);
		device += digit * sw_atoms_stride(atoms, a);
		block /= atoms->size[a];
	}
	return device;
}

sw_id sw_blocks_permute(sw_local_op *local, const sw_blocks *blocks, sw_id x, const int64_t *source)
{
	int64_t devices = sw_atoms_devices(local->atoms);
	int64_t *pairs = SW_NEW_N(&local->arena, int64_t, 2 * devices);
	int32_t n = 0;
	bool stays = true;

	for (int64_t c = 0; c < blocks->count; c++)
		stays &= source[c] == c;
	if (stays)
		return x;
	for (int64_t d = 0; d < devices; d++) {
		int64_t from = source[block_of(local->atoms, blocks, d)];
		if (from < 0)
			continue;
		pairs[2 * n] = device_with(local->atoms, blocks, d, from);
		pairs[2 * n++ + 1] = d;
	}
	return n > 0 ? sw_emit_permute(local->out, local->computation, x, pairs, n)
	             : sw_local_like(local, x, 0);
}

sw_id sw_blocks_gather(sw_local_op *local, const sw_blocks *blocks, sw_id x, int32_t dim)
{
	int64_t devices = sw_atoms_devices(local->atoms), n = 0;
	int64_t *list = SW_NEW_N(&local->arena, int64_t, devices);

	if (blocks->count == 1)
		return x;
	for (int64_t d = 0; d < devices; d++)
		for (int64_t c = 0; c < blocks->count && block_of(local->atoms, blocks, d) == 0;
		     c++)
			list[n++] = device_with(local->atoms, blocks, d, c);
	sw_groups groups = {
		.n_groups = devices / blocks->count, .group_size = blocks->count, .list = list};
	return sw_emit_collective(local->out, local->computation, SW_OP_ALL_GATHER, SW_MONOID_NONE,
	                          x, dim, &groups);
}

/* ---- cutting ---------------------------------------------------------------------------- */

static sw_id slice_rows(sw_local_op *local, sw_id x, int32_t dim, int64_t low, int64_t high)
{
	sw_shape shape = sw_value_shape(local->out, x);
	int64_t start[SW_MAX_RANK] = {0}, limit[SW_MAX_RANK];

	if (low == 0 && high == shape.dims[dim])
		return x;
	for (int32_t d = 0; d < shape.rank; d++)
		limit[d] = shape.dims[d];
	start[dim] = low;
	limit[dim] = high;
	return sw_emit_slice(local->out, local->computation, x, start, limit, NULL);
}

sw_id sw_blocks_cut(sw_local_op *local, const sw_blocks *blocks, sw_id x, int32_t dim,
                    int64_t start, int64_t step, int64_t length)
{
	sw_shape shape = sw_value_shape(local->out, x);
	sw_id starts[SW_MAX_RANK];
	int64_t sizes[SW_MAX_RANK];

	if (step == 0)
		return slice_rows(local, x, dim, start, start + length);
	sw_id offset = sw_local_binary(local, SW_OP_MULTIPLY, sw_blocks_index(local, blocks),
	                               scalar(local, step));
	offset = sw_local_binary(local, SW_OP_ADD, offset, scalar(local, start));
	for (int32_t d = 0; d < shape.rank; d++) {
		sizes[d] = d == dim ? length : shape.dims[d];
		starts[d] = d == dim ? offset : scalar(local, 0);
	}
	return sw_emit_dynamic_slice(local->out, local->computation, x, starts, sizes);
}

/* ---- fetching --------------------------------------------------------------------------- */

typedef struct fetch {
	sw_local_op *local;
	const sw_blocks *blocks;
	int32_t dim;
	int64_t rows;                /* per block */
	int64_t start, step, length; /* in rows: block c needs [start + c*step, + length) of all */
	sw_id fill;
} fetch;

/* Fill x with `fill` on the blocks at the ends, which have no block at that distance. */
static sw_id fill_missing(const fetch *f, sw_id x, int64_t distance)
{
	sw_local_op *local = f->local;
	int64_t bound = distance < 0 ? -distance : f->blocks->count - distance;
	sw_id there = sw_emit_compare(local->out, local->computation, distance < 0 ? SW_GE : SW_LT,
	                              sw_blocks_index(local, f->blocks), scalar(local, bound));

	return sw_emit_select(local->out, local->computation, there, x,
	                      sw_local_scalar_like(local, x, f->fill));
}

/* Return the rows [low, high) of the block `distance` further on, where a block needs some of
 * them. */
static sw_id rows_of(const fetch *f, sw_id x, int64_t distance, int64_t low, int64_t high)
{
	int64_t *source = SW_NEW_N(&f->local->arena, int64_t, f->blocks->count);
	bool missing = false;

	x = slice_rows(f->local, x, f->dim, low, high);
	if (distance == 0)
		return x;
	for (int64_t c = 0; c < f->blocks->count; c++) {
		int64_t first = f->start + c * f->step - (c + distance) * f->rows;
		bool needs = first < high && first + f->length > low;
		bool there = c + distance >= 0 && c + distance < f->blocks->count;
		source[c] = needs && there ? c + distance : -1;
		missing |= needs && !there;
	}
	x = sw_blocks_permute(f->local, f->blocks, x, source);
	return missing && f->fill != SW_NO_ID ? fill_missing(f, x, distance) : x;
}

/* Find the least and the largest begin of a block's range, counted from the block's own first
 * row. */
static void range_of_begins(const fetch *f, int64_t *least, int64_t *most)
{
	int64_t drift = (f->blocks->count - 1) * (f->step - f->rows);

	*least = f->start + SW_MIN(drift, 0);
	*most = f->start + SW_MAX(drift, 0);
}

/* Return n rows that no block has. */
static sw_id missing_rows(const fetch *f, sw_id x, int64_t n)
{
	sw_local_op *local = f->local;
	sw_shape shape = sw_value_shape(local->out, x);
	int64_t dims[SW_MAX_RANK];
	sw_id fill = f->fill != SW_NO_ID
	                     ? f->fill
	                     : sw_emit_scalar(local->out, local->computation, shape.type, 0);

	for (int32_t d = 0; d < shape.rank; d++)
		dims[d] = d == f->dim ? n : shape.dims[d];
	shape = sw_build_shape(local->out, shape.type, dims, shape.rank);
	return sw_emit_broadcast(local->out, local->computation, fill, shape, NULL);
}

/* Return all rows that a block may need, relative to its own: [least, end), taken from the blocks
 * in which they lie. */
static sw_id join_rows(const fetch *f, sw_id x, int64_t least, int64_t end)
{
	int64_t before = -(f->blocks->count - 1) * f->rows, after = f->blocks->count * f->rows;
	int64_t from = SW_MAX(least, before), to = SW_MIN(end, after);
	sw_id *pieces = SW_NEW_N(&f->local->arena, sw_id, 2 * f->blocks->count + 1);
	uint32_t n = 0;

	if (least < before)
		pieces[n++] = missing_rows(f, x, SW_MIN(end, before) - least);
	for (int64_t k = sw_floor_div(from, f->rows); k * f->rows < to; k++)
		pieces[n++] = rows_of(f, x, k, SW_MAX(0, from - k * f->rows),
		                      SW_MIN(f->rows, to - k * f->rows));
	if (end > after)
		pieces[n++] = missing_rows(f, x, end - SW_MAX(least, after));
	return sw_emit_concatenate(f->local->out, f->local->computation, pieces, n, f->dim);
}

/* Dilate x, so that the positions between its elements become elements. */
static sw_id dilate(sw_local_op *local, sw_id x, int32_t dim, int64_t dilation, sw_id fill)
{
	int64_t none[SW_MAX_RANK] = {0}, gaps[SW_MAX_RANK] = {0};
	sw_type type = sw_value_shape(local->out, x).type;

	gaps[dim] = dilation - 1;
	if (fill == SW_NO_ID)
		fill = sw_emit_scalar(local->out, local->computation, type, 0);
	return sw_emit_pad(local->out, local->computation, x, fill, none, gaps, gaps);
}

/* Fetch the elements at positions [start + c*step, + length): with gaps between them the first
 * stands `low` further on, and does so in every block, since the dilation divides the step. */
sw_id sw_blocks_fetch(sw_local_op *local, const sw_blocks *blocks, sw_id x, int32_t dim,
                      sw_reach *reach)
{
	int64_t gap = reach->dilation;

	if (reach->step % gap != 0) {
		x = dilate(local, x, dim, gap, reach->fill);
		gap = 1;
	}
	int64_t low = sw_floor_mod(-reach->start, gap);
	fetch f = {.local = local,
	           .blocks = blocks,
	           .dim = dim,
	           .rows = sw_value_shape(local->out, x).dims[dim],
	           .start = (reach->start + low) / gap,
	           .step = reach->step / gap,
	           .length = reach->length > low ? (reach->length - low - 1) / gap + 1 : 0,
	           .fill = reach->fill};
	int64_t least, most;

	reach->low = low;
	reach->interior = gap - 1;
	/* The range has only gaps: nothing but padding is returned. */
	if (f.length == 0) {
		reach->low = reach->length;
		reach->interior = reach->high = 0;
		return slice_rows(local, x, dim, 0, 0);
	}
	reach->high = reach->length - low - ((f.length - 1) * gap + 1);
	range_of_begins(&f, &least, &most);
	x = join_rows(&f, x, least, most + f.length);
	return sw_blocks_cut(local, blocks, x, dim, f.start - least, f.step - f.rows, f.length);
}
