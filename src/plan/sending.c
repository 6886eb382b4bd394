/*
 * How what devices send of variables is sent: in which merge group, by which algorithm, in which order. A
 * plan has that per value, so that it holds for whatever is sent on the way from a gradient to the
 * variable's update.
 */
#include "plan/plan_file.h"

#include <stddef.h>
#include <string.h>

static void make_sending(sw_plan *plan)
{
	if (!plan->sending)
		plan->sending = SW_NEW_N(&plan->arena, sw_sending, plan->program->values.len + 1);
}

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
	return ++merge->n_groups;
}

/* Call `visit` with each value on the way from a variable's gradient to its new state, and with
 * what is only handed on to become the gradient. */
typedef void value_visitor(sw_plan *plan, sw_id value, sw_sending *sending);

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

static void visit_gradient(sw_plan *plan, const sw_op *op, value_visitor *visit, sw_sending *sending)
{
	const sw_program *program = plan->program;
	visit(plan, op->first_result, sending);
	while (op->n_results == 1 && hands_on(program, op)) {
		sw_id value = op->operands[0];
		op = sw_op_at(program, program->values.data[value].op);
		if (op->opcode == SW_OP_PARAMETER)
			return;
		visit(plan, value, sending);
	}
}

static void visit_values(sw_plan *plan, const sw_variable_map *map, uint32_t variable,
                         value_visitor *visit, sw_sending *sending)
{
	const sw_program *program = plan->program;
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		if (map->of_end[id] == (int32_t)variable && op->n_results == 1)
			visit_gradient(plan, op, visit, sending);
		if (map->of_op[id] != (int32_t)variable)
			continue;
		visit(plan, op->first_result, sending);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id made = program->values.data[op->operands[k]].op;
			if (sw_op_at(program, made)->opcode != SW_OP_PARAMETER &&
			    sw_shape_same_dims(sw_value_shape(program, op->operands[k]),
			                       sw_value_shape(program, op->first_result)))
				visit(plan, op->operands[k], sending);
		}
	}
}

static void set(sw_plan *plan, sw_id value, sw_sending *sending)
{
	plan->sending[value] = *sending;
}

static void get(sw_plan *plan, sw_id value, sw_sending *sending)
{
	const sw_sending *said = &plan->sending[value];
	sending->merge_group = SW_MAX(sending->merge_group, said->merge_group);
	sending->algorithm = SW_MAX(sending->algorithm, said->algorithm);
	sending->order = SW_MAX(sending->order, said->order);
}

void sw_sending_say(sw_plan *plan, const sw_variable_map *map, uint32_t variable, sw_sending sending)
{
	make_sending(plan);
	visit_values(plan, map, variable, set, &sending);
}

sw_sending sw_sending_of(const sw_plan *plan, const sw_variable_map *map, uint32_t variable)
{
	sw_sending sending = {0};
	if (plan->sending)
		visit_values((sw_plan *)plan, map, variable, get, &sending);
	return sending;
}

/* ---- the plan file ---------------------------------------------------------------------- */

/* A section of the decisions: names of numbers other than 0, and the values that have each. */
enum { GROUPS, ALGORITHMS, ORDERS };
static const struct {
	const char *section;
	size_t offset; /* of the number, in sw_sending */
} numbers[SW_SENDING_SECTIONS] = {
	[GROUPS] = {"merge_groups", offsetof(sw_sending, merge_group)},
	[ALGORITHMS] = {"algorithms", offsetof(sw_sending, algorithm)},
	[ORDERS] = {"orders", offsetof(sw_sending, order)},
};

const char *sw_sending_section(int section)
{
	return numbers[section].section;
}

static uint32_t *number_of(const sw_plan *plan, int section, sw_id value)
{
	return (uint32_t *)((char *)&plan->sending[value] + numbers[section].offset);
}

void sw_sending_put(sw_plan *plan, int section, sw_id value, uint32_t number)
{
	*number_of(plan, section, value) = number;
}

static const char *name_of(const sw_plan *plan, int section, uint32_t number, sw_text *name)
{
	sw_text_clear(name);
	if (section == ORDERS)
		sw_text_addf(name, "%u", number);
	else
		sw_text_add(name, section == GROUPS ? plan->merge.groups[number - 1].name
		                                    : sw_algorithm_name((sw_algorithm)(number - 1)));
	return name->data;
}

/* Of a value that is whole nothing is sent, and of one that is no partial sum nothing is summed. */
static bool is_sent(const sw_plan *plan, int section, sw_id value)
{
	uint32_t layout = plan->produced[value];
	return section == ALGORITHMS ? layout != 0
	                             : sw_plan_layout(plan, layout)->monoid != SW_MONOID_NONE;
}

/* Return the list of values with that number in the section, which is added if it is missing. */
static json_t *values_of(const sw_plan *plan, json_t *object, int section, uint32_t number,
                         sw_text *name)
{
	const char *key = name_of(plan, section, number, name);
	json_t *entry = json_object_get(object, key);
	if (!entry) {
		entry = section == GROUPS ? json_pack("{s:[]}", "values") : json_array();
		json_object_set_new(object, key, entry);
	}
	return section == GROUPS ? json_object_get(entry, "values") : entry;
}

json_t *sw_sending_json(const sw_plan *plan, int section)
{
	json_t *object = json_object();
	sw_text name = {0};
	for (uint32_t g = 0; section == GROUPS && g < plan->merge.n_groups; g++) {
		values_of(plan, object, section, g + 1, &name);
		if (plan->merge.groups[g].bytes)
			json_object_set_new(json_object_get(object, plan->merge.groups[g].name), "bytes",
			                    json_integer(plan->merge.groups[g].bytes));
	}
	for (sw_id v = 0; plan->sending && v < plan->program->values.len; v++) {
		uint32_t number = *number_of(plan, section, v);
		if (number == 0 || !is_sent(plan, section, v))
			continue;
		json_t *values = values_of(plan, object, section, number, &name);
		json_array_append_new(values,
		                      json_string(sw_plan_value_name(plan->program, v, &name)));
	}
	sw_text_clear(&name);
	if (json_object_size(object) > 0)
		return object;
	json_decref(object);
	return NULL;
}

static bool read_values(const json_t *values, uint32_t number, sw_map *number_of_name)
{
	const json_t *value;
	size_t i;
	if (!json_is_array(values) || number == 0)
		return false;
	json_array_foreach((json_t *)values, i, value)
	{
		const char *text = json_string_value(value);
		if (!text)
			return false;
		sw_map_put(number_of_name, text, strlen(text), number);
	}
	return true;
}

static bool read_group(const json_t *json, sw_plan *plan, const char *name, sw_map *number_of_name)
{
	const json_t *bytes = json_object_get(json, "bytes");
	return json_object_size(json) == (bytes ? 2 : 1) &&
	       (!bytes || (json_is_integer(bytes) && json_integer_value(bytes) > 0)) &&
	       read_values(json_object_get(json, "values"),
	                   sw_merge_group_number(plan, name, json_integer_value(bytes)),
	                   number_of_name);
}

static uint32_t algorithm_number(const char *name)
{
	sw_algorithm algorithm;
	return sw_algorithm_of(name, &algorithm) ? 1 + (uint32_t)algorithm : 0;
}

static uint32_t order_number(const char *name)
{
	int64_t order;
	return sw_parse_count(name, &order) && order <= SW_MAX_ORDER ? (uint32_t)order : 0;
}

bool sw_sending_read(const json_t *json, int section, sw_plan *plan, sw_map *number_of_name)
{
	const char *name;
	json_t *entry;
	bool ok = !json || json_is_object(json);
	if (json)
		make_sending(plan);
	json_object_foreach((json_t *)json, name, entry)
	{
		uint32_t number = section == ALGORITHMS ? algorithm_number(name) : order_number(name);
		ok = ok && (section == GROUPS ? read_group(entry, plan, name, number_of_name)
		                              : read_values(entry, number, number_of_name));
	}
	return ok;
}
