/* Programs for the tests of rewrite. */
#ifndef TEST_REWRITE_PROGRAMS_H
#define TEST_REWRITE_PROGRAMS_H

#include "test.h"

#include "frontend/frontend.h"
#include "interpret/interpret.h"
#include "rewrite/rewrite.h"

/* Read HLO text, or a file; the test fails if it is not readable. */
sw_program *read_text(const char *text);
sw_program *read_file(const char *path);
/* Return the canonical form, which must verify. */
sw_program *canonical(const sw_program *program);
/* Fail with the difference and both texts if the programs differ. */
void assert_same_program(const sw_program *actual, const sw_program *expected);
/* Interpret a program of at most 16 inputs, which the function fills one after the other; the caller
 * drops the results. */
void run_filled(const sw_program *program, uint64_t seed, void (*fill)(sw_tensor input, sw_rng *rng),
                sw_tensor *results);
/* Return the canonical form of a text, which must be canonical, and give the same bits with inputs that
 * are filled from the seeds 1 to `seeds`. */
sw_program *same_canonical(const char *text, uint64_t seeds,
                           void (*fill)(sw_tensor input, sw_rng *rng));
size_t count_opcode(const sw_program *program, sw_opcode opcode);

#endif
