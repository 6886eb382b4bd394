/*
 * path_planner: redistributions of one cost model, with tables that they share. Private to
 * src/layout.
 */
#ifndef SW_LAYOUT_PATH_PLANNER_H
#define SW_LAYOUT_PATH_PLANNER_H

#include "layout/path_search.h"

typedef struct path_planner {
	sw_redistribution how;
	sw_arena arena;
	sw_map price_index, bound_index;
	SW_VEC(prices *) price_tables;
	SW_VEC(bound *) bounds;
	workspace work;
} path_planner;
/* `how` is copied. */
void planner_init(path_planner *planner, const sw_redistribution *how);
void planner_clear(path_planner *planner);
/* Find the path between two layouts; return false, with infinite seconds, if there is none. */
bool plan_path(path_planner *planner, sw_shape shape, const sw_layout *from, const sw_layout *to,
               sw_path *path);

/* Does one of the layouts have an owner? */
bool owned_changes(const sw_layout *from, const sw_layout *to);
/* The same as plan_path where that is so (owned_paths.c). */
bool owned_path(path_planner *planner, sw_shape shape, const sw_layout *from, const sw_layout *to,
                sw_path *path);

#endif
