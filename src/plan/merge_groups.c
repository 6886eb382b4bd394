/*
 * Merge groups: which variables' gradients are all-reduced together. A plan has them per value, so
 * that whatever is all-reduced on the way from a gradient to the variable's update belongs to the
 * variable's group.
 */
#include "plan/plan_file.h"

#include <string.h>

uint32_t sw_merge_group_number(sw_plan *plan, const char *name, int64_t bytes)
{
	sw_merge *merge = &plan->merge;
	for (uint32_t g = 0; g < merge->n_groups; g++)
		if (strcmp(merge->groups[g].name, name) == 0)
			return g + 1;
	sw_merge_group *groups = SW_NEW_N(&plan->arena, sw_merge_group, merge->n_groups + 1);
	for (uint32_t g = 0; g < merge->n_groups; g++)
		groups[g] = merge->groups[g];
	groups[merge->n_groups] = (sw_merge_group){sw_arena_text(&plan->arena, name), bytes};
	merge->groups = groups;
	if (!plan->merge_group)
		plan->merge_group = SW_NEW_N(&plan->arena, uint32_t, plan->program->values.len + 1);
	return ++merge->n_groups;
}

/* Call `visit` with each value on the way from a variable's gradient to its new state, and with
 * what is only handed on to become the gradient. */
typedef void value_visitor(sw_plan *plan, sw_id value, uint32_t *group);

/* Does the op give what it reads, in another shape or type, as a sum of single elements does too?
 */
static bool hands_on(const sw_program *program, const sw_op *op)
{
	return (op->opcode == SW_OP_RESHAPE || op->opcode == SW_OP_TRANSPOSE ||
	        op->opcode == SW_OP_CONVERT || op->opcode == SW_OP_REDUCE ||
	        op->opcode == SW_OP_BROADCAST || op->opcode == SW_OP_COPY) &&
	       op->n_operands > 0 &&
	       sw_shape_elements(sw_value_shape(program, op->operands[0])) ==
	               sw_shape_elements(sw_value_shape(program, op->first_result));
}

static void visit_gradient(sw_plan *plan, const sw_op *op, value_visitor *visit, uint32_t *group)
{
	const sw_program *program = plan->program;
	visit(plan, op->first_result, group);
	while (op->n_results == 1 && hands_on(program, op)) {
		sw_id value = op->operands[0];
		op = sw_op_at(program, program->values.data[value].op);
		if (op->opcode == SW_OP_PARAMETER)
			return;
		visit(plan, value, group);
	}
}

static void visit_values(sw_plan *plan, const sw_variable_map *map, uint32_t variable,
                         value_visitor *visit, uint32_t *group)
{
	const sw_program *program = plan->program;
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		if (map->of_end[id] == (int32_t)variable && op->n_results == 1)
			visit_gradient(plan, op, visit, group);
		if (map->of_op[id] != (int32_t)variable)
			continue;
		visit(plan, op->first_result, group);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id made = program->values.data[op->operands[k]].op;
			if (sw_op_at(program, made)->opcode != SW_OP_PARAMETER &&
			    sw_shape_same_dims(sw_value_shape(program, op->operands[k]),
			                       sw_value_shape(program, op->first_result)))
				visit(plan, op->operands[k], group);
		}
	}
}

static void set(sw_plan *plan, sw_id value, uint32_t *group)
{
	plan->merge_group[value] = *group;
}

static void get(sw_plan *plan, sw_id value, uint32_t *group)
{
	*group = *group ? *group : plan->merge_group[value];
}

void sw_merge_group_add(sw_plan *plan, const sw_variable_map *map, uint32_t variable,
                        uint32_t group)
{
	visit_values(plan, map, variable, set, &group);
}

uint32_t sw_merge_group_of(const sw_plan *plan, const sw_variable_map *map, uint32_t variable)
{
	uint32_t group = 0;
	if (plan->merge_group)
		visit_values((sw_plan *)plan, map, variable, get, &group);
	return group;
}

/* ---- the plan file ---------------------------------------------------------------------- */

/* Of a value that is no partial sum nothing is all-reduced. */
static bool is_summed(const sw_plan *plan, sw_id value)
{
	return sw_plan_layout(plan, plan->produced[value])->monoid != SW_MONOID_NONE;
}

json_t *sw_merge_groups_json(const sw_plan *plan)
{
	json_t *object = json_object();
	sw_text name = {0};
	for (uint32_t g = 0; g < plan->merge.n_groups; g++) {
		json_t *values = json_array();
		for (sw_id v = 0; v < plan->program->values.len; v++)
			if (plan->merge_group[v] == g + 1 && is_summed(plan, v))
				json_array_append_new(values, json_string(sw_plan_value_name(
								      plan->program, v, &name)));
		json_t *group = json_pack("{s:o}", "values", values);
		if (plan->merge.groups[g].bytes)
			json_object_set_new(group, "bytes",
			                    json_integer(plan->merge.groups[g].bytes));
		json_object_set_new(object, plan->merge.groups[g].name, group);
	}
	sw_text_clear(&name);
	return object;
}

static bool read_group(const json_t *json, sw_plan *plan, const char *name, sw_map *group_of)
{
	const json_t *values = json_object_get(json, "values"),
		     *bytes = json_object_get(json, "bytes"), *value;
	size_t i;
	if (!json_is_array(values) || json_object_size(json) != (bytes ? 2 : 1) ||
	    (bytes && !(json_is_integer(bytes) && json_integer_value(bytes) > 0)))
		return false;
	uint32_t group = sw_merge_group_number(plan, name, json_integer_value(bytes));
	json_array_foreach((json_t *)values, i, value)
	{
		const char *text = json_string_value(value);
		if (!text)
			return false;
		sw_map_put(group_of, text, strlen(text), group);
	}
	return true;
}

bool sw_merge_groups_read(const json_t *json, sw_plan *plan, sw_map *group_of)
{
	const char *name;
	json_t *group;
	bool ok = !json || json_is_object(json);
	json_object_foreach((json_t *)json, name, group) ok =
		ok && read_group(group, plan, name, group_of);
	return ok;
}
