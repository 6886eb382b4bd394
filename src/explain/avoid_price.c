/*
 * The price of a change of decisions. It is computed where it arises: the local op as the planner
 * prices it, and the redistributions of its operands and results, each once per layout or once per
 * reader, as the partitioner writes them.
 */
#include "explain/avoid.h"

#include <math.h>
#include <stdlib.h>

/* ---- the price of a value ----------------------------------------------------------------- */

typedef struct value_copies { /* the layouts in which one value is available */
	SW_VEC(uint32_t) layouts;
	double trips;
	sw_avoid_price cost;
} value_copies;

static bool has_layout(const value_copies *have, uint32_t layout)
{
	for (size_t i = 0; i < have->layouts.len; i++)
		if (have->layouts.data[i] == layout)
			return true;
	return false;
}

static int64_t local_bytes(const sw_avoider *v, sw_id value, uint32_t layout)
{
	return sw_layout_local_bytes(&v->trial.cluster->atoms,
	                             sw_value_shape(v->trial.program, value),
	                             sw_plan_layout(&v->trial, layout));
}

static void add_move(sw_avoider *v, sw_id value, uint32_t from, uint32_t to, value_copies *have)
{
	const sw_layout *x = sw_plan_layout(&v->trial, from), *y = sw_plan_layout(&v->trial, to);
	bool combined = x->monoid == y->monoid || x->monoid == SW_MONOID_NONE ||
	                y->monoid == SW_MONOID_NONE;
	const sw_path *path =
		combined
			? sw_path_cache_get(v->paths, sw_value_shape(v->trial.program, value), x, y)
			: NULL;
	if (!path || !isfinite(path->seconds)) {
		have->cost.possible = false;
		return;
	}
	have->cost.communication_s += have->trips * path->seconds;
	have->cost.payload_bytes += (int64_t)(have->trips * (double)path->payload_bytes);
	if (has_layout(have, to))
		return;
	have->cost.memory_bytes += local_bytes(v, value, to);
	sw_vec_push(&have->layouts, to);
}

/* Read a value as the partitioner's read_value does. */
static void add_read(sw_avoider *v, sw_id value, uint32_t layout, sw_id reader, value_copies *have)
{
	uint32_t materialised = v->trial.materialised[value], produced = v->trial.produced[value];
	bool regather = layout != produced && sw_plan_regathers(&v->trial, value, reader);
	if (has_layout(have, layout) && !regather)
		return;
	if (layout == materialised || !has_layout(have, materialised))
		add_move(v, value, produced, materialised, have);
	if (layout != materialised)
		add_move(v, value, materialised, layout, have);
}

/* An op that reads a value twice in one layout moves it once. */
static void add_reads_of_op(sw_avoider *v, sw_id value, sw_id reader, value_copies *have)
{
	const sw_op *op = sw_op_at(v->trial.program, reader);
	sw_layout *layouts = sw_alloc(sizeof(*layouts) * (op->n_operands + op->n_results + 1));
	uint32_t before = SW_ABSENT;
	if (!sw_plan_op_layouts(&v->trial, reader, layouts, layouts + op->n_operands))
		have->cost.possible = false;
	for (uint32_t k = 0; have->cost.possible && k < op->n_operands; k++) {
		uint32_t number = op->operands[k] == value
		                          ? sw_layouts_id(&v->trial.layouts, &layouts[k])
		                          : SW_ABSENT;
		if (number != SW_ABSENT && number != before)
			add_read(v, value, number, reader, have);
		before = number == SW_ABSENT ? before : number;
	}
	free(layouts);
}

/* Read the value where it is a result of its computation. */
static void add_reads_of_results(sw_avoider *v, sw_id value, value_copies *have)
{
	const sw_program *p = v->trial.program;
	int32_t c = sw_op_at(p, p->values.data[value].op)->computation;
	const sw_computation *computation = &p->computations.data[c];
	const uint32_t *needed = v->trial.outputs;
	if (c != p->entry) {
		const sw_op *region = sw_op_at(p, v->a->region[c]);
		uint32_t k = 0;
		while (region->called[k] != c)
			k++;
		needed = sw_plan_called_results(&v->trial, region, k);
	}
	for (size_t i = 0; i < computation->results.len; i++)
		if (computation->results.data[i] == value)
			add_read(v, value, needed[i], SW_NO_ID, have);
}

sw_avoid_price sw_price_value(sw_avoider *v, sw_id value)
{
	const sw_program *p = v->trial.program;
	sw_id producer = p->values.data[value].op, last = SW_NO_ID;
	const sw_op *op = sw_op_at(p, producer);
	value_copies have = {.trips = v->a->roles.trips[producer], .cost = {.possible = true}};
	bool moved_when_read = op->opcode == SW_OP_PARAMETER || sw_is_region(op);
	sw_vec_push(&have.layouts, v->trial.produced[value]);
	have.cost.memory_bytes = local_bytes(v, value, v->trial.produced[value]);
	if (!moved_when_read)
		add_read(v, value, v->trial.materialised[value], producer, &have);
	for (uint32_t u = v->a->users.start[value]; u < v->a->users.start[value + 1]; u++) {
		if (v->a->users.ops[u] != last)
			add_reads_of_op(v, value, v->a->users.ops[u], &have);
		last = v->a->users.ops[u];
	}
	add_reads_of_results(v, value, &have);
	sw_vec_clear(&have.layouts);
	return have.cost;
}

/* ---- the price of an op, its operands and its results ------------------------------------- */

static void add_price(sw_avoid_price *sum, sw_avoid_price more)
{
	sum->compute_s += more.compute_s;
	sum->communication_s += more.communication_s;
	sum->payload_bytes += more.payload_bytes;
	sum->memory_bytes += more.memory_bytes;
	sum->possible = sum->possible && more.possible;
}

static sw_avoid_price price_op(sw_avoider *v, sw_id id)
{
	const sw_op *op = sw_op_at(v->trial.program, id);
	sw_program_cost cost = {0};
	sw_avoid_price result = {.possible = true};
	if (op->opcode == SW_OP_PARAMETER)
		return result;
	sw_layout *layouts = sw_alloc(sizeof(*layouts) * (op->n_operands + op->n_results + 1));
	result.possible = sw_plan_op_layouts(&v->trial, id, layouts, layouts + op->n_operands) &&
	                  sw_price_local(&v->analysis, id, &v->trial.strategies[id], layouts, &cost);
	free(layouts);
	double trips = v->a->roles.trips[id];
	result.compute_s = trips * cost.compute_s;
	result.communication_s = trips * cost.communication_s;
	if (cost.compute_s == 0 && cost.communication_s == 0)
		/* a replicated op has this figure alone */
		result.compute_s = trips * cost.step_time_s;
	result.payload_bytes = (int64_t)(trips * (double)cost.payload_bytes);
	return result;
}

/* Return the output that replaces an entry input, or SW_NO_ID. */
static sw_id new_value_of(const sw_avoider *v, sw_id input_op)
{
	const sw_roles *roles = &v->a->roles;
	for (uint32_t i = 0; i < v->trial.n_outputs; i++) {
		int32_t input = roles->output_input[i];
		if (input >= 0 &&
		    v->trial.program->values.data[roles->inputs[input]].op == input_op)
			return sw_entry(v->trial.program)->results.data[i];
	}
	return SW_NO_ID;
}

static void list_value(sw_value_list *list, sw_id value)
{
	for (size_t i = 0; i < list->len; i++)
		if (list->data[i] == value)
			return;
	sw_vec_push(list, value);
}

sw_value_list sw_values_around(const sw_avoider *v, const sw_avoidance *x)
{
	sw_value_list list = {0};
	for (int32_t i = 0; i < x->n; i++) {
		const sw_op *op = sw_op_at(v->trial.program, x->op[i]);
		for (uint32_t k = 0; k < op->n_operands; k++)
			list_value(&list, op->operands[k]);
		for (uint32_t k = 0; k < op->n_results; k++)
			list_value(&list, op->first_result + k);
		sw_id next = op->opcode == SW_OP_PARAMETER ? new_value_of(v, x->op[i]) : SW_NO_ID;
		if (next != SW_NO_ID)
			list_value(&list, next);
	}
	return list;
}

sw_avoid_price sw_price_around(sw_avoider *v, const sw_avoidance *x)
{
	sw_avoid_price sum = {.possible = true};
	sw_value_list list = sw_values_around(v, x);
	for (int32_t i = 0; i < x->n && sum.possible; i++)
		add_price(&sum, price_op(v, x->op[i]));
	for (size_t i = 0; i < list.len && sum.possible; i++)
		add_price(&sum, sw_price_value(v, list.data[i]));
	sw_vec_clear(&list);
	return sum;
}
