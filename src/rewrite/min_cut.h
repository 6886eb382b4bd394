/*
 * The cheapest set of arcs that separates a source from a sink (Ford and Fulkerson 1956), by
 * Dinic's algorithm: blocking flows along shortest paths, O(nodes^2 arcs) at worst, nearly linear
 * on the long and narrow graphs of programs.
 */
#ifndef SW_REWRITE_MIN_CUT_H
#define SW_REWRITE_MIN_CUT_H

#include "base/base.h"

#define SW_CUT_SOURCE 0
#define SW_CUT_SINK 1
#define SW_CUT_NEVER (INT64_MAX / 4) /* the capacity of an arc that must not be cut */

typedef struct sw_cut_arc {
	/* next: of the arcs that leave the same node; -1: this is the last. Arc i ^ 1 is arc i
	 * backwards. */
	int32_t to, next;
	int64_t residual;
} sw_cut_arc;
/* The caller numbers the nodes: the source is 0, the sink 1, n in all. */
typedef struct sw_cut {
	int32_t n;
	int32_t *first; /* per node: an arc that leaves it */
	SW_VEC(sw_cut_arc) arcs;
} sw_cut;

void sw_cut_init(sw_cut *cut, int32_t n);
void sw_cut_clear(sw_cut *cut);
void sw_cut_add(sw_cut *cut, int32_t from, int32_t to, int64_t capacity);
/* Find the cheapest cut that lies nearest to the sink; behind[v]: node v is on the sink's side of
 * it. Return false if every cut contains an arc that must not be cut. */
bool sw_cut_solve(sw_cut *cut, bool *behind);

#endif
