/*
 * Insert starts and dones between kernels whose order is fixed, by list scheduling with deadlines.
 * SLOT p is before kernel p; the last slot is the end.
 *
 * Each collective has a slot from which its operands are there (released), and one at which its
 * results are needed. The sweep goes over the slots; whenever the stream of collectives will be
 * free before the next kernel ends, the released collective whose results are needed first begins
 * (earliest deadline first). A done stands where the results are needed, or, if only another
 * collective reads them, as soon as they are there.
 *
 * Memory. A collective holds its operands and its results from start to done. One that GROWS (whose
 * results exceed the operands that it frees: a gather) holds least if it begins right before its
 * use, any other (a scatter) if it begins as soon as it can. The bytes of that cheapest insertion
 * are the minimum; `spare_bytes` may be used beyond it, up to `max_bytes`. A growing one is a
 * prefetch: it begins only if its results fit, and no sooner than its lead time before the latest
 * start, which is followed back from the end along deadlines and the stream, each collective taking
 * `lead` times its seconds. Of the others, some are waited for early where the operands that they
 * hold would exceed the limit.
 */
#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "schedule/internal.h"

typedef struct placed_collective {
	uint32_t start, done;
	int32_t released, needed; /* slots */
	int32_t cheapest;         /* the slot at which it holds least */
	/* on the clock of kernels without waits; open_s: when a prefetch may begin */
	double deadline_s, open_s;
	double result_bytes, held_bytes; /* held: of operands that no kernel reads later */
	double landed_s;
	uint32_t n_unplaced;          /* predecessors of its start that are not placed yet */
	bool grows, feeds_collective; /* feeds: another collective reads its results */
	bool begun, ended, counted;
} placed_collective;

typedef struct inserter {
	const sw_tasks *graph;
	const uint32_t *kernels;
	int32_t n_kernels;
	placed_collective *all; /* in program order */
	int32_t n;
	int32_t *number; /* per task: index of its collective */
	int32_t *slot;   /* per kernel: its slot */
	double *clock_s; /* per slot: seconds of the kernels before it */
	sw_profile profile;
	double lead;
	double max_bytes;
	/* operands of collectives that have not ended though they might have */
	double held_bytes;
	sw_streams streams;             /* when each is free */
	sw_heap due, growing, unopened; /* released: by deadline; by deadline; by open_s */
	SW_VEC(int32_t) in_flight;      /* in the order of starts */
	size_t landed;                  /* how many of those have been looked at */
	/* released at this slot: their operands count from the next slot on */
	SW_VEC(int32_t) released_now;
	uint32_t *order, n_order;
	int32_t at; /* the slot of the sweep */
} inserter;

/* ---- slots and deadlines ---------------------------------------------------------------- */

static const sw_schedule_task *task_at(const inserter *p, uint32_t t)
{
	return &p->graph->tasks[t];
}

static void find_release(inserter *p, placed_collective *c)
{
	const sw_task_list *before = &p->graph->before;
	for (uint32_t i = before->start[c->start]; i < before->start[c->start + 1]; i++) {
		uint32_t t = before->tasks[i];
		int32_t from = task_at(p, t)->kind == SW_TASK_DONE ? p->all[p->number[t]].released
		                                                   : p->slot[t] + 1;
		c->released = SW_MAX(c->released, from);
		c->n_unplaced++;
	}
}

static void find_need(inserter *p, placed_collective *c)
{
	const sw_task_list *after = &p->graph->after;
	c->needed = p->n_kernels;
	c->deadline_s = p->clock_s[p->n_kernels];
	for (uint32_t i = after->start[c->done]; i < after->start[c->done + 1]; i++) {
		uint32_t t = after->tasks[i];
		bool feeds = task_at(p, t)->kind == SW_TASK_START;
		const placed_collective *next = feeds ? &p->all[p->number[t]] : NULL;
		c->needed = SW_MIN(c->needed, feeds ? next->needed : p->slot[t]);
		c->deadline_s =
			fmin(c->deadline_s, feeds ? next->deadline_s - task_at(p, t)->seconds
		                                  : p->clock_s[p->slot[t]]);
		c->feeds_collective = c->feeds_collective || feeds;
	}
}

static void list_slots(inserter *p, sw_arena *arena)
{
	p->slot = SW_NEW_N(arena, int32_t, p->graph->n + 1);
	p->clock_s = SW_NEW_N(arena, double, p->n_kernels + 1);
	for (int32_t k = 0; k < p->n_kernels; k++) {
		p->slot[p->kernels[k]] = k;
		p->clock_s[k + 1] = p->clock_s[k] + task_at(p, p->kernels[k])->seconds;
	}
}

static void list_collectives(inserter *p, sw_arena *arena)
{
	p->all = SW_NEW_N(arena, placed_collective, p->graph->n_starts + 1);
	p->number = SW_NEW_N(arena, int32_t, p->graph->n + 1);
	for (uint32_t t = 0; t < p->graph->n; t++) {
		if (task_at(p, t)->kind != SW_TASK_START)
			continue;
		p->number[t] = p->number[task_at(p, t)->partner] = p->n;
		p->all[p->n] = (placed_collective){.start = t, .done = task_at(p, t)->partner};
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

/* Find when each prefetch may begin: back from the end, by deadlines and the stream. */
static void find_times(inserter *p, sw_arena *arena)
{
	deadline *last = SW_NEW_N(arena, deadline, p->n + 1);
	double free_s = INFINITY;
	for (int32_t i = 0; i < p->n; i++)
		last[i] = (deadline){p->all[i].deadline_s, i};
	qsort(last, (size_t)p->n, sizeof(*last), compare_deadlines);
	for (int32_t i = p->n; i-- > 0;) {
		placed_collective *c = &p->all[last[i].number];
		free_s = fmin(free_s, c->deadline_s) - p->lead * task_at(p, c->start)->seconds;
		c->open_s = free_s;
	}
}

/* ---- the cheapest insertion ------------------------------------------------------------- */

static double value_bytes(const inserter *p, sw_id value)
{
	return sw_task_value_bytes(p->graph, value);
}

/* Return the last point at which a task holds its operands, the first at which it has results. */
static int32_t point_of(const inserter *p, uint32_t t)
{
	bool half = task_at(p, t)->kind == SW_TASK_START || task_at(p, t)->kind == SW_TASK_DONE;
	return half ? p->all[p->number[t]].cheapest : p->slot[t];
}

/* Return per buffer of the computation the last point at which a kernel reads it, 0 if none does;
 * results of the computation live to the end. */
static int32_t *find_last_reads(const inserter *p, sw_arena *arena)
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

static void measure_bytes(inserter *p, placed_collective *c, const int32_t *last)
{
	const sw_op *op = sw_op_at(p->graph->program, task_at(p, c->start)->op);
	bool split = task_at(p, c->start)->split;
	for (uint32_t i = 0; i < op->n_operands; i++)
		if (last[sw_task_buffer(p->graph, op->operands[i])] <= c->released)
			c->held_bytes += value_bytes(p, sw_task_buffer(p->graph, op->operands[i]));
	for (uint32_t r = split ? 0 : op->n_operands; r < op->n_results; r++)
		c->result_bytes += value_bytes(p, op->first_result + r);
	c->grows = c->result_bytes > c->held_bytes;
	c->cheapest = c->grows ? c->needed : c->released;
}

static void add_value(const inserter *p, sw_id value, int32_t begin, int32_t end, double *changes)
{
	changes[begin] += value_bytes(p, value);
	changes[SW_MAX(end, begin) + 1] -= value_bytes(p, value);
}

/* Add the bytes of all values at each point; the results of an async-start that the program already
 * has are counted by its collective alone. */
static void add_values(const inserter *p, int32_t *last, double *changes)
{
	for (int32_t i = 0; i < p->n; i++) {
		const sw_op *op = sw_op_at(p->graph->program, task_at(p, p->all[i].start)->op);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id buffer = sw_task_buffer(p->graph, op->operands[k]);
			last[buffer] = SW_MAX(last[buffer], p->all[i].cheapest);
		}
	}
	for (uint32_t t = 0; t < p->graph->n; t++) {
		const sw_schedule_task *task = task_at(p, t);
		const sw_op *op = sw_op_at(p->graph->program, task->op);
		bool parameter = op->opcode == SW_OP_PARAMETER;
		for (uint32_t r = 0; sw_task_yields(p->graph, t) && r < op->n_results; r++) {
			sw_id value = op->first_result + r;
			int32_t begin = parameter ? 0 : point_of(p, t);
			if (value_bytes(p, value) > 0)
				begin += sw_task_overwrites_operand(p->graph, t, r, last, begin);
			add_value(p, value, begin, last[value], changes);
		}
	}
}

static double *list_bytes(inserter *p, sw_arena *arena)
{
	int32_t *last = find_last_reads(p, arena);
	double *bytes = SW_NEW_N(arena, double, p->n_kernels + 3), live = 0;
	for (int32_t i = 0; i < p->n; i++)
		measure_bytes(p, &p->all[i], last);
	add_values(p, last, bytes);
	for (int32_t k = 0; k <= p->n_kernels; k++) {
		live += bytes[k];
		bytes[k] = live + (k < p->n_kernels ? task_at(p, p->kernels[k])->bytes : 0);
	}
	return bytes;
}

/* ---- the sweep -------------------------------------------------------------------------- */

static double bytes_now(const inserter *p)
{
	return sw_profile_max(&p->profile, p->at, p->at + 1) + p->held_bytes;
}

static void release(inserter *p, int32_t number)
{
	const placed_collective *c = &p->all[number];
	sw_heap *heap = c->grows ? &p->unopened : &p->due;
	sw_heap_push(heap, c->grows ? c->open_s : c->deadline_s, number);
	if (!c->grows)
		sw_vec_push(&p->released_now, number);
}

static void release_after(inserter *p, uint32_t t)
{
	const sw_task_list *after = &p->graph->after;
	for (uint32_t i = after->start[t]; i < after->start[t + 1]; i++) {
		uint32_t next = after->tasks[i];
		if (task_at(p, next)->kind == SW_TASK_START &&
		    --p->all[p->number[next]].n_unplaced == 0)
			release(p, p->number[next]);
	}
}

static void begin(inserter *p, int32_t number);

static void end(inserter *p, int32_t number)
{
	placed_collective *c = &p->all[number];
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

/* Begin a collective after ending those that it waits for: these are made by collectives alone, or
 * their results would be there. */
static void begin(inserter *p, int32_t number)
{
	const sw_task_list *before = &p->graph->before;
	placed_collective *c = &p->all[number];
	if (c->begun)
		return;
	for (uint32_t i = before->start[c->start]; i < before->start[c->start + 1]; i++)
		if (task_at(p, before->tasks[i])->kind == SW_TASK_DONE)
			end(p, p->number[before->tasks[i]]);
	c->begun = true;
	p->order[p->n_order++] = c->start;
	c->landed_s = sw_streams_run(&p->streams, task_at(p, c->start), 0).end_s;
	sw_vec_push(&p->in_flight, number);
	if (c->grows)
		sw_profile_add(&p->profile, p->at, c->cheapest, c->result_bytes);
}

static void drop_begun(const inserter *p, sw_heap *heap)
{
	while (heap->len && p->all[heap->data[0].node].begun)
		sw_heap_pop(heap);
}

static bool fits(const inserter *p, const placed_collective *c)
{
	return sw_profile_max(&p->profile, p->at, c->cheapest) + p->held_bytes + c->result_bytes <=
	       p->max_bytes;
}

/* Return the collective to begin next, by earliest deadline; a prefetch only if it fits. -1:
 * none. */
static int32_t next_to_begin(inserter *p)
{
	drop_begun(p, &p->due);
	drop_begun(p, &p->growing);
	bool due = p->due.len > 0;
	bool growing = p->growing.len > 0 && fits(p, &p->all[p->growing.data[0].node]);
	if (due && growing)
		growing = p->growing.data[0].weight < p->due.data[0].weight;
	return growing ? p->growing.data[0].node : due ? p->due.data[0].node : -1;
}

/* Open the prefetches whose open_s comes before the next slot does. */
static void open_prefetches(inserter *p)
{
	double until_s = p->clock_s[SW_MIN(p->at + 1, p->n_kernels)];
	while (p->unopened.len && p->unopened.data[0].weight <= until_s) {
		int32_t number = sw_heap_pop(&p->unopened).node;
		sw_heap_push(&p->growing, p->all[number].deadline_s, number);
	}
}

/* Begin collectives until their stream is busy up to `until_s`. */
static void fill_stream(inserter *p, double until_s)
{
	open_prefetches(p);
	while (p->streams.collectives_s < until_s) {
		int32_t number = next_to_begin(p);
		if (number < 0)
			return;
		begin(p, number);
	}
}

static void end_feeding_collectives(inserter *p)
{
	for (; p->landed < p->in_flight.len; p->landed++) {
		const placed_collective *c = &p->all[p->in_flight.data[p->landed]];
		if (c->landed_s > p->streams.kernels_s)
			return;
		if (c->feeds_collective)
			end(p, p->in_flight.data[p->landed]);
	}
}

/* Count the operands that a collective holds beyond its cheapest slot; up to that slot they are in
 * the profile. */
static void count_released(inserter *p)
{
	size_t left = 0;
	for (size_t i = 0; i < p->released_now.len; i++) {
		placed_collective *c = &p->all[p->released_now.data[i]];
		if (c->cheapest >= p->at) {
			p->released_now.data[left++] = p->released_now.data[i];
		} else if (!c->ended && c->held_bytes > 0) {
			c->counted = true;
			p->held_bytes += c->held_bytes;
		}
	}
	p->released_now.len = left;
}

/* Return the collective that holds operands and is to be ended first, -1: none. `seen`: how many in
 * flight were found to hold none. */
static int32_t first_holder(inserter *p, size_t *seen)
{
	for (; *seen < p->in_flight.len; ++*seen) {
		const placed_collective *c = &p->all[p->in_flight.data[*seen]];
		if (c->counted && !c->ended)
			return p->in_flight.data[*seen];
	}
	drop_begun(p, &p->due);
	return p->due.len ? p->due.data[0].node : -1;
}

static void free_memory(inserter *p, size_t *seen)
{
	while (p->held_bytes > 0 && bytes_now(p) > p->max_bytes) {
		int32_t number = first_holder(p, seen);
		if (number < 0)
			return;
		end(p, number);
	}
}

/* Return the seconds of a kernel during which its own collectives leave the stream free. */
static double kernel_only_s(const sw_schedule_task *task)
{
	return task->kind == SW_TASK_BLOCKING ? 0 : fmax(task->seconds - task->collective_s, 0);
}

/* Begin the collectives that kernel t needs, then all that the stream has time for, then wait for
 * those that t needs. */
static void prepare_kernel(inserter *p, uint32_t t)
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
		fill_stream(p, fmax(nextafter(begin_s, INFINITY),
		                    begin_s + kernel_only_s(task_at(p, t))));
	for (uint32_t i = before->start[t]; i < before->start[t + 1]; i++)
		if (task_at(p, before->tasks[i])->kind == SW_TASK_DONE)
			end(p, p->number[before->tasks[i]]);
}

static void run_kernel(inserter *p, uint32_t t)
{
	sw_streams_run(&p->streams, task_at(p, t), 0);
	p->order[p->n_order++] = t;
}

static void end_all(inserter *p)
{
	fill_stream(p, INFINITY);
	for (int32_t i = 0; i < p->n; i++)
		begin(p, i);
	for (size_t i = 0; i < p->in_flight.len; i++)
		end(p, p->in_flight.data[i]);
}

static void sweep(inserter *p)
{
	size_t seen = 0;
	for (int32_t i = 0; i < p->n; i++)
		if (p->all[i].n_unplaced == 0)
			release(p, i);
	for (p->at = 0; p->at < p->n_kernels; p->at++) {
		uint32_t t = p->kernels[p->at];
		count_released(p);
		free_memory(p, &seen);
		end_feeding_collectives(p);
		prepare_kernel(p, t);
		run_kernel(p, t);
		release_after(p, t);
	}
	end_all(p);
}

/* Prepare what is the same for all lead times. */
static void inserter_init(inserter *p, sw_memory_allowance may, sw_arena *arena)
{
	list_slots(p, arena);
	list_collectives(p, arena);
	sw_profile_init(&p->profile, list_bytes(p, arena), p->n_kernels + 1, arena);
	double min_bytes = sw_profile_max(&p->profile, 0, p->n_kernels + 1);
	p->max_bytes = fmax(min_bytes, fmin(min_bytes + may.spare_bytes, may.max_bytes));
}

static const uint32_t *place(const inserter *prepared, double lead, sw_arena *arena)
{
	inserter p = *prepared;
	p.lead = lead;
	p.all = sw_arena_copy(arena, prepared->all, sizeof(*p.all) * (size_t)p.n);
	p.profile = sw_profile_copy(&prepared->profile, arena);
	p.order = SW_NEW_N(arena, uint32_t, p.graph->n + 1);
	find_times(&p, arena);
	sweep(&p);
	sw_vec_clear(&p.due);
	sw_vec_clear(&p.growing);
	sw_vec_clear(&p.unopened);
	sw_vec_clear(&p.in_flight);
	sw_vec_clear(&p.released_now);
	return p.order;
}

/* True if any collective is a prefetch: only those depend on the lead time. */
static bool any_grows(const inserter *p)
{
	for (int32_t i = 0; i < p->n; i++)
		if (p->all[i].grows)
			return true;
	return false;
}

size_t sw_insert_collectives(const sw_tasks *graph, const uint32_t *kernels, uint32_t n_kernels,
                             const double *leads, size_t n_leads, sw_memory_allowance may,
                             sw_arena *arena, const uint32_t **orders)
{
	inserter p = {.graph = graph,
	              .kernels = kernels,
	              .n_kernels = (int32_t)n_kernels,
	              .streams = sw_streams_of(graph, 1)};
	size_t n = 0;
	inserter_init(&p, may, arena);
	for (size_t i = 0; i < (any_grows(&p) ? n_leads : 1); i++) {
		orders[n] = place(&p, leads[i], arena);
		bool different = n == 0 ||
		                 memcmp(orders[n], orders[n - 1], sizeof(**orders) * graph->n) != 0;
		n += different;
	}
	return n;
}
