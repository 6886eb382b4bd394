/* dim_classes: the classes into which a side's layout divides the indices of a dimension, and the
 * devices of its mesh. Private to src/crossmesh. */
#ifndef SW_CROSSMESH_DIM_CLASSES_H
#define SW_CROSSMESH_DIM_CLASSES_H

#include "crossmesh/crossmesh.h"

/* Return the number of classes of a dimension: the product of the axes that split it. */
int64_t dim_class_count(const sw_crossmesh_side *side, int32_t dim);
/* Return the class of an index, and of a device by its index in the mesh: its digits, mixed radix
 * in the order of the axes. */
int64_t dim_class_of_index(const sw_crossmesh_side *side, int32_t dim, int64_t index);
int64_t dim_class_of_device(const sw_crossmesh_side *side, int32_t dim, int64_t device);
/* Return the local index of an index of the whole: its digits are taken out. */
int64_t dim_local_index(const sw_crossmesh_side *side, int32_t dim, int64_t index);
/* Return the length of the blocks of indices, counted from 0, in which no class changes on either
 * side: the greatest common divisor of all strides, or the extent; at least 1. */
int64_t dim_common_step(const sw_crossmesh_side *from, const sw_crossmesh_side *to, int32_t dim,
                        int64_t extent);
/* Return the number of a device's term: its coordinates on the P axes, mixed radix. */
int64_t side_term_of(const sw_crossmesh_side *side, int64_t device);
int64_t side_terms(const sw_crossmesh_side *side);

#endif
