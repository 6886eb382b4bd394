/*
 * A heap of numbered items: the lightest comes first, and of equally light ones the smaller number.
 * An item whose weight has changed is pushed again; the caller skips the stale entry when it is
 * popped. Push and pop take O(log n).
 */
#ifndef SW_HEAP_H
#define SW_HEAP_H

#include "base/base.h"

typedef struct sw_heap_entry {
	double weight;
	int32_t node;
} sw_heap_entry;

typedef SW_VEC(sw_heap_entry) sw_heap;

void sw_heap_push(sw_heap *heap, double weight, int32_t node);
sw_heap_entry sw_heap_pop(sw_heap *heap); /* requires at least one entry */

#endif
