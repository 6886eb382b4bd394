#include "base/heap.h"

static bool before(sw_heap_entry a, sw_heap_entry b)
{
	return a.weight < b.weight || (a.weight <= b.weight && a.node < b.node);
}

void sw_heap_push(sw_heap *heap, double weight, int32_t node)
{
	sw_heap_entry entry = {weight, node};
	sw_vec_push(heap, entry);
	size_t at = heap->len - 1;
	for (; at && before(entry, heap->data[(at - 1) / 2]); at = (at - 1) / 2)
		heap->data[at] = heap->data[(at - 1) / 2];
	heap->data[at] = entry;
}

sw_heap_entry sw_heap_pop(sw_heap *heap)
{
	sw_heap_entry top = heap->data[0], last = heap->data[--heap->len];
	size_t at = 0, n = heap->len;
	for (size_t child = 1; child < n; child = 2 * at + 1) {
		if (child + 1 < n && before(heap->data[child + 1], heap->data[child]))
			child++;
		if (!before(heap->data[child], last))
			break;
		heap->data[at] = heap->data[child];
		at = child;
	}
	if (n)
		heap->data[at] = last;
	return top;
}
