/*
 * What no order of the tasks is quicker than, with all the memory there is.
 *
 * The HEAD of a task is a time before which it can't begin: the kernels that have to stand before
 * it run one after the other, and so do the collectives. Its TAIL is the same seen from the end. A
 * stream with heads and tails is the one-machine problem, whose preemptive relaxation Jackson's
 * rule solves: of what has come, what has the longest tail (Carlier 1982, "The one-machine
 * sequencing problem").
 */
#include <math.h>

#include "base/heap.h"
#include "schedule/internal.h"

/* ---- heads, and tails as heads of the reversed graph ------------------------------------ */

typedef struct walk {
	const sw_tasks *graph;
	const sw_task_list *before; /* in the direction of the walk */
	sw_task_kind first, second; /* halves of a collective, as they are met */
	double *head;               /* per task */
	uint32_t *sorted, n;        /* those that have a head, by it */
	uint32_t *mark;             /* per task: the last one that it is an ancestor of, + 1 */
	SW_VEC(uint32_t) pending;
} walk;

static void visit(walk *w, uint32_t t, uint32_t mark)
{
	for (uint32_t i = w->before->start[t]; i < w->before->start[t + 1]; i++) {
		uint32_t a = w->before->tasks[i];
		if (w->mark[a] != mark)
			sw_vec_push(&w->pending, a);
		w->mark[a] = mark;
	}
}

static void mark_ancestors(walk *w, uint32_t t)
{
	visit(w, t, t + 1);
	while (w->pending.len)
		visit(w, w->pending.data[--w->pending.len], t + 1);
}

static double kernel_s(const sw_task *task)
{
	return sw_task_computes(task) ? task->seconds : 0;
}

/* Of a half the whole collective. */
static double collective_s(const sw_tasks *graph, uint32_t t)
{
	const sw_task *task = &graph->tasks[t];
	switch (task->kind) {
	case SW_TASK_KERNEL:
		return task->collective_s;
	case SW_TASK_DONE:
		return graph->tasks[task->partner].seconds;
	default:
		return task->seconds;
	}
}

/* Is over before what is being looked at can begin: of collectives those whose later half stands
 * before it too. */
static double landed_s(const walk *w, uint32_t t, uint32_t mark)
{
	const sw_task *task = &w->graph->tasks[t];
	bool under_way = task->kind == w->first && w->mark[task->partner] != mark;
	return under_way || task->kind == w->second ? 0 : collective_s(w->graph, t);
}

static double find_head(walk *w, uint32_t t)
{
	const sw_task *task = &w->graph->tasks[t];
	double kernels_s = 0, collectives_s = 0;
	mark_ancestors(w, t);
	for (uint32_t i = 0; i < w->n; i++) {
		uint32_t a = w->sorted[i];
		if (w->mark[a] != t + 1)
			continue;
		double busy_s = landed_s(w, a, t + 1);
		kernels_s = fmax(kernels_s, w->head[a]) + kernel_s(&w->graph->tasks[a]);
		collectives_s =
			busy_s > 0 ? fmax(collectives_s, w->head[a]) + busy_s : collectives_s;
	}
	double own_s =
		task->kind == w->second ? w->head[task->partner] + collective_s(w->graph, t) : 0;
	return fmax(own_s, fmax(kernels_s, collectives_s));
}

static void add_head(walk *w, uint32_t t)
{
	uint32_t at = w->n++;
	for (; at > 0 && w->head[w->sorted[at - 1]] > w->head[t]; at--)
		w->sorted[at] = w->sorted[at - 1];
	w->sorted[at] = t;
}

static double *find_heads(const sw_tasks *graph, bool reversed, sw_arena *arena)
{
	walk w = {.graph = graph,
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

typedef struct job {
	double head_s, seconds, tail_s;
} job;

static int compare_jobs(const void *a, const void *b)
{
	const job *x = a, *y = b;
	return (x->head_s > y->head_s) - (x->head_s < y->head_s);
}

/* Runs what has come until `until_s`; returns when it stopped, and raises *most to what had to
 * follow what it finished. */
static double run_until(job *jobs, sw_heap *come, double at_s, double until_s, double *most)
{
	while (come->len && at_s < until_s) {
		job *j = &jobs[come->data[0].node];
		double ran_s = fmin(j->seconds, until_s - at_s);
		at_s += ran_s;
		j->seconds -= ran_s;
		if (j->seconds > 0)
			return until_s;
		*most = fmax(*most, at_s + j->tail_s);
		sw_heap_pop(come);
	}
	return at_s;
}

static double one_stream(job *jobs, size_t n)
{
	sw_heap come = {0};
	double at_s = 0, most = 0;
	qsort(jobs, n, sizeof(*jobs), compare_jobs);
	for (size_t i = 0; i < n; i++) {
		at_s = fmax(run_until(jobs, &come, at_s, jobs[i].head_s, &most), jobs[i].head_s);
		sw_heap_push(&come, -jobs[i].tail_s, (int32_t)i);
	}
	run_until(jobs, &come, at_s, INFINITY, &most);
	sw_vec_clear(&come);
	return most;
}

double sw_order_bound(const sw_tasks *graph, sw_arena *arena)
{
	const double *head = find_heads(graph, false, arena),
		     *tail = find_heads(graph, true, arena);
	job *kernels = SW_NEW_N(arena, job, graph->n + 1),
	    *collectives = SW_NEW_N(arena, job, graph->n + 1);
	size_t n_kernels = 0, n_collectives = 0;
	for (uint32_t t = 0; t < graph->n; t++) {
		const sw_task *task = &graph->tasks[t];
		double rest_s = task->kind == SW_TASK_START ? tail[task->partner] : tail[t];
		if (kernel_s(task) > 0)
			kernels[n_kernels++] = (job){head[t], kernel_s(task), rest_s};
		if (task->kind != SW_TASK_DONE && collective_s(graph, t) > 0)
			collectives[n_collectives++] =
				(job){head[t], collective_s(graph, t), rest_s};
	}
	return fmax(one_stream(kernels, n_kernels), one_stream(collectives, n_collectives));
}
