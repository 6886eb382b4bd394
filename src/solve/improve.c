/* Iterated local search on valid assignments: tree moves over random regions, and nodes pushed to
 * another strategy with their surroundings optimised around them. Only what costs no more is kept. */
#include "solve/search.h"

/* Scales of the prices in a region's first attempt. 0 ignores the capacity, and pays off where the
 * region has room to spare. */
static const double first_scales[] = {1, 0, 0.5, 1, 2};
static const double later_scales[] = {2, 5, 25};

/* Blends at the beginning, and one in so many moves later. */
#define FIRST_BLENDS 8
#define BLEND_EVERY 256

static int32_t random_node(search *s)
{
	return (int32_t)sw_rng_below(&s->rng, s->c->n_nodes);
}

static int32_t random_size(search *s)
{
	int32_t bits = (int32_t)sw_rng_below(&s->rng, 7);
	return SW_MIN(6 << bits, s->c->n_nodes);
}

static bool keeps(search *s, int64_t cost_before, size_t mark)
{
	if (search_valid(s) && s->cost <= cost_before) {
		s->journal.len = 0;
		return s->cost < cost_before;
	}
	search_undo(s, mark);
	return false;
}

/* Optimises the chosen forest at rising prices until the result is within the capacity. */
static void optimise_within(search *s, size_t mark)
{
	forest_optimise(s, first_scales[sw_rng_below(&s->rng, SW_COUNT(first_scales))]);
	for (size_t k = 0; k < SW_COUNT(later_scales) && s->over > 0; k++) {
		search_undo(s, mark);
		forest_optimise(s, later_scales[k]);
	}
	if (s->over == 0)
		forest_descend(s);
}

static bool try_region(search *s)
{
	int64_t cost = s->cost;
	size_t mark = s->journal.len;
	forest_choose(s, random_node(s), random_size(s), -1);
	optimise_within(s, mark);
	return keeps(s, cost, mark);
}

static bool try_block(search *s)
{
	int64_t cost = s->cost;
	size_t mark = s->journal.len;
	int32_t size = SW_MIN(8 << sw_rng_below(&s->rng, 5), s->c->n_nodes), seed = random_node(s);
	double scale = first_scales[sw_rng_below(&s->rng, SW_COUNT(first_scales))];
	for (block_choose(s, seed, size); !block_optimise(s, scale) && size > 4; size /= 2)
		block_choose(s, seed, size / 2);
	for (size_t k = 0; k < SW_COUNT(later_scales) && s->over > 0; k++) {
		search_undo(s, mark);
		block_optimise(s, later_scales[k]);
	}
	if (s->over == 0)
		block_descend(s);
	return keeps(s, cost, mark);
}

/* Node after node, spreading from a random one, takes its strategy in another assignment; kept is
 * the cheapest valid state on the way. Where many alike parts compete for the capacity, this decides
 * how many of them may have it. */
static bool try_blend(search *s, const int32_t *other)
{
	int64_t cost = s->cost;
	size_t best = s->journal.len;
	if (!other)
		return false;
	block_choose(s, random_node(s), s->c->n_nodes);
	for (size_t n = 0; n < s->block.len; n++) {
		search_move(s, s->block.data[n], other[s->block.data[n]]);
		if (s->cost < cost && search_valid(s)) {
			cost = s->cost;
			best = s->journal.len;
		}
	}
	search_undo(s, best);
	s->journal.len = 0;
	return best > 0;
}

static bool try_everywhere(search *s)
{
	int64_t cost = s->cost;
	size_t mark = s->journal.len;
	forest_choose(s, -1, 0, -1);
	optimise_within(s, mark);
	return keeps(s, cost, mark);
}

/* Pushes one node away, adapts the surroundings with it held, then with it free. */
static bool try_push(search *s)
{
	const core *c = s->c;
	int64_t cost = s->cost;
	size_t mark = s->journal.len;
	int32_t v = random_node(s), n = core_strategies(c, v), degree = c->edge_first[v + 1] - c->edge_first[v];
	if (n < 2 || !degree)
		return false;
	int32_t shift = 1 + (int32_t)sw_rng_below(&s->rng, n - 1);
	int32_t edge = c->edge_list[c->edge_first[v] + (int32_t)sw_rng_below(&s->rng, degree)];
	int32_t neighbour = c->edges[edge].a == v ? c->edges[edge].b : c->edges[edge].a;
	search_move(s, v, (s->x[v] + shift) % n);
	size_t pushed = s->journal.len;
	forest_choose(s, neighbour, random_size(s), v);
	optimise_within(s, pushed);
	forest_choose(s, v, random_size(s), -1);
	forest_optimise(s, 1);
	if (s->over == 0)
		forest_descend(s);
	return keeps(s, cost, mark);
}

static bool (*const moves[])(search *s) = {try_region, try_push, try_block};

void search_improve(search *s, int64_t work)
{
	int64_t limit = s->work + work, blends_limit = s->work + work / 4;
	if (!s->c->n_nodes)
		return;
	search_descend(s);
	s->journal.len = 0;
	for (int round = 0; round < FIRST_BLENDS && s->work < blends_limit && !search_done(s); round++)
		try_blend(s, s->other[round % 2]);
	for (int round = 0; round < 6 && s->work < limit && !search_done(s); round++)
		try_everywhere(s);
	while (s->work < limit && !search_done(s)) {
		if (sw_rng_below(&s->rng, BLEND_EVERY) == 0)
			try_blend(s, s->other[sw_rng_below(&s->rng, 2)]);
		(*moves[sw_rng_below(&s->rng, SW_COUNT(moves))])(s);
		s->work += 64;
	}
}
