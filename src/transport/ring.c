/*
 * Ring: each rank passes what it received from the previous vrank to the next one.
 *
 * There are n - 1 rounds for gathering and n - 1 for reducing and scattering. Each rank sends one
 * block per round, (n - 1) / n of the whole in all, and the boundary of each part is crossed by one
 * stream in and one out (Patarasuk and Yuan 2009: no algorithm sends less). The reduction of a
 * block begins with the rank after its owner and adds each rank's contribution in the order of the
 * ring. An all-to-all is also done in rounds, in which each lane exchanges with another distance:
 * at any time a link carries a few streams each way, some of which cross to other parts.
 */
#include "transport/algorithm.h"

#include <string.h>

typedef struct ring {
	const sw_task *task;
	int32_t lanes, reducing; /* rounds of reduction, which precede those of gathering */
	/* the received and combined block of a reduce-scatter, in lanes, alternating between the
	 * rounds; NULL: everything is in `out` */
	char *partial[2];
} ring;

/* Return the lane's part of the block that the member with this vrank owns. */
static sw_element_span piece(const ring *r, int32_t vrank, int32_t lane)
{
	int32_t owner = r->task->order[sw_wrap(vrank, r->task->n)];
	return sw_span_part(sw_task_block(r->task, owner), r->lanes, lane);
}

/* Return where the span received in `round` is stored. */
static char *receive_buffer(const ring *r, int32_t round, int32_t lane, sw_element_span span)
{
	const sw_task *t = r->task;
	if (!r->partial[0])
		return t->out + span.begin * t->width;
	int32_t own = t->position;
	sw_element_span block = sw_task_block(t, own);
	return r->partial[round % 2] +
	       (sw_span_part(block, r->lanes, lane).begin - block.begin) * t->width;
}

/* Return the vrank of the owner of the block that arrives in a round. While reducing, a block
 * began after its owner and reaches its owner in the last round; while gathering, it began at its
 * owner. */
static int32_t arriving(const ring *r, int32_t round)
{
	if (round < r->reducing)
		return r->task->vrank - 2 - round;
	return r->task->vrank - 1 - (round - r->reducing);
}

static void fill(const void *context, int32_t round, int32_t lane, sw_lane *messages)
{
	const ring *r = context;
	const sw_task *t = r->task;
	int32_t incoming = arriving(r, round);
	sw_element_span to = piece(r, incoming, lane), from = piece(r, incoming + 1, lane);
	const char *source = round == 0 && r->reducing ? t->in + from.begin * t->width
	                     : round < r->reducing     ? receive_buffer(r, round - 1, lane, from)
	                                               : t->out + from.begin * t->width;
	sw_lane_send(messages, sw_task_rank(t, sw_wrap(t->vrank + 1, t->n)), source,
	             from.length * t->width);
	sw_lane_receive(messages, sw_task_rank(t, sw_wrap(t->vrank - 1, t->n)),
	                receive_buffer(r, round, lane, to), to.length * t->width);
}

static void complete(const void *context, int32_t round, int32_t lane)
{
	const ring *r = context;
	const sw_task *t = r->task;
	if (round >= r->reducing)
		return;
	sw_element_span span = piece(r, arriving(r, round), lane);
	char *received = receive_buffer(r, round, lane, span), *result = received;
	if (r->partial[0] && round == r->reducing - 1)
		result = t->out + (span.begin - sw_task_block(t, t->position).begin) * t->width;
	sw_task_combine(t, received, t->in + span.begin * t->width, result, span.length);
}

static sw_status run(sw_carrier *c, ring *r, int32_t rounds, sw_error *err)
{
	sw_wave wave = {&r->task->call, rounds, r->lanes, 1, r, fill, complete};
	return sw_wave_run(c, &wave, err);
}

static ring ring_of(const sw_task *task, int32_t reducing)
{
	int64_t block = sw_task_block(task, 0).length * task->width;
	return (ring){.task = task, .lanes = sw_wave_lanes(block), .reducing = reducing};
}

static sw_status all_reduce(sw_carrier *c, const sw_task *task, sw_error *err)
{
	ring r = ring_of(task, task->n - 1);
	return run(c, &r, 2 * (task->n - 1), err);
}

static sw_status all_gather(sw_carrier *c, const sw_task *task, sw_error *err)
{
	ring r = ring_of(task, 0);
	sw_task_place_own(task);
	return run(c, &r, task->n - 1, err);
}

static sw_status reduce_scatter(sw_carrier *c, const sw_task *task, sw_error *err)
{
	ring r = ring_of(task, task->n - 1);
	int64_t bytes = sw_task_block(task, 0).length * task->width;
	r.partial[0] = sw_carrier_scratch(c, 2 * bytes);
	if (!r.partial[0])
		return sw_scratch_refused(2 * bytes, err);
	r.partial[1] = r.partial[0] + bytes;
	return run(c, &r, task->n - 1, err);
}

/* ---- all-to-all ------------------------------------------------------------------------- */

static void fill_pairs(const void *context, int32_t round, int32_t lane, sw_lane *messages)
{
	const ring *r = context;
	const sw_task *t = r->task;
	int32_t distance = (round + lane) % (t->n - 1) + 1;
	int32_t target = t->order[sw_wrap(t->vrank + distance, t->n)];
	int32_t source = t->order[sw_wrap(t->vrank - distance, t->n)];
	sw_element_span from = sw_span_part(sw_task_block(t, target), r->lanes, lane);
	sw_element_span to = sw_span_part(sw_task_block(t, source), r->lanes, lane);
	sw_lane_send(messages, t->ranks[target], t->in + from.begin * t->width,
	             from.length * t->width);
	sw_lane_receive(messages, t->ranks[source], t->out + to.begin * t->width,
	                to.length * t->width);
}

static sw_status all_to_all(sw_carrier *c, const sw_task *task, sw_error *err)
{
	ring r = ring_of(task, 0);
	sw_element_span own = sw_task_block(task, task->position);
	sw_wave wave = {&task->call, task->n - 1, r.lanes, 0, &r, fill_pairs, NULL};
	if (own.length)
		memcpy(task->out + own.begin * task->width, task->in + own.begin * task->width,
		       (size_t)(own.length * task->width));
	return sw_wave_run(c, &wave, err);
}

sw_algorithm_fn *const sw_ring_functions[SW_COLLECTIVE_COUNT] = {
	[SW_COLLECTIVE_ALL_REDUCE] = all_reduce,
	[SW_COLLECTIVE_ALL_GATHER] = all_gather,
	[SW_COLLECTIVE_REDUCE_SCATTER] = reduce_scatter,
	[SW_COLLECTIVE_ALL_TO_ALL] = all_to_all,
};
