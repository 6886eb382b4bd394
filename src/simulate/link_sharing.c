/*
 * Max-min fair rates of flows that share links (Bertsekas, Gallager, Data Networks, section 6.5.2:
 * progressive filling).
 *
 * A flow at full speed takes the share use.share of each of its links; its weight is the share of
 * its busiest link. The bandwidth of all flows on their busiest links is raised together, until a
 * flow is at full speed or a link is full: then the rates of those flows are fixed, and the others
 * are raised further. A single wave runs at full speed: its seconds already account for all its
 * groups. O(rounds * flows * links of a flow), rounds <= flows.
 */
#include "simulate/internal.h"

#include <math.h>

/* Relative: two levels this close are equal, and no flow is slower than this share of full
 * speed. */
#define ROUNDING 1e-9

static double weight(const link_flow *f)
{
	double busiest = 0;
	for (int32_t i = 0; i < f->group->n_uses; i++)
		busiest = fmax(busiest, f->group->uses[i].share);
	return busiest;
}

/* The links in one round: the share that flows with fixed rates leave, and how fast the other flows
 * fill it. */
typedef struct filling {
	link_flow *flows;
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
		const link_flow *at = &f->flows[i];
		for (int32_t k = 0; k < at->group->n_uses; k++) {
			const link_use *use = &at->group->uses[k];
			if (at->rate > 0)
				f->left[use->link] -= at->rate * use->share;
			else
				f->slope[use->link] += use->share / weight(at);
		}
	}
}

/* Return the bandwidth on its busiest link to which this flow can be raised. */
static double limit(const filling *f, const link_flow *at)
{
	double level = weight(at);
	for (int32_t k = 0; k < at->group->n_uses; k++) {
		int32_t link = at->group->uses[k].link;
		level = fmin(level, f->left[link] / f->slope[link]);
	}
	return level;
}

/* Run one round: fix the rates of the flows that are stopped first. Returns false if all rates were
 * fixed before. */
static bool fill(filling *f)
{
	double level = INFINITY;
	measure_links(f);
	for (size_t i = 0; i < f->n; i++)
		if (f->flows[i].rate == 0)
			level = fmin(level, limit(f, &f->flows[i]));
	for (size_t i = 0; i < f->n; i++) {
		link_flow *at = &f->flows[i];
		if (at->rate == 0 && limit(f, at) <= level + ROUNDING)
			at->rate = fmin(1, fmax(level / weight(at), ROUNDING));
	}
	return isfinite(level);
}

static bool is_one_wave(const link_flow *flows, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (flows[i].wave != flows[0].wave)
			return false;
	return true;
}

void share_links(link_flow *flows, size_t n, int32_t n_links, double *scratch)
{
	filling f = {.flows = flows,
	             .n = n,
	             .n_links = n_links,
	             .left = scratch,
	             .slope = scratch + n_links};
	bool alone = is_one_wave(flows, n);
	for (size_t i = 0; i < n; i++)
		flows[i].rate = alone || flows[i].group->n_uses == 0 ? 1 : 0;
	while (!alone && fill(&f))
		continue;
}
