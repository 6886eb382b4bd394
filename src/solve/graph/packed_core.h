/*
 * What the reductions leave, packed for reading. Private to solve.
 *
 * Nodes of the core are numbered in the order of the graph's, edges go from the smaller number to
 * the larger. Strategies of all nodes are numbered through: node v has first[v] .. first[v + 1].
 * The graph must outlive the core, and not change.
 */
#ifndef SW_SOLVE_PACKED_CORE_H
#define SW_SOLVE_PACKED_CORE_H

#include "solve/graph/working_graph.h"

typedef __int128 wide;

typedef struct core_edge {
	int32_t a, b;       /* a < b */
	int32_t table;      /* of core.tables */
	int32_t transposed; /* 1: the table's columns belong to a */
	int64_t message[2]; /* where the messages to a, and to b, begin */
} core_edge;

typedef struct core_table {
	int32_t size[2];     /* rows, columns */
	const int64_t *cost; /* row-major, the graph's */
	const double *real;  /* the same, but forbidden is infinite */
} core_table;

typedef struct core {
	sw_arena arena;
	int32_t n_nodes, n_edges, n_strategies, points;
	int32_t widest;                   /* the most strategies of any node, or 1 */
	int32_t *graph_node, *graph_edge; /* their numbers in the graph */
	int32_t *first;
	int64_t *cost; /* per strategy */
	core_edge *edges;
	core_table *tables;
	int32_t *edge_first, *edge_list; /* per node: edges to smaller nodes, then to larger */
	int32_t *forward;                /* where the latter begin */
	int32_t *span_first;
	graph_span *spans;
	int64_t *capacity;
	int64_t constant;
	int64_t entries; /* of all edges' tables: the work of one sweep */
	int64_t n_messages;
	int64_t magnitude; /* no assignment's cost differs from another's by more */
} core;

void core_init(core *c, const graph *g);
void core_clear(core *c);

/* Adds to `sum`, per strategy, what its usage costs at `price` per point. */
void core_price_usage(const core *c, const double *price, double *sum);

/* The table of an edge seen from node v of it (0: a, 1: b). */
static inline table_view core_view(const core *c, const core_edge *e, int side)
{
	const core_table *t = &c->tables[e->table];
	graph_table table = {.rows = t->size[0], .columns = t->size[1], .cost = (int64_t *)t->cost};
	return view_table(&table, side ^ e->transposed);
}

static inline int32_t core_strategies(const core *c, int32_t v)
{
	return c->first[v + 1] - c->first[v];
}

#endif
