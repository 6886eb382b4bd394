/*
 * guard: tell the address sanitizer which bytes of an arena may be accessed. In builds without the
 * sanitizer these functions do nothing.
 *
 * All tensors of a rank are stored in one allocation, so the sanitizer by itself does not see when
 * a kernel runs over the end of one tensor into the next. Therefore a frame is poisoned when its
 * computation is entered. Each op unpoisons exactly the bytes of its operands and results, and the
 * part of the workspace that its kernel allocates, and poisons them again when it ends. An access
 * outside of the op's own buffers is thus reported even where the next buffer follows without a
 * gap, and so is a read of a dead value. The buffers of an asynchronous collective stay accessible
 * from its start op to its done op. Values that the calling computation stores are accessible for
 * as long as the calling op runs. O(bytes / 8) per op.
 */
#ifndef SW_INTERPRET_GUARD_H
#define SW_INTERPRET_GUARD_H

#include "interpret/placement.h"

#ifdef __SANITIZE_ADDRESS__

/* Make the bytes accessible, or inaccessible. `data` is aligned to SW_ALIGNMENT; sw_guard_close
 * rounds `bytes` up to a multiple of SW_ALIGNMENT. */
void sw_guard_open(const void *data, size_t bytes);
void sw_guard_close(const void *data, size_t bytes);
/* Call these around a computation that has a frame. The inputs of the entry computation are written
 * before sw_guard_enter, and its results are read after sw_guard_leave. */
void sw_guard_enter(sw_interpreter *interpreter, int32_t computation, const char *frame);
void sw_guard_leave(sw_interpreter *interpreter, int32_t computation, const char *frame);
/* Call these around an op, after its results have been given their places. */
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
