/*
 * Max-min fair rates of flows that share links (Bertsekas, Gallager, Data Networks, section 6.5.2:
 * progressive filling).
 *
 * A flow at full speed takes the share use.share of each of its links; its busiest link decides
 * what it weighs. The bandwidth of all flows on their busiest links is raised together, until a
 * flow is at full speed or a link is full: then those flows stay as they are, and the others are
 * raised further. One wave
 * alone is at full speed: its seconds know of its groups. O(rounds * flows * links of a flow),
 * rounds <= flows.
 */
#include "simulate/internal.h"

#include <math.h>

/* Rounding is smaller than this, and so slow goes no flow. */
#define SLACK 1e-9

static double weight(const flow *f)
{
	double most = 0;
	for (int32_t i = 0; i < f->group->n_uses; i++)
		most = fmax(most, f->group->uses[i].share);
	return most;
}

/* Links as they are in one round: what those that have their rate leave, and how fast the others
 * fill it. */
typedef struct filling {
	flow *flows;
	size_t n;
	int32_t n_links;
	double *left, *slope; /* [links] */
} filling;

static void measure_links(filling *f)
{
	for (int32_t l = 0; l < f->n_links; l++) {
		f->left[l] = 1;
		f->slope[l] = 0;
	}
	for (size_t i = 0; i < f->n; i++) {
		const flow *at = &f->flows[i];
		for (int32_t k = 0; k < at->group->n_uses; k++) {
			const link_use *use = &at->group->uses[k];
			if (at->rate > 0)
				f->left[use->link] -= at->rate * use->share;
			else
				f->slope[use->link] += use->share / weight(at);
		}
	}
}

/* How much bandwidth on its busiest link this flow is raised to. */
static double limit(const filling *f, const flow *at)
{
	double level = weight(at);
	for (int32_t k = 0; k < at->group->n_uses; k++) {
		int32_t link = at->group->uses[k].link;
		level = fmin(level, f->left[link] / f->slope[link]);
	}
	return level;
}

/* One round: the flows that are stopped first get their rates. False: all had theirs. */
static bool fill(filling *f)
{
	double level = INFINITY;
	measure_links(f);
	for (size_t i = 0; i < f->n; i++)
		if (f->flows[i].rate == 0)
			level = fmin(level, limit(f, &f->flows[i]));
	for (size_t i = 0; i < f->n; i++) {
		flow *at = &f->flows[i];
		if (at->rate == 0 && limit(f, at) <= level + SLACK)
			at->rate = fmin(1, fmax(level / weight(at), SLACK));
	}
	return isfinite(level);
}

static bool is_one_wave(const flow *flows, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (flows[i].wave != flows[0].wave)
			return false;
	return true;
}

void share_links(flow *flows, size_t n, int32_t n_links, double *room)
{
	filling f = {
		.flows = flows, .n = n, .n_links = n_links, .left = room, .slope = room + n_links};
	bool alone = is_one_wave(flows, n);
	for (size_t i = 0; i < n; i++)
		flows[i].rate = alone || flows[i].group->n_uses == 0 ? 1 : 0;
	while (!alone && fill(&f))
		continue;
}
