/*
 * score_regions: where a program computes with scores.
 *
 * A SCORE REGION begins at dots whose result has dimensions of both operands, and consists of all
 * that follows from their results by elementwise ops, moves within the dimensions, slices and
 * longer dimensions, reductions and broadcasts of what was reduced. Every value of a region has
 * axes (score_axes.h), so that the dimensions of one value are found again in another, whatever
 * their order or size. A dot that reads a value of a region ends it. Regions that meet in an
 * elementwise op become one.
 *
 * Each value belongs to at most one region, so all regions of a computation take O(uses).
 */
#ifndef SW_FUSE_SCORE_REGIONS_H
#define SW_FUSE_SCORE_REGIONS_H

#include "fuse/internal.h"
#include "fuse/score_axes.h"

typedef struct sw_score_value {
	/* of a value of no region: the value of a region that it follows from by collectives, moves
	 * and elementwise ops alone, as a row statistic of all devices does from those of each;
	 * SW_NO_ID: none */
	sw_id from;
	uint32_t region;   /* SW_NO_ID: of none; else see sw_score_region_of */
	bool exponential;  /* an exponential, or one that was scaled, converted or masked */
	bool sheared;      /* its last two dimensions have the sizes of its last two axes, exchanged */
	sw_axis_list axes; /* see sw_axes_resolve */
} sw_score_value;

typedef struct sw_score_region {
	uint32_t same; /* the region that this one was joined with; itself: none */
	bool softmax;  /* an exponential is summed over some of its dimensions */
	int32_t rows;  /* how many axes that sum has */
	bool multiplied; /* a dot reads a value of it */
	/* an op that joins two values of the region in different orders of their axes; SW_NO_ID */
	sw_id conflict;
	/* ops that compute a value of the region, or read one in a dot or reduction; ascending */
	uint32_t n_ops;
	const sw_id *ops;
} sw_score_region;

typedef struct sw_score_regions {
	const sw_fuser *f;
	int32_t computation;
	sw_arena arena;
	sw_axes axes;
	sw_id first_value;      /* of the computation */
	sw_score_value *values; /* by value - first_value */
	SW_VEC(sw_score_region) list;
} sw_score_regions;

void sw_score_regions_find(sw_score_regions *regions, const sw_fuser *f, int32_t computation);
void sw_score_regions_clear(sw_score_regions *regions);

/* Return the region that a region was joined with in the end. */
uint32_t sw_score_region_root(const sw_score_regions *regions, uint32_t region);
/* Return the region of a value of the computation; SW_NO_ID: none. */
uint32_t sw_score_region_of(const sw_score_regions *regions, sw_id value);
/* Return the axes of a value of a region. */
sw_axis_list sw_score_axes_of(const sw_score_regions *regions, sw_id value);
/* Divide the axes of a value of a region among its dimensions (sw_axes_divide). */
bool sw_score_divide(sw_score_regions *regions, sw_id value, sw_axis_list *axes,
                     int32_t begin[SW_MAX_RANK + 1]);

#endif
