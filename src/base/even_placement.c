/*
 * Items on bins, so that the fullest bin has little: the largest item first, each to the bin that has least
 * (Graham 1969: at most 4/3 of the least there is), then moves and exchanges as long as they empty the
 * fullest bin.
 */
#include <stdlib.h>

#include "base/even_placement.h"

#define MOST_COMPARED 10000000 /* pairs of items; a second's hundredth, where a few hundred items need less */

typedef struct placed_item {
	int64_t size;
	size_t number;
} placed_item;

typedef struct placement {
	placed_item *items; /* the largest first */
	size_t n;
	int64_t *load, *bin_of; /* per bin; per item by its number */
	int64_t bins;
} placement;

static int largest_first(const void *a, const void *b)
{
	const placed_item *x = a, *y = b;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

static int64_t extreme(const placement *p, bool most)
{
	int64_t best = 0;
	for (int64_t b = 1; b < p->bins; b++)
		if (most ? p->load[b] > p->load[best] : p->load[b] < p->load[best])
			best = b;
	return best;
}

/* No placement's fullest bin has less than the mean, than what it had, than the largest item, and than two
 * of the largest, one more than there are bins. */
static int64_t least_fullest(const placement *p)
{
	int64_t sum = 0, most = p->load[extreme(p, true)], least = p->load[extreme(p, false)];
	for (int64_t b = 0; b < p->bins; b++)
		sum += p->load[b];
	for (size_t i = 0; i < p->n; i++)
		sum += p->items[i].size;
	most = SW_MAX(most, (sum + p->bins - 1) / p->bins);
	if (p->n > 0)
		most = SW_MAX(most, least + p->items[0].size);
	if (p->n > (size_t)p->bins)
		most = SW_MAX(most, least + p->items[p->bins - 1].size + p->items[p->bins].size);
	return most;
}

/* An item that leaves the fullest bin, and what comes in its place; NULL: nothing does. */
typedef struct bin_exchange {
	const placed_item *out, *in;
	int64_t bin, fullest; /* to which it goes; the larger load of the two bins then */
} bin_exchange;

static void try_exchange(const placement *p, bin_exchange e, int64_t from, bin_exchange *best)
{
	int64_t moved = e.out->size - (e.in ? e.in->size : 0);
	e.fullest = SW_MAX(p->load[from] - moved, p->load[e.bin] + moved);
	if (moved > 0 && e.fullest < best->fullest)
		*best = e;
}

static bool improve(placement *p, int64_t *compared)
{
	int64_t from = extreme(p, true), least = extreme(p, false);
	bin_exchange best = {.fullest = p->load[from]};
	for (size_t i = 0; i < p->n && *compared < MOST_COMPARED; i++) {
		const placed_item *out = &p->items[i];
		if (p->bin_of[out->number] != from)
			continue;
		try_exchange(p, (bin_exchange){out, NULL, least, 0}, from, &best);
		for (size_t k = i + 1; k < p->n; k++) {
			const placed_item *in = &p->items[k];
			if (p->bin_of[in->number] != from)
				try_exchange(p, (bin_exchange){out, in, p->bin_of[in->number], 0}, from, &best);
		}
		*compared += (int64_t)(p->n - i);
	}
	if (!best.out)
		return false;
	int64_t moved = best.out->size - (best.in ? best.in->size : 0);
	p->bin_of[best.out->number] = best.bin;
	if (best.in)
		p->bin_of[best.in->number] = from;
	p->load[from] -= moved;
	p->load[best.bin] += moved;
	return true;
}

int64_t sw_place_evenly(const int64_t *sizes, size_t n, int64_t *load, int64_t bins, int64_t *bin_of)
{
	placement p = {sw_alloc(sizeof(placed_item) * (n + 1)), n, load, bin_of, bins};
	int64_t compared = 0;
	for (size_t i = 0; i < n; i++)
		p.items[i] = (placed_item){sizes[i], i};
	qsort(p.items, n, sizeof(*p.items), largest_first);
	int64_t bound = least_fullest(&p);
	for (size_t i = 0; i < n; i++) {
		int64_t least = extreme(&p, false);
		bin_of[p.items[i].number] = least;
		load[least] += p.items[i].size;
	}
	while (load[extreme(&p, true)] > bound && improve(&p, &compared))
		continue;
	free(p.items);
	return bound;
}
