/* Passes are programs of their own: between them a stage holds a value in one layout. What a
 * backward pass reads in another layout than that it converts itself, whatever a forward pass had
 * converted it to. */
#include <stdlib.h>
#include <string.h>

#include "pipelined/internal.h"

typedef struct pass_reader {
	sw_plan *plan;
	const sw_map *by_name; /* name of an op -> its part */
	sw_map seen;           /* (value, layout number): a backward pass converts it already */
} pass_reader;

static sw_stage_part part_of(const pass_reader *r, sw_id op)
{
	const char *name = sw_op_at(r->plan->program, op)->name;
	uint32_t part = sw_map_get(r->by_name, name, strlen(name));
	return part == SW_ABSENT ? SW_STAGE_PARTS : (sw_stage_part)part;
}

/* Does a pass hand the value on to a later one, or does every pass begin with it? */
static bool is_handed_on(const pass_reader *r, sw_id value)
{
	sw_id maker = r->plan->program->values.data[value].op;
	return part_of(r, maker) == SW_STAGE_FORWARD ||
	       sw_op_at(r->plan->program, maker)->opcode == SW_OP_PARAMETER;
}

static void convert_again(pass_reader *r, sw_id op, uint32_t k, const sw_layout *needed)
{
	sw_id value = sw_op_at(r->plan->program, op)->operands[k];
	uint32_t key[] = {value, sw_layouts_id(&r->plan->layouts, needed)};
	if (!is_handed_on(r, value) || key[1] == sw_plan_at_rest(r->plan, value) ||
	    sw_map_get(&r->seen, key, sizeof(key)) != SW_ABSENT)
		return;
	sw_map_put(&r->seen, key, sizeof(key), 1);
	sw_vec_push(&r->plan->regathered, ((sw_read){value, op}));
}

void sw_stage_convert_between_passes(sw_plan *plan, const sw_stage_step *step,
                                     const sw_map *by_name)
{
	pass_reader r = {.plan = plan, .by_name = by_name};
	const sw_program *program = plan->program;
	const sw_op *loop = sw_op_at(program, sw_stage_loop_of(step, program));
	const sw_computation *body = &program->computations.data[loop->called[1]];
	sw_arena arena = {0};
	for (size_t i = 0; i < body->ops.len; i++) {
		sw_id id = body->ops.data[i];
		const sw_op *op = sw_op_at(program, id);
		if (!sw_stage_is_backward(part_of(&r, id)))
			continue;
		sw_layout *operands = SW_NEW_N(&arena, sw_layout, op->n_operands + 1),
			  *results = SW_NEW_N(&arena, sw_layout, op->n_results + 1);
		bool known = sw_plan_op_layouts(plan, id, operands, results);
		for (uint32_t k = 0; k < op->n_operands && known; k++)
			convert_again(&r, id, k, &operands[k]);
	}
	sw_reads_sort(&plan->regathered);
	sw_map_clear(&r.seen);
	sw_arena_clear(&arena);
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
