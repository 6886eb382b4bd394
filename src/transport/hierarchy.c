/* The parts of a group, and the holdings at each depth. */
#include "transport/hierarchy.h"

#include <string.h>

/* ---- parts ------------------------------------------------------------------------------ */

static int32_t place_of(const sw_task *t, int32_t vrank, int32_t level)
{
	return t->cluster->place[(int64_t)sw_task_rank(t, vrank) * t->cluster->n_levels + level];
}

/* Split the parts of `depth` where the places of members on `level` differ (level n_levels:
 * everywhere). Return false if this splits no part. */
static bool split(sw_hierarchy *h, int32_t depth, int32_t level)
{
	const sw_task *t = h->task;
	bool any = false;
	int32_t *begin = h->begin[depth + 1], *end = h->end[depth + 1];
	for (int32_t i = 0; i < t->n; i++) {
		bool first = i == h->begin[depth][i];
		bool differs = !first && (level == t->cluster->n_levels ||
		                          place_of(t, i, level) != place_of(t, i - 1, level));
		any = any || differs;
		begin[i] = first || differs ? i : begin[i - 1];
	}
	for (int32_t i = t->n - 1; i >= 0; i--)
		end[i] = i + 1 < t->n && begin[i + 1] == begin[i] ? end[i + 1] : i + 1;
	return any;
}

void sw_hierarchy_init(sw_hierarchy *h, const sw_task *task)
{
	*h = (sw_hierarchy){.task = task};
	for (int32_t d = 0; d <= SW_MAX_LEVELS; d++) {
		h->begin[d] = sw_alloc((size_t)task->n * sizeof(int32_t));
		h->end[d] = sw_alloc((size_t)task->n * sizeof(int32_t));
	}
	for (int32_t i = 0; i < task->n; i++)
		h->end[0][i] = task->n;
	for (int32_t l = 0; l < task->cluster->n_levels; l++) {
		h->level[h->depths] = l;
		h->depths += split(h, h->depths, l);
	}
}

void sw_hierarchy_clear(sw_hierarchy *h)
{
	for (int32_t d = 0; d <= SW_MAX_LEVELS; d++) {
		free(h->begin[d]);
		free(h->end[d]);
	}
}

/* ---- shares ----------------------------------------------------------------------------- */

static double link_of(const sw_hierarchy *h, int32_t depth, int32_t vrank)
{
	const sw_level *level = &h->task->cluster->levels[h->level[depth]];
	if (!level->part_bandwidth)
		return level->bandwidth;
	return level->part_bandwidth[place_of(h->task, vrank, h->level[depth])];
}

static void divide(const sw_hierarchy *h, int32_t depth, int32_t first, sw_element_span whole,
                   sw_element_span *shares)
{
	int32_t n = h->task->n, k = 0, i = 0;
	if (depth == h->depths) {
		shares[first] = whole;
		return;
	}
	double *links = sw_alloc(2 * (size_t)n * sizeof(*links)), *part = links + n, end = 0;
	for (int32_t t = first; t < h->end[depth][first]; t = sw_hierarchy_next(h, depth, t))
		links[k++] = link_of(h, depth, t);
	sw_cost_link_shares(links, k, part);
	int64_t begin = whole.begin;
	for (int32_t t = first; t < h->end[depth][first]; t = sw_hierarchy_next(h, depth, t)) {
		end += part[i++];
		int64_t to = i == k ? whole.begin + whole.length
		                    : whole.begin + SW_MIN((int64_t)(end * (double)whole.length),
		                                           whole.length);
		divide(h, depth + 1, t, (sw_element_span){begin, to - begin}, shares);
		begin = to;
	}
	free(links);
}

void sw_hierarchy_share(const sw_hierarchy *h, sw_element_span whole, sw_element_span *shares)
{
	divide(h, 0, 0, whole, shares);
}

/* ---- holdings --------------------------------------------------------------------------- */

int64_t sw_spans_length(const sw_element_spans *spans)
{
	int64_t length = 0;
	for (size_t i = 0; i < spans->len; i++)
		length += spans->data[i].length;
	return length;
}

static void add_span(sw_element_spans *spans, sw_element_span span)
{
	sw_element_span *last = spans->len ? &spans->data[spans->len - 1] : NULL;
	if (span.length <= 0)
		return;
	if (last && last->begin + last->length == span.begin)
		last->length += span.length;
	else
		sw_vec_push(spans, span);
}

void sw_spans_common(const sw_element_spans *a, const sw_element_spans *b, sw_element_spans *into)
{
	into->len = 0;
	for (size_t i = 0; i < a->len; i++) {
		for (size_t k = 0; k < b->len; k++) {
			sw_element_span x = a->data[i], y = b->data[k];
			int64_t begin = SW_MAX(x.begin, y.begin);
			int64_t end = SW_MIN(x.begin + x.length, y.begin + y.length);
			add_span(into, (sw_element_span){begin, end - begin});
		}
	}
}

/* Append elements number [from, from + length) of the list. */
static void add_slice(const sw_element_spans *list, sw_element_span slice, sw_element_spans *into)
{
	int64_t passed = 0;
	for (size_t i = 0; i < list->len; i++) {
		sw_element_span s = list->data[i];
		int64_t begin = SW_MAX(slice.begin - passed, 0),
			end = SW_MIN(slice.begin + slice.length - passed, s.length);
		add_span(into, (sw_element_span){s.begin + begin, end - begin});
		passed += s.length;
	}
}

/* Compute the holdings of a vrank at depth d + 1: shares of what each part within its part of depth
 * d holds at depth d. */
static void compute_holding(sw_holdings *holdings, int32_t depth, int32_t vrank)
{
	const sw_hierarchy *h = holdings->hierarchy;
	int32_t first = h->begin[depth + 1][vrank], size = h->end[depth + 1][vrank] - first;
	sw_element_spans *mine = (sw_element_spans *)sw_holdings_at(holdings, depth + 1, vrank),
			 theirs = {0};
	for (int32_t t = h->begin[depth][vrank]; t < h->end[depth][vrank];
	     t = sw_hierarchy_next(h, depth, t)) {
		theirs.len = 0;
		int32_t from = t == first ? vrank : t,
			to = t == first ? vrank + 1 : sw_hierarchy_next(h, depth, t);
		for (int32_t m = from; m < to; m++)
			for (size_t i = 0; i < sw_holdings_at(holdings, depth, m)->len; i++)
				add_span(&theirs, sw_holdings_at(holdings, depth, m)->data[i]);
		sw_element_span all = {0, sw_spans_length(&theirs)};
		add_slice(&theirs, t == first ? all : sw_span_part(all, size, vrank - first), mine);
	}
	sw_vec_clear(&theirs);
}

void sw_holdings_init(sw_holdings *holdings, const sw_hierarchy *h, const sw_element_span *targets)
{
	int32_t n = h->task->n;
	*holdings = (sw_holdings){
		h, sw_alloc((size_t)(h->depths + 1) * (size_t)n * sizeof(sw_element_spans))};
	for (int32_t i = 0; i < n; i++)
		add_span(&holdings->spans[i], targets[i]);
	for (int32_t d = 0; d < h->depths; d++)
		for (int32_t i = 0; i < n; i++)
			compute_holding(holdings, d, i);
}

void sw_holdings_clear(sw_holdings *holdings)
{
	int64_t lists = (int64_t)(holdings->hierarchy->depths + 1) * holdings->hierarchy->task->n;
	for (int64_t i = 0; i < lists; i++)
		sw_vec_clear(&holdings->spans[i]);
	free(holdings->spans);
}
