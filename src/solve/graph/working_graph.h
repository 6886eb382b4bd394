/*
 * The solver's working problem, which the exact reductions shrink in place. Private to solve.
 *
 * Tables are immutable, counted and interned: an edge whose costs change gets another table. Each
 * removal leaves a record on the undo stack; graph_restore plays the stack backwards and turns an
 * assignment of the nodes that are left into one of all nodes, which costs as much as the reduced
 * graph says. Points are renumbered as redundant ones are removed; each has a capacity of its own,
 * because usages that no choice can change are subtracted from it. Edges remember the messages of
 * the last bound (message_passing.c), and every reduction keeps them as true as it can, so that the
 * next bound begins where the last one ended.
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
	int32_t next;       /* the next in its hash bucket, or among the free slots; -1 ends */
	uint64_t hash;
	bool borrowed; /* the entries belong to an owner that outlives the graph */
	int64_t *cost;
} graph_table;

typedef struct graph_edge {
	int32_t node[2];  /* [0] owns the rows, [1] the columns */
	int32_t place[2]; /* index in the adjacency list of each */
	int32_t table;    /* -1: the edge was removed */
	bool normal;      /* every row and column has minimum 0 */
	/* NULL, or per strategy of each end: the part of the table's costs that the last bound
	 * moved to it */
	double *message[2];
} graph_edge;

typedef struct graph_span {
	int32_t begin, end;
	int64_t *usage; /* per strategy, in the graph's arena */
} graph_span;

/* The messages that the last bound sent from the knapsack of a point to a node's strategies. */
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

/* How a node that was removed, or has lost strategies, gets its strategy back. */
typedef enum undo_kind {
	UNDO_KEPT,   /* strategies were dropped; map: new index -> old index */
	UNDO_STAR,   /* the node takes the cheapest strategy given those of its former neighbours */
	UNDO_FOLLOW, /* the node follows another one; map: strategy of leader -> strategy of node */
} undo_kind;

typedef struct undo_edge {
	int32_t other, table;
	int32_t side; /* of the removed node: 0 rows, 1 columns */
} undo_edge;

typedef struct graph_undo {
	undo_kind kind;
	int32_t node, leader;
	int32_t count;      /* entries of map, or of edges */
	int32_t strategies; /* of the node before the removal */
	int32_t *map;
	/* UNDO_KEPT: NULL, or old index -> itself, or the old index of a strategy at least as
	 * good */
	int32_t *instead;
	int64_t *cost;
	undo_edge *edges;
} graph_undo;

typedef struct graph {
	sw_arena arena;
	int32_t n_nodes;
	int32_t *origin; /* in a copy: each node's number in the graph that was copied */
	graph_node *nodes;
	SW_VEC(graph_edge) edges;
	SW_VEC(graph_table) tables;
	int32_t *buckets;
	int32_t n_buckets, n_tables, free_table;
	/* costs passed to graph_add_edge now outlive the graph, and are not copied */
	bool borrowed;
	int32_t points;
	int64_t *capacity; /* per point */
	/* usages not yet subtracted from the capacity: differences, per point and one more at the
	 * end */
	int64_t *capacity_left;
	double *price;       /* per point: the price of a unit of usage in the last bound */
	double *mean_excess; /* per point: usage less capacity, averaged over the last sweeps */
	double stride;       /* of the price steps, relative to Polyak's */
	double level;        /* how far above the bound the prices aim; 0: no bound has run */
	bool usage_changed;  /* since reduce_points ran last */
	int64_t constant;    /* cost of all that was removed */
	/* no assignment's cost leaves 62 bits; else costs are clamped, and nothing is proved */
	bool exact;
	int shift; /* costs are the caller's, shifted right by so many bits (floored) */
	bool infeasible;
	int64_t work;
	SW_VEC(graph_undo) undo;
	/* nodes whose reductions are to be tried again, first in, first out */
	SW_VEC(int32_t) queue;
	size_t queue_head;
	SW_VEC(int64_t) scratch;
} graph;

/* ---- working_graph.c: life, edges, undo ------------------------------------------------- */

void graph_init(graph *g);
void graph_clear(graph *g);
/* Build the graph of a problem, which must outlive it: contract ties, drop forbidden strategies,
 * sum parallel edges, add loops to their nodes' costs. */
void graph_build(graph *g, const sw_problem *problem);
/* Copy the nodes and edges that are alive, renumbered, with an empty undo stack and queue. `from`
 * must outlive the copy unchanged. */
void graph_copy(graph *g, const graph *from);

/* Add an edge, whose rows belong to a. `cost` and the messages (each may be NULL) are copied; costs
 * of a parallel edge are added to it; an edge of zeros is dropped. */
void graph_add_edge(graph *g, int32_t a, int32_t b, const int64_t *cost, const double *to_a,
                    const double *to_b);
/* Replace the messages that the edge remembers. NULL: zeros. */
void graph_set_messages(graph *g, int32_t edge, const double *to_rows, const double *to_columns);
void graph_remove_edge(graph *g, int32_t edge);
/* Replace the edge's table; its rows and columns are the strategies that the edge's nodes have
 * now. */
void graph_set_table(graph *g, int32_t edge, const int64_t *cost);
/* Add the messages of a point's knapsack, one number per strategy, to those that the node
 * remembers. */
void graph_add_given(graph *g, int32_t node, int32_t point, const double *given);
void graph_add_span(graph *g, int32_t node, int32_t begin, int32_t end, const int64_t *usage);
void graph_touch(graph *g, int32_t node); /* queues the node */
/* Keep the strategies whose flag is set, and queue the node and its neighbours. `instead` is NULL,
 * or maps each dropped strategy to one that is at least as good whatever the neighbours choose. */
void graph_keep(graph *g, int32_t node, const bool *keep, const int32_t *instead);
/* Remove a node, which will take its cheapest strategy given those of its neighbours. The caller
 * has already moved its cost elsewhere. */
void graph_remove_star(graph *g, int32_t node);
/* Remove a node whose strategy is map[strategy of leader]. Its edges and spans must have been moved
 * already. */
void graph_remove_follower(graph *g, int32_t node, int32_t leader, const int32_t *map);
/* Turn an assignment of the nodes alive into one of all nodes of graph_build or graph_copy. */
void graph_restore(const graph *g, int32_t *assignment);
/* The inverse: turn it into strategy indices of the nodes alive. A dropped strategy becomes one
 * that is at least as good, or the first one left if none is recorded. */
void graph_project(const graph *g, int32_t *assignment);
int64_t *graph_scratch(graph *g, int64_t entries);

/* ---- graph_tables.c: interned tables ---------------------------------------------------- */

/* Return a held reference to an equal table, or to a new one. Borrowed entries are not copied. */
int32_t graph_table_intern(graph *g, int32_t rows, int32_t columns, const int64_t *cost,
                           bool borrowed);
void graph_table_hold(graph *g, int32_t table);
void graph_table_drop(graph *g, int32_t table);
void graph_tables_clear(graph *g);

/* ---- reduce/: the exact reductions ------------------------------------------------------ */

typedef enum graph_step {
	REDUCE_FIXED = 1,  /* a node with one strategy is folded into its neighbours */
	REDUCE_DEGREE = 2, /* nodes of degree 0, 1, 2 without spans */
	REDUCE_NORMAL = 4, /* row and column minima become node costs */
	/* a strategy that is forbidden beside all of a neighbour's is dropped */
	REDUCE_SUPPORT = 8,
	/* a strategy that another one beats whatever the neighbours choose is dropped */
	REDUCE_DOMINANCE = 16,
	REDUCE_LEAF = 32,  /* a leaf with spans whose best strategy its neighbour determines */
	REDUCE_MERGE = 64, /* a node determined by a neighbour is merged into it */
	/* points that can't bind are removed, strategies that can't fit dropped */
	REDUCE_POINTS = 128,
	REDUCE_ALL = 255,
} graph_step;

/* Apply the given steps to the fixed point, or nearly. Each keeps the optimal cost, and the
 * existence of an assignment within capacity; SUPPORT, DOMINANCE and the others may remove optimal
 * assignments but never all of them. Needs queued nodes (graph_build queues all); leaves the queue
 * empty. */
void graph_reduce(graph *g, unsigned steps);
bool reduce_fixed(graph *g, int32_t node);
bool reduce_degree(graph *g, int32_t node);
bool reduce_normal(graph *g, int32_t node);
bool reduce_support(graph *g, int32_t node);
bool reduce_dominance(graph *g, int32_t node);
bool reduce_leaf(graph *g, int32_t node);
bool reduce_merge(graph *g, int32_t node);
void reduce_points(graph *g);
void reduce_settle(graph *g); /* subtracts the usages collected in capacity_left */

/* ---- small helpers ---------------------------------------------------------------------- */

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
