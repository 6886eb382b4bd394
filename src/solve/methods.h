/*
 * methods: the search methods of the papers, on the problem of solve.h.
 *
 *   exact        sw_solve
 *   segments     one pass over cones and segments (Rhino, section 4.3.3): a good assignment, and a
 * bound of its own ilp          an integer program (Rhino, section 4.2), given to CBC, which is
 * called as a program coordinate   coordinate descent from one start after another (AutoDDL,
 * section 4.6) metropolis   a Metropolis-Hastings chain (AutoDDL, section 4.6) random       the
 * best of assignments drawn by chance exhaustive   every assignment, nothing left out
 *
 * Effort 2 of the planner is `segments`; the others are there to be compared with `exact`. All of
 * them get the problem with ties contracted and forbidden strategies dropped, and, but for
 * `segments`, without the exact reductions; all keep the least cost of the allowed assignments
 * within the capacity, and where they see none, the one that is nearest. The same seed and limit of
 * work give the same answer, but for `ilp`, whose program counts seconds alone.
 */
#ifndef SW_SOLVE_METHODS_H
#define SW_SOLVE_METHODS_H

#include "solve/solve.h"

typedef enum sw_method {
	SW_METHOD_EXACT,
	SW_METHOD_SEGMENTS,
	SW_METHOD_ILP,
	SW_METHOD_COORDINATE,
	SW_METHOD_METROPOLIS,
	SW_METHOD_RANDOM,
	SW_METHOD_EXHAUSTIVE,
	SW_METHOD_COUNT
} sw_method;

const char *sw_method_name(sw_method method);
sw_status sw_method_parse(const char *name, sw_method *method, sw_error *err);
/* Can it say how far its answer is from the optimum? Where it can't, lower_bound is INT64_MIN. */
bool sw_method_has_bound(sw_method method);

/* The decimal logarithm of how many assignments there are; tied nodes choose once. */
double sw_problem_log10_assignments(const sw_problem *problem);

/* SW_OK for every answer, as sw_solve. Of the options all use the limits, starts and `quiet`;
 * `exact` and `ilp` also gap (the others know of no bound to be near to), `exact` alone cutoff and
 * threads. Without a limit `ilp` and `exhaustive` go on to the end, `segments` takes no limit of
 * work, and the heuristics go on until a work of SW_METHOD_WORK; `ilp` takes a limit of work for
 * seconds, SW_METHOD_WORK_PER_S units each. SW_ERR_INPUT: a refused problem; `exhaustive` without a
 * limit, of more assignments than SW_MOST_EXHAUSTED; `ilp` without CBC. */
#define SW_METHOD_WORK INT64_C(500000000)
#define SW_METHOD_WORK_PER_S 5e8
#define SW_METHOD_MAX_ASSIGNMENTS 1e9
sw_status sw_solve_by(sw_method method, const sw_problem *problem, const sw_solve_options *options,
                      sw_solution *solution, sw_error *err);

#endif
