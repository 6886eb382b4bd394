/* One run of one method: limits, the best so far, and what the methods share. Private to solve. */
#ifndef SW_SOLVE_METHOD_RUN_H
#define SW_SOLVE_METHOD_RUN_H

#include "solve/methods/assignment_walk.h"
#include "solve/methods.h"
#include "solve/steps/solver.h"

typedef struct method_run {
	solver s; /* limits and incumbent */
	graph g;  /* ties contracted, forbidden strategies dropped */
	assignment_walk w;
	walk_value best; /* of all that the walk offered */
	int32_t *found;  /* its choices, per node of the graph */
	bool unreported; /* that is not in the incumbent yet */
	int32_t *whole;  /* per node of the problem: room for an assignment */
	sw_rng rng;
	int64_t checked_work; /* the work at which the limits were looked at last */
	int64_t tried;        /* assignments */
	int starts_taken;
	bool limited;   /* somebody set a limit */
	bool exhausted; /* nothing is cheaper than the best, or there is nothing at all */
} method_run;

/* Is the work done, the time over, or a stop asked for? Cheap enough for an inner loop. */
bool method_stopped(method_run *r);
/* Takes where the walk stands if that is better than all before. */
void method_offer(method_run *r);
/* To the next of the given starts; when they are used up, to one drawn by chance. */
void method_start(method_run *r);

typedef sw_status method_fn(method_run *r, sw_error *err);
method_fn method_segments, method_ilp, method_coordinate, method_metropolis, method_random,
	method_exhaustive;

#endif
