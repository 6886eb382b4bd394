/*
 * Reading the problems of the ASPLOS 2025 / EuroSys 2025 contest on intra-operator parallelism
 * (google/iopddl): JSON, plain or gzip, recognised by its first bytes. docs/formats.md describes
 * the format.
 *
 * The text is read in one pass: besides the problem itself the reader holds a window of 64 KiB of
 * the text, the longest list, and some 30 bytes per node and per edge. Equal lists of numbers are
 * stored once, whatever they belong to. O(text). Keys may come in any order; unknown ones are
 * skipped.
 *
 * Costs of 9e17 and more are SW_FORBIDDEN (the contest writes 1e18); costs below -9e17 are refused.
 */
#ifndef SW_SOLVE_CONTEST_PROBLEM_H
#define SW_SOLVE_CONTEST_PROBLEM_H

#include "solve/solve.h"

#define SW_CONTEST_FORBIDDEN INT64_C(900000000000000000)

/* Read a file. *problem is initialised here; after an error it is empty and needs no clearing.
 * Errors are SW_ERR_INPUT, with the file, the place, the path to the value
 * ("problem.edges.costs[17]"), the expected value and the remedy, and SW_ERR_IO where the system
 * refused. A progress line is shown after a second, unless quiet. */
sw_status sw_problem_read(sw_problem *problem, const char *path, bool quiet, sw_error *err);
/* The same, from text in memory. */
sw_status sw_problem_parse(sw_problem *problem, const char *data, size_t length, sw_error *err);

#endif
