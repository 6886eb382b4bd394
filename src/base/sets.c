#include "base/sets.h"

#include "base/base.h"

void sw_sets_init(uint32_t *parent, size_t n)
{
	for (size_t i = 0; i < n; i++)
		parent[i] = (uint32_t)i;
}

uint32_t sw_sets_root(uint32_t *parent, uint32_t i)
{
	while (parent[i] != i)
		i = parent[i] = parent[parent[i]];
	return i;
}

uint32_t sw_sets_join(uint32_t *parent, uint32_t a, uint32_t b)
{
	uint32_t x = sw_sets_root(parent, a), y = sw_sets_root(parent, b);
	parent[SW_MAX(x, y)] = SW_MIN(x, y);
	return SW_MAX(x, y);
}
