/* The slices of a transfer: what each part of the source has in common with each part of the
 * target. */
#include "crossmesh/dim_classes.h"
#include "crossmesh/internal.h"

#include <string.h>

/* ---- one dimension ---------------------------------------------------------------------- */

/* The indices of a dimension that are of one class on either side. */
typedef struct dim_common {
	int64_t source, target, count;
} dim_common;
typedef struct dim_commons {
	SW_VEC(dim_common) list; /* by their first index */
} dim_commons;

static void find_commons(const sw_crossmesh_side *from, const sw_crossmesh_side *to, int32_t dim,
                         int64_t extent, dim_commons *commons)
{
	sw_map seen = {0};
	int64_t step = dim_common_step(from, to, dim, extent);
	for (int64_t i = 0; i < extent; i += step) {
		int64_t key[2] = {dim_class_of_index(from, dim, i), dim_class_of_index(to, dim, i)};
		uint32_t next = (uint32_t)commons->list.len;
		uint32_t at = sw_map_intern(&seen, key, sizeof(key), next);
		if (at == next)
			sw_vec_push(&commons->list, ((dim_common){key[0], key[1], 0}));
		commons->list.data[at].count += SW_MIN(step, extent - i);
	}
	sw_map_clear(&seen);
}

/* ---- the devices of parts --------------------------------------------------------------- */

/* Devices by part, and by term within a part: those of part q are
 * devices[start[q] .. start[q + 1]). */
typedef struct part_table {
	int64_t classes[SW_MAX_RANK], parts;
	int64_t *start, *devices;
} part_table;

static int64_t part_of(const part_table *table, const sw_crossmesh_side *side, int32_t rank,
                       int64_t index)
{
	int64_t part = 0;
	for (int32_t d = 0; d < rank; d++)
		part = part * table->classes[d] + dim_class_of_device(side, d, index);
	return part;
}

/* Counting sort by (term, part): two stable passes. `receiving`: leave out who does not get the
 * value. */
static part_table parts_list(const sw_crossmesh_side *side, int32_t rank, bool receiving,
                             sw_arena *arena)
{
	part_table table = {.parts = 1};
	int64_t n = sw_atoms_devices(&side->axes), terms = receiving ? 1 : side_terms(side);
	for (int32_t d = 0; d < rank; d++) {
		table.classes[d] = dim_class_count(side, d);
		table.parts *= table.classes[d];
	}
	int64_t *part = sw_alloc((size_t)n * sizeof(*part)), cells = table.parts * terms;
	int64_t *at = sw_alloc((size_t)(cells + 1) * sizeof(*at));
	table.start = SW_NEW_N(arena, int64_t, table.parts + 1);
	table.devices = SW_NEW_N(arena, int64_t, n);
	for (int64_t i = 0; i < n; i++) {
		bool in = !receiving || sw_crossmesh_gets_value(side, i);
		part[i] = in ? part_of(&table, side, rank, i) * terms : -1;
		if (in && !receiving)
			part[i] += side_term_of(side, i);
		if (in)
			at[part[i] + 1]++;
	}
	for (int64_t c = 0; c < cells; c++)
		at[c + 1] += at[c];
	for (int64_t q = 0; q <= table.parts; q++)
		table.start[q] = at[q * terms];
	for (int64_t i = 0; i < n; i++)
		if (part[i] >= 0)
			table.devices[at[part[i]]++] = side->devices[i];
	free(part);
	free(at);
	return table;
}

/* ---- all dimensions --------------------------------------------------------------------- */

typedef struct slice_finder {
	const sw_crossmesh_side *from, *to;
	int32_t rank, terms;
	dim_commons commons[SW_MAX_RANK];
	part_table sources, targets;
	sw_arena *arena;
} slice_finder;

static sw_unit_slice make_slice(const slice_finder *f, const int64_t *position)
{
	int64_t *source = SW_NEW_N(f->arena, int64_t, SW_MAX(f->rank, 1)),
		*target = SW_NEW_N(f->arena, int64_t, SW_MAX(f->rank, 1));
	sw_unit_slice slice = {
		.source = source, .target = target, .elements = 1, .n_terms = f->terms};
	for (int32_t d = 0; d < f->rank; d++) {
		dim_common common = f->commons[d].list.data[position[d]];
		source[d] = common.source;
		target[d] = common.target;
		slice.elements *= common.count;
		slice.source_part = slice.source_part * f->sources.classes[d] + common.source;
		slice.target_part = slice.target_part * f->targets.classes[d] + common.target;
	}
	const int64_t *holders = &f->sources.start[slice.source_part],
		      *receivers = &f->targets.start[slice.target_part];
	slice.n_holders = (int32_t)((holders[1] - holders[0]) / f->terms);
	slice.holders = f->sources.devices + holders[0];
	slice.n_receivers = (int32_t)(receivers[1] - receivers[0]);
	slice.receivers = f->targets.devices + receivers[0];
	return slice;
}

static bool step_position(const slice_finder *f, int64_t *position)
{
	for (int32_t d = f->rank - 1; d >= 0; d--) {
		if (++position[d] < (int64_t)f->commons[d].list.len)
			return true;
		position[d] = 0;
	}
	return false;
}

static slice_list find_all(slice_finder *f)
{
	int64_t n = 1, position[SW_MAX_RANK] = {0};
	for (int32_t d = 0; d < f->rank; d++)
		n *= (int64_t)f->commons[d].list.len;
	if (n == 0)
		return (slice_list){0};
	sw_unit_slice *slices = SW_NEW_N(f->arena, sw_unit_slice, n);
	int32_t found = 0;
	do
		slices[found++] = make_slice(f, position);
	while (step_position(f, position));
	return (slice_list){found, slices};
}

slice_list slices_find(const sw_crossmesh_side *from, const sw_crossmesh_side *to, sw_shape shape,
                       sw_arena *arena)
{
	slice_finder f = {.from = from,
	                  .to = to,
	                  .rank = shape.rank,
	                  .terms = (int32_t)side_terms(from),
	                  .sources = parts_list(from, shape.rank, false, arena),
	                  .targets = parts_list(to, shape.rank, true, arena),
	                  .arena = arena};
	for (int32_t d = 0; d < shape.rank; d++)
		find_commons(from, to, d, shape.dims[d], &f.commons[d]);
	slice_list slices = find_all(&f);
	for (int32_t d = 0; d < shape.rank; d++)
		sw_vec_clear(&f.commons[d].list);
	return slices;
}
