/*
 * What it would cost to do without a redistribution. Every other choice of the op that makes the
 * value, and of the one that reads it, is tried on a copy of the plan's decisions: what each axis
 * does there. What changes is priced where it changes: the local op as the planner prices it, and
 * the redistributions of what the op reads and gives, each once per layout or once per reader, as
 * the partitioner writes them.
 */
#include "explain/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A move whose bytes turn up again beside the op, to this part, was put off and not avoided; but
 * how a parameter rests is a choice of its own. */
#define SAME_BYTES 0.01

typedef struct price {
	double compute_s, communication_s;
	int64_t payload_bytes, memory_bytes;
	bool possible;
} price;

struct sw_avoider {
	sw_anatomy *a;
	const sw_origins *origins;
	sw_plan shadow;       /* decisions of its own, the rest is the plan's */
	sw_analysis analysis; /* only the fields that pricing an op reads */
	sw_path_cache *paths;
};

sw_avoider *sw_avoider_new(const sw_explained *what, sw_anatomy *anatomy)
{
	sw_avoider *v = sw_alloc(sizeof(*v));
	const sw_program *p = what->plan->program;
	size_t values = p->values.len + 1;
	v->a = anatomy;
	v->origins = what->origins;
	v->shadow = *what->plan;
	v->shadow.layouts = (sw_layouts){0};
	sw_layouts_copy(&v->shadow.layouts, &what->plan->layouts);
	sw_arena_init(&v->shadow.arena);
	v->shadow.strategies = sw_arena_copy(&v->shadow.arena, what->plan->strategies,
	                                     sizeof(sw_strategy) * (p->ops.len + 1));
	v->shadow.produced =
		sw_arena_copy(&v->shadow.arena, what->plan->produced, sizeof(uint32_t) * values);
	v->shadow.materialised = sw_arena_copy(&v->shadow.arena, what->plan->materialised,
	                                       sizeof(uint32_t) * values);
	v->shadow.outputs = sw_arena_copy(&v->shadow.arena, what->plan->outputs,
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
	sw_layouts_clear(&v->shadow.layouts);
	sw_arena_clear(&v->shadow.arena);
	free(v);
}

/* ---- what a value costs ----------------------------------------------------------------- */

typedef struct versions { /* of one value: the layouts in which it is there */
	SW_VEC(uint32_t) layouts;
	double trips;
	price cost;
} versions;

static bool has(const versions *have, uint32_t layout)
{
	for (size_t i = 0; i < have->layouts.len; i++)
		if (have->layouts.data[i] == layout)
			return true;
	return false;
}

static int64_t local_bytes(const sw_avoider *v, sw_id value, uint32_t layout)
{
	return sw_layout_local_bytes(&v->shadow.cluster->atoms,
	                             sw_value_shape(v->shadow.program, value),
	                             sw_plan_layout(&v->shadow, layout));
}

static void convert(sw_avoider *v, sw_id value, uint32_t from, uint32_t to, versions *have)
{
	const sw_layout *x = sw_plan_layout(&v->shadow, from), *y = sw_plan_layout(&v->shadow, to);
	bool combined = x->monoid == y->monoid || x->monoid == SW_MONOID_NONE ||
	                y->monoid == SW_MONOID_NONE;
	const sw_path *path =
		combined ? sw_path_cache_get(v->paths, sw_value_shape(v->shadow.program, value), x,
	                                     y)
			 : NULL;
	if (!path || !isfinite(path->seconds)) {
		have->cost.possible = false;
		return;
	}
	have->cost.communication_s += have->trips * path->seconds;
	have->cost.payload_bytes += (int64_t)(have->trips * (double)path->payload_bytes);
	if (has(have, to))
		return;
	have->cost.memory_bytes += local_bytes(v, value, to);
	sw_vec_push(&have->layouts, to);
}

/* As the partitioner's read_value. */
static void read_as(sw_avoider *v, sw_id value, uint32_t layout, sw_id reader, versions *have)
{
	uint32_t kept = v->shadow.materialised[value], produced = v->shadow.produced[value];
	bool anew = layout != produced && sw_plan_regathers(&v->shadow, value, reader);
	if (has(have, layout) && !anew)
		return;
	if (layout == kept || !has(have, kept))
		convert(v, value, produced, kept, have);
	if (layout != kept)
		convert(v, value, kept, layout, have);
}

/* An op that reads a value twice in one layout moves it once. */
static void read_by(sw_avoider *v, sw_id value, sw_id reader, versions *have)
{
	const sw_op *op = sw_op_at(v->shadow.program, reader);
	sw_layout *layouts = sw_alloc(sizeof(*layouts) * (op->n_operands + op->n_results + 1));
	uint32_t before = SW_ABSENT;
	if (!sw_plan_op_layouts(&v->shadow, reader, layouts, layouts + op->n_operands))
		have->cost.possible = false;
	for (uint32_t k = 0; have->cost.possible && k < op->n_operands; k++) {
		uint32_t number = op->operands[k] == value
		                          ? sw_layouts_id(&v->shadow.layouts, &layouts[k])
		                          : SW_ABSENT;
		if (number != SW_ABSENT && number != before)
			read_as(v, value, number, reader, have);
		before = number == SW_ABSENT ? before : number;
	}
	free(layouts);
}

/* Results of its computation. */
static void read_at_end(sw_avoider *v, sw_id value, versions *have)
{
	const sw_program *p = v->shadow.program;
	int32_t c = sw_op_at(p, p->values.data[value].op)->computation;
	const sw_computation *computation = &p->computations.data[c];
	const uint32_t *wanted = v->shadow.outputs;
	if (c != p->entry) {
		const sw_op *region = sw_op_at(p, v->a->region[c]);
		uint32_t k = 0;
		while (region->called[k] != c)
			k++;
		wanted = sw_plan_called_results(&v->shadow, region, k);
	}
	for (size_t i = 0; i < computation->results.len; i++)
		if (computation->results.data[i] == value)
			read_as(v, value, wanted[i], SW_NO_ID, have);
}

static price price_value(sw_avoider *v, sw_id value)
{
	const sw_program *p = v->shadow.program;
	sw_id producer = p->values.data[value].op, last = SW_NO_ID;
	const sw_op *op = sw_op_at(p, producer);
	versions have = {.trips = v->a->roles.trips[producer], .cost = {.possible = true}};
	bool given = op->opcode == SW_OP_PARAMETER || sw_is_region(op);
	sw_vec_push(&have.layouts, v->shadow.produced[value]);
	have.cost.memory_bytes = local_bytes(v, value, v->shadow.produced[value]);
	if (!given)
		read_as(v, value, v->shadow.materialised[value], producer, &have);
	for (uint32_t u = v->a->users.start[value]; u < v->a->users.start[value + 1]; u++) {
		if (v->a->users.ops[u] != last)
			read_by(v, value, v->a->users.ops[u], &have);
		last = v->a->users.ops[u];
	}
	read_at_end(v, value, &have);
	sw_vec_clear(&have.layouts);
	return have.cost;
}

/* ---- what an op costs, with what it reads and gives ------------------------------------- */

static void add_price(price *sum, price more)
{
	sum->compute_s += more.compute_s;
	sum->communication_s += more.communication_s;
	sum->payload_bytes += more.payload_bytes;
	sum->memory_bytes += more.memory_bytes;
	sum->possible = sum->possible && more.possible;
}

static price price_op(sw_avoider *v, sw_id id)
{
	const sw_op *op = sw_op_at(v->shadow.program, id);
	sw_program_cost cost = {0};
	price result = {.possible = true};
	if (op->opcode == SW_OP_PARAMETER)
		return result;
	sw_layout *layouts = sw_alloc(sizeof(*layouts) * (op->n_operands + op->n_results + 1));
	result.possible =
		sw_plan_op_layouts(&v->shadow, id, layouts, layouts + op->n_operands) &&
		sw_price_local(&v->analysis, id, &v->shadow.strategies[id], layouts, &cost);
	free(layouts);
	double trips = v->a->roles.trips[id];
	result.compute_s = trips * cost.compute_s;
	result.communication_s = trips * cost.communication_s;
	if (cost.compute_s == 0 && cost.communication_s == 0)
		result.compute_s = trips * cost.step_time_s; /* an op as it is has this alone */
	result.payload_bytes = (int64_t)(trips * (double)cost.payload_bytes);
	return result;
}

/* Outputs that replace an input. */
static sw_id new_value_of(const sw_avoider *v, sw_id input_op)
{
	const sw_roles *roles = &v->a->roles;
	for (uint32_t i = 0; i < v->shadow.n_outputs; i++) {
		int32_t input = roles->output_input[i];
		if (input >= 0 &&
		    v->shadow.program->values.data[roles->inputs[input]].op == input_op)
			return sw_entry(v->shadow.program)->results.data[i];
	}
	return SW_NO_ID;
}

typedef SW_VEC(sw_id) value_list;

static void list_value(value_list *list, sw_id value)
{
	for (size_t i = 0; i < list->len; i++)
		if (list->data[i] == value)
			return;
	sw_vec_push(list, value);
}

/* All that is moved otherwise where these ops do otherwise. */
static value_list values_around(const sw_avoider *v, const sw_avoidance *x)
{
	value_list list = {0};
	for (int32_t i = 0; i < x->n; i++) {
		const sw_op *op = sw_op_at(v->shadow.program, x->op[i]);
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

static price price_around(sw_avoider *v, const sw_avoidance *x)
{
	price sum = {.possible = true};
	value_list list = values_around(v, x);
	for (int32_t i = 0; i < x->n && sum.possible; i++)
		add_price(&sum, price_op(v, x->op[i]));
	for (size_t i = 0; i < list.len && sum.possible; i++)
		add_price(&sum, price_value(v, list.data[i]));
	sw_vec_clear(&list);
	return sum;
}

/* ---- other choices ---------------------------------------------------------------------- */

static bool apply_rest(const sw_avoidance *x, sw_plan *plan)
{
	const sw_program *p = plan->program;
	const sw_op *op = sw_op_at(p, x->op[0]);
	sw_id value = op->first_result;
	uint32_t before = plan->produced[value], after = sw_layouts_id(&plan->layouts, &x->rest);
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

static bool apply_strategy(sw_id id, const sw_strategy *strategy, bool at_once, sw_plan *plan)
{
	const sw_op *op = sw_op_at(plan->program, id);
	sw_layout *layouts = sw_alloc(sizeof(*layouts) * (op->n_operands + op->n_results + 1));
	plan->strategies[id] = *strategy;
	bool possible = sw_plan_op_layouts(plan, id, layouts, layouts + op->n_operands);
	for (uint32_t k = 0; possible && k < op->n_results; k++) {
		sw_id value = op->first_result + k;
		uint32_t before = plan->produced[value];
		plan->produced[value] = sw_layouts_id(&plan->layouts, &layouts[op->n_operands + k]);
		if (!at_once && plan->materialised[value] == before)
			plan->materialised[value] = plan->produced[value];
	}
	free(layouts);
	return possible;
}

/* Only the last of them moves its results at once: the others hand on what they get. */
bool sw_avoidance_apply(const sw_avoidance *x, sw_plan *plan)
{
	if (sw_op_at(plan->program, x->op[0])->opcode == SW_OP_PARAMETER)
		return apply_rest(x, plan);
	for (int32_t i = 0; i < x->n; i++)
		if (!apply_strategy(x->op[i], &x->strategy[i], x->at_once && i == x->n - 1, plan))
			return false;
	return true;
}

/* What sw_avoidance_apply changes, to be put back. */
typedef struct undo {
	sw_strategy strategy[SW_MOST_FOLLOWERS];
	value_list values;
	uint32_t *numbers; /* per value produced and kept; then outputs */
} undo;

static undo remember(const sw_avoider *v, const sw_avoidance *x)
{
	undo u = {.values = values_around(v, x)};
	size_t n = u.values.len;
	u.numbers = sw_alloc(sizeof(uint32_t) * (2 * n + v->shadow.n_outputs + 1));
	for (int32_t i = 0; i < x->n; i++)
		u.strategy[i] = v->shadow.strategies[x->op[i]];
	for (size_t i = 0; i < n; i++) {
		u.numbers[2 * i] = v->shadow.produced[u.values.data[i]];
		u.numbers[2 * i + 1] = v->shadow.materialised[u.values.data[i]];
	}
	memcpy(u.numbers + 2 * n, v->shadow.outputs, sizeof(uint32_t) * v->shadow.n_outputs);
	return u;
}

static void put_back(sw_avoider *v, const sw_avoidance *x, undo *u)
{
	size_t n = u->values.len;
	for (int32_t i = 0; i < x->n; i++)
		v->shadow.strategies[x->op[i]] = u->strategy[i];
	for (size_t i = 0; i < n; i++) {
		v->shadow.produced[u->values.data[i]] = u->numbers[2 * i];
		v->shadow.materialised[u->values.data[i]] = u->numbers[2 * i + 1];
	}
	memcpy(v->shadow.outputs, u->numbers + 2 * n, sizeof(uint32_t) * v->shadow.n_outputs);
	sw_vec_clear(&u->values);
	free(u->numbers);
}

typedef struct attempt {
	sw_id value;           /* whose move is to be avoided */
	int64_t payload_bytes; /* of it */
	price before, value_before;
	/* ops behind the one whose strategy is tried, up to the one that makes the value */
	int32_t n;
	sw_id behind[SW_MOST_FOLLOWERS];
} attempt;

static bool passes(const sw_strategy *s)
{
	for (int32_t a = 0; a < s->n; a++)
		if (s->atom[a].kind == SW_CHOICE_PASS)
			return true;
	return false;
}

/* Payload of the other values of as many elements that the op reads or gives. */
static void payload_beside(sw_avoider *v, const attempt *at, const value_list *values,
                           int64_t *payload)
{
	const sw_program *p = v->shadow.program;
	int64_t elements = sw_shape_elements(sw_value_shape(p, at->value));
	for (size_t i = 0; i < values->len; i++) {
		sw_id value = values->data[i];
		bool alike = value != at->value &&
		             sw_shape_elements(sw_value_shape(p, value)) == elements;
		payload[i] = alike ? price_value(v, value).payload_bytes : 0;
	}
}

/* An op that hands on as many elements as it gets (it sums nothing) has not avoided a move that is
 * made on its other side now. */
static bool is_put_off(sw_avoider *v, const attempt *at, const sw_avoidance *x)
{
	const sw_op *op = sw_op_at(v->shadow.program, x->op[0]);
	if (sw_op_sums(v->shadow.program, op) || op->opcode == SW_OP_PARAMETER)
		return false;
	undo u = remember(v, x);
	size_t n = u.values.len;
	int64_t *before = sw_alloc(sizeof(*before) * (2 * n + 1)), *after = before + n;
	payload_beside(v, at, &u.values, before);
	sw_avoidance_apply(x, &v->shadow);
	payload_beside(v, at, &u.values, after);
	bool more = false;
	for (size_t k = 0; k < n; k++)
		more = more || after[k] > before[k];
	put_back(v, x, &u);
	free(before);
	return more;
}

static void try_choice(sw_avoider *v, const attempt *at, sw_avoidance *x, sw_avoidance *best)
{
	undo u = remember(v, x);
	price after = {0}, value = {0};
	if (sw_avoidance_apply(x, &v->shadow))
		value = price_value(v, at->value);
	bool avoided = value.possible &&
	               value.payload_bytes + at->payload_bytes <= at->value_before.payload_bytes;
	if (avoided)
		after = price_around(v, x);
	put_back(v, x, &u);
	int64_t payload = after.payload_bytes - at->before.payload_bytes;
	bool put_off = fabs((double)payload) <= SAME_BYTES * (double)at->payload_bytes ||
	               (passes(&x->strategy[0]) && payload >= 0);
	bool rests = sw_op_at(v->shadow.program, x->op[0])->opcode == SW_OP_PARAMETER;
	if (!avoided || !after.possible || (put_off && !rests))
		return;
	x->possible = true;
	x->payload_bytes = payload;
	x->compute_s = after.compute_s - at->before.compute_s;
	x->communication_s = after.communication_s - at->before.communication_s;
	x->seconds = x->compute_s + x->communication_s;
	x->memory_bytes = after.memory_bytes - at->before.memory_bytes;
	if ((!best->possible || x->seconds < best->seconds) && !is_put_off(v, at, x))
		*best = *x;
}

/* The ops behind take the result as it comes then. False: one of them can't. */
static bool follow(sw_avoider *v, const attempt *at, sw_avoidance *x)
{
	const sw_program *p = v->shadow.program;
	const sw_atoms *atoms = &v->shadow.cluster->atoms;
	for (int32_t i = 0; i < at->n; i++) {
		const sw_op *before = sw_op_at(p, x->op[x->n - 1]),
			    *op = sw_op_at(p, at->behind[i]);
		uint32_t all = (uint32_t)((UINT64_C(1) << atoms->n) - 1), mask = all;
		sw_layout *of_before =
			sw_alloc(sizeof(*of_before) * (before->n_operands + before->n_results + 1));
		bool possible = sw_rule_layouts(
			p, x->op[x->n - 1], v->shadow.rules[x->op[x->n - 1]], atoms,
			&x->strategy[x->n - 1], of_before, of_before + before->n_operands);
		sw_layout comes = of_before[before->n_operands];
		free(of_before);
		if (!possible)
			return false;
		x->strategy[x->n] = sw_strategy_none(atoms);
		sw_rule_match(v->shadow.rules[at->behind[i]], atoms, false, 0, &comes, &mask,
		              &x->strategy[x->n]);
		if (mask != all || op->n_operands != 1)
			return false;
		x->op[x->n++] = at->behind[i];
	}
	return true;
}

static void try_both(sw_avoider *v, const attempt *at, sw_id op, const sw_strategy *strategy,
                     sw_avoidance *best)
{
	for (int at_once = 0; at_once < 2; at_once++) {
		sw_avoidance x = {.n = 1, .op = {op}, .strategy = {*strategy}, .at_once = at_once};
		if (follow(v, at, &x))
			try_choice(v, at, &x, best);
	}
}

/* The next axis splits a factor below where earlier ones do. */
static int64_t top_below(const sw_avoider *v, const sw_strategy *s, int32_t factor, int64_t top)
{
	for (int32_t a = 0; a < s->n; a++)
		if (s->atom[a].kind == SW_CHOICE_SPLIT && s->atom[a].index == factor &&
		    s->atom[a].stride * v->shadow.cluster->atoms.size[a] == top)
			top = s->atom[a].stride;
	return top;
}

static void try_axes(sw_avoider *v, const attempt *at, sw_id op, int32_t axis,
                     const sw_strategy *so_far, sw_avoidance *best)
{
	const sw_rule *rule = v->shadow.rules[op];
	const sw_classes *classes = &v->a->classes;
	if (axis == v->shadow.n_axes) {
		if (!sw_strategy_equal(so_far, &v->shadow.strategies[op]))
			try_both(v, at, op, so_far, best);
		return;
	}
	uint32_t atoms = v->shadow.axes[axis].atoms;
	try_axes(v, at, op, axis + 1, so_far, best);
	for (uint32_t i = classes->op_start[op]; i < classes->op_start[op + 1]; i++) {
		sw_strategy s = *so_far;
		const sw_split *split = &classes->op_splits[i];
		if (sw_strategy_split(&v->shadow.cluster->atoms, rule, &s, atoms, split->where,
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

static void try_op(sw_avoider *v, attempt *at, sw_id id, const sw_layout *wanted,
                   sw_avoidance *best)
{
	const sw_op *op = sw_op_at(v->shadow.program, id);
	sw_strategy none = sw_strategy_none(&v->shadow.cluster->atoms);
	if (sw_is_region(op) ||
	    (op->opcode == SW_OP_PARAMETER && op->computation != v->shadow.program->entry))
		return;
	sw_avoidance as_it_is = {.n = at->n + 1, .op = {id}};
	memcpy(as_it_is.op + 1, at->behind, sizeof(sw_id) * (size_t)at->n);
	at->before = price_around(v, &as_it_is);
	if (op->opcode == SW_OP_PARAMETER && wanted->monoid == SW_MONOID_NONE &&
	    op->n_results == 1) {
		sw_avoidance x = {.n = 1, .op = {id}, .rest = *wanted};
		try_choice(v, at, &x, best);
	} else if (op->opcode != SW_OP_PARAMETER)
		try_axes(v, at, id, 0, &none, best);
}

void sw_avoid(sw_avoider *v, const sw_origin *o, sw_avoidance *best)
{
	const sw_program *p = v->shadow.program;
	const sw_layout *from = &v->origins->layouts.items.data[o->from],
			*to = &v->origins->layouts.items.data[o->to];
	sw_id producer = p->values.data[o->value].op;
	attempt at = {.value = o->value};
	*best = (sw_avoidance){0};
	at.value_before = price_value(v, o->value);
	at.payload_bytes =
		(int64_t)(v->a->roles.trips[producer] *
	                  (double)sw_path_cache_get(v->paths, sw_value_shape(p, o->value), from, to)
	                          ->payload_bytes);
	try_op(v, &at, producer, to, best);
	/* What only hands a value on (a transpose behind a dot) goes along with the op that makes
	 * it. */
	for (sw_id id = producer; at.n < SW_MOST_FOLLOWERS - 1 &&
	                          sw_op_at(p, id)->n_operands == 1 &&
	                          !sw_op_sums(p, sw_op_at(p, id));) {
		memmove(at.behind + 1, at.behind, sizeof(sw_id) * (size_t)at.n++);
		at.behind[0] = id;
		id = p->values.data[sw_op_at(p, id)->operands[0]].op;
		if (sw_op_at(p, id)->opcode != SW_OP_PARAMETER)
			try_op(v, &at, id, to, best);
	}
	at.n = 0;
	if (o->op != SW_NO_ID && o->op != producer)
		try_op(v, &at, o->op, to, best);
	for (uint32_t i = 0; i < v->shadow.n_outputs;
	     i++) /* a new value is moved because of how its parameter rests */
		if (sw_entry(p)->results.data[i] == o->value && v->a->roles.output_input[i] >= 0)
			try_op(v, &at,
			       p->values.data[v->a->roles.inputs[v->a->roles.output_input[i]]].op,
			       from, best);
}

void sw_avoidance_print(sw_avoider *v, const sw_avoidance *x, sw_text *text)
{
	const sw_op *op = sw_op_at(v->shadow.program, x->op[0]);
	sw_text label = {0};
	sw_anatomy_label(v->a, op->first_result, &label);
	sw_text_add(text, sw_anatomy_folded(v->a, label.data));
	sw_text_clear(&label);
	if (op->opcode == SW_OP_PARAMETER) {
		sw_text_add(text, " at rest: ");
		sw_words_layout(v->a, &v->shadow, op->first_result, &x->rest, text);
		return;
	}
	uint32_t weight = 1;
	undo u = remember(v, x);
	sw_anatomy_parameter(v->a, x->op[0], &weight);
	sw_avoidance_apply(x, &v->shadow);
	sw_text_add(text, ": ");
	if (sw_is_contraction(op))
		sw_words_strategy(v->a, &v->shadow, x->op[0], weight, text);
	else
		sw_words_layout(v->a, &v->shadow, op->first_result,
		                sw_plan_layout(&v->shadow, v->shadow.produced[op->first_result]),
		                text);
	put_back(v, x, &u);
}
