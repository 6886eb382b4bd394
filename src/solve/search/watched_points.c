/* The points that the search watches, and the usages of each node at them. */
#include "solve/search/local_search.h"
#include "solve/limits.h"

#include <stdlib.h>
#include <string.h>

static const solve_move_limits *const limits = &default_limits.move;

static int compare_places(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
	return (x > y) - (x < y);
}

/* ---- usage at all points ---------------------------------------------------------------- */

static int64_t *count_usage(local_search *s)
{
	const core *c = s->c;
	int64_t *used = sw_alloc((size_t)(c->points + 1) * sizeof *used);
	for (int32_t v = 0; v < c->n_nodes; v++)
		for (int32_t k = c->span_first[v]; k < c->span_first[v + 1]; k++) {
			used[c->spans[k].begin] += c->spans[k].usage[s->x[v]];
			used[c->spans[k].end] -= c->spans[k].usage[s->x[v]];
		}
	for (int32_t t = 1; t < c->points; t++)
		used[t] += used[t - 1];
	s->work += 4 * (int64_t)c->span_first[c->n_nodes] + c->points;
	return used;
}

/* ---- the nodes' spans at the watched points --------------------------------------------- */

typedef struct watch_packing {
	local_search *s;
	int32_t *rank;  /* per point: number of watched points before it */
	int32_t *place; /* per watched point: number of the node's segment that begins there */
	SW_VEC(int32_t) cuts;
	SW_VEC(int64_t) usage; /* segment after segment, per strategy */
	SW_VEC(watch_span) spans;
} watch_packing;

/* List the watched points at which a span of the node begins or ends. */
static void list_cuts(watch_packing *p, int32_t v)
{
	const core *c = p->s->c;
	p->cuts.len = 0;
	for (int32_t k = c->span_first[v]; k < c->span_first[v + 1]; k++) {
		int32_t begin = p->rank[c->spans[k].begin], end = p->rank[c->spans[k].end];
		if (begin == end)
			continue;
		sw_vec_push(&p->cuts, begin);
		sw_vec_push(&p->cuts, end);
	}
	if (!p->cuts.len)
		return;
	qsort(p->cuts.data, p->cuts.len, sizeof(int32_t), compare_places);
	size_t kept = 1;
	for (size_t k = 1; k < p->cuts.len; k++)
		if (p->cuts.data[k] != p->cuts.data[kept - 1])
			p->cuts.data[kept++] = p->cuts.data[k];
	p->cuts.len = kept;
}

static void sum_pieces(watch_packing *p, int32_t v)
{
	const core *c = p->s->c;
	size_t n = (size_t)core_strategies(c, v);
	sw_vec_reserve(&p->usage, p->cuts.len * n);
	memset(p->usage.data, 0, p->cuts.len * n * sizeof(int64_t));
	for (size_t k = 0; k < p->cuts.len; k++)
		p->place[p->cuts.data[k]] = (int32_t)k;
	for (int32_t k = c->span_first[v]; k < c->span_first[v + 1]; k++) {
		int32_t begin = p->rank[c->spans[k].begin], end = p->rank[c->spans[k].end];
		if (begin == end)
			continue;
		int64_t *on = p->usage.data + (size_t)p->place[begin] * n,
			*off = p->usage.data + (size_t)p->place[end] * n;
		for (size_t i = 0; i < n; i++) {
			on[i] += c->spans[k].usage[i];
			off[i] -= c->spans[k].usage[i];
		}
	}
	for (size_t k = n; k < p->cuts.len * n; k++)
		p->usage.data[k] += p->usage.data[k - n];
}

static bool all_equal(const int64_t *usage, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (usage[i] != usage[0])
			return false;
	return true;
}

/* Segments at which all strategies use the same are left out; equal neighbouring ones are
 * joined. */
static void pack_node(watch_packing *p, int32_t v)
{
	local_search *s = p->s;
	size_t n = (size_t)core_strategies(s->c, v), first = p->spans.len;
	list_cuts(p, v);
	if (p->cuts.len)
		sum_pieces(p, v);
	for (size_t k = 0; k + 1 < p->cuts.len; k++) {
		const int64_t *usage = p->usage.data + k * n;
		watch_span *last = p->spans.len > first ? &p->spans.data[p->spans.len - 1] : NULL;
		if (all_equal(usage, n))
			continue;
		if (last && last->end == p->cuts.data[k] &&
		    !memcmp(last->usage, usage, n * sizeof *usage)) {
			last->end = p->cuts.data[k + 1];
			continue;
		}
		watch_span span = {p->cuts.data[k], p->cuts.data[k + 1],
		                   sw_arena_copy(&s->watch.arena, usage, n * sizeof *usage)};
		sw_vec_push(&p->spans, span);
	}
	s->work += (int64_t)(p->cuts.len * n);
}

static void pack_spans(local_search *s)
{
	const core *c = s->c;
	watching *w = &s->watch;
	watch_packing p = {.s = s,
	                   .rank = sw_alloc((size_t)(c->points + 1) * sizeof(int32_t)),
	                   .place = sw_alloc((size_t)(w->count + 1) * sizeof(int32_t))};
	for (int32_t t = 0, k = 0; t <= c->points; t++) {
		p.rank[t] = k;
		k += k < w->count && w->point[k] == t;
	}
	w->first = SW_NEW_N(&w->arena, int32_t, c->n_nodes + 1);
	for (int32_t v = 0; v < c->n_nodes; v++) {
		pack_node(&p, v);
		w->first[v + 1] = (int32_t)p.spans.len;
	}
	w->spans = sw_arena_copy(&w->arena, p.spans.data, p.spans.len * sizeof *p.spans.data);
	s->work += 4 * (int64_t)c->span_first[c->n_nodes] + c->points;
	free(p.rank);
	free(p.place);
	sw_vec_clear(&p.cuts);
	sw_vec_clear(&p.usage);
	sw_vec_clear(&p.spans);
}

/* ---- verification ----------------------------------------------------------------------- */

/* Merge the watched points with new ones; both are ascending, and have none in common. */
static void merge_points(local_search *s, const int32_t *added, int32_t count, const int64_t *used)
{
	watching old = s->watch, *w = &s->watch;
	*w = (watching){.count = old.count + count};
	sw_arena_init(&w->arena);
	w->point = SW_NEW_N(&w->arena, int32_t, w->count + 1);
	w->spare = SW_NEW_N(&w->arena, int64_t, w->count + 1);
	w->extra_before = SW_NEW_N(&w->arena, double, w->count + 1);
	for (int32_t k = 0, a = 0, b = 0; k < w->count; k++) {
		bool from_old = b == count || (a < old.count && old.point[a] < added[b]);
		w->point[k] = from_old ? old.point[a++] : added[b++];
	}
	sw_arena_clear(&old.arena);
	pack_spans(s);
	s->over = 0;
	for (int32_t k = 0; k < w->count; k++) {
		w->spare[k] = s->c->capacity[w->point[k]] - used[w->point[k]];
		s->over += SW_MAX(0, -w->spare[k]);
	}
	search_sum_extra(s);
}

/* List the worst point of each range, if it exceeds its capacity and is not watched. */
static int32_t list_worst(const local_search *s, const int64_t *used, int32_t *worst)
{
	const core *c = s->c;
	int32_t length = c->points / limits->watch_ranges + 1, count = 0, k = 0;
	for (int32_t begin = 0; begin < c->points; begin += length) {
		int32_t found = -1;
		int64_t most = 0;
		for (int32_t t = begin; t < SW_MIN(begin + length, c->points); t++)
			if (used[t] - c->capacity[t] > most) {
				most = used[t] - c->capacity[t];
				found = t;
			}
		while (k < s->watch.count && s->watch.point[k] < found)
			k++;
		if (found >= 0 && (k == s->watch.count || s->watch.point[k] != found))
			worst[count++] = found;
	}
	return count;
}

bool search_verify(local_search *s)
{
	if (s->verified)
		return true;
	int64_t *used = count_usage(s);
	int32_t *worst = sw_alloc((size_t)(limits->watch_ranges + 1) * sizeof *worst);
	int32_t count = list_worst(s, used, worst);
	if (count || !s->watch.first)
		merge_points(s, worst, count, used);
	free(worst);
	free(used);
	s->verified = s->over == 0;
	return s->verified;
}

void search_sum_extra(local_search *s)
{
	watching *w = &s->watch;
	for (int32_t k = 0; k < w->count; k++)
		w->extra_before[k + 1] = w->extra_before[k] + s->extra[w->point[k]];
}

void search_clear_extra(local_search *s)
{
	memset(s->extra, 0, (size_t)(s->c->points + 1) * sizeof *s->extra);
	search_sum_extra(s);
}

void search_watch_clear(local_search *s)
{
	sw_arena_clear(&s->watch.arena);
	s->watch = (watching){0};
}
