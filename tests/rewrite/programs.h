/* Programs for the tests of rewrite. */
#ifndef TEST_REWRITE_PROGRAMS_H
#define TEST_REWRITE_PROGRAMS_H

#include "test.h"

#include "frontend/frontend.h"
#include "rewrite/rewrite.h"

/* HLO text, or a file, that must be readable. */
sw_program *read_text(const char *text);
sw_program *read_file(const char *path);
/* The canonical form; what comes out must verify. */
sw_program *canonical(const sw_program *program);
/* Fails with the difference and both texts. */
void assert_same_program(const sw_program *actual, const sw_program *expected);
size_t count_opcode(const sw_program *program, sw_opcode opcode);

#endif
