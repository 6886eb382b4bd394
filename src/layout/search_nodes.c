/*
 * The nodes of a search, found by their states, and the heap of those that wait to be expanded.
 */
#include "layout/node_expansion.h"

#include <stdlib.h>
#include <string.h>

void workspace_clear(workspace *work)
{
	sw_vec_clear(&work->nodes);
	sw_vec_clear(&work->heap);
	free(work->slots);
	*work = (workspace){0};
}

static uint64_t state_key(const uint8_t *state)
{
	uint64_t key;
	memcpy(&key, state, sizeof(key));
	return key;
}

size_t workspace_slot(const workspace *work, const uint8_t *state)
{
	/* 2^64 over the golden ratio */
	uint64_t mixed = state_key(state) * UINT64_C(0x9e3779b97f4a7c15);
	size_t i = (mixed >> 32) & (work->n_slots - 1);
	while (work->slots[i] &&
	       state_key(work->nodes.data[work->slots[i] - 1].state) != state_key(state))
		i = (i + 1) & (work->n_slots - 1);
	return i;
}

void workspace_reset(workspace *work)
{
	if (work->n_slots == 0 || work->n_slots > 4096) {
		free(work->slots);
		work->n_slots = 256;
		work->slots = sw_alloc(work->n_slots * sizeof(*work->slots));
	} else {
		memset(work->slots, 0, work->n_slots * sizeof(*work->slots));
	}
	work->nodes.len = work->heap.len = 0;
}

static void grow_slots(workspace *work)
{
	free(work->slots);
	work->n_slots *= 4;
	work->slots = sw_alloc(work->n_slots * sizeof(*work->slots));
	for (size_t i = 0; i < work->nodes.len; i++)
		work->slots[workspace_slot(work, work->nodes.data[i].state)] = (int32_t)i + 1;
}

int32_t workspace_node(workspace *work, const uint8_t *state, path_cost so_far)
{
	size_t slot = workspace_slot(work, state);
	int32_t number = work->slots[slot] - 1;
	if (number >= 0) {
		const node *present = &work->nodes.data[number];
		return present->closed || !cost_less(so_far, present->so_far) ? -1 : number;
	}
	node fresh = {.so_far = {NO_PATH, 0, 0}};
	memcpy(fresh.state, state, sizeof(fresh.state));
	sw_vec_push(&work->nodes, fresh);
	number = (int32_t)work->nodes.len;
	work->slots[slot] = number;
	if (2 * work->nodes.len > work->n_slots)
		grow_slots(work);
	return number - 1;
}

/* ---- the heap: least total first, then the deeper one, then the older one --------------- */

static bool goes_first(const open_node *x, const open_node *y)
{
	if (cost_less(x->total, y->total))
		return true;
	if (cost_less(y->total, x->total))
		return false;
	return x->depth != y->depth ? x->depth > y->depth : x->number < y->number;
}

void workspace_push(workspace *work, int32_t number)
{
	const node *n = &work->nodes.data[number];
	open_node fresh = {n->total, (int32_t)n->so_far.moves, number};
	sw_vec_push(&work->heap, fresh);
	open_node *heap = work->heap.data;
	size_t i = work->heap.len - 1;
	for (; i > 0 && goes_first(&fresh, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = fresh;
}

int32_t workspace_pop(workspace *work)
{
	open_node *heap = work->heap.data;
	open_node top = heap[0], last = heap[--work->heap.len];
	size_t i = 0, n = work->heap.len;
	for (size_t child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && goes_first(&heap[child + 1], &heap[child]))
			child++;
		if (!goes_first(&heap[child], &last))
			break;
		heap[i] = heap[child];
	}
	heap[i] = last;
	return top.number;
}
