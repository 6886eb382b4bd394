/* The prices of the points: a subgradient method along the smoothed excess of the decoded
 * assignments, one step per sweep, so that messages and prices settle together. */
#include "solve/bound/dual_bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Share of the earlier excess in the smoothed one: the average over some ten sweeps is nearly the
 * usage of the linear relaxation's solution, where a single decoded assignment jumps about. */
#define DRIFT_KEPT 0.9
/* Before so many sweeps the messages mean little. */
#define FIRST_SWEEPS 20
/* Progress is this share of the gap; without it in so many sweeps the steps get shorter. */
#define PROGRESS 1e-4
#define PATIENCE 10
/* The level at first, as a share of the bound; how it changes; and where it ends, as a share of the
 * gap. */
#define FIRST_LEVEL 0.1
#define HIGHER 1.02
#define LOWER 0.7
#define LOWEST 1e-5
/* A sweep so many levels below the best went too far. */
#define OVERSHOT 1
#define NARROWER 0.5
#define WIDER 1.1

/* Usage of the decoded assignment minus the capacity, smoothed over sweeps. */
static void update_drift(passing *b)
{
	const core *c = b->c;
	double *used = sw_alloc((size_t)(c->points + 1) * sizeof *used);
	for (int32_t v = 0; v < c->n_nodes; v++)
		for (int32_t s = c->span_first[v]; s < c->span_first[v + 1]; s++) {
			const graph_span *span = &c->spans[s];
			used[span->begin] += (double)span->usage[b->decoded[v]];
			used[span->end] -= (double)span->usage[b->decoded[v]];
		}
	double now = 0, kept = b->drifting ? DRIFT_KEPT : 0;
	for (int32_t t = 0; t < c->points; t++) {
		now += used[t];
		b->drift[t] = kept * b->drift[t] + (1 - kept) * (now - (double)c->capacity[t]);
	}
	b->drifting = true;
	free(used);
}

/* How often, lately, the decoded assignments chose each strategy: near to the linear relaxation's
 * solution. */
static void update_share(passing *b)
{
	const core *c = b->c;
	for (int32_t i = 0; i < c->n_strategies; i++)
		b->share[i] *= DRIFT_KEPT;
	for (int32_t v = 0; v < c->n_nodes; v++)
		b->share[c->first[v] + b->decoded[v]] += 1 - DRIFT_KEPT;
}

/* Polyak's step towards a level that is believed reachable: best + level. */
static void reprice(passing *b)
{
	const core *c = b->c;
	double square = 0, missing = b->best + b->level - b->estimate;
	update_drift(b);
	for (int32_t t = 0; t < c->points; t++)
		if (b->drift[t] > 0 || b->price[t] > 0)
			square += b->drift[t] * b->drift[t];
	if (square <= 0)
		return;
	double step = b->stride * missing / square;
	for (int32_t t = 0; t < c->points; t++)
		b->price[t] = SW_MAX(0, b->price[t] + step * b->drift[t]);
	b->priced_stale = true;
}

/* Progress raises the level, though never above `upper`. Without it for long the search goes back
 * to the best with a lower level. True if it went back. */
static bool fell_back(passing *b, double upper)
{
	double most = SW_MAX(upper - b->best, 0);
	if (b->level <= 0)
		b->level = FIRST_LEVEL * fabs(b->best) + 1;
	b->level = SW_MIN(b->level, most);
	if (b->best > b->mark + PROGRESS * SW_MIN(b->level * 10, most) || b->mark == -INFINITY) {
		b->mark = b->best;
		b->idle = 0;
		b->level = SW_MIN(b->level * HIGHER, most);
		b->stride = SW_MIN(b->stride * WIDER, 1);
		return false;
	}
	if (b->estimate < b->best - OVERSHOT * b->level) {
		b->stride *= NARROWER;
		bound_return(b);
		return false;
	}
	if (++b->idle < PATIENCE)
		return false;
	b->idle = 0;
	b->level *= LOWER;
	b->settled = !b->c->points || b->level < LOWEST * SW_MIN(most, fabs(b->best));
	bound_return(b);
	return true;
}

/* ---- leaps ------------------------------
 * Near the optimum messages and prices move little by little in the same direction for many sweeps.
 * A leap goes on in the direction since the last one, several times as far; it is taken back if the
 * bound falls. Those that succeed go further and more often, those that fail less. */

#define FIRST_REACH 4.0
#define SHORTEST_REACH 0.5
#define FURTHEST_REACH 100.0
#define MOST_OFTEN 2
#define LEAST_OFTEN 64

static void mark_place(passing *b)
{
	memcpy(b->place_message, b->message, (size_t)b->c->n_messages * sizeof(double));
	memcpy(b->place_price, b->price, (size_t)b->c->points * sizeof(double));
	b->since_leap = 0;
}

static void leap(passing *b)
{
	const core *c = b->c;
	double best = b->best;
	bound_return(b);
	for (int64_t m = 0; m < c->n_messages; m++)
		b->message[m] += b->reach * (b->message[m] - b->place_message[m]);
	for (int32_t t = 0; t < c->points; t++)
		b->price[t] = SW_MAX(0, b->price[t] + b->reach * (b->price[t] - b->place_price[t]));
	bound_sweep(b);
	b->sweeps++;
	if (b->best > best) {
		b->reach = SW_MIN(b->reach * 1.5, FURTHEST_REACH);
		b->leap_every = SW_MAX(b->leap_every / 2, MOST_OFTEN);
	} else {
		bound_return(b);
		b->reach = SW_MAX(b->reach / 2, SHORTEST_REACH);
		b->leap_every = SW_MIN(b->leap_every * 2, LEAST_OFTEN);
	}
	mark_place(b);
}

/* The first comes when the messages mean something. */
static void leap_at_times(passing *b)
{
	if (!b->leap_every) {
		b->leap_every = 2 * MOST_OFTEN;
		b->reach = FIRST_REACH;
		mark_place(b);
	} else if (++b->since_leap >= b->leap_every) {
		leap(b);
	}
}

void bound_run(passing *b, double upper, double target, int64_t work, const halt *h)
{
	int64_t limit = b->work + work;
	int first = b->warm ? 0 : FIRST_SWEEPS;
	while (b->work < limit && !b->settled && b->best < target && !halted(h)) {
		bound_sweep(b);
		if (h->tell)
			h->tell(h->context, b->best);
		update_share(b);
		if (++b->sweeps > first && !fell_back(b, upper) && b->c->points)
			reprice(b);
		if (b->sweeps > 2 * first)
			leap_at_times(b);
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
	b->drifting = false;
	for (int k = 0; k < sweeps && b->best < upper; k++) {
		bound_sweep(b);
		if (!fell_back(b, upper) && c->points)
			reprice(b);
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
