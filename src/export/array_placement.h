/*
 * array_placement: a layout as blocks of a global array. A dimension whose split digits are not the
 * outermost ones is written as several dimensions, so that each digit is a block of one of them.
 */
#ifndef SW_EXPORT_ARRAY_PLACEMENT_H
#define SW_EXPORT_ARRAY_PLACEMENT_H

#include "plan/device_mesh.h"

/* A dimension of the global array: `size` elements, cut into equal blocks over the mesh's axes,
 * outermost first. */
typedef struct sw_placed_dim {
	int64_t size, local_size;
	int32_t n_axes, axes[SW_MAX_ATOMS];
} sw_placed_dim;

typedef struct sw_array_placement {
	int32_t n;
	sw_placed_dim dims[SW_MAX_RANK + SW_MAX_ATOMS * 2];
} sw_array_placement;

/* Cut an array of the plan's (padded) shape. The sizes of the dimensions multiply to those of the
 * shape, in order, and the local sizes to those of a device's part. The layout has no partial sums.
 * O(rank * axes). */
void sw_array_placement_of(const sw_device_mesh *mesh, sw_shape shape, const sw_layout *layout,
                           sw_array_placement *placement);

/* Return what a placement is in words of JAX: the keys `digits` and `spec` of docs/commands.md. */
json_t *sw_array_placement_digits_json(const sw_array_placement *placement);
json_t *sw_array_placement_spec_json(const sw_device_mesh *mesh,
                                     const sw_array_placement *placement);
/* Return the list of a shape's dimensions. */
json_t *sw_dims_json(sw_shape shape);
/* Return the object of an array of a module: name, type, shape, padded, digits, spec. `user` is its
 * shape, `shape` the padded one. */
json_t *sw_array_placement_json(const sw_device_mesh *mesh, const char *name, sw_shape user,
                                sw_shape shape, const sw_array_placement *placement);

#endif
