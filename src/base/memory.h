/* Private to base: how bookkeeping gives up when the system refuses memory. */
#ifndef SW_BASE_MEMORY_H
#define SW_BASE_MEMORY_H

#include <stddef.h>
#include <stdnoreturn.h>

/* Calls the handler of sw_set_out_of_memory(). A handler may leave by longjmp (tests do); if it
 * returns, the process ends with exit code 2, because there is nothing to go on with. */
noreturn void sw_memory_refused(size_t bytes);

#endif
