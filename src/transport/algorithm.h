/*
 * algorithm: the algorithms of collectives (SW_ALGORITHMS), one file each, built on the carrier's
 * exchange.
 *
 * An algorithm takes a task (the collective, its group, and the places of its ranks in the
 * cluster), sends and receives messages, and leaves the result in `out`. All ranks of the group run
 * the same algorithm on the same task. The messages of a rank follow from the task alone, never
 * from the order in which messages arrive: an element is combined in the same order in every run,
 * on every carrier, and by every rank that combines it.
 *
 * Members of a group are ordered by their places in the cluster; a member's index in this order is
 * its virtual rank (vrank), so that members with neighbouring vranks are close to each other.
 *
 * Most algorithms are WAVES: rounds of exchanges, divided into lanes that each do the same to their
 * part of the data. A wave visits its lanes cyclically: it finishes the round of one lane, combines
 * what was received and begins the lane's next round, while the messages of the other lanes are on
 * the wire.
 */
#ifndef SW_TRANSPORT_ALGORITHM_H
#define SW_TRANSPORT_ALGORITHM_H

#include "transport/carrier.h"

/* Elements [begin, begin + length) of the whole. The whole is the operand of an all-reduce, the
 * gathered result, the operand that is scattered or exchanged, or the broadcast data. */
typedef struct sw_element_span {
	int64_t begin, length;
} sw_element_span;

typedef struct sw_task {
	sw_collective_kind kind;
	sw_carrier_call call; /* monoid and type are set if elements are combined */
	/* [n], in the caller's order, which is the order of the blocks */
	const int32_t *ranks;
	int32_t n, position;  /* position: index of this rank in `ranks` */
	const int32_t *order; /* [n]: positions in the order of vranks */
	int32_t vrank;        /* of this rank: order[vrank] == position */
	/* elements of the whole, and bytes of one (1 if nothing is combined) */
	int64_t total, width;
	/* the operand: the whole; for an all-gather, a block */
	const char *in;
	/* the result: the whole; for a reduce-scatter, a block */
	char *out;
	/* direct or hierarchical all-reduce: exchange whole operands in one round (per level),
	 * instead of shares in two rounds */
	bool goes_whole;
	const sw_cluster *cluster; /* places of the ranks; NULL: unknown, all links are alike */
} sw_task;

/* Requires n > 1 and a type that can be combined. */
typedef sw_status sw_algorithm_fn(sw_carrier *c, const sw_task *task, sw_error *err);
/* NULL for a collective that the algorithm does not serve, and for permutes, which have one way. */
sw_algorithm_fn *sw_algorithm_function(sw_algorithm algorithm, sw_collective_kind kind);
/* The functions of each algorithm, by collective: NAME.c ends with them. */
#define SW_ROW(NAME, name, serves)                                                                 \
	extern sw_algorithm_fn *const sw_##name##_functions[SW_COLLECTIVE_COUNT];
SW_ALGORITHMS(SW_ROW)
#undef SW_ROW

/* ---- spans and ranks -------------------------------------------------------------------- */

/* Return part `index` of `n` of a span. All parts are equal, except for the last ones. */
static inline sw_element_span sw_span_part(sw_element_span whole, int64_t n, int64_t index)
{
	int64_t each = (whole.length + n - 1) / n, begin = SW_MIN(each * index, whole.length);
	return (sw_element_span){whole.begin + begin, SW_MIN(each, whole.length - begin)};
}
/* Return the block of the whole that belongs to position p. */
static inline sw_element_span sw_task_block(const sw_task *task, int32_t p)
{
	return sw_span_part((sw_element_span){0, task->total}, task->n, p);
}
static inline int32_t sw_task_rank(const sw_task *task, int32_t vrank)
{
	return task->ranks[task->order[vrank]];
}
/* Return i modulo n, for i >= -n. */
static inline int32_t sw_wrap(int32_t i, int32_t n)
{
	return (i + n) % n;
}
/* Compute out = a . b on elements of the task; out may be a or b. Requires sw_can_reduce. */
void sw_task_combine(const sw_task *task, const void *a, const void *b, void *out,
                     int64_t elements);
/* Copy an all-gather's operand to its place in the result. */
void sw_task_place_own(const sw_task *task);
sw_status sw_scratch_refused(int64_t bytes, sw_error *err);

/* ---- waves ------------------------------------------------------------------------------ */

typedef struct sw_wave {
	const sw_carrier_call *call;
	int32_t rounds, lanes;
	/* rounds by which each lane is behind the previous one. 1: a rank sends in one lane while
	 * it receives in another; 0: for waves whose rounds do not depend on what the previous
	 * round received */
	int32_t lag;
	const void *context;
	void (*fill)(const void *context, int32_t round, int32_t lane, sw_lane *messages);
	/* called when the messages of a round have arrived; NULL: nothing to do */
	void (*complete)(const void *context, int32_t round, int32_t lane);
} sw_wave;
sw_status sw_wave_run(sw_carrier *c, const sw_wave *wave, sw_error *err);
/* Run the wave of a broadcast, whose rounds only send from and receive into `out`; if the task
 * combines, run it backwards: the first of its ranks gets the sum (backwards.c). */
sw_status sw_broadcast_wave(sw_carrier *c, const sw_task *task, const sw_wave *wave, sw_error *err);
/* Return a number of lanes for messages of this size: as many as overlap needs, unless the pieces
 * become so small that latency dominates. */
int32_t sw_wave_lanes(int64_t message_bytes);

#endif
