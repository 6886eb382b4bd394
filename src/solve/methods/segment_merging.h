/*
 * Segments: Rhino's merging of subgraphs (its section 4.3.2) on a core, in one pass. Private to
 * solve.
 *
 * Rhino merges CONES (a node and the single-input chains that lead to it) by the strategies of
 * their root, SEGMENTS between critical nodes by integer programs, and segments along the graph by
 * dynamic programming. Here the exact reductions have merged the cones already (nodes of degree 1
 * and 2: reduce_nodes.c), and all else is dynamic programming: nodes are eliminated, each leaving a
 * table over its neighbours, which is the cost of a segment by the strategies of its ends. Where a
 * segment has too many ends for one table, several smaller ones replace it (mini-bucket
 * elimination: Dechter and Rish 2003). Each may choose its own strategy of the node, so that their
 * sum is a lower bound. Before that, the costs of the node's strategies are shared among them (as
 * Ihler et al. 2012 do). Equal segments (the same tables joined in the same way) are computed once.
 */
#ifndef SW_SOLVE_SEGMENT_MERGING_H
#define SW_SOLVE_SEGMENT_MERGING_H

#include "solve/graph/packed_core.h"

/* Merge without regard to the capacity. x gets an assignment, *bound a lower bound on all costs,
 * without the core's constant; SW_FORBIDDEN: every assignment is forbidden. The bound is exact if
 * no table had to be split. Returns the work: O(nodes * table), whatever the graph. */
int64_t core_segments(const core *c, int32_t *x, int64_t *bound);

#endif
