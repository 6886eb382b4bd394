/*
 * Padded programs beside the unpadded one, under the interpreter: the same inputs, with garbage in
 * the padding of state and zeros in that of other inputs, must give the same results where these
 * are true.
 */
#ifndef TEST_REWRITE_PADDED_H
#define TEST_REWRITE_PADDED_H

#include "interpret/interpret.h"
#include "rewrite/programs.h"

void check_status(sw_status status, const sw_error *err, const char *name);
/* Pads the canonical form, runs both, compares; gives the padded program, NULL if nothing was
 * padded. Inputs are "input.N" of the recording, made up where there is none. tolerance: of a
 * result's largest number. */
sw_program *pad_and_compare(const sw_program *program, sw_pad_rule rule,
                            const sw_tensor_file *recording, double tolerance, const char *name);

#endif
