/* A parameter server on one device: it owns all variables. */
#include "model/ways.h"

void sw_ways_one(sw_variable *variables, uint32_t n, int64_t devices)
{
	(void)devices;
	for (uint32_t i = 0; i < n; i++)
		variables[i].way = (sw_way){.kind = SW_WAY_OWNED};
}
