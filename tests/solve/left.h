/* What the reductions left of a graph: what its assignments cost and whether they fit, one by one.
 */
#ifndef SW_TESTS_SOLVE_LEFT_H
#define SW_TESTS_SOLVE_LEFT_H

#include "solve/graph/working_graph.h"

#define LEFT_NODES 16 /* an assignment's length; x is zero for a node that is gone */

int64_t left_cost(const graph *g, const int32_t *x); /* SW_FORBIDDEN if it is */
bool left_within(const graph *g, const int32_t *x);
/* From all zeros through every assignment; false after the last one, which leaves zeros again. */
bool left_next(const graph *g, int32_t *x);
/* The cheapest within the capacity; false if there is none. */
bool left_best(const graph *g, int32_t *best, int64_t *cost);
/* How many within the capacity cost less than `upper`. */
int64_t left_below(const graph *g, int64_t upper);
int64_t left_assignments(const graph *g);
/* Per strategy of each node and per point: random messages, prices and, with `knapsacks`, gifts.
 */
void left_fill_memory(graph *g, sw_rng *rng, bool knapsacks);
/* The sum of all that is remembered, which reads every entry; not finite if one is not. */
double left_sum_memory(const graph *g);

#endif
