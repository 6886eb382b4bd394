/*
 * Halving: the smallest number of rounds, for any number of ranks.
 *
 * An all-gather doubles what each rank has: at distances 1, 2, 4, ... a rank sends all blocks that
 * it has (in the last round only those that are missing) backwards and receives as many (Bruck et
 * al. 1997, section 4). This takes ceil(log2 n) rounds and sends (n - 1) / n of the whole. A
 * reduce-scatter is the same backwards in time: copies to several ranks become sums over them. An
 * all-reduce is both. A broadcast is a binomial tree. Blocks are numbered by vrank; a run of blocks
 * that wraps around the end is two runs.
 */
#include "transport/algorithm.h"

#include <string.h>

/* Return the number of rounds until n ranks have what one rank had. */
static int32_t rounds_of(int32_t n)
{
	int32_t rounds = 0;
	while (INT64_C(1) << rounds < n)
		rounds++;
	return rounds;
}

typedef struct halving {
	const sw_task *task;
	int32_t reducing; /* rounds of reduction, which precede those of gathering */
	char *sums;       /* [whole]: partly combined, each block in its place */
	char *received;   /* [whole]: received in a round, each block in its place */
} halving;

/* The distances fall during reduction and rise during gathering. */
static int32_t distance(const halving *h, int32_t round)
{
	return 1 << (round < h->reducing ? h->reducing - 1 - round : round - h->reducing);
}

static int32_t blocks_moved(const halving *h, int32_t round)
{
	return SW_MIN(distance(h, round), h->task->n - distance(h, round));
}

static sw_element_span block_at(const sw_task *t, int32_t vrank)
{
	return sw_task_block(t, t->order[sw_wrap(vrank % t->n, t->n)]);
}

/* Blocks with consecutive vranks are one message if they are contiguous in memory. */
static void add_run(const sw_task *t, int32_t vrank, int32_t blocks, char *base, sw_lane *messages,
                    int32_t peer, bool send)
{
	for (int32_t i = 0; i < blocks;) {
		sw_element_span run = block_at(t, vrank + i++);
		while (i < blocks && block_at(t, vrank + i).begin == run.begin + run.length)
			run.length += block_at(t, vrank + i++).length;
		if (send)
			sw_lane_send(messages, peer, base + run.begin * t->width,
			             run.length * t->width);
		else
			sw_lane_receive(messages, peer, base + run.begin * t->width,
			                run.length * t->width);
	}
}

/* Send the sums of the blocks that begin at the partner's vrank to it, and receive those that begin
 * at this rank's own. */
static void fill_reduction(const halving *h, int32_t round, sw_lane *messages)
{
	const sw_task *t = h->task;
	int32_t d = distance(h, round), blocks = blocks_moved(h, round);
	int32_t target = sw_wrap(t->vrank + d, t->n), source = sw_wrap(t->vrank - d, t->n);
	char *base = round == 0 ? (char *)t->in : h->sums;
	add_run(t, target, blocks, base, messages, sw_task_rank(t, target), true);
	add_run(t, t->vrank, blocks, h->received, messages, sw_task_rank(t, source), false);
}

static void fill_gathering(const halving *h, int32_t round, sw_lane *messages)
{
	const sw_task *t = h->task;
	int32_t d = distance(h, round), blocks = blocks_moved(h, round);
	int32_t target = sw_wrap(t->vrank - d, t->n), source = sw_wrap(t->vrank + d, t->n);
	add_run(t, t->vrank, blocks, t->out, messages, sw_task_rank(t, target), true);
	add_run(t, source, blocks, t->out, messages, sw_task_rank(t, source), false);
}

static void fill(const void *context, int32_t round, int32_t lane, sw_lane *messages)
{
	const halving *h = context;
	(void)lane;
	if (round < h->reducing)
		fill_reduction(h, round, messages);
	else
		fill_gathering(h, round, messages);
}

/* Combine the received blocks. After the first round, `sums` holds every block that is used
 * later. */
static void complete(const void *context, int32_t round, int32_t lane)
{
	const halving *h = context;
	const sw_task *t = h->task;
	(void)lane;
	if (round >= h->reducing)
		return;
	int32_t n_left = distance(h, round), moved = blocks_moved(h, round);
	for (int32_t i = 0; i < n_left; i++) {
		sw_element_span b = block_at(t, t->vrank + i);
		const char *mine = (round == 0 ? t->in : h->sums) + b.begin * t->width;
		char *sum = h->sums + b.begin * t->width;
		if (i < moved)
			sw_task_combine(t, mine, h->received + b.begin * t->width, sum, b.length);
		else if (round == 0 && b.length)
			memcpy(sum, mine, (size_t)(b.length * t->width));
	}
}

static sw_status run(sw_carrier *c, const halving *h, int32_t rounds, sw_error *err)
{
	sw_wave wave = {&h->task->call, rounds, 1, 1, h, fill, complete};
	return sw_wave_run(c, &wave, err);
}

static sw_status all_reduce(sw_carrier *c, const sw_task *task, sw_error *err)
{
	int64_t bytes = task->total * task->width;
	int32_t rounds = rounds_of(task->n);
	halving h = {task, rounds, task->out, sw_carrier_scratch(c, bytes)};
	return h.received ? run(c, &h, 2 * rounds, err) : sw_scratch_refused(bytes, err);
}

static sw_status reduce_scatter(sw_carrier *c, const sw_task *task, sw_error *err)
{
	int64_t bytes = task->total * task->width;
	sw_element_span mine = sw_task_block(task, task->position);
	char *scratch = sw_carrier_scratch(c, 2 * bytes);
	if (!scratch)
		return sw_scratch_refused(2 * bytes, err);
	halving h = {task, rounds_of(task->n), scratch, scratch + bytes};
	sw_status status = run(c, &h, h.reducing, err);
	if (status == SW_OK && mine.length)
		memcpy(task->out, h.sums + mine.begin * task->width,
		       (size_t)(mine.length * task->width));
	return status;
}

static sw_status all_gather(sw_carrier *c, const sw_task *task, sw_error *err)
{
	halving h = {.task = task};
	sw_task_place_own(task);
	return run(c, &h, rounds_of(task->n), err);
}

/* ---- broadcast -------------------------------------------------------------------------- */

/* In each round the number of ranks that have the data doubles. `number` counts vranks from the
 * root's. */
static void fill_tree(const void *context, int32_t round, int32_t lane, sw_lane *messages)
{
	const sw_task *t = context;
	int32_t reach = 1 << round, root = 0;
	(void)lane;
	while (t->order[root] != 0)
		root++;
	int32_t number = sw_wrap(t->vrank - root, t->n);
	if (number < reach && number + reach < t->n)
		sw_lane_send(messages, sw_task_rank(t, sw_wrap(t->vrank + reach, t->n)), t->out,
		             t->total * t->width);
	else if (number >= reach && number < 2 * reach)
		sw_lane_receive(messages, sw_task_rank(t, sw_wrap(t->vrank - reach, t->n)), t->out,
		                t->total * t->width);
}

static sw_status broadcast(sw_carrier *c, const sw_task *task, sw_error *err)
{
	sw_wave wave = {&task->call, rounds_of(task->n), 1, 1, task, fill_tree, NULL};
	return sw_broadcast_wave(c, task, &wave, err);
}

sw_algorithm_fn *const sw_halving_functions[SW_COLLECTIVE_COUNT] = {
	[SW_COLLECTIVE_ALL_REDUCE] = all_reduce,
	[SW_COLLECTIVE_ALL_GATHER] = all_gather,
	[SW_COLLECTIVE_REDUCE_SCATTER] = reduce_scatter,
	[SW_COLLECTIVE_BROADCAST] = broadcast,
};
