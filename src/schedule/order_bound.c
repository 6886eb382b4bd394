/*
 * A lower bound on the makespan of every order of the tasks, whatever memory it uses.
 *
 * The HEAD of a task is a time before which it can't begin: the kernels that must precede it run
 * one after the other, and so do the collectives. Its TAIL is the same from its end to the
 * makespan. A stream with heads and tails is the one-machine problem, whose preemptive relaxation
 * is solved by Jackson's rule: of the jobs that have arrived, run the one with the longest tail
 * (Carlier 1982, "The one-machine sequencing problem").
 */
#include <math.h>

#include "base/heap.h"
#include "schedule/internal.h"

/* ---- heads, and tails as heads of the reversed graph ------------------------------------ */

typedef struct head_search {
	const sw_tasks *graph;
	const sw_task_list *before; /* predecessors in the direction of the search */
	/* halves of a collective, in the order in which the search meets them */
	sw_task_kind first, second;
	double *head;        /* per task */
	uint32_t *sorted, n; /* the tasks whose head is known, by head */
	/* per task: 1 + the last task of which it was marked an ancestor */
	uint32_t *mark;
	SW_VEC(uint32_t) pending;
} head_search;

static void visit(head_search *w, uint32_t t, uint32_t mark)
{
	for (uint32_t i = w->before->start[t]; i < w->before->start[t + 1]; i++) {
		uint32_t a = w->before->tasks[i];
		if (w->mark[a] != mark)
			sw_vec_push(&w->pending, a);
		w->mark[a] = mark;
	}
}

static void mark_ancestors(head_search *w, uint32_t t)
{
	visit(w, t, t + 1);
	while (w->pending.len)
		visit(w, w->pending.data[--w->pending.len], t + 1);
}

static double kernel_s(const sw_schedule_task *task)
{
	return sw_task_computes(task) ? task->seconds : 0;
}

/* Return the seconds that a task occupies the stream of collectives; of a half those of its whole
 * collective. */
static double collective_s(const sw_tasks *graph, uint32_t t)
{
	const sw_schedule_task *task = &graph->tasks[t];
	switch (task->kind) {
	case SW_TASK_KERNEL:
		return task->collective_s;
	case SW_TASK_DONE:
		return graph->tasks[task->partner].seconds;
	default:
		return task->seconds;
	}
}

/* Return the seconds of collectives in ancestor t that end before the marked task begins: a
 * collective counts if its later half is an ancestor too. */
static double ended_collective_s(const head_search *w, uint32_t t, uint32_t mark)
{
	const sw_schedule_task *task = &w->graph->tasks[t];
	bool under_way = task->kind == w->first && w->mark[task->partner] != mark;
	return under_way || task->kind == w->second ? 0 : collective_s(w->graph, t);
}

static double find_head(head_search *w, uint32_t t)
{
	const sw_schedule_task *task = &w->graph->tasks[t];
	double kernels_s = 0, collectives_s = 0;
	mark_ancestors(w, t);
	for (uint32_t i = 0; i < w->n; i++) {
		uint32_t a = w->sorted[i];
		if (w->mark[a] != t + 1)
			continue;
		double busy_s = ended_collective_s(w, a, t + 1);
		kernels_s = fmax(kernels_s, w->head[a]) + kernel_s(&w->graph->tasks[a]);
		collectives_s =
			busy_s > 0 ? fmax(collectives_s, w->head[a]) + busy_s : collectives_s;
	}
	double own_s =
		task->kind == w->second ? w->head[task->partner] + collective_s(w->graph, t) : 0;
	return fmax(own_s, fmax(kernels_s, collectives_s));
}

static void add_head(head_search *w, uint32_t t)
{
	uint32_t at = w->n++;
	for (; at > 0 && w->head[w->sorted[at - 1]] > w->head[t]; at--)
		w->sorted[at] = w->sorted[at - 1];
	w->sorted[at] = t;
}

static double *find_heads(const sw_tasks *graph, bool reversed, sw_arena *arena)
{
	head_search w = {.graph = graph,
	                 .before = reversed ? &graph->after : &graph->before,
	                 .first = reversed ? SW_TASK_DONE : SW_TASK_START,
	                 .second = reversed ? SW_TASK_START : SW_TASK_DONE,
	                 .head = SW_NEW_N(arena, double, graph->n + 1),
	                 .sorted = SW_NEW_N(arena, uint32_t, graph->n + 1),
	                 .mark = SW_NEW_N(arena, uint32_t, graph->n + 1)};
	for (uint32_t i = 0; i < graph->n; i++) {
		uint32_t t = reversed ? graph->n - 1 - i : i;
		w.head[t] = find_head(&w, t);
		add_head(&w, t);
	}
	sw_vec_clear(&w.pending);
	return w.head;
}

/* ---- one stream ------------------------------------------------------------------------- */

typedef struct stream_job {
	double head_s, seconds, tail_s;
} stream_job;

static int compare_jobs(const void *a, const void *b)
{
	const stream_job *x = a, *y = b;
	return (x->head_s > y->head_s) - (x->head_s < y->head_s);
}

/* Run the jobs that have arrived until `until_s`. Returns the time at which the stream stopped, and
 * raises *makespan_s to the end of each finished job plus its tail. */
static double run_until(stream_job *jobs, sw_heap *arrived, double at_s, double until_s,
                        double *makespan_s)
{
	while (arrived->len && at_s < until_s) {
		stream_job *j = &jobs[arrived->data[0].node];
		double ran_s = fmin(j->seconds, until_s - at_s);
		at_s += ran_s;
		j->seconds -= ran_s;
		if (j->seconds > 0)
			return until_s;
		*makespan_s = fmax(*makespan_s, at_s + j->tail_s);
		sw_heap_pop(arrived);
	}
	return at_s;
}

/* Return the makespan of the preemptive relaxation of one stream. */
static double one_stream(stream_job *jobs, size_t n)
{
	sw_heap arrived = {0};
	double at_s = 0, makespan_s = 0;
	qsort(jobs, n, sizeof(*jobs), compare_jobs);
	for (size_t i = 0; i < n; i++) {
		at_s = fmax(run_until(jobs, &arrived, at_s, jobs[i].head_s, &makespan_s),
		            jobs[i].head_s);
		sw_heap_push(&arrived, -jobs[i].tail_s, (int32_t)i);
	}
	run_until(jobs, &arrived, at_s, INFINITY, &makespan_s);
	sw_vec_clear(&arrived);
	return makespan_s;
}

double sw_order_bound(const sw_tasks *graph, sw_arena *arena)
{
	const double *head = find_heads(graph, false, arena),
		     *tail = find_heads(graph, true, arena);
	stream_job *kernels = SW_NEW_N(arena, stream_job, graph->n + 1),
		   *collectives = SW_NEW_N(arena, stream_job, graph->n + 1);
	size_t n_kernels = 0, n_collectives = 0;
	for (uint32_t t = 0; t < graph->n; t++) {
		const sw_schedule_task *task = &graph->tasks[t];
		double tail_s = task->kind == SW_TASK_START ? tail[task->partner] : tail[t];
		if (kernel_s(task) > 0)
			kernels[n_kernels++] = (stream_job){head[t], kernel_s(task), tail_s};
		if (task->kind != SW_TASK_DONE && collective_s(graph, t) > 0)
			collectives[n_collectives++] =
				(stream_job){head[t], collective_s(graph, t), tail_s};
	}
	return fmax(one_stream(kernels, n_kernels), one_stream(collectives, n_collectives));
}
