/* What is tried next: samples above the simulator's fidelity, by their scores and their diversity.
 */
#include <math.h>
#include <stdlib.h>

#include "tune/internal.h"

/* ---- fidelity --------------------------------------------------------------------------- */

/* Pairs of one trial and all that have higher scores. */
static void count_above(const sw_keyed *list, size_t n, size_t at, const double *scores,
                        const double *seconds, double apart, sw_ranking_accuracy *sum)
{
	for (size_t k = at + 1; k < n; k++) {
		size_t pair[2] = {list[at].number, list[k].number};
		double two_scores[2] = {scores[pair[0]], scores[pair[1]]},
		       two_seconds[2] = {seconds[pair[0]], seconds[pair[1]]};
		sw_ranking_count(two_scores, two_seconds, 2, apart, sum);
	}
}

size_t sw_fidelity_trial(const double *scores, const double *seconds, size_t n, double wanted,
                         double apart)
{
	sw_keyed *list = sw_alloc(sizeof(*list) * (n + 1));
	sw_ranking_accuracy sum = {0};
	size_t found = n;
	for (size_t i = 0; i < n; i++)
		list[i] = (sw_keyed){scores[i], (uint32_t)i};
	qsort(list, n, sizeof(*list), sw_compare_keyed);
	for (size_t i = 0; i + 1 < n; i++) {
		count_above(list, n, i, scores, seconds, apart, &sum);
		if (sum.pairs > 0 && sum.right >= wanted)
			found = list[i].number;
	}
	free(list);
	return found;
}

/* ---- picks ------------------------------------------------------------------------------ */

/* Of samples that are not taken the i-th. */
static size_t untaken(const sw_scored_ways *samples, size_t n, int64_t i)
{
	for (size_t k = 0; k < n; k++)
		if (!samples[k].taken && i-- == 0)
			return k;
	return n;
}

static size_t most_worth(const sw_scored_ways *samples, const double *distance, size_t n,
                         double diversity)
{
	size_t best = n;
	double most = -INFINITY;
	for (size_t i = 0; i < n; i++) {
		double worth = samples[i].score + diversity * distance[i];
		if (!samples[i].taken && worth > most) {
			most = worth;
			best = i;
		}
	}
	return best;
}

void sw_picks_take(const sw_ways_space *space, sw_scored_ways *samples, size_t n, size_t most,
                   const sw_tune_limits *limits, sw_rng *rng)
{
	double *distance = sw_alloc(sizeof(*distance) * (n + 1));
	for (size_t i = 0; i < n; i++)
		distance[i] = 1;
	for (size_t k = 0; k < SW_MIN(most, n); k++) {
		bool surprise = sw_rng_unit(rng) < limits->surprises;
		size_t best = surprise ? untaken(samples, n, sw_rng_below(rng, (int64_t)(n - k)))
		                       : most_worth(samples, distance, n, limits->diversity);
		samples[best].taken = true;
		for (size_t i = 0; i < n; i++)
			distance[i] = fmin(distance[i], sw_ways_distance(space, &samples[i].ways,
			                                                 &samples[best].ways));
	}
	free(distance);
}
