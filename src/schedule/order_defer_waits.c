/*
 * An order without needless waits: tasks run forwards in the given order, but a done whose
 * collective is still in flight is deferred, and with it all that needs its results; the other
 * ready tasks pass it until the collective has landed or nothing else can run.
 */
#include <math.h>

#include "base/heap.h"
#include "schedule/internal.h"

typedef struct deferring_scheduler {
	const sw_tasks *graph;
	/* per task: predecessors that have not run; its rank in the given order */
	uint32_t *n_unrun, *rank;
	/* per task that has run: when it ended; of a start, when its collective did */
	double *landed_s;
	sw_streams at;
	sw_heap ready, starts; /* the ready lists of kernels and of starts, by rank */
	sw_heap in_flight;     /* deferred dones, by the end of their collective */
	const uint32_t *given;
	uint32_t *order, n_order;
} deferring_scheduler;

static void run(deferring_scheduler *s, uint32_t t)
{
	const sw_task_list *after = &s->graph->after;
	const sw_schedule_task *task = &s->graph->tasks[t];
	double landed_s = task->kind == SW_TASK_DONE ? s->landed_s[task->partner] : 0;
	s->landed_s[t] = sw_streams_run(&s->at, task, landed_s).end_s;
	s->order[s->n_order++] = t;
	for (uint32_t i = after->start[t]; i < after->start[t + 1]; i++)
		if (--s->n_unrun[after->tasks[i]] == 0)
			sw_heap_push(&s->ready, s->rank[after->tasks[i]],
			             (int32_t)s->rank[after->tasks[i]]);
}

/* Begin ready collectives until the stream of collectives is busy up to `until_s`. */
static void fill_stream(deferring_scheduler *s, double until_s)
{
	while (s->starts.len && s->at.collectives_s < until_s)
		run(s, s->given[sw_heap_pop(&s->starts).node]);
}

static void run_next(deferring_scheduler *s)
{
	int32_t rank = sw_heap_pop(&s->ready).node;
	uint32_t t = s->given[rank];
	const sw_schedule_task *task = &s->graph->tasks[t];
	if (task->kind == SW_TASK_START)
		sw_heap_push(&s->starts, rank, rank);
	else if (task->kind == SW_TASK_DONE && s->landed_s[task->partner] > s->at.kernels_s)
		sw_heap_push(&s->in_flight, s->landed_s[task->partner], rank);
	else if (task->kind == SW_TASK_KERNEL) {
		fill_stream(s, s->at.kernels_s + fmax(task->seconds - task->collective_s, 0));
		run(s, t);
	} else {
		run(s, t);
	}
}

/* Nothing else is ready: begin a collective, or wait until one has landed. */
static void wait(deferring_scheduler *s)
{
	double landed_s = s->in_flight.len ? s->in_flight.data[0].weight : INFINITY;
	if (s->starts.len && s->at.collectives_s < landed_s)
		run(s, s->given[sw_heap_pop(&s->starts).node]);
	else
		s->at.kernels_s = fmax(s->at.kernels_s, landed_s);
}

static void make_landed_ready(deferring_scheduler *s)
{
	int32_t rank = sw_heap_pop(&s->in_flight).node;
	sw_heap_push(&s->ready, rank, rank);
}

uint32_t *sw_order_defer_waits(const sw_tasks *graph, const uint32_t *given, sw_arena *arena)
{
	deferring_scheduler s = {.graph = graph, .given = given, .at = sw_streams_of(graph, 1)};
	s.n_unrun = SW_NEW_N(arena, uint32_t, graph->n + 1);
	s.rank = SW_NEW_N(arena, uint32_t, graph->n + 1);
	s.order = SW_NEW_N(arena, uint32_t, graph->n + 1);
	s.landed_s = SW_NEW_N(arena, double, graph->n + 1);
	for (uint32_t i = 0; i < graph->n; i++) {
		s.rank[given[i]] = i;
		s.n_unrun[i] = graph->before.start[i + 1] - graph->before.start[i];
	}
	for (uint32_t i = 0; i < graph->n; i++)
		if (s.n_unrun[given[i]] == 0)
			sw_heap_push(&s.ready, i, (int32_t)i);
	while (s.ready.len || s.starts.len || s.in_flight.len) {
		if (s.ready.len == 0)
			wait(&s);
		while (s.in_flight.len && s.in_flight.data[0].weight <= s.at.kernels_s)
			make_landed_ready(&s);
		if (s.ready.len)
			run_next(&s);
	}
	sw_vec_clear(&s.ready);
	sw_vec_clear(&s.starts);
	sw_vec_clear(&s.in_flight);
	return s.order;
}
