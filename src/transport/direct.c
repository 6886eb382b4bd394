/*
 * Direct: every rank exchanges with every other rank at once.
 *
 * all-gather and all-to-all send each block directly to its destination. So does a reduce-scatter,
 * where every rank combines what it received in the order of the ranks: it sends (n-1)/n of the
 * operand, as a ring does, but each element is rounded in one place only. A large all-reduce is a
 * reduce-scatter followed by an all-gather (Rabenseifner's scheme: Thakur, Rabenseifner, Gropp
 * 2005, section 4.5). A small one sends whole operands to every rank, which costs one latency
 * instead of two; this is always done between two ranks, as it sends no more.
 */
#include "transport/algorithm.h"

#include <string.h>

/* Message k of n-1 goes to the rank k positions ahead and comes from the one k positions behind, so
 * that no rank receives from all others at once. */
static int32_t ahead(const sw_task *task, int32_t k)
{
	return sw_wrap(task->position + k, task->n);
}

static int32_t behind(const sw_task *task, int32_t k)
{
	return sw_wrap(task->position - k, task->n);
}

static sw_status exchange(sw_carrier *c, const sw_task *task, sw_error *err)
{
	sw_status status = sw_carrier_exchange(c, &task->call, err);
	for (size_t i = 0; i < c->lanes[0].sends.len && status == SW_OK; i++)
		c->base.traffic.wire_bytes += c->lanes[0].sends.data[i].bytes;
	return status;
}

/* Combine the span `mine` of all operands, in the order of the ranks. theirs(p) is the span of this
 * rank's operand that position p needs and is sent. */
static sw_status collect(sw_carrier *c, const sw_task *task, sw_element_span mine,
                         sw_element_span (*theirs)(const sw_task *task, int32_t p), void *out,
                         sw_error *err)
{
	int64_t bytes = mine.length * task->width;
	char *scratch = sw_carrier_scratch(c, bytes * (task->n - 1));
	sw_lane *lane = sw_carrier_lane(c, 0);
	if (!scratch)
		return sw_scratch_refused(bytes * (task->n - 1), err);
	c->inputs[task->position] = task->in + mine.begin * task->width;
	for (int32_t k = 1; k < task->n; k++) {
		int32_t target = ahead(task, k), source = behind(task, k);
		sw_element_span wanted = theirs(task, target);
		c->inputs[source] = scratch + (k - 1) * bytes;
		sw_lane_send(lane, task->ranks[target], task->in + wanted.begin * task->width,
		             wanted.length * task->width);
		sw_lane_receive(lane, task->ranks[source], scratch + (k - 1) * bytes, bytes);
	}
	sw_status status = exchange(c, task, err);
	return status ? status
	              : sw_reduce(task->call.monoid, task->call.type, c->inputs, task->n, out,
	                          mine.length, err);
}

static sw_element_span everything(const sw_task *task, int32_t p)
{
	(void)p;
	return (sw_element_span){0, task->total};
}

/* Send this rank's share, which is in its place in the result, to all others, and receive
 * theirs. */
static sw_status gather_shares(sw_carrier *c, const sw_task *task, sw_error *err)
{
	sw_element_span mine = sw_task_block(task, task->position);
	sw_lane *lane = sw_carrier_lane(c, 0);
	for (int32_t k = 1; k < task->n; k++) {
		int32_t target = ahead(task, k), source = behind(task, k);
		sw_element_span theirs = sw_task_block(task, source);
		sw_lane_send(lane, task->ranks[target], task->out + mine.begin * task->width,
		             mine.length * task->width);
		sw_lane_receive(lane, task->ranks[source], task->out + theirs.begin * task->width,
		                theirs.length * task->width);
	}
	return exchange(c, task, err);
}

static sw_status all_reduce(sw_carrier *c, const sw_task *task, sw_error *err)
{
	if (task->goes_whole)
		return collect(c, task, everything(task, 0), everything, task->out, err);
	sw_element_span mine = sw_task_block(task, task->position);
	sw_status status =
		collect(c, task, mine, sw_task_block, task->out + mine.begin * task->width, err);
	return status ? status : gather_shares(c, task, err);
}

static sw_status reduce_scatter(sw_carrier *c, const sw_task *task, sw_error *err)
{
	return collect(c, task, sw_task_block(task, task->position), sw_task_block, task->out, err);
}

static sw_status all_gather(sw_carrier *c, const sw_task *task, sw_error *err)
{
	sw_task_place_own(task);
	return gather_shares(c, task, err);
}

static sw_status all_to_all(sw_carrier *c, const sw_task *task, sw_error *err)
{
	int64_t bytes = task->total / task->n * task->width;
	sw_lane *lane = sw_carrier_lane(c, 0);
	if (bytes)
		memcpy(task->out + task->position * bytes, task->in + task->position * bytes,
		       (size_t)bytes);
	for (int32_t k = 1; k < task->n; k++) {
		int32_t target = ahead(task, k), source = behind(task, k);
		sw_lane_send(lane, task->ranks[target], task->in + target * bytes, bytes);
		sw_lane_receive(lane, task->ranks[source], task->out + source * bytes, bytes);
	}
	return exchange(c, task, err);
}

static void fill_star(const void *context, int32_t round, int32_t lane, sw_lane *messages)
{
	const sw_task *task = context;
	(void)round;
	(void)lane;
	for (int32_t k = 1; k < task->n && task->position == 0; k++)
		sw_lane_send(messages, task->ranks[k], task->out, task->total * task->width);
	if (task->position > 0)
		sw_lane_receive(messages, task->ranks[0], task->out, task->total * task->width);
}

static sw_status broadcast(sw_carrier *c, const sw_task *task, sw_error *err)
{
	sw_wave wave = {&task->call, 1, 1, 1, task, fill_star, NULL};
	return sw_broadcast_wave(c, task, &wave, err);
}

sw_algorithm_fn *const sw_direct_functions[SW_COLLECTIVE_COUNT] = {
	[SW_COLLECTIVE_ALL_REDUCE] = all_reduce,         [SW_COLLECTIVE_ALL_GATHER] = all_gather,
	[SW_COLLECTIVE_REDUCE_SCATTER] = reduce_scatter, [SW_COLLECTIVE_ALL_TO_ALL] = all_to_all,
	[SW_COLLECTIVE_BROADCAST] = broadcast,
};
