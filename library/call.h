/*
 * call: a function of the library that must not take the process with it.
 *
 * Our bookkeeping has no way to report refused memory, and an assertion none to go on. So each call
 * runs in a thread of its own, whose stack and heap nobody else uses; where it, or a thread that it
 * began, meets either, that thread sleeps for ever, and the caller gets the error. What the call
 * used is never freed then, so that threads of it that still run do no harm.
 */
#ifndef SW_LIBRARY_CALL_H
#define SW_LIBRARY_CALL_H

#include "base/base.h"
#include "shardwright.h"

/* The work of a call. It owns the context if it is abandoned. */
typedef sw_status library_work(void *context, sw_error *err);

/* Run the work, one at a time in the process. *abandoned: it has not ended, and never will; then
 * nothing that it may touch may be freed. */
shardwright_status library_call(library_work *work, void *context, bool *abandoned,
                                shardwright_error *error);
/* Report a failure in words, one line. */
shardwright_status library_fail(shardwright_error *error, shardwright_status status,
                                const char *text);
/* Give up the call that is running, from any thread of it. */
_Noreturn void library_abandon(shardwright_status status, const char *text);

#endif
