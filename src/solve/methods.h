/*
 * methods: the search methods of the papers, on the problem of solve.h.
 *
 *   exact        sw_solve
 *   segments     one pass over cones and segments (Rhino, section 4.3.2): a good assignment, and a
 *                bound of its own
 *   ilp          an integer program (Rhino, section 4.2), given to CBC, which runs as a process
 *   coordinate   coordinate descent from one start after another (AutoDDL, section 4.6)
 *   blocks       coordinate descent by nodes with their neighbours: values with their readers
 *   metropolis   a Metropolis-Hastings chain (AutoDDL, section 4.6)
 *   random       the best of assignments drawn at random
 *   exhaustive   every assignment, without pruning
 *
 * The planner's effort 2 is `segments`; the other methods are there to be compared with `exact`.
 * All of them get the problem with ties contracted and forbidden strategies dropped; only
 * `segments` gets the exact reductions as well. All return the least cost of the allowed
 * assignments within the capacity that they found, and where they found none, the assignment that
 * exceeds it least. The same seed and work limit give the same answer, except for `ilp`, since CBC
 * counts seconds only.
 */
#ifndef SW_SOLVE_METHODS_H
#define SW_SOLVE_METHODS_H

#include "solve/solve.h"

typedef enum sw_method {
	SW_METHOD_EXACT,
	SW_METHOD_SEGMENTS,
	SW_METHOD_ILP,
	SW_METHOD_COORDINATE,
	SW_METHOD_BLOCKS,
	SW_METHOD_METROPOLIS,
	SW_METHOD_RANDOM,
	SW_METHOD_EXHAUSTIVE,
	SW_METHOD_COUNT
} sw_method;

const char *sw_method_name(sw_method method);
sw_status sw_method_parse(const char *name, sw_method *method, sw_error *err);
/* Whether the method proves a lower bound. Where it does not, lower_bound is INT64_MIN. */
bool sw_method_has_bound(sw_method method);

/* Return the decimal logarithm of the number of assignments; tied nodes choose once. */
double sw_problem_log10_assignments(const sw_problem *problem);

/* Solve the problem by a method; SW_OK for every answer, as sw_solve. All methods read the limits,
 * `starts` and `quiet` of the options; `exact` and `ilp` also `gap`, since the others have no bound
 * that the cost could be near to; only `exact` reads `cutoff` and `threads`. Without a limit `ilp`
 * and `exhaustive` run to the end, and the heuristics until a work of SW_METHOD_WORK; `segments`
 * ignores the work limit; `ilp` converts it to seconds, SW_METHOD_WORK_PER_S units each.
 * SW_ERR_INPUT: a problem that sw_problem_check refuses; `exhaustive` without a limit on more than
 * SW_METHOD_MAX_ASSIGNMENTS assignments; `ilp` where CBC is not installed. */
#define SW_METHOD_WORK INT64_C(500000000)
#define SW_METHOD_WORK_PER_S 5e8
#define SW_METHOD_MAX_ASSIGNMENTS 1e9
sw_status sw_solve_by(sw_method method, const sw_problem *problem, const sw_solve_options *options,
                      sw_solution *solution, sw_error *err);

#endif
