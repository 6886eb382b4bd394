/* Iterated local search on valid assignments: forests and blocks are minimised exactly at various
 * prices of the usage, and a result is accepted if it costs no more. After a cycle without gain a
 * part of the assignment is perturbed and repaired, which leads to another neighbourhood; the
 * result is merged with the best assignment. */
#include "solve/search/block_moves.h"
#include "solve/limits.h"

#include <math.h>
#include <string.h>

static const solve_improve_limits *const limits = &default_limits.improve;

/* Draw a factor of the prices for the first attempt at a region. 0 ignores the capacity, which pays
 * where the region's points have capacity to spare. */

static double first_scale(local_search *s)
{
	return limits->first_scales[sw_rng_below(&s->rng, SW_COUNT(limits->first_scales))];
}

static int32_t random_node(local_search *s)
{
	return (int32_t)sw_rng_below(&s->rng, s->c->n_nodes);
}

static int32_t random_size(local_search *s, int least_bits, int bits)
{
	int64_t size = (int64_t)1 << (least_bits + sw_rng_below(&s->rng, bits));
	return (int32_t)SW_MIN(size, (int64_t)s->c->n_nodes);
}

/* How far the cost is above the bound. */
static double gap_of(const local_search *s)
{
	if (s->target == INT64_MIN)
		return fabs((double)s->cost) * limits->gap_share + 1;
	return SW_MAX((double)s->cost - (double)s->target, 1);
}

/* Accept the move since `mark` if the assignment is valid and no dearer; else undo it. */
static void accept_or_undo(local_search *s, int64_t cost_before, size_t mark)
{
	if (search_valid(s) && s->cost <= cost_before && search_verify(s))
		s->journal.len = 0;
	else
		search_undo(s, mark);
}

/* ---- moves ------------------------------------------------------------------------------ */

/* Minimise a forest, at rising prices until the result is within the capacity. */
static void try_forest(local_search *s)
{
	int64_t cost = s->cost;
	size_t mark = s->journal.len;
	forest_choose(s, random_node(s),
	              random_size(s, limits->forest_min_bits, limits->forest_bits));
	forest_optimise(s, first_scale(s));
	for (size_t k = 0; k < SW_COUNT(limits->later_scales) && s->over > 0; k++) {
		search_undo(s, mark);
		forest_optimise(s, limits->later_scales[k]);
	}
	if (s->over == 0)
		forest_descend(s);
	accept_or_undo(s, cost, mark);
}

/* Minimise a block, with extra prices at exceeded points until it fits; the first ones are a share
 * of the gain. */
static void try_block(local_search *s)
{
	int64_t cost = s->cost;
	size_t mark = s->journal.len;
	int32_t seed = random_node(s),
		size = random_size(s, limits->block_min_bits, limits->block_bits);
	double scale = first_scale(s);
	if (sw_rng_below(&s->rng, 2))
		block_around(s, seed, size);
	else
		block_range(s, seed, size);
	block_prepare(s, gap_of(s));
	block_optimise(s, scale);
	if (s->over > 0)
		block_settle(s, mark, scale,
		             SW_MAX(1, (double)(cost - s->cost) * limits->settle_share));
	if (s->over == 0)
		block_descend(s);
	accept_or_undo(s, cost, mark);
}

static void (*const moves[])(local_search *s) = {try_forest, try_forest, try_block};

/* ---- cycles ----------------------------------------------------------------------------- */

/* Move to the cheapest mixture of two assignments, as far as elimination finds it. True if it is
 * valid. */
static bool join(local_search *s, const int32_t *other)
{
	s->journal.len = 0;
	block_range(s, 0, s->c->n_nodes);
	block_offer_other(s, other);
	block_plan(s, limits->merge_table);
	block_optimise(s, 0);
	if (!search_verify(s))
		block_settle(s, 0, 1, gap_of(s) * limits->merge_price);
	return search_valid(s) && search_verify(s);
}

static void load_assignment(local_search *s, const int32_t *x)
{
	for (int32_t v = 0; v < s->c->n_nodes; v++)
		search_move(s, v, x[v]);
	search_verify(s);
	s->journal.len = 0;
}

static void perturb(local_search *s, int64_t work)
{
	block_region *b = s->block;
	block_around(s, random_node(s),
	             s->c->n_nodes >> sw_rng_below(&s->rng, limits->perturb_bits));
	block_prepare(s, gap_of(s));
	for (size_t n = 0; n < b->nodes.len; n++) {
		int64_t k = sw_rng_below(&s->rng, block_choices(b, (int32_t)n));
		search_move(s, b->nodes.data[n], b->offered.data[b->first.data[n] + k]);
	}
	search_restart(s, work);
}

typedef struct best_assignment {
	int32_t *x;
	int64_t cost;
} best_assignment;

static bool take_record(local_search *s, best_assignment *best)
{
	if (!search_valid(s) || s->cost >= best->cost)
		return false;
	best->cost = s->cost;
	memcpy(best->x, s->x, (size_t)s->c->n_nodes * sizeof *best->x);
	return true;
}

static void run_moves(local_search *s, int64_t limit)
{
	while (s->work < limit && !search_done(s)) {
		(*moves[sw_rng_below(&s->rng, SW_COUNT(moves))])(s);
		s->work += 64;
	}
}

/* Merge the present assignment with the best one, which may give a better one than both. */
static void join_record(local_search *s, best_assignment *best)
{
	if (join(s, best->x))
		take_record(s, best);
	load_assignment(s, best->x);
}

/* Run one cycle; false if it gained nothing. */
static bool run_cycle(local_search *s, int64_t limit, best_assignment *best)
{
	run_moves(s, limit);
	return take_record(s, best);
}

static void run_cycles(local_search *s, int64_t limit, best_assignment *best)
{
	int64_t cycle = limits->cycle_work * (s->c->entries + s->c->n_strategies);
	while (s->work < limit && !search_done(s)) {
		if (run_cycle(s, SW_MIN(limit, s->work + cycle), best) || s->work >= limit ||
		    search_done(s))
			continue;
		load_assignment(s, best->x);
		perturb(s, SW_MIN(limit - s->work, cycle));
		if (!run_cycle(s, SW_MIN(limit, s->work + cycle), best))
			join_record(s, best);
	}
}

void search_improve(local_search *s, int64_t work)
{
	best_assignment best = {sw_alloc((size_t)(s->c->n_nodes + 1) * sizeof *best.x), INT64_MAX};
	int64_t limit = s->work + work;
	if (s->c->n_nodes && search_verify(s) && take_record(s, &best)) {
		search_descend(s);
		if (!search_verify(s))
			load_assignment(s, best.x);
		take_record(s, &best);
		run_cycles(s, limit, &best);
		load_assignment(s, best.x);
	}
	s->journal.len = 0;
	free(best.x);
}
