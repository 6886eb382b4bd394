/*
 * solved: problems of a search that were solved, so that the same problem is solved once.
 *
 * Meshes of different strategies are often one problem: megatron:tp=4 and axonn:4,1,1,2 of a
 * network without products of matrices, say. Problems are the same if all that the solver reads of
 * them is, down to the assignments that it begins with. A thread that asks for what another one
 * solves waits for it. Answers that a time limit cut short are not kept. Private to src/search.
 */
#ifndef SW_SEARCH_SOLVED_H
#define SW_SEARCH_SOLVED_H

#include "solve/methods.h"

typedef struct sw_solved sw_solved;
sw_solved *sw_solved_new(void);
void sw_solved_free(sw_solved *solved); /* NULL: there is none */
/* As sw_solve_by: the solution is the caller's. O(bytes of the problem) where it was solved. */
sw_status sw_solved_solve(sw_solved *solved, sw_method method, const sw_problem *problem,
                          const sw_solve_options *options, sw_solution *solution, sw_error *err);
/* Return how often an answer was not looked for again. */
int64_t sw_solved_reused(sw_solved *solved);

#endif
