/*
 * Orders of kernels by list scheduling whose priorities are earliest and latest start times.
 *
 * EARLIEST START lets every collective begin when it could if nothing else had to run. Collectives
 * are taken one after the other, and the kernels that each needs run in program order. First come
 * those alone whose results are smaller than their operands (reductions), by earliest start: the
 * length of the longest path of kernels and collectives to them. Thus a weight's gradient is
 * computed, and its reduction begun, as soon as its operands are there, wherever the program has it
 * (HLO that is listed by its outputs has many of them at the end, behind the whole backward pass).
 * On the clock of that order the other collectives (weights that are gathered, which could all
 * begin at once) are taken by latest start: the time from which each still has its lead time on the
 * stream before it is needed. Kernels that no collective needs come last. The memory of the order
 * is not considered.
 *
 * Where memory is short that order may hold too much. DEFERRED deviates from the program's order as
 * little as possible: a kernel that reads a reduction is deferred until that has ended, a kernel
 * that a gather needs runs by the gather's latest start, and nothing else moves. These are mostly
 * kernels that make the gathered value from a shard, and the kept value from a reduction: the order
 * holds hardly more than the program's, in which nothing could come between.
 */
#include <math.h>
#include <stdlib.h>

#include "schedule/internal.h"

/* True if the collective is an all-reduce, or its results are smaller than its operands. */
static bool shrinks(const sw_tasks *graph, uint32_t start)
{
	const sw_op *op = sw_op_at(graph->program, graph->tasks[start].op);
	int64_t more = 0;
	for (uint32_t r = 0; r < op->n_results; r++)
		more += sw_shape_bytes(sw_value_shape(graph->program, op->first_result + r));
	for (uint32_t i = 0; i < op->n_operands; i++)
		more -= sw_shape_bytes(sw_value_shape(graph->program, op->operands[i]));
	return op->opcode == SW_OP_ALL_REDUCE || more < 0;
}

/* ---- lists by priority ------------------------------------------------------------------ */

typedef struct priority_lister {
	const sw_tasks *graph;
	bool *seen;
	/* of one task: it and its unlisted predecessors, also the queue of the search */
	uint32_t *required, n_required;
	uint32_t *order, n_order;
} priority_lister;

static void require_task(priority_lister *t, uint32_t task)
{
	if (!t->seen[task])
		t->required[t->n_required++] = task;
	t->seen[task] = true;
}

/* List the task after all that it needs. */
static void list_task(priority_lister *t, uint32_t task)
{
	const sw_task_list *before = &t->graph->before;
	t->n_required = 0;
	require_task(t, task);
	for (uint32_t i = 0; i < t->n_required; i++) {
		uint32_t at = t->required[i];
		if (t->graph->tasks[at].kind == SW_TASK_DONE)
			require_task(t, t->graph->tasks[at].partner);
		for (uint32_t k = before->start[at]; k < before->start[at + 1]; k++)
			require_task(t, before->tasks[k]);
	}
	qsort(t->required, t->n_required, sizeof(*t->required), sw_compare_u32);
	for (uint32_t i = 0; i < t->n_required; i++)
		if (sw_task_computes(&t->graph->tasks[t->required[i]]))
			t->order[t->n_order++] = t->required[i];
}

static uint32_t *list_by_time(const sw_tasks *graph, sw_keyed *list, uint32_t n_listed,
                              sw_arena *arena, uint32_t *n)
{
	priority_lister t = {.graph = graph,
	                     .seen = SW_NEW_N(arena, bool, graph->n + 1),
	                     .required = SW_NEW_N(arena, uint32_t, graph->n + 1),
	                     .order = SW_NEW_N(arena, uint32_t, graph->n + 1)};
	qsort(list, n_listed, sizeof(*list), sw_compare_keyed);
	for (uint32_t i = 0; i < n_listed; i++)
		list_task(&t, list[i].number);
	for (uint32_t task = 0; task < graph->n; task++)
		list_task(&t, task);
	*n = t.n_order;
	return t.order;
}

/* ---- clocks ----------------------------------------------------------------------------- */

typedef struct start_clocks {
	const sw_tasks *graph;
	double lead; /* lead time of a collective, as a factor of its seconds */
	/* per task: length of the longest path to it, of kernels and collectives */
	double *path_s;
	/* per kernel: when it begins in the order on whose clock others are taken */
	double *begins_s;
	sw_keyed *kernels; /* sorted by path length, which is the key */
	/* [kernel of that list] when the first of it and those behind it begins */
	double *first_s;
	uint32_t n;
} start_clocks;

/* Find the longest path to each task. */
static void find_paths(start_clocks *c)
{
	const sw_tasks *graph = c->graph;
	for (uint32_t t = 0; t < graph->n; t++) {
		const sw_schedule_task *task = &graph->tasks[t];
		bool ends = task->kind == SW_TASK_DONE;
		c->path_s[t] =
			ends ? c->path_s[task->partner] + graph->tasks[task->partner].seconds : 0;
		for (uint32_t i = graph->before.start[t]; i < graph->before.start[t + 1]; i++) {
			uint32_t from = graph->before.tasks[i];
			c->path_s[t] =
				fmax(c->path_s[t], c->path_s[from] + graph->tasks[from].seconds);
		}
	}
}

/* Let the clock be that of this order: its kernels run one after the other. */
static void set_clock(start_clocks *c, const uint32_t *order, uint32_t n)
{
	double clock_s = 0;
	c->n = n;
	for (uint32_t k = 0; k < n; k++) {
		c->begins_s[order[k]] = clock_s;
		c->kernels[k] = (sw_keyed){c->path_s[order[k]], order[k]};
		clock_s += c->graph->tasks[order[k]].seconds;
	}
	qsort(c->kernels, n, sizeof(*c->kernels), sw_compare_keyed);
	c->first_s[n] = clock_s;
	for (uint32_t k = n; k-- > 0;)
		c->first_s[k] = fmin(c->first_s[k + 1], c->begins_s[c->kernels[k].number]);
}

/* Return when the order comes to tasks with so long a path: a task with a short path is not held
 * back by its place in the order. */
static double clock_at(const start_clocks *c, double path_s)
{
	uint32_t low = 0, high = c->n;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (c->kernels[middle].key < path_s)
			low = middle + 1;
		else
			high = middle;
	}
	return c->first_s[low];
}

/* List the reductions by earliest start. */
static uint32_t list_reductions(const start_clocks *c, sw_keyed *list)
{
	uint32_t n = 0;
	for (uint32_t t = 0; t < c->graph->n; t++)
		if (c->graph->tasks[t].kind == SW_TASK_START && shrinks(c->graph, t))
			list[n++] = (sw_keyed){c->path_s[t], t};
	return n;
}

/* Return when the results of a start or done are needed; the times of its readers are known. */
static double when_required(const start_clocks *c, const double *needed_s, uint32_t t)
{
	const sw_tasks *graph = c->graph;
	if (graph->tasks[t].kind == SW_TASK_START)
		return needed_s[graph->tasks[t].partner];
	double seconds = INFINITY;
	for (uint32_t i = graph->after.start[t]; i < graph->after.start[t + 1]; i++) {
		uint32_t next = graph->after.tasks[i];
		seconds = fmin(seconds, sw_task_computes(&graph->tasks[next])
		                                ? c->begins_s[next]
		                                : needed_s[next] - graph->tasks[next].seconds);
	}
	return seconds;
}

/* List the other starts by latest start. */
static uint32_t list_latest_starts(const start_clocks *c, sw_keyed *list, sw_arena *arena)
{
	const sw_tasks *graph = c->graph;
	double *needed_s = SW_NEW_N(arena, double, graph->n + 1), stream_s = INFINITY;
	uint32_t n = 0;
	for (uint32_t t = graph->n; t-- > 0;) {
		if (sw_task_computes(&graph->tasks[t]))
			continue;
		needed_s[t] = when_required(c, needed_s, t);
		if (graph->tasks[t].kind == SW_TASK_START && !shrinks(graph, t))
			list[n++] = (sw_keyed){needed_s[t], t};
	}
	qsort(list, n, sizeof(*list), sw_compare_keyed);
	for (uint32_t i = n; i-- > 0;) {
		uint32_t t = list[i].number;
		stream_s = fmin(stream_s, list[i].key) - c->lead * graph->tasks[t].seconds;
		list[i].key = fmax(stream_s, clock_at(c, c->path_s[t]));
	}
	return n;
}

static start_clocks start_clocks_of(const sw_tasks *graph, double lead, sw_arena *arena)
{
	start_clocks c = {.graph = graph,
	                  .lead = lead,
	                  .path_s = SW_NEW_N(arena, double, graph->n + 1),
	                  .begins_s = SW_NEW_N(arena, double, graph->n + 1),
	                  .kernels = SW_NEW_N(arena, sw_keyed, graph->n + 1),
	                  .first_s = SW_NEW_N(arena, double, graph->n + 1)};
	find_paths(&c);
	return c;
}

/* Run these kernels on their clock, and before it the starts that are due. */
static uint32_t *order_by_latest_start(start_clocks *c, const uint32_t *kernels, sw_keyed *list,
                                       sw_arena *arena, uint32_t *n)
{
	set_clock(c, kernels, *n);
	uint32_t n_listed = list_latest_starts(c, list, arena);
	for (uint32_t k = 0; k < c->n; k++)
		list[n_listed++] =
			(sw_keyed){c->begins_s[c->kernels[k].number], c->kernels[k].number};
	return list_by_time(c->graph, list, n_listed, arena, n);
}

uint32_t *sw_order_earliest_start(const sw_tasks *graph, const sw_schedule_limits *limits,
                                  sw_arena *arena, uint32_t *n)
{
	start_clocks c = start_clocks_of(graph, limits->earliest_start_lead, arena);
	sw_keyed *list = SW_NEW_N(arena, sw_keyed, graph->n + 1);
	uint32_t n_listed = list_reductions(&c, list);
	const uint32_t *order = list_by_time(graph, list, n_listed, arena, n);
	return order_by_latest_start(&c, order, list, arena, n);
}

/* Return when a task ends, if a kernel begins no sooner than on the clock of its order, and not
 * before the reductions have ended that lead to it. Reductions queue for the stream in program
 * order. */
static double run_after_reductions(const start_clocks *c, uint32_t t, const double *end_s,
                                   double *stream_s, double *from_s)
{
	const sw_tasks *graph = c->graph;
	const sw_schedule_task *task = &graph->tasks[t];
	*from_s = sw_task_computes(&graph->tasks[t]) ? c->begins_s[t] : 0;
	for (uint32_t i = graph->before.start[t]; i < graph->before.start[t + 1]; i++)
		*from_s = fmax(*from_s, end_s[graph->before.tasks[i]]);
	if (task->kind == SW_TASK_START && shrinks(graph, t))
		return *stream_s = fmax(*stream_s, *from_s) + c->lead * task->seconds;
	return *from_s + (sw_task_computes(&graph->tasks[t]) ? task->seconds : 0);
}

/* Run these kernels on their clock, but those that read reductions when these have ended. */
static uint32_t *order_after_reductions(start_clocks *c, const uint32_t *kernels, sw_keyed *list,
                                        sw_arena *arena, uint32_t *n)
{
	double *end_s = SW_NEW_N(arena, double, c->graph->n + 1), stream_s = 0, from_s;
	uint32_t n_listed = 0;
	set_clock(c, kernels, *n);
	for (uint32_t t = 0; t < c->graph->n; t++) {
		end_s[t] = run_after_reductions(c, t, end_s, &stream_s, &from_s);
		if (sw_task_computes(&c->graph->tasks[t]))
			list[n_listed++] = (sw_keyed){from_s, t};
	}
	return list_by_time(c->graph, list, n_listed, arena, n);
}

static uint32_t *order_deferred(const sw_tasks *graph, double lead,
                                const sw_schedule_limits *limits, sw_arena *arena, uint32_t *n)
{
	start_clocks c = start_clocks_of(graph, lead, arena);
	sw_keyed *list = SW_NEW_N(arena, sw_keyed, graph->n + 1);
	const uint32_t *program = sw_order_program(graph, limits, arena, n);
	const uint32_t *deferred = order_after_reductions(&c, program, list, arena, n);
	return order_by_latest_start(&c, deferred, list, arena, n);
}

uint32_t *sw_order_deferred(const sw_tasks *graph, const sw_schedule_limits *limits,
                            sw_arena *arena, uint32_t *n)
{
	return order_deferred(graph, limits->deferred_lead, limits, arena, n);
}

uint32_t *sw_order_deferred_tight(const sw_tasks *graph, const sw_schedule_limits *limits,
                                  sw_arena *arena, uint32_t *n)
{
	return order_deferred(graph, limits->deferred_tight_lead, limits, arena, n);
}
