/*
 * The order of kernels: a list scheduler that hides latency, from the results backwards (as XLA's
 * does it; Google, "latency hiding scheduler", is the name under which it is known).
 *
 * Backwards, a done begins its collective and a start waits for it. Two clocks count the seconds
 * from the end: of kernels and of collectives. Among the tasks whose successors all stand, it takes
 *
 *     a start whose collective has had its time;
 *     else a done, if the stream of collectives is free: of several the last in the program;
 *     else a kernel: of several the last in the program;
 *     else it waits: for a start's time to come, or for the stream.
 *
 * So the program's order stays but for one thing: while a collective is under way, what it was made
 * from has to wait, and kernels that need not stand later come between. Where no collective asks
 * for it nothing moves, and memory stays what it was. Only the order of kernels is kept: where
 * starts and dones stand is settled by insert_collectives.c, which knows of memory.
 */
#include <math.h>

#include "base/heap.h"
#include "schedule/internal.h"

typedef struct orderer {
	const sw_tasks *graph;
	uint32_t *waits;                 /* per task: successors that don't stand yet */
	double kernels_s, collectives_s; /* backward clocks */
	sw_heap kernels, dones;          /* latest of the program first */
	sw_heap starts;                  /* the first whose time comes first */
	double *landed;                  /* per start: its time */
	uint32_t *order, left;           /* filled from the end */
} orderer;

uint32_t *sw_order_kept(const sw_tasks *graph, sw_arena *arena, uint32_t *n)
{
	uint32_t *order = SW_NEW_N(arena, uint32_t, graph->n + 1);
	*n = 0;
	for (uint32_t t = 0; t < graph->n; t++)
		if (sw_task_computes(&graph->tasks[t]))
			order[(*n)++] = t;
	return order;
}

static void offer(orderer *o, uint32_t t)
{
	switch (o->graph->tasks[t].kind) {
	case SW_TASK_START:
		sw_heap_push(&o->starts, o->landed[t], -(int32_t)t);
		break;
	case SW_TASK_DONE:
		sw_heap_push(&o->dones, -(double)t, (int32_t)t);
		break;
	default:
		sw_heap_push(&o->kernels, -(double)t, (int32_t)t);
	}
}

static void stand(orderer *o, uint32_t t)
{
	const sw_task_list *before = &o->graph->before;
	for (uint32_t i = before->start[t]; i < before->start[t + 1]; i++)
		if (--o->waits[before->tasks[i]] == 0)
			offer(o, before->tasks[i]);
}

static void take_start(orderer *o)
{
	uint32_t t = (uint32_t)-sw_heap_pop(&o->starts).node;
	o->kernels_s = fmax(o->kernels_s, o->landed[t]);
	stand(o, t);
}

static void take_done(orderer *o)
{
	uint32_t t = (uint32_t)sw_heap_pop(&o->dones).node, start = o->graph->tasks[t].partner;
	o->collectives_s = fmax(o->kernels_s, o->collectives_s) + o->graph->tasks[start].seconds;
	o->landed[start] = o->collectives_s;
	stand(o, t);
}

static void take_kernel(orderer *o)
{
	uint32_t t = (uint32_t)sw_heap_pop(&o->kernels).node;
	const sw_task *task = &o->graph->tasks[t];
	if (task->kind == SW_TASK_BLOCKING)
		o->kernels_s = fmax(o->kernels_s, o->collectives_s);
	o->kernels_s += task->seconds;
	if (task->kind == SW_TASK_BLOCKING || task->collective_s > 0)
		o->collectives_s = fmax(o->collectives_s, o->kernels_s);
	o->order[--o->left] = t;
	stand(o, t);
}

static bool take_one(orderer *o)
{
	bool start = o->starts.len > 0, done = o->dones.len > 0, kernel = o->kernels.len > 0;
	if (start && o->starts.data[0].weight <= o->kernels_s)
		take_start(o);
	else if (done && o->collectives_s <= o->kernels_s)
		take_done(o);
	else if (kernel)
		take_kernel(o);
	else if (start)
		take_start(o);
	else if (done)
		take_done(o);
	return start || done || kernel;
}

uint32_t *sw_order_hide(const sw_tasks *graph, sw_arena *arena, uint32_t *n)
{
	orderer o = {.graph = graph, .waits = SW_NEW_N(arena, uint32_t, graph->n + 1)};
	o.order = sw_order_kept(graph, arena, n);
	o.left = *n;
	o.landed = SW_NEW_N(arena, double, graph->n + 1);
	for (uint32_t t = 0; t < graph->n; t++)
		o.waits[t] = graph->after.start[t + 1] - graph->after.start[t];
	for (uint32_t t = 0; t < graph->n; t++)
		if (o.waits[t] == 0)
			offer(&o, t);
	while (take_one(&o))
		;
	sw_vec_clear(&o.kernels);
	sw_vec_clear(&o.dones);
	sw_vec_clear(&o.starts);
	return o.order;
}
