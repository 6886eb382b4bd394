/* frame: a placement at work. All of these are called only where the interpreter has one. */
#ifndef SW_INTERPRET_FRAME_H
#define SW_INTERPRET_FRAME_H

#include "interpret/placement.h"

/* The arena, and room for addresses; the second when all computations are prepared. */
sw_status sw_frames_init(sw_interpreter *interpreter, sw_error *err);
void sw_frames_bind(sw_interpreter *interpreter);
/* The value's buffer, at its place. */
sw_buffer *sw_frame_place(sw_interpreter *interpreter, sw_id value);
/* Around a kernel. */
void sw_frame_begin_op(sw_interpreter *interpreter, const sw_op *op, sw_id id);
void sw_frame_end_op(sw_interpreter *interpreter, const sw_op *op, sw_id id, sw_tensor *out);
/* Around a computation: its inputs, and its results where they end up. It is left whether it ran to
 * its end or not. */
void sw_frame_bind_input(sw_interpreter *interpreter, int32_t computation, uint32_t i, void *data);
void sw_frame_enter(sw_interpreter *interpreter, int32_t computation);
void sw_frame_leave(sw_interpreter *interpreter, int32_t computation);
void sw_frame_results(sw_interpreter *interpreter, int32_t computation, sw_tensor *results);
/* Runs a computation on `in`. Its results go to `out`; where that is NULL, its only one to
 * `answer`. */
sw_status sw_frame_run(sw_call *call, int32_t computation, const sw_tensor *in, sw_tensor *out,
                       void *answer, sw_error *err);
/* Runs it on the operands from first_operand on, into the results from first_result on. */
sw_status sw_frame_call(sw_call *call, int32_t computation, uint32_t first_operand,
                        uint32_t first_result, sw_error *err);

#endif
