/* From any assignment towards a valid one: tree moves over everything while the prices of the moments
 * above capacity grow, then single nodes at the worst moment, cheapest per unit of usage first. */
#include "solve/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Prices grow by 2^32 in all, in as many rounds as the work allows. */
#define MOST_ROUNDS 48
#define LEAST_ROUNDS 4
#define GROWTH_BITS 32.0

/* About what a unit of usage at one moment may be worth: all cost that is to be lost over all usage. */
static double unit_price(const search *s)
{
	const core *c = s->c;
	double usage = 1;
	for (int32_t k = 0; k < c->span_first[c->n_nodes]; k++)
		usage += (double)(c->spans[k].end - c->spans[k].begin) * (double)c->spans[k].usage[0];
	for (int32_t t = 0; t < c->moments; t++)
		usage += (double)s->used[t];
	return ((double)c->magnitude + 1) / usage / 1024;
}

static void raise_prices(search *s, double unit, double growth)
{
	for (int32_t t = 0; t < s->c->moments; t++)
		if (s->used[t] > s->c->capacity[t])
			s->price[t] = SW_MAX(s->price[t] * growth, unit);
}

static bool repair_by_prices(search *s, int64_t work_limit)
{
	double unit = unit_price(s);
	int64_t possible = (work_limit - s->work) / (s->c->entries + s->c->n_strategies + 1);
	int rounds = (int)SW_MAX(SW_MIN(possible, MOST_ROUNDS), LEAST_ROUNDS);
	double growth = exp2(GROWTH_BITS / rounds);
	for (int round = 0; round < rounds && s->work < work_limit && !search_done(s); round++) {
		if (search_valid(s))
			return true;
		raise_prices(s, unit, growth);
		forest_choose(s, -1, 0, -1);
		forest_optimise(s, 1);
	}
	return search_valid(s);
}

/* ---- greedily ------------------------------------------------------------------------------------- */

static int32_t worst_moment(const search *s)
{
	int32_t worst = 0;
	for (int32_t t = 1; t < s->c->moments; t++)
		if (s->used[t] - s->c->capacity[t] > s->used[worst] - s->c->capacity[worst])
			worst = t;
	return worst;
}

/* How much less node v uses at a moment with strategy i. */
static int64_t relief(const search *s, int32_t v, int32_t i, int32_t moment)
{
	const core *c = s->c;
	int64_t less = 0;
	for (int32_t k = c->span_first[v]; k < c->span_first[v + 1]; k++)
		if (c->spans[k].begin <= moment && moment < c->spans[k].end)
			less += c->spans[k].usage[s->x[v]] - c->spans[k].usage[i];
	return less;
}

static bool lower_worst(search *s)
{
	const core *c = s->c;
	int32_t moment = worst_moment(s), best = -1, strategy = 0;
	double best_ratio = 0;
	for (int32_t v = 0; v < c->n_nodes; v++) {
		if (c->span_first[v] == c->span_first[v + 1])
			continue;
		const int64_t *field = s->field + c->first[v];
		for (int32_t i = 0; i < core_strategies(c, v); i++) {
			int64_t less = relief(s, v, i, moment);
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

static bool repair_greedily(search *s, int64_t work_limit)
{
	while (s->over > 0 && s->work < work_limit && !search_done(s))
		if (!lower_worst(s))
			break;
	search_descend(s);
	for (int round = 0; round < 8 && s->forbidden && s->work < work_limit && !search_done(s); round++) {
		forest_choose(s, -1, 0, -1);
		forest_optimise(s, 1);
	}
	return search_valid(s);
}

bool search_repair(search *s, int64_t work)
{
	size_t bytes = (size_t)(s->c->moments + 1) * sizeof *s->price;
	double *price = sw_alloc(bytes);
	int64_t limit = s->work + work;
	memcpy(price, s->price, bytes);
	bool valid = search_valid(s) || repair_by_prices(s, limit - work / 3) || repair_greedily(s, limit);
	memcpy(s->price, price, bytes);
	free(price);
	s->journal.len = 0;
	return valid;
}
