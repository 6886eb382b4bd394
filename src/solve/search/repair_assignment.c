/* Repair: from any assignment to a valid one. First usage has a price but no limit, which makes the
 * assignment cheap; then the points that exceed the capacity are repaired, the worst one first, in
 * the region of its users; if that fails, prices grow at all exceeded points; if that fails, single
 * nodes change. */
#include "solve/search/block_moves.h"
#include "solve/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const solve_repair_limits *const limits = &default_limits.repair;

static bool is_repaired(local_search *s)
{
	return search_verify(s) && search_valid(s);
}

/* A cost difference of the order that matters in this problem. */
static double typical_gap(const local_search *s)
{
	return fabs((double)s->cost) * limits->gap_share + 1;
}

static double cost_with_prices(const local_search *s)
{
	double sum = (double)s->cost;
	for (int32_t v = 0; v < s->c->n_nodes; v++)
		sum += s->priced[s->c->first[v] + s->x[v]];
	return sum;
}

static void relax(local_search *s, int64_t work_limit)
{
	double before = INFINITY, now = cost_with_prices(s);
	for (int round = 0; s->work < work_limit && !search_done(s); round++) {
		if (round >= limits->min_rounds && before - now <= limits->min_gain * fabs(now))
			break;
		forest_choose(s, -1, 0);
		forest_optimise(s, 1);
		block_range(s, 0, s->c->n_nodes);
		block_prepare(s, typical_gap(s));
		block_optimise(s, 1);
		before = now;
		now = cost_with_prices(s);
		s->work += 4 * s->c->n_nodes;
	}
}

/* ---- repair of the worst point ---------------------------------------------------------- */

static int32_t worst_point(const local_search *s)
{
	int32_t worst = 0;
	for (int32_t k = 1; k < s->watch.count; k++)
		if (s->watch.spare[k] < s->watch.spare[worst])
			worst = k;
	return worst;
}

/* The moves of the best attempt, and its cost per unit of excess that it removes. */
typedef struct repair_attempt {
	SW_VEC(search_change) moves;
	double ratio;
} repair_attempt;

static void keep_attempt(const local_search *s, double ratio, repair_attempt *best)
{
	best->ratio = ratio;
	best->moves.len = 0;
	for (size_t k = 0; k < s->journal.len; k++) {
		int32_t node = s->journal.data[k].node;
		search_change move = {node, s->x[node]};
		sw_vec_push(&best->moves, move);
	}
}

static void attempt_region(local_search *s, repair_attempt *best)
{
	int64_t size = limits->region_min_nodes << sw_rng_below(&s->rng, limits->region_bits),
		forbidden = s->forbidden;
	double cost = cost_with_prices(s), gap = typical_gap(s);
	wide over = s->over;
	block_users(s, worst_point(s), (int32_t)SW_MIN(size, (int64_t)s->c->n_nodes));
	block_prepare(s, limits->region_gaps * gap);
	block_settle(s, 0, 1, gap * limits->settle_share);
	double ratio = (cost_with_prices(s) - cost) / SW_MAX(1, (double)(over - s->over));
	if (s->over < over && s->forbidden <= forbidden && ratio < best->ratio)
		keep_attempt(s, ratio, best);
	search_undo(s, 0);
	s->work += 4 * s->c->n_nodes;
}

static bool repair_worst_points(local_search *s, int64_t work_limit)
{
	repair_attempt best = {.ratio = 0};
	for (int round = 0; round < limits->max_points && !is_repaired(s) && s->over > 0; round++) {
		best.ratio = INFINITY;
		s->journal.len = 0;
		for (int k = 0; k < limits->attempts && s->work < work_limit && !search_done(s);
		     k++)
			attempt_region(s, &best);
		if (best.ratio >= INFINITY)
			break;
		for (size_t k = 0; k < best.moves.len; k++)
			search_move(s, best.moves.data[k].node, best.moves.data[k].before);
	}
	sw_vec_clear(&best.moves);
	return is_repaired(s);
}

/* ---- repair by growing prices ----------------------------------------------------------- */

/* A first price of a unit of usage at one point: a small share of all cost per unit of all
 * usage. */
static double unit_price(const local_search *s)
{
	const core *c = s->c;
	double usage = 1;
	for (int32_t k = 0; k < c->span_first[c->n_nodes]; k++)
		usage += (double)(c->spans[k].end - c->spans[k].begin) *
		         (double)c->spans[k].usage[0];
	return ((double)c->magnitude + 1) / usage * limits->unit_share;
}

static void raise_prices(local_search *s, double unit, double growth)
{
	for (int32_t k = 0; k < s->watch.count; k++)
		if (s->watch.spare[k] < 0) {
			double *extra = &s->extra[s->watch.point[k]];
			*extra = SW_MAX(*extra * growth, unit);
		}
	search_sum_extra(s);
}

static bool repair_by_prices(local_search *s, int64_t work_limit)
{
	double unit = unit_price(s);
	int64_t possible = (work_limit - s->work) / (s->c->entries + s->c->n_strategies + 1);
	int rounds =
		(int)SW_MAX(SW_MIN(possible, limits->max_price_rounds), limits->min_price_rounds);
	double growth = exp2(limits->price_bits / rounds);
	for (int round = 0;
	     round < rounds && s->work < work_limit && !search_done(s) && !is_repaired(s);
	     round++) {
		raise_prices(s, unit, growth);
		forest_choose(s, -1, 0);
		forest_optimise(s, 1);
	}
	bool repaired = is_repaired(s);
	search_clear_extra(s);
	return repaired;
}

/* ---- greedy repair ---------------------------------------------------------------------- */

/* The usages of node v at a watched point; NULL if they are the same for all its strategies. */
static const int64_t *usage_at(const local_search *s, int32_t v, int32_t point)
{
	const watching *w = &s->watch;
	for (int32_t k = w->first[v]; k < w->first[v + 1]; k++)
		if (w->spans[k].begin <= point && point < w->spans[k].end)
			return w->spans[k].usage;
	return NULL;
}

static bool lower_worst(local_search *s)
{
	const core *c = s->c;
	int32_t point = worst_point(s), best = -1, strategy = 0;
	double best_ratio = 0;
	for (int32_t v = 0; v < c->n_nodes; v++) {
		const int64_t *usage = usage_at(s, v, point), *field = s->field + c->first[v];
		for (int32_t i = 0; usage && i < core_strategies(c, v); i++) {
			int64_t less = usage[s->x[v]] - usage[i];
			if (less <= 0)
				continue;
			double ratio = (double)(field[i] - field[s->x[v]]) / (double)less;
			if (best < 0 || ratio < best_ratio) {
				best = v;
				strategy = i;
				best_ratio = ratio;
			}
		}
	}
	s->work += c->n_strategies;
	if (best >= 0)
		search_move(s, best, strategy);
	return best >= 0;
}

static bool repair_greedily(local_search *s, int64_t work_limit)
{
	while (!search_verify(s) && s->work < work_limit && !search_done(s))
		if (!lower_worst(s))
			break;
	search_descend(s);
	for (int round = 0; round < limits->final_rounds && s->forbidden && s->work < work_limit &&
	                    !search_done(s);
	     round++) {
		forest_choose(s, -1, 0);
		forest_optimise(s, 1);
	}
	return is_repaired(s);
}

/* ---- all together ----------------------------------------------------------------------- */

bool search_restart(local_search *s, int64_t work)
{
	int64_t begin = s->work;
	relax(s, begin + work / 4);
	bool repaired = is_repaired(s) || repair_worst_points(s, begin + work / 2) ||
	                repair_by_prices(s, begin + work - work / 4) ||
	                repair_greedily(s, begin + work);
	s->journal.len = 0;
	return repaired;
}

static bool is_far_above_target(const local_search *s)
{
	return s->target > INT64_MIN &&
	       (double)s->cost - (double)s->target > limits->max_excess * fabs((double)s->target);
}

bool search_repair(local_search *s, int64_t work)
{
	size_t bytes = (size_t)s->c->n_nodes * sizeof *s->x;
	bool valid = is_repaired(s);
	int64_t cost = s->cost;
	if (valid && !is_far_above_target(s))
		return true;
	int32_t *start = sw_alloc(bytes + 1);
	memcpy(start, s->x, bytes);
	bool repaired = search_restart(s, work);
	if (valid && (!repaired || s->cost > cost)) {
		for (int32_t v = 0; v < s->c->n_nodes; v++)
			search_move(s, v, start[v]);
		s->journal.len = 0;
		repaired = is_repaired(s);
	}
	free(start);
	return repaired;
}
