/*
 * late_barriers: what is computed again waits until it is needed.
 *
 * Rematerialisation reads what was kept through barriers, so that a compiler does not merge the
 * second computation with the first. Nothing says when it should be, though, and a compiler that
 * finds its own order may do it at once, and keep what was to be freed. Here the barriers that lead
 * to one reader, and the value that it waits for, become one barrier, as in JAX's checkpoint:
 * nothing behind it can begin before that value is there.
 */
#ifndef SW_EXPORT_LATE_BARRIERS_H
#define SW_EXPORT_LATE_BARRIERS_H

#include "program/program.h"

/* Write the program in which each barrier of one value that is read by copies (ops equal to earlier
 * ones, if barriers change nothing) is joined with the others of the first reader of what they
 * compute that is no copy itself, and with its operand that is computed last, unless that operand is
 * much larger than what the barriers keep. Computes the same.
 * n_joined: how many barriers became part of another one. The caller owns *out. O(uses). */
sw_status sw_late_barriers(const sw_program *in, sw_program **out, uint32_t *n_joined,
                           sw_error *err);

#endif
