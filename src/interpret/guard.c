/* Poison the bytes that an op does not use: see guard.h. */
#include "interpret/guard.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>

static size_t aligned(size_t bytes)
{
	return (bytes + (size_t)SW_ALIGNMENT - 1) / (size_t)SW_ALIGNMENT * (size_t)SW_ALIGNMENT;
}

void sw_guard_open(const void *data, size_t bytes)
{
	ASAN_UNPOISON_MEMORY_REGION(data, bytes);
}

void sw_guard_close(const void *data, size_t bytes)
{
	ASAN_POISON_MEMORY_REGION(data, aligned(bytes));
}

static size_t frame_bytes(const sw_interpreter *it, int32_t computation)
{
	return (size_t)it->options.placement->places->frames[computation].bytes;
}

void sw_guard_enter(sw_interpreter *it, int32_t computation, const char *frame)
{
	if (computation == it->program->entry)
		it->begun.len = 0;
	sw_guard_close(frame, frame_bytes(it, computation));
}

void sw_guard_leave(sw_interpreter *it, int32_t computation, const char *frame)
{
	sw_guard_open(frame, frame_bytes(it, computation));
}

/* Return true if the value is stored in the frame of its own computation. */
static bool is_in_frame(const sw_interpreter *it, sw_id value)
{
	const sw_place *place = &it->options.placement->places->values[value];
	return place->kind == SW_PLACE_FRAME && place->bytes > 0;
}

/* Return true if an asynchronous start uses this buffer. Its results are all that it uses, since
 * its operands are among them. */
static bool is_begun(const sw_interpreter *it, const void *data)
{
	for (size_t s = 0; s < it->begun.len; s++) {
		const sw_op *start = sw_op_at(it->program, it->begun.data[s]);
		for (uint32_t i = 0; i < start->n_results; i++)
			if (it->headers[start->first_result + i].data == data)
				return true;
	}
	return false;
}

static void open_value(sw_interpreter *it, sw_id value)
{
	if (is_in_frame(it, value))
		sw_guard_open(it->headers[value].data,
		              (size_t)it->options.placement->places->values[value].bytes);
}

static void close_value(sw_interpreter *it, sw_id value)
{
	if (is_in_frame(it, value) && !is_begun(it, it->headers[value].data))
		sw_guard_close(it->headers[value].data,
		               (size_t)it->options.placement->places->values[value].bytes);
}

static void end_begun(sw_interpreter *it, sw_id start)
{
	for (size_t s = 0; s < it->begun.len; s++)
		if (it->begun.data[s] == start)
			it->begun.data[s] = it->begun.data[--it->begun.len];
}

void sw_guard_begin_op(sw_interpreter *it, const sw_op *op)
{
	for (uint32_t i = 0; i < op->n_operands; i++)
		open_value(it, op->operands[i]);
	for (uint32_t i = 0; i < op->n_results; i++)
		open_value(it, op->first_result + i);
}

void sw_guard_end_op(sw_interpreter *it, sw_id id, const char *frame)
{
	const sw_op *op = sw_op_at(it->program, id);
	const sw_workspace *workspace = &it->options.placement->places->workspaces[id];
	if (op->opcode == SW_OP_ASYNC_START)
		sw_vec_push(&it->begun, id);
	if (op->opcode == SW_OP_ASYNC_DONE)
		end_begun(it, (sw_id)(sw_async_start_of(it->program, op) - it->program->ops.data));
	for (uint32_t i = 0; i < op->n_operands; i++)
		close_value(it, op->operands[i]);
	for (uint32_t i = 0; i < op->n_results; i++)
		close_value(it, op->first_result + i);
	sw_guard_close(frame + workspace->at, (size_t)workspace->bytes);
}

#endif
