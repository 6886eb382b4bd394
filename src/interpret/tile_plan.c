/*
 * The plan of a fusion that runs tile by tile: its steps, the variables of the loop, the boxes, the
 * stages, and where what is computed lies. tile.h says how these belong together.
 */
#include "interpret/tile_planner.h"

#include <string.h>

/* ---- boxes ------------------------------------------------------------------------------ */

static int32_t variable_of(const sw_tile_plan *plan, int32_t atom)
{
	for (int32_t v = 0; v < plan->n_variables; v++)
		if (plan->variables[v].atom == atom)
			return v;
	return -1;
}

/* The box of a value in a tile: ranges of the variables' atoms, the others whole. */
static void standard_box(const sw_tile_plan *plan, const sw_tile_value *v, sw_tile_range *box)
{
	for (int32_t i = 0; i < v->rank; i++) {
		int32_t variable = variable_of(plan, v->atoms[i]);
		box[i] = variable >= 0 ? (sw_tile_range){variable, 1, 0, 1}
		                       : (sw_tile_range){-1, 0, 0, v->dims[i]};
	}
}

static sw_tile_range whole(int64_t n)
{
	return (sw_tile_range){-1, 0, 0, n};
}

static sw_tile_range through(sw_tile_range r, const sw_tile_axis *axis)
{
	int64_t first = axis->slope * r.low + axis->offset,
		last = axis->slope * (r.high - 1) + axis->offset;
	r.low = SW_MIN(first, last);
	r.high = SW_MAX(first, last) + 1;
	r.slope *= axis->slope;
	return r;
}

/* Widen the box of a value such that it holds another range along dimension i. */
static void widen(sw_tile_value *v, int32_t i, sw_tile_range r)
{
	sw_tile_range *box = &v->box[i];
	if (!v->read)
		*box = r;
	else if (box->variable == r.variable && box->slope == r.slope) {
		box->low = SW_MIN(box->low, r.low);
		box->high = SW_MAX(box->high, r.high);
	} else
		*box = whole(v->dims[i]);
	if (box->variable < 0) {
		box->low = SW_MAX(box->low, 0);
		box->high = SW_MIN(box->high, v->dims[i]);
	}
}

static void need_box(sw_tile_value *v, const sw_tile_range *box)
{
	for (int32_t i = 0; i < v->rank; i++)
		widen(v, i, box[i]);
	v->read = true;
	v->stage = v->stage == SW_STAGE_GIVEN ? SW_STAGE_GIVEN : SW_STAGE_TILE;
}

static void need_whole(sw_tile_value *v)
{
	for (int32_t i = 0; i < v->rank; i++)
		v->box[i] = whole(v->dims[i]);
	v->read = true;
	v->stage = v->stage == SW_STAGE_GIVEN ? SW_STAGE_GIVEN : SW_STAGE_TILE;
}

/* What a step reads of operand k for the box of its result. */
static void need_operand(sw_tile_plan *plan, const sw_tile_step *step, uint32_t k)
{
	sw_tile_value *v = &plan->values[step->in[k]];
	const sw_tile_value *out = &plan->values[step->out];
	sw_tile_range box[SW_MAX_RANK];
	if (!step->axes[k]) {
		need_whole(v);
		return;
	}
	for (int32_t i = 0; i < v->rank; i++) {
		const sw_tile_axis *axis = &step->axes[k][i];
		box[i] = axis->to >= 0 ? through(out->box[axis->to], axis)
		         : axis->to == SW_AXIS_FIXED
		                 ? (sw_tile_range){-1, 0, axis->offset, axis->offset + 1}
		                 : whole(v->dims[i]);
	}
	need_box(v, box);
}

static bool reduces_variables(const sw_tile_plan *plan, const sw_tile_step *step)
{
	const sw_tile_value *from = &plan->values[step->in[0]];
	for (int32_t i = 0; step->kind == SW_TILE_REDUCE && i < from->rank; i++)
		if (step->axes[0][i].to == SW_AXIS_FULL && variable_of(plan, from->atoms[i]) >= 0)
			return true;
	return false;
}

/* Views of what is given are evaluated once and as a whole: they cost nothing. So are counters. */
static bool is_given_view(const sw_tile_plan *plan, const sw_tile_step *step)
{
	for (uint32_t k = 0; k < step->n_in; k++)
		if (plan->values[step->in[k]].stage != SW_STAGE_GIVEN)
			return false;
	return step->kind == SW_TILE_VIEW || step->kind == SW_TILE_GIVEN;
}

static void find_given(sw_tile_plan *plan)
{
	for (uint32_t s = 0; s < plan->n_steps; s++) {
		sw_tile_value *v = &plan->values[plan->steps[s].out];
		v->stage = SW_STAGE_UNUSED;
		v->read = false;
		if (!is_given_view(plan, &plan->steps[s]))
			continue;
		v->stage = SW_STAGE_GIVEN;
		if (plan->steps[s].n_in)
			v->parameter = plan->values[plan->steps[s].in[0]].parameter;
	}
}

/* Mark the reductions over variables, and what reads them. */
static void find_after(sw_tile_planner *p)
{
	sw_tile_plan *plan = p->plan;
	plan->n_accumulators = 0;
	for (uint32_t s = 0; s < plan->n_steps; s++) {
		sw_tile_step *step = &plan->steps[s];
		step->accumulator = -1;
		p->required[s] = false;
		if (!step->live)
			continue;
		for (uint32_t k = 0; k < step->n_in; k++)
			p->required[s] |= p->required[step->in[k]];
		if (!p->required[s] && reduces_variables(plan, step)) {
			step->accumulator = plan->n_accumulators;
			plan->accumulators[plan->n_accumulators++].step = (int32_t)s;
			p->required[s] = true;
		}
	}
}

/* From the results back. What is computed after the loop is computed as a whole. */
static void find_boxes(sw_tile_planner *p)
{
	sw_tile_plan *plan = p->plan;
	find_given(plan);
	find_after(p);
	for (uint32_t i = 0; i < plan->n_results; i++) {
		sw_tile_result *r = &plan->results[i];
		sw_tile_value *v = &plan->values[r->value];
		standard_box(plan, v, r->box);
		need_box(v, r->box);
	}
	for (uint32_t s = plan->n_steps; s-- > 0;) {
		sw_tile_step *step = &plan->steps[s];
		sw_tile_value *v = &plan->values[step->out];
		sw_tile_range box[SW_MAX_RANK];
		if (!v->read)
			continue;
		if (p->required[s])
			need_whole(v);
		for (uint32_t k = 0; k < step->n_in; k++) {
			sw_tile_value *from = &plan->values[step->in[k]];
			if (step->accumulator >= 0 && k == 0) {
				standard_box(plan, from, box);
				need_box(from, box);
			} else {
				need_operand(plan, step, k);
			}
		}
	}
}

/* ---- stages ----------------------------------------------------------------------------- */

int64_t sw_tile_most(const sw_tile_plan *plan, const sw_tile_range *r, int64_t n)
{
	int64_t span = r->high - r->low;
	if (r->variable >= 0)
		span += SW_MAX(r->slope, -r->slope) * (plan->variables[r->variable].size - 1);
	return SW_MAX(SW_MIN(span, n), 0);
}

static bool is_constant_box(const sw_tile_value *v)
{
	for (int32_t i = 0; i < v->rank; i++)
		if (v->box[i].variable >= 0)
			return false;
	return true;
}

static int64_t box_bytes(const sw_tile_plan *plan, const sw_tile_value *v)
{
	int64_t n = sw_type_bytes(v->type);
	for (int32_t i = 0; i < v->rank; i++)
		if (!sw_mul_i64(n, SW_MAX(sw_tile_most(plan, &v->box[i], v->dims[i]), 1), &n))
			return INT64_MAX;
	return (n + SW_ALIGNMENT - 1) / SW_ALIGNMENT * SW_ALIGNMENT;
}

/* A step before the loop has nothing of a tile, and its result is small. */
static bool can_be_before(const sw_tile_plan *plan, const sw_tile_step *step)
{
	const sw_tile_value *v = &plan->values[step->out];
	for (uint32_t k = 0; k < step->n_in; k++) {
		sw_tile_stage stage = plan->values[step->in[k]].stage;
		if (stage != SW_STAGE_GIVEN && stage != SW_STAGE_BEFORE)
			return false;
	}
	return plan->n_variables && is_constant_box(v) &&
	       box_bytes(plan, v) <= SW_TILE_SHARED_BYTES;
}

/* Forbid the atoms that a reduction makes unfit for variables. */
static void forbid(sw_tile_planner *p, const sw_tile_step *step)
{
	const sw_tile_value *from = &p->plan->values[step->in[0]];
	for (int32_t i = 0; i < from->rank; i++)
		if (step->axes[0][i].to == SW_AXIS_FULL)
			p->forbidden[from->atoms[i]] = true;
}

/* Return whether a reduction over variables had better be one within tiles: it has few terms, and
 * accumulators that would not stay in the cache. */
static bool is_wide(const sw_tile_plan *plan, const sw_tile_step *step)
{
	int64_t results = sw_tile_elements(&plan->values[step->out]),
		terms = sw_tile_elements(&plan->values[step->in[0]]) / results;
	return results > 65536 && terms <= 512;
}

/* A step after the loop reads nothing that the loop computes tile by tile. Return the reduction
 * that makes this one wait if it does; NULL if it does not. */
static const sw_tile_step *find_conflict(const sw_tile_planner *p)
{
	const sw_tile_plan *plan = p->plan;
	for (uint32_t s = 0; s < plan->n_steps; s++) {
		const sw_tile_step *step = &plan->steps[s];
		const sw_tile_value *v = &plan->values[step->out];
		if (step->accumulator >= 0 && v->read && is_wide(plan, step))
			return step;
		if (!p->required[s] || !v->read || step->accumulator >= 0)
			continue;
		bool reads_tile = box_bytes(plan, v) > SW_TILE_SHARED_BYTES;
		for (uint32_t k = 0; k < step->n_in; k++)
			reads_tile |= plan->values[step->in[k]].stage == SW_STAGE_TILE;
		uint32_t source = s;
		while (reads_tile && plan->steps[source].accumulator < 0) {
			uint32_t k = 0;
			while (!p->required[plan->steps[source].in[k]])
				k++;
			source = (uint32_t)plan->steps[source].in[k];
		}
		if (reads_tile)
			return &plan->steps[source];
	}
	return NULL;
}

static void find_stages(sw_tile_planner *p)
{
	sw_tile_plan *plan = p->plan;
	for (uint32_t s = 0; s < plan->n_steps; s++) {
		sw_tile_value *v = &plan->values[plan->steps[s].out];
		if (v->stage != SW_STAGE_TILE)
			continue;
		if (p->required[s])
			v->stage = SW_STAGE_AFTER;
		else if (can_be_before(plan, &plan->steps[s]))
			v->stage = SW_STAGE_BEFORE;
	}
}

/* Choose variables such that the stages are in order. */
static bool arrange(sw_tile_planner *p, int64_t tile_elements)
{
	for (;;) {
		if (!sw_tile_choose_variables(p, tile_elements))
			return false;
		find_boxes(p);
		find_stages(p);
		const sw_tile_step *waits_for = find_conflict(p);
		if (!waits_for)
			return true;
		forbid(p, waits_for);
	}
}

/* ---- the whole plan --------------------------------------------------------------------- */

static sw_tile_plan *new_plan(sw_tile_planner *p, const sw_program *program, const sw_op *op)
{
	const sw_computation *c = &program->computations.data[op->called[0]];
	sw_tile_plan *plan = p->plan = SW_NEW(p->arena, sw_tile_plan);
	size_t n = c->ops.len + 1;
	*plan = (sw_tile_plan){.program = program,
	                       .op = op,
	                       .n_results = (uint32_t)c->results.len,
	                       .n_parameters = op->n_operands,
	                       .refused = "it is too large for a tile"};
	plan->steps = SW_NEW_N(p->arena, sw_tile_step, n);
	plan->values = SW_NEW_N(p->arena, sw_tile_value, n);
	plan->accumulators = SW_NEW_N(p->arena, sw_tile_accumulator, n);
	plan->results = SW_NEW_N(p->arena, sw_tile_result, plan->n_results + 1);
	plan->parameters = SW_NEW_N(p->arena, int32_t, plan->n_parameters + 1);
	p->required = SW_NEW_N(p->arena, bool, n);
	for (uint32_t k = 0; k < plan->n_parameters; k++)
		plan->parameters[k] = -1;
	for (uint32_t i = 0; i < plan->n_results; i++)
		plan->results[i].box = SW_NEW_N(p->arena, sw_tile_range, SW_MAX_RANK);
	return plan;
}

static size_t count_atoms(const sw_tile_plan *plan)
{
	int32_t highest = 0;
	for (uint32_t v = 0; v < plan->n_values; v++)
		for (int32_t i = 0; i < plan->values[v].rank; i++)
			highest = SW_MAX(highest, plan->values[v].atoms[i]);
	return (size_t)highest + 1;
}

/* Two dimensions of a value may have become one atom (x + transpose(x)): no range of it is a box.
 */
static void forbid_repeated(sw_tile_planner *p)
{
	for (uint32_t s = 0; s < p->plan->n_values; s++) {
		const sw_tile_value *v = &p->plan->values[s];
		for (int32_t i = 0; i < v->rank; i++)
			for (int32_t j = 0; j < i; j++)
				if (v->atoms[i] == v->atoms[j])
					p->forbidden[v->atoms[i]] = true;
	}
}

sw_tile_plan *sw_tile_plan_new(const sw_program *program, const sw_op *op, sw_arena *arena,
                               const char **why)
{
	sw_tile_planner p = {.arena = arena};
	sw_tile_plan *plan = new_plan(&p, program, op);
	const sw_computation *c = &program->computations.data[op->called[0]];
	bool fits = sw_tile_add_steps(&p, c) && sw_tile_find_dims(plan, arena);
	if (fits) {
		p.forbidden = SW_NEW_N(arena, bool, count_atoms(plan));
		forbid_repeated(&p);
	}
	for (int64_t n = SW_TILE_ELEMENTS; fits; n /= 2) {
		fits = n && arrange(&p, n);
		if (fits && sw_tile_lay_out(plan, arena))
			break;
	}
	*why = plan->refused;
	return fits ? plan : NULL;
}
