/*
 * node_expansion: what a search over layouts does with one node. Private to src/layout.
 *
 *   search_nodes.c    the nodes of a search by state, and the heap of those that wait
 *   node_expansion.c  the moves from a node, each to the layouts that it may lead to
 *   path_search.c     the searches
 */
#ifndef SW_LAYOUT_NODE_EXPANSION_H
#define SW_LAYOUT_NODE_EXPANSION_H

#include "layout/path_search.h"

/* ---- search_nodes.c --------------------------------------------------------------------- */

/* Forget all nodes. */
void workspace_reset(workspace *work);
/* Return the slot of the node of `state`, or the free one where it belongs. */
size_t workspace_slot(const workspace *work, const uint8_t *state);
/* Return the number of the node of `state`, which is created if there was none; -1 if it is closed
 * or already reached at no more than `so_far`. */
int32_t workspace_node(workspace *work, const uint8_t *state, path_cost so_far);
void workspace_push(workspace *work, int32_t number);
int32_t workspace_pop(workspace *work);

/* ---- node_expansion.c ------------------------------------------------------------------- */

typedef struct expansion {
	workspace *work;
	const problem *p;
	prices *table;
	bound *least;
	double weight;         /* of the bound in the order of the search */
	int64_t work_left;     /* layouts that may still be created or met */
	double limit;          /* totals above it are not created ... */
	double least_left_out; /* ... and this is the least of them */
	int32_t number;        /* the node being expanded */
	node from;             /* a copy: nodes move when the vector grows */
	uint32_t split;        /* its split units */
	int32_t code;          /* its kinds, encoded as in path_bound.c */
	uint64_t fits;         /* digits that nest with all of its own */
	/* the move */
	sw_move_kind kind;
	uint32_t mask;
	uint8_t permutation;
	uint32_t away;    /* units that are split otherwise than at home */
	path_cost so_far; /* with the move, without transposes */
	uint8_t after[8];
} expansion;
/* Return the kinds of all units, encoded as in path_bound.c. */
int32_t kinds_code(const problem *p, const uint8_t *state);
/* Create the nodes that one move leads to from this node. */
void expand_node(expansion *e, int32_t number);

#endif
