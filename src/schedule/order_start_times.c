/*
 * The order of kernels that lets every collective begin when it could if nothing else had to run.
 * Collectives are taken one after the other, and what each needs is run, in the program's order.
 * First those alone that make less of what they are given, by the longest way of kernels and
 * collectives to them: so the gradient of a weight is made, and its sum begun, as soon as what it
 * is made from is there, wherever the program has it (HLO that is listed by its outputs has such at
 * the end, behind the whole backward pass). On the clock of that order the others (weights that are
 * gathered, which could all begin at once) are taken by when they have to begin so that each has
 * its time on the stream before it is needed. Kernels that no collective needs come last. What the
 * order asks of memory is not looked at.
 *
 * Where memory is short that order may hold too much. DUE stays as near to the program's as it can:
 * what reads a sum is run no sooner than that has landed, what leads to a gather no later than that
 * has to begin, and nothing else moves. That is mostly what makes of a shard what is gathered and
 * of a sum what is kept: it holds hardly more than the program's order, in which nothing could come
 * between.
 */
#include <math.h>
#include <stdlib.h>

#include "schedule/internal.h"

/* What is needed at some time has so many times its seconds before; more where sums and gathers,
 * which share the stream, are looked at apart. */
#define AHEAD_EARLY 1.25
#define AHEAD_DUE 1.5
#define AHEAD_BARELY 1

typedef struct early {
	double seconds; /* the clock at which it is taken */
	uint32_t task;
} early;

static int compare_early(const void *a, const void *b)
{
	const early *x = a, *y = b;
	if (x->seconds != y->seconds)
		return x->seconds < y->seconds ? -1 : 1;
	return (x->task > y->task) - (x->task < y->task);
}

static bool makes_less(const sw_tasks *graph, uint32_t start)
{
	const sw_op *op = sw_op_at(graph->program, graph->tasks[start].op);
	int64_t more = 0;
	for (uint32_t r = 0; r < op->n_results; r++)
		more += sw_shape_bytes(sw_value_shape(graph->program, op->first_result + r));
	for (uint32_t i = 0; i < op->n_operands; i++)
		more -= sw_shape_bytes(sw_value_shape(graph->program, op->operands[i]));
	return op->opcode == SW_OP_ALL_REDUCE || more < 0;
}

/* ---- taking ----------------------------------------------------------------------------- */

typedef struct taker {
	const sw_tasks *graph;
	bool *seen;
	uint32_t *needed, n_needed; /* of one task; those that are looked at next among them */
	uint32_t *order, n_order;
} taker;

static void need(taker *t, uint32_t task)
{
	if (!t->seen[task])
		t->needed[t->n_needed++] = task;
	t->seen[task] = true;
}

/* The task, and all that it needs. */
static void take(taker *t, uint32_t task)
{
	const sw_task_list *before = &t->graph->before;
	t->n_needed = 0;
	need(t, task);
	for (uint32_t i = 0; i < t->n_needed; i++) {
		uint32_t at = t->needed[i];
		if (t->graph->tasks[at].kind == SW_TASK_DONE)
			need(t, t->graph->tasks[at].partner);
		for (uint32_t k = before->start[at]; k < before->start[at + 1]; k++)
			need(t, before->tasks[k]);
	}
	qsort(t->needed, t->n_needed, sizeof(*t->needed), sw_compare_u32);
	for (uint32_t i = 0; i < t->n_needed; i++)
		if (sw_task_computes(&t->graph->tasks[t->needed[i]]))
			t->order[t->n_order++] = t->needed[i];
}

static uint32_t *take_all(const sw_tasks *graph, early *list, uint32_t n_listed, sw_arena *arena,
                          uint32_t *n)
{
	taker t = {.graph = graph,
	           .seen = SW_NEW_N(arena, bool, graph->n + 1),
	           .needed = SW_NEW_N(arena, uint32_t, graph->n + 1),
	           .order = SW_NEW_N(arena, uint32_t, graph->n + 1)};
	qsort(list, n_listed, sizeof(*list), compare_early);
	for (uint32_t i = 0; i < n_listed; i++)
		take(&t, list[i].task);
	for (uint32_t task = 0; task < graph->n; task++)
		take(&t, task);
	*n = t.n_order;
	return t.order;
}

/* ---- clocks ----------------------------------------------------------------------------- */

typedef struct clocks {
	const sw_tasks *graph;
	double ahead;     /* collectives are taken to last so many times what they should */
	double *way_s;    /* per task: the longest way to it, of kernels and collectives */
	double *begins_s; /* per kernel: in the order of sums */
	early *kernels;   /* by their ways; seconds: the ways */
	/* [kernel of that list]: when the first of it and those behind it begins */
	double *least_s;
	uint32_t n;
} clocks;

static void find_ways(clocks *c)
{
	const sw_tasks *graph = c->graph;
	for (uint32_t t = 0; t < graph->n; t++) {
		const sw_task *task = &graph->tasks[t];
		bool ends = task->kind == SW_TASK_DONE;
		c->way_s[t] =
			ends ? c->way_s[task->partner] + graph->tasks[task->partner].seconds : 0;
		for (uint32_t i = graph->before.start[t]; i < graph->before.start[t + 1]; i++) {
			uint32_t from = graph->before.tasks[i];
			c->way_s[t] =
				fmax(c->way_s[t], c->way_s[from] + graph->tasks[from].seconds);
		}
	}
}

static void set_clock(clocks *c, const uint32_t *order, uint32_t n)
{
	double clock_s = 0;
	c->n = n;
	for (uint32_t k = 0; k < n; k++) {
		c->begins_s[order[k]] = clock_s;
		c->kernels[k] = (early){c->way_s[order[k]], order[k]};
		clock_s += c->graph->tasks[order[k]].seconds;
	}
	qsort(c->kernels, n, sizeof(*c->kernels), compare_early);
	c->least_s[n] = clock_s;
	for (uint32_t k = n; k-- > 0;)
		c->least_s[k] = fmin(c->least_s[k + 1], c->begins_s[c->kernels[k].task]);
}

/* When the order comes to what has so long a way: what has a short one is not held back by where
 * the order happens to have it. */
static double clock_at(const clocks *c, double way_s)
{
	uint32_t low = 0, high = c->n;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (c->kernels[middle].seconds < way_s)
			low = middle + 1;
		else
			high = middle;
	}
	return c->least_s[low];
}

/* Those that make less. */
static uint32_t list_sums(const clocks *c, early *list)
{
	uint32_t n = 0;
	for (uint32_t t = 0; t < c->graph->n; t++)
		if (c->graph->tasks[t].kind == SW_TASK_START && makes_less(c->graph, t))
			list[n++] = (early){c->way_s[t], t};
	return n;
}

/* When the results of a start or done are needed; those of its readers are known. */
static double when_needed(const clocks *c, const double *needed_s, uint32_t t)
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

/* Starts that make no less, by when they have to begin. */
static uint32_t list_due(const clocks *c, early *list, sw_arena *arena)
{
	const sw_tasks *graph = c->graph;
	double *needed_s = SW_NEW_N(arena, double, graph->n + 1), free_s = INFINITY;
	uint32_t n = 0;
	for (uint32_t t = graph->n; t-- > 0;) {
		if (sw_task_computes(&graph->tasks[t]))
			continue;
		needed_s[t] = when_needed(c, needed_s, t);
		if (graph->tasks[t].kind == SW_TASK_START && !makes_less(graph, t))
			list[n++] = (early){needed_s[t], t};
	}
	qsort(list, n, sizeof(*list), compare_early);
	for (uint32_t i = n; i-- > 0;) {
		uint32_t t = list[i].task;
		free_s = fmin(free_s, list[i].seconds) - c->ahead * graph->tasks[t].seconds;
		list[i].seconds = fmax(free_s, clock_at(c, c->way_s[t]));
	}
	return n;
}

static clocks clocks_of(const sw_tasks *graph, double ahead, sw_arena *arena)
{
	clocks c = {.graph = graph,
	            .ahead = ahead,
	            .way_s = SW_NEW_N(arena, double, graph->n + 1),
	            .begins_s = SW_NEW_N(arena, double, graph->n + 1),
	            .kernels = SW_NEW_N(arena, early, graph->n + 1),
	            .least_s = SW_NEW_N(arena, double, graph->n + 1)};
	find_ways(&c);
	return c;
}

/* These kernels on their clock, and what has to begin before them. */
static uint32_t *take_when_due(clocks *c, const uint32_t *kernels, early *list, sw_arena *arena,
                               uint32_t *n)
{
	set_clock(c, kernels, *n);
	uint32_t n_listed = list_due(c, list, arena);
	for (uint32_t k = 0; k < c->n; k++)
		list[n_listed++] = (early){c->begins_s[c->kernels[k].task], c->kernels[k].task};
	return take_all(c->graph, list, n_listed, arena, n);
}

uint32_t *sw_order_early(const sw_tasks *graph, sw_arena *arena, uint32_t *n)
{
	clocks c = clocks_of(graph, AHEAD_EARLY, arena);
	early *list = SW_NEW_N(arena, early, graph->n + 1);
	uint32_t n_listed = list_sums(&c, list);
	const uint32_t *sums = take_all(graph, list, n_listed, arena, n);
	return take_when_due(&c, sums, list, arena, n);
}

/* When a task is over, if kernels begin no sooner than their order's clock has it, and not before
 * the sums have landed that lead to them: those take turns on the stream, in the program's order.
 */
static double run_when_landed(const clocks *c, uint32_t t, const double *over_s, double *free_s,
                              double *from_s)
{
	const sw_tasks *graph = c->graph;
	const sw_task *task = &graph->tasks[t];
	*from_s = sw_task_computes(&graph->tasks[t]) ? c->begins_s[t] : 0;
	for (uint32_t i = graph->before.start[t]; i < graph->before.start[t + 1]; i++)
		*from_s = fmax(*from_s, over_s[graph->before.tasks[i]]);
	if (task->kind == SW_TASK_START && makes_less(graph, t))
		return *free_s = fmax(*free_s, *from_s) + c->ahead * task->seconds;
	return *from_s + (sw_task_computes(&graph->tasks[t]) ? task->seconds : 0);
}

/* These kernels on their clock, but what reads sums when they have landed. */
static uint32_t *take_when_landed(clocks *c, const uint32_t *kernels, early *list, sw_arena *arena,
                                  uint32_t *n)
{
	double *over_s = SW_NEW_N(arena, double, c->graph->n + 1), free_s = 0, from_s;
	uint32_t n_listed = 0;
	set_clock(c, kernels, *n);
	for (uint32_t t = 0; t < c->graph->n; t++) {
		over_s[t] = run_when_landed(c, t, over_s, &free_s, &from_s);
		if (sw_task_computes(&c->graph->tasks[t]))
			list[n_listed++] = (early){from_s, t};
	}
	return take_all(c->graph, list, n_listed, arena, n);
}

static uint32_t *order_due(const sw_tasks *graph, double ahead, sw_arena *arena, uint32_t *n)
{
	clocks c = clocks_of(graph, ahead, arena);
	early *list = SW_NEW_N(arena, early, graph->n + 1);
	const uint32_t *kept = sw_order_kept(graph, arena, n);
	const uint32_t *late = take_when_landed(&c, kept, list, arena, n);
	return take_when_due(&c, late, list, arena, n);
}

uint32_t *sw_order_due(const sw_tasks *graph, sw_arena *arena, uint32_t *n)
{
	return order_due(graph, AHEAD_DUE, arena, n);
}

uint32_t *sw_order_due_barely(const sw_tasks *graph, sw_arena *arena, uint32_t *n)
{
	return order_due(graph, AHEAD_BARELY, arena, n);
}
