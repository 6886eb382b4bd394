/*
 * whole_barriers: the barriers of several values that the program which was read had.
 *
 * The canonical form has a barrier per value (src/rewrite), in the order in which the program had
 * it. A compiler that finds its own order needs to be told again that nothing behind a barrier may
 * begin before all that it waits for, as JAX's checkpoint does with a layer's weights and the
 * derivative that comes to it.
 */
#ifndef SW_EXPORT_WHOLE_BARRIERS_H
#define SW_EXPORT_WHOLE_BARRIERS_H

#include "program/program.h"

/* Write the program in which barriers of one value that were read from one line of text are one
 * barrier, as far as they stand before the first op that reads one of them. Computes the same. The
 * caller owns *out. O(uses). */
sw_status sw_whole_barriers(const sw_program *in, sw_program **out, sw_error *err);

#endif
