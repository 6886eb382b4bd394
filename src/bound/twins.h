/* twins: ops that may become one op when their program is rewritten. */
#ifndef SW_BOUND_TWINS_H
#define SW_BOUND_TWINS_H

#include "program/program.h"

/* Per op: the number of its class. looped: per op, may it run in a loop over microbatches? Ops of
 * one class may be merged by the canonical form of a padded or looped program, and ops of different
 * classes are never merged. A class has the number of its first op. The array is in the arena.
 * O(ops * rounds), and the square of the sizes that one value is broadcast to; two or three rounds
 * are usual. */
const sw_id *sw_bound_twins(const sw_program *program, const bool *looped, sw_arena *arena);

#endif
