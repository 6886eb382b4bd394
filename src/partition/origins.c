/* The op of the plan's program for which each op of a partitioned program was written. */
#include "partition/partition.h"

const sw_origin *sw_origin_of(const sw_origins *origins, sw_id local_op)
{
	/* the last origin that begins at or before the op is in [low - 1, high) */
	size_t low = 0, high = origins->items.len;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (origins->items.data[middle].first <= local_op)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? &origins->items.data[low - 1] : NULL;
}

void sw_origins_clear(sw_origins *origins)
{
	sw_vec_clear(&origins->items);
	sw_layouts_clear(&origins->layouts);
}
