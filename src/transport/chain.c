/*
 * Chain: a broadcast in pieces, each from one rank to the next.
 *
 * Every rank but the last sends the whole once, and begins as soon as it has the first piece. With
 * K pieces this takes (K + n - 2) / K of the time of one transfer. The chain begins with the root's
 * neighbours and enters every other part only once (the pipelined broadcast of the cross-mesh
 * resharding paper, section 3.1).
 */
#include "transport/algorithm.h"

#define LANES 4

typedef struct chain_position {
	const sw_task *task;
	int32_t before, after; /* previous and next rank; -1: none */
	int32_t number;        /* index along the chain; the root's is 0 */
	int64_t pieces;
} chain_position;

static int32_t part_of(const sw_task *t, int32_t position, int32_t level)
{
	return t->cluster
	               ? t->cluster
	                         ->place[(int64_t)t->ranks[position] * t->cluster->n_levels + level]
	               : 0;
}

/* Order the members level by level, the root's own part first. */
static bool comes_before(const sw_task *t, int32_t a, int32_t b)
{
	for (int32_t l = 0; t->cluster && l < t->cluster->n_levels; l++) {
		int32_t of_a = part_of(t, a, l), of_b = part_of(t, b, l), root = part_of(t, 0, l);
		if (of_a != of_b)
			return of_a == root || (of_b != root && of_a < of_b);
	}
	return a == 0 || (b != 0 && t->ranks[a] < t->ranks[b]);
}

/* Find the ranks immediately before and after this one. */
static chain_position chain_of(const sw_task *t)
{
	chain_position c = {.task = t, .pieces = sw_ceil_div(t->total * t->width, SW_PIECE_BYTES)};
	int32_t before = -1, after = -1;
	for (int32_t p = 0; p < t->n; p++) {
		if (p == t->position)
			continue;
		bool earlier = comes_before(t, p, t->position);
		c.number += earlier;
		if (earlier && (before < 0 || comes_before(t, before, p)))
			before = p;
		if (!earlier && (after < 0 || comes_before(t, p, after)))
			after = p;
	}
	c.before = before < 0 ? -1 : t->ranks[before];
	c.after = after < 0 ? -1 : t->ranks[after];
	return c;
}

/* Rank number i receives piece k in round k + i - 1 of the piece's lane, and sends it on in the
 * next round. */
static void fill(const void *context, int32_t round, int32_t lane, sw_lane *messages)
{
	const chain_position *c = context;
	sw_element_span whole = {0, c->task->total};
	int64_t sent = (int64_t)(round - c->number) * LANES + lane, incoming = sent + LANES;
	if (c->after >= 0 && sent >= 0 && sent < c->pieces) {
		sw_element_span piece = sw_span_part(whole, c->pieces, sent);
		sw_lane_send(messages, c->after, c->task->out + piece.begin * c->task->width,
		             piece.length * c->task->width);
	}
	if (c->before >= 0 && incoming >= 0 && incoming < c->pieces) {
		sw_element_span piece = sw_span_part(whole, c->pieces, incoming);
		sw_lane_receive(messages, c->before, c->task->out + piece.begin * c->task->width,
		                piece.length * c->task->width);
	}
}

static sw_status broadcast(sw_carrier *carrier, const sw_task *task, sw_error *err)
{
	chain_position c = chain_of(task);
	int64_t rounds = sw_ceil_div(c.pieces, LANES) + task->n - 2;
	sw_wave wave = {&task->call, (int32_t)rounds, LANES, 1, &c, fill, NULL};
	return sw_broadcast_wave(carrier, task, &wave, err);
}

sw_algorithm_fn *const sw_chain_functions[SW_COLLECTIVE_COUNT] = {
	[SW_COLLECTIVE_BROADCAST] = broadcast,
};
