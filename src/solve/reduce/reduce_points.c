/* Reductions of the capacity: usage that is the same for every choice is subtracted from it, points
 * that cannot bind or that another point implies are removed, and strategies that cannot fit are
 * dropped. */
#include "solve/graph/working_graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- usage that no choice changes ------------------------------------------------------- */

static void subtract_least(graph *g, const graph_span *span, int32_t strategies)
{
	int64_t least = least_of(span->usage, strategies);
	for (int32_t i = 0; i < strategies; i++)
		span->usage[i] -= least;
	g->capacity_left[span->begin] -= least;
	g->capacity_left[span->end] += least;
}

typedef struct span_end {
	int32_t point, span;
	int sign; /* 1: the span begins; -1: it ends */
} span_end;

static int by_point(const void *a, const void *b)
{
	const span_end *x = a, *y = b;
	return (x->point > y->point) - (x->point < y->point);
}

/* Whether the spans are in order and disjoint, and none continues the one before it. */
static bool is_disjoint(const graph_node *v)
{
	size_t bytes = (size_t)v->strategies * sizeof(int64_t);
	for (size_t s = 1; s < v->spans.len; s++) {
		const graph_span *x = &v->spans.data[s - 1], *y = &v->spans.data[s];
		if (x->end > y->begin || (x->end == y->begin && !memcmp(x->usage, y->usage, bytes)))
			return false;
	}
	return true;
}

/* Append a span with the given usages, or lengthen the last one if it ends here with the same
 * usages. */
static void append_span(graph *g, graph_node *v, int32_t begin, int32_t end, const int64_t *now)
{
	size_t bytes = (size_t)v->strategies * sizeof *now;
	graph_span *last = v->spans.len ? &v->spans.data[v->spans.len - 1] : NULL;
	if (last && last->end == begin && !memcmp(last->usage, now, bytes)) {
		last->end = end;
		return;
	}
	bool any = false;
	for (int32_t i = 0; i < v->strategies; i++)
		any |= now[i] != 0;
	if (!any)
		return;
	graph_span added = {begin, end, sw_arena_copy(&g->arena, now, bytes)};
	sw_vec_push(&v->spans, added);
}

/* Replace overlapping spans, which merged nodes have, by disjoint ones with the sums of their
 * usages. */
static void make_disjoint(graph *g, graph_node *v)
{
	size_t count = v->spans.len;
	if (is_disjoint(v))
		return;
	graph_span *old = sw_alloc(count * sizeof *old);
	span_end *ends = sw_alloc(2 * count * sizeof *ends);
	int64_t *now = sw_alloc((size_t)v->strategies * sizeof *now);
	memcpy(old, v->spans.data, count * sizeof *old);
	for (size_t s = 0; s < count; s++) {
		ends[2 * s] = (span_end){old[s].begin, (int32_t)s, 1};
		ends[2 * s + 1] = (span_end){old[s].end, (int32_t)s, -1};
	}
	qsort(ends, 2 * count, sizeof *ends, by_point);
	v->spans.len = 0;
	for (size_t e = 0; e < 2 * count; e++) {
		for (int32_t i = 0; i < v->strategies; i++)
			now[i] += ends[e].sign * old[ends[e].span].usage[i];
		if (e + 1 < 2 * count && ends[e].point < ends[e + 1].point)
			append_span(g, v, ends[e].point, ends[e + 1].point, now);
	}
	free(now);
	free(ends);
	free(old);
}

static void drop_idle_spans(graph *g, int32_t node)
{
	graph_node *v = &g->nodes[node];
	size_t before = v->spans.len;
	v->spans.len = 0;
	for (size_t s = 0; s < before; s++) {
		graph_span span = v->spans.data[s];
		if (span.begin < span.end && most_of(span.usage, v->strategies) > 0)
			v->spans.data[v->spans.len++] = span;
	}
	if (v->spans.len < before)
		graph_touch(g, node);
}

void reduce_settle(graph *g)
{
	int64_t taken = 0;
	for (int32_t t = 0; t < g->points; t++) {
		taken += g->capacity_left[t];
		g->capacity[t] += taken;
		g->infeasible |= g->capacity[t] < 0;
	}
	memset(g->capacity_left, 0, ((size_t)g->points + 1) * sizeof *g->capacity_left);
}

static void subtract_fixed_usage(graph *g)
{
	for (int32_t n = 0; n < g->n_nodes; n++) {
		graph_node *v = &g->nodes[n];
		if (!v->alive || !v->spans.len)
			continue;
		make_disjoint(g, v);
		for (size_t s = 0; s < v->spans.len; s++)
			subtract_least(g, &v->spans.data[s], v->strategies);
		drop_idle_spans(g, n);
	}
	reduce_settle(g);
}

/* ---- points ----------------------------------------------------------------------------- */

/* Per point: the usage if every node took its largest, and how many spans begin, and end. */
typedef struct point_facts {
	int64_t *most;
	int32_t *begins, *ends; /* cumulative: at this point or before it */
} point_facts;

static void gather_facts(const graph *g, point_facts *facts)
{
	for (int32_t n = 0; n < g->n_nodes; n++) {
		const graph_node *v = &g->nodes[n];
		for (size_t s = 0; s < v->spans.len; s++) {
			const graph_span *span = &v->spans.data[s];
			int64_t most = most_of(span->usage, v->strategies);
			facts->most[span->begin] += most;
			facts->most[span->end] -= most;
			facts->begins[span->begin]++;
			facts->ends[span->end]++;
		}
	}
	for (int32_t t = 1; t <= g->points; t++) {
		facts->most[t] += facts->most[t - 1];
		facts->begins[t] += facts->begins[t - 1];
		facts->ends[t] += facts->ends[t - 1];
	}
}

static void transfer_price(const graph *g, int32_t *implied_by, int32_t implied, int32_t by)
{
	g->price[by] += g->price[implied];
	implied_by[implied] = by;
}

/* If no span ends after p up to q, all spans that contain p contain q; so if q has no more capacity
 * than p, q implies p. The same holds backwards. kept[] gets the points that no other one implies,
 * ascending; implied_by[] the point that implies each, itself if it is kept, or -1 if it can't
 * bind. */
static int32_t choose_points(const graph *g, const point_facts *facts, int32_t *kept,
                             int32_t *implied_by)
{
	int32_t count = 0;
	for (int32_t q = 0; q < g->points; q++) {
		implied_by[q] = facts->most[q] <= g->capacity[q] ? -1 : q;
		if (implied_by[q] < 0)
			continue;
		while (count && facts->ends[q] == facts->ends[kept[count - 1]] &&
		       g->capacity[q] <= g->capacity[kept[count - 1]])
			transfer_price(g, implied_by, kept[--count], q);
		if (count && facts->begins[q] == facts->begins[kept[count - 1]] &&
		    g->capacity[kept[count - 1]] <= g->capacity[q]) {
			transfer_price(g, implied_by, q, kept[count - 1]);
			continue;
		}
		kept[count++] = q;
	}
	return count;
}

/* Move the knapsack messages of a removed point to the one that implies it. */
static void renumber_given(graph *g, int32_t node, const int32_t *implied_by, const int32_t *rank)
{
	graph_node *v = &g->nodes[node];
	size_t count = v->given.len;
	graph_given *old = sw_alloc((count + 1) * sizeof *old);
	memcpy(old, v->given.data, count * sizeof *old);
	v->given.len = 0;
	for (size_t k = 0; k < count; k++) {
		int32_t point = old[k].point;
		while (point >= 0 && implied_by[point] != point)
			point = implied_by[point];
		if (point >= 0)
			graph_add_given(g, node, rank[point], old[k].given);
	}
	free(old);
}

static void renumber(graph *g, const int32_t *kept, int32_t count, const int32_t *implied_by)
{
	int32_t *rank = sw_alloc(((size_t)g->points + 1) * sizeof *rank);
	for (int32_t t = 0, r = 0; t <= g->points; t++) {
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
		if (v->given.len)
			renumber_given(g, n, implied_by, rank);
	}
	for (int32_t r = 0; r < count; r++) {
		g->capacity[r] = g->capacity[kept[r]];
		g->price[r] = g->price[kept[r]];
		g->mean_excess[r] = g->mean_excess[kept[r]];
	}
	g->points = count;
	free(rank);
}

static void drop_slack_points(graph *g)
{
	size_t size = (size_t)g->points + 1;
	point_facts facts = {sw_alloc(size * sizeof(int64_t)), sw_alloc(size * sizeof(int32_t)),
	                     sw_alloc(size * sizeof(int32_t))};
	int32_t *kept = sw_alloc(size * sizeof *kept),
		*implied_by = sw_alloc(size * sizeof *implied_by);
	gather_facts(g, &facts);
	int32_t count = choose_points(g, &facts, kept, implied_by);
	if (count < g->points)
		renumber(g, kept, count, implied_by);
	free(implied_by);
	free(kept);
	free(facts.ends);
	free(facts.begins);
	free(facts.most);
}

/* ---- strategies that cannot fit --------------------------------------------------------- */

/* Range minima: least[k][t] is the smallest capacity of the 2^k points from t on. */
typedef struct range_least {
	int levels;
	int32_t points;
	int64_t *least;
} range_least;

static range_least build_range(const graph *g)
{
	range_least range = {1, g->points, NULL};
	while (((int64_t)1 << range.levels) <= g->points)
		range.levels++;
	range.least = sw_alloc((size_t)range.levels * (size_t)g->points * sizeof(int64_t));
	memcpy(range.least, g->capacity, (size_t)g->points * sizeof(int64_t));
	for (int k = 1; k < range.levels; k++) {
		int64_t *row = range.least + (int64_t)k * g->points, *half = row - g->points;
		for (int32_t t = 0; t + (1 << k) <= g->points; t++)
			row[t] = SW_MIN(half[t], half[t + (1 << (k - 1))]);
	}
	return range;
}

static int64_t least_capacity(const range_least *range, int32_t begin, int32_t end)
{
	int k = 0;
	while (((int64_t)2 << k) <= end - begin)
		k++;
	const int64_t *row = range->least + (int64_t)k * range->points;
	return SW_MIN(row[begin], row[end - (1 << k)]);
}

static void drop_unfitting(graph *g)
{
	if (!g->points)
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
			int64_t least = least_capacity(&range, span->begin, span->end);
			for (int32_t i = 0; i < v->strategies; i++)
				keep[i] &= span->usage[i] <= least;
		}
		graph_keep(g, n, keep, NULL);
		free(keep);
	}
	free(range.least);
}

void reduce_points(graph *g)
{
	g->usage_changed = false;
	subtract_fixed_usage(g);
	if (g->infeasible)
		return;
	drop_slack_points(g);
	drop_unfitting(g);
}
