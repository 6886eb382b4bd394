/*
 * The section "decisions" of a plan file: written, and read for the program that it was planned for
 * or for one that has changed since (carry.c). Only decisions that differ from replication are
 * written; produced layouts follow from the strategies.
 */
#include "plan/carry.h"
#include "plan/plan_file.h"

#include <string.h>

/* ---- writing ---------------------------------------------------------------------------- */

static json_t *layout_json(const sw_plan *plan, sw_shape shape, uint32_t number)
{
	sw_text text = {0};
	sw_layout_print(&plan->cluster->atoms, shape, sw_plan_layout(plan, number), &text);
	json_t *json = json_string(text.data);
	sw_text_clear(&text);
	return json;
}

/* Build the object: value -> the readers that re-gather it. */
static json_t *regathered_json(const sw_plan *plan)
{
	json_t *values = json_object();
	sw_text text = {0};
	for (size_t i = 0; i < plan->regathered.len; i++) {
		const sw_read *read = &plan->regathered.data[i];
		const char *name = sw_plan_value_name(plan->program, read->value, &text);
		if (!json_object_get(values, name))
			json_object_set_new(values, name, json_array());
		json_array_append_new(json_object_get(values, name),
		                      json_string(sw_op_at(plan->program, read->op)->name));
	}
	sw_text_clear(&text);
	return values;
}

json_t *sw_plan_decisions_json(const sw_plan *plan)
{
	const sw_program *program = plan->program;
	json_t *strategies = json_object(), *produced = json_object(),
	       *materialised = json_object(), *outputs = json_array();
	sw_text text = {0};
	for (size_t i = 0; i < program->ops.len; i++) {
		if (sw_strategy_is_none(&plan->strategies[i]))
			continue;
		text.len = 0;
		sw_plan_strategy_text(&plan->strategies[i], &text);
		json_object_set_new(strategies, program->ops.data[i].name, json_string(text.data));
	}
	for (sw_id v = 0; v < program->values.len; v++) {
		sw_shape shape = sw_value_shape(program, v);
		const sw_op *op = sw_op_at(program, program->values.data[v].op);
		/* the layouts of all other values follow from strategies */
		bool decided = op->opcode == SW_OP_PARAMETER || sw_is_region(op);
		if (decided && plan->produced[v] != 0)
			json_object_set_new(produced, sw_plan_value_name(program, v, &text),
			                    layout_json(plan, shape, plan->produced[v]));
		if (plan->materialised[v] != plan->produced[v])
			json_object_set_new(materialised, sw_plan_value_name(program, v, &text),
			                    layout_json(plan, shape, plan->materialised[v]));
	}
	const sw_computation *entry = sw_entry(program);
	for (uint32_t i = 0; i < plan->n_outputs; i++)
		json_array_append_new(
			outputs, layout_json(plan, sw_value_shape(program, entry->results.data[i]),
		                             plan->outputs[i]));
	sw_text_clear(&text);
	json_t *json = json_pack("{s:o, s:o, s:o, s:o}", "strategies", strategies, "layouts",
	                         produced, "cached", materialised, "outputs", outputs);
	if (plan->regathered.len > 0)
		json_object_set_new(json, "regathered", regathered_json(plan));
	if (plan->memory_bytes)
		json_object_set_new(json, "memory_bytes", json_integer(plan->memory_bytes));
	if (plan->merge.bytes)
		json_object_set_new(json, "merge_bytes", json_integer(plan->merge.bytes));
	if (plan->merge.ops)
		json_object_set_new(json, "merge_ops", json_integer(plan->merge.ops));
	for (int k = 0; k < SW_SENDING_SECTIONS; k++) {
		json_t *section = sw_sending_json(plan, k);
		if (section)
			json_object_set_new(json, sw_sending_section(k), section);
	}
	return json;
}

/* ---- reading ---------------------------------------------------------------------------- */

static sw_status reject(const sw_plan_reading *r, const char *what, const char *name)
{
	return sw_fail_at(r->err, SW_ERR_INPUT, r->path, 0, 0,
	                  "%s '%s' is not one of this program: make the plan again", what, name);
}

static sw_status read_layout(const sw_plan_reading *r, sw_id value, const char *name,
                             const json_t *text, uint32_t *number)
{
	sw_layout layout;
	sw_shape shape = sw_value_shape(r->plan->program, value);
	if (!json_is_string(text))
		return reject(r, "layout of", name);
	sw_status status = sw_layout_parse(&r->cluster->atoms, shape, json_string_value(text),
	                                   &layout, r->err);
	if (status != SW_OK)
		return sw_error_in_file(r->err, status, r->path);
	if (!sw_layout_valid(&r->cluster->atoms, shape, &layout))
		return reject(r, "layout of", name);
	*number = sw_layouts_id(&r->plan->layouts, &layout);
	return SW_OK;
}

/* Index the values by name, for the objects of the file. */
static void index_values(const sw_program *program, sw_map *map)
{
	sw_text text = {0};
	for (sw_id v = 0; v < program->values.len; v++) {
		const char *name = sw_plan_value_name(program, v, &text);
		sw_map_put(map, name, strlen(name), v);
	}
	sw_text_clear(&text);
}

static sw_status read_layouts(const sw_plan_reading *r, const sw_map *values, const char *key,
                              uint32_t *numbers)
{
	json_t *object, *text;
	const char *name;
	sw_status status = sw_json_get_object(r->decisions, key, "decisions", &object, r->err);
	if (status != SW_OK)
		return status;
	json_object_foreach(object, name, text)
	{
		sw_id value = sw_map_get(values, name, strlen(name));
		if (value == SW_ABSENT)
			return reject(r, "value", name);
		status = read_layout(r, value, name, text, &numbers[value]);
		if (status != SW_OK)
			return status;
	}
	return SW_OK;
}

static sw_status read_strategies(const sw_plan_reading *r, const sw_map *values)
{
	json_t *object, *text;
	const char *name;
	sw_status status =
		sw_json_get_object(r->decisions, "strategies", "decisions", &object, r->err);
	if (status != SW_OK)
		return status;
	json_object_foreach(object, name, text)
	{
		sw_id value = sw_map_get(values, name, strlen(name));
		if (value == SW_ABSENT)
			return reject(r, "op", name);
		sw_id op = r->plan->program->values.data[value].op;
		if (!json_is_string(text) ||
		    !sw_plan_strategy_words(json_string_value(text), r->plan->rules[op],
		                            &r->plan->strategies[op]))
			return reject(r, "strategy of", name);
	}
	return SW_OK;
}

static sw_status read_reader(const sw_plan_reading *r, const sw_map *values, sw_id value,
                             const json_t *text)
{
	const char *name = json_string_value(text);
	const sw_program *program = r->plan->program;
	sw_id first = name ? sw_map_get(values, name, strlen(name)) : SW_ABSENT;
	if (first == SW_ABSENT)
		return reject(r, "reader", name ? name : "");
	sw_id id = program->values.data[first].op;
	const sw_op *op = sw_op_at(program, id);
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (op->operands[k] == value) {
			sw_vec_push(&r->plan->regathered, ((sw_read){value, id}));
			return SW_OK;
		}
	return reject(r, "reader", name);
}

/* Read a section of how values are sent. */
static sw_status read_sending(const sw_plan_reading *r, int section, const sw_map *values)
{
	const json_t *object = json_object_get(r->decisions, sw_sending_section(section));
	sw_map number_of = {0};
	size_t found = 0;
	sw_text name = {0};
	bool ok = sw_sending_read(object, section, r->plan, &number_of);
	for (sw_id v = 0; ok && number_of.len > 0 && v < r->plan->program->values.len; v++) {
		const char *text = sw_plan_value_name(r->plan->program, v, &name);
		uint32_t number = sw_map_get(&number_of, text, strlen(text));
		if (number == SW_ABSENT || sw_map_get(values, text, strlen(text)) != v)
			continue;
		sw_sending_put(r->plan, section, v, number);
		found++;
	}
	ok = ok && found == number_of.len;
	sw_map_clear(&number_of);
	sw_text_clear(&name);
	return ok ? SW_OK : reject(r, "section", sw_sending_section(section));
}

/* The section may be missing: no value is re-gathered then. */
static sw_status read_regathered(const sw_plan_reading *r, const sw_map *values)
{
	const json_t *object = json_object_get(r->decisions, "regathered");
	const char *name;
	json_t *readers, *reader;
	size_t i;
	sw_status status = SW_OK;
	if (object && !json_is_object(object))
		return reject(r, "section", "regathered");
	json_object_foreach((json_t *)object, name, readers)
	{
		sw_id value = sw_map_get(values, name, strlen(name));
		if (value == SW_ABSENT || !json_is_array(readers))
			return reject(r, "value", name);
		json_array_foreach(readers, i, reader) if (status == SW_OK) status =
			read_reader(r, values, value, reader);
	}
	sw_reads_sort(&r->plan->regathered);
	return status;
}

static sw_status derive_produced(const sw_plan_reading *r)
{
	sw_plan *plan = r->plan;
	for (sw_id id = 0; id < plan->program->ops.len; id++) {
		const sw_op *op = sw_op_at(plan->program, id);
		if (op->opcode == SW_OP_PARAMETER || sw_is_region(op) ||
		    sw_strategy_is_none(&plan->strategies[id]))
			continue;
		sw_layout *layouts =
			sw_alloc(sizeof(sw_layout) * (op->n_operands + op->n_results + 1));
		bool ok = sw_plan_op_layouts(plan, id, layouts, layouts + op->n_operands);
		for (uint32_t k = 0; ok && k < op->n_results; k++)
			plan->produced[op->first_result + k] =
				sw_layouts_id(&plan->layouts, &layouts[op->n_operands + k]);
		free(layouts);
		if (!ok)
			return reject(r, "strategy of", op->name);
	}
	return SW_OK;
}

static sw_status read_outputs(const sw_plan_reading *r)
{
	json_t *outputs;
	const sw_computation *entry = sw_entry(r->plan->program);
	sw_status status =
		sw_json_get_array(r->decisions, "outputs", "decisions", &outputs, r->err);
	if (status == SW_OK && json_array_size(outputs) != r->plan->n_outputs)
		return reject(r, "list", "outputs");
	for (uint32_t i = 0; i < r->plan->n_outputs && status == SW_OK; i++)
		status = read_layout(r, entry->results.data[i], "output",
		                     json_array_get(outputs, i), &r->plan->outputs[i]);
	return status;
}

/* Decisions that do not fit together are an error in the file, not one of ours. */
static sw_status check_decisions(const sw_plan_reading *r)
{
	sw_error why = {0};
	if (sw_plan_verify(r->plan, &why) == SW_OK)
		return SW_OK;
	return sw_fail_at(r->err, SW_ERR_INPUT, r->path, 0, 0,
	                  "the decisions do not fit together (%s): make the plan again",
	                  why.message);
}

/* Read a number of bytes; 0 if it is missing. */
static sw_status read_bytes(const sw_plan_reading *r, const char *key, int64_t *bytes)
{
	const json_t *given = json_object_get(r->decisions, key);
	*bytes = json_integer_value(given);
	if (!given || *bytes > 0)
		return SW_OK;
	return sw_fail(r->err, SW_ERR_INPUT,
	               "decisions.%s: expected a number of bytes, more than 0", key);
}

/* Read the decisions by the names of ops. */
static sw_status read_named(sw_plan_reading *r)
{
	sw_map values = {0};
	sw_plan *plan = r->plan;
	index_values(plan->program, &values);
	sw_status status = read_strategies(r, &values);
	if (status == SW_OK)
		status = read_layouts(r, &values, "layouts", plan->produced);
	if (status == SW_OK)
		status = derive_produced(r);
	if (status == SW_OK) {
		memcpy(plan->materialised, plan->produced,
		       sizeof(uint32_t) * plan->program->values.len);
		status = read_layouts(r, &values, "cached", plan->materialised);
	}
	if (status == SW_OK)
		status = read_outputs(r);
	if (status == SW_OK)
		status = read_regathered(r, &values);
	for (int k = 0; status == SW_OK && k < SW_SENDING_SECTIONS; k++)
		status = read_sending(r, k, &values);
	sw_map_clear(&values);
	return status == SW_OK ? check_decisions(r) : status;
}

/* Is it the same program under other names? Then some op of the plan has a name that this program
 * lacks. */
static bool is_renamed(const sw_plan_reading *r)
{
	const json_t *ops = json_object_get(r->root, "ops");
	const char *name;
	json_t *signature;
	sw_map values = {0};
	bool renamed = false;
	index_values(r->plan->program, &values);
	json_object_foreach((json_t *)ops, name, signature) renamed =
		renamed || sw_map_get(&values, name, strlen(name)) == SW_ABSENT;
	sw_map_clear(&values);
	return renamed;
}

/* Accept other names and nothing else: any further difference means that the file is damaged. */
static sw_status expect_same(sw_plan_reading *r)
{
	const sw_plan_changes *changes = r->plan->changes;
	bool same = changes->changed + changes->added + changes->gone + changes->replaced == 0;
	r->plan->changes = NULL;
	return same ? SW_OK
	            : reject(r, "op", changes->first ? changes->first : changes->first_replaced);
}

sw_status sw_plan_read_decisions(sw_plan_reading *r)
{
	static const char *const keys[] = {"strategies",  "layouts",    "cached",     "outputs",
	                                   "memory_bytes", "regathered", "merge_bytes", "merge_ops",
	                                   "merge_groups", "algorithms", "orders"};
	sw_status status = sw_json_get_object(r->root, "decisions", "", &r->decisions, r->err);
	if (status == SW_OK)
		status = sw_json_check_keys(r->decisions, "decisions", keys, SW_COUNT(keys),
		                            r->err);
	if (status == SW_OK)
		status = read_bytes(r, "memory_bytes", &r->plan->memory_bytes);
	if (status == SW_OK)
		status = read_bytes(r, "merge_bytes", &r->plan->merge.bytes);
	if (status == SW_OK)
		status = read_bytes(r, "merge_ops", &r->plan->merge.ops);
	if (status != SW_OK)
		return status;
	if (!r->changed && !is_renamed(r))
		return read_named(r);
	status = sw_plan_carry(r->root, r->plan, r->err);
	return status == SW_OK && !r->changed ? expect_same(r) : status;
}
