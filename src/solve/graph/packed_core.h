/*
 * The core: the nodes, edges and tables that the reductions leave of a graph, packed for reading.
 * Private to solve.
 *
 * Nodes of the core are numbered in the order of the graph's; edges go from the smaller number to
 * the larger. The strategies of all nodes are numbered through: those of node v are first[v] ..
 * first[v + 1] - 1. The graph must outlive the core, and not change.
 */
#ifndef SW_SOLVE_PACKED_CORE_H
#define SW_SOLVE_PACKED_CORE_H

#include "solve/graph/working_graph.h"

typedef __int128 wide;

typedef struct core_edge {
	int32_t a, b;       /* a < b */
	int32_t table;      /* index into core.tables */
	int32_t transposed; /* 1: the table's columns belong to a */
	int64_t message[2]; /* offsets of the messages to a, and to b, among all messages */
} core_edge;

typedef struct core_table {
	int32_t size[2];     /* rows, columns */
	const int64_t *cost; /* row-major; the graph's */
	const double *real;  /* the same; infinite where forbidden */
} core_table;

typedef struct core {
	sw_arena arena;
	int32_t n_nodes, n_edges, n_strategies, points;
	int32_t max_strategies;           /* strategies of the node that has most; at least 1 */
	int32_t *graph_node, *graph_edge; /* their numbers in the graph */
	int32_t *first;
	int64_t *cost; /* per strategy */
	core_edge *edges;
	core_table *tables;
	/* per node: its edges to smaller nodes, then those to larger ones */
	int32_t *edge_first, *edge_list;
	int32_t *forward; /* per node: where its edges to larger nodes begin in edge_list */
	int32_t *span_first;
	graph_span *spans;
	int64_t *capacity;
	int64_t constant;
	int64_t entries; /* entries of all edges' tables: the work of one sweep */
	int64_t n_messages;
	int64_t magnitude; /* the costs of two assignments differ by no more */
} core;

void core_init(core *c, const graph *g);
void core_clear(core *c);

/* Add to `sum`, per strategy, the price of its usage; `price` is per point and unit of usage. */
void core_price_usage(const core *c, const double *price, double *sum);

/* The table of an edge seen from one of its ends (0: a, 1: b). */
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
