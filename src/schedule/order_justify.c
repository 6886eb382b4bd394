/*
 * Better orders from a given one by forward-backward improvement (justification: Li and Willis
 * 1992, Valls, Ballestin and Quintanilla 2005, for project scheduling with scarce resources).
 *
 * A PASS schedules all tasks by lists on both streams: whenever a stream is free, it runs the ready
 * task of the highest priority. A backward pass begins at the end: it runs first whatever ended
 * last, so that every task gets the latest begin that its streams leave it. A forward pass then
 * runs first whatever has the earliest of these. So a kernel waits for its turn until something
 * really needs it, however early its operands are there, and a collective that holds up kernels
 * goes before one that does not. No pass knows of memory: the caller looks at what the order holds,
 * and insert_collectives.c can place starts and dones anew between its kernels.
 */
#include <math.h>

#include "base/heap.h"
#include "schedule/internal.h"

enum { KERNELS, COLLECTIVES, STREAMS };

/* Tasks of one stream whose predecessors are placed. */
typedef struct waiting_tasks {
	sw_heap later; /* by the time at which the last predecessor ends */
	sw_heap ready; /* by priority: that time has come */
	double free_s; /* when the stream is free */
} waiting_tasks;

typedef struct list_pass {
	const sw_tasks *graph;
	const sw_task_list *before, *after; /* in the direction of the pass */
	const double *priority;             /* per task: smaller goes first */
	uint32_t *n_unplaced;
	double *ready_s, *begin_s, *end_s; /* per task, from the beginning of the pass */
	waiting_tasks streams[STREAMS];
	uint32_t *placed, n_placed; /* in the order in which the pass placed them */
} list_pass;

static void place(list_pass *p, uint32_t t, double begin_s, double end_s);

/* All predecessors are placed: a done takes no stream, any other task waits for its own. */
static void make_known(list_pass *p, uint32_t t)
{
	const sw_schedule_task *task = &p->graph->tasks[t];
	if (task->kind == SW_TASK_DONE)
		place(p, t, p->ready_s[t], p->ready_s[t]);
	else
		sw_heap_push(&p->streams[task->kind == SW_TASK_START ? COLLECTIVES : KERNELS].later,
		             p->ready_s[t], (int32_t)t);
}

static void place(list_pass *p, uint32_t t, double begin_s, double end_s)
{
	p->begin_s[t] = begin_s;
	p->end_s[t] = end_s;
	p->placed[p->n_placed++] = t;
	for (uint32_t i = p->after->start[t]; i < p->after->start[t + 1]; i++) {
		uint32_t next = p->after->tasks[i];
		p->ready_s[next] = fmax(p->ready_s[next], end_s);
		if (--p->n_unplaced[next] == 0)
			make_known(p, next);
	}
}

/* Return when the stream can begin another task; INFINITY: none is known. */
static double next_begin_s(const waiting_tasks *stream)
{
	if (stream->ready.len)
		return stream->free_s;
	return stream->later.len ? fmax(stream->free_s, stream->later.data[0].weight) : INFINITY;
}

static void run_on(list_pass *p, int which, double begin_s)
{
	waiting_tasks *stream = &p->streams[which], *other = &p->streams[COLLECTIVES];
	while (stream->later.len && stream->later.data[0].weight <= begin_s) {
		int32_t t = sw_heap_pop(&stream->later).node;
		sw_heap_push(&stream->ready, p->priority[t], t);
	}
	uint32_t t = (uint32_t)sw_heap_pop(&stream->ready).node;
	const sw_schedule_task *task = &p->graph->tasks[t];
	bool both = task->kind == SW_TASK_BLOCKING || task->collective_s > 0;
	double from_s = both ? fmax(begin_s, other->free_s) : begin_s;
	stream->free_s = from_s + task->seconds;
	other->free_s = both ? stream->free_s : other->free_s;
	place(p, t, from_s, stream->free_s);
}

/* Run all tasks, from time 0 of the pass. */
static void run_pass(list_pass *p)
{
	const sw_tasks *graph = p->graph;
	p->n_placed = 0;
	for (int s = 0; s < STREAMS; s++)
		p->streams[s].free_s = 0;
	for (uint32_t t = 0; t < graph->n; t++) {
		p->ready_s[t] = 0;
		p->n_unplaced[t] = p->before->start[t + 1] - p->before->start[t];
	}
	for (uint32_t t = 0; t < graph->n; t++)
		if (p->before->start[t] == p->before->start[t + 1])
			make_known(p, t);
	for (;;) {
		double kernels_s = next_begin_s(&p->streams[KERNELS]);
		double collectives_s = next_begin_s(&p->streams[COLLECTIVES]);
		if (isinf(kernels_s) && isinf(collectives_s))
			break;
		run_on(p, kernels_s <= collectives_s ? KERNELS : COLLECTIVES,
		       fmin(kernels_s, collectives_s));
	}
}

/* ---- writing the order ------------------------------------------------------------------ */

typedef struct justified_order {
	const list_pass *pass;
	bool *written;
	uint32_t *order, n;
} justified_order;

static void write_task(justified_order *w, uint32_t t);

static void write_needed(justified_order *w, uint32_t t)
{
	const sw_task_list *before = w->pass->before;
	for (uint32_t i = before->start[t]; i < before->start[t + 1]; i++)
		write_task(w, before->tasks[i]);
}

static void write_task(justified_order *w, uint32_t t)
{
	if (w->written[t])
		return;
	w->written[t] = true;
	write_needed(w, t);
	w->order[w->n++] = t;
}

/* Return whether the start can be written now and waits for nothing: its kernels are written, and
 * the collectives that it needs have landed. */
static bool may_start(const justified_order *w, uint32_t start, double now_s)
{
	const sw_task_list *before = w->pass->before;
	for (uint32_t i = before->start[start]; i < before->start[start + 1]; i++) {
		uint32_t t = before->tasks[i];
		bool waits = w->pass->graph->tasks[t].kind == SW_TASK_DONE;
		if (waits ? w->pass->end_s[t] > now_s : !w->written[t])
			return false;
	}
	return true;
}

/* Write the kernels as the pass placed them, before each the starts that the stream of collectives
 * comes to while it runs, and dones where they are needed. */
static void write_order(const list_pass *pass, justified_order *w)
{
	const sw_tasks *graph = pass->graph;
	uint32_t next = 0; /* starts before it in `placed` are written */
	for (uint32_t i = 0; i < pass->n_placed; i++) {
		uint32_t kernel = pass->placed[i];
		if (!sw_task_computes(&graph->tasks[kernel]))
			continue;
		write_needed(w, kernel);
		for (; next < pass->n_placed; next++) {
			uint32_t t = pass->placed[next];
			if (graph->tasks[t].kind != SW_TASK_START)
				continue;
			if (pass->begin_s[t] >= pass->end_s[kernel] ||
			    !may_start(w, t, pass->begin_s[kernel]))
				break;
			write_task(w, t);
		}
		write_task(w, kernel);
	}
	for (uint32_t i = 0; i < pass->n_placed; i++)
		write_task(w, pass->placed[i]);
}

/* ---- the passes ------------------------------------------------------------------------- */

static list_pass pass_init(const sw_tasks *graph, sw_arena *arena)
{
	return (list_pass){.graph = graph,
	                   .n_unplaced = SW_NEW_N(arena, uint32_t, graph->n + 1),
	                   .ready_s = SW_NEW_N(arena, double, graph->n + 1),
	                   .begin_s = SW_NEW_N(arena, double, graph->n + 1),
	                   .end_s = SW_NEW_N(arena, double, graph->n + 1),
	                   .placed = SW_NEW_N(arena, uint32_t, graph->n + 1)};
}

uint32_t *sw_order_justify(const sw_tasks *graph, const uint32_t *given, sw_arena *arena)
{
	list_pass p = pass_init(graph, arena);
	double *priority = SW_NEW_N(arena, double, graph->n + 1);
	sw_stream_span *spans = SW_NEW_N(arena, sw_stream_span, graph->n + 1);
	justified_order w = {.pass = &p,
	                     .written = SW_NEW_N(arena, bool, graph->n + 1),
	                     .order = SW_NEW_N(arena, uint32_t, graph->n + 1)};
	sw_streams_play(graph, given, 1, spans);
	for (uint32_t t = 0; t < graph->n; t++)
		priority[t] = -spans[t].end_s;
	p.priority = priority;
	p.before = &graph->after;
	p.after = &graph->before;
	run_pass(&p);
	for (uint32_t t = 0; t < graph->n; t++)
		priority[t] = -p.end_s[t];
	p.before = &graph->before;
	p.after = &graph->after;
	run_pass(&p);
	write_order(&p, &w);
	for (int s = 0; s < STREAMS; s++) {
		sw_vec_clear(&p.streams[s].later);
		sw_vec_clear(&p.streams[s].ready);
	}
	return w.order;
}
