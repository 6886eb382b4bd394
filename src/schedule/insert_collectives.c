/*
 * Where starts and dones stand between kernels whose order is settled. SLOT p is before kernel p;
 * the last slot is the end.
 *
 * Each collective has a slot from which its operands are there, and one at which its results are
 * needed. In the sweep over the slots the stream of collectives is given, whenever it is going to
 * be free before the next kernel ends, the collective whose results are needed first (earliest
 * deadline). A done stands where the results are needed, or, if another collective is all that
 * reads them, as soon as they are there.
 *
 * Memory. A collective holds its operands and its results from start to done. One that GROWS
 * (results beyond the operands that it would let go: a gather) costs least right before its use,
 * any other (a scatter) as soon as it can begin. What that comes to is the least; `spare_bytes` may
 * be used beyond it, up to `room_bytes`. A growing one is begun ahead no farther than there is room
 * for, and no earlier than its time: deadline and stream, followed back from the end with each
 * collective taking `slack` times as long as it should. Others are waited for early where operands
 * that they hold would exceed the room.
 */
#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "schedule/internal.h"

typedef struct collective {
	uint32_t start, done;
	int32_t released, needed;        /* slots */
	int32_t stands;                  /* the slot at which it costs least */
	double deadline_s, from_s;       /* on the clock of kernels without any wait */
	double result_bytes, held_bytes; /* of operands that nobody reads later */
	double landed_s;
	uint32_t waits;    /* predecessors of its start that don't stand yet */
	bool grows, feeds; /* feeds: another collective reads its results */
	bool begun, ended, counted;
} collective;

typedef struct placer {
	const sw_tasks *graph;
	const uint32_t *kernels;
	int32_t n_kernels;
	collective *all; /* in program order */
	int32_t n;
	int32_t *number; /* per task: its collective */
	int32_t *slot;   /* per kernel: its place */
	double *clock_s; /* per slot: seconds of the kernels before it */
	sw_profile profile;
	double slack;
	double room_bytes, held_bytes,
		/* held: operands of those that have not ended where they might have */
		peak_bytes;
	sw_streams streams;          /* when each is free */
	sw_heap due, growing, early; /* by deadline; by deadline; by from_s */
	SW_VEC(int32_t) flight;      /* in the order of starts */
	size_t landed;               /* of those, looked at */
	SW_VEC(int32_t) fresh;       /* released at this slot: operands count from the next on */
	uint32_t *order, n_order;
	int32_t at; /* the slot */
} placer;

/* ---- slots and deadlines ---------------------------------------------------------------- */

static const sw_task *task_at(const placer *p, uint32_t t)
{
	return &p->graph->tasks[t];
}

static void find_release(placer *p, collective *c)
{
	const sw_task_list *before = &p->graph->before;
	for (uint32_t i = before->start[c->start]; i < before->start[c->start + 1]; i++) {
		uint32_t t = before->tasks[i];
		int32_t from = task_at(p, t)->kind == SW_TASK_DONE ? p->all[p->number[t]].released
		                                                   : p->slot[t] + 1;
		c->released = SW_MAX(c->released, from);
		c->waits++;
	}
}

static void find_need(placer *p, collective *c)
{
	const sw_task_list *after = &p->graph->after;
	c->needed = p->n_kernels;
	c->deadline_s = p->clock_s[p->n_kernels];
	for (uint32_t i = after->start[c->done]; i < after->start[c->done + 1]; i++) {
		uint32_t t = after->tasks[i];
		bool feeds = task_at(p, t)->kind == SW_TASK_START;
		const collective *next = feeds ? &p->all[p->number[t]] : NULL;
		c->needed = SW_MIN(c->needed, feeds ? next->needed : p->slot[t]);
		c->deadline_s =
			fmin(c->deadline_s, feeds ? next->deadline_s - task_at(p, t)->seconds
		                                  : p->clock_s[p->slot[t]]);
		c->feeds = c->feeds || feeds;
	}
}

static void list_slots(placer *p, sw_arena *arena)
{
	p->slot = SW_NEW_N(arena, int32_t, p->graph->n + 1);
	p->clock_s = SW_NEW_N(arena, double, p->n_kernels + 1);
	for (int32_t k = 0; k < p->n_kernels; k++) {
		p->slot[p->kernels[k]] = k;
		p->clock_s[k + 1] = p->clock_s[k] + task_at(p, p->kernels[k])->seconds;
	}
}

static void list_collectives(placer *p, sw_arena *arena)
{
	p->all = SW_NEW_N(arena, collective, p->graph->n_starts + 1);
	p->number = SW_NEW_N(arena, int32_t, p->graph->n + 1);
	for (uint32_t t = 0; t < p->graph->n; t++) {
		if (task_at(p, t)->kind != SW_TASK_START)
			continue;
		p->number[t] = p->number[task_at(p, t)->partner] = p->n;
		p->all[p->n] = (collective){.start = t, .done = task_at(p, t)->partner};
		find_release(p, &p->all[p->n++]);
	}
	for (int32_t i = p->n; i-- > 0;)
		find_need(p, &p->all[i]);
}

typedef struct deadline {
	double seconds;
	int32_t number;
} deadline;

static int compare_deadlines(const void *a, const void *b)
{
	const deadline *x = a, *y = b;
	if (x->seconds != y->seconds)
		return x->seconds < y->seconds ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static void find_times(placer *p, sw_arena *arena)
{
	deadline *last = SW_NEW_N(arena, deadline, p->n + 1);
	double free_s = INFINITY;
	for (int32_t i = 0; i < p->n; i++)
		last[i] = (deadline){p->all[i].deadline_s, i};
	qsort(last, (size_t)p->n, sizeof(*last), compare_deadlines);
	for (int32_t i = p->n; i-- > 0;) {
		collective *c = &p->all[last[i].number];
		free_s = fmin(free_s, c->deadline_s) - p->slack * task_at(p, c->start)->seconds;
		c->from_s = free_s;
	}
}

/* ---- the least memory ------------------------------------------------------------------- */

static double value_bytes(const placer *p, sw_id value)
{
	return sw_task_value_bytes(p->graph, value);
}

/* The last point at which a task holds its operands, the first at which it has results. */
static int32_t last_point(const placer *p, uint32_t t)
{
	bool half = task_at(p, t)->kind == SW_TASK_START || task_at(p, t)->kind == SW_TASK_DONE;
	return half ? p->all[p->number[t]].stands : p->slot[t];
}

/* Per buffer of the computation the last point of its kernels, 0 if there is none; results of the
 * computation live to the end. */
static int32_t *find_last_reads(const placer *p, sw_arena *arena)
{
	const sw_program *program = p->graph->program;
	const sw_computation *c = &program->computations.data[p->graph->computation];
	int32_t *last = SW_NEW_N(arena, int32_t, program->values.len + 1);
	for (int32_t k = 0; k < p->n_kernels; k++) {
		const sw_op *op = sw_op_at(program, task_at(p, p->kernels[k])->op);
		for (uint32_t i = 0; i < op->n_operands; i++)
			last[sw_task_buffer(p->graph, op->operands[i])] = k;
	}
	for (size_t i = 0; i < c->results.len; i++)
		last[sw_task_buffer(p->graph, c->results.data[i])] = p->n_kernels;
	return last;
}

static void weigh(placer *p, collective *c, const int32_t *last)
{
	const sw_op *op = sw_op_at(p->graph->program, task_at(p, c->start)->op);
	bool split = task_at(p, c->start)->split;
	for (uint32_t i = 0; i < op->n_operands; i++)
		if (last[sw_task_buffer(p->graph, op->operands[i])] <= c->released)
			c->held_bytes += value_bytes(p, sw_task_buffer(p->graph, op->operands[i]));
	for (uint32_t r = split ? 0 : op->n_operands; r < op->n_results; r++)
		c->result_bytes += value_bytes(p, op->first_result + r);
	c->grows = c->result_bytes > c->held_bytes;
	c->stands = c->grows ? c->needed : c->released;
}

static void add_value(const placer *p, sw_id value, int32_t begin, int32_t end, double *changes)
{
	changes[begin] += value_bytes(p, value);
	changes[SW_MAX(end, begin) + 1] -= value_bytes(p, value);
}

/* Bytes of all values at each point; those of a start that is given are its collective's alone. */
static void add_values(const placer *p, int32_t *last, double *changes)
{
	for (int32_t i = 0; i < p->n; i++) {
		const sw_op *op = sw_op_at(p->graph->program, task_at(p, p->all[i].start)->op);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id buffer = sw_task_buffer(p->graph, op->operands[k]);
			last[buffer] = SW_MAX(last[buffer], p->all[i].stands);
		}
	}
	for (uint32_t t = 0; t < p->graph->n; t++) {
		const sw_task *task = task_at(p, t);
		const sw_op *op = sw_op_at(p->graph->program, task->op);
		bool parameter = op->opcode == SW_OP_PARAMETER;
		for (uint32_t r = 0; sw_task_yields(p->graph, t) && r < op->n_results; r++) {
			sw_id value = op->first_result + r;
			int32_t begin = parameter ? 0 : last_point(p, t);
			if (value_bytes(p, value) > 0)
				begin += sw_task_takes_place(p->graph, t, r, last, begin);
			add_value(p, value, begin, last[value], changes);
		}
	}
}

static double *list_bytes(placer *p, sw_arena *arena)
{
	int32_t *last = find_last_reads(p, arena);
	double *bytes = SW_NEW_N(arena, double, p->n_kernels + 3), live = 0;
	for (int32_t i = 0; i < p->n; i++)
		weigh(p, &p->all[i], last);
	add_values(p, last, bytes);
	for (int32_t k = 0; k <= p->n_kernels; k++) {
		live += bytes[k];
		bytes[k] = live + (k < p->n_kernels ? task_at(p, p->kernels[k])->bytes : 0);
	}
	return bytes;
}

/* ---- the sweep -------------------------------------------------------------------------- */

static double bytes_now(const placer *p)
{
	return sw_profile_most(&p->profile, p->at, p->at + 1) + p->held_bytes;
}

static void release(placer *p, int32_t number)
{
	const collective *c = &p->all[number];
	sw_heap *heap = c->grows ? &p->early : &p->due;
	sw_heap_push(heap, c->grows ? c->from_s : c->deadline_s, number);
	if (!c->grows)
		sw_vec_push(&p->fresh, number);
}

static void release_after(placer *p, uint32_t t)
{
	const sw_task_list *after = &p->graph->after;
	for (uint32_t i = after->start[t]; i < after->start[t + 1]; i++) {
		uint32_t next = after->tasks[i];
		if (task_at(p, next)->kind == SW_TASK_START && --p->all[p->number[next]].waits == 0)
			release(p, p->number[next]);
	}
}

static void begin(placer *p, int32_t number);

static void end(placer *p, int32_t number)
{
	collective *c = &p->all[number];
	if (c->ended)
		return;
	begin(p, number);
	c->ended = true;
	p->order[p->n_order++] = c->done;
	sw_streams_run(&p->streams, task_at(p, c->done), c->landed_s);
	if (c->counted)
		p->held_bytes -= c->held_bytes;
	release_after(p, c->done);
}

/* What it waits for is ended first: that is made by collectives alone, or it would be there. */
static void begin(placer *p, int32_t number)
{
	const sw_task_list *before = &p->graph->before;
	collective *c = &p->all[number];
	if (c->begun)
		return;
	for (uint32_t i = before->start[c->start]; i < before->start[c->start + 1]; i++)
		if (task_at(p, before->tasks[i])->kind == SW_TASK_DONE)
			end(p, p->number[before->tasks[i]]);
	c->begun = true;
	p->order[p->n_order++] = c->start;
	c->landed_s = sw_streams_run(&p->streams, task_at(p, c->start), 0).end_s;
	sw_vec_push(&p->flight, number);
	if (c->grows)
		sw_profile_add(&p->profile, p->at, c->stands, c->result_bytes);
}

static void drop_begun(const placer *p, sw_heap *heap)
{
	while (heap->len && p->all[heap->data[0].node].begun)
		sw_heap_pop(heap);
}

static bool fits(const placer *p, const collective *c)
{
	return sw_profile_most(&p->profile, p->at, c->stands) + p->held_bytes + c->result_bytes <=
	       p->room_bytes;
}

/* The collective to begin next: the earliest deadline; of growing ones only if there is room. -1:
 * none. */
static int32_t next_to_begin(placer *p)
{
	drop_begun(p, &p->due);
	drop_begun(p, &p->growing);
	bool due = p->due.len > 0;
	bool growing = p->growing.len > 0 && fits(p, &p->all[p->growing.data[0].node]);
	if (due && growing)
		growing = p->growing.data[0].weight < p->due.data[0].weight;
	return growing ? p->growing.data[0].node : due ? p->due.data[0].node : -1;
}

/* Those whose time comes before the next slot does. */
static void open_early(placer *p)
{
	double until_s = p->clock_s[SW_MIN(p->at + 1, p->n_kernels)];
	while (p->early.len && p->early.data[0].weight <= until_s) {
		int32_t number = sw_heap_pop(&p->early).node;
		sw_heap_push(&p->growing, p->all[number].deadline_s, number);
	}
}

/* Up to `until_s` the stream is not left idle. */
static void begin_some(placer *p, double until_s)
{
	open_early(p);
	while (p->streams.collectives_s < until_s) {
		int32_t number = next_to_begin(p);
		if (number < 0)
			return;
		begin(p, number);
	}
}

static void end_what_feeds(placer *p)
{
	for (; p->landed < p->flight.len; p->landed++) {
		const collective *c = &p->all[p->flight.data[p->landed]];
		if (c->landed_s > p->streams.kernels_s)
			return;
		if (c->feeds)
			end(p, p->flight.data[p->landed]);
	}
}

/* At the slot at which it costs least its operands are in the profile. */
static void count_fresh(placer *p)
{
	size_t left = 0;
	for (size_t i = 0; i < p->fresh.len; i++) {
		collective *c = &p->all[p->fresh.data[i]];
		if (c->stands >= p->at) {
			p->fresh.data[left++] = p->fresh.data[i];
		} else if (!c->ended && c->held_bytes > 0) {
			c->counted = true;
			p->held_bytes += c->held_bytes;
		}
	}
	p->fresh.len = left;
}

/* Of those that hold operands the one to be done first, -1: none. `seen`: how many in flight hold
 * none any more. */
static int32_t first_holder(placer *p, size_t *seen)
{
	for (; *seen < p->flight.len; ++*seen) {
		const collective *c = &p->all[p->flight.data[*seen]];
		if (c->counted && !c->ended)
			return p->flight.data[*seen];
	}
	drop_begun(p, &p->due);
	return p->due.len ? p->due.data[0].node : -1;
}

static void make_room(placer *p, size_t *seen)
{
	while (p->held_bytes > 0 && bytes_now(p) > p->room_bytes) {
		int32_t number = first_holder(p, seen);
		if (number < 0)
			return;
		end(p, number);
	}
}

/* Of a kernel, what leaves the stream of collectives alone. */
static double quiet_s(const sw_task *task)
{
	return task->kind == SW_TASK_BLOCKING ? 0 : fmax(task->seconds - task->collective_s, 0);
}

/* What kernel t needs is begun first, then whatever the stream has time for, then it is waited for.
 */
static void prepare_kernel(placer *p, uint32_t t)
{
	const sw_task_list *before = &p->graph->before;
	double begin_s = p->streams.kernels_s;
	for (uint32_t i = before->start[t]; i < before->start[t + 1]; i++) {
		if (task_at(p, before->tasks[i])->kind != SW_TASK_DONE)
			continue;
		begin(p, p->number[before->tasks[i]]);
		begin_s = fmax(begin_s, p->all[p->number[before->tasks[i]]].landed_s);
	}
	if (task_at(p, t)->kind == SW_TASK_KERNEL)
		begin_some(p, fmax(nextafter(begin_s, INFINITY), begin_s + quiet_s(task_at(p, t))));
	for (uint32_t i = before->start[t]; i < before->start[t + 1]; i++)
		if (task_at(p, before->tasks[i])->kind == SW_TASK_DONE)
			end(p, p->number[before->tasks[i]]);
}

static void run_kernel(placer *p, uint32_t t)
{
	sw_streams_run(&p->streams, task_at(p, t), 0);
	p->order[p->n_order++] = t;
}

static void end_all(placer *p)
{
	begin_some(p, INFINITY);
	for (int32_t i = 0; i < p->n; i++)
		begin(p, i);
	for (size_t i = 0; i < p->flight.len; i++)
		end(p, p->flight.data[i]);
}

static void sweep(placer *p)
{
	size_t seen = 0;
	for (int32_t i = 0; i < p->n; i++)
		if (p->all[i].waits == 0)
			release(p, i);
	for (p->at = 0; p->at < p->n_kernels; p->at++) {
		uint32_t t = p->kernels[p->at];
		count_fresh(p);
		make_room(p, &seen);
		end_what_feeds(p);
		prepare_kernel(p, t);
		run_kernel(p, t);
		release_after(p, t);
	}
	end_all(p);
}

/* What is the same for all slacks. */
static void placer_init(placer *p, sw_allowance may, sw_arena *arena)
{
	list_slots(p, arena);
	list_collectives(p, arena);
	sw_profile_init(&p->profile, list_bytes(p, arena), p->n_kernels + 1, arena);
	double least_bytes = sw_profile_most(&p->profile, 0, p->n_kernels + 1);
	p->room_bytes = fmax(least_bytes, fmin(least_bytes + may.spare_bytes, may.room_bytes));
}

static const uint32_t *place(const placer *prepared, double slack, sw_arena *arena)
{
	placer p = *prepared;
	p.slack = slack;
	p.all = sw_arena_copy(arena, prepared->all, sizeof(*p.all) * (size_t)p.n);
	p.profile = sw_profile_copy(&prepared->profile, arena);
	p.order = SW_NEW_N(arena, uint32_t, p.graph->n + 1);
	find_times(&p, arena);
	sweep(&p);
	sw_vec_clear(&p.due);
	sw_vec_clear(&p.growing);
	sw_vec_clear(&p.early);
	sw_vec_clear(&p.flight);
	sw_vec_clear(&p.fresh);
	return p.order;
}

/* Slack is for those that grow. */
static bool any_grows(const placer *p)
{
	for (int32_t i = 0; i < p->n; i++)
		if (p->all[i].grows)
			return true;
	return false;
}

size_t sw_place_halves(const sw_tasks *graph, const uint32_t *kernels, uint32_t n_kernels,
                       const double *slacks, size_t n_slacks, sw_allowance may, sw_arena *arena,
                       const uint32_t **orders)
{
	placer p = {.graph = graph,
	            .kernels = kernels,
	            .n_kernels = (int32_t)n_kernels,
	            .streams = sw_streams_of(graph, 1)};
	size_t n = 0;
	placer_init(&p, may, arena);
	for (size_t i = 0; i < (any_grows(&p) ? n_slacks : 1); i++) {
		orders[n] = place(&p, slacks[i], arena);
		bool fresh = n == 0 ||
		             memcmp(orders[n], orders[n - 1], sizeof(**orders) * graph->n) != 0;
		n += fresh;
	}
	return n;
}
