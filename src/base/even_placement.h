/*
 * even_placement: items on bins, about as much on each.
 */
#ifndef SW_BASE_EVEN_PLACEMENT_H
#define SW_BASE_EVEN_PLACEMENT_H

#include "base/base.h"

/* Place items on bins, of which each has `load` before, so that the fullest has little: write each item's bin,
 * add its size to that one's load. Return what no placement's fullest bin is below. O(n^2) mostly. */
int64_t sw_place_evenly(const int64_t *sizes, size_t n, int64_t *load, int64_t bins, int64_t *bin_of);

#endif
