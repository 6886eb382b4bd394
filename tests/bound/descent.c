/*
 * A MOVE gives an op another strategy, drawn or taken over from another plan; or takes over the
 * strategies of a range of ops, the layouts of a region's boundary, or those at rest. What a move
 * changes is mended: ops' results get the layouts that follow from the strategies, and values that
 * cannot be served as they were are materialised as they are produced. A move that is still
 * impossible, or that is no gain, is undone.
 */
#include "bound/descent.h"
#include "bound/draw.h"

#include "plan/carry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct walk {
	const descent *d;
	sw_plan *plan; /* a sketch */
	drawer drawer;
	const bool *planned;     /* per computation */
	sw_strategy *strategies; /* of before the move, as are the next ones */
	uint32_t *produced, *materialised, *outputs;
} walk;

/* ---- undoing ---------------------------------------------------------------------------- */

static void copy_decisions(const sw_plan *plan, sw_strategy *strategies, uint32_t *produced,
                           uint32_t *materialised, uint32_t *outputs)
{
	size_t ops = plan->program->ops.len, values = plan->program->values.len;
	memcpy(strategies, plan->strategies, sizeof(*strategies) * ops);
	memcpy(produced, plan->produced, sizeof(*produced) * values);
	memcpy(materialised, plan->materialised, sizeof(*materialised) * values);
	memcpy(outputs, plan->outputs, sizeof(*outputs) * plan->n_outputs);
}

static void save(walk *w)
{
	copy_decisions(w->plan, w->strategies, w->produced, w->materialised, w->outputs);
}

static void undo(walk *w)
{
	const sw_program *program = w->plan->program;
	memcpy(w->plan->strategies, w->strategies, sizeof(sw_strategy) * program->ops.len);
	memcpy(w->plan->produced, w->produced, sizeof(uint32_t) * program->values.len);
	memcpy(w->plan->materialised, w->materialised, sizeof(uint32_t) * program->values.len);
	memcpy(w->plan->outputs, w->outputs, sizeof(uint32_t) * w->plan->n_outputs);
}

static bool is_op(const walk *w, sw_id id)
{
	const sw_op *op = sw_op_at(w->plan->program, id);
	return w->planned[op->computation] && !sw_is_region(op) && op->opcode != SW_OP_PARAMETER;
}

/* ---- mending ---------------------------------------------------------------------------- */

/* Materialise a value as it is produced, unless it stays as it is. */
static void mend_value(walk *w, sw_id value)
{
	sw_plan *plan = w->plan;
	if (!sw_plan_can_become(plan, value, sw_plan_layout(plan, plan->produced[value]),
	                        sw_plan_layout(plan, plan->materialised[value])))
		plan->materialised[value] = plan->produced[value];
}

/* Let readers of other partial sums find the value as it is produced. */
static void mend_operands(walk *w, sw_id id)
{
	sw_plan *plan = w->plan;
	const sw_op *op = sw_op_at(plan->program, id);
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id value = op->operands[k];
		if (!sw_plan_can_become(plan, value,
		                        sw_plan_layout(plan, plan->materialised[value]),
		                        &w->drawer.layouts[k]))
			plan->materialised[value] = plan->produced[value];
	}
}

static void mend_op(walk *w, sw_id id)
{
	sw_plan *plan = w->plan;
	const sw_op *op = sw_op_at(plan->program, id);
	if (!draw_possible(&w->drawer, id, &plan->strategies[id]))
		return;
	for (uint32_t k = 0; k < op->n_results; k++) {
		sw_id value = op->first_result + k;
		uint32_t before = plan->produced[value];
		plan->produced[value] =
			sw_layouts_id(&plan->layouts, &w->drawer.layouts[op->n_operands + k]);
		if (plan->materialised[value] == before || draw_chance(&w->drawer, 50))
			plan->materialised[value] = plan->produced[value];
		mend_value(w, value);
	}
	mend_operands(w, id);
}

static void mend_aliases(walk *w)
{
	sw_plan *plan = w->plan;
	sw_arena arena;
	const sw_id *inputs;
	sw_arena_init(&arena);
	sw_program_inputs(plan->program, plan->program->entry, &arena, &inputs);
	for (size_t i = 0; i < plan->program->aliases.len; i++) {
		sw_alias alias = plan->program->aliases.data[i];
		plan->outputs[alias.output] = plan->produced[inputs[alias.input]];
	}
	sw_arena_clear(&arena);
}

/* ---- moves ------------------------------------------------------------------------------ */

static sw_plan *another(walk *w)
{
	const descent *d = w->d;
	return d->n_others ? d->others[sw_rng_below(&w->drawer.rng, d->n_others)] : NULL;
}

static uint32_t layout_of(walk *w, const sw_plan *other, uint32_t number)
{
	return sw_layouts_id(&w->plan->layouts, sw_plan_layout(other, number));
}

static void change_op(walk *w)
{
	sw_id id = (sw_id)sw_rng_below(&w->drawer.rng, (int64_t)w->plan->program->ops.len);
	if (!is_op(w, id))
		return;
	sw_plan *other = another(w);
	if (other && draw_chance(&w->drawer, 30))
		w->plan->strategies[id] = other->strategies[id];
	else if (draw_chance(&w->drawer, 60))
		w->plan->strategies[id] = draw_grid(&w->drawer, id);
	else
		w->plan->strategies[id] = draw_atoms(&w->drawer, id, w->plan->strategies[id]);
	mend_op(w, id);
}

static void take_values(walk *w, const sw_plan *other, sw_id first, uint32_t n)
{
	for (sw_id value = first; value < first + n; value++) {
		w->plan->produced[value] = layout_of(w, other, other->produced[value]);
		w->plan->materialised[value] = layout_of(w, other, other->materialised[value]);
	}
}

/* Take over a range of ops. The boundaries of regions stay, and mending does the rest. */
static void take_range(walk *w)
{
	sw_plan *other = another(w);
	int64_t n = (int64_t)w->plan->program->ops.len;
	sw_id from = (sw_id)sw_rng_below(&w->drawer.rng, n);
	sw_id to = from + 1 + (sw_id)sw_rng_below(&w->drawer.rng, SW_MAX(1, (n - from) / 2 + 1));
	for (sw_id id = from; other && id < to && id < n; id++) {
		const sw_op *op = sw_op_at(w->plan->program, id);
		if (!is_op(w, id))
			continue;
		w->plan->strategies[id] = other->strategies[id];
		take_values(w, other, op->first_result, op->n_results);
	}
	for (sw_id id = from; other && id < to && id < n; id++)
		if (is_op(w, id) && draw_possible(&w->drawer, id, &w->plan->strategies[id]))
			mend_operands(w, id);
}

/* Take over one input; the layouts of all values at the boundaries of regions if it is none. */
static void take_input(walk *w)
{
	sw_plan *other = another(w);
	const sw_program *program = w->plan->program;
	bool regions = draw_chance(&w->drawer, 25);
	sw_id first = (sw_id)sw_rng_below(&w->drawer.rng, (int64_t)program->ops.len);
	for (sw_id i = 0; other && i < program->ops.len; i++) {
		sw_id id = (first + i) % (sw_id)program->ops.len;
		const sw_op *op = sw_op_at(program, id);
		bool input = op->opcode == SW_OP_PARAMETER && op->computation == program->entry;
		if (is_op(w, id) || !w->planned[op->computation] || regions == input)
			continue;
		take_values(w, other, op->first_result, op->n_results);
		if (input)
			break;
	}
}

static void take_outputs(walk *w)
{
	sw_plan *plan = w->plan, *other = another(w);
	sw_arena arena;
	sw_arena_init(&arena);
	for (uint32_t i = 0; i < plan->n_outputs; i++) {
		sw_id value = sw_entry(plan->program)->results.data[i];
		const sw_layout *made = sw_plan_layout(plan, plan->produced[value]);
		if (draw_chance(&w->drawer, 50) && made->monoid == SW_MONOID_NONE)
			plan->outputs[i] = plan->produced[value];
		else if (other && draw_chance(&w->drawer, 50))
			plan->outputs[i] = layout_of(w, other, other->outputs[i]);
	}
	sw_arena_clear(&arena);
}

static void materialise(walk *w)
{
	sw_plan *plan = w->plan;
	sw_id value = (sw_id)sw_rng_below(&w->drawer.rng, (int64_t)plan->program->values.len);
	sw_plan *other = another(w);
	plan->materialised[value] = other && draw_chance(&w->drawer, 60)
	                                    ? layout_of(w, other, other->materialised[value])
	                                    : plan->produced[value];
	mend_value(w, value);
}

static void move(walk *w)
{
	int64_t kind = sw_rng_below(&w->drawer.rng, 100);
	if (kind < 65)
		change_op(w);
	else if (kind < 80)
		take_range(w);
	else if (kind < 88)
		take_input(w);
	else if (kind < 94)
		take_outputs(w);
	else
		materialise(w);
	mend_aliases(w);
}

/* ---- the descent ------------------------------------------------------------------------ */

static bool changed(const walk *w)
{
	const sw_program *program = w->plan->program;
	return memcmp(w->strategies, w->plan->strategies, sizeof(sw_strategy) * program->ops.len) ||
	       memcmp(w->produced, w->plan->produced, sizeof(uint32_t) * program->values.len) ||
	       memcmp(w->materialised, w->plan->materialised,
	              sizeof(uint32_t) * program->values.len) ||
	       memcmp(w->outputs, w->plan->outputs, sizeof(uint32_t) * w->plan->n_outputs);
}

static double seconds_of(const walk *w)
{
	const descent *d = w->d;
	outcome o = attack(d->attacker, w->plan, d->own, d->asked, d->goal == GOAL_STEP);
	if (!o.ok)
		return INFINITY;
	return d->goal == GOAL_STEP  ? o.step_s
	       : d->goal == GOAL_SUM ? o.sum_s
	                             : o.kernels_s;
}

static double walk_down(walk *w)
{
	double least_s = seconds_of(w);
	sw_error err;
	for (int32_t i = 0; i < w->d->moves && isfinite(least_s); i++) {
		save(w);
		for (int64_t n = 1 + sw_rng_below(&w->drawer.rng, 2); n > 0; n--)
			move(w);
		if (!changed(w))
			continue;
		double seconds = sw_plan_verify(w->plan, &err) == SW_OK ? seconds_of(w) : INFINITY;
		if (seconds <= least_s)
			least_s = seconds;
		else
			undo(w);
	}
	return least_s;
}

double descend(const descent *d, const sw_plan *start, uint64_t seed)
{
	const sw_program *program = start->program;
	sw_arena arena;
	sw_arena_init(&arena);
	bool *planned = SW_NEW_N(&arena, bool, program->computations.len + 1);
	sw_mark_planned(program, program->entry, planned);
	walk w = {.d = d,
	          .plan = sw_plan_sketch(start),
	          .planned = planned,
	          .strategies = SW_NEW_N(&arena, sw_strategy, program->ops.len + 1),
	          .produced = SW_NEW_N(&arena, uint32_t, program->values.len + 1),
	          .materialised = SW_NEW_N(&arena, uint32_t, program->values.len + 1),
	          .outputs = SW_NEW_N(&arena, uint32_t, start->n_outputs + 1)};
	w.plan->paths = start->paths;
	w.drawer = drawer_new(w.plan, seed, &arena);
	double least_s = walk_down(&w);
	sw_plan_sketch_free(w.plan);
	sw_arena_clear(&arena);
	return least_s;
}
