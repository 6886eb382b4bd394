#include "solve/methods/segment_merging.h"
#include "solve/limits.h"
#include "base/heap.h"

#include <stdlib.h>
#include <string.h>

static const solve_segment_limits *const limits = &default_limits.segment;

typedef struct segment_factor {
	int32_t n;
	const int32_t *node; /* in the arena; the first one is the slowest digit */
	int32_t table;
	bool consumed;
} segment_factor;

typedef struct segment_bucket {
	int_list factors;
	int_list scope; /* the eliminated node first */
	int64_t entries;
} segment_bucket;

typedef struct segments {
	const core *c;
	sw_arena arena;
	SW_VEC(segment_factor) factors;
	int_list *of_node; /* per node: its factors; after its elimination those that it had then */
	SW_VEC(int64_t *) tables;
	SW_VEC(int64_t) entries; /* per table */
	sw_map contents;         /* costs of a node -> table */
	/* contents of the buckets -> the first of their tables, which follow each other */
	sw_map merged;
	sw_heap heap; /* by table size; it may hold outdated entries */
	int32_t *order;
	bool *eliminated;
	int32_t *place; /* per node: index in the present scope, or -1 */
	int64_t largest, constant, work;
	bool forbidden;
} segments;

/* ---- factors ---------------------------------------------------------------------------- */

static int32_t add_table(segments *s, int64_t *cost, int64_t entries)
{
	sw_vec_push(&s->tables, cost);
	sw_vec_push(&s->entries, entries);
	return (int32_t)s->tables.len - 1;
}

static void add_factor(segments *s, const int32_t *node, int32_t n, int32_t table)
{
	segment_factor f = {.n = n, .table = table};
	f.node = sw_arena_copy(&s->arena, node, sizeof(*node) * (size_t)n);
	for (int32_t k = 0; k < n; k++)
		sw_vec_push(&s->of_node[node[k]], (int32_t)s->factors.len);
	sw_vec_push(&s->factors, f);
}

static void add_node_costs(segments *s)
{
	const core *c = s->c;
	for (int32_t v = 0; v < c->n_nodes; v++) {
		size_t bytes = sizeof(int64_t) * (size_t)core_strategies(c, v);
		uint32_t fresh = (uint32_t)s->tables.len;
		uint32_t table = sw_map_intern(&s->contents, c->cost + c->first[v], bytes, fresh);
		if (table == fresh)
			add_table(s, memcpy(sw_alloc(bytes), c->cost + c->first[v], bytes),
			          core_strategies(c, v));
		add_factor(s, &v, 1, (int32_t)table);
	}
}

static void add_edges(segments *s)
{
	const core *c = s->c;
	/* per table of the core: its number here + 1 */
	int32_t *number = sw_alloc(sizeof(*number) * ((size_t)c->n_edges + 1));
	for (int32_t e = 0; e < c->n_edges; e++) {
		const core_edge *edge = &c->edges[e];
		const core_table *t = &c->tables[edge->table];
		const int32_t ends[] = {edge->transposed ? edge->b : edge->a,
		                        edge->transposed ? edge->a : edge->b};
		int64_t entries = (int64_t)t->size[0] * t->size[1];
		if (!number[edge->table]) {
			int64_t *cost = sw_alloc(sizeof(*cost) * (size_t)entries);
			memcpy(cost, t->cost, sizeof(*cost) * (size_t)entries);
			number[edge->table] = add_table(s, cost, entries) + 1;
		}
		add_factor(s, ends, 2, number[edge->table] - 1);
	}
	free(number);
}

/* ---- the order -------------------------------------------------------------------------- */

static void add_to_scope(segments *s, segment_bucket *b, int32_t node)
{
	if (s->place[node] >= 0)
		return;
	s->place[node] = (int32_t)b->scope.len;
	sw_vec_push(&b->scope, node);
	b->entries *= core_strategies(s->c, node);
	b->entries = SW_MIN(b->entries, INT64_C(1) << 40);
}

static void forget_scope(segments *s, const segment_bucket *b, size_t from)
{
	for (size_t k = from; k < b->scope.len; k++)
		s->place[b->scope.data[k]] = -1;
}

/* The entries of the table that the node's elimination would leave if there were no limit. */
static double weight_of(segments *s, int32_t node)
{
	segment_bucket all = {.entries = 1};
	const int_list *factors = &s->of_node[node];
	double weight = 1e17 + (double)factors->len;
	if (factors->len > limits->max_tables)
		return weight;
	for (size_t k = 0; k < factors->len; k++) {
		const segment_factor *f = &s->factors.data[factors->data[k]];
		for (int32_t i = 0; i < f->n && !f->consumed; i++)
			add_to_scope(s, &all, f->node[i]);
	}
	weight = (double)all.entries;
	forget_scope(s, &all, 0);
	s->work += (int64_t)all.scope.len;
	sw_vec_clear(&all.scope);
	return weight;
}

static void drop_consumed(segments *s, int32_t node)
{
	int_list *list = &s->of_node[node];
	size_t left = 0;
	for (size_t k = 0; k < list->len; k++)
		if (!s->factors.data[list->data[k]].consumed)
			list->data[left++] = list->data[k];
	list->len = left;
}

/* ---- buckets ---------------------------------------------------------------------------- */

typedef SW_VEC(segment_bucket) segment_bucket_list;

/* Add a factor to a bucket if its table stays within the limit. A factor alone always fits: its
 * table shrinks by the elimination. */
static bool try_to_add(segments *s, segment_bucket *b, int32_t number)
{
	const segment_factor *f = &s->factors.data[number];
	size_t before = b->scope.len;
	int64_t entries = b->entries;
	for (size_t k = 0; k < b->scope.len; k++)
		s->place[b->scope.data[k]] = (int32_t)k;
	for (int32_t i = 0; i < f->n; i++)
		add_to_scope(s, b, f->node[i]);
	bool fits = b->entries <= s->largest || b->factors.len == 0 || b->scope.len == before;
	forget_scope(s, b, 0);
	if (fits) {
		sw_vec_push(&b->factors, number);
	} else {
		b->scope.len = before;
		b->entries = entries;
	}
	return fits;
}

/* Sort by size, the largest first, so that small factors fill the buckets. Most lists are short, so
 * that insertion sort does. */
static void sort_factors(segments *s, int_list *list)
{
	for (size_t k = 1; k < list->len; k++)
		for (size_t i = k; i > 0; i--) {
			int32_t a = list->data[i - 1], b = list->data[i];
			if (s->entries.data[s->factors.data[a].table] >=
			    s->entries.data[s->factors.data[b].table])
				break;
			list->data[i - 1] = b;
			list->data[i] = a;
		}
}

static void fill_buckets(segments *s, int32_t node, segment_bucket_list *buckets)
{
	int_list *list = &s->of_node[node];
	if (list->len <= limits->max_tables)
		sort_factors(s, list);
	for (size_t k = 0; k < list->len; k++) {
		size_t first = buckets->len > limits->open_buckets
		                       ? buckets->len - limits->open_buckets
		                       : 0;
		size_t b = first;
		while (b < buckets->len && !try_to_add(s, &buckets->data[b], list->data[k]))
			b++;
		if (b < buckets->len)
			continue;
		segment_bucket fresh = {.entries = 1};
		add_to_scope(s, &fresh, node);
		forget_scope(s, &fresh, 0);
		try_to_add(s, &fresh, list->data[k]);
		sw_vec_push(buckets, fresh);
	}
}

static void clear_buckets(segment_bucket_list *buckets)
{
	for (size_t b = 0; b < buckets->len; b++) {
		sw_vec_clear(&buckets->data[b].factors);
		sw_vec_clear(&buckets->data[b].scope);
	}
	sw_vec_clear(buckets);
}

/* Make a key that is equal for buckets with the same result: those that join the same tables in the
 * same way. */
static void key_buckets(const segments *s, const segment_bucket_list *buckets, sw_text *key)
{
	for (size_t b = 0; b < buckets->len; b++) {
		const segment_bucket *at = &buckets->data[b];
		const int32_t sizes[] = {(int32_t)at->factors.len, (int32_t)at->scope.len};
		sw_text_add_n(key, (const char *)sizes, sizeof(sizes));
		for (size_t k = 0; k < at->factors.len; k++) {
			const segment_factor *f = &s->factors.data[at->factors.data[k]];
			sw_text_add_n(key, (const char *)&f->table, sizeof(f->table));
			for (int32_t i = 0; i < f->n; i++)
				for (int32_t place = 0; place < (int32_t)at->scope.len; place++)
					if (at->scope.data[place] == f->node[i])
						sw_text_add_n(key, (const char *)&place,
						              sizeof(place));
		}
	}
}

/* ---- tables ----------------------------------------------------------------------------- */

/* Per node of the scope: by how much the factor's entry index grows with its strategy. */
static void find_steps(const segments *s, const segment_bucket *b, const segment_factor *f,
                       int64_t *step)
{
	int64_t stride = 1;
	memset(step, 0, sizeof(*step) * b->scope.len);
	for (int32_t i = f->n; i-- > 0; stride *= core_strategies(s->c, f->node[i]))
		for (size_t k = 0; k < b->scope.len; k++)
			if (b->scope.data[k] == f->node[i])
				step[k] = stride;
}

/* Add the factor to all entries of a table over the scope, whose last node is the fastest digit. */
static void add_to_table(segments *s, const segment_bucket *b, const segment_factor *f,
                         int64_t *sum)
{
	size_t n = b->scope.len;
	int64_t *step = sw_alloc(2 * (n + 1) * sizeof(*step)), *digit = step + n + 1, at = 0;
	const int64_t *cost = s->tables.data[f->table];
	find_steps(s, b, f, step);
	for (int64_t e = 0; e < b->entries; e++) {
		sum[e] = sw_cost_plus(sum[e], cost[at]);
		for (size_t k = n; k-- > 0;) {
			at += step[k];
			if (++digit[k] < core_strategies(s->c, b->scope.data[k]))
				break;
			at -= step[k] * digit[k];
			digit[k] = 0;
		}
	}
	s->work += b->entries;
	free(step);
}

static int64_t *sum_factors(segments *s, const segment_bucket *b)
{
	int64_t *sum = sw_alloc(sizeof(*sum) * (size_t)b->entries);
	for (size_t k = 0; k < b->factors.len; k++)
		add_to_table(s, b, &s->factors.data[b->factors.data[k]], sum);
	return sum;
}

static void add_to_row(int64_t *row, int64_t entries, int64_t more)
{
	for (int64_t e = 0; e < entries; e++)
		row[e] = more == SW_FORBIDDEN ? SW_FORBIDDEN : sw_cost_plus(row[e], more);
}

/* Share the costs of the node's strategies among the buckets: afterwards the least cost of a
 * strategy is the same in each of them, so that all tend to choose the same strategy. */
static void share_costs(segments *s, const segment_bucket_list *buckets, int32_t strategies,
                        int64_t **sums)
{
	int64_t n = (int64_t)buckets->len, *least = sw_alloc(sizeof(*least) * buckets->len);
	for (int32_t i = 0; i < strategies; i++) {
		int64_t all = 0;
		for (int64_t b = 0; b < n; b++) {
			int64_t rest = buckets->data[b].entries / strategies;
			least[b] = SW_FORBIDDEN;
			for (int64_t e = i * rest; e < (i + 1) * rest; e++)
				least[b] = SW_MIN(least[b], sums[b][e]);
			all = sw_cost_plus(all, least[b]);
			s->work += 2 * rest;
		}
		for (int64_t b = 0; b < n; b++) {
			int64_t rest = buckets->data[b].entries / strategies, more = all;
			if (all != SW_FORBIDDEN)
				more = all / n + (b == 0 ? all % n : 0) - least[b];
			add_to_row(sums[b] + i * rest, rest, more);
		}
	}
	free(least);
}

/* Reduce a table to the rest of its scope, with the cheapest strategy of the node. */
static int64_t *choose_cheapest(const int64_t *sum, int32_t strategies, int64_t rest)
{
	int64_t *least = sw_alloc(sizeof(*least) * (size_t)rest);
	memcpy(least, sum, sizeof(*least) * (size_t)rest);
	for (int32_t i = 1; i < strategies; i++)
		for (int64_t e = 0; e < rest; e++)
			least[e] = SW_MIN(least[e], sum[i * rest + e]);
	return least;
}

/* Make one table per bucket. */
static void merge(segments *s, const segment_bucket_list *buckets, int32_t strategies)
{
	int64_t **sums = sw_alloc(sizeof(*sums) * buckets->len);
	for (size_t b = 0; b < buckets->len; b++)
		sums[b] = sum_factors(s, &buckets->data[b]);
	if (buckets->len > 1)
		share_costs(s, buckets, strategies, sums);
	for (size_t b = 0; b < buckets->len; b++) {
		int64_t rest = buckets->data[b].entries / strategies;
		add_table(s, choose_cheapest(sums[b], strategies, rest), rest);
		s->work += buckets->data[b].entries;
		free(sums[b]);
	}
	free(sums);
}

/* ---- one pass --------------------------------------------------------------------------- */

static void replace_factors(segments *s, const segment_bucket *b, int32_t table)
{
	for (size_t k = 0; k < b->factors.len; k++)
		s->factors.data[b->factors.data[k]].consumed = true;
	if (b->scope.len == 1) {
		int64_t cost = s->tables.data[table][0];
		s->forbidden |= cost == SW_FORBIDDEN;
		s->constant = sw_cost_plus(s->constant, cost);
		return;
	}
	add_factor(s, b->scope.data + 1, (int32_t)b->scope.len - 1, table);
}

static void eliminate(segments *s, int32_t node)
{
	segment_bucket_list buckets = {0};
	sw_text key = {0};
	drop_consumed(s, node);
	fill_buckets(s, node, &buckets);
	key_buckets(s, &buckets, &key);
	uint32_t fresh = (uint32_t)s->tables.len;
	uint32_t first = sw_map_intern(&s->merged, key.data, key.len, fresh);
	if (first == fresh)
		merge(s, &buckets, core_strategies(s->c, node));
	s->eliminated[node] = true;
	for (size_t b = 0; b < buckets.len; b++)
		replace_factors(s, &buckets.data[b], (int32_t)(first + b));
	for (size_t b = 0; b < buckets.len; b++)
		for (size_t k = 1; k < buckets.data[b].scope.len; k++) {
			int32_t other = buckets.data[b].scope.data[k];
			sw_heap_push(&s->heap, weight_of(s, other), other);
		}
	s->work += (int64_t)key.len;
	sw_text_clear(&key);
	clear_buckets(&buckets);
}

static void eliminate_all(segments *s)
{
	int32_t n = 0;
	for (int32_t v = 0; v < s->c->n_nodes; v++)
		sw_heap_push(&s->heap, weight_of(s, v), v);
	while (n < s->c->n_nodes) {
		sw_heap_entry next = sw_heap_pop(&s->heap);
		if (s->eliminated[next.node])
			continue;
		drop_consumed(s, next.node);
		double weight = weight_of(s, next.node);
		if (weight != next.weight) {
			sw_heap_push(&s->heap, weight, next.node);
			continue;
		}
		s->order[n++] = next.node;
		eliminate(s, next.node);
	}
}

/* Choose a node's strategy, after all later ones were chosen: the cheapest by the factors that it
 * had. */
static int32_t choose(segments *s, int32_t node, const int32_t *x)
{
	int64_t least = SW_FORBIDDEN;
	int32_t best = 0;
	for (int32_t i = 0; i < core_strategies(s->c, node); i++) {
		int64_t sum = 0;
		for (size_t k = 0; k < s->of_node[node].len; k++) {
			const segment_factor *f = &s->factors.data[s->of_node[node].data[k]];
			int64_t at = 0;
			for (int32_t d = 0; d < f->n; d++)
				at = at * core_strategies(s->c, f->node[d]) +
				     (f->node[d] == node ? i : x[f->node[d]]);
			sum = sw_cost_plus(sum, s->tables.data[f->table][at]);
		}
		s->work += (int64_t)s->of_node[node].len;
		if (sum < least) {
			least = sum;
			best = i;
		}
	}
	return best;
}

static void init(segments *s, const core *c)
{
	size_t n = (size_t)c->n_nodes + 1;
	*s = (segments){.c = c};
	sw_arena_init(&s->arena);
	s->of_node = sw_alloc(n * sizeof(*s->of_node));
	s->order = sw_alloc(n * sizeof(*s->order));
	s->eliminated = sw_alloc(n * sizeof(*s->eliminated));
	s->place = sw_alloc(n * sizeof(*s->place));
	memset(s->place, 0xff, n * sizeof(*s->place));
	s->largest = SW_MAX(SW_MIN(limits->all_entries / (int64_t)n, limits->max_table),
	                    limits->min_table);
}

static void clear(segments *s)
{
	for (int32_t v = 0; v < s->c->n_nodes; v++)
		sw_vec_clear(&s->of_node[v]);
	for (size_t t = 0; t < s->tables.len; t++)
		free(s->tables.data[t]);
	sw_vec_clear(&s->factors);
	sw_vec_clear(&s->tables);
	sw_vec_clear(&s->entries);
	sw_vec_clear(&s->heap);
	sw_map_clear(&s->contents);
	sw_map_clear(&s->merged);
	free(s->of_node);
	free(s->order);
	free(s->eliminated);
	free(s->place);
	sw_arena_clear(&s->arena);
}

int64_t core_segments(const core *c, int32_t *x, int64_t *bound)
{
	segments s;
	init(&s, c);
	add_node_costs(&s);
	add_edges(&s);
	eliminate_all(&s);
	for (int32_t n = c->n_nodes; n-- > 0;)
		x[s.order[n]] = choose(&s, s.order[n], x);
	*bound = s.forbidden ? SW_FORBIDDEN : s.constant;
	int64_t work = s.work;
	clear(&s);
	return work;
}
