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
#include "schedule/inserter.h"

#include <math.h>
#include <string.h>

/* ---- the sweep -------------------------------------------------------------------------- */

static double bytes_now(const sw_inserter *p)
{
	return sw_profile_max(&p->profile, p->at, p->at + 1) + p->held_bytes;
}

static void release(sw_inserter *p, int32_t number)
{
	const sw_placed_collective *c = &p->all[number];
	sw_heap *heap = c->grows ? &p->unopened : &p->due;
	sw_heap_push(heap, c->grows ? c->open_s : c->deadline_s, number);
	if (!c->grows)
		sw_vec_push(&p->released_now, number);
}

static void release_after(sw_inserter *p, uint32_t t)
{
	const sw_task_list *after = &p->graph->after;
	for (uint32_t i = after->start[t]; i < after->start[t + 1]; i++) {
		uint32_t next = after->tasks[i];
		if (sw_inserter_task(p, next)->kind == SW_TASK_START &&
		    --p->all[p->number[next]].n_unplaced == 0)
			release(p, p->number[next]);
	}
}

static void begin(sw_inserter *p, int32_t number);

static void end(sw_inserter *p, int32_t number)
{
	sw_placed_collective *c = &p->all[number];
	if (c->ended)
		return;
	begin(p, number);
	c->ended = true;
	p->order[p->n_order++] = c->done;
	sw_streams_run(&p->streams, sw_inserter_task(p, c->done), c->landed_s);
	if (c->counted)
		p->held_bytes -= c->held_bytes;
	release_after(p, c->done);
}

/* Begin a collective after ending those that it waits for (these are made by collectives alone, or
 * their results would be there), and beginning those that must begin before it. */
static void begin(sw_inserter *p, int32_t number)
{
	const sw_task_list *before = &p->graph->before;
	sw_placed_collective *c = &p->all[number];
	if (c->begun)
		return;
	for (uint32_t i = before->start[c->start]; i < before->start[c->start + 1]; i++)
		if (sw_inserter_task(p, before->tasks[i])->kind == SW_TASK_DONE)
			end(p, p->number[before->tasks[i]]);
		else if (sw_inserter_task(p, before->tasks[i])->kind == SW_TASK_START)
			begin(p, p->number[before->tasks[i]]);
	c->begun = true;
	p->order[p->n_order++] = c->start;
	c->landed_s = sw_streams_run(&p->streams, sw_inserter_task(p, c->start), 0).end_s;
	sw_vec_push(&p->in_flight, number);
	if (c->grows)
		sw_profile_add(&p->profile, p->at, c->cheapest, c->result_bytes);
	release_after(p, c->start);
}

static void drop_begun(const sw_inserter *p, sw_heap *heap)
{
	while (heap->len && p->all[heap->data[0].node].begun)
		sw_heap_pop(heap);
}

static bool fits(const sw_inserter *p, const sw_placed_collective *c)
{
	return sw_profile_max(&p->profile, p->at, c->cheapest) + p->held_bytes + c->result_bytes <=
	       p->max_bytes;
}

/* Return the collective to begin next, by earliest deadline; a prefetch only if it fits. -1:
 * none. */
static int32_t next_to_begin(sw_inserter *p)
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
static void open_prefetches(sw_inserter *p)
{
	double until_s = p->clock_s[SW_MIN(p->at + 1, p->n_kernels)];
	while (p->unopened.len && p->unopened.data[0].weight <= until_s) {
		int32_t number = sw_heap_pop(&p->unopened).node;
		sw_heap_push(&p->growing, p->all[number].deadline_s, number);
	}
}

/* Begin collectives until their stream is busy up to `until_s`. */
static void fill_stream(sw_inserter *p, double until_s)
{
	open_prefetches(p);
	while (p->streams.collectives_s < until_s) {
		int32_t number = next_to_begin(p);
		if (number < 0)
			return;
		begin(p, number);
	}
}

static void end_feeding_collectives(sw_inserter *p)
{
	for (; p->landed < p->in_flight.len; p->landed++) {
		const sw_placed_collective *c = &p->all[p->in_flight.data[p->landed]];
		if (c->landed_s > p->streams.kernels_s)
			return;
		if (c->feeds_collective)
			end(p, p->in_flight.data[p->landed]);
	}
}

/* Count the operands that a collective holds beyond its cheapest slot; up to that slot they are in
 * the profile. */
static void count_released(sw_inserter *p)
{
	size_t left = 0;
	for (size_t i = 0; i < p->released_now.len; i++) {
		sw_placed_collective *c = &p->all[p->released_now.data[i]];
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
static int32_t first_holder(sw_inserter *p, size_t *seen)
{
	for (; *seen < p->in_flight.len; ++*seen) {
		const sw_placed_collective *c = &p->all[p->in_flight.data[*seen]];
		if (c->counted && !c->ended)
			return p->in_flight.data[*seen];
	}
	drop_begun(p, &p->due);
	return p->due.len ? p->due.data[0].node : -1;
}

static void free_memory(sw_inserter *p, size_t *seen)
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
static void prepare_kernel(sw_inserter *p, uint32_t t)
{
	const sw_task_list *before = &p->graph->before;
	double begin_s = p->streams.kernels_s;
	for (uint32_t i = before->start[t]; i < before->start[t + 1]; i++) {
		if (sw_inserter_task(p, before->tasks[i])->kind != SW_TASK_DONE)
			continue;
		begin(p, p->number[before->tasks[i]]);
		begin_s = fmax(begin_s, p->all[p->number[before->tasks[i]]].landed_s);
	}
	if (sw_inserter_task(p, t)->kind == SW_TASK_KERNEL)
		fill_stream(p, fmax(nextafter(begin_s, INFINITY),
		                    begin_s + kernel_only_s(sw_inserter_task(p, t))));
	for (uint32_t i = before->start[t]; i < before->start[t + 1]; i++)
		if (sw_inserter_task(p, before->tasks[i])->kind == SW_TASK_DONE)
			end(p, p->number[before->tasks[i]]);
}

static void run_kernel(sw_inserter *p, uint32_t t)
{
	sw_streams_run(&p->streams, sw_inserter_task(p, t), 0);
	p->order[p->n_order++] = t;
}

static void end_all(sw_inserter *p)
{
	fill_stream(p, INFINITY);
	for (int32_t i = 0; i < p->n; i++)
		begin(p, i);
	for (size_t i = 0; i < p->in_flight.len; i++)
		end(p, p->in_flight.data[i]);
}

static void sweep(sw_inserter *p)
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
static void inserter_init(sw_inserter *p, sw_memory_allowance may, sw_arena *arena)
{
	sw_inserter_list_slots(p, arena);
	sw_inserter_list_collectives(p, arena);
	sw_profile_init(&p->profile, sw_inserter_list_bytes(p, arena), p->n_kernels + 1, arena);
	double min_bytes = sw_profile_max(&p->profile, 0, p->n_kernels + 1);
	p->max_bytes = fmax(min_bytes, fmin(min_bytes + may.spare_bytes, may.max_bytes));
}

static const uint32_t *place(const sw_inserter *prepared, double lead, sw_arena *arena)
{
	sw_inserter p = *prepared;
	p.lead = lead;
	p.all = sw_arena_copy(arena, prepared->all, sizeof(*p.all) * (size_t)p.n);
	p.profile = sw_profile_copy(&prepared->profile, arena);
	p.order = SW_NEW_N(arena, uint32_t, p.graph->n + 1);
	sw_inserter_find_times(&p, arena);
	sweep(&p);
	sw_vec_clear(&p.due);
	sw_vec_clear(&p.growing);
	sw_vec_clear(&p.unopened);
	sw_vec_clear(&p.in_flight);
	sw_vec_clear(&p.released_now);
	return p.order;
}

/* True if any collective is a prefetch: only those depend on the lead time. */
static bool any_grows(const sw_inserter *p)
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
	sw_inserter p = {.graph = graph,
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
