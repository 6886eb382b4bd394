/* live_versions.c: the live ranges of all versions of each value under a plan (a version is the
 * value in one layout), and the bytes that they take together at each program point. Private to
 * regather.c. */
#ifndef SW_SEARCH_LIVE_VERSIONS_H
#define SW_SEARCH_LIVE_VERSIONS_H

#include "search/internal.h"

/* A read of a value in some layout; program points are those of roles. */
typedef struct sw_use {
	sw_id value;
	sw_id op; /* SW_NO_ID: the results of a computation */
	uint32_t layout;
	int32_t point;
	int32_t previous_point; /* the use of that version before this one, with everything cached
	                         */
	bool can_regather;      /* other points lie between the two uses, and there is a path */
	bool regathers;
	double seconds; /* of re-gathering, per step */
	/* bytes that re-gathering this use alone frees, on average over the gap; regather.c fills
	 * it in, and ranks uses by the benefit, bytes x points per second */
	double freed_bytes, benefit;
} sw_use;

typedef struct sw_version_range { /* of one version of a value: points [begin, end) */
	uint32_t layout;
	int32_t begin, end;
} sw_version_range;

typedef struct sw_version_ranges {
	sw_arena arena;
	const sw_plan *plan;
	const sw_roles *roles;
	sw_path_cache *paths;
	sw_layouts layouts;  /* the plan's first, by the same numbers */
	SW_VEC(sw_use) uses; /* by value, then point */
	uint32_t *first;     /* [values + 1] into uses */
} sw_version_ranges;
/* Find the uses, all cached but those that the plan has re-gather. The plan, the roles and the paths are borrowed. O(ops). */
void sw_version_ranges_init(sw_version_ranges *ranges, const sw_plan *plan, const sw_roles *roles,
                            sw_path_cache *paths);
void sw_version_ranges_clear(sw_version_ranges *ranges);
/* Call `visit` for each live range of a value, as partition makes its versions. */
typedef void sw_visit_version(void *context, int32_t begin, int32_t end, int64_t bytes);
void sw_version_ranges_walk(sw_version_ranges *ranges, sw_id value, sw_visit_version *visit,
                            void *context);
/* Let this use re-gather, or not, and call `visit` for each live range of its value that changes:
 * with negative bytes for the old ranges. */
void sw_version_ranges_set(sw_version_ranges *ranges, sw_use *use, bool regathers,
                           sw_visit_version *visit, void *context);

/* Bytes per program point: a segment tree. Adding and querying take O(log points) each. */
typedef struct sw_demand {
	int32_t n, leaves;
	/* per node of a binary tree: the maximum below it; the bytes added to all of it */
	int64_t *max, *added;
} sw_demand;
void sw_demand_init(sw_demand *demand, int32_t points, sw_arena *arena);
void sw_demand_add(sw_demand *demand, int32_t begin, int32_t end, int64_t bytes);
/* Return the maximum over [begin, end); 0 of an empty range. */
int64_t sw_demand_max(const sw_demand *demand, int32_t begin, int32_t end);

#endif
