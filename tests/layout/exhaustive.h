/*
 * exhaustive: the cheapest path by Dijkstra's algorithm over ALL layouts of a small tensor and all
 * moves between them, on any set of atoms. Written from the definitions of layout.h; it shares no
 * code with the search that it tests.
 */
#ifndef SW_TESTS_EXHAUSTIVE_H
#define SW_TESTS_EXHAUSTIVE_H

#include "layout/layouts.h"

/* One move between two layouts of the list. */
typedef struct edge {
	int32_t to;
	sw_move_kind kind;
	uint32_t atoms;
	touches local;
} edge;

typedef struct layout_graph {
	sw_atoms atoms;
	sw_shape shape;
	layout_list all;
	size_t *first; /* edges of layout i: first[i] .. first[i + 1] */
	SW_VEC(edge) edges;
} layout_graph;

void layout_graph_init(layout_graph *graph, const sw_atoms *atoms, sw_shape shape,
                       sw_monoid monoid);
void layout_graph_clear(layout_graph *graph);
/* Return picoseconds, unrounded; INFINITY: there is no path. from and to are places in
 * graph->all. */
double cheapest_ps(const layout_graph *graph, const sw_redistribution *how, int32_t from,
                   int32_t to);

/* Return the cost of one move as layout.h defines it; INFINITY where it exceeds the memory
 * bound. */
double step_ps(const sw_redistribution *how, sw_shape shape, const sw_layout *before,
               const sw_move *move);

#endif
