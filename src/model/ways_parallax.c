/*
 * Parallax: variables with sparse gradients have parameter servers, so that only rows travel; the
 * others are all-reduced.
 */
#include "model/ways.h"

static bool is_sparse(const sw_variable *variable)
{
	return variable->sparse;
}

void sw_ways_parallax(sw_variable *variables, uint32_t n, int64_t devices)
{
	for (uint32_t i = 0; i < n; i++)
		variables[i].way.kind = is_sparse(&variables[i]) ? SW_WAY_OWNED : SW_WAY_ALL_REDUCE;
	sw_ways_give_evenly(variables, n, devices, is_sparse);
}
