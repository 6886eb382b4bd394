/*
 * What the reductions leave, packed for reading; the bound on it; and the search on it. Private to solve.
 *
 * Nodes of the core are numbered in the order of the graph's, edges go from the smaller number to the
 * larger. Strategies of all nodes are numbered through: node v has first[v] .. first[v + 1]. The graph
 * must outlive the core, and not change.
 */
#ifndef SW_SOLVE_CORE_H
#define SW_SOLVE_CORE_H

#include "solve/graph.h"

typedef __int128 wide;

typedef struct core_edge {
	int32_t a, b;       /* a < b */
	int32_t table;      /* of core.tables */
	int32_t turned;     /* 1: the table's columns belong to a */
	int64_t message[2]; /* where the messages to a, and to b, begin */
} core_edge;

typedef struct core_table {
	int32_t size[2];        /* rows, columns */
	const int64_t *cost;    /* row-major, the graph's */
	const double *real[2];  /* row-major, and column-major; forbidden is infinite */
} core_table;

typedef struct core {
	sw_arena arena;
	int32_t n_nodes, n_edges, n_strategies, moments;
	int32_t *graph_node; /* its number in the graph */
	int32_t *first;
	int64_t *cost;       /* per strategy */
	core_edge *edges;
	core_table *tables;
	int32_t *edge_first, *edge_list; /* per node: edges to smaller nodes, then to larger */
	int32_t *forward;                /* where the latter begin */
	int32_t *span_first;
	graph_span *spans;
	int64_t *capacity;
	int64_t constant;
	int64_t entries;   /* of all edges' tables: the work of one sweep */
	int64_t n_messages;
	int64_t magnitude; /* no assignment's cost differs from another's by more */
} core;

void core_init(core *c, const graph *g);
void core_clear(core *c);

/* The table of an edge seen from node v of it (0: a, 1: b). */
static inline table_view core_view(const core *c, const core_edge *e, int side)
{
	const core_table *t = &c->tables[e->table];
	graph_table table = {.rows = t->size[0], .columns = t->size[1], .cost = (int64_t *)t->cost};
	return view_table(&table, side ^ e->turned);
}

static inline int32_t core_strategies(const core *c, int32_t v)
{
	return c->first[v + 1] - c->first[v];
}

/* ---- bound.c ---------------------------------------------------------------------------------------
 * Sequential reweighted message passing (Kolmogorov, "A new look at reweighted message passing",
 * PAMI 2015, for pairs: TRW-S) on costs to which prices of the moments are added (Lagrangian
 * relaxation of the capacity). The messages say how much of an edge's cost each end has been given. */

typedef struct passing {
	const core *c;
	double *message; /* c->n_messages */
	double *price;   /* per moment, >= 0 */
	double *drift;   /* per moment: smoothed excess of the decoded assignments */
	double *priced;  /* per strategy: cost with prices */
	int32_t *decoded;
	double estimate; /* of the bound after the last sweep, without the constant */
	double best;     /* the largest estimate, and what gave it: */
	double *best_message, *best_price;
	double step;     /* of the prices */
	bool priced_stale;
	double *row;     /* scratch, one node's strategies */
	int64_t work;
} passing;

void bound_init(passing *b, const core *c);
void bound_clear(passing *b);
/* One sweep each way; decodes an assignment on the way forward. */
void bound_sweep(passing *b);
/* Back to the best so far, with shorter steps of the prices. */
void bound_retreat(passing *b, double shorter);
/* Prices step along the decoded assignment's excess; `upper` is a cost believed reachable. */
void bound_reprice(passing *b, double upper);

/* ---- certify.c: the bound again, in integers ------------------------------------------------------- */

/* The best messages rounded to multiples of 2^-bits: total <= 2^bits * cost for every feasible assignment. */
typedef struct certificate {
	int bits;
	wide total;
	int64_t bound; /* total, scaled back and rounded up: costs are integers. Saturates. */
} certificate;

void bound_certify(const passing *b, certificate *proof);
/* keep (per strategy of the core) loses each strategy that no assignment cheaper than `upper` uses. */
int64_t bound_fix(const passing *b, const certificate *proof, int64_t upper, bool *keep);

#endif
