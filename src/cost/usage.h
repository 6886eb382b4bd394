/*
 * usage: the load that the groups over a set of atoms put on the links of each level. Private to
 * src/cost.
 *
 * All groups communicate at once. At a level, a part holds m members of a group, and the part of
 * the level above, its parent, holds M members, in k of its parts. The level is CROSSED if M > m.
 * When r groups leave a part they share its link with contention: each byte takes share = (1 +
 * contention (r - 1)) / bandwidth of the part. The figures are those of the part that finishes
 * last.
 */
#ifndef SW_COST_USAGE_H
#define SW_COST_USAGE_H

#include "cost/cost.h"

typedef struct usage {
	int64_t peers; /* k; 1: the level is not crossed */
	int64_t part_members, parent_members;
	/* seconds for a byte of each group that crosses: sum over groups of share */
	double ring_s;
	/* seconds for a byte from each member to each member of another part: m (M - m) share */
	double pair_s;
	/* seconds for a byte of the whole data, which parts send to all others or receive from all:
	 * max(m / M (k - 1), 1 - m / M) share */
	double spread_s;
	/* seconds for a reduction and then a gather of a byte, where each part combines a fraction
	 * x of the data (sw_cost_link_shares): (1 + (k - 2) x) share */
	double reduce_s;
} usage;

/* Fill levels[cluster->n_levels]. O(levels * atoms); where parts or their links differ, O(devices *
 * (levels + atoms)). */
void usage_measure(const sw_cluster *cluster, uint32_t atoms, usage *levels);

#endif
