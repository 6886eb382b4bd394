/*
 * all_pairs: the costs of conversion from each of many layouts of a shape to each other one, found
 * at once. Private to src/layout.
 *
 * Single moves between the layouts are priced and combined into the cheapest paths (from each
 * layout by the algorithm of Dijkstra). The intermediate layouts are those that give each
 * unit one of the states that it has in some of the given layouts, or B; a path through other
 * digits is not found, so the search for one pair by itself (path_search.c) may return a path that
 * is a little cheaper.
 */
#ifndef SW_LAYOUT_ALL_PAIRS_H
#define SW_LAYOUT_ALL_PAIRS_H

#include "layout/path_search.h"

typedef struct all_pairs {
	int32_t n;  /* layouts that were given */
	double *ps; /* [from][to] picoseconds; NO_PATH where there is no path */
} all_pairs;

/* Find the costs between valid layouts over the same atoms, of which there are at most
 * MAX_SINGLE_ATOMS. Return false, with nothing to free, if there are too many layouts or too many
 * ways to split. O(m^2 + n (m log m + k)) for the m intermediate layouts, a thousand
 * or so, with k moves between them. */
bool all_pairs_init(all_pairs *c, const sw_redistribution *how, sw_shape shape,
                    const sw_layout *layouts, int32_t n);
void all_pairs_clear(all_pairs *c);

#endif
