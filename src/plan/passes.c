/* Passes are programs of their own: between them a value is kept in one layout, that in which it
 * rests. What a later pass reads in another layout than that it converts itself, whatever an earlier
 * pass had converted it to. */
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

sw_pass_order sw_plan_pass(const sw_plan *plan, sw_id op)
{
	const char *name = sw_op_at(plan->program, op)->name;
	uint32_t pass = plan->passes ? sw_map_get(plan->passes, name, strlen(name)) : SW_ABSENT;
	return pass == SW_ABSENT ? SW_NO_PASS : (sw_pass_order)pass;
}

bool sw_plan_is_handed_on(const sw_plan *plan, sw_id value)
{
	sw_id maker = plan->program->values.data[value].op;
	return plan->passes && (sw_plan_pass(plan, maker) == SW_EARLIER_PASS ||
	                        sw_op_at(plan->program, maker)->opcode == SW_OP_PARAMETER);
}

/* seen: (value, number of a layout) that some op of a later pass has converted already */
static void convert_again(sw_plan *plan, sw_id op, uint32_t k, const sw_layout *needed, sw_map *seen)
{
	sw_id value = sw_op_at(plan->program, op)->operands[k];
	if (!sw_plan_is_handed_on(plan, value))
		return;
	uint32_t key[] = {value, sw_layouts_id(&plan->layouts, needed)};
	if (key[1] == sw_plan_at_rest(plan, value) ||
	    sw_map_get(seen, key, sizeof(key)) != SW_ABSENT)
		return;
	sw_map_put(seen, key, sizeof(key), 1);
	sw_vec_push(&plan->regathered, ((sw_read){value, op}));
}

/* Let an op of a later pass convert what it reads. */
static void convert_operands(sw_plan *plan, sw_id id, sw_map *seen, sw_arena *arena)
{
	const sw_op *op = sw_op_at(plan->program, id);
	sw_layout *operands = SW_NEW_N(arena, sw_layout, op->n_operands + 1),
		  *results = SW_NEW_N(arena, sw_layout, op->n_results + 1);
	bool known = sw_plan_op_layouts(plan, id, operands, results);
	for (uint32_t k = 0; k < op->n_operands && known; k++)
		convert_again(plan, id, k, &operands[k], seen);
}

void sw_plan_convert_between_passes(sw_plan *plan)
{
	const sw_program *program = plan->program;
	sw_map seen = {0};
	sw_arena arena = {0};
	for (size_t c = 0; c < program->computations.len && plan->passes; c++) {
		const sw_computation *computation = &program->computations.data[c];
		for (size_t i = 0; i < computation->ops.len; i++)
			if (sw_plan_pass(plan, computation->ops.data[i]) == SW_LATER_PASS)
				convert_operands(plan, computation->ops.data[i], &seen, &arena);
	}
	sw_reads_sort(&plan->regathered);
	sw_map_clear(&seen);
	sw_arena_clear(&arena);
}
