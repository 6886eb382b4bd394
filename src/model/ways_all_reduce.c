/* Every device keeps every variable; what a file of ways says counts more. */
#include "model/ways.h"

void sw_ways_all_reduce(sw_variable *variables, uint32_t n, int64_t devices)
{
	(void)devices;
	for (uint32_t i = 0; i < n; i++)
		variables[i].way = (sw_way){.kind = SW_WAY_ALL_REDUCE};
}
