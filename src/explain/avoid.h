/*
 * The price of a change that avoids a redistribution (avoid_price.c), for the search over changes
 * (explain_avoid.c).
 */
#ifndef SW_EXPLAIN_AVOID_H
#define SW_EXPLAIN_AVOID_H

#include "explain/internal.h"

struct sw_avoider {
	sw_anatomy *a;
	const sw_origins *origins;
	sw_plan trial;      /* a copy of the plan with decisions of its own */
	sw_analysis analysis; /* holds only the fields that price an op */
	sw_path_cache *paths;
};

/* Per step; memory is bytes on a device. */
typedef struct sw_avoid_price {
	double compute_s, communication_s;
	int64_t payload_bytes, memory_bytes;
	bool possible;
} sw_avoid_price;

typedef SW_VEC(sw_id) sw_value_list;

/* Price the moves of one value: from its producer to its materialised layout, and on to each
 * reader. */
sw_avoid_price sw_price_value(sw_avoider *v, sw_id value);
/* List the values that may be moved differently if the ops of the change decide differently. The
 * caller clears the list. */
sw_value_list sw_values_around(const sw_avoider *v, const sw_avoidance *x);
/* Price the ops of the change and all values around them, under the decisions of v->trial. */
sw_avoid_price sw_price_around(sw_avoider *v, const sw_avoidance *x);

#endif
