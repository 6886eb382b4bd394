/* The plan of a part of a program, by the plan of the whole: a pass of a pipeline's stage does what
 * its ops do in the step of the stage. */
#include "plan/carry.h"

#include <stdlib.h>
#include <string.h>

typedef struct part_maker {
	const sw_plan *whole;
	sw_plan *plan;
	const sw_program *program;
	sw_map names; /* of the whole program: name -> op */
} part_maker;

static sw_id find_op(const part_maker *m, const sw_op *op)
{
	uint32_t found = sw_map_get(&m->names, op->name, strlen(op->name));
	if (found == SW_ABSENT)
		return SW_NO_ID;
	const sw_op *old = sw_op_at(m->whole->program, found);
	return old->opcode == op->opcode && old->n_results == op->n_results ? found : SW_NO_ID;
}

static uint32_t number_of(part_maker *m, const sw_layout *layout)
{
	return sw_layouts_id(&m->plan->layouts, layout);
}

static void take_op(part_maker *m, sw_id id)
{
	const sw_op *op = sw_op_at(m->program, id);
	sw_strategy *s = &m->plan->strategies[id];
	sw_id old = find_op(m, op);
	if (op->opcode == SW_OP_PARAMETER || sw_is_region(op))
		return; /* whole */
	bool taken = old != SW_NO_ID &&
	             m->whole->rules[old]->n_factors == m->plan->rules[id]->n_factors &&
	             sw_plan_strategy_possible(m->plan, id, &m->whole->strategies[old]);
	*s = taken ? m->whole->strategies[old] : sw_plan_follow_largest(m->plan, id);
	sw_plan_derive_produced(m->plan, id);
}

static void take_materialised(part_maker *m, sw_id id)
{
	const sw_op *op = sw_op_at(m->program, id);
	sw_plan *plan = m->plan;
	sw_id old = find_op(m, op);
	for (uint32_t r = 0; r < op->n_results; r++) {
		sw_id value = op->first_result + r;
		plan->materialised[value] = plan->produced[value];
		if (old == SW_NO_ID || sw_is_region(op) || op->opcode == SW_OP_PARAMETER)
			continue;
		const sw_layout *held = sw_plan_layout(
			m->whole, m->whole->materialised[sw_op_at(m->whole->program, old)->first_result + r]);
		if (sw_plan_can_become(plan, value, sw_plan_layout(plan, plan->produced[value]),
		                       held))
			plan->materialised[value] = number_of(m, held);
	}
}

static bool is_partial(const sw_plan *plan, uint32_t layout)
{
	return sw_plan_layout(plan, layout)->monoid != SW_MONOID_NONE;
}

uint32_t sw_plan_at_rest(sw_plan *plan, sw_id value)
{
	uint32_t produced = plan->produced[value], held = plan->materialised[value];
	if (!is_partial(plan, produced))
		return produced;
	if (!is_partial(plan, held))
		return held;
	sw_layout layout = *sw_plan_layout(plan, produced);
	uint32_t partial = sw_layout_partial_atoms(&layout);
	sw_layout whole = sw_layout_replicated(&plan->cluster->atoms);
	for (int32_t a = 0; a < layout.n; a++)
		if (partial >> a & 1)
			layout.state[a] = whole.state[a];
	layout.monoid = SW_MONOID_NONE;
	return sw_layouts_id(&plan->layouts, &layout);
}

static void repair(part_maker *m)
{
	for (sw_id id = 0; id < m->program->ops.len; id++) {
		const sw_op *op = sw_op_at(m->program, id);
		if (sw_is_region(op) || op->opcode == SW_OP_PARAMETER ||
		    sw_plan_op_fits(m->plan, id))
			continue;
		m->plan->strategies[id] = sw_strategy_none(&m->plan->cluster->atoms);
		for (uint32_t k = 0; k < op->n_results; k++)
			m->plan->produced[op->first_result + k] =
				m->plan->materialised[op->first_result + k] = 0;
	}
}

sw_status sw_plan_part(const sw_plan *whole, sw_program *part, const sw_layout *const *inputs,
                       const sw_layout *const *outputs, sw_plan **plan, sw_error *err)
{
	part_maker m = {.whole = whole, .program = part};
	sw_arena arena = {0};
	const sw_id *values;
	sw_plan *p = m.plan = *plan = sw_plan_new(part, whole->program_path, whole->cluster);
	p->n_axes = whole->n_axes;
	memcpy(p->axes, whole->axes, sizeof(p->axes));
	p->merge = whole->merge;
	p->memory_bytes = whole->memory_bytes;
	for (sw_id id = 0; id < whole->program->ops.len; id++) {
		const char *name = sw_op_at(whole->program, id)->name;
		sw_map_put(&m.names, name, strlen(name), id);
	}
	uint32_t n = sw_program_inputs(part, part->entry, &arena, &values);
	for (uint32_t i = 0; i < n; i++)
		if (inputs[i])
			p->produced[values[i]] = number_of(&m, inputs[i]);
	for (sw_id id = 0; id < part->ops.len; id++)
		take_op(&m, id);
	for (sw_id id = 0; id < part->ops.len; id++)
		take_materialised(&m, id);
	repair(&m);
	for (uint32_t i = 0; i < p->n_outputs; i++)
		p->outputs[i] = outputs && outputs[i]
		                        ? number_of(&m, outputs[i])
		                        : sw_plan_at_rest(p, sw_entry(part)->results.data[i]);
	sw_map_clear(&m.names);
	sw_arena_clear(&arena);
	sw_status status = sw_plan_verify(p, err);
	if (status) {
		sw_plan_free(p);
		*plan = NULL;
	}
	return status;
}
