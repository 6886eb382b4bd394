/*
 * Partitioned parameter servers: every device has a part of each variable that divides by the
 * devices (which is what the last stage of ZeRO does), and the others have owners.
 */
#include "model/ways.h"

static bool divides(const sw_variable *variable)
{
	return variable->divides;
}

static bool is_left(const sw_variable *variable)
{
	return !divides(variable);
}

void sw_ways_partitioned(sw_variable *variables, uint32_t n, int64_t devices)
{
	for (uint32_t i = 0; i < n; i++)
		variables[i].way.kind = divides(&variables[i]) ? SW_WAY_SPLIT : SW_WAY_OWNED;
	sw_ways_give_evenly(variables, n, devices, is_left);
}
