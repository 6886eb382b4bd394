/* The arena of debug builds, compiled here in place of the library's. */
#ifndef SW_ARENA_SEPARATE
#define SW_ARENA_SEPARATE
#endif
#include "base/arena.c"

#include "arena_cases.h"
