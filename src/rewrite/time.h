/*
 * time: the batch of the inputs split over TIME, the iterations of a loop, and what the rules make
 * of it.
 *
 * The time atom is one atom more, of as many coordinates as there are microbatches, and this is the
 * propagation of its state through a program with no move allowed on it: per value its state, per
 * op what the atom does in it. The iteration has the inner digit of the batch (stride 1), so that
 * whatever devices split the batch into, each has all of its part's microbatches. Used by phases.c
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
	sw_choice *choice;     /* per op that is touched or drawn; NONE: what goes in comes out */
	bool *touched;         /* per op: a iteration does its own part of it */
	/* DRAWN: no time reaches the op, but all that reads one of its results reads the
	 * iteration's part, so that the iteration computes only that. */
	bool *drawn;   /* per op */
	sw_time *part; /* per value of a drawn op: what a iteration computes */
	/* The first op that refuses; SW_NO_ID: none. `through`: the operand by which time came to
	 * it. */
	sw_id refuses;
	uint32_t through;
	const char *why; /* in the arena */
} sw_timing;

/* What does not depend on the number of iterations. The program must outlive it. */
void sw_timing_init(sw_timing *timing, const sw_program *program);
void sw_timing_clear(sw_timing *timing);
/* Propagates: `inputs` says which entry inputs are split over their leading dimension. False if an
 * op refuses. */
bool sw_timing_find(sw_timing *timing, const bool *inputs, int32_t iterations);

/* The states in which the op takes its operands; of those that are partial sums and needed
 * otherwise, the sum of all iterations. */
void sw_timing_needs(const sw_timing *timing, sw_id op, sw_time *needs);
/* Draws the op of a value that no time reaches into the loop; false: it can't give only this part.
 */
bool sw_timing_draw(sw_timing *timing, sw_id value, sw_time part);
/* The op reads nothing that has time after all (its sums were taken first). */
void sw_timing_release(sw_timing *timing, sw_id op);
/* The parameters of the k-th computation of a region, as values, and how many. */
sw_id sw_region_parameters(const sw_program *program, const sw_op *region, uint32_t k, uint32_t *n);
sw_layout sw_time_layout(const sw_timing *timing, sw_time time);
sw_strategy sw_time_strategy(const sw_timing *timing, sw_id op);

#endif
