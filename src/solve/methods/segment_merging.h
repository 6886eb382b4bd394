/*
 * Segments: Rhino's merging of subgraphs (its section 4.3.3) on a core, in one pass. Private to
 * solve.
 *
 * Rhino merges CONES (a node and the single-input chains that lead to it) by the strategies of
 * their root, SEGMENTS between critical nodes by integer programs, and segments along the graph by
 * dynamic programming. Here cones are gone before (nodes of degree 1 and 2: reduce_nodes.c); the
 * rest is dynamic programming throughout: nodes are eliminated, each leaving a table over its
 * neighbours, which is a segment's cost by the strategies of its ends. Where the ends are too many
 * for a table it is cut into several (mini-bucket elimination: Dechter and Rish 2003), each of
 * which may choose the node's strategy for itself: so that the sum is a lower bound. Before, the
 * costs of the node's strategies are shared among them (as Ihler et al. 2012 do). Segments that are
 * alike (the same tables joined in the same way) are computed once.
 */
#ifndef SW_SOLVE_SEGMENT_MERGING_H
#define SW_SOLVE_SEGMENT_MERGING_H

#include "solve/graph/packed_core.h"

/* Without capacity. x gets an assignment, *bound (without the core's constant) what none is cheaper
 * than; SW_FORBIDDEN: there is none. It is exact where no table had to be cut. Returns the work:
 * O(nodes * table), whatever the graph. */
int64_t core_segments(const core *c, int32_t *x, int64_t *bound);

#endif
