/* Helpers for the tests of base. */
#ifndef SW_TEST_BASE_HELPERS_H
#define SW_TEST_BASE_HELPERS_H

#include "test.h"

/* Return a path in a scratch directory of this process. It is valid until the next call. */
const char *scratch_path(const char *name);
void scratch_write(const char *name, const void *data, size_t length);
bool scratch_exists(const char *name);
/* Return the number of entries in the scratch directory, so that a leftover file is noticed. */
int scratch_entries(void);
/* Remove all files in the directory, and the directory. */
void scratch_empty(void);
void scratch_remove(void);

/* Check that the status and the error have this code, and that the error has this place and this
 * text in its message. */
void assert_error(sw_status status, const sw_error *err, sw_status code, int line, int column,
                  const char *part_of_message);
void assert_contains(const char *text, const char *part);

/* Call action(context) and return true if it ran out of memory (by the handler). */
bool runs_out_of_memory(void (*action)(void *context), void *context);

#endif
