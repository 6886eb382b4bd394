/*
 * Carry the decisions of a plan over to a program that has changed. An op that the old program had
 * (carry_match.c) takes its old decision, with strides scaled with the sizes; a new op takes the
 * decision of a similar old op, or follows the layout of its largest operand; an op whose decision
 * does not fit is replicated. The result is verified, and refused if it is inconsistent.
 */
#include "plan/carry.h"
#include "plan/plan_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void count_replaced(sw_plan_carrier *c, sw_id id)
{
	c->changes->replaced++;
	if (!c->changes->first_replaced)
		c->changes->first_replaced =
			sw_arena_text(&c->plan->arena, sw_op_at(c->program, id)->name);
}

/* Rewrite the strides of a strategy for the factor sizes of the rule. `sizes` is the op's
 * signature: the old sizes of its factors stand behind the hashes. */
static bool scale_strides(const char *sizes, const sw_rule *rule, const char *words,
                          sw_text *scaled)
{
	int64_t was[64], n = 0;
	char *end;
	sw_text_add(scaled, ""); /* also if the file's text is empty */
	for (sizes += 24; *sizes && n < 64; sizes = end)
		was[n++] = strtoll(sizes, &end, 10);
	for (const char *c = words; *c;) {
		bool stride = *c == '@';
		long factor = 0;
		if (stride) {
			const char *digits = c;
			while (digits > words && strchr("0123456789", digits[-1]))
				digits--;
			factor = strtol(digits, NULL, 10);
		}
		sw_text_add_n(scaled, c, 1);
		c++;
		if (!stride)
			continue;
		int64_t old = strtoll(c, &end, 10);
		c = end;
		if (factor >= n || factor >= rule->n_factors || was[factor] < 1 || old < 1 ||
		    old > INT64_MAX / rule->factors[factor].size)
			return false;
		sw_text_addf(scaled, "%" PRId64,
		             SW_MAX(old * rule->factors[factor].size / was[factor], 1));
	}
	return true;
}

/* Take the strategy of the old op. False if it is not one for this op. */
static bool take_strategy(sw_plan_carrier *c, sw_id id, const sw_plan_old_op *old,
                          sw_strategy *strategy)
{
	const char *words = json_string_value(
		json_object_get(json_object_get(c->decisions, "strategies"), old->name));
	sw_text scaled = {0};
	*strategy = sw_strategy_none(&c->plan->cluster->atoms);
	bool ok = !words || (scale_strides(old->text, c->plan->rules[id], words, &scaled) &&
	                     sw_plan_strategy_words(scaled.data, c->plan->rules[id], strategy));
	sw_text_clear(&scaled);
	return ok;
}

bool sw_plan_strategy_possible(const sw_plan *plan, sw_id id, const sw_strategy *strategy)
{
	const sw_op *op = sw_op_at(plan->program, id);
	sw_layout *layouts = sw_alloc(sizeof(*layouts) * (op->n_operands + op->n_results + 1));
	bool ok = sw_rule_layouts(plan->program, id, plan->rules[id], &plan->cluster->atoms,
	                          strategy, layouts, layouts + op->n_operands);
	for (uint32_t k = 0; ok && k < op->n_results; k++)
		ok = sw_layout_valid(&plan->cluster->atoms,
		                     sw_value_shape(plan->program, op->first_result + k),
		                     &layouts[op->n_operands + k]);
	free(layouts);
	return ok;
}

sw_strategy sw_plan_follow_largest(const sw_plan *plan, sw_id id)
{
	const sw_op *op = sw_op_at(plan->program, id);
	sw_strategy s = sw_strategy_none(&plan->cluster->atoms);
	uint32_t largest = 0, mask = (uint32_t)((UINT64_C(1) << plan->cluster->atoms.n) - 1);
	for (uint32_t k = 1; k < op->n_operands; k++)
		if (sw_shape_elements(sw_value_shape(plan->program, op->operands[k])) >
		    sw_shape_elements(sw_value_shape(plan->program, op->operands[largest])))
			largest = k;
	if (op->n_operands == 0 || plan->rules[id]->n_factors == 0)
		return s;
	const sw_layout *layout = sw_plan_layout(plan, plan->produced[op->operands[largest]]);
	sw_rule_match(plan->rules[id], &plan->cluster->atoms, false, (int32_t)largest, layout,
	              &mask, &s);
	return sw_plan_strategy_possible(plan, id, &s) ? s : sw_strategy_none(&plan->cluster->atoms);
}

void sw_plan_derive_produced(sw_plan *plan, sw_id id)
{
	const sw_op *op = sw_op_at(plan->program, id);
	sw_layout *layouts = sw_alloc(sizeof(*layouts) * (op->n_operands + op->n_results + 1));
	if (sw_plan_op_layouts(plan, id, layouts, layouts + op->n_operands))
		for (uint32_t k = 0; k < op->n_results; k++)
			plan->produced[op->first_result + k] =
				sw_layouts_id(&plan->layouts, &layouts[op->n_operands + k]);
	free(layouts);
}

/* Find the name that a value has in the file. False if the value is new. */
static bool find_old_name(const sw_plan_carrier *c, sw_id value, sw_text *name)
{
	const sw_value *v = &c->program->values.data[value];
	if (c->source[v->op] == SW_ABSENT)
		return false;
	name->len = 0;
	sw_text_add(name, c->old.data[c->source[v->op]].name);
	if (v->index > 0)
		sw_text_addf(name, ":%u", v->index);
	return true;
}

/* Read the layout that a section of the file has for a value. False if that layout is not valid for
 * this value. */
static bool take_layout(sw_plan_carrier *c, const char *section, sw_id value, uint32_t *number)
{
	const sw_value *v = &c->program->values.data[value];
	sw_text name = {0};
	sw_layout layout;
	sw_error ignored = {0};
	if (!find_old_name(c, value, &name))
		return false;
	const char *words = json_string_value(
		json_object_get(json_object_get(c->decisions, section), name.data));
	sw_text_clear(&name);
	if (!words ||
	    sw_layout_parse(&c->plan->cluster->atoms, v->shape, words, &layout, &ignored) !=
	            SW_OK ||
	    !sw_layout_valid(&c->plan->cluster->atoms, v->shape, &layout))
		return words == NULL;
	*number = sw_layouts_id(&c->plan->layouts, &layout);
	return true;
}

static void take_boundaries(sw_plan_carrier *c, sw_id id)
{
	const sw_op *op = sw_op_at(c->program, id);
	bool all = true;
	for (uint32_t k = 0; k < op->n_results; k++)
		all = take_layout(c, "layouts", op->first_result + k,
		                  &c->plan->produced[op->first_result + k]) &&
		      all;
	if (!all)
		count_replaced(c, id);
}

/* Visit the ops in program order, so that a new op sees the layouts of its operands. */
static void take_ops(sw_plan_carrier *c)
{
	for (sw_id id = 0; id < c->program->ops.len; id++) {
		const sw_op *op = sw_op_at(c->program, id);
		sw_strategy *s = &c->plan->strategies[id];
		if (op->opcode == SW_OP_PARAMETER || sw_is_region(op)) {
			take_boundaries(c, id);
			continue;
		}
		bool taken = c->source[id] != SW_ABSENT &&
		             take_strategy(c, id, &c->old.data[c->source[id]], s) &&
		             sw_plan_strategy_possible(c->plan, id, s);
		if (!taken)
			*s = sw_plan_follow_largest(c->plan, id);
		if (!taken && c->match[id] != SW_ABSENT)
			count_replaced(c, id);
		sw_plan_derive_produced(c->plan, id);
	}
}

/* Give the values that a loop carries the layouts of its results. */
static void agree_loops(sw_plan_carrier *c)
{
	const sw_program *p = c->program;
	for (sw_id id = 0; id < p->ops.len; id++) {
		const sw_op *op = sw_op_at(p, id);
		for (uint32_t k = 0; op->opcode == SW_OP_WHILE && k < op->n_called; k++) {
			const sw_op *inside =
				sw_op_at(p, p->computations.data[op->called[k]].parameters.data[0]);
			memcpy(c->plan->produced + inside->first_result,
			       c->plan->produced + op->first_result,
			       sizeof(uint32_t) * op->n_results);
		}
	}
}

static void take_materialised(sw_plan_carrier *c)
{
	sw_plan *plan = c->plan;
	memcpy(plan->materialised, plan->produced, sizeof(uint32_t) * c->program->values.len);
	for (sw_id v = 0; v < c->program->values.len; v++) {
		uint32_t cached = plan->produced[v];
		if (take_layout(c, "cached", v, &cached) &&
		    sw_plan_can_become(plan, v, sw_plan_layout(plan, plan->produced[v]),
		                       sw_plan_layout(plan, cached)))
			plan->materialised[v] = cached;
	}
}

/* Collect the names of the ops that re-gather a value. */
static void find_regathering_ops(const json_t *values, sw_map *readers)
{
	const char *name;
	json_t *list;
	json_object_foreach((json_t *)values, name, list) for (size_t i = 0;
	                                                       i < json_array_size(list); i++)
	{
		const char *reader = json_string_value(json_array_get(list, i));
		if (reader)
			sw_map_put(readers, reader, strlen(reader), 1);
	}
}

/* Take over the re-gathering readers. A new op re-gathers an operand if the old op that it
 * resembles re-gathers a value, and the operand resembles one that is re-gathered. */
static void take_regathered(sw_plan_carrier *c)
{
	const json_t *values = json_object_get(c->decisions, "regathered");
	sw_map readers = {0};
	sw_text name = {0};
	find_regathering_ops(values, &readers);
	for (sw_id id = 0; readers.len > 0 && id < c->program->ops.len; id++) {
		const sw_op *op = sw_op_at(c->program, id);
		const char *old = c->source[id] == SW_ABSENT ? "" : c->old.data[c->source[id]].name;
		if (sw_map_get(&readers, old, strlen(old)) == SW_ABSENT)
			continue;
		for (uint32_t k = 0; k < op->n_operands; k++)
			if (find_old_name(c, op->operands[k], &name) &&
			    json_object_get(values, name.data))
				sw_vec_push(&c->plan->regathered, ((sw_read){op->operands[k], id}));
	}
	sw_reads_sort(&c->plan->regathered);
	sw_map_clear(&readers);
	sw_text_clear(&name);
}

/* A value is sent as the old one that it resembles. */
static void take_sending(sw_plan_carrier *c, int section)
{
	sw_map number_of = {0};
	sw_text name = {0};
	sw_sending_read(json_object_get(c->decisions, sw_sending_section(section)), section, c->plan,
	                &number_of);
	for (sw_id v = 0; number_of.len > 0 && v < c->program->values.len; v++) {
		uint32_t number = find_old_name(c, v, &name)
		                          ? sw_map_get(&number_of, name.data, name.len)
		                          : SW_ABSENT;
		sw_sending_put(c->plan, section, v, number == SW_ABSENT ? 0 : number);
	}
	sw_map_clear(&number_of);
	sw_text_clear(&name);
}

static void take_outputs(sw_plan_carrier *c)
{
	sw_plan *plan = c->plan;
	const sw_computation *entry = sw_entry(c->program);
	const json_t *outputs = json_object_get(c->decisions, "outputs");
	const sw_id *inputs;
	sw_program_inputs(c->program, c->program->entry, &c->arena, &inputs);
	for (uint32_t i = 0; i < plan->n_outputs; i++) {
		sw_shape shape = sw_value_shape(c->program, entry->results.data[i]);
		const char *words = json_string_value(json_array_get(outputs, i));
		sw_layout layout;
		sw_error ignored = {0};
		if (words && json_array_size(outputs) == plan->n_outputs &&
		    sw_layout_parse(&plan->cluster->atoms, shape, words, &layout, &ignored) ==
		            SW_OK &&
		    sw_layout_valid(&plan->cluster->atoms, shape, &layout) &&
		    layout.monoid == SW_MONOID_NONE)
			plan->outputs[i] = sw_layouts_id(&plan->layouts, &layout);
	}
	for (size_t i = 0; i < c->program->aliases.len; i++)
		plan->outputs[c->program->aliases.data[i].output] =
			plan->produced[inputs[c->program->aliases.data[i].input]];
}

static void replicate(sw_plan_carrier *c, sw_id id)
{
	const sw_op *op = sw_op_at(c->program, id);
	c->plan->strategies[id] = sw_strategy_none(&c->plan->cluster->atoms);
	for (uint32_t k = 0; k < op->n_results; k++)
		c->plan->produced[op->first_result + k] =
			c->plan->materialised[op->first_result + k] = 0;
	count_replaced(c, id);
}

/* Replicate each op that can't read its operands from their materialised layouts now; a replicated
 * op can read any layout. */
static void repair(sw_plan_carrier *c)
{
	for (sw_id id = 0; id < c->program->ops.len; id++) {
		const sw_op *op = sw_op_at(c->program, id);
		if (!sw_is_region(op) && op->opcode != SW_OP_PARAMETER &&
		    !sw_plan_op_fits(c->plan, id))
			replicate(c, id);
	}
}

static sw_status take_all(sw_plan_carrier *c)
{
	sw_error why = {0};
	take_ops(c);
	agree_loops(c);
	take_materialised(c);
	take_outputs(c);
	take_regathered(c);
	for (int k = 0; k < SW_SENDING_SECTIONS; k++)
		take_sending(c, k);
	repair(c);
	if (sw_plan_verify(c->plan, &why) == SW_OK)
		return SW_OK;
	return sw_fail(
		c->err, SW_ERR_INPUT,
		"the program has changed too much since this plan was made (%s): plan it again",
		why.message);
}

sw_status sw_plan_carry(const json_t *file, sw_plan *plan, sw_error *err)
{
	const json_t *ops = json_object_get(file, "ops");
	sw_plan_carrier c = {.decisions = json_object_get(file, "decisions"),
	                     .plan = plan,
	                     .program = plan->program,
	                     .err = err};
	if (!json_is_object(ops))
		return sw_fail(
			err, SW_ERR_INPUT,
			"this plan was made for another program, and does not say enough of it to "
			"be carried over: plan it again");
	sw_arena_init(&c.arena);
	plan->changes = SW_NEW(&plan->arena, sw_plan_changes);
	plan->changes->program = true;
	c.changes = plan->changes;
	sw_status status = sw_carry_match(&c, ops);
	if (status == SW_OK)
		status = take_all(&c);
	sw_vec_clear(&c.old);
	sw_map_clear(&c.old_by_name);
	sw_arena_clear(&c.arena);
	return status;
}
