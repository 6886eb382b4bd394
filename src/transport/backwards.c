/*
 * A broadcast run backwards: the root gets the sum of what all ranks have.
 *
 * What the broadcast's wave sends in a round is received in the round with the opposite number, and
 * combined with what this rank has; what it receives is sent. So a reduction to a root takes the
 * same algorithms, links and bytes as a broadcast from it. Every rank adds to its `out`, which
 * holds its operand at first; the order of additions follows from the task alone.
 */
#include "transport/algorithm.h"

#include <string.h>

typedef struct backwards {
	sw_carrier *carrier;
	const sw_task *task;
	const sw_wave *forwards;
	char *scratch;
	int64_t lane_bytes; /* of scratch */
} backwards;

/* Fill the lane with the messages of the broadcast's round. */
static sw_lane *forward_messages(const backwards *b, int32_t round, int32_t lane)
{
	sw_lane *messages = sw_carrier_lane(b->carrier, lane);
	b->forwards->fill(b->forwards->context, b->forwards->rounds - 1 - round, lane, messages);
	return messages;
}

static void fill(const void *context, int32_t round, int32_t lane, sw_lane *messages)
{
	const backwards *b = context;
	SW_VEC(sw_message) sent = {0};
	char *into = b->scratch + lane * b->lane_bytes;
	messages = forward_messages(b, round, lane);
	for (size_t i = 0; i < messages->sends.len; i++)
		sw_vec_push(&sent, messages->sends.data[i]);
	messages->sends.len = 0;
	for (size_t i = 0; i < messages->receives.len; i++) {
		sw_message m = messages->receives.data[i];
		sw_lane_send(messages, m.peer, m.into, m.bytes);
	}
	messages->receives.len = 0;
	for (size_t i = 0; i < sent.len; i++) {
		sw_lane_receive(messages, sent.data[i].peer, into, sent.data[i].bytes);
		into += sent.data[i].bytes;
	}
	sw_vec_clear(&sent);
}

/* Add what was received to where the broadcast sends from. */
static void complete(const void *context, int32_t round, int32_t lane)
{
	const backwards *b = context;
	const char *from = b->scratch + lane * b->lane_bytes;
	sw_lane *messages = forward_messages(b, round, lane);
	for (size_t i = 0; i < messages->sends.len; i++) {
		char *at = (char *)messages->sends.data[i].from;
		int64_t bytes = messages->sends.data[i].bytes;
		sw_task_combine(b->task, at, from, at, bytes / b->task->width);
		from += bytes;
	}
}

/* Return the bytes that a lane receives in a round at most. */
static int64_t most_received(const backwards *b)
{
	int64_t most = 0;
	for (int32_t round = 0; round < b->forwards->rounds; round++)
		for (int32_t lane = 0; lane < b->forwards->lanes; lane++) {
			const sw_lane *messages = forward_messages(b, round, lane);
			int64_t bytes = 0;
			for (size_t i = 0; i < messages->sends.len; i++)
				bytes += messages->sends.data[i].bytes;
			most = SW_MAX(most, bytes);
		}
	return most;
}

static sw_status run_backwards(sw_carrier *c, const sw_task *task, const sw_wave *wave,
                               sw_error *err)
{
	backwards b = {.carrier = c, .task = task, .forwards = wave};
	b.lane_bytes = (most_received(&b) + 63) / 64 * 64;
	b.scratch = sw_carrier_scratch(c, SW_MAX(b.lane_bytes * wave->lanes, 1));
	if (!b.scratch)
		return sw_scratch_refused(b.lane_bytes * wave->lanes, err);
	sw_wave back = {wave->call, wave->rounds, wave->lanes, wave->lag, &b, fill, complete};
	return sw_wave_run(c, &back, err);
}

sw_status sw_broadcast_wave(sw_carrier *c, const sw_task *task, const sw_wave *wave, sw_error *err)
{
	return task->call.monoid ? run_backwards(c, task, wave, err) : sw_wave_run(c, wave, err);
}
