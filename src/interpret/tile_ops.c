/* Which ops can be steps of a fusion that runs tile by tile, and with which inner loops. */
#include "interpret/tile_planner.h"

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

static bool may_be_step(const sw_tile_planner *p, const sw_op *op, sw_tile_kind kind)
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

static bool choose_loops(const sw_tile_planner *p, sw_tile_step *step)
{
	if (step->kind == SW_TILE_GIVEN)
		return step->op->opcode == SW_OP_PARAMETER || step->op->attrs->constant.data;
	if (step->kind == SW_TILE_VIEW)
		return true;
	if (!sw_choose_kernel(p->plan->program, step->op, &step->plan))
		return false;
	return step->kind != SW_TILE_REDUCE || step->plan.impl.reduce;
}

static bool add_step(sw_tile_planner *p, const sw_op *op)
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

bool sw_tile_add_steps(sw_tile_planner *p, const sw_computation *c)
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
