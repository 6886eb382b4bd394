/* The regions of block moves, and the strategies that their nodes may choose. */
#include "solve/search/block_moves.h"
#include "solve/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const solve_move_limits *const limits = &default_limits.move;

block_region *block_new(const core *c)
{
	block_region *b = sw_alloc(sizeof *b);
	size_t n = (size_t)c->n_nodes + 1;
	b->n_core = c->n_nodes;
	b->rank = sw_alloc(n * sizeof(int32_t));
	memset(b->rank, 0xff, n * sizeof(int32_t));
	b->hold_priority = sw_alloc(n * sizeof(double));
	b->neighbours = sw_alloc(n * sizeof(int_list));
	b->position = sw_alloc(n * sizeof(int32_t));
	b->order = sw_alloc(n * sizeof(int32_t));
	b->mark = sw_alloc(n * sizeof(int32_t));
	b->bucket = sw_alloc(n * sizeof(int32_t));
	b->chosen = sw_alloc(n * sizeof(int32_t));
	return b;
}

void block_free(block_region *b)
{
	if (!b)
		return;
	for (int32_t v = 0; v < b->n_core; v++)
		sw_vec_clear(&b->neighbours[v]);
	free(b->rank);
	free(b->ranked);
	free(b->hold_priority);
	free(b->neighbours);
	free(b->position);
	free(b->order);
	free(b->mark);
	free(b->bucket);
	free(b->chosen);
	sw_vec_clear(&b->nodes);
	sw_vec_clear(&b->first);
	sw_vec_clear(&b->offered);
	sw_vec_clear(&b->keys);
	sw_vec_clear(&b->heap);
	sw_vec_clear(&b->factors);
	sw_vec_clear(&b->ends);
	sw_vec_clear(&b->pool);
	free(b);
}

/* ---- regions ---------------------------------------------------------------------------- */

static void forget_region(block_region *b)
{
	for (size_t n = 0; n < b->nodes.len; n++)
		b->rank[b->nodes.data[n]] = -1;
	b->nodes.len = 0;
}

static void take(block_region *b, int32_t v)
{
	b->rank[v] = (int32_t)b->nodes.len;
	sw_vec_push(&b->nodes, v);
}

/* Add neighbours, breadth first. */
static void spread(local_search *s, int32_t size)
{
	const core *c = s->c;
	block_region *b = s->block;
	for (size_t at = 0; at < b->nodes.len && b->nodes.len < (size_t)size; at++) {
		int32_t v = b->nodes.data[at], degree = c->edge_first[v + 1] - c->edge_first[v];
		if (degree > limits->max_degree && at)
			continue;
		for (int32_t k = c->edge_first[v];
		     k < c->edge_first[v + 1] && b->nodes.len < (size_t)size; k++) {
			const core_edge *e = &c->edges[c->edge_list[k]];
			int32_t u = e->a == v ? e->b : e->a;
			if (b->rank[u] < 0)
				take(b, u);
		}
		s->work += 2 * degree;
	}
}

void block_around(local_search *s, int32_t seed, int32_t size)
{
	forget_region(s->block);
	take(s->block, seed);
	spread(s, size);
}

/* Nodes are numbered about in program order: this region is an interval of the program. */
void block_range(local_search *s, int32_t seed, int32_t size)
{
	block_region *b = s->block;
	forget_region(b);
	for (int32_t v = SW_MIN(seed, s->c->n_nodes - size); b->nodes.len < (size_t)size; v++)
		take(b, v);
	s->work += size;
}

/* By how much the strategies of v differ in usage at a watched point. */
static int64_t usage_range(const local_search *s, int32_t v, int32_t point)
{
	const watching *w = &s->watch;
	for (int32_t k = w->first[v]; k < w->first[v + 1]; k++) {
		if (point < w->spans[k].begin || point >= w->spans[k].end)
			continue;
		const int64_t *usage = w->spans[k].usage;
		int64_t least = usage[0], most = usage[0];
		for (int32_t i = 1; i < core_strategies(s->c, v); i++) {
			least = SW_MIN(least, usage[i]);
			most = SW_MAX(most, usage[i]);
		}
		return most - least;
	}
	return 0;
}

void block_users(local_search *s, int32_t point, int32_t size)
{
	const core *c = s->c;
	block_region *b = s->block;
	double most = 1, share = limits->user_share * sw_rng_unit(&s->rng);
	forget_region(b);
	for (int32_t v = 0; v < c->n_nodes; v++)
		most = SW_MAX(most, (double)usage_range(s, v, point));
	for (int32_t v = 0; v < c->n_nodes && b->nodes.len < (size_t)size; v++)
		if ((double)usage_range(s, v, point) >= most * share)
			take(b, v);
	s->work += 2 * c->n_strategies;
	spread(s, size);
}

/* ---- offered strategies ----------------------------------------------------------------- */

/* Order by reduced cost if there is one, else by the cost given the present neighbours. Rows are
 * short, so that insertion sort does. */
static void rank_strategies(local_search *s)
{
	const core *c = s->c;
	int32_t *ranked = s->block->ranked =
		sw_alloc((size_t)(c->n_strategies + 1) * sizeof *ranked);
	for (int32_t v = 0; v < c->n_nodes; v++)
		for (int32_t i = 0; i < core_strategies(c, v); i++) {
			int32_t *row = ranked + c->first[v], at = i;
			for (; at; at--) {
				int32_t mine = c->first[v] + i, other = c->first[v] + row[at - 1];
				if (s->reduced ? s->reduced[other] <= s->reduced[mine]
				               : s->field[other] <= s->field[mine])
					break;
				row[at] = row[at - 1];
			}
			row[at] = i;
		}
	s->work += 4 * (int64_t)c->n_strategies;
}

static void begin_offers(block_region *b)
{
	b->first.len = b->offered.len = 0;
	sw_vec_push(&b->first, 0);
}

/* Whether the extra prices make one strategy of v dearer than another. */
static bool pays_extra(const local_search *s, int32_t v)
{
	const watching *w = &s->watch;
	for (int32_t k = w->first[v]; k < w->first[v + 1]; k++)
		if (w->extra_before[w->spans[k].end] > w->extra_before[w->spans[k].begin])
			return true;
	return false;
}

/* If more strategies are eligible than may be offered, draw among them: many have the same cost. */
static void offer_ranked(local_search *s, int32_t v, int32_t most, double slack)
{
	const core *c = s->c;
	block_region *b = s->block;
	const int32_t *ranked = b->ranked + c->first[v];
	int32_t n = core_strategies(c, v), eligible = 0, wanted = most - 1;
	while (eligible < n && (!s->reduced || s->reduced[c->first[v] + ranked[eligible]] <= slack))
		eligible++;
	for (int32_t k = 0; wanted > 0 && k < eligible; k++) {
		bool taken = wanted >= eligible - k || sw_rng_below(&s->rng, eligible - k) < wanted;
		if (!taken || ranked[k] == s->x[v])
			continue;
		sw_vec_push(&b->offered, ranked[k]);
		wanted--;
	}
	s->work += eligible;
}

/* Where there are extra prices, offer the strategies that are cheapest with them, whatever their
 * reduced costs. */
static void offer_repriced(local_search *s, int32_t v, int32_t most)
{
	const core *c = s->c;
	block_region *b = s->block;
	int32_t n = core_strategies(c, v);
	sw_vec_reserve(&b->keys, (size_t)n);
	for (int32_t i = 0; i < n; i++) {
		int32_t at = c->first[v] + i;
		b->keys.data[i] = s->reduced ? s->reduced[at] : (double)s->field[at];
		b->keys.data[i] += (double)search_price(s, v, i, 0);
	}
	for (int32_t taken = 1; taken < SW_MIN(most, n); taken++) {
		int32_t best = -1;
		for (int32_t i = 0; i < n; i++)
			if (i != s->x[v] && (best < 0 || b->keys.data[i] < b->keys.data[best]))
				best = i;
		b->keys.data[best] = INFINITY;
		sw_vec_push(&b->offered, best);
	}
	s->work += n * most;
}

void block_offer(local_search *s, int32_t most, double slack)
{
	block_region *b = s->block;
	if (!b->ranked)
		rank_strategies(s);
	begin_offers(b);
	for (size_t n = 0; n < b->nodes.len; n++) {
		int32_t v = b->nodes.data[n];
		sw_vec_push(&b->offered, s->x[v]);
		if (pays_extra(s, v))
			offer_repriced(s, v, most);
		else
			offer_ranked(s, v, most, slack);
		sw_vec_push(&b->first, (int32_t)b->offered.len);
	}
	s->work += 2 * (int64_t)b->offered.len;
}

void block_offer_other(local_search *s, const int32_t *other)
{
	block_region *b = s->block;
	begin_offers(b);
	for (size_t n = 0; n < b->nodes.len; n++) {
		int32_t v = b->nodes.data[n];
		sw_vec_push(&b->offered, s->x[v]);
		if (other[v] != s->x[v])
			sw_vec_push(&b->offered, other[v]);
		sw_vec_push(&b->first, (int32_t)b->offered.len);
	}
	s->work += 2 * (int64_t)b->offered.len;
}

/* ---- moves ------------------------------------------------------------------------------ */

void block_plan(local_search *s, double table)
{
	block_order(s, table);
	block_pack(s);
}

void block_prepare(local_search *s, double gap)
{
	int32_t most = 2 << sw_rng_below(&s->rng, limits->choice_bits);
	block_offer(s, most, ldexp(gap, -(int)sw_rng_below(&s->rng, limits->gap_bits)));
	block_plan(s, ldexp(limits->min_table, (int)sw_rng_below(&s->rng, limits->table_bits)));
}

void block_optimise(local_search *s, double scale)
{
	const block_region *b = s->block;
	block_sum(s, scale);
	for (int32_t k = 0; k < b->eliminated; k++) {
		int32_t v = b->order[k];
		search_move(s, b->nodes.data[v], b->offered.data[b->first.data[v] + b->chosen[v]]);
	}
}

static void raise_extra(local_search *s, double capacity_price)
{
	const watching *w = &s->watch;
	int32_t count = 0;
	for (int32_t k = 0; k < w->count; k++)
		count += w->spare[k] < 0;
	for (int32_t k = 0; k < w->count; k++)
		if (w->spare[k] < 0)
			s->extra[w->point[k]] +=
				capacity_price / count / ((double)s->c->capacity[w->point[k]] + 1);
	search_sum_extra(s);
}

void block_settle(local_search *s, size_t mark, double scale, double capacity_price)
{
	for (int round = 0; round < limits->max_raises && !search_verify(s) && !search_done(s);
	     round++) {
		raise_extra(s, ldexp(capacity_price, round));
		search_undo(s, mark);
		block_optimise(s, scale);
	}
	search_clear_extra(s);
	search_verify(s);
}

void block_descend(local_search *s)
{
	for (size_t n = 0; n < s->block->nodes.len; n++)
		search_descend_node(s, s->block->nodes.data[n]);
}
