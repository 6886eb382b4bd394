/* How a layout cuts a global array into blocks. */
#include "export/array_placement.h"

static int64_t stride_of(const sw_device_mesh *m, const sw_layout *layout, int32_t axis)
{
	return layout->state[m->axes[axis].end - 1].stride;
}

/* Return the number of elements that one turn of the axis's digit covers. */
static int64_t top_of(const sw_device_mesh *m, const sw_layout *layout, int32_t axis)
{
	return stride_of(m, layout, axis) * m->axes[axis].size;
}

static sw_placed_dim *add_dim(sw_array_placement *placement, int64_t size)
{
	sw_placed_dim *dim = &placement->dims[placement->n++];
	*dim = (sw_placed_dim){.size = size, .local_size = size};
	return dim;
}

static void add_axis(const sw_device_mesh *m, sw_placed_dim *dim, int32_t axis)
{
	dim->axes[dim->n_axes++] = axis;
	dim->local_size /= m->axes[axis].size;
}

/* Write one dimension of the shape as runs: each begins with digits that lie side by side. */
static void place_dim(const sw_device_mesh *m, const sw_layout *layout, int32_t d, int64_t size,
                      sw_array_placement *placement)
{
	int32_t axes[SW_MAX_ATOMS], n = sw_device_mesh_splits(m, layout, d, axes), i = 0;
	int64_t rest = size;
	if (n == 0 || top_of(m, layout, axes[0]) < size) {
		rest = n ? top_of(m, layout, axes[0]) : 1;
		add_dim(placement, n ? size / rest : size);
	}
	while (i < n) {
		int32_t end = i + 1;
		while (end < n &&
		       top_of(m, layout, axes[end]) == stride_of(m, layout, axes[end - 1]))
			end++;
		int64_t next = end < n ? top_of(m, layout, axes[end]) : 1;
		sw_placed_dim *dim = add_dim(placement, rest / next);
		for (; i < end; i++)
			add_axis(m, dim, axes[i]);
		rest = next;
	}
}

void sw_array_placement_of(const sw_device_mesh *mesh, sw_shape shape, const sw_layout *layout,
                           sw_array_placement *placement)
{
	placement->n = 0;
	for (int32_t d = 0; d < shape.rank; d++)
		place_dim(mesh, layout, d, shape.dims[d], placement);
}

json_t *sw_array_placement_digits_json(const sw_array_placement *placement)
{
	json_t *digits = json_array();
	for (int32_t i = 0; i < placement->n; i++)
		json_array_append_new(digits, json_integer(placement->dims[i].size));
	return digits;
}

json_t *sw_array_placement_spec_json(const sw_device_mesh *mesh,
                                     const sw_array_placement *placement)
{
	json_t *spec = json_array();
	for (int32_t i = 0; i < placement->n; i++) {
		const sw_placed_dim *dim = &placement->dims[i];
		json_t *axes = json_array();
		for (int32_t k = 0; k < dim->n_axes; k++)
			json_array_append_new(axes, json_string(mesh->axes[dim->axes[k]].name));
		json_array_append_new(spec, axes);
	}
	return spec;
}

json_t *sw_dims_json(sw_shape shape)
{
	json_t *dims = json_array();
	for (int32_t d = 0; d < shape.rank; d++)
		json_array_append_new(dims, json_integer(shape.dims[d]));
	return dims;
}

json_t *sw_array_placement_json(const sw_device_mesh *mesh, const char *name, sw_shape user,
                                sw_shape shape, const sw_array_placement *placement)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "name", name, "type",
	                 sw_type_name(shape.type), "shape", sw_dims_json(user), "padded",
	                 sw_dims_json(shape), "digits", sw_array_placement_digits_json(placement),
	                 "spec", sw_array_placement_spec_json(mesh, placement));
}
