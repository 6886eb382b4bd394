/* Helpers of the tests of base. */
#ifndef SW_TEST_BASE_HELPERS_H
#define SW_TEST_BASE_HELPERS_H

#include "test.h"

/* A path in a scratch directory of this process. Valid until the next call. */
const char *scratch_path(const char *name);
void scratch_write(const char *name, const void *data, size_t length);
bool scratch_exists(const char *name);
/* How many entries the scratch directory has: what is left over is counted too. */
int scratch_entries(void);
/* Removes all files in the directory; the directory as well. */
void scratch_empty(void);
void scratch_remove(void);

/* The status and the error agree on the code; the error has this place, and this in its message. */
void assert_error(sw_status status, const sw_error *err, sw_status code, int line, int column,
                  const char *part_of_message);
void assert_contains(const char *text, const char *part);

/* Calls action(context) and returns true if it ran out of memory (by the handler). */
bool runs_out_of_memory(void (*action)(void *context), void *context);

#endif
