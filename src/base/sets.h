/*
 * Disjoint sets of the numbers 0 to n - 1 (union-find with path halving, Tarjan and van Leeuwen
 * 1984). parent[i] <= i is a number of i's set; the smallest of a set, its ROOT, is its own.
 */
#ifndef SW_SETS_H
#define SW_SETS_H

#include <stddef.h>
#include <stdint.h>

/* Make each number a set of its own; parent: [n]. */
void sw_sets_init(uint32_t *parent, size_t n);
/* Return the smallest number of i's set. Amortised O(log n). */
uint32_t sw_sets_root(uint32_t *parent, uint32_t i);
/* Make one set of those of a and b. Returns the root that is one no longer; that of both if they
 * are one set already. */
uint32_t sw_sets_join(uint32_t *parent, uint32_t a, uint32_t b);

#endif
