/* bench/read: its two tables. */
#ifndef SW_BENCH_READ_H
#define SW_BENCH_READ_H

#include "base/base.h"

#define ROUNDS 5

/* Add a row for the problem in a file; the table has problem_columns with problem_headings. */
extern const int problem_columns;
extern const char *const problem_headings[];
sw_status bench_problem(sw_table *table, const char *path, sw_error *err);

#endif
