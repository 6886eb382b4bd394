/* Reductions on capacity: what every choice uses is subtracted from it, moments that cannot bind or
 * that another implies go, and strategies that cannot fit are dropped. */
#include "solve/graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- what is used whatever is chosen -------------------------------------------------------------- */

static int64_t least_usage(const graph_span *span, int32_t strategies)
{
	int64_t least = span->usage[0];
	for (int32_t i = 1; i < strategies; i++)
		least = SW_MIN(least, span->usage[i]);
	return least;
}

static int64_t most_usage(const graph_span *span, int32_t strategies)
{
	int64_t most = span->usage[0];
	for (int32_t i = 1; i < strategies; i++)
		most = SW_MAX(most, span->usage[i]);
	return most;
}

static void subtract_least(graph *g, const graph_span *span, int32_t strategies)
{
	int64_t least = least_usage(span, strategies);
	for (int32_t i = 0; i < strategies; i++)
		span->usage[i] -= least;
	g->capacity_left[span->begin] -= least;
	g->capacity_left[span->end] += least;
}

static void sum_equal_spans(graph_node *v)
{
	for (size_t a = 0; a < v->spans.len; a++)
		for (size_t b = v->spans.len; b-- > a + 1;) {
			graph_span *x = &v->spans.data[a], *y = &v->spans.data[b];
			if (x->begin != y->begin || x->end != y->end)
				continue;
			for (int32_t i = 0; i < v->strategies; i++)
				x->usage[i] += y->usage[i];
			*y = v->spans.data[--v->spans.len];
		}
}

static void drop_idle_spans(graph *g, int32_t node)
{
	graph_node *v = &g->nodes[node];
	size_t before = v->spans.len;
	for (size_t s = v->spans.len; s-- > 0;) {
		const graph_span *span = &v->spans.data[s];
		if (span->begin >= span->end || most_usage(span, v->strategies) == 0)
			v->spans.data[s] = v->spans.data[--v->spans.len];
	}
	if (v->spans.len < before)
		graph_touch(g, node);
}

static void take_off_capacity(graph *g)
{
	int64_t taken = 0;
	for (int32_t t = 0; t < g->moments; t++) {
		taken += g->capacity_left[t];
		g->capacity[t] += taken;
		g->infeasible |= g->capacity[t] < 0;
	}
	memset(g->capacity_left, 0, ((size_t)g->moments + 1) * sizeof *g->capacity_left);
}

static void subtract_fixed_usage(graph *g)
{
	for (int32_t n = 0; n < g->n_nodes; n++) {
		graph_node *v = &g->nodes[n];
		if (!v->alive || !v->spans.len)
			continue;
		sum_equal_spans(v);
		for (size_t s = 0; s < v->spans.len; s++)
			subtract_least(g, &v->spans.data[s], v->strategies);
		drop_idle_spans(g, n);
	}
	take_off_capacity(g);
}

/* ---- moments --------------------------------------------------------------------------------------- */

/* Per moment: the usage if every node took its largest; how many spans begin, and end, there. */
typedef struct moment_facts {
	int64_t *most;
	int32_t *begins, *ends; /* before and at this moment: cumulative */
} moment_facts;

static void gather_facts(const graph *g, moment_facts *facts)
{
	for (int32_t n = 0; n < g->n_nodes; n++) {
		const graph_node *v = &g->nodes[n];
		for (size_t s = 0; s < v->spans.len; s++) {
			const graph_span *span = &v->spans.data[s];
			int64_t most = most_usage(span, v->strategies);
			facts->most[span->begin] += most;
			facts->most[span->end] -= most;
			facts->begins[span->begin]++;
			facts->ends[span->end]++;
		}
	}
	for (int32_t t = 1; t <= g->moments; t++) {
		facts->most[t] += facts->most[t - 1];
		facts->begins[t] += facts->begins[t - 1];
		facts->ends[t] += facts->ends[t - 1];
	}
}

/* If no span ends after p, up to q, all that live at p live at q: with no more capacity at q, p is
 * implied. Likewise backwards. kept[] gets the others, ascending. */
static int32_t choose_moments(const graph *g, const moment_facts *facts, int32_t *kept)
{
	int32_t count = 0;
	for (int32_t q = 0; q < g->moments; q++) {
		if (facts->most[q] <= g->capacity[q])
			continue;
		while (count && facts->ends[q] == facts->ends[kept[count - 1]] &&
		       g->capacity[q] <= g->capacity[kept[count - 1]])
			g->price[q] += g->price[kept[--count]];
		if (count && facts->begins[q] == facts->begins[kept[count - 1]] &&
		    g->capacity[kept[count - 1]] <= g->capacity[q]) {
			g->price[kept[count - 1]] += g->price[q];
			continue;
		}
		kept[count++] = q;
	}
	return count;
}

static void renumber(graph *g, const int32_t *kept, int32_t count)
{
	int32_t *rank = sw_alloc(((size_t)g->moments + 1) * sizeof *rank);
	for (int32_t t = 0, r = 0; t <= g->moments; t++) {
		rank[t] = r;
		r += r < count && kept[r] == t;
	}
	for (int32_t n = 0; n < g->n_nodes; n++) {
		graph_node *v = &g->nodes[n];
		for (size_t s = 0; s < v->spans.len; s++) {
			v->spans.data[s].begin = rank[v->spans.data[s].begin];
			v->spans.data[s].end = rank[v->spans.data[s].end];
		}
		if (v->spans.len)
			drop_idle_spans(g, n);
	}
	for (int32_t r = 0; r < count; r++) {
		g->capacity[r] = g->capacity[kept[r]];
		g->price[r] = g->price[kept[r]];
	}
	g->moments = count;
	free(rank);
}

static void drop_slack_moments(graph *g)
{
	size_t size = (size_t)g->moments + 1;
	moment_facts facts = {sw_alloc(size * sizeof(int64_t)), sw_alloc(size * sizeof(int32_t)),
	                      sw_alloc(size * sizeof(int32_t))};
	int32_t *kept = sw_alloc(size * sizeof *kept);
	gather_facts(g, &facts);
	int32_t count = choose_moments(g, &facts, kept);
	if (count < g->moments)
		renumber(g, kept, count);
	free(kept);
	free(facts.ends);
	free(facts.begins);
	free(facts.most);
}

/* ---- strategies that cannot fit --------------------------------------------------------------------- */

/* least[k][t]: the smallest capacity of the 2^k moments from t. */
typedef struct range_least {
	int levels;
	int32_t moments;
	int64_t *least;
} range_least;

static range_least build_range(const graph *g)
{
	range_least range = {1, g->moments, NULL};
	while (((int64_t)1 << range.levels) <= g->moments)
		range.levels++;
	range.least = sw_alloc((size_t)range.levels * (size_t)g->moments * sizeof(int64_t));
	memcpy(range.least, g->capacity, (size_t)g->moments * sizeof(int64_t));
	for (int k = 1; k < range.levels; k++) {
		int64_t *row = range.least + (int64_t)k * g->moments, *half = row - g->moments;
		for (int32_t t = 0; t + (1 << k) <= g->moments; t++)
			row[t] = SW_MIN(half[t], half[t + (1 << (k - 1))]);
	}
	return range;
}

static int64_t least_capacity(const range_least *range, int32_t begin, int32_t end)
{
	int k = 0;
	while (((int64_t)2 << k) <= end - begin)
		k++;
	const int64_t *row = range->least + (int64_t)k * range->moments;
	return SW_MIN(row[begin], row[end - (1 << k)]);
}

static void drop_unfitting(graph *g)
{
	if (!g->moments)
		return;
	range_least range = build_range(g);
	for (int32_t n = 0; n < g->n_nodes && !g->infeasible; n++) {
		const graph_node *v = &g->nodes[n];
		if (!v->alive || !v->spans.len)
			continue;
		bool *keep = sw_alloc((size_t)v->strategies);
		memset(keep, 1, (size_t)v->strategies);
		for (size_t s = 0; s < v->spans.len; s++) {
			const graph_span *span = &v->spans.data[s];
			int64_t room = least_capacity(&range, span->begin, span->end);
			for (int32_t i = 0; i < v->strategies; i++)
				keep[i] &= span->usage[i] <= room;
		}
		graph_keep(g, n, keep);
		free(keep);
	}
	free(range.least);
}

void reduce_moments(graph *g)
{
	g->usage_changed = false;
	subtract_fixed_usage(g);
	if (g->infeasible)
		return;
	drop_slack_moments(g);
	drop_unfitting(g);
}
