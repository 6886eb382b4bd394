/* Parameter servers on all devices, with about as many bytes each (AutoDist's PSLoadBalancing); or
 * such a server for each variable beside its other ways. */
#include "model/ways.h"

#include <stdlib.h>

static bool any(const sw_variable *variable)
{
	(void)variable;
	return true;
}

typedef struct sized {
	int64_t bytes;
	uint32_t variable;
} sized;

static int largest_first(const void *a, const void *b)
{
	const sized *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->variable < y->variable ? -1 : 1;
}

void sw_ways_give_evenly(sw_variable *variables, uint32_t n, int64_t devices,
                         sw_variable_test *owned)
{
	sized *list = sw_alloc(sizeof(*list) * ((size_t)n + 1));
	int64_t *load = sw_alloc(sizeof(*load) * ((size_t)devices + 1));
	uint32_t count = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (owned(&variables[i]))
			list[count++] = (sized){variables[i].bytes, i};
		else if (variables[i].way.kind == SW_WAY_OWNED ||
		         variables[i].way.kind == SW_WAY_ANY)
			load[variables[i].way.owner] += variables[i].bytes;
	}
	qsort(list, count, sizeof(*list), largest_first);
	for (uint32_t i = 0; i < count; i++) {
		int64_t least = 0;
		for (int64_t d = 1; d < devices; d++)
			least = load[d] < load[least] ? d : least;
		load[least] += list[i].bytes;
		variables[list[i].variable].way.owner = least;
	}
	free(list);
	free(load);
}

void sw_ways_balanced(sw_variable *variables, uint32_t n, int64_t devices)
{
	for (uint32_t i = 0; i < n; i++)
		variables[i].way = (sw_way){.kind = SW_WAY_OWNED};
	sw_ways_give_evenly(variables, n, devices, any);
}

void sw_ways_any(sw_variable *variables, uint32_t n, int64_t devices)
{
	for (uint32_t i = 0; i < n; i++)
		variables[i].way = (sw_way){.kind = SW_WAY_ANY};
	sw_ways_give_evenly(variables, n, devices, any);
}
