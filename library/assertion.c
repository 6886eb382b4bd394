/* What a failed assertion does in the library: it ends the call, not the process. The library's own
 * symbol goes before that of the C library, and is seen by nobody else. */
#include <assert.h>
#include <stdio.h>

#include "call.h"

void __assert_fail(const char *assertion, const char *file, unsigned int line, const char *function)
{
	char text[512];
	snprintf(text, sizeof(text), "%s:%u: %s: this should hold, and does not: %s", file, line,
	         function, assertion);
	library_abandon(SHARDWRIGHT_BUG, text);
}
