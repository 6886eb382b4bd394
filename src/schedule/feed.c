/*
 * Orders of kernels that feed the stream of collectives: again and again a collective is taken, and what it needs is run, in the program's
 * order. It is the one before which the least has yet to run (SOON: the stream is idle no longer than it must), or the least for each second that it
 * keeps the stream busy (MUCH: no small ones that hold a large one up). Kernels that no collective needs (updates of parameters whose gradients
 * are summed) come last, so that there is something to run beside the last collectives.
 *
 * These are greedy rules for a flow shop of two machines (Johnson 1954 takes first what is soon through the first), where jobs share their first
 * operations. What an order asks of memory is not looked at. Looking costs at most so many visits per task; from then on collectives are taken in the
 * program's order.
 */
#include <math.h>

#include "schedule/internal.h"

#define VISITS_PER_TASK 100

typedef struct feeder {
	const sw_tasks *graph;
	bool much;
	bool *stands;   /* per task */
	uint32_t *mark; /* per task: the last visit that came to it */
	uint32_t visit;
	int64_t visits_left;
	uint32_t from; /* no start before it is left */
	SW_VEC(uint32_t) pending;
	SW_VEC(uint32_t) needed; /* of the collective that is taken */
	uint32_t *order, n_order;
} feeder;

static bool is_kernel(const sw_task *task)
{
	return task->kind == SW_TASK_KERNEL || task->kind == SW_TASK_BLOCKING;
}

static void reach(feeder *f, uint32_t t)
{
	if (f->stands[t] || f->mark[t] == f->visit)
		return;
	f->mark[t] = f->visit;
	sw_vec_push(&f->pending, t);
}

/* Seconds of all that has yet to run before task t can; not followed beyond `most_s`. */
static double work_before(feeder *f, uint32_t t, double most_s)
{
	const sw_task_list *before = &f->graph->before;
	double seconds = 0;
	f->visit++;
	f->pending.len = 0;
	for (uint32_t at = t;; at = f->pending.data[--f->pending.len]) {
		seconds += at == t ? 0 : f->graph->tasks[at].seconds;
		f->visits_left--;
		for (uint32_t i = before->start[at]; i < before->start[at + 1]; i++)
			reach(f, before->tasks[i]);
		if (f->pending.len == 0 || seconds > most_s)
			return seconds;
	}
}

/* The next collective; SW_NO_TASK: all stand. Of equal ones the first of the program. */
static uint32_t next_start(feeder *f)
{
	uint32_t next = SW_NO_TASK;
	double least = INFINITY;
	while (f->from < f->graph->n &&
	       (f->stands[f->from] || f->graph->tasks[f->from].kind != SW_TASK_START))
		f->from++;
	for (uint32_t t = f->from; t < f->graph->n && least > 0; t++) {
		const sw_task *task = &f->graph->tasks[t];
		if (f->stands[t] || task->kind != SW_TASK_START)
			continue;
		if (f->visits_left <= 0)
			return next != SW_NO_TASK ? next : t;
		double worth = f->much ? task->seconds : 1;
		double price = work_before(f, t, least * worth) / worth;
		if (price < least || next == SW_NO_TASK) {
			least = price;
			next = t;
		}
	}
	return next;
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static void place(feeder *f, uint32_t t)
{
	f->stands[t] = true;
	if (is_kernel(&f->graph->tasks[t]))
		f->order[f->n_order++] = t;
}

/* All that the start needs, and the start. */
static void take(feeder *f, uint32_t start)
{
	const sw_task_list *before = &f->graph->before;
	f->visit++;
	f->needed.len = 0;
	reach(f, start);
	while (f->pending.len) {
		uint32_t t = f->pending.data[--f->pending.len];
		sw_vec_push(&f->needed, t);
		for (uint32_t i = before->start[t]; i < before->start[t + 1]; i++)
			reach(f, before->tasks[i]);
	}
	qsort(f->needed.data, f->needed.len, sizeof(uint32_t), compare_numbers);
	for (size_t i = 0; i < f->needed.len; i++)
		place(f, f->needed.data[i]);
}

static uint32_t *feed(const sw_tasks *graph, bool much, sw_arena *arena, uint32_t *n)
{
	feeder f = {.graph = graph,
	            .much = much,
	            .visits_left = VISITS_PER_TASK * (int64_t)graph->n,
	            .stands = SW_NEW_N(arena, bool, graph->n + 1),
	            .mark = SW_NEW_N(arena, uint32_t, graph->n + 1),
	            .order = SW_NEW_N(arena, uint32_t, graph->n + 1)};
	for (uint32_t start; (start = next_start(&f)) != SW_NO_TASK;) {
		f.pending.len = 0;
		take(&f, start);
	}
	for (uint32_t t = 0; t < graph->n; t++)
		if (!f.stands[t])
			place(&f, t);
	*n = f.n_order;
	sw_vec_clear(&f.pending);
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
