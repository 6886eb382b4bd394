/* Parameter servers on all devices, with about as many bytes each (AutoDist's PSLoadBalancing); or
 * such a server for each variable beside its other ways. */
#include "model/ways.h"

#include "base/even_placement.h"

#include <stdlib.h>

static bool any(const sw_variable *variable)
{
	(void)variable;
	return true;
}

void sw_ways_give_evenly(sw_variable *variables, uint32_t n, int64_t devices,
                         sw_variable_test *owned)
{
	int64_t *bytes = sw_alloc(sizeof(*bytes) * ((size_t)n + 1)),
		*owner = sw_alloc(sizeof(*owner) * ((size_t)n + 1)),
		*load = sw_alloc(sizeof(*load) * ((size_t)devices + 1));
	uint32_t *list = sw_alloc(sizeof(*list) * ((size_t)n + 1)), count = 0;
	for (uint32_t i = 0; i < n; i++) {
		const sw_way *way = &variables[i].way;
		if (owned(&variables[i])) {
			bytes[count] = variables[i].bytes;
			list[count++] = i;
		} else if (way->kind == SW_WAY_OWNED || way->kind == SW_WAY_ANY) {
			load[way->owner] += variables[i].bytes;
		}
	}
	sw_place_evenly(bytes, count, load, devices, owner);
	for (uint32_t i = 0; i < count; i++) {
		variables[list[i]].way.owner = owner[i];
		variables[list[i]].way.open = true;
	}
	free(bytes);
	free(owner);
	free(load);
	free(list);
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
