/* The classes of indices and devices of a side (dim_classes.h). */
#include "crossmesh/dim_classes.h"

static bool splits(const sw_crossmesh_side *side, int32_t axis, int32_t dim)
{
	return side->layout.state[axis].kind == SW_STATE_S && side->layout.state[axis].dim == dim;
}

int64_t dim_class_count(const sw_crossmesh_side *side, int32_t dim)
{
	int64_t n = 1;
	for (int32_t a = 0; a < side->axes.n; a++)
		if (splits(side, a, dim))
			n *= side->axes.size[a];
	return n;
}

int64_t dim_class_of_index(const sw_crossmesh_side *side, int32_t dim, int64_t index)
{
	int64_t class = 0;
	for (int32_t a = 0; a < side->axes.n; a++)
		if (splits(side, a, dim))
			class = class * side->axes.size[a] +
			        index / side->layout.state[a].stride % side->axes.size[a];
	return class;
}

int64_t dim_class_of_device(const sw_crossmesh_side *side, int32_t dim, int64_t device)
{
	int64_t class = 0;
	for (int32_t a = 0; a < side->axes.n; a++)
		if (splits(side, a, dim))
			class = class * side->axes.size[a] +
			        sw_atoms_coordinate(&side->axes, device, a);
	return class;
}

/* Return the axis with the largest stride below `below` that splits the dimension; -1: none. */
static int32_t next_axis(const sw_crossmesh_side *side, int32_t dim, int64_t below)
{
	int32_t found = -1;
	for (int32_t a = 0; a < side->axes.n; a++)
		if (splits(side, a, dim) && side->layout.state[a].stride < below &&
		    (found < 0 || side->layout.state[a].stride > side->layout.state[found].stride))
			found = a;
	return found;
}

int64_t dim_local_index(const sw_crossmesh_side *side, int32_t dim, int64_t index)
{
	int64_t below = INT64_MAX;
	for (int32_t a; (a = next_axis(side, dim, below)) >= 0;) {
		int64_t t = side->layout.state[a].stride, p = side->axes.size[a];
		index = index / (t * p) * t + index % t;
		below = t;
	}
	return index;
}

static int64_t stride_step(const sw_crossmesh_side *side, int32_t dim, int64_t step)
{
	for (int32_t a = 0; a < side->axes.n; a++)
		if (splits(side, a, dim))
			step = sw_gcd(step, side->layout.state[a].stride);
	return step;
}

int64_t dim_common_step(const sw_crossmesh_side *from, const sw_crossmesh_side *to, int32_t dim,
                        int64_t extent)
{
	int64_t step = stride_step(to, dim, stride_step(from, dim, 0));
	return step ? step : SW_MAX(extent, 1);
}

int64_t side_terms(const sw_crossmesh_side *side)
{
	return sw_atoms_group_size(&side->axes, sw_layout_partial_atoms(&side->layout));
}

int64_t side_term_of(const sw_crossmesh_side *side, int64_t device)
{
	uint32_t partial = sw_layout_partial_atoms(&side->layout);
	int64_t term = 0;
	for (int32_t a = 0; a < side->axes.n; a++)
		if (partial >> a & 1)
			term = term * side->axes.size[a] +
			       sw_atoms_coordinate(&side->axes, device, a);
	return term;
}

bool sw_crossmesh_gets_value(const sw_crossmesh_side *to, int64_t index)
{
	bool adds_up = to->layout.monoid == SW_MONOID_SUM || to->layout.monoid == SW_MONOID_PRODUCT;
	return !adds_up || side_term_of(to, index) == 0;
}

int64_t sw_crossmesh_index_of(const sw_crossmesh_side *side, int64_t device)
{
	int64_t n = sw_atoms_devices(&side->axes);
	for (int64_t i = 0; i < n; i++)
		if (side->devices[i] == device)
			return i;
	return -1;
}

int64_t sw_crossmesh_local_bytes(const sw_crossmesh_side *side, sw_shape shape)
{
	shape.dims = side->dims;
	return sw_layout_local_bytes(&side->axes, shape, &side->layout);
}

void sw_crossmesh_pad(sw_crossmesh_side *side, sw_shape shape)
{
	for (int32_t d = 0; d < shape.rank; d++) {
		int64_t multiple = 1;
		for (int32_t a = 0; a < side->axes.n; a++)
			if (splits(side, a, d))
				multiple = SW_MAX(multiple, side->layout.state[a].stride *
				                                    side->axes.size[a]);
		side->dims[d] = sw_ceil_div(SW_MAX(shape.dims[d], 1), multiple) * multiple;
		if (shape.dims[d] == 0 && multiple == 1)
			side->dims[d] = 0;
	}
}
