/*
 * The order that waits for nothing before it must: what can be merged is seen in it. Kernels run in
 * a given order, starts as soon as they can (or both in the program's order), and dones wait until
 * nothing else is ready; then all of them run.
 */
#include "base/heap.h"
#include "schedule/internal.h"

/* Per task, what it runs by, least first; dones by theirs among each other. */
static int32_t *places(const sw_tasks *graph, sw_kernel_order_fn *order_kernels,
                       const sw_schedule_limits *limits, sw_arena *arena)
{
	int32_t *place = SW_NEW_N(arena, int32_t, graph->n + 1);
	uint32_t n = 0;
	const uint32_t *kernels = order_kernels ? order_kernels(graph, limits, arena, &n) : NULL;
	for (uint32_t t = 0; t < graph->n && !kernels; t++)
		place[t] = (int32_t)t;
	for (uint32_t i = 0; i < n; i++)
		place[kernels[i]] = (int32_t)i + 1;
	return place;
}

uint32_t *sw_order_last_waits(const sw_tasks *graph, sw_kernel_order_fn *order_kernels,
                              const sw_schedule_limits *limits, sw_arena *arena)
{
	const sw_task_list *before = &graph->before, *after = &graph->after;
	uint32_t *n_unrun = SW_NEW_N(arena, uint32_t, graph->n + 1),
		 *order = SW_NEW_N(arena, uint32_t, graph->n + 1), n = 0;
	int32_t *place = places(graph, order_kernels, limits, arena);
	sw_heap ready = {0}, waits = {0}, swap;
	for (uint32_t t = 0; t < graph->n; t++) {
		n_unrun[t] = before->start[t + 1] - before->start[t];
		if (n_unrun[t] == 0)
			sw_heap_push(&ready, place[t], (int32_t)t);
	}
	while (ready.len || waits.len) {
		if (ready.len == 0) {
			swap = ready;
			ready = waits;
			waits = swap;
		}
		uint32_t t = order[n++] = (uint32_t)sw_heap_pop(&ready).node;
		for (uint32_t i = after->start[t]; i < after->start[t + 1]; i++) {
			uint32_t next = after->tasks[i];
			bool is_wait = graph->tasks[next].kind == SW_TASK_DONE;
			if (--n_unrun[next] == 0)
				sw_heap_push(is_wait ? &waits : &ready, place[next], (int32_t)next);
		}
	}
	sw_vec_clear(&ready);
	sw_vec_clear(&waits);
	return order;
}
