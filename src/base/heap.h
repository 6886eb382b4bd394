/*
 * A heap of numbered items: lightest first, of equal ones the smaller number. An item whose weight
 * has changed is pushed again; what is stale is the caller's to skip. Push and pop O(log n).
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
sw_heap_entry sw_heap_pop(sw_heap *heap); /* of at least one */

#endif
