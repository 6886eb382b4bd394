/*
 * The order of kernels by list scheduling that hides latency, from the results backwards (the
 * method of XLA's latency hiding scheduler).
 *
 * Backwards, a done begins its collective and a start waits for it. Two clocks count seconds from
 * the end: one of kernels, one of collectives. The ready list holds the tasks whose successors are
 * all placed; of them, by priority, the scheduler takes
 *
 *     a start whose collective has had its seconds;
 *     else a done, if the stream of collectives is free: the last one in program order;
 *     else a kernel: the last one in program order;
 *     else it waits: until a start may be placed, or the stream is free.
 *
 * The program's order thus changes in one way only: while a collective is under way, the tasks that
 * it depends on are deferred, and kernels that may be placed there come between. Where no
 * collective is under way nothing moves, and memory does not change. Only the order of kernels is
 * kept: insert_collectives.c, which knows the memory, places starts and dones.
 */
#include <math.h>

#include "base/heap.h"
#include "schedule/internal.h"

typedef struct backward_scheduler {
	const sw_tasks *graph;
	uint32_t *n_unplaced;            /* per task: successors that are not placed yet */
	double kernels_s, collectives_s; /* backward clocks */
	sw_heap kernels, dones;          /* last in program order first */
	sw_heap starts;                  /* smallest earliest_s first */
	/* per start: the kernel clock at which it may be placed */
	double *earliest_s;
	uint32_t *order, left; /* filled from the end; `left` are empty */
} backward_scheduler;

uint32_t *sw_order_program(const sw_tasks *graph, const sw_schedule_limits *limits, sw_arena *arena,
                           uint32_t *n)
{
	(void)limits;
	uint32_t *order = SW_NEW_N(arena, uint32_t, graph->n + 1);
	*n = 0;
	for (uint32_t t = 0; t < graph->n; t++)
		if (sw_task_computes(&graph->tasks[t]))
			order[(*n)++] = t;
	return order;
}

static void add_ready(backward_scheduler *o, uint32_t t)
{
	switch (o->graph->tasks[t].kind) {
	case SW_TASK_START:
		sw_heap_push(&o->starts, o->earliest_s[t], -(int32_t)t);
		break;
	case SW_TASK_DONE:
		sw_heap_push(&o->dones, -(double)t, (int32_t)t);
		break;
	default:
		sw_heap_push(&o->kernels, -(double)t, (int32_t)t);
	}
}

static void place(backward_scheduler *o, uint32_t t)
{
	const sw_task_list *before = &o->graph->before;
	for (uint32_t i = before->start[t]; i < before->start[t + 1]; i++)
		if (--o->n_unplaced[before->tasks[i]] == 0)
			add_ready(o, before->tasks[i]);
}

static void take_start(backward_scheduler *o)
{
	uint32_t t = (uint32_t)-sw_heap_pop(&o->starts).node;
	o->kernels_s = fmax(o->kernels_s, o->earliest_s[t]);
	place(o, t);
}

static void take_done(backward_scheduler *o)
{
	uint32_t t = (uint32_t)sw_heap_pop(&o->dones).node, start = o->graph->tasks[t].partner;
	o->collectives_s = fmax(o->kernels_s, o->collectives_s) + o->graph->tasks[start].seconds;
	o->earliest_s[start] = o->collectives_s;
	place(o, t);
}

static void take_kernel(backward_scheduler *o)
{
	uint32_t t = (uint32_t)sw_heap_pop(&o->kernels).node;
	const sw_schedule_task *task = &o->graph->tasks[t];
	if (task->kind == SW_TASK_BLOCKING)
		o->kernels_s = fmax(o->kernels_s, o->collectives_s);
	o->kernels_s += task->seconds;
	if (task->kind == SW_TASK_BLOCKING || task->collective_s > 0)
		o->collectives_s = fmax(o->collectives_s, o->kernels_s);
	o->order[--o->left] = t;
	place(o, t);
}

/* Take the ready task of the highest priority; false if the ready list is empty. */
static bool take_one(backward_scheduler *o)
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

uint32_t *sw_order_backward(const sw_tasks *graph, const sw_schedule_limits *limits,
                            sw_arena *arena, uint32_t *n)
{
	backward_scheduler o = {.graph = graph,
	                        .n_unplaced = SW_NEW_N(arena, uint32_t, graph->n + 1)};
	o.order = sw_order_program(graph, limits, arena, n);
	o.left = *n;
	o.earliest_s = SW_NEW_N(arena, double, graph->n + 1);
	for (uint32_t t = 0; t < graph->n; t++)
		o.n_unplaced[t] = graph->after.start[t + 1] - graph->after.start[t];
	for (uint32_t t = 0; t < graph->n; t++)
		if (o.n_unplaced[t] == 0)
			add_ready(&o, t);
	while (take_one(&o))
		;
	sw_vec_clear(&o.kernels);
	sw_vec_clear(&o.dones);
	sw_vec_clear(&o.starts);
	return o.order;
}
