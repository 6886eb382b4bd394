/*
 * Propagation of the time atom, op by op in the program's order.
 *
 * An op with an operand that is split over time must find a strategy that reads that operand in its
 * own state; an op with partial sums may pass them on, or else reads their sum after the loop. A
 * value that is the same in all iterations can be read in parts, and as a term, at no cost. In the
 * computations that a loop or a conditional of the program runs, no op can wait for a sum: there
 * terms must pass, or the op refuses. Where two operands have the batch in dimensions that do not go
 * together, as two towers have that are compared pair by pair, one is read whole, in a loop behind
 * that which stores it. An op that can't be divided among the iterations runs once, after loops, on
 * the whole of what they stored, as on the keys that a step puts into a queue for the next; later
 * loops may read what is made of it, if most of the work is theirs. The states of loop-carried
 * values are found by repeated propagation until they are stable: each rises once, from B, so
 * O(carried values) rounds, and two or three in practice.
 */
#include "rewrite/time.h"

#include <stdlib.h>
#include <string.h>

bool sw_time_equal(sw_time a, sw_time b)
{
	return a.state.kind == b.state.kind && a.state.dim == b.state.dim &&
	       a.state.stride == b.state.stride && a.monoid == b.monoid;
}

sw_layout sw_time_layout(const sw_timing *timing, sw_time time)
{
	sw_layout layout = sw_layout_replicated(&timing->atoms);
	layout.state[0] = time.state;
	layout.monoid = time.monoid;
	return layout;
}

sw_strategy sw_time_strategy(const sw_timing *timing, sw_id op)
{
	sw_strategy strategy = sw_strategy_none(&timing->atoms);
	strategy.atom[0] = timing->choice[op];
	return strategy;
}

sw_time sw_time_of(const sw_layout *layout)
{
	return (sw_time){.state = layout->state[0], .monoid = layout->monoid};
}

static bool is_split(sw_time time)
{
	return time.state.kind == SW_STATE_S;
}
static bool is_partial(sw_time time)
{
	return time.state.kind == SW_STATE_P;
}
static bool is_same(sw_time time)
{
	return time.state.kind == SW_STATE_B;
}

sw_id sw_region_parameters(const sw_program *program, const sw_op *region, uint32_t k, uint32_t *n)
{
	const sw_computation *c = &program->computations.data[region->called[k]];
	*n = 0;
	if (c->parameters.len == 0)
		return SW_NO_ID;
	const sw_op *parameter = sw_op_at(program, c->parameters.data[0]);
	*n = parameter->n_results;
	return parameter->first_result;
}

static sw_id results_of(const sw_timing *t, const sw_op *region, uint32_t k, uint32_t i)
{
	return t->program->computations.data[region->called[k]].results.data[i];
}

/* ---- refusing --------------------------------------------------------------------------- */

static bool refuse(sw_timing *t, sw_id op, uint32_t operand, const char *why)
{
	t->refuses = op;
	t->through = operand;
	t->why = why;
	return false;
}

/* Return the first operand that is split, or else the first that is a partial sum. */
static uint32_t first_with_time(const sw_timing *t, const sw_op *op)
{
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (is_split(t->value[op->operands[k]]))
			return k;
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (is_partial(t->value[op->operands[k]]))
			return k;
	return 0;
}

/* ---- ops with factors ------------------------------------------------------------------- */

typedef struct attempt {
	sw_timing *t;
	sw_id id;
	const sw_op *op;
	const sw_rule *rule;
	bool nested; /* in a computation that a region runs: no op can wait for sums, or for others */
	bool waits;  /* other operands that are split may be read whole, after their loop */
	sw_layout *needs, *gives;
} attempt;

/* Return whether a value in the state `has` can be read in the state `need`. */
static bool readable(const attempt *a, sw_time has, sw_time need)
{
	if (sw_time_equal(has, need) || is_same(has))
		return true;
	bool whole = is_partial(has) ? !is_partial(need) : a->waits && is_same(need);
	return whole && !a->nested;
}

static bool layouts_of(const attempt *a, const sw_strategy *strategy)
{
	return !sw_strategy_exchanges(a->rule, strategy) &&
	       sw_rule_layouts(a->t->program, a->id, a->rule, &a->t->atoms, strategy, a->needs,
	                       a->gives);
}

/* Return the first operand that cannot be read in the state that the choice needs, n_operands if
 * there is none. */
static uint32_t misfit(const attempt *a)
{
	uint32_t k = 0;
	while (k < a->op->n_operands &&
	       readable(a, a->t->value[a->op->operands[k]], sw_time_of(&a->needs[k])))
		k++;
	return k;
}

static void settle(const attempt *a, sw_choice choice)
{
	a->t->touched[a->id] = true;
	a->t->choice[a->id] = choice;
	for (uint32_t k = 0; k < a->op->n_results; k++)
		a->t->value[a->op->first_result + k] = sw_time_of(&a->gives[k]);
}

/* Explain why the choice that reads operand k in its own state is not possible. */
static const char *why_not(const attempt *a, uint32_t k, const sw_strategy *strategy, bool matched)
{
	sw_arena *arena = &a->t->arena;
	const sw_factor *factor = matched && strategy->atom[0].kind == SW_CHOICE_SPLIT
	                                  ? &a->rule->factors[strategy->atom[0].index]
	                                  : NULL;
	if (factor && factor->exchange != SW_EXCHANGE_NONE)
		return sw_arena_printf(
			arena,
			"dimension %d of operand %u has the microbatches, and each needs "
			"others' elements (%s)",
			a->t->value[a->op->operands[k]].state.dim, k,
			sw_exchange_name(factor->exchange));
	if (!matched)
		return sw_arena_printf(arena,
		                       "dimension %d of operand %u has the microbatches, and can't "
		                       "be split there%s%s",
		                       a->t->value[a->op->operands[k]].state.dim, k,
		                       a->rule->whole ? ": " : "",
		                       a->rule->whole ? a->rule->whole : "");
	return sw_arena_printf(
		arena, "its operands have the microbatches in dimensions that do not go together");
}

/* Make the first choice that reads a split operand in its own state, and under which all others can
 * be read; else write why the first that is split can't be. */
static bool find_split(attempt *a, const char **why, uint32_t *through)
{
	*why = NULL;
	for (uint32_t k = 0; k < a->op->n_operands; k++) {
		sw_strategy strategy;
		uint32_t mask = 1;
		sw_time time = a->t->value[a->op->operands[k]];
		if (!is_split(time))
			continue;
		sw_layout layout = sw_time_layout(a->t, time);
		sw_rule_match(a->rule, &a->t->atoms, false, (int32_t)k, &layout, &mask, &strategy);
		if (mask && layouts_of(a, &strategy) && misfit(a) == a->op->n_operands) {
			settle(a, strategy.atom[0]);
			return true;
		}
		if (!*why) {
			*why = why_not(a, k, &strategy, mask != 0);
			*through = k;
		}
	}
	return false;
}

/* What compares each row of the batch with all rows, as a contrastive loss does, has a loop of its own,
 * in which one operand is whole. */
static bool split(attempt *a)
{
	const char *why, *still;
	uint32_t through = 0;
	if (find_split(a, &why, &through))
		return true;
	a->waits = true;
	return find_split(a, &still, &through) || refuse(a->t, a->id, through, why);
}

/* Return whether the linearity reads the operands' partial sums in their own state. Inside regions
 * values that are the same in all iterations may become terms of a sum, too. */
static bool passes(const attempt *a, const sw_linearity *linearity, sw_monoid monoid)
{
	for (uint32_t k = 0; k < a->op->n_operands; k++) {
		sw_time time = a->t->value[a->op->operands[k]];
		bool term = is_partial(time) && time.monoid == monoid;
		if (is_partial(time) && !term)
			return false;
		if (linearity->operands[k] != term && !(a->nested && is_same(time)))
			return false;
	}
	return true;
}

static bool pass(attempt *a, sw_monoid monoid)
{
	for (int32_t i = 0; i < a->rule->n_linearities; i++) {
		sw_strategy strategy = sw_strategy_none(&a->t->atoms);
		if (!(a->rule->linearities[i].monoids >> monoid & 1) ||
		    !passes(a, &a->rule->linearities[i], monoid))
			continue;
		strategy.atom[0] = (sw_choice){
			.kind = SW_CHOICE_PASS, .monoid = (uint8_t)monoid, .index = (int16_t)i};
		if (!layouts_of(a, &strategy))
			continue;
		settle(a, strategy.atom[0]);
		return true;
	}
	return false;
}

/* Give each result the state of its operand, without a choice. */
static void hand_on(sw_timing *t, sw_id id, const sw_op *op)
{
	t->touched[id] = true;
	for (uint32_t k = 0; k < op->n_results; k++)
		t->value[op->first_result + k] = t->value[op->operands[k]];
}

/* Let a convert to a shorter float inside a region pass a sum: the sum cannot be taken first, so
 * each term is rounded. The error is of the order of those that the program itself makes by
 * computing in that type; gradients are commonly accumulated over microbatches in this way. */
static bool shortens(const attempt *a, sw_time time)
{
	sw_shape from = sw_value_shape(a->t->program, a->op->operands[0]);
	if (!a->nested || a->op->opcode != SW_OP_CONVERT || time.monoid != SW_MONOID_SUM ||
	    sw_type_kind_of(from.type) != SW_KIND_FLOAT ||
	    sw_type_kind_of(sw_value_shape(a->t->program, a->op->first_result).type) !=
	            SW_KIND_FLOAT)
		return false;
	hand_on(a->t, a->id, a->op);
	return true;
}

static bool plain_op(sw_timing *t, sw_id id, bool nested)
{
	const sw_op *op = sw_op_at(t->program, id);
	uint32_t k = first_with_time(t, op);
	sw_time time = t->value[op->operands[k]];
	attempt a = {.t = t, .id = id, .op = op, .rule = t->rules[id], .nested = nested};
	a.needs = sw_alloc(sizeof(sw_layout) * (op->n_operands + op->n_results + 1));
	a.gives = a.needs + op->n_operands;
	bool fits = is_split(time) ? split(&a) : pass(&a, time.monoid) || shortens(&a, time);
	free(a.needs);
	if (fits || is_split(time))
		return fits;
	sw_timing_release(t, id);
	return !nested ||
	       refuse(t, id, k,
	              "it needs a sum over all microbatches, which is known only after the "
	              "loop, and is itself inside a loop or branch");
}

/* ---- regions ---------------------------------------------------------------------------- */

static bool computation(sw_timing *t, int32_t c, bool nested);

/* Join two states; return false if neither can become the other. */
static bool join(sw_time *into, sw_time other)
{
	if (is_same(*into))
		*into = other;
	return is_same(other) || sw_time_equal(*into, other);
}

static sw_time entering(const sw_timing *t, sw_id operand, bool sums)
{
	sw_time time = t->value[operand];
	return sums && is_partial(time) ? (sw_time){{0}, SW_MONOID_NONE} : time;
}

/* Propagate through a loop. sums: operands that are partial sums are read as sums, after their
 * loop. */
static bool loop(sw_timing *t, sw_id id, bool sums)
{
	const sw_op *op = sw_op_at(t->program, id);
	uint32_t n;
	sw_id condition = sw_region_parameters(t->program, op, 0, &n),
	      body = sw_region_parameters(t->program, op, 1, &n);
	for (uint32_t k = 0; k < n; k++)
		t->value[body + k] = entering(t, op->operands[k], sums);
	for (bool changed = true; changed;) {
		changed = false;
		if (!computation(t, op->called[1], true))
			return false;
		for (uint32_t k = 0; k < n; k++) {
			sw_time before = t->value[body + k];
			if (!join(&t->value[body + k], t->value[results_of(t, op, 1, k)]))
				return refuse(
					t, id, k,
					sw_arena_printf(
						&t->arena,
						"the state of its carried value %u over the "
						"microbatches changes from iteration to iteration",
						k));
			changed |= !sw_time_equal(before, t->value[body + k]);
		}
	}
	for (uint32_t k = 0; k < n; k++)
		t->value[op->first_result + k] = t->value[condition + k] = t->value[body + k];
	if (!computation(t, op->called[0], true))
		return false;
	return is_same(t->value[results_of(t, op, 0, 0)]) ||
	       refuse(t, id, first_with_time(t, op),
	              "its trip count differs from microbatch to microbatch");
}

static bool branches(sw_timing *t, sw_id id, bool sums)
{
	const sw_op *op = sw_op_at(t->program, id);
	uint32_t at = 1, n;
	if (!is_same(entering(t, op->operands[0], sums)))
		return refuse(t, id, 0,
		              "the branch that it takes differs from microbatch to microbatch");
	for (uint32_t k = 0; k < op->n_results; k++)
		t->value[op->first_result + k] = (sw_time){{0}, SW_MONOID_NONE};
	for (uint32_t b = 0; b < op->n_called; b++) {
		sw_id parameters = sw_region_parameters(t->program, op, b, &n);
		for (uint32_t k = 0; k < n; k++)
			t->value[parameters + k] = entering(t, op->operands[at++], sums);
		if (!computation(t, op->called[b], true))
			return false;
		for (uint32_t k = 0; k < op->n_results; k++)
			if (!join(&t->value[op->first_result + k],
			          t->value[results_of(t, op, b, k)]))
				return refuse(
					t, id, first_with_time(t, op),
					"its branches return results in different states over the "
					"microbatches");
	}
	return true;
}

static bool has_partial(const sw_timing *t, const sw_op *op)
{
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (is_partial(t->value[op->operands[k]]))
			return true;
	return false;
}

static bool has_split(const sw_timing *t, const sw_op *op)
{
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (is_split(t->value[op->operands[k]]))
			return true;
	return false;
}

/* What reads nothing of the iterations but sums is no part of them. */
static bool region(sw_timing *t, sw_id id, bool nested)
{
	const sw_op *op = sw_op_at(t->program, id);
	bool (*try)(sw_timing *, sw_id, bool) = op->opcode == SW_OP_WHILE ? loop : branches;
	t->touched[id] = true;
	if (try(t, id, false))
		return true;
	if (nested || !has_partial(t, op) || !try(t, id, true))
		return false;
	if (!has_split(t, op))
		sw_timing_release(t, id);
	return true;
}

/* ---- computations ----------------------------------------------------------------------- */

void sw_timing_release(sw_timing *t, sw_id id)
{
	const sw_op *op = sw_op_at(t->program, id);
	bool touched = t->touched[id];
	t->touched[id] = false;
	t->choice[id] = (sw_choice){0};
	for (uint32_t k = 0; k < op->n_results; k++)
		t->value[op->first_result + k] = (sw_time){{0}, SW_MONOID_NONE};
	for (uint32_t c = 0; c < op->n_called && touched && sw_is_region(op); c++) {
		const sw_computation *of = &t->program->computations.data[op->called[c]];
		for (size_t i = 0; i < of->ops.len; i++)
			sw_timing_release(t, of->ops.data[i]);
	}
}

static bool any_time(const sw_timing *t, const sw_op *op)
{
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (!is_same(t->value[op->operands[k]]))
			return true;
	return false;
}

/* Propagate through an op. The carried values and results of a region may have time that its
 * operands lack; but if no operand has time, no result has. */
static bool one_op(sw_timing *t, sw_id id, bool nested)
{
	const sw_op *op = sw_op_at(t->program, id);
	if (op->opcode == SW_OP_PARAMETER)
		return true;
	sw_timing_release(t, id);
	if (!any_time(t, op))
		return true;
	if (sw_is_region(op))
		return region(t, id, nested);
	if (op->opcode == SW_OP_OPT_BARRIER) {
		hand_on(t, id, op);
		return true;
	}
	return plain_op(t, id, nested);
}

static bool computation(sw_timing *t, int32_t c, bool nested)
{
	const sw_computation *ops = &t->program->computations.data[c];
	for (size_t i = 0; i < ops->ops.len; i++)
		if (!one_op(t, ops->ops.data[i], nested))
			return false;
	return true;
}

static bool reads_late(const sw_timing *t, const sw_op *op)
{
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (t->late[op->operands[k]])
			return true;
	return false;
}

/* Propagate through the entry. What refuses runs late, and what is made of it. Return false if iterations
 * read that, and most of the work is late; or if nothing is left for iterations. */
static bool but_late(sw_timing *t)
{
	const sw_computation *ops = sw_entry(t->program);
	bool waits = false, any = false, read = false; /* an iteration reads what is late */
	double loop_flops = 0, late_flops = 0;
	for (size_t i = 0; i < ops->ops.len; i++) {
		sw_id id = ops->ops.data[i];
		const sw_op *op = sw_op_at(t->program, id);
		bool late = reads_late(t, op), fits = one_op(t, id, false);
		if (!fits)
			sw_timing_release(t, id);
		any = any || t->touched[id];
		waits = waits || !fits;
		read = read || (late && t->touched[id]);
		for (uint32_t k = 0; k < op->n_results; k++)
			t->late[op->first_result + k] = late || !fits;
		if (t->touched[id])
			loop_flops += sw_op_flops(t->program, id);
		else if (late || !fits)
			late_flops += sw_op_flops(t->program, id);
	}
	return (any || !waits) && (!read || late_flops <= loop_flops);
}

/* ---- the whole program ------------------------------------------------------------------ */

void sw_timing_init(sw_timing *t, const sw_program *program)
{
	size_t ops = program->ops.len, computations = program->computations.len;
	*t = (sw_timing){.program = program, .refuses = SW_NO_ID};
	sw_arena_init(&t->arena);
	t->planned = SW_NEW_N(&t->arena, bool, computations);
	t->caller = SW_NEW_N(&t->arena, sw_id, computations);
	t->rules = SW_NEW_N(&t->arena, const sw_rule *, ops);
	t->touched = SW_NEW_N(&t->arena, bool, ops);
	t->sunk = SW_NEW_N(&t->arena, bool, ops);
	t->part = SW_NEW_N(&t->arena, sw_time, program->values.len);
	t->choice = SW_NEW_N(&t->arena, sw_choice, ops);
	t->value = SW_NEW_N(&t->arena, sw_time, program->values.len);
	t->late = SW_NEW_N(&t->arena, bool, program->values.len);
	memset(t->caller, 0xff, sizeof(sw_id) * computations);
	sw_mark_planned(program, program->entry, t->planned);
	for (sw_id id = 0; id < ops; id++) {
		const sw_op *op = sw_op_at(program, id);
		if (!t->planned[op->computation])
			continue;
		t->rules[id] = sw_rule_make(program, id, &t->arena);
		for (uint32_t k = 0; sw_is_region(op) && k < op->n_called; k++)
			t->caller[op->called[k]] = id;
	}
}

void sw_timing_clear(sw_timing *t)
{
	sw_arena_clear(&t->arena);
}

static void begin(sw_timing *t, const sw_id *inputs, uint32_t n, const int32_t *dim)
{
	t->refuses = SW_NO_ID;
	memset(t->value, 0, sizeof(*t->value) * t->program->values.len);
	memset(t->late, 0, sizeof(*t->late) * t->program->values.len);
	memset(t->touched, 0, sizeof(*t->touched) * t->program->ops.len);
	memset(t->sunk, 0, sizeof(*t->sunk) * t->program->ops.len);
	for (uint32_t i = 0; i < n; i++)
		if (dim[i] >= 0)
			t->value[inputs[i]].state = (sw_state){
				.kind = SW_STATE_S, .dim = (int8_t)dim[i], .stride = 1};
}

bool sw_timing_find(sw_timing *t, const int32_t *dim, int32_t iterations)
{
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(t->program, t->program->entry, &t->arena, &inputs);
	t->atoms = (sw_atoms){.n = 1, .size = {iterations}};
	begin(t, inputs, n, dim);
	if (but_late(t)) {
		t->refuses = SW_NO_ID;
		return true;
	}
	begin(t, inputs, n, dim);
	return computation(t, t->program->entry, false); /* so that the first that refuses is known */
}
