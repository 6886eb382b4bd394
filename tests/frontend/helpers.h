/* Helpers that read snippets of HLO text and check the place of errors. */
#ifndef SW_TEST_FRONTEND_HELPERS_H
#define SW_TEST_FRONTEND_HELPERS_H

#include "test.h"

#include "frontend/frontend.h"

/* Read the program of a text; fail the test with the reader's error. Free it with
 * sw_program_free. */
sw_program *read_text(const char *text);
/* Check that read -> print -> read gives an equal program, and the same text. */
void check_round_trip(const sw_program *program, const char *what);
void check_text(const char *text);
/* Return the text of an entry computation, "HloModule m\n\nENTRY e {\nBODY\n}\n"; free() it. */
char *entry_of(const char *body);
void check_entry(const char *body);

/* Check that reading fails with exactly this place and message. */
void check_error(const char *text, int line, int column, const char *message);

/* Return the op of this name; fail the test if there is none. */
const sw_op *op_named(const sw_program *program, const char *name);
/* Return the only constant of "ROOT c = SHAPE constant(LITERAL)"; the caller frees *program. */
const sw_literal *read_literal(const char *shape, const char *literal, sw_program **program);

#endif
