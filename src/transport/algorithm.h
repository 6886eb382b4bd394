/*
 * algorithm: the ways to do a collective, one file each, above the carrier's exchange.
 *
 * Takes a task (what is to be done, among whom, and where they sit), sends and receives, and leaves
 * the result in `out`. All ranks of the group run the same algorithm on the same task; what each
 * sends follows from the task alone, never from what came first: an element is combined in the same
 * order in every run, on every carrier, and by every rank that combines it.
 *
 * Most are WAVES: rounds of exchanges, cut into lanes that each do the same to their part of the
 * data. A wave goes through its lanes again and again: the lane whose turn it is finishes its
 * round, combines what came, and begins the next, while the other lanes are on the wire.
 */
#ifndef SW_TRANSPORT_ALGORITHM_H
#define SW_TRANSPORT_ALGORITHM_H

#include "transport/carrier.h"

/* Elements [begin, begin + length) of the whole: all elements of an all-reduce's operand, of the
 * gathered result, of the operand that is scattered or exchanged, of what is broadcast. */
typedef struct sw_span {
	int64_t begin, length;
} sw_span;

typedef struct sw_task {
	sw_collective_kind kind;
	sw_call call; /* with the monoid and type, where something is combined */
	/* [n], as the caller lists them: that is the order of the blocks */
	const int32_t *ranks;
	int32_t n, position;  /* where this rank is in the list */
	const int32_t *order; /* [n]: positions ordered by place */
	int32_t turn;         /* order[turn] == position */
	/* elements of the whole, and bytes of one (1 where nothing is combined) */
	int64_t total, width;
	/* the operand: the whole, but for all-gather, where it is a block */
	const char *in;
	/* the result: the whole, but for reduce-scatter, where it is a block */
	char *out;
	/* all-reduce, direct or hierarchical: whole operands in one round (per level), instead of
	 * shares in two */
	bool goes_whole;
	const sw_cluster *cluster; /* where ranks sit; NULL: nobody knows, all are alike */
} sw_task;

/* Requires n > 1 and a combinable type. */
typedef sw_status sw_algorithm_fn(sw_carrier *c, const sw_task *task, sw_error *err);
sw_algorithm_fn sw_direct_all_reduce, sw_direct_all_gather, sw_direct_reduce_scatter,
	sw_direct_all_to_all, sw_direct_broadcast;
sw_algorithm_fn sw_ring_all_reduce, sw_ring_all_gather, sw_ring_reduce_scatter, sw_ring_all_to_all;
sw_algorithm_fn sw_halving_all_reduce, sw_halving_all_gather, sw_halving_reduce_scatter,
	sw_halving_broadcast;
sw_algorithm_fn sw_hierarchical_all_reduce, sw_hierarchical_all_gather,
	sw_hierarchical_reduce_scatter, sw_hierarchical_all_to_all, sw_hierarchical_broadcast;
sw_algorithm_fn sw_chain_broadcast;

/* ---- spans and ranks -------------------------------------------------------------------- */

/* Part `index` of `n` of a span: all equal but for the last ones. */
static inline sw_span sw_span_part(sw_span whole, int64_t n, int64_t index)
{
	int64_t each = (whole.length + n - 1) / n, begin = SW_MIN(each * index, whole.length);
	return (sw_span){whole.begin + begin, SW_MIN(each, whole.length - begin)};
}
/* Position p's share of the whole. */
static inline sw_span sw_task_block(const sw_task *task, int32_t p)
{
	return sw_span_part((sw_span){0, task->total}, task->n, p);
}
static inline int32_t sw_task_rank(const sw_task *task, int32_t turn)
{
	return task->ranks[task->order[turn]];
}
/* i modulo n, for i >= -n. */
static inline int32_t sw_wrap(int32_t i, int32_t n)
{
	return (i + n) % n;
}
/* out = a . b, elements of the task; out may be either. Requires sw_can_reduce. */
void sw_task_combine(const sw_task *task, const void *a, const void *b, void *out,
                     int64_t elements);
/* An all-gather's operand to its place in the result. */
void sw_task_place_own(const sw_task *task);
sw_status sw_scratch_refused(int64_t bytes, sw_error *err);

/* ---- waves ------------------------------------------------------------------------------ */

typedef struct sw_wave {
	const sw_call *call;
	int32_t rounds, lanes;
	int32_t lag; /* by how many rounds each lane is behind the one before: 1, so that what goes
	              * out for one comes in for another at the same time; 0 where no round needs
	              * what came in the one before */
	const void *context;
	void (*fill)(const void *context, int32_t round, int32_t lane, sw_lane *messages);
	/* what came in that round is there; NULL: nothing to be done */
	void (*settle)(const void *context, int32_t round, int32_t lane);
} sw_wave;
sw_status sw_wave_run(sw_carrier *c, const sw_wave *wave, sw_error *err);
/* How many lanes suit messages of so many bytes: pieces neither so small that each costs a latency,
 * nor fewer than overlap needs. */
int32_t sw_wave_lanes(int64_t message_bytes);

#endif
