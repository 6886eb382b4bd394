/*
 * Orders of kernels that feed the stream of collectives: again and again a collective is taken, and
 * what it needs is run, in the program's order. It is the one before which the least has yet to run
 * (SOON: the stream is idle no longer than it must), or the least for each second that it keeps the
 * stream busy (MUCH: no small ones that hold a large one up). Kernels that no collective needs
 * (updates of parameters whose gradients are summed) come last, so that there is something to run
 * beside the last collectives.
 *
 * These are greedy rules for a flow shop of two machines (Johnson 1954 takes first what is soon
 * through the first), where jobs share their first operations. What an order asks of memory is not
 * looked at.
 *
 * What has yet to run before a collective only becomes less, and by no more than all that is placed
 * meanwhile: one that was looked at once is passed over for as long as that can't make it the next.
 * Looking ends after so many edges per task; from then on collectives are taken in the program's
 * order.
 */
#include <float.h>
#include <math.h>

#include "schedule/internal.h"

#define EDGES_PER_TASK 100

/* Of a task, what a visit looks at, side by side. */
typedef struct feed_task {
	double seconds;
	uint32_t mark;       /* the last visit that came to it; STANDS */
	uint32_t begin, end; /* what has to be before it, in `before` */
} feed_task;

#define STANDS UINT32_MAX

typedef struct feed_start {
	uint32_t task;
	double least_s; /* no less than this, and what is placed, will stand before it does */
} feed_start;

typedef struct feeder {
	bool much;
	const sw_task *given;
	feed_task *tasks;
	uint32_t *before; /* per task those that don't stand yet, among others that do */
	uint32_t visit;
	int64_t edges_left;
	double placed_s;    /* of all that stands */
	feed_start *starts; /* in the program's order */
	uint32_t n_starts;
	uint32_t from; /* no start before it is left */
	uint32_t *pending, n_pending;
	SW_VEC(uint32_t) needed; /* of the collective that is taken */
	uint32_t *order, n_order;
} feeder;

static bool stands(const feeder *f, uint32_t t)
{
	return f->tasks[t].mark == STANDS;
}

static void reach(feeder *f, uint32_t t)
{
	if (f->tasks[t].mark >= f->visit)
		return;
	f->tasks[t].mark = f->visit;
	f->pending[f->n_pending++] = t;
}

/* What stands by now is not looked at again. */
static void reach_before(feeder *f, feed_task *task)
{
	uint32_t end = task->begin;
	for (uint32_t i = task->begin; i < task->end; i++) {
		uint32_t t = f->before[i];
		if (stands(f, t))
			continue;
		f->before[end++] = t;
		reach(f, t);
	}
	task->end = end;
}

/* Seconds of all that has yet to run before the start can; not followed beyond `most_s`. */
static double work_before(feeder *f, uint32_t start, double most_s)
{
	double seconds = 0;
	f->visit++;
	f->n_pending = 0;
	for (uint32_t at = start;; at = f->pending[--f->n_pending]) {
		seconds += at == start ? 0 : f->tasks[at].seconds;
		f->edges_left -= f->tasks[at].end - f->tasks[at].begin + 1;
		reach_before(f, &f->tasks[at]);
		if (f->n_pending == 0 || seconds > most_s)
			return seconds;
	}
}

/* The next collective; SW_NO_TASK: all stand. Of equal ones the first of the program. */
static uint32_t next_start(feeder *f)
{
	uint32_t next = SW_NO_TASK;
	double least = INFINITY;
	while (f->from < f->n_starts && stands(f, f->starts[f->from].task))
		f->from++;
	for (uint32_t i = f->from; i < f->n_starts && least > 0; i++) {
		feed_start *start = &f->starts[i];
		double worth = f->much ? fmax(f->tasks[start->task].seconds, DBL_MIN) : 1;
		if (stands(f, start->task) || start->least_s - f->placed_s >= least * worth)
			continue;
		if (f->edges_left <= 0)
			return next != SW_NO_TASK ? next : start->task;
		double work_s = work_before(f, start->task, least * worth);
		start->least_s = work_s + f->placed_s;
		if (work_s < least * worth || next == SW_NO_TASK) {
			least = work_s / worth;
			next = start->task;
		}
	}
	return next;
}

static void place(feeder *f, uint32_t t)
{
	f->tasks[t].mark = STANDS;
	f->placed_s += f->tasks[t].seconds;
	if (sw_task_computes(&f->given[t]))
		f->order[f->n_order++] = t;
}

/* All that the start needs, and the start. */
static void take(feeder *f, uint32_t start)
{
	f->visit++;
	f->needed.len = 0;
	f->n_pending = 0;
	reach(f, start);
	while (f->n_pending) {
		uint32_t t = f->pending[--f->n_pending];
		sw_vec_push(&f->needed, t);
		reach_before(f, &f->tasks[t]);
	}
	qsort(f->needed.data, f->needed.len, sizeof(uint32_t), sw_compare_u32);
	for (size_t i = 0; i < f->needed.len; i++)
		place(f, f->needed.data[i]);
}

static void feeder_init(feeder *f, const sw_tasks *graph, sw_arena *arena)
{
	const sw_task_list *before = &graph->before;
	f->given = graph->tasks;
	f->tasks = SW_NEW_N(arena, feed_task, graph->n + 1);
	f->starts = SW_NEW_N(arena, feed_start, graph->n_starts + 1);
	f->before =
		sw_arena_copy(arena, before->tasks, sizeof(*f->before) * before->start[graph->n]);
	f->pending = SW_NEW_N(arena, uint32_t, graph->n + 1);
	f->order = SW_NEW_N(arena, uint32_t, graph->n + 1);
	f->edges_left = EDGES_PER_TASK * (int64_t)graph->n;
	for (uint32_t t = 0; t < graph->n; t++) {
		f->tasks[t] = (feed_task){.seconds = graph->tasks[t].seconds,
		                          .begin = before->start[t],
		                          .end = before->start[t + 1]};
		if (graph->tasks[t].kind == SW_TASK_START)
			f->starts[f->n_starts++] = (feed_start){.task = t};
	}
}

static uint32_t *feed(const sw_tasks *graph, bool much, sw_arena *arena, uint32_t *n)
{
	feeder f = {.much = much};
	feeder_init(&f, graph, arena);
	for (uint32_t start; (start = next_start(&f)) != SW_NO_TASK;)
		take(&f, start);
	for (uint32_t t = 0; t < graph->n; t++)
		if (!stands(&f, t))
			place(&f, t);
	*n = f.n_order;
	sw_vec_clear(&f.needed);
	return f.order;
}

uint32_t *sw_order_feed_soon(const sw_tasks *graph, sw_arena *arena, uint32_t *n)
{
	return feed(graph, false, arena, n);
}

uint32_t *sw_order_feed_much(const sw_tasks *graph, sw_arena *arena, uint32_t *n)
{
	return feed(graph, true, arena, n);
}
