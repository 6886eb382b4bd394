/* Building a problem from numbers that are in its arena already, without copying them; otherwise as
 * their namesakes in solve.h. Private to solve. */
#ifndef SW_SOLVE_ADOPT_NUMBERS_H
#define SW_SOLVE_ADOPT_NUMBERS_H

#include "solve/solve.h"

int32_t problem_adopt_node(sw_problem *problem, int32_t strategies, const int64_t *cost);
void problem_adopt_span(sw_problem *problem, int32_t node, int32_t begin, int32_t end,
                        const int64_t *usage);
int32_t problem_adopt_table(sw_problem *problem, int32_t rows, int32_t columns,
                            const int64_t *cost);

#endif
