/*
 * A problem in the form in which it is written for another solver: nodes, pairwise tables, and per
 * point that can bind the usages that matter there.
 *
 * It is made from the solver's own graph, so that ties are contracted, forbidden strategies dropped
 * and loops added to their nodes, and the same code serves the problem itself and the one that our
 * exact reductions leave of it. Private to solve and bench/solve.
 */
#ifndef SW_SOLVE_INTEGER_MODEL_H
#define SW_SOLVE_INTEGER_MODEL_H

#include "solve/graph/working_graph.h"

typedef struct model_node {
	int32_t origin; /* its number in the graph */
	int32_t strategies;
	const int64_t *cost;
} model_node;

typedef struct model_edge {
	int32_t from, to, rows, columns;
	const int64_t *cost; /* row-major; rows belong to `from` */
} model_edge;

/* The usage of a node in some rows. A node may have many spans; in a row it has at most one usage,
 * the sum of its spans there, of which the least is 0. */
typedef struct model_usage {
	int32_t node;
	const int64_t *usage; /* per strategy; the usages of a node differ */
	SW_VEC(int32_t) rows; /* the rows in which the node has this usage, ascending */
} model_usage;

typedef struct model_row { /* the usages in it must not sum to more than the capacity */
	int64_t capacity;
	SW_VEC(int32_t) usages; /* ascending in their nodes */
} model_row;

typedef struct model {
	graph g;
	int64_t constant; /* to be added to every cost; */
	/* then costs are multiplied by 2^shift, which may be a little less than the problem's
	 * cost */
	int shift;
	bool infeasible;
	SW_VEC(model_node) nodes;
	SW_VEC(model_edge) edges;
	SW_VEC(model_usage) usages; /* ascending in their nodes */
	SW_VEC(model_row) rows;
	int64_t terms; /* usages of all rows */
} model;

void model_init(model *m, const sw_problem *problem, bool reduced);
void model_clear(model *m);
/* Turn a choice per node of the model into one per node of the problem. */
void model_restore(const model *m, const int32_t *choice, int32_t *assignment);
/* Convert a bound from the model's units to the problem's; INT64_MIN if it does not fit. */
int64_t model_bound(const model *m, int64_t bound);
/* Bytes of the distinct tables that are left after the exact reductions. */
int64_t model_reduced_bytes(const sw_problem *problem);

#endif
