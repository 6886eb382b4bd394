/*
 * time: the batch of the inputs split over TIME, which means over the iterations of a loop, and the
 * consequences that the rules derive from it.
 *
 * The time atom is an additional atom with as many coordinates as there are microbatches; this file
 * propagates its state through a program with no move allowed on it: per value its state, per op
 * the choice of the atom. The iteration has the inner digit of the batch (stride 1), so that,
 * whatever devices split the batch, each device has all microbatches of its part. Used by phasing.c
 * and microbatches.c.
 */
#ifndef SW_REWRITE_TIME_H
#define SW_REWRITE_TIME_H

#include "rewrite/internal.h"

/* The state of a value over time; zeroed: B, the same in all iterations. */
typedef struct sw_time {
	sw_state state;
	sw_monoid monoid; /* of P */
} sw_time;
bool sw_time_equal(sw_time a, sw_time b);

typedef struct sw_timing {
	sw_arena arena;
	const sw_program *program;
	sw_atoms atoms;        /* the time atom alone */
	const sw_rule **rules; /* per op; NULL where not planned */
	bool *planned;         /* per computation */
	sw_id *caller;         /* per computation: the region that runs it, SW_NO_ID: none */
	sw_time *value;        /* per value */
	/* per op that is touched or sunk; NONE: each result has the state of its operand */
	sw_choice *choice;
	bool *touched; /* per op: each iteration executes its own part of it */
	/* SUNK: no time reaches the op, but all readers of one of its results read the iteration's
	 * part, so that the iteration computes only that part. */
	bool *sunk;    /* per op */
	sw_time *part; /* per value of a sunk op: the part that an iteration computes */
	bool *late;    /* per value: it is made of what an op gives that runs after the loops */
	/* The first op that refuses; SW_NO_ID: none. `through`: the operand through which time
	 * reached it. */
	sw_id refuses;
	uint32_t through;
	const char *why; /* in the arena */
} sw_timing;

/* Prepare everything that does not depend on the number of iterations. The program must outlive the
 * timing. */
void sw_timing_init(sw_timing *timing, const sw_program *program);
void sw_timing_clear(sw_timing *timing);
/* Propagate time through the program; dim: of each entry input the dimension that is split, -1: it
 * is whole. Return false if an op refuses. */
bool sw_timing_find(sw_timing *timing, const int32_t *dim, int32_t iterations);

/* Write the states in which the op reads its operands. An operand that is a partial sum but is
 * needed in another state is read as the sum over all iterations. */
void sw_timing_needs(const sw_timing *timing, sw_id op, sw_time *needs);
/* Sink the op of a value that no time reaches into the loop; return false if it cannot compute only
 * this part. */
bool sw_timing_sink(sw_timing *timing, sw_id value, sw_time part);
/* Clear the time of an op that reads no value with time after all (its sums were taken first), and
 * of all ops within it. */
void sw_timing_release(sw_timing *timing, sw_id op);
/* Return the first parameter value of the k-th computation of a region, and write their number. */
sw_id sw_region_parameters(const sw_program *program, const sw_op *region, uint32_t k, uint32_t *n);
sw_layout sw_time_layout(const sw_timing *timing, sw_time time);
sw_time sw_time_of(const sw_layout *layout);
sw_strategy sw_time_strategy(const sw_timing *timing, sw_id op);

#endif
