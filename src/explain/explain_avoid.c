/*
 * Find the cheapest change that avoids a redistribution. Every other strategy of the op that
 * produces the value, and of the one that reads it, is tried on a copy of the plan's decisions,
 * axis by axis; avoid_price.c prices it.
 */
#include "explain/avoid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A change whose payload differs from the payload it avoids by at most this fraction has postponed
 * the move and not avoided it. The layout of a parameter at rest is exempt. */
#define SAME_PAYLOAD_TOLERANCE 0.01

sw_avoider *sw_avoider_new(const sw_explained *what, sw_anatomy *anatomy)
{
	sw_avoider *v = sw_alloc(sizeof(*v));
	const sw_program *p = what->plan->program;
	size_t values = p->values.len + 1;
	v->a = anatomy;
	v->origins = what->origins;
	v->trial = *what->plan;
	v->trial.layouts = (sw_layouts){0};
	sw_layouts_copy(&v->trial.layouts, &what->plan->layouts);
	sw_arena_init(&v->trial.arena);
	v->trial.strategies = sw_arena_copy(&v->trial.arena, what->plan->strategies,
	                                    sizeof(sw_strategy) * (p->ops.len + 1));
	v->trial.produced =
		sw_arena_copy(&v->trial.arena, what->plan->produced, sizeof(uint32_t) * values);
	v->trial.materialised =
		sw_arena_copy(&v->trial.arena, what->plan->materialised, sizeof(uint32_t) * values);
	v->trial.outputs = sw_arena_copy(&v->trial.arena, what->plan->outputs,
	                                 sizeof(uint32_t) * (what->plan->n_outputs + 1));
	v->analysis = (sw_analysis){
		.program = p, .cluster = what->plan->cluster, .rules = what->plan->rules};
	v->paths = sw_plan_paths(what->plan->cluster, what->plan->axes, what->plan->n_axes);
	return v;
}

void sw_avoider_free(sw_avoider *v)
{
	if (!v)
		return;
	sw_path_cache_free(v->paths);
	sw_layouts_clear(&v->trial.layouts);
	sw_arena_clear(&v->trial.arena);
	free(v);
}

/* ---- other choices ---------------------------------------------------------------------- */

static bool apply_rest(const sw_avoidance *x, sw_plan *plan)
{
	const sw_program *p = plan->program;
	const sw_op *op = sw_op_at(p, x->op[0]);
	sw_id value = op->first_result;
	uint32_t before = plan->produced[value],
		 after = sw_layouts_id(&plan->layouts, &x->rest_layout);
	sw_arena arena;
	const sw_id *inputs;
	sw_arena_init(&arena);
	sw_program_inputs(p, p->entry, &arena, &inputs);
	plan->produced[value] = after;
	plan->materialised[value] =
		plan->materialised[value] == before ? after : plan->materialised[value];
	for (size_t i = 0; i < p->aliases.len; i++) {
		sw_alias alias = p->aliases.data[i];
		sw_id next = sw_entry(p)->results.data[alias.output];
		if (inputs[alias.input] != value)
			continue;
		plan->outputs[alias.output] = after;
		plan->materialised[next] = plan->materialised[next] == before
		                                   ? plan->produced[next]
		                                   : plan->materialised[next];
	}
	sw_arena_clear(&arena);
	return op->n_results == 1;
}

static bool apply_strategy(sw_id id, const sw_strategy *strategy, bool keep_materialised,
                           sw_plan *plan)
{
	const sw_op *op = sw_op_at(plan->program, id);
	sw_layout *layouts = sw_alloc(sizeof(*layouts) * (op->n_operands + op->n_results + 1));
	plan->strategies[id] = *strategy;
	bool possible = sw_plan_op_layouts(plan, id, layouts, layouts + op->n_operands);
	for (uint32_t k = 0; possible && k < op->n_results; k++) {
		sw_id value = op->first_result + k;
		uint32_t before = plan->produced[value];
		plan->produced[value] = sw_layouts_id(&plan->layouts, &layouts[op->n_operands + k]);
		if (!keep_materialised && plan->materialised[value] == before)
			plan->materialised[value] = plan->produced[value];
	}
	free(layouts);
	return possible;
}

/* Only the last op keeps the materialised layouts of its results: the others forward theirs. */
bool sw_avoidance_apply(const sw_avoidance *x, sw_plan *plan)
{
	if (sw_op_at(plan->program, x->op[0])->opcode == SW_OP_PARAMETER)
		return apply_rest(x, plan);
	for (int32_t i = 0; i < x->n; i++)
		if (!apply_strategy(x->op[i], &x->strategy[i],
		                    x->keep_materialised && i == x->n - 1, plan))
			return false;
	return true;
}

/* The decisions that sw_avoidance_apply changes, so that they can be restored. */
typedef struct saved_decisions {
	sw_strategy strategy[SW_MAX_CHANGED_OPS];
	sw_value_list values;
	uint32_t *numbers; /* per value: produced, materialised; then outputs */
} saved_decisions;

static saved_decisions save_decisions(const sw_avoider *v, const sw_avoidance *x)
{
	saved_decisions u = {.values = sw_values_around(v, x)};
	size_t n = u.values.len;
	u.numbers = sw_alloc(sizeof(uint32_t) * (2 * n + v->trial.n_outputs + 1));
	for (int32_t i = 0; i < x->n; i++)
		u.strategy[i] = v->trial.strategies[x->op[i]];
	for (size_t i = 0; i < n; i++) {
		u.numbers[2 * i] = v->trial.produced[u.values.data[i]];
		u.numbers[2 * i + 1] = v->trial.materialised[u.values.data[i]];
	}
	memcpy(u.numbers + 2 * n, v->trial.outputs, sizeof(uint32_t) * v->trial.n_outputs);
	return u;
}

static void restore_decisions(sw_avoider *v, const sw_avoidance *x, saved_decisions *u)
{
	size_t n = u->values.len;
	for (int32_t i = 0; i < x->n; i++)
		v->trial.strategies[x->op[i]] = u->strategy[i];
	for (size_t i = 0; i < n; i++) {
		v->trial.produced[u->values.data[i]] = u->numbers[2 * i];
		v->trial.materialised[u->values.data[i]] = u->numbers[2 * i + 1];
	}
	memcpy(v->trial.outputs, u->numbers + 2 * n, sizeof(uint32_t) * v->trial.n_outputs);
	sw_vec_clear(&u->values);
	free(u->numbers);
}

typedef struct avoid_attempt {
	sw_id value;           /* the value whose move is to be avoided */
	int64_t payload_bytes; /* of this move */
	sw_avoid_price before, value_before;
	/* ops that forward the result of the op whose strategy is tried, down to the value's
	 * producer */
	int32_t n;
	sw_id followers[SW_MAX_CHANGED_OPS];
} avoid_attempt;

static bool passes_partial_sums(const sw_strategy *s)
{
	for (int32_t a = 0; a < s->n; a++)
		if (s->atom[a].kind == SW_CHOICE_PASS)
			return true;
	return false;
}

/* Compute the payload of the other values with as many elements that the op reads or produces. */
static void payload_beside(sw_avoider *v, const avoid_attempt *at, const sw_value_list *values,
                           int64_t *payload)
{
	const sw_program *p = v->trial.program;
	int64_t elements = sw_shape_elements(sw_value_shape(p, at->value));
	for (size_t i = 0; i < values->len; i++) {
		sw_id value = values->data[i];
		bool alike = value != at->value &&
		             sw_shape_elements(sw_value_shape(p, value)) == elements;
		payload[i] = alike ? sw_price_value(v, value).payload_bytes : 0;
	}
}

/* An op that keeps the number of elements (it sums nothing) only postpones a move if another of its
 * values is moved more after the change. */
static bool only_postpones(sw_avoider *v, const avoid_attempt *at, const sw_avoidance *x)
{
	const sw_op *op = sw_op_at(v->trial.program, x->op[0]);
	if (sw_op_sums(v->trial.program, op) || op->opcode == SW_OP_PARAMETER)
		return false;
	saved_decisions u = save_decisions(v, x);
	size_t n = u.values.len;
	int64_t *before = sw_alloc(sizeof(*before) * (2 * n + 1)), *after = before + n;
	payload_beside(v, at, &u.values, before);
	sw_avoidance_apply(x, &v->trial);
	payload_beside(v, at, &u.values, after);
	bool more = false;
	for (size_t k = 0; k < n; k++)
		more = more || after[k] > before[k];
	restore_decisions(v, x, &u);
	free(before);
	return more;
}

static void try_choice(sw_avoider *v, const avoid_attempt *at, sw_avoidance *x, sw_avoidance *best)
{
	saved_decisions u = save_decisions(v, x);
	sw_avoid_price after = {0}, value = {0};
	if (sw_avoidance_apply(x, &v->trial))
		value = sw_price_value(v, at->value);
	bool avoided = value.possible &&
	               value.payload_bytes + at->payload_bytes <= at->value_before.payload_bytes;
	if (avoided)
		after = sw_price_around(v, x);
	restore_decisions(v, x, &u);
	int64_t payload = after.payload_bytes - at->before.payload_bytes;
	bool postponed =
		fabs((double)payload) <= SAME_PAYLOAD_TOLERANCE * (double)at->payload_bytes ||
		(passes_partial_sums(&x->strategy[0]) && payload >= 0);
	bool is_parameter = sw_op_at(v->trial.program, x->op[0])->opcode == SW_OP_PARAMETER;
	if (!avoided || !after.possible || (postponed && !is_parameter))
		return;
	x->possible = true;
	x->payload_bytes = payload;
	x->compute_s = after.compute_s - at->before.compute_s;
	x->communication_s = after.communication_s - at->before.communication_s;
	x->seconds = x->compute_s + x->communication_s;
	x->memory_bytes = after.memory_bytes - at->before.memory_bytes;
	if ((!best->possible || x->seconds < best->seconds) && !only_postpones(v, at, x))
		*best = *x;
}

/* Let the followers take the result as it is produced now. False if one of them can't. */
static bool add_followers(sw_avoider *v, const avoid_attempt *at, sw_avoidance *x)
{
	const sw_program *p = v->trial.program;
	const sw_atoms *atoms = &v->trial.cluster->atoms;
	for (int32_t i = 0; i < at->n; i++) {
		const sw_op *before = sw_op_at(p, x->op[x->n - 1]),
			    *op = sw_op_at(p, at->followers[i]);
		uint32_t all = (uint32_t)((UINT64_C(1) << atoms->n) - 1), mask = all;
		sw_layout *of_before =
			sw_alloc(sizeof(*of_before) * (before->n_operands + before->n_results + 1));
		bool possible = sw_rule_layouts(p, x->op[x->n - 1], v->trial.rules[x->op[x->n - 1]],
		                                atoms, &x->strategy[x->n - 1], of_before,
		                                of_before + before->n_operands);
		sw_layout result = of_before[before->n_operands];
		free(of_before);
		if (!possible)
			return false;
		x->strategy[x->n] = sw_strategy_none(atoms);
		sw_rule_match(v->trial.rules[at->followers[i]], atoms, false, 0, &result, &mask,
		              &x->strategy[x->n]);
		if (mask != all || op->n_operands != 1)
			return false;
		x->op[x->n++] = at->followers[i];
	}
	return true;
}

static void try_strategy(sw_avoider *v, const avoid_attempt *at, sw_id op,
                         const sw_strategy *strategy, sw_avoidance *best)
{
	for (int keep_materialised = 0; keep_materialised < 2; keep_materialised++) {
		sw_avoidance x = {.n = 1,
		                  .op = {op},
		                  .strategy = {*strategy},
		                  .keep_materialised = keep_materialised};
		if (add_followers(v, at, &x))
			try_choice(v, at, &x, best);
	}
}

/* Return the top of the next split: the next axis splits a factor below the splits of earlier
 * axes. */
static int64_t top_below(const sw_avoider *v, const sw_strategy *s, int32_t factor, int64_t top)
{
	for (int32_t a = 0; a < s->n; a++)
		if (s->atom[a].kind == SW_CHOICE_SPLIT && s->atom[a].index == factor &&
		    s->atom[a].stride * v->trial.cluster->atoms.size[a] == top)
			top = s->atom[a].stride;
	return top;
}

static void try_axes(sw_avoider *v, const avoid_attempt *at, sw_id op, int32_t axis,
                     const sw_strategy *so_far, sw_avoidance *best)
{
	const sw_rule *rule = v->trial.rules[op];
	const sw_classes *classes = &v->a->classes;
	if (axis == v->trial.n_axes) {
		if (!sw_strategy_equal(so_far, &v->trial.strategies[op]))
			try_strategy(v, at, op, so_far, best);
		return;
	}
	uint32_t atoms = v->trial.axes[axis].atoms;
	try_axes(v, at, op, axis + 1, so_far, best);
	for (uint32_t i = classes->op_start[op]; i < classes->op_start[op + 1]; i++) {
		sw_strategy s = *so_far;
		const sw_split *split = &classes->op_splits[i];
		if (sw_strategy_split(&v->trial.cluster->atoms, rule, &s, atoms, split->where,
		                      top_below(v, &s, split->where, split->top)))
			try_axes(v, at, op, axis + 1, &s, best);
	}
	for (int16_t k = 0; k < rule->n_linearities; k++) {
		sw_strategy s = *so_far;
		if (!(rule->linearities[k].monoids >> SW_MONOID_SUM & 1))
			continue;
		for (int32_t a = 0; a < s.n; a++)
			if (atoms >> a & 1)
				s.atom[a] = (sw_choice){.kind = SW_CHOICE_PASS,
				                        .monoid = SW_MONOID_SUM,
				                        .index = k};
		try_axes(v, at, op, axis + 1, &s, best);
	}
}

static void try_op(sw_avoider *v, avoid_attempt *at, sw_id id, const sw_layout *needed,
                   sw_avoidance *best)
{
	const sw_op *op = sw_op_at(v->trial.program, id);
	sw_strategy none = sw_strategy_none(&v->trial.cluster->atoms);
	if (sw_is_region(op) ||
	    (op->opcode == SW_OP_PARAMETER && op->computation != v->trial.program->entry))
		return;
	sw_avoidance as_it_is = {.n = at->n + 1, .op = {id}};
	memcpy(as_it_is.op + 1, at->followers, sizeof(sw_id) * (size_t)at->n);
	at->before = sw_price_around(v, &as_it_is);
	if (op->opcode == SW_OP_PARAMETER && needed->monoid == SW_MONOID_NONE &&
	    op->n_results == 1) {
		sw_avoidance x = {.n = 1, .op = {id}, .rest_layout = *needed};
		try_choice(v, at, &x, best);
	} else if (op->opcode != SW_OP_PARAMETER)
		try_axes(v, at, id, 0, &none, best);
}

void sw_avoid(sw_avoider *v, const sw_origin *o, sw_avoidance *best)
{
	const sw_program *p = v->trial.program;
	const sw_layout *from = &v->origins->layouts.items.data[o->from],
			*to = &v->origins->layouts.items.data[o->to];
	sw_id producer = p->values.data[o->value].op;
	avoid_attempt at = {.value = o->value};
	*best = (sw_avoidance){0};
	at.value_before = sw_price_value(v, o->value);
	at.payload_bytes =
		(int64_t)(v->a->roles.trips[producer] *
	                  (double)sw_path_cache_get(v->paths, sw_value_shape(p, o->value), from, to)
	                          ->payload_bytes);
	try_op(v, &at, producer, to, best);
	/* Ops that only forward a value (a transpose behind a dot) change together with its
	 * producer. */
	for (sw_id id = producer; at.n < SW_MAX_CHANGED_OPS - 1 &&
	                          sw_op_at(p, id)->n_operands == 1 &&
	                          !sw_op_sums(p, sw_op_at(p, id));) {
		memmove(at.followers + 1, at.followers, sizeof(sw_id) * (size_t)at.n++);
		at.followers[0] = id;
		id = p->values.data[sw_op_at(p, id)->operands[0]].op;
		if (sw_op_at(p, id)->opcode != SW_OP_PARAMETER)
			try_op(v, &at, id, to, best);
	}
	at.n = 0;
	if (o->op != SW_NO_ID && o->op != producer)
		try_op(v, &at, o->op, to, best);
	/* a new value of state is moved because of its parameter's layout at rest */
	for (uint32_t i = 0; i < v->trial.n_outputs; i++)
		if (sw_entry(p)->results.data[i] == o->value && v->a->roles.output_input[i] >= 0)
			try_op(v, &at,
			       p->values.data[v->a->roles.inputs[v->a->roles.output_input[i]]].op,
			       from, best);
}

void sw_avoidance_print(sw_avoider *v, const sw_avoidance *x, sw_text *text)
{
	const sw_op *op = sw_op_at(v->trial.program, x->op[0]);
	sw_text label = {0};
	sw_anatomy_label(v->a, op->first_result, &label);
	sw_text_add(text, sw_anatomy_fold(v->a, label.data));
	sw_text_clear(&label);
	if (op->opcode == SW_OP_PARAMETER) {
		sw_text_add(text, " at rest: ");
		sw_describe_layout(v->a, &v->trial, op->first_result, &x->rest_layout, text);
		return;
	}
	uint32_t weight = 1;
	saved_decisions u = save_decisions(v, x);
	sw_anatomy_parameter(v->a, x->op[0], &weight);
	sw_avoidance_apply(x, &v->trial);
	sw_text_add(text, ": ");
	if (sw_is_contraction(op))
		sw_describe_strategy(v->a, &v->trial, x->op[0], weight, text);
	else
		sw_describe_layout(v->a, &v->trial, op->first_result,
		                   sw_plan_layout(&v->trial, v->trial.produced[op->first_result]),
		                   text);
	restore_decisions(v, x, &u);
}
