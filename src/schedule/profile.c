/* A segment tree over the points of an order. `added` of a node holds the bytes added to its whole
 * range; `max` is the maximum of its range with these, but without those added to nodes above
 * it. */
#include <math.h>

#include "schedule/internal.h"

void sw_profile_init(sw_profile *p, const double *bytes, int32_t n, sw_arena *arena)
{
	*p = (sw_profile){.n = n, .width = 1};
	while (p->width < n)
		p->width *= 2;
	p->max = SW_NEW_N(arena, double, 2 * p->width);
	p->added = SW_NEW_N(arena, double, 2 * p->width);
	for (int32_t i = 0; i < p->width; i++)
		p->max[p->width + i] = i < n ? bytes[i] : -INFINITY;
	for (int32_t k = p->width - 1; k > 0; k--)
		p->max[k] = fmax(p->max[2 * k], p->max[2 * k + 1]);
}

static void add(sw_profile *p, int32_t node, int32_t low, int32_t high, int32_t begin, int32_t end,
                double bytes)
{
	if (end <= low || high <= begin)
		return;
	if (begin <= low && high <= end) {
		p->max[node] += bytes;
		p->added[node] += bytes;
		return;
	}
	int32_t middle = low + (high - low) / 2;
	add(p, 2 * node, low, middle, begin, end, bytes);
	add(p, 2 * node + 1, middle, high, begin, end, bytes);
	p->max[node] = fmax(p->max[2 * node], p->max[2 * node + 1]) + p->added[node];
}

void sw_profile_add(sw_profile *p, int32_t begin, int32_t end, double bytes)
{
	if (begin < end)
		add(p, 1, 0, p->width, begin, end, bytes);
}

/* Climb from both ends of the range until they meet. */
double sw_profile_max(const sw_profile *p, int32_t begin, int32_t end)
{
	if (begin >= end)
		return -INFINITY;
	int32_t low = p->width + begin, high = p->width + end - 1;
	double from_low = p->max[low], from_high = p->max[high];
	for (; low / 2 != high / 2; low /= 2, high /= 2) {
		if (low % 2 == 0)
			from_low = SW_MAX(from_low, p->max[low + 1]);
		if (high % 2 == 1)
			from_high = SW_MAX(from_high, p->max[high - 1]);
		from_low += p->added[low / 2];
		from_high += p->added[high / 2];
	}
	double max = SW_MAX(from_low, from_high);
	while ((low /= 2) > 0)
		max += p->added[low];
	return max;
}

sw_profile sw_profile_copy(const sw_profile *p, sw_arena *arena)
{
	size_t bytes = sizeof(double) * 2 * (size_t)p->width;
	return (sw_profile){p->n, p->width, sw_arena_copy(arena, p->max, bytes),
	                    sw_arena_copy(arena, p->added, bytes)};
}
