/*
 * Tables of limits: the constants of a stage that change its results.
 *
 * A stage's limits.h has one macro with a row X(name, value, unit, meaning, evidence) for each of
 * them; the evidence, what halving and doubling it did, is for readers of that file only. From it
 * come a struct of doubles, its default, and the rows as data, which bench/limits walks: it halves
 * and doubles each limit and prints what that does to the step and to the time that planning takes.
 * docs/limits.md has what it printed.
 */
#ifndef SW_BASE_LIMITS_H
#define SW_BASE_LIMITS_H

#include <stddef.h>

typedef struct sw_limit_row {
	const char *name, *unit, *meaning;
	size_t offset; /* of a double, in the stage's struct */
	double value;
} sw_limit_row;

/* For the struct, and for its default. */
#define SW_LIMIT_FIELD(name, value, unit, meaning, evidence) double name;
#define SW_LIMIT_VALUE(name, value, unit, meaning, evidence) .name = (value),

#endif
