/* Each variable in a way drawn by chance, the same for the same program and cluster. */
#include "model/ways.h"

void sw_ways_random(sw_variable *variables, uint32_t n, int64_t devices)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t drawn = sw_hash_u64((uint64_t)devices, i);
		sw_way_kind kind = (sw_way_kind)(drawn % SW_WAY_ANY);
		bool splits = kind == SW_WAY_SPLIT || kind == SW_WAY_MOMENTS;
		bool possible = !splits || variables[i].divides;
		variables[i].way = (sw_way){
			.kind = possible ? kind : SW_WAY_ALL_REDUCE,
			.owner = kind == SW_WAY_OWNED
		                         ? (int64_t)(drawn / SW_WAY_ANY % (uint64_t)devices)
		                         : 0};
	}
}
