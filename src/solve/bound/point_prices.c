/* The prices of the points: a subgradient method along the mean excess of the decoded assignments,
 * with one step per sweep, so that messages and prices converge together. */
#include "solve/bound/dual_bound.h"
#include "solve/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const solve_price_limits *const limits = &default_limits.price;

/* Update the mean over sweeps of usage less capacity. The average over some ten sweeps is near
 * to the usage of the linear relaxation's solution, whereas that of a single decoded assignment
 * jumps. */
static void update_mean_excess(passing *b)
{
	const core *c = b->c;
	double *used = sw_alloc((size_t)(c->points + 1) * sizeof *used);
	for (int32_t v = 0; v < c->n_nodes; v++)
		for (int32_t s = c->span_first[v]; s < c->span_first[v + 1]; s++) {
			const graph_span *span = &c->spans[s];
			used[span->begin] += (double)span->usage[b->decoded[v]];
			used[span->end] -= (double)span->usage[b->decoded[v]];
		}
	double now = 0, kept = b->has_mean_excess ? limits->mean_decay : 0;
	for (int32_t t = 0; t < c->points; t++) {
		now += used[t];
		b->mean_excess[t] =
			kept * b->mean_excess[t] + (1 - kept) * (now - (double)c->capacity[t]);
	}
	b->has_mean_excess = true;
	free(used);
}

/* Update how often the last sweeps decoded each strategy, which is near to the linear relaxation's
 * solution. */
static void update_frequency(passing *b)
{
	const core *c = b->c;
	for (int32_t i = 0; i < c->n_strategies; i++)
		b->share[i] *= limits->mean_decay;
	for (int32_t v = 0; v < c->n_nodes; v++)
		b->share[c->first[v] + b->decoded[v]] += 1 - limits->mean_decay;
}

/* Take Polyak's step towards best + level, a bound that is believed to be reachable. */
static void step_prices(passing *b)
{
	const core *c = b->c;
	double square = 0, missing = b->best + b->level - b->estimate;
	update_mean_excess(b);
	for (int32_t t = 0; t < c->points; t++)
		if (b->mean_excess[t] > 0 || b->price[t] > 0)
			square += b->mean_excess[t] * b->mean_excess[t];
	if (square <= 0)
		return;
	double step = b->stride * missing / square;
	for (int32_t t = 0; t < c->points; t++)
		b->price[t] = SW_MAX(0, b->price[t] + step * b->mean_excess[t]);
	b->priced_stale = true;
}

/* Raise the level after progress, to at most the gap to `upper`. After long without progress lower
 * it and return to the best messages; shorten the step after a sweep that went too far. True if the
 * level was lowered. */
static bool adjust_level(passing *b, double upper)
{
	double most = SW_MAX(upper - b->best, 0);
	if (b->level <= 0)
		b->level = limits->first_level * fabs(b->best) + 1;
	b->level = SW_MIN(b->level, most);
	if (b->best >
	            b->mark + limits->progress * SW_MIN(b->level * limits->progress_levels, most) ||
	    b->mark == -INFINITY) {
		b->mark = b->best;
		b->idle = 0;
		b->level = SW_MIN(b->level * limits->level_raise, most);
		b->stride = SW_MIN(b->stride * limits->step_raise, 1);
		return false;
	}
	if (b->estimate < b->best - limits->overshoot * b->level) {
		b->stride *= limits->step_cut;
		bound_return(b);
		return false;
	}
	if (++b->idle < limits->patience)
		return false;
	b->idle = 0;
	b->level *= limits->level_cut;
	b->settled = !b->c->points || b->level < limits->last_level * SW_MIN(most, fabs(b->best));
	bound_return(b);
	return true;
}

/* ---- extrapolation ---------------------------------------------------------------------- */

/* Near the optimum messages and prices change little by little in the same direction for many
 * sweeps. An extrapolation continues their change since the last one by a multiple of it, and is
 * taken back if the bound falls. After a success the next one reaches further and comes sooner,
 * after a failure less far and later. */

static void mark_origin(passing *b)
{
	memcpy(b->origin_message, b->message, (size_t)b->c->n_messages * sizeof(double));
	memcpy(b->origin_price, b->price, (size_t)b->c->points * sizeof(double));
	b->since_extrapolation = 0;
}

static void extrapolate(passing *b)
{
	const core *c = b->c;
	double best = b->best;
	bound_return(b);
	for (int64_t m = 0; m < c->n_messages; m++)
		b->message[m] += b->extrapolation_factor * (b->message[m] - b->origin_message[m]);
	for (int32_t t = 0; t < c->points; t++)
		b->price[t] = SW_MAX(0, b->price[t] + b->extrapolation_factor *
		                                              (b->price[t] - b->origin_price[t]));
	bound_sweep(b);
	b->sweeps++;
	if (b->best > best) {
		b->extrapolation_factor =
			SW_MIN(b->extrapolation_factor * limits->factor_raise, limits->max_factor);
		b->extrapolation_interval =
			SW_MAX(b->extrapolation_interval / 2, limits->min_interval);
	} else {
		bound_return(b);
		b->extrapolation_factor =
			SW_MAX(b->extrapolation_factor * limits->factor_cut, limits->min_factor);
		b->extrapolation_interval =
			SW_MIN(b->extrapolation_interval * 2, limits->max_interval);
	}
	mark_origin(b);
}

/* The first extrapolation waits for the first sweeps, before which messages mean little. */
static void extrapolate_at_times(passing *b)
{
	if (!b->extrapolation_interval) {
		b->extrapolation_interval = 2 * limits->min_interval;
		b->extrapolation_factor = limits->first_factor;
		mark_origin(b);
	} else if (++b->since_extrapolation >= b->extrapolation_interval) {
		extrapolate(b);
	}
}

void bound_run(passing *b, double upper, double target, int64_t work, const halt *h)
{
	int64_t limit = b->work + work;
	int first = b->warm ? 0 : limits->first_sweeps;
	while (b->work < limit && !b->settled && b->best < target && !halted(h)) {
		bound_sweep(b);
		if (h->report)
			h->report(h->context, b->best);
		update_frequency(b);
		if (++b->sweeps > first && !adjust_level(b, upper) && b->c->points)
			step_prices(b);
		if (b->sweeps > 2 * first)
			extrapolate_at_times(b);
	}
}

double bound_probe(passing *b, const bool *barred, double upper, double level, int sweeps)
{
	const core *c = b->c;
	passing saved = *b;
	size_t messages = (size_t)c->n_messages * sizeof(double),
	       prices = (size_t)c->points * sizeof(double);
	b->best_message = sw_alloc(messages + sizeof(double));
	b->best_price = sw_alloc(prices + sizeof(double));
	b->best_given = sw_alloc((size_t)(b->n_choices + 1) * sizeof(double));
	b->barred = barred;
	b->priced_stale = true;
	b->best = b->mark = -INFINITY;
	b->idle = 0;
	b->level = level;
	b->has_mean_excess = false;
	for (int k = 0; k < sweeps && b->best < upper; k++) {
		bound_sweep(b);
		if (!adjust_level(b, upper) && c->points)
			step_prices(b);
	}
	double found = b->best;
	free(b->best_message);
	free(b->best_price);
	free(b->best_given);
	saved.work = b->work;
	saved.priced_stale = true;
	*b = saved;
	bound_return(b);
	return found;
}
