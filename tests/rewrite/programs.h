/* Programs for the tests of rewrite. */
#ifndef TEST_REWRITE_PROGRAMS_H
#define TEST_REWRITE_PROGRAMS_H

#include "test.h"

#include "frontend/frontend.h"
#include "rewrite/rewrite.h"

/* Read HLO text, or a file; the test fails if it is not readable. */
sw_program *read_text(const char *text);
sw_program *read_file(const char *path);
/* Return the canonical form, which must verify. */
sw_program *canonical(const sw_program *program);
/* Fail with the difference and both texts if the programs differ. */
void assert_same_program(const sw_program *actual, const sw_program *expected);
size_t count_opcode(const sw_program *program, sw_opcode opcode);

#endif
