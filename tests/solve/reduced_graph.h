/* A reduced graph by exhaustive enumeration: cost and feasibility of its assignments, one by
 * one. */
#ifndef SW_TESTS_SOLVE_REDUCED_GRAPH_H
#define SW_TESTS_SOLVE_REDUCED_GRAPH_H

#include "solve/graph/working_graph.h"

#define REDUCED_NODES 16 /* length of an assignment; x is zero for a node that was removed */

int64_t reduced_cost(const graph *g, const int32_t *x); /* SW_FORBIDDEN if the assignment is */
bool left_within(const graph *g, const int32_t *x);
/* Go from all zeros through every assignment; false after the last one, which leaves zeros
 * again. */
bool reduced_next(const graph *g, int32_t *x);
/* The cheapest assignment within the capacity; false if there is none. */
bool reduced_best(const graph *g, int32_t *best, int64_t *cost);
/* The number of assignments within the capacity that cost less than `upper`. */
int64_t reduced_count_below(const graph *g, int64_t upper);
int64_t left_assignments(const graph *g);
/* Fill the graph's memory: random messages per strategy of each node, prices per point and, with
 * `knapsacks`, messages of knapsacks. */
void reduced_fill_memory(graph *g, sw_rng *rng, bool knapsacks);
/* The sum of all remembered numbers, which reads every entry; not finite if one of them is not. */
double reduced_sum_memory(const graph *g);

#endif
