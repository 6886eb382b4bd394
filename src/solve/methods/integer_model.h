/*
 * A problem as another solver is told it: nodes, pairwise tables, and per point that can bind the
 * spans that count.
 *
 * Made from the solver's own graph, so that ties are contracted, forbidden strategies dropped and
 * loops put on their nodes, and the same code serves the problem itself and what our exact
 * reductions leave of it. Private to solve and bench/solve.
 */
#ifndef SW_SOLVE_INTEGER_MODEL_H
#define SW_SOLVE_INTEGER_MODEL_H

#include "solve/graph/working_graph.h"

typedef struct model_node {
	int32_t origin; /* in the graph */
	int32_t strategies;
	const int64_t *cost;
} model_node;

typedef struct model_edge {
	int32_t from, to, rows, columns;
	const int64_t *cost; /* row-major; rows belong to from */
} model_edge;

/* A node may have many spans; in a row it has at most one usage, their sum there, of which the
 * least is 0. */
typedef struct model_usage {
	int32_t node;
	const int64_t *usage; /* per strategy; no two of a node are alike */
	SW_VEC(int32_t) rows; /* in which the node uses so much, ascending */
} model_usage;

typedef struct model_row { /* what is used in it must not sum to more than the capacity */
	int64_t capacity;
	SW_VEC(int32_t) usages; /* ascending in their nodes */
} model_row;

typedef struct model {
	graph g;
	int64_t constant; /* to be added to every cost */
	/* then costs are multiplied by 2^shift, and may be a little less than the problem's */
	int shift;
	bool infeasible;
	SW_VEC(model_node) nodes;
	SW_VEC(model_edge) edges;
	SW_VEC(model_usage) usages; /* ascending in their nodes */
	SW_VEC(model_row) rows;
	int64_t terms; /* of all rows */
} model;

void model_init(model *m, const sw_problem *problem, bool reduced);
void model_clear(model *m);
/* From a choice per node of the model to one per node of the problem. */
void model_restore(const model *m, const int32_t *choice, int32_t *assignment);
/* From a bound in the model's units to one in the problem's; INT64_MIN beyond them. */
int64_t model_bound(const model *m, int64_t bound);
/* Bytes of the distinct tables that the exact reductions leave. */
int64_t model_reduced_bytes(const sw_problem *problem);

#endif
