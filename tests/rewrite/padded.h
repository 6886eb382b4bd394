/*
 * Padded programs are compared with the unpadded ones under the interpreter: the same inputs, with
 * garbage in the padding of state and zeros in that of other inputs, must give the same results in
 * their true parts.
 */
#ifndef TEST_REWRITE_PADDED_H
#define TEST_REWRITE_PADDED_H

#include "interpret/interpret.h"
#include "rewrite/programs.h"

/* The entry's first result replaces its first input. */
#define STATE "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n"

void check_status(sw_status status, const sw_error *err, const char *name);
/* Pad the canonical form, run both, compare; return the padded program, NULL if nothing was padded.
 * Inputs are "input.N" of the recording, random where there is none. tolerance: relative to a
 * result's largest number. */
sw_program *pad_and_compare(const sw_program *program, sw_pad_rule rule,
                            const sw_tensor_file *recording, double tolerance, const char *name);

#endif
