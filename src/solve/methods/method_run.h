/* One run of one method: limits, the best assignment so far, and the functions that the methods
 * share. Private to solve. */
#ifndef SW_SOLVE_METHOD_RUN_H
#define SW_SOLVE_METHOD_RUN_H

#include "solve/methods/assignment_walk.h"
#include "solve/methods.h"
#include "solve/steps/solver.h"

typedef struct method_run {
	solver s; /* limits and incumbent */
	graph g;  /* ties contracted, forbidden strategies dropped */
	assignment_walk w;
	walk_value best; /* of all that method_offer saw */
	int32_t *found;  /* its choices, per node of the graph */
	bool unreported; /* the best is not in the incumbent yet */
	int32_t *whole;  /* per node of the problem: workspace for an assignment */
	sw_rng rng;
	int64_t checked_work; /* the work at which the limits were last checked */
	int64_t tried;        /* assignments evaluated */
	int starts_taken;
	bool limited;   /* the caller set a limit */
	bool exhausted; /* no assignment is cheaper than the best, or none is feasible */
} method_run;

/* Whether the work is spent, the time over, or the run stopped. Cheap enough for an inner loop. */
bool method_stopped(method_run *r);
/* Take the walk's assignment if it is better than all before. */
void method_offer(method_run *r);
/* Move each node in turn to its best strategy, given all others. True if one changed. */
bool method_sweep(method_run *r);
/* Move to the next of the caller's starts; after the last one, to a random assignment. */
void method_start(method_run *r);

typedef sw_status method_fn(method_run *r, sw_error *err);
method_fn method_segments, method_ilp, method_coordinate, method_blocks, method_metropolis,
	method_random, method_exhaustive;

#endif
