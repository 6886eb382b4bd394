/*
 * Nodes waiting to be eliminated: lightest first, of equal ones the smaller number. Private to solve.
 * A node whose weight has changed is pushed again; what is stale is the caller's to skip.
 */
#ifndef SW_SOLVE_HEAP_H
#define SW_SOLVE_HEAP_H

#include "base/base.h"

typedef struct heap_entry {
	double weight;
	int32_t node;
} heap_entry;

typedef SW_VEC(heap_entry) node_heap;

void heap_push(node_heap *heap, double weight, int32_t node);
heap_entry heap_pop(node_heap *heap); /* of at least one */

#endif
