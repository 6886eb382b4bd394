/* Random small problems from a seed, and their optimum by exhaustive search. */
#ifndef SW_TESTS_SOLVE_SMALL_PROBLEMS_H
#define SW_TESTS_SOLVE_SMALL_PROBLEMS_H

#include "solve/solve.h"

/* Sanitizers are slow: tests try so many times fewer problems under them. */
#if defined(__SANITIZE_THREAD__)
#define FEWER 16
#elif defined(__SANITIZE_ADDRESS__)
#define FEWER 4
#else
#define FEWER 1
#endif

typedef struct small_optimum {
	bool feasible;
	int64_t cost;
	int32_t assignment[16];
} small_optimum;

/* At most 8 nodes of at most 4 strategies; forbidden entries, ties, loops, parallel edges, nodes
 * without edges, empty and several spans occur, and capacities from loose to impossible. */
void small_problem_make(sw_problem *problem, uint64_t seed);
void small_problem_solve(const sw_problem *problem, small_optimum *optimum);
int64_t product_of_strategies(const sw_problem *problem);

/* 10 to 14 nodes of 2 to 4 strategies whose costs fall as their usages rise, under a capacity near
 * the usage of a random assignment: the reductions leave much, and the bound alone rarely closes
 * it. Several and empty spans, isolated nodes, parallel edges, ties and huge usages occur. */
void tight_problem_make(sw_problem *problem, uint64_t seed);
/* The same as small_problem_solve, by depth-first search that prunes by a bound. */
void tight_problem_solve(const sw_problem *problem, small_optimum *optimum);

/* 120 nodes of 6 strategies, with a capacity that binds: far too large to be solved at once. */
void large_problem_make(sw_problem *problem, uint64_t seed);

#endif
