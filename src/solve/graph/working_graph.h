/*
 * The solver's working problem, which the exact reductions shrink in place. Private to solve.
 *
 * Tables are immutable, counted and interned: an edge that changes gets another table. Whatever is
 * removed leaves a record on the undo stack; graph_restore plays the stack backwards and turns an
 * assignment of what is left into one of everything, at the cost the reduced graph says. Points
 * are renumbered as they prove redundant; each has its own capacity, because usages that no choice
 * can change are subtracted from it. Edges remember the messages of the last bound
 * (message_passing.c), and every reduction keeps them as true as it can, so that the next bound
 * begins where the last one ended.
 *
 * All sums stay below 2^61 in magnitude: graph_build shifts costs right if need be (see `shift`).
 */
#ifndef SW_SOLVE_WORKING_GRAPH_H
#define SW_SOLVE_WORKING_GRAPH_H

#include "solve/solve.h"

typedef SW_VEC(int32_t) int_list;

typedef struct graph_table {
	int32_t rows, columns;
	int32_t references; /* 0: the slot is free */
	int32_t next;       /* in its hash bucket, or among the free slots; -1 ends */
	uint64_t hash;
	bool borrowed; /* the entries stand elsewhere, and outlive the graph */
	int64_t *cost;
} graph_table;

typedef struct graph_edge {
	int32_t node[2];  /* [0] owns the rows, [1] the columns */
	int32_t place[2]; /* index in the adjacency of each */
	int32_t table;    /* -1: removed */
	bool normal;      /* every row and column has minimum 0 */
	/* NULL, or what the last bound moved from the table to each end's strategies */
	double *message[2];
} graph_edge;

typedef struct graph_span {
	int32_t begin, end;
	int64_t *usage; /* per strategy, in the graph's arena */
} graph_span;

/* What the last bound's knapsack of a point gave to a node's strategies. */
typedef struct graph_given {
	int32_t point;
	double *given; /* per strategy, in the graph's arena */
} graph_given;

typedef struct graph_node {
	int32_t strategies;
	bool alive, queued;
	int64_t *cost;
	SW_VEC(int32_t) edges;
	SW_VEC(graph_span) spans;
	SW_VEC(graph_given) given;
} graph_node;

/* How a node that is gone, or has lost strategies, gets its strategy back. */
typedef enum undo_kind {
	UNDO_KEPT,   /* map: new index -> old index */
	UNDO_STAR,   /* cheapest given its former neighbours */
	UNDO_FOLLOW, /* map: strategy of leader -> strategy of node */
} undo_kind;

typedef struct undo_edge {
	int32_t other, table;
	int32_t side; /* of the removed node: 0 rows, 1 columns */
} undo_edge;

typedef struct graph_undo {
	undo_kind kind;
	int32_t node, leader;
	int32_t count;      /* of map, or of edges */
	int32_t strategies; /* of the node before */
	int32_t *map;
	/* UNDO_KEPT: NULL, or old index -> an old index at least as good, or itself */
	int32_t *instead;
	int64_t *cost;
	undo_edge *edges;
} graph_undo;

typedef struct graph {
	sw_arena arena;
	int32_t n_nodes;
	int32_t *origin; /* of a copy: each node's number in the graph it was copied from */
	graph_node *nodes;
	SW_VEC(graph_edge) edges;
	SW_VEC(graph_table) tables;
	int32_t *buckets;
	int32_t n_buckets, n_tables, free_table;
	bool borrowed; /* what graph_add_edge is given now outlives the graph, and is not copied */
	int32_t points;
	int64_t *capacity;      /* per point */
	int64_t *capacity_left; /* differences not yet taken off: per point, one more at the end */
	double *price;          /* per point: what earlier bounds found a unit of usage worth */
	double *mean_excess;    /* per point: the smoothed excess that its prices followed last */
	double stride;          /* of those steps */
	double level;           /* how far above it the prices aimed last; 0: there was none */
	bool usage_changed;     /* since the points were last looked at */
	int64_t constant;       /* cost of what is gone */
	/* no assignment's cost leaves 62 bits: else costs are clamped, and nothing is proved */
	bool exact;
	int shift; /* costs are the caller's, floored to multiples of 2^shift */
	bool infeasible;
	int64_t work;
	SW_VEC(graph_undo) undo;
	SW_VEC(int32_t) queue; /* nodes to look at again, first in first out */
	size_t queue_head;
	SW_VEC(int64_t) scratch;
} graph;

/* ---- working_graph.c: life, edges, undo ---------------------------------------------- */

void graph_init(graph *g);
void graph_clear(graph *g);
/* Ties are contracted, forbidden strategies dropped, parallel edges summed, loops put on nodes. */
void graph_build(graph *g, const sw_problem *problem); /* which must outlive the graph */
/* What is alive, renumbered, with an empty undo stack and queue. `from` must outlive it unchanged.
 */
void graph_copy(graph *g, const graph *from);

/* `cost` and the messages (each may be NULL) are copied; a parallel edge is summed; an edge of
 * zeros vanishes. Rows belong to a. */
void graph_add_edge(graph *g, int32_t a, int32_t b, const int64_t *cost, const double *to_a,
                    const double *to_b);
/* Replaces what the edge remembers, or adds to it. NULL: zeros. */
void graph_set_messages(graph *g, int32_t edge, const double *to_rows, const double *to_columns);
void graph_remove_edge(graph *g, int32_t edge);
/* Replaces the table; rows and columns as the edge's nodes now have strategies. */
void graph_set_table(graph *g, int32_t edge, const int64_t *cost);
/* Remembers what a knapsack gave, one number per strategy; adds to what it gave before. */
void graph_add_given(graph *g, int32_t node, int32_t point, const double *given);
void graph_add_span(graph *g, int32_t node, int32_t begin, int32_t end, const int64_t *usage);
void graph_touch(graph *g, int32_t node); /* queue it */
/* Keeps the strategies whose flag is set, and queues node and neighbours. `instead` is NULL, or
 * tells for each strategy that goes which other is at least as good in any surroundings. */
void graph_keep(graph *g, int32_t node, const bool *keep, const int32_t *instead);
/* Takes a node away; its strategy will be the cheapest given those of its neighbours. The caller
 * has already accounted for its cost elsewhere. */
void graph_remove_star(graph *g, int32_t node);
/* Takes a node away whose strategy is map[strategy of leader]. Edges and spans must be moved
 * already. */
void graph_remove_follower(graph *g, int32_t node, int32_t leader, const int32_t *map);
/* From an assignment of the nodes alive to one of all nodes of graph_build or graph_copy. */
void graph_restore(const graph *g, int32_t *assignment);
/* The other way: indices of what is alive; a dropped strategy becomes the one that is at least as
 * good, or the first that is left if none is known. */
void graph_project(const graph *g, int32_t *assignment);
int64_t *graph_scratch(graph *g, int64_t entries);

/* ---- graph_tables.c: interned tables ------------------------------------------------- */

/* Lent entries are not copied. */
int32_t graph_table_intern(graph *g, int32_t rows, int32_t columns, const int64_t *cost,
                           bool borrowed);
void graph_table_hold(graph *g, int32_t table);
void graph_table_drop(graph *g, int32_t table);
void graph_tables_clear(graph *g);

/* ---- reduce_graph.c and the files reduce_*.c ----------------------------------------- */

typedef enum graph_step {
	REDUCE_FIXED = 1,      /* a node with one strategy is folded into its neighbours */
	REDUCE_DEGREE = 2,     /* nodes of degree 0, 1, 2 without spans */
	REDUCE_NORMAL = 4,     /* row and column minima become node costs */
	REDUCE_SUPPORT = 8,    /* a strategy forbidden with all of a neighbour's goes */
	REDUCE_DOMINANCE = 16, /* a strategy that another beats in any surroundings goes */
	REDUCE_LEAF = 32,      /* a leaf with spans whose best strategy its neighbour determines */
	REDUCE_MERGE = 64,     /* a node determined by a neighbour joins it */
	REDUCE_POINTS = 128,   /* points that can't bind go; strategies that can't fit go */
	REDUCE_ALL = 255,
} graph_step;

/* To the fixed point of the given steps, or nearly. Each keeps the optimal cost, and the existence
 * of an assignment within capacity; SUPPORT, DOMINANCE and the rest may remove optimal assignments
 * but never all. Needs queued nodes (graph_build queues all); leaves the queue empty. */
void graph_reduce(graph *g, unsigned steps);
bool reduce_fixed(graph *g, int32_t node);
bool reduce_degree(graph *g, int32_t node);
bool reduce_normal(graph *g, int32_t node);
bool reduce_support(graph *g, int32_t node);
bool reduce_dominance(graph *g, int32_t node);
bool reduce_leaf(graph *g, int32_t node);
bool reduce_merge(graph *g, int32_t node);
void reduce_points(graph *g);
void reduce_settle(graph *g); /* takes capacity_left off the capacity */

/* ---- small helpers ------------------------------------------------------------------- */

static inline int64_t least_of(const int64_t *numbers, int32_t n)
{
	int64_t least = numbers[0];
	for (int32_t i = 1; i < n; i++)
		least = SW_MIN(least, numbers[i]);
	return least;
}

static inline int64_t most_of(const int64_t *numbers, int32_t n)
{
	int64_t most = numbers[0];
	for (int32_t i = 1; i < n; i++)
		most = SW_MAX(most, numbers[i]);
	return most;
}

static inline int32_t edge_side(const graph_edge *edge, int32_t node)
{
	return edge->node[0] == node ? 0 : 1;
}

/* A table seen from one end: entry (mine, other) is at cost[mine * mine_step + other * other_step].
 */
typedef struct table_view {
	const int64_t *cost;
	int64_t mine_step, other_step;
	int32_t mine, others;
} table_view;

static inline table_view view_table(const graph_table *table, int32_t side)
{
	if (side == 0)
		return (table_view){table->cost, table->columns, 1, table->rows, table->columns};
	return (table_view){table->cost, 1, table->columns, table->columns, table->rows};
}

static inline table_view view_edge(const graph *g, int32_t edge, int32_t node)
{
	const graph_edge *e = &g->edges.data[edge];
	return view_table(&g->tables.data[e->table], edge_side(e, node));
}

static inline int64_t view_at(const table_view *view, int32_t mine, int32_t other)
{
	return view->cost[mine * view->mine_step + other * view->other_step];
}

static inline int32_t edge_other(const graph *g, int32_t edge, int32_t node)
{
	const graph_edge *e = &g->edges.data[edge];
	return e->node[1 - edge_side(e, node)];
}

#endif
