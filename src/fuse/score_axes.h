/*
 * score_axes: the axes of scores, which tell one dimension from another of the same size.
 *
 * A value of a score region has a list of axes, major first, whose sizes multiply to its number of
 * elements; axes of one element are left out. The list says in which order the elements lie, and
 * not how they are divided into dimensions: a reshape keeps it. Where two values are joined element
 * by element their axes are the same; where a dimension ends inside an axis, the axis is split in
 * two. An axis of which a slice is taken, or that is made longer, has KIN of another size: they
 * have the same role.
 */
#ifndef SW_FUSE_SCORE_AXES_H
#define SW_FUSE_SCORE_AXES_H

#include "program/program.h"

typedef struct sw_axis_list {
	int32_t n;
	const uint32_t *v;
} sw_axis_list;

typedef struct sw_score_axis {
	int64_t size;
	uint32_t same; /* the axis that this one was found to be; itself: none */
	uint32_t high; /* split into high (major) and high + 1; SW_NO_ID: whole */
	uint32_t kin;  /* an axis that has its role; itself: it has its own */
	uint8_t role;  /* bits that the analysis of the region sets (score_roles.c) */
} sw_score_axis;

typedef struct sw_axes {
	sw_arena *arena; /* of the lists; the caller's */
	SW_VEC(sw_score_axis) list;
} sw_axes;

void sw_axes_clear(sw_axes *axes);
uint32_t sw_axes_add(sw_axes *axes, int64_t size);
/* Add an axis that is kin to one of a resolved list. */
uint32_t sw_axes_add_kin(sw_axes *axes, int64_t size, uint32_t of);
/* Return the axis that has the role of this one and its kin. */
uint32_t sw_axes_kin(const sw_axes *axes, uint32_t axis);
/* Return the list with each axis replaced by what it is now. */
sw_axis_list sw_axes_resolve(const sw_axes *axes, sw_axis_list list);
bool sw_axes_have(sw_axis_list list, uint32_t axis);
/* Make the axes of two lists the same, one by one. Return false, and leave them different, if their
 * sizes do not match, or if an axis would become another one of its own list. */
bool sw_axes_unify(sw_axes *axes, sw_axis_list x, sw_axis_list y);
/* Resolve the list into *out and divide it among the dimensions of a shape of as many elements:
 * dimension d has the axes [begin[d], begin[d + 1]) of *out. Return false if an axis crosses the
 * border of two dimensions at no integral place. */
bool sw_axes_divide(sw_axes *axes, sw_axis_list list, sw_shape shape, sw_axis_list *out,
                    int32_t begin[SW_MAX_RANK + 1]);

#endif
