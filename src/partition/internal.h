/* Declarations that the files of this folder share. */
#ifndef SW_PARTITION_INTERNAL_H
#define SW_PARTITION_INTERNAL_H

#include "base/base.h"

typedef SW_VEC(uint32_t) distinct_list; /* of leaves, or of values: each once */

/* Return the place of a number in the list, behind the others if it is new. O(list). */
static inline uint32_t number_in(distinct_list *list, uint32_t number)
{
	uint32_t i = 0;
	while (i < list->len && list->data[i] != number)
		i++;
	if (i == list->len)
		sw_vec_push(list, number);
	return i;
}

#endif
