/* frame: bind a placement to addresses while a program runs. Call these functions only when the
 * interpreter has a placement. */
#ifndef SW_INTERPRET_FRAME_H
#define SW_INTERPRET_FRAME_H

#include "interpret/placement.h"

/* sw_frames_init allocates the arena. sw_frames_bind allocates the address tables of all frames;
 * call it once all computations are prepared. */
sw_status sw_frames_init(sw_interpreter *interpreter, sw_error *err);
void sw_frames_bind(sw_interpreter *interpreter);
/* Point the value's buffer at its place and return it. */
sw_buffer *sw_frame_place(sw_interpreter *interpreter, sw_id value);
/* Call these two before and after the kernel of an op. */
void sw_frame_begin_op(sw_interpreter *interpreter, const sw_op *op, sw_id id);
void sw_frame_end_op(sw_interpreter *interpreter, const sw_op *op, sw_id id, sw_tensor *out);
/* Call these around the run of a computation. sw_frame_bind_input says where input i is stored;
 * sw_frame_results returns the results at their final addresses. Every sw_frame_enter is followed
 * by sw_frame_leave, also when the run failed. */
void sw_frame_bind_input(sw_interpreter *interpreter, int32_t computation, uint32_t i, void *data);
void sw_frame_enter(sw_interpreter *interpreter, int32_t computation);
void sw_frame_leave(sw_interpreter *interpreter, int32_t computation);
void sw_frame_results(sw_interpreter *interpreter, int32_t computation, sw_tensor *results);
/* Run a computation on the inputs `in`. Its results are written to `out`; if `out` is NULL, the
 * computation has a single result, and it is written to `answer`. */
sw_status sw_frame_run(sw_call *call, int32_t computation, const sw_tensor *in, sw_tensor *out,
                       void *answer, sw_error *err);
/* Run a computation on the operands of the call from first_operand on, and write the results of the
 * call from first_result on. */
sw_status sw_frame_call(sw_call *call, int32_t computation, uint32_t first_operand,
                        uint32_t first_result, sw_error *err);

#endif
