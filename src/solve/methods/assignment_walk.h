/* An assignment of a graph's nodes that is changed node by node, with its cost and what it
 * violates. Private to solve. */
#ifndef SW_SOLVE_ASSIGNMENT_WALK_H
#define SW_SOLVE_ASSIGNMENT_WALK_H

#include "solve/graph/working_graph.h"

/* Compared field by field, in this order; less is better. */
typedef struct walk_value {
	int64_t forbidden; /* forbidden pairs that are chosen */
	__int128 over;     /* sum over the points of the usage above the capacity */
	int64_t cost;      /* of the allowed strategies and pairs, without the graph's constant */
} walk_value;

typedef struct walk_link { /* an edge as seen from one of its nodes */
	int32_t other;
	table_view view;
} walk_link;

typedef struct walk_node {
	int32_t node, strategies; /* `node` is its number in the graph */
	int32_t first_link, n_links;
	int32_t choice; /* -1: not chosen yet */
	const graph_node *of;
} walk_node;

typedef struct assignment_walk {
	const graph *g;
	int32_t n;
	walk_node *nodes; /* the nodes of the graph that are alive */
	walk_link *links;
	int64_t *used; /* per point */
	walk_value value;
	int64_t work; /* table entries and points visited */
} assignment_walk;

/* Begin with no strategy chosen. The graph must outlive the walk unchanged. */
void walk_init(assignment_walk *w, const graph *g);
void walk_clear(assignment_walk *w);
/* Choose a strategy, or none (-1). O(degree + points of the node's spans). */
void walk_move(assignment_walk *w, int32_t node, int32_t strategy);
/* Choose for all nodes at random, in their order, among the strategies that are not forbidden
 * beside the chosen ones. */
void walk_draw(assignment_walk *w, sw_rng *rng);
/* Load the choices of the graph's nodes, or write them. */
void walk_load(assignment_walk *w, const int32_t *choices);
void walk_save(const assignment_walk *w, int32_t *choices);

static inline bool walk_valid(const walk_value *value)
{
	return value->forbidden == 0 && value->over == 0;
}

static inline bool walk_better(const walk_value *a, const walk_value *b)
{
	if (a->forbidden != b->forbidden)
		return a->forbidden < b->forbidden;
	if (a->over != b->over)
		return a->over < b->over;
	return a->cost < b->cost;
}

#endif
