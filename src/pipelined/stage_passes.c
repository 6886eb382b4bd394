/* Passes are programs of their own: a pass of a plan's program begins where the one before ends. */
#include <stdlib.h>
#include <string.h>

#include "pipelined/internal.h"

void sw_stage_passes_by_name(const sw_stage_step *step, const sw_stages *stages, sw_map *passes)
{
	sw_map parts = {0};
	sw_stage_parts_by_name(step, stages, &parts);
	for (size_t i = 0; i < step->program->ops.len; i++) {
		const char *name = step->program->ops.data[i].name;
		uint32_t part = sw_map_get(&parts, name, strlen(name));
		if (part != SW_ABSENT)
			sw_map_put(passes, name, strlen(name),
			           sw_stage_is_backward((sw_stage_part)part) ? SW_LATER_PASS
			                                                     : SW_EARLIER_PASS);
	}
	sw_map_clear(&parts);
}

/* Does a backward pass need nothing for the op but what forward passes hand on? ready: such ops. */
static bool is_ready(const sw_program *program, const sw_stage_part *part, const bool *ready,
                     const sw_op *op)
{
	bool is = true;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id maker = program->values.data[op->operands[k]].op;
		is &= ready[maker] || !sw_stage_is_backward(part[maker]);
	}
	return is;
}

void sw_stage_part_passes(sw_program *local, sw_id loop, const sw_stage_part *part)
{
	const sw_computation *body = &local->computations.data[sw_op_at(local, loop)->called[1]];
	bool *ready = sw_alloc(local->ops.len);
	sw_id last = SW_NO_ID;
	for (size_t i = 0; i < body->ops.len; i++) {
		sw_id id = body->ops.data[i];
		sw_op *op = &local->ops.data[id];
		last = part[id] == SW_STAGE_FORWARD ? id : last;
		ready[id] = sw_stage_is_backward(part[id]) && is_ready(local, part, ready, op);
		if (last == SW_NO_ID || op->control || !ready[id] ||
		    sw_opcode_class((sw_opcode)op->opcode) != SW_CLASS_COLLECTIVE)
			continue;
		const sw_id behind[] = {last, SW_NO_ID};
		op->control = sw_arena_copy(&local->arena, behind, sizeof(behind));
	}
	free(ready);
}
