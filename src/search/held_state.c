/*
 * What a device holds of the state under a plan: of each input its part, and what is moved of the
 * parameters for their readers.
 */
#include "search/internal.h"

#include <stdlib.h>

static int64_t bytes_in(const sw_plan *plan, sw_id value, const sw_layout *layout)
{
	return sw_layout_mean_bytes(&plan->cluster->atoms, sw_value_shape(plan->program, value), layout);
}

static int64_t bytes_at_rest(const sw_plan *plan, sw_id value)
{
	return bytes_in(plan, value, sw_plan_layout(plan, plan->produced[value]));
}

static uint32_t most_values(const sw_plan *plan)
{
	uint32_t most = 0;
	for (size_t i = 0; i < plan->program->ops.len; i++) {
		const sw_op *op = &plan->program->ops.data[i];
		most = SW_MAX(most, op->n_operands + op->n_results);
	}
	return most;
}

/* Return for each value the most bytes in which an op of the entry reads it; the caller frees them. */
static int64_t *most_read(const sw_plan *plan)
{
	const sw_computation *entry = sw_entry(plan->program);
	int64_t *most = sw_alloc(sizeof(*most) * (plan->program->values.len + 1));
	sw_layout *layouts = sw_alloc(sizeof(*layouts) * (most_values(plan) + 1));
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(plan->program, entry->ops.data[i]);
		bool possible = sw_plan_op_layouts(plan, entry->ops.data[i], layouts,
		                                   layouts + op->n_operands);
		for (uint32_t k = 0; possible && k < op->n_operands; k++) {
			sw_id value = op->operands[k];
			most[value] = SW_MAX(most[value], bytes_in(plan, value, &layouts[k]));
		}
	}
	free(layouts);
	return most;
}

sw_held_state sw_held_state_of(const sw_plan *plan, const sw_roles *roles)
{
	sw_held_state held = {0};
	int64_t *most = most_read(plan);
	for (uint32_t i = 0; i < roles->n_inputs; i++) {
		sw_id input = roles->inputs[i];
		int64_t rest = bytes_at_rest(plan, input);
		held.input_bytes += rest;
		if (roles->input_role[i] == SW_ROLE_PARAMETER) {
			held.gathered_bytes += SW_MAX(most[input] - rest, 0);
			held.sum_bytes += SW_MAX(most[input], rest);
		}
	}
	free(most);
	return held;
}
