/*
 * An order without needless waits: tasks run forward in the order that is given, but a done whose
 * collective is still under way, and with it all that needs its results, lets the others pass,
 * until it has landed or nothing else can run.
 */
#include <math.h>

#include "base/heap.h"
#include "schedule/internal.h"

typedef struct slipper {
	const sw_tasks *graph;
	/* per task: predecessors that have not run; its place in the order given */
	uint32_t *waits, *rank;
	/* per task that has run: when it was over; of a start, its collective */
	double *landed_s;
	sw_streams at;
	sw_heap ready, starts; /* kernels, and starts, that can run; by rank */
	sw_heap under_way;     /* dones, by when they land */
	const uint32_t *given;
	uint32_t *order, n_order;
} slipper;

static void run(slipper *s, uint32_t t)
{
	const sw_task_list *after = &s->graph->after;
	const sw_task *task = &s->graph->tasks[t];
	double landed_s = task->kind == SW_TASK_DONE ? s->landed_s[task->partner] : 0;
	s->landed_s[t] = sw_streams_run(&s->at, task, landed_s).end_s;
	s->order[s->n_order++] = t;
	for (uint32_t i = after->start[t]; i < after->start[t + 1]; i++)
		if (--s->waits[after->tasks[i]] == 0)
			sw_heap_push(&s->ready, s->rank[after->tasks[i]],
			             (int32_t)s->rank[after->tasks[i]]);
}

/* The stream of collectives is not left idle before then. */
static void begin_some(slipper *s, double until_s)
{
	while (s->starts.len && s->at.collectives_s < until_s)
		run(s, s->given[sw_heap_pop(&s->starts).node]);
}

static void run_next(slipper *s)
{
	int32_t rank = sw_heap_pop(&s->ready).node;
	uint32_t t = s->given[rank];
	const sw_task *task = &s->graph->tasks[t];
	if (task->kind == SW_TASK_START)
		sw_heap_push(&s->starts, rank, rank);
	else if (task->kind == SW_TASK_DONE && s->landed_s[task->partner] > s->at.kernels_s)
		sw_heap_push(&s->under_way, s->landed_s[task->partner], rank);
	else if (task->kind == SW_TASK_KERNEL) {
		begin_some(s, s->at.kernels_s + fmax(task->seconds - task->collective_s, 0));
		run(s, t);
	} else {
		run(s, t);
	}
}

/* Until something lands, or can begin. */
static void wait(slipper *s)
{
	double landed_s = s->under_way.len ? s->under_way.data[0].weight : INFINITY;
	if (s->starts.len && s->at.collectives_s < landed_s)
		run(s, s->given[sw_heap_pop(&s->starts).node]);
	else
		s->at.kernels_s = fmax(s->at.kernels_s, landed_s);
}

static void take_landed(slipper *s)
{
	int32_t rank = sw_heap_pop(&s->under_way).node;
	sw_heap_push(&s->ready, rank, rank);
}

uint32_t *sw_order_slip(const sw_tasks *graph, const uint32_t *given, sw_arena *arena)
{
	slipper s = {.graph = graph, .given = given, .at = sw_streams_of(graph, 1)};
	s.waits = SW_NEW_N(arena, uint32_t, graph->n + 1);
	s.rank = SW_NEW_N(arena, uint32_t, graph->n + 1);
	s.order = SW_NEW_N(arena, uint32_t, graph->n + 1);
	s.landed_s = SW_NEW_N(arena, double, graph->n + 1);
	for (uint32_t i = 0; i < graph->n; i++) {
		s.rank[given[i]] = i;
		s.waits[i] = graph->before.start[i + 1] - graph->before.start[i];
	}
	for (uint32_t i = 0; i < graph->n; i++)
		if (s.waits[given[i]] == 0)
			sw_heap_push(&s.ready, i, (int32_t)i);
	while (s.ready.len || s.starts.len || s.under_way.len) {
		if (s.ready.len == 0)
			wait(&s);
		while (s.under_way.len && s.under_way.data[0].weight <= s.at.kernels_s)
			take_landed(&s);
		if (s.ready.len)
			run_next(&s);
	}
	sw_vec_clear(&s.ready);
	sw_vec_clear(&s.starts);
	sw_vec_clear(&s.under_way);
	return s.order;
}
