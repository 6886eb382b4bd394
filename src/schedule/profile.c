/* A segment tree over points: what was added to a whole node stays in it. */
#include <math.h>

#include "schedule/internal.h"

void sw_profile_init(sw_profile *p, const double *bytes, int32_t n, sw_arena *arena)
{
	*p = (sw_profile){.n = n, .width = 1};
	while (p->width < n)
		p->width *= 2;
	p->most = SW_NEW_N(arena, double, 2 * p->width);
	p->added = SW_NEW_N(arena, double, 2 * p->width);
	for (int32_t i = 0; i < p->width; i++)
		p->most[p->width + i] = i < n ? bytes[i] : -INFINITY;
	for (int32_t k = p->width - 1; k > 0; k--)
		p->most[k] = fmax(p->most[2 * k], p->most[2 * k + 1]);
}

static void add(sw_profile *p, int32_t node, int32_t low, int32_t high, int32_t begin, int32_t end,
                double bytes)
{
	if (end <= low || high <= begin)
		return;
	if (begin <= low && high <= end) {
		p->most[node] += bytes;
		p->added[node] += bytes;
		return;
	}
	int32_t middle = low + (high - low) / 2;
	add(p, 2 * node, low, middle, begin, end, bytes);
	add(p, 2 * node + 1, middle, high, begin, end, bytes);
	p->most[node] = fmax(p->most[2 * node], p->most[2 * node + 1]) + p->added[node];
}

void sw_profile_add(sw_profile *p, int32_t begin, int32_t end, double bytes)
{
	if (begin < end)
		add(p, 1, 0, p->width, begin, end, bytes);
}

/* From both ends up to where they meet. */
double sw_profile_most(const sw_profile *p, int32_t begin, int32_t end)
{
	if (begin >= end)
		return -INFINITY;
	int32_t low = p->width + begin, high = p->width + end - 1;
	double from_low = p->most[low], from_high = p->most[high];
	for (; low / 2 != high / 2; low /= 2, high /= 2) {
		if (low % 2 == 0)
			from_low = SW_MAX(from_low, p->most[low + 1]);
		if (high % 2 == 1)
			from_high = SW_MAX(from_high, p->most[high - 1]);
		from_low += p->added[low / 2];
		from_high += p->added[high / 2];
	}
	double most = SW_MAX(from_low, from_high);
	while ((low /= 2) > 0)
		most += p->added[low];
	return most;
}

sw_profile sw_profile_copy(const sw_profile *p, sw_arena *arena)
{
	size_t bytes = sizeof(double) * 2 * (size_t)p->width;
	return (sw_profile){p->n, p->width, sw_arena_copy(arena, p->most, bytes),
	                    sw_arena_copy(arena, p->added, bytes)};
}
