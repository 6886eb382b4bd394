/*
 * The plan of a fusion that runs tile by tile: its steps, the variables of the loop, the boxes, the
 * stages, and where what is computed lies. tile.h says how these belong together.
 */
#include "interpret/tile.h"

#include <string.h>

typedef struct tile_planner {
	sw_tile_plan *plan;
	sw_arena *arena;
	sw_id first_value; /* of the computation */
	int32_t *numbers;  /* per value of the program from first_value on: its number here */
	bool *forbidden;   /* per atom: it can't be a variable */
	bool *required;    /* per step: it waits for a reduction over variables */
} tile_planner;

/* ---- steps ------------------------------------------------------------------------------ */

static sw_tile_kind kind_of(const sw_program *program, const sw_op *op)
{
	switch ((sw_opcode)op->opcode) {
	case SW_OP_PARAMETER:
	case SW_OP_CONSTANT:
		return SW_TILE_GIVEN;
	case SW_OP_RESHAPE:
	case SW_OP_BITCAST:
	case SW_OP_COPY:
	case SW_OP_BROADCAST:
	case SW_OP_TRANSPOSE:
	case SW_OP_SLICE:
	case SW_OP_REVERSE:
	case SW_OP_DYNAMIC_SLICE:
	case SW_OP_BITCAST_CONVERT:
		return SW_TILE_VIEW;
	case SW_OP_CONVERT:
		return SW_TILE_CONVERT;
	case SW_OP_SELECT:
		return SW_TILE_SELECT;
	case SW_OP_CLAMP:
		return SW_TILE_CLAMP;
	case SW_OP_COMPARE:
		return SW_TILE_BINARY;
	case SW_OP_IOTA:
		return SW_TILE_IOTA;
	case SW_OP_PAD:
	case SW_OP_CONCATENATE:
		return SW_TILE_JOIN;
	case SW_OP_REDUCE:
		return SW_TILE_REDUCE;
	case SW_OP_STOCHASTIC_CONVERT:
	case SW_OP_REDUCE_PRECISION:
	case SW_OP_COMPLEX:
		return SW_TILE_NONE;
	default:
		(void)program;
		return sw_opcode_class(op->opcode) == SW_CLASS_UNARY    ? SW_TILE_UNARY
		       : sw_opcode_class(op->opcode) == SW_CLASS_BINARY ? SW_TILE_BINARY
		                                                        : SW_TILE_NONE;
	}
}

/* Types that have loops of their own. */
static bool has_loops(sw_type type)
{
	return sw_wide_type(type) == type && sw_type_kind_of(type) != SW_KIND_COMPLEX &&
	       sw_type_bytes(type) > 0;
}

static bool has_interior(const sw_op *op)
{
	for (int i = 0; op->opcode == SW_OP_PAD && i < op->attrs->pad.interior.n; i++)
		if (op->attrs->pad.interior.v[i])
			return true;
	return false;
}

static bool may_be_step(const tile_planner *p, const sw_op *op, sw_tile_kind kind)
{
	const sw_program *program = p->plan->program;
	if (kind == SW_TILE_NONE || op->n_results != 1 || has_interior(op))
		return false;
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (!has_loops(sw_value_shape(program, op->operands[k]).type))
			return false;
	sw_shape to = sw_value_shape(program, op->first_result);
	if (!has_loops(to.type) || sw_shape_elements(to) == 0 || to.bounded)
		return false;
	if (op->opcode == SW_OP_BITCAST || op->opcode == SW_OP_BITCAST_CONVERT) {
		sw_shape from = sw_value_shape(program, op->operands[0]);
		return sw_type_bytes(from.type) == sw_type_bytes(to.type) &&
		       (op->opcode == SW_OP_BITCAST || from.rank == to.rank);
	}
	return true;
}

static bool choose_loops(const tile_planner *p, sw_tile_step *step)
{
	if (step->kind == SW_TILE_GIVEN)
		return step->op->opcode == SW_OP_PARAMETER || step->op->attrs->constant.data;
	if (step->kind == SW_TILE_VIEW)
		return true;
	if (!sw_choose_kernel(p->plan->program, step->op, &step->plan))
		return false;
	return step->kind != SW_TILE_REDUCE || step->plan.impl.reduce;
}

static bool add_step(tile_planner *p, const sw_op *op)
{
	sw_tile_plan *plan = p->plan;
	int32_t number = (int32_t)plan->n_steps;
	sw_tile_step *step = &plan->steps[plan->n_steps++];
	*step = (sw_tile_step){.op = op,
	                       .kind = kind_of(plan->program, op),
	                       .n_in = op->n_operands,
	                       .out = number,
	                       .accumulator = -1};
	if (!may_be_step(p, op, step->kind) || !choose_loops(p, step)) {
		plan->refused = sw_opcode_name((sw_opcode)op->opcode);
		return false;
	}
	step->in = SW_NEW_N(p->arena, int32_t, op->n_operands + 1);
	for (uint32_t k = 0; k < op->n_operands; k++)
		step->in[k] = p->numbers[op->operands[k] - p->first_value];
	p->numbers[op->first_result - p->first_value] = number;
	sw_tile_value *value = &plan->values[number];
	value->type = sw_value_shape(plan->program, op->first_result).type;
	value->step = number;
	value->parameter = -1;
	if (op->opcode == SW_OP_PARAMETER) {
		int64_t which = op->attrs->parameter.number;
		if (which < 0 || which >= (int64_t)plan->n_parameters)
			return false;
		plan->parameters[which] = value->parameter = number;
		value->parameter = (int32_t)which;
	}
	return true;
}

static bool add_steps(tile_planner *p, const sw_computation *c)
{
	sw_tile_plan *plan = p->plan;
	sw_id low = SW_NO_ID, high = 0;
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(plan->program, c->ops.data[i]);
		low = SW_MIN(low, op->first_result);
		high = SW_MAX(high, op->first_result + op->n_results);
	}
	p->first_value = low;
	p->numbers = SW_NEW_N(p->arena, int32_t, high - low + 1);
	for (size_t i = 0; i < c->ops.len; i++)
		if (!add_step(p, sw_op_at(plan->program, c->ops.data[i])))
			return false;
	plan->n_values = plan->n_steps;
	for (uint32_t i = 0; i < plan->n_results; i++) {
		plan->results[i].value = p->numbers[c->results.data[i] - low];
		plan->steps[plan->results[i].value].live = true;
	}
	for (uint32_t s = plan->n_steps; s-- > 0;)
		for (uint32_t k = 0; plan->steps[s].live && k < plan->steps[s].n_in; k++)
			plan->steps[plan->steps[s].in[k]].live = true;
	return true;
}

/* ---- variables -------------------------------------------------------------------------- */

static int64_t elements(const sw_tile_value *v)
{
	int64_t n = 1;
	for (int32_t i = 0; i < v->rank; i++)
		n *= v->dims[i];
	return n;
}

/* The value that the loop goes over: the largest. */
static const sw_tile_value *find_domain(const sw_tile_plan *plan)
{
	const sw_tile_value *best = NULL;
	for (uint32_t s = 0; s < plan->n_steps; s++) {
		const sw_tile_step *step = &plan->steps[s];
		const sw_tile_value *v = &plan->values[step->out];
		if (step->kind == SW_TILE_GIVEN || !step->live)
			continue;
		if (step->kind == SW_TILE_REDUCE)
			v = &plan->values[step->in[0]];
		if (!best || elements(v) > elements(best))
			best = v;
	}
	return best;
}

/* Elements of a row of an operand or a result that a tile reads or writes together at least: some
 * cache lines, even if the rows of the domain lie across them (a transpose). */
enum { LEAST_ROW = 32 };

static bool is_minor(const sw_tile_plan *plan, int32_t atom)
{
	for (uint32_t s = 0; s < plan->n_steps; s++) {
		const sw_tile_value *v = &plan->values[s];
		bool stored = plan->steps[s].op->opcode == SW_OP_PARAMETER && plan->steps[s].live;
		for (uint32_t i = 0; i < plan->n_results && !stored; i++)
			stored = plan->results[i].value == (int32_t)s;
		if (stored && v->rank && v->atoms[v->rank - 1] == atom)
			return true;
	}
	return false;
}

static void cut(sw_tile_plan *plan, int32_t atom, int64_t n, int64_t size)
{
	plan->variables[plan->n_variables++] = (sw_tile_variable){atom, n, size};
	plan->tiles *= (n + size - 1) / size;
}

/* Each atom that is innermost somewhere has a short row in the tile. Then, from the innermost atom
 * of the domain on, atoms are whole in a tile as long as they fit; the next one is cut, and the
 * outer ones are taken row by row. Forbidden atoms are always whole. */
static bool choose_variables(tile_planner *p, int64_t tile_elements)
{
	sw_tile_plan *plan = p->plan;
	const sw_tile_value *domain = find_domain(plan);
	int64_t inside = 1, least[SW_TILE_RANK];
	plan->n_variables = 0;
	plan->tiles = 1;
	for (int32_t i = 0; domain && i < domain->rank; i++) {
		int64_t n = domain->dims[i];
		least[i] = p->forbidden[domain->atoms[i]]      ? n
		           : is_minor(plan, domain->atoms[i]) ? SW_MIN(n, LEAST_ROW)
		                                              : 1;
		inside *= least[i];
	}
	for (int32_t i = domain ? domain->rank - 1 : -1; i >= 0; i--) {
		int64_t n = domain->dims[i];
		inside /= least[i];
		int64_t room = SW_MAX(tile_elements / SW_MAX(inside, 1), least[i]), size = n;
		if (n > room) {
			int64_t pieces = (n + room - 1) / room;
			size = (n + pieces - 1) / pieces;
			if (plan->n_variables == SW_TILE_VARIABLES)
				return false;
			cut(plan, domain->atoms[i], n, size);
		}
		inside *= size;
	}
	return true;
}

static int32_t variable_of(const sw_tile_plan *plan, int32_t atom)
{
	for (int32_t v = 0; v < plan->n_variables; v++)
		if (plan->variables[v].atom == atom)
			return v;
	return -1;
}

/* ---- boxes ------------------------------------------------------------------------------ */

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
static void find_after(tile_planner *p)
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
static void find_boxes(tile_planner *p)
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
static void forbid(tile_planner *p, const sw_tile_step *step)
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
	int64_t results = elements(&plan->values[step->out]),
		terms = elements(&plan->values[step->in[0]]) / results;
	return results > 65536 && terms <= 512;
}

/* A step after the loop reads nothing that the loop computes tile by tile. Return the reduction
 * that makes this one wait if it does; NULL if it does not. */
static const sw_tile_step *find_conflict(const tile_planner *p)
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

static void find_stages(tile_planner *p)
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
static bool arrange(tile_planner *p, int64_t tile_elements)
{
	for (;;) {
		if (!choose_variables(p, tile_elements))
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

static sw_tile_plan *new_plan(tile_planner *p, const sw_program *program, const sw_op *op)
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

/* Two dimensions of a value may have become one atom (x + transpose(x)): no range of it is a box. */
static void forbid_repeated(tile_planner *p)
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
	tile_planner p = {.arena = arena};
	sw_tile_plan *plan = new_plan(&p, program, op);
	const sw_computation *c = &program->computations.data[op->called[0]];
	bool fits = add_steps(&p, c) && sw_tile_find_dims(plan, arena);
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
