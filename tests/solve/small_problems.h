/* Random small problems from a seed, and their optimum by exhaustion. */
#ifndef SW_TESTS_SOLVE_SMALL_PROBLEMS_H
#define SW_TESTS_SOLVE_SMALL_PROBLEMS_H

#include "solve/solve.h"

typedef struct small_optimum {
	bool feasible;
	int64_t cost;
	int32_t assignment[16];
} small_optimum;

/* At most 8 nodes of at most 4 strategies; forbidden entries, ties, loops, parallel edges, nodes
 * without edges, empty and several spans, and capacities from slack to impossible all occur. */
void small_problem_make(sw_problem *problem, uint64_t seed);
void small_problem_solve(const sw_problem *problem, small_optimum *optimum);
int64_t product_of_strategies(const sw_problem *problem);

#endif
