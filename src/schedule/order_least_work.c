/*
 * Orders of kernels by list scheduling in which collectives have priorities: again and again the
 * scheduler takes a collective, and runs the tasks that it needs, in program order. It takes the
 * collective that needs the least work before it can start (least work: the stream of collectives
 * is idle no longer than it must be), or the least work for each second that it occupies its stream
 * (ratio: small collectives do not delay a large one). Kernels that no collective needs (updates of
 * parameters whose gradients are reduced) come last, so that kernels are left to run beside the
 * last collectives.
 *
 * These are greedy rules for a flow shop of two machines (Johnson 1954 puts jobs first that take
 * the first machine the shortest time), in which jobs share their first operations. The memory of
 * an order is not considered.
 *
 * The work before a collective only decreases, and by no more than the work placed meanwhile: a
 * collective that was looked at once is passed over for as long as that can't make it the next one.
 * The lookahead ends after lookahead_edges edges per task; from then on collectives are taken in
 * program order.
 */
#include <float.h>
#include <math.h>

#include "schedule/internal.h"

/* The fields of a task that a visit reads, side by side. */
typedef struct work_task {
	double seconds;
	uint32_t mark;       /* the last visit that reached it; PLACED: it is in the order */
	uint32_t begin, end; /* its predecessors, in `before` */
} work_task;

#define PLACED UINT32_MAX

typedef struct work_start {
	uint32_t task;
	/* lower bound: its remaining work and the work placed by then come to at least this */
	double min_work_s;
} work_start;

typedef struct work_scheduler {
	bool per_second;
	const sw_schedule_task *given;
	work_task *tasks;
	uint32_t *before; /* per task its predecessors that are not placed, among others that are */
	uint32_t visit;
	int64_t edges_left;
	double placed_s;    /* seconds of all tasks placed */
	work_start *starts; /* in the program's order */
	uint32_t n_starts;
	uint32_t from; /* all starts before this index are placed */
	uint32_t *pending, n_pending;
	SW_VEC(uint32_t) needed; /* unplaced predecessors of the collective taken */
	uint32_t *order, n_order;
} work_scheduler;

static bool is_placed(const work_scheduler *f, uint32_t t)
{
	return f->tasks[t].mark == PLACED;
}

static void reach(work_scheduler *f, uint32_t t)
{
	if (f->tasks[t].mark >= f->visit)
		return;
	f->tasks[t].mark = f->visit;
	f->pending[f->n_pending++] = t;
}

/* Reach the unplaced predecessors of a task; placed ones are removed from its list. */
static void reach_before(work_scheduler *f, work_task *task)
{
	uint32_t end = task->begin;
	for (uint32_t i = task->begin; i < task->end; i++) {
		uint32_t t = f->before[i];
		if (is_placed(f, t))
			continue;
		f->before[end++] = t;
		reach(f, t);
	}
	task->end = end;
}

/* Return the seconds of unplaced tasks that must run before the start; the search stops once they
 * exceed `max_s`. */
static double work_before(work_scheduler *f, uint32_t start, double max_s)
{
	double seconds = 0;
	f->visit++;
	f->n_pending = 0;
	for (uint32_t at = start;; at = f->pending[--f->n_pending]) {
		seconds += at == start ? 0 : f->tasks[at].seconds;
		f->edges_left -= f->tasks[at].end - f->tasks[at].begin + 1;
		reach_before(f, &f->tasks[at]);
		if (f->n_pending == 0 || seconds > max_s)
			return seconds;
	}
}

/* Return the collective of the highest priority, of equal ones the first in program order;
 * SW_NO_TASK: all are placed. */
static uint32_t next_start(work_scheduler *f)
{
	uint32_t next = SW_NO_TASK;
	double lowest = INFINITY;
	while (f->from < f->n_starts && is_placed(f, f->starts[f->from].task))
		f->from++;
	for (uint32_t i = f->from; i < f->n_starts && lowest > 0; i++) {
		work_start *start = &f->starts[i];
		double weight = f->per_second ? fmax(f->tasks[start->task].seconds, DBL_MIN) : 1;
		if (is_placed(f, start->task) || start->min_work_s - f->placed_s >= lowest * weight)
			continue;
		if (f->edges_left <= 0)
			return next != SW_NO_TASK ? next : start->task;
		double work_s = work_before(f, start->task, lowest * weight);
		start->min_work_s = work_s + f->placed_s;
		if (work_s < lowest * weight || next == SW_NO_TASK) {
			lowest = work_s / weight;
			next = start->task;
		}
	}
	return next;
}

static void place(work_scheduler *f, uint32_t t)
{
	f->tasks[t].mark = PLACED;
	f->placed_s += f->tasks[t].seconds;
	if (sw_task_computes(&f->given[t]))
		f->order[f->n_order++] = t;
}

/* Place the start after all that it needs. */
static void take(work_scheduler *f, uint32_t start)
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

static void work_scheduler_init(work_scheduler *f, const sw_tasks *graph,
                                const sw_schedule_limits *limits, sw_arena *arena)
{
	const sw_task_list *before = &graph->before;
	f->given = graph->tasks;
	f->tasks = SW_NEW_N(arena, work_task, graph->n + 1);
	f->starts = SW_NEW_N(arena, work_start, graph->n_starts + 1);
	f->before =
		sw_arena_copy(arena, before->tasks, sizeof(*f->before) * before->start[graph->n]);
	f->pending = SW_NEW_N(arena, uint32_t, graph->n + 1);
	f->order = SW_NEW_N(arena, uint32_t, graph->n + 1);
	f->edges_left = (int64_t)(limits->lookahead_edges * (double)graph->n);
	for (uint32_t t = 0; t < graph->n; t++) {
		f->tasks[t] = (work_task){.seconds = graph->tasks[t].seconds,
		                          .begin = before->start[t],
		                          .end = before->start[t + 1]};
		if (graph->tasks[t].kind == SW_TASK_START)
			f->starts[f->n_starts++] = (work_start){.task = t};
	}
}

static uint32_t *order_by_work(const sw_tasks *graph, bool per_second,
                               const sw_schedule_limits *limits, sw_arena *arena, uint32_t *n)
{
	work_scheduler f = {.per_second = per_second};
	work_scheduler_init(&f, graph, limits, arena);
	for (uint32_t start; (start = next_start(&f)) != SW_NO_TASK;)
		take(&f, start);
	for (uint32_t t = 0; t < graph->n; t++)
		if (!is_placed(&f, t))
			place(&f, t);
	*n = f.n_order;
	sw_vec_clear(&f.needed);
	return f.order;
}

uint32_t *sw_order_least_work(const sw_tasks *graph, const sw_schedule_limits *limits,
                              sw_arena *arena, uint32_t *n)
{
	return order_by_work(graph, false, limits, arena, n);
}

uint32_t *sw_order_least_work_ratio(const sw_tasks *graph, const sw_schedule_limits *limits,
                                    sw_arena *arena, uint32_t *n)
{
	return order_by_work(graph, true, limits, arena, n);
}
