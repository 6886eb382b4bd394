/* live_versions.c: from when to when the versions of each value are there, under a plan; and how
 * many bytes that is at each point. Private to regather.c. */
#ifndef SW_SEARCH_LIVE_VERSIONS_H
#define SW_SEARCH_LIVE_VERSIONS_H

#include "search/internal.h"

/* A value that is read in some layout; points are those of roles. */
typedef struct sw_use {
	sw_id value, op; /* SW_NO_ID: a computation's results */
	uint32_t layout;
	/* since: of what there is in that layout with all kept, the use before */
	int32_t point, since;
	bool may; /* be anew: something else happens in between, and there is a way */
	bool regathers;
	double seconds; /* of moving it again, in a step */
	/* bytes, over the gap, if it is anew and nothing else; for whoever ranks uses */
	double freed, worth;
} sw_use;

typedef struct sw_life { /* of one version of a value */
	uint32_t layout;
	int32_t begin, end;
} sw_life;

typedef struct sw_lives {
	sw_arena arena;
	const sw_plan *plan;
	const sw_roles *roles;
	sw_path_cache *paths;
	sw_layouts layouts;  /* the plan's first, by the same numbers */
	SW_VEC(sw_use) uses; /* by value, then point */
	uint32_t *first;     /* [values + 1] into uses */
} sw_lives;
/* All kept. O(ops). */
void sw_lives_init(sw_lives *lives, const sw_plan *plan, const sw_roles *roles,
                   sw_path_cache *paths);
void sw_lives_clear(sw_lives *lives);
/* Calls `see` for each version of a value, as partition makes them: it is there in [begin, end). */
typedef void sw_see_life(void *context, int32_t begin, int32_t end, int64_t bytes);
void sw_lives_walk(sw_lives *lives, sw_id value, sw_see_life *see, void *context);
/* Has this use moved anew, or no more, and calls `see` for what of its value's lives that changes:
 * with negative bytes for those that go. */
void sw_lives_set(sw_lives *lives, sw_use *use, bool regathers, sw_see_life *see, void *context);

/* Bytes per point: added over ranges, asked for the most in a range. O(log points) each. */
typedef struct sw_demand {
	int32_t n, leaves;
	/* per node of a binary tree: the most below it; what was added to all of it */
	int64_t *most, *all;
} sw_demand;
void sw_demand_init(sw_demand *demand, int32_t points, sw_arena *arena);
void sw_demand_add(sw_demand *demand, int32_t begin, int32_t end, int64_t bytes);
/* 0 of an empty range */
int64_t sw_demand_most(const sw_demand *demand, int32_t begin, int32_t end);

#endif
