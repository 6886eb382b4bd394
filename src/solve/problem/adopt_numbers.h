/* Private to solve: building a problem from numbers that lie in its arena already, without copies.
 * Otherwise these do what their namesakes of solve.h do. */
#ifndef SW_SOLVE_ADOPT_NUMBERS_H
#define SW_SOLVE_ADOPT_NUMBERS_H

#include "solve/solve.h"

int32_t problem_adopt_node(sw_problem *problem, int32_t strategies, const int64_t *cost);
void problem_adopt_span(sw_problem *problem, int32_t node, int32_t begin, int32_t end,
                        const int64_t *usage);
int32_t problem_adopt_table(sw_problem *problem, int32_t rows, int32_t columns,
                            const int64_t *cost);

#endif
