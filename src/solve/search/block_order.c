/* The order of elimination of a block, and the nodes that are held. */
#include "solve/search/block_moves.h"
#include "solve/limits.h"

static const solve_move_limits *const limits = &default_limits.move;

static double weight_of(const block_region *b, int32_t node)
{
	double weight = block_choices(b, node);
	for (size_t k = 0; k < b->neighbours[node].len && weight < 1e18; k++)
		weight *= block_choices(b, b->neighbours[node].data[k]);
	return weight;
}

static void push(block_region *b, int32_t node)
{
	sw_heap_push(&b->heap, weight_of(b, node), node);
}

static bool is_stale(const block_region *b, sw_heap_entry entry)
{
	double weight = weight_of(b, entry.node);
	return b->position[entry.node] != BLOCK_WAITING || entry.weight < weight ||
	       entry.weight > weight;
}

/* List the graph of the nodes that have a choice; nodes with one strategy count as held. */
static void list_neighbours(local_search *s)
{
	const core *c = s->c;
	block_region *b = s->block;
	b->heap.len = 0;
	b->eliminated = 0;
	for (size_t n = 0; n < b->nodes.len; n++) {
		int32_t v = b->nodes.data[n];
		int_list *list = &b->neighbours[n];
		list->len = 0;
		b->position[n] = BLOCK_HELD;
		if (block_choices(b, (int32_t)n) == 1)
			continue;
		for (int32_t k = c->edge_first[v]; k < c->edge_first[v + 1]; k++) {
			const core_edge *e = &c->edges[c->edge_list[k]];
			int32_t u = b->rank[e->a == v ? e->b : e->a];
			if (u >= 0 && block_choices(b, u) > 1)
				sw_vec_push(list, u);
		}
		s->work += 4 * (c->edge_first[v + 1] - c->edge_first[v]) + 8;
		b->position[n] = BLOCK_WAITING;
		push(b, (int32_t)n);
	}
}

static void disconnect(block_region *b, int32_t u, int32_t gone)
{
	int_list *list = &b->neighbours[u];
	for (size_t k = 0; k < list->len; k++)
		if (list->data[k] == gone) {
			list->data[k] = list->data[--list->len];
			return;
		}
}

static void hold(local_search *s, int32_t v)
{
	block_region *b = s->block;
	const int_list *list = &b->neighbours[v];
	b->position[v] = BLOCK_HELD;
	for (size_t k = 0; k < list->len; k++) {
		s->work += 2 * (int64_t)b->neighbours[list->data[k]].len;
		disconnect(b, list->data[k], v);
		push(b, list->data[k]);
	}
}

/* Choose one of a node and its neighbours at random, or by degree times a random number: the former
 * leaves nodes of many neighbours free, too, at times. */
static int32_t choose_to_hold(const block_region *b, int32_t v, bool by_degree)
{
	const int_list *list = &b->neighbours[v];
	int32_t best = v;
	double most = -1;
	for (size_t k = 0; k <= list->len; k++) {
		int32_t u = k < list->len ? list->data[k] : v;
		double hold_priority =
			b->hold_priority[u] * (by_degree ? (double)b->neighbours[u].len : 1);
		if (hold_priority > most) {
			most = hold_priority;
			best = u;
		}
	}
	return best;
}

/* Connect the neighbours of an eliminated node with each other. */
static void connect_neighbours(local_search *s, int32_t v)
{
	block_region *b = s->block;
	const int_list *others = &b->neighbours[v];
	for (size_t n = 0; n < others->len; n++) {
		int32_t u = others->data[n];
		int_list *list = &b->neighbours[u];
		disconnect(b, u, v);
		b->stamp++;
		for (size_t k = 0; k < list->len; k++)
			b->mark[list->data[k]] = b->stamp;
		for (size_t k = 0; k < others->len; k++)
			if (others->data[k] != u && b->mark[others->data[k]] != b->stamp)
				sw_vec_push(list, others->data[k]);
		s->work += 4 * (int64_t)(list->len + others->len) + 32;
		push(b, u);
	}
}

/* Sort each scope by the order of elimination, without the nodes that were held later. */
static void sort_scopes(block_region *b)
{
	for (int32_t n = 0; n < b->eliminated; n++) {
		int_list *list = &b->neighbours[b->order[n]];
		size_t kept = 0;
		for (size_t i = 0; i < list->len; i++) {
			int32_t u = list->data[i];
			size_t at = kept;
			if (b->position[u] == BLOCK_HELD)
				continue;
			for (; at && b->position[list->data[at - 1]] > b->position[u]; at--)
				list->data[at] = list->data[at - 1];
			list->data[at] = u;
			kept++;
		}
		list->len = kept;
	}
}

static void eliminate(local_search *s, int32_t v)
{
	block_region *b = s->block;
	b->position[v] = b->eliminated;
	b->order[b->eliminated++] = v;
	connect_neighbours(s, v);
}

void block_order(local_search *s, double table)
{
	block_region *b = s->block;
	double entries = 0;
	bool by_degree = sw_rng_below(&s->rng, 2);
	list_neighbours(s);
	for (size_t n = 0; n < b->nodes.len; n++)
		b->hold_priority[n] = sw_rng_unit(&s->rng);
	while (b->heap.len) {
		sw_heap_entry next = sw_heap_pop(&b->heap);
		if (is_stale(b, next))
			continue;
		if (next.weight > SW_MIN(table, (limits->max_block_entries - entries) /
		                                        limits->max_table_share)) {
			push(b, next.node);
			hold(s, choose_to_hold(b, next.node, by_degree));
			continue;
		}
		entries += next.weight;
		eliminate(s, next.node);
	}
	sort_scopes(b);
}
