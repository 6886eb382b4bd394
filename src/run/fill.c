/* Fill inputs: the number of an element depends on its index in the whole tensor, hence not on the
 * layout. */
#include "run/run.h"

#include <math.h>
#include <string.h>

typedef double draw_fn(const sw_fill *fill, uint64_t seed, uint64_t stream, uint64_t index);

static double draw_constant(const sw_fill *fill, uint64_t seed, uint64_t stream, uint64_t index)
{
	(void)seed, (void)stream, (void)index;
	return fill->kind == SW_FILL_ONES ? 1 : fill->kind == SW_FILL_ZEROS ? 0 : fill->a;
}

static double draw_value(const sw_fill *fill, uint64_t seed, uint64_t stream, uint64_t index)
{
	(void)seed, (void)stream;
	return fill->values[index];
}

static double draw_normal(const sw_fill *fill, uint64_t seed, uint64_t stream, uint64_t index)
{
	return fill->a + fill->b * sw_random_normal(seed, stream, index);
}

static double draw_uniform(const sw_fill *fill, uint64_t seed, uint64_t stream, uint64_t index)
{
	return fill->a + (fill->b - fill->a) * sw_random_unit(seed, stream, index);
}

static double draw_integer(const sw_fill *fill, uint64_t seed, uint64_t stream, uint64_t index)
{
	return SW_MIN(floor(draw_uniform(fill, seed, stream, index)), fill->b - 1);
}

static draw_fn *const draws[] = {
	[SW_FILL_ZEROS] = draw_constant,    [SW_FILL_ONES] = draw_constant,
	[SW_FILL_CONSTANT] = draw_constant, [SW_FILL_NORMAL] = draw_normal,
	[SW_FILL_UNIFORM] = draw_uniform,   [SW_FILL_INTEGERS] = draw_integer,
	[SW_FILL_VALUES] = draw_value,
};

#define PADDING UINT64_MAX

/* The contribution of a local index along each dimension to the row-major index in the true
 * (unpadded) shape; PADDING beyond it. The offsets of dimension d begin at d * longest. */
typedef struct places {
	int32_t rank;
	int64_t longest, dims[SW_MAX_RANK];
	uint64_t *offsets;
} places;

static void find_places(const sw_atoms *atoms, sw_shape whole, const int64_t *true_dims,
                        const sw_layout *layout, int64_t device, const sw_fill_part *part,
                        places *p)
{
	uint64_t stride = 1;
	p->rank = whole.rank;
	p->longest = 1;
	sw_layout_local_dims(atoms, whole, layout, p->dims);
	for (int32_t d = 0; d < p->rank; d++)
		p->longest = SW_MAX(p->longest, p->dims[d]);
	p->offsets = sw_alloc((size_t)(p->longest * (p->rank + 1)) * sizeof(*p->offsets));
	for (int32_t d = p->rank; d-- > 0;) {
		bool cut = part && part->axis == d;
		int64_t start = cut ? part->start : 0, size = cut ? part->size : true_dims[d];
		for (int64_t i = 0; i < p->dims[d]; i++) {
			int64_t index = sw_layout_global_index(atoms, layout, d, device, i);
			p->offsets[d * p->longest + i] =
				index < true_dims[d] ? stride * (uint64_t)(start + index) : PADDING;
		}
		stride *= (uint64_t)size;
	}
}

/* Advance the local index in row-major order. */
static void advance(const places *p, int64_t *index)
{
	for (int32_t d = p->rank; d-- > 0;) {
		if (++index[d] < p->dims[d])
			return;
		index[d] = 0;
	}
}

/* Return false in the padding. */
static bool global_index(const places *p, const int64_t *index, uint64_t *sum)
{
	*sum = 0;
	for (int32_t d = 0; d < p->rank; d++) {
		uint64_t offset = p->offsets[d * p->longest + index[d]];
		if (offset == PADDING)
			return false;
		*sum += offset;
	}
	return true;
}

sw_status sw_fill_local(const sw_atoms *atoms, sw_shape whole, const int64_t *true_dims,
                        const sw_layout *layout, int64_t device, const sw_fill *fill, uint64_t seed,
                        uint64_t stream, sw_tensor *tensor, sw_error *err)
{
	int64_t index[SW_MAX_RANK] = {0}, elements = sw_shape_elements(tensor->shape);
	if (sw_layout_partial_atoms(layout))
		return sw_fail(err, SW_ERR_INTERNAL, "an input can't be filled with partial sums");
	if (fill->kind == SW_FILL_ZEROS && !true_dims) {
		memset(sw_tensor_data(*tensor), 0, (size_t)sw_shape_bytes(tensor->shape));
		return SW_OK;
	}
	places p;
	stream = fill->part ? fill->part->input : stream;
	find_places(atoms, whole, true_dims ? true_dims : whole.dims, layout, device, fill->part,
	            &p);
	for (int64_t e = 0; e < elements; e++) {
		uint64_t g;
		if (global_index(&p, index, &g))
			sw_element_set(whole.type, sw_tensor_data(*tensor), e,
			               draws[fill->kind](fill, seed, stream, g));
		advance(&p, index);
	}
	free(p.offsets);
	return SW_OK;
}
