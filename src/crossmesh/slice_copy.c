/* Slices in and out of a device's part. */
#include "crossmesh/dim_classes.h"

#include <string.h>

/* Where the indices of a slice lie in a device's part: offsets[d][i] bytes for the i-th index of
 * dimension d. */
typedef struct slice_places {
	int32_t rank;
	int64_t count[SW_MAX_RANK];
	int64_t *offsets[SW_MAX_RANK];
	int64_t width; /* bytes of an element */
} slice_places;

static void list_dim(const sw_crossmesh_plan *plan, const sw_unit_slice *slice,
                     const sw_crossmesh_side *side, int32_t d, int64_t pitch, slice_places *places)
{
	int64_t extent = plan->shape.dims[d], n = 0;
	int64_t step = dim_common_step(&plan->from, &plan->to, d, extent);
	int64_t *offsets = sw_alloc((size_t)SW_MAX(extent, 1) * sizeof(*offsets));
	for (int64_t i = 0; i < extent; i += step) {
		if (dim_class_of_index(&plan->from, d, i) != slice->source[d] ||
		    dim_class_of_index(&plan->to, d, i) != slice->target[d])
			continue;
		int64_t local = dim_local_index(side, d, i);
		for (int64_t k = 0; k < SW_MIN(step, extent - i); k++)
			offsets[n++] = (local + k) * pitch;
	}
	places->count[d] = n;
	places->offsets[d] = offsets;
}

static slice_places places_of(const sw_crossmesh_plan *plan, const sw_unit_slice *slice,
                              const sw_crossmesh_side *side)
{
	slice_places places = {.rank = plan->shape.rank, .width = sw_type_bytes(plan->shape.type)};
	sw_shape padded = plan->shape;
	int64_t local[SW_MAX_RANK], pitch = places.width;
	padded.dims = side->dims;
	sw_layout_local_dims(&side->axes, padded, &side->layout, local);
	for (int32_t d = places.rank - 1; d >= 0; d--) {
		list_dim(plan, slice, side, d, pitch, &places);
		pitch *= local[d];
	}
	return places;
}

static void places_clear(slice_places *places)
{
	for (int32_t d = 0; d < places->rank; d++)
		free(places->offsets[d]);
}

/* Return how many elements from here on are adjacent in the part, at most `most`. */
static int64_t run_length(const slice_places *places, const int64_t *position, int64_t most)
{
	int32_t last = places->rank - 1;
	if (last < 0)
		return 1;
	const int64_t *at = places->offsets[last] + position[last];
	int64_t n = 1, end = SW_MIN(places->count[last] - position[last], most);
	while (n < end && at[n] == at[n - 1] + places->width)
		n++;
	return n;
}

static int64_t offset_of(const slice_places *places, const int64_t *position)
{
	int64_t offset = 0;
	for (int32_t d = 0; d < places->rank; d++)
		offset += places->offsets[d][position[d]];
	return offset;
}

static void advance(const slice_places *places, int64_t *position, int64_t n)
{
	int32_t d = places->rank - 1;
	if (d < 0)
		return;
	position[d] += n;
	for (; d > 0 && position[d] >= places->count[d]; d--) {
		position[d] = 0;
		position[d - 1]++;
	}
}

static void find_position(const slice_places *places, int64_t number, int64_t *position)
{
	for (int32_t d = places->rank - 1; d >= 0; d--) {
		position[d] = number % places->count[d];
		number /= places->count[d];
	}
}

/* Copy from the part to the buffer (buffer_in NULL), or the other way round. */
static void copy(const slice_places *places, int64_t first, int64_t elements, const char *part_in,
                 char *buffer, char *part, const char *buffer_in)
{
	int64_t position[SW_MAX_RANK] = {0};
	find_position(places, first, position);
	for (int64_t done = 0, n; done < elements; done += n) {
		int64_t at = offset_of(places, position);
		n = run_length(places, position, elements - done);
		size_t bytes = (size_t)(n * places->width);
		if (buffer)
			memcpy(buffer + done * places->width, part_in + at, bytes);
		else
			memcpy(part + at, buffer_in + done * places->width, bytes);
		advance(places, position, n);
	}
}

void sw_crossmesh_pack(const sw_crossmesh_plan *plan, const sw_unit_slice *slice, int64_t first,
                       int64_t elements, const void *part, void *buffer)
{
	slice_places places = places_of(plan, slice, &plan->from);
	copy(&places, first, elements, part, buffer, NULL, NULL);
	places_clear(&places);
}

void sw_crossmesh_unpack(const sw_crossmesh_plan *plan, const sw_unit_slice *slice, int64_t first,
                         int64_t elements, const void *buffer, void *part)
{
	slice_places places = places_of(plan, slice, &plan->to);
	copy(&places, first, elements, NULL, NULL, part, buffer);
	places_clear(&places);
}
