/*
 * all_pairs: what it costs to get from each of many layouts of a shape to each other one, found at
 * once. Private to src/layout.
 *
 * Single moves between them are priced, and put together to the cheapest ways (from each as Bellman
 * and Ford do). What lies between may be any of the layouts that give each unit one of the states
 * it has in some of them, or B; so a way that leads through other digits than these is not seen:
 * what is found for one pair by itself (search.c) may be a little cheaper.
 */
#ifndef SW_LAYOUT_ALL_PAIRS_H
#define SW_LAYOUT_ALL_PAIRS_H

#include "layout/search.h"

typedef struct all_pairs {
	int32_t n;  /* layouts that were given */
	double *ps; /* [from][to] picoseconds; NO_WAY where there is none */
} all_pairs;

/* Of valid layouts over the same atoms SINGLE_ATOMS of them. False, and nothing to free, if there
 * are too many, or too many ways to split. O(n m^2) for the m layouts that may lie between, a
 * thousand or so. */
bool all_pairs_init(all_pairs *c, const sw_redistribution *how, sw_shape shape,
                    const sw_layout *layouts, int32_t n);
void all_pairs_clear(all_pairs *c);

#endif
