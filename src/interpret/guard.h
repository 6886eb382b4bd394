/*
 * guard: what of an arena may be touched, in builds with the address sanitizer; in others nothing
 * is done.
 *
 * All tensors of a rank lie in one allocation, so the sanitizer by itself sees no overrun from one
 * into the next. Here a frame is closed when its computation is entered, each op opens the buffers
 * of its operands and results, exactly as long as they are, and what its kernel takes of its
 * working space, and closes them again. So an op that goes beyond what is its own is reported even
 * where the neighbour begins without a gap, and so is whoever reads what died. What a collective in
 * two halves has is open from its start to its end. Values that lie with the caller are open as
 * long as the op that calls. O(bytes / 8) per op.
 */
#ifndef SW_INTERPRET_GUARD_H
#define SW_INTERPRET_GUARD_H

#include "interpret/placement.h"

#ifdef __SANITIZE_ADDRESS__

/* `data` is aligned to SW_ALIGNMENT; closing takes all of the last alignment. */
void sw_guard_open(const void *data, size_t bytes);
void sw_guard_close(const void *data, size_t bytes);
/* Around a computation that has a frame; inputs of the entry are written before, results are read
 * after. */
void sw_guard_enter(sw_interpreter *interpreter, int32_t computation, const char *frame);
void sw_guard_leave(sw_interpreter *interpreter, int32_t computation, const char *frame);
/* Around an op, whose results have their places. */
void sw_guard_begin_op(sw_interpreter *interpreter, const sw_op *op);
void sw_guard_end_op(sw_interpreter *interpreter, sw_id op, const char *frame);

#else

static inline void sw_guard_open(const void *data, size_t bytes)
{
	(void)data, (void)bytes;
}
static inline void sw_guard_close(const void *data, size_t bytes)
{
	(void)data, (void)bytes;
}
static inline void sw_guard_enter(sw_interpreter *it, int32_t c, const char *frame)
{
	(void)it, (void)c, (void)frame;
}
static inline void sw_guard_leave(sw_interpreter *it, int32_t c, const char *frame)
{
	(void)it, (void)c, (void)frame;
}
static inline void sw_guard_begin_op(sw_interpreter *it, const sw_op *op)
{
	(void)it, (void)op;
}
static inline void sw_guard_end_op(sw_interpreter *it, sw_id op, const char *frame)
{
	(void)it, (void)op, (void)frame;
}

#endif

#endif
