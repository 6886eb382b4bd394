/* Private to base: what bookkeeping code calls when the system refuses memory. */
#ifndef SW_BASE_MEMORY_H
#define SW_BASE_MEMORY_H

#include <stddef.h>
#include <stdnoreturn.h>

/* Call the handler of sw_set_out_of_memory(). A handler may leave by longjmp (tests do); if it
 * returns, the process ends with exit code 2, because it cannot go on. */
noreturn void sw_memory_refused(size_t bytes);

#endif
