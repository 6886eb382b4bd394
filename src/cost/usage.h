/*
 * usage: what the groups over a set of atoms ask of the links of each level. Private to src/cost.
 *
 * All groups are at work at once. `here` members of a group are in one part of a level, `around` in
 * the part of the level above, which has members of the group in `peers` of its parts; the level is
 * CROSSED if around > here. A part that r groups leave has its link shared, at a price: each byte
 * takes share = (1 + contention (r - 1)) / bandwidth of the part. Figures are those of the part
 * that is the last to be done.
 */
#ifndef SW_COST_USAGE_H
#define SW_COST_USAGE_H

#include "cost/cost.h"

typedef struct usage {
	int64_t peers; /* 1: not crossed */
	int64_t here, around;
	/* a byte of each group that crosses:                 sum over groups of share */
	double ring_s;
	/* a byte from each member to each of another part:   here * (around - here) * share */
	double pair_s;
	/* a byte of the whole, between parts, to all or from all: max(here / around * (peers - 1),
	 * 1 - here / around) * share */
	double spread_s;
	/* both in turn, where parts choose who combines what:      (1 + (peers - 2) * its share) *
	 * share */
	double reduce_s;
} usage;

/* levels: [cluster->n_levels]. O(levels * atoms); where parts or their links differ, O(devices *
 * (levels + atoms)). */
void usage_measure(const sw_cluster *cluster, uint32_t atoms, usage *levels);

#endif
