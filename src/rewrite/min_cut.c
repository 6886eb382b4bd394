#include "rewrite/min_cut.h"

#include <string.h>

void sw_cut_init(sw_cut *cut, int32_t n)
{
	*cut = (sw_cut){.n = n, .first = sw_alloc(sizeof(int32_t) * (size_t)n)};
	memset(cut->first, -1, sizeof(int32_t) * (size_t)n);
}

void sw_cut_clear(sw_cut *cut)
{
	free(cut->first);
	sw_vec_clear(&cut->arcs);
}

static void add_half(sw_cut *cut, int32_t from, int32_t to, int64_t residual)
{
	sw_vec_push(&cut->arcs, ((sw_cut_arc){to, cut->first[from], residual}));
	cut->first[from] = (int32_t)cut->arcs.len - 1;
}

void sw_cut_add(sw_cut *cut, int32_t from, int32_t to, int64_t capacity)
{
	add_half(cut, from, to, capacity);
	add_half(cut, to, from, 0);
}

/* The state of one run of the algorithm. */
typedef struct flow {
	sw_cut *cut;
	int32_t *level;        /* arcs from the source, -1: not reached */
	int32_t *next;         /* per node: the arc to be tried next */
	int32_t *queue, *path; /* nodes; arcs */
} flow;

static bool find_levels(flow *f)
{
	const sw_cut *cut = f->cut;
	int32_t begin = 0, end = 0;
	memset(f->level, -1, sizeof(int32_t) * (size_t)cut->n);
	f->level[SW_CUT_SOURCE] = 0;
	f->queue[end++] = SW_CUT_SOURCE;
	while (begin < end && f->level[SW_CUT_SINK] < 0) {
		int32_t v = f->queue[begin++];
		for (int32_t a = cut->first[v]; a >= 0; a = cut->arcs.data[a].next) {
			sw_cut_arc arc = cut->arcs.data[a];
			if (arc.residual > 0 && f->level[arc.to] < 0) {
				f->level[arc.to] = f->level[v] + 1;
				f->queue[end++] = arc.to;
			}
		}
	}
	memcpy(f->next, cut->first, sizeof(int32_t) * (size_t)cut->n);
	return f->level[SW_CUT_SINK] >= 0;
}

/* Send flow along the path until an arc of it is full; return the index of that arc in the path. */
static int32_t send(flow *f, int32_t n_arcs, int64_t *sent)
{
	sw_cut_arc *arcs = f->cut->arcs.data;
	int64_t residual = INT64_MAX;
	int32_t full = 0;
	for (int32_t i = 0; i < n_arcs; i++)
		residual = SW_MIN(residual, arcs[f->path[i]].residual);
	for (int32_t i = n_arcs; i-- > 0;) {
		arcs[f->path[i]].residual -= residual;
		arcs[f->path[i] ^ 1].residual += residual;
		if (arcs[f->path[i]].residual == 0)
			full = i;
	}
	*sent += residual;
	return full;
}

/* Send flow along paths whose levels rise, until there is none left. */
static void block(flow *f, int64_t *sent)
{
	const sw_cut *cut = f->cut;
	int32_t v = SW_CUT_SOURCE, n_arcs = 0;
	while (*sent < SW_CUT_NEVER) {
		int32_t a = f->next[v];
		if (v == SW_CUT_SINK) {
			n_arcs = send(f, n_arcs, sent);
			v = cut->arcs.data[f->path[n_arcs] ^ 1].to;
		} else if (a < 0) {
			if (n_arcs == 0)
				return;
			v = cut->arcs.data[f->path[--n_arcs] ^ 1].to;
			f->next[v] = cut->arcs.data[f->next[v]].next;
		} else if (cut->arcs.data[a].residual > 0 &&
		           f->level[cut->arcs.data[a].to] == f->level[v] + 1) {
			f->path[n_arcs++] = a;
			v = cut->arcs.data[a].to;
		} else {
			f->next[v] = cut->arcs.data[a].next;
		}
	}
}

/* Mark the nodes that still have a path to the sink with residual capacity. */
static void mark_behind(const flow *f, bool *behind)
{
	const sw_cut *cut = f->cut;
	int32_t begin = 0, end = 0;
	memset(behind, 0, (size_t)cut->n);
	behind[SW_CUT_SINK] = true;
	f->queue[end++] = SW_CUT_SINK;
	while (begin < end) {
		int32_t v = f->queue[begin++];
		for (int32_t a = cut->first[v]; a >= 0; a = cut->arcs.data[a].next) {
			int32_t from = cut->arcs.data[a].to;
			if (cut->arcs.data[a ^ 1].residual > 0 && !behind[from]) {
				behind[from] = true;
				f->queue[end++] = from;
			}
		}
	}
}

bool sw_cut_solve(sw_cut *cut, bool *behind)
{
	int32_t *memory = sw_alloc(sizeof(int32_t) * 4 * (size_t)cut->n);
	flow f = {cut, memory, memory + cut->n, memory + 2 * cut->n, memory + 3 * cut->n};
	int64_t sent = 0;
	while (sent < SW_CUT_NEVER && find_levels(&f))
		block(&f, &sent);
	mark_behind(&f, behind);
	free(memory);
	return sent < SW_CUT_NEVER;
}
