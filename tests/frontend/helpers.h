/* Reading snippets of HLO text, and complaints that say where. */
#ifndef SW_TEST_FRONTEND_HELPERS_H
#define SW_TEST_FRONTEND_HELPERS_H

#include "test.h"

#include "frontend/frontend.h"

/* The program of a text; fails the test with the reader's error. Freed with sw_program_free. */
sw_program *read_text(const char *text);
/* read -> print -> read gives an equal program, and the same text. */
void check_round_trip(const sw_program *program, const char *what);
void check_text(const char *text);
/* Text as an entry computation: "HloModule m\n\nENTRY e {\nBODY\n}\n", freed with free(). */
char *entry_of(const char *body);
void check_entry(const char *body);

/* Reading must fail with exactly this place and message. */
void check_error(const char *text, int line, int column, const char *message);

/* The op of this name; fails the test if there is none. */
const sw_op *op_named(const sw_program *program, const char *name);
/* The only constant of "ROOT c = SHAPE constant(LITERAL)"; *program is to be freed. */
const sw_literal *read_literal(const char *shape, const char *literal, sw_program **program);

#endif
