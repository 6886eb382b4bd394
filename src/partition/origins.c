/* Which op of the plan's program each op of a partitioned program was written for. */
#include "partition/partition.h"

const sw_origin *sw_origin_of(const sw_origins *origins, sw_id local_op)
{
	size_t low = 0,
	       high = origins->items
	                      /* the last that begins at or before the op lies in [low - 1, high) */
	                      .len;
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
