#include "layout/exhaustive.h"

#include <math.h>

/* ---- the graph -------------------------------------------------------------------------- */

/* List the moves from a layout. TO_PARTIAL may act on any atom here; the atoms on which a path may
 * use it depend on the path's ends. */
static void list_edges(layout_graph *graph, int32_t from)
{
	const sw_layout *before = &graph->all.data[from];
	for (int32_t to = 0; to < (int32_t)graph->all.len; to++) {
		for (int kind = 0; kind < SW_MOVE_COUNT; kind++) {
			sw_move move;
			if (!classify_move(&graph->atoms, graph->shape, before,
			                   &graph->all.data[to], (sw_move_kind)kind, UINT32_MAX,
			                   &move))
				continue;
			edge e = {to, move.kind, move.atoms,
			          local_touches(&graph->atoms, graph->shape, before, &move)};
			sw_vec_push(&graph->edges, e);
		}
	}
}

void layout_graph_init(layout_graph *graph, const sw_atoms *atoms, sw_shape shape, sw_monoid monoid)
{
	*graph = (layout_graph){.atoms = *atoms, .shape = shape};
	list_layouts(atoms, shape, monoid, &graph->all);
	graph->first = sw_alloc((graph->all.len + 1) * sizeof(size_t));
	for (size_t i = 0; i < graph->all.len; i++) {
		list_edges(graph, (int32_t)i);
		graph->first[i + 1] = graph->edges.len;
	}
}

void layout_graph_clear(layout_graph *graph)
{
	sw_vec_clear(&graph->all);
	sw_vec_clear(&graph->edges);
	free(graph->first);
}

/* ---- prices ----------------------------------------------------------------------------- */

static double move_ps(const sw_redistribution *how, sw_move_kind kind, uint32_t atoms,
                      touches local, int64_t operand, int64_t result)
{
	if (how->memory_bytes > 0 && SW_MAX(operand + result, local.peak) > how->memory_bytes)
		return INFINITY;
	double ps = 1e12 * how->local_overhead_s * local.n;
	if (how->local_bandwidth > 0)
		ps += 1e12 * (double)local.bytes / how->local_bandwidth;
	if (kind != SW_MOVE_SLICE && kind != SW_MOVE_TO_PARTIAL)
		ps += 1e12 * how->seconds(how->context, kind, atoms, operand);
	return ps;
}

double step_ps(const sw_redistribution *how, sw_shape shape, const sw_layout *before,
               const sw_move *move)
{
	return move_ps(how, move->kind, move->atoms, local_touches(how->atoms, shape, before, move),
	               sw_layout_local_bytes(how->atoms, shape, before),
	               sw_layout_local_bytes(how->atoms, shape, &move->after));
}

/* ---- the cheapest path ------------------------------------------------------------------ */

static int32_t nearest(const double *ps, const bool *done, int32_t n)
{
	int32_t best = -1;
	for (int32_t i = 0; i < n; i++)
		if (!done[i] && isfinite(ps[i]) && (best < 0 || ps[i] < ps[best]))
			best = i;
	return best;
}

double cheapest_ps(const layout_graph *graph, const sw_redistribution *how, int32_t from,
                   int32_t to)
{
	int32_t n = (int32_t)graph->all.len;
	const sw_layout *all = graph->all.data;
	uint32_t partial = sw_layout_partial_atoms(&all[to]) & ~sw_layout_partial_atoms(&all[from]);
	double *ps = sw_alloc((size_t)n * sizeof(double));
	int64_t *bytes = sw_alloc((size_t)n * sizeof(int64_t));
	bool *done = sw_alloc((size_t)n * sizeof(bool));
	for (int32_t i = 0; i < n; i++) {
		ps[i] = i == from ? 0 : INFINITY;
		bytes[i] = sw_layout_local_bytes(&graph->atoms, graph->shape, &all[i]);
	}
	for (int32_t at; (at = nearest(ps, done, n)) >= 0 && at != to;) {
		done[at] = true;
		for (size_t k = graph->first[at]; k < graph->first[at + 1]; k++) {
			const edge *e = &graph->edges.data[k];
			if (done[e->to] || (e->kind == SW_MOVE_TO_PARTIAL && e->atoms & ~partial))
				continue;
			ps[e->to] =
				fmin(ps[e->to], ps[at] + move_ps(how, e->kind, e->atoms, e->local,
			                                         bytes[at], bytes[e->to]));
		}
	}
	double found = ps[to];
	free(done);
	free(bytes);
	free(ps);
	return found;
}
