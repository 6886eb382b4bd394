/*
 * Roles: what the entry's inputs are for, which values are parameters in another guise, how often each op runs, and
 * when (one line of moments through the entry and the bodies of its loops).
 */
#include "plan/internal.h"

#include <stdlib.h>

void sw_mark_planned(const sw_program *program, int32_t c, bool *planned)
{
	planned[c] = true;
	for (size_t i = 0; i < program->computations.data[c].ops.len; i++) {
		const sw_op *op = sw_op_at(program, program->computations.data[c].ops.data[i]);
		for (uint32_t k = 0; op->opcode == SW_OP_WHILE && k < op->n_called; k++)
			sw_mark_planned(program, op->called[k], planned);
	}
}

static sw_id leaf_of(const sw_program *p, int32_t c, uint32_t leaf)
{
	return sw_op_at(p, p->computations.data[c].parameters.data[0])->first_result + leaf;
}

static void find_carries(sw_roles *roles)
{
	const sw_program *p = roles->program;
	for (size_t i = 0; i < p->ops.len; i++) {
		const sw_op *op = &p->ops.data[i];
		if (op->opcode != SW_OP_WHILE || !roles->planned[op->computation])
			continue;
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_carry carry = {.loop = (sw_id)i,
			                  .leaf = k,
			                  .init = op->operands[k],
			                  .result = op->first_result + k,
			                  .in_body = leaf_of(p, op->called[1], k),
			                  .in_condition = leaf_of(p, op->called[0], k),
			                  .next = p->computations.data[op->called[1]].results.data[k]};
			sw_vec_push(&roles->carries, carry);
		}
	}
}

/* Numbers the ops of c from `moment` on; the ops of a loop's condition and body stand before the loop itself. */
static int32_t lay_out(sw_roles *roles, int32_t c, int32_t moment, double trips)
{
	const sw_program *p = roles->program;
	const sw_computation *computation = &p->computations.data[c];
	for (size_t i = 0; i < computation->ops.len; i++) {
		sw_id id = computation->ops.data[i];
		const sw_op *op = sw_op_at(p, id);
		roles->trips[id] = trips;
		if (op->opcode == SW_OP_WHILE) {
			double inner = trips * (double)SW_MAX(op->attrs->loop.trip_count, 1);
			moment = lay_out(roles, op->called[0], moment, inner);
			moment = lay_out(roles, op->called[1], moment, inner);
		}
		roles->moment[id] = moment++;
	}
	return moment;
}

/* When the reader takes its operands: a loop before its first turn. */
static int32_t reading_moment(const sw_roles *roles, sw_id reader)
{
	const sw_op *op = sw_op_at(roles->program, reader);
	if (op->opcode != SW_OP_WHILE)
		return roles->moment[reader];
	return roles->moment[roles->program->computations.data[op->called[0]].ops.data[0]];
}

static void find_last_uses(sw_roles *roles)
{
	const sw_program *p = roles->program;
	for (size_t v = 0; v < p->values.len; v++)
		roles->last_use[v] = roles->moment[p->values.data[v].op] + 1;
	for (size_t i = 0; i < p->ops.len; i++) {
		const sw_op *op = &p->ops.data[i];
		for (uint32_t k = 0; roles->planned[op->computation] && k < op->n_operands; k++)
			roles->last_use[op->operands[k]] = SW_MAX(roles->last_use[op->operands[k]],
			                                          reading_moment(roles, (sw_id)i) + 1);
	}
	for (size_t c = 0; c < p->computations.len; c++) {
		const sw_computation *computation = &p->computations.data[c];
		if (!roles->planned[c] || computation->ops.len == 0)
			continue;
		int32_t end = roles->moment[computation->ops.data[computation->ops.len - 1]] + 1;
		for (size_t i = 0; i < computation->results.len; i++)
			roles->last_use[computation->results.data[i]] = end;
	}
	for (size_t i = 0; i < roles->carries.len; i++) /* what a loop carries is there until it ends */
		roles->last_use[roles->carries.data[i].in_body] =
			roles->moment[roles->carries.data[i].loop] + 1;
}

/* A parameter of the model seen through ops that only move, convert or pick elements. */
static bool shows_operand(uint8_t opcode)
{
	static const uint8_t list[] = {SW_OP_CONVERT,   SW_OP_COPY,       SW_OP_RESHAPE,
	                               SW_OP_TRANSPOSE, SW_OP_SLICE,      SW_OP_DYNAMIC_SLICE,
	                               SW_OP_BITCAST,   SW_OP_OPT_BARRIER};
	for (size_t i = 0; i < SW_COUNT(list); i++)
		if (list[i] == opcode)
			return true;
	return false;
}

static void find_parameters(sw_roles *roles, int32_t c)
{
	const sw_program *p = roles->program;
	const sw_computation *computation = &p->computations.data[c];
	for (size_t i = 0; i < computation->ops.len; i++) {
		const sw_op *op = sw_op_at(p, computation->ops.data[i]);
		if (shows_operand(op->opcode))
			roles->from_parameter[op->first_result] = roles->from_parameter[op->operands[0]];
		if (op->opcode != SW_OP_WHILE)
			continue;
		sw_id inside = leaf_of(p, op->called[1], 0);
		for (uint32_t k = 0; k < op->n_operands; k++) /* carried unchanged */
			if (p->computations.data[op->called[1]].results.data[k] == inside + k)
				roles->from_parameter[inside + k] =
					roles->from_parameter[op->first_result + k] =
						roles->from_parameter[op->operands[k]];
		find_parameters(roles, op->called[1]);
	}
}

static void find_input_roles(sw_roles *roles, const sw_sidecar *sidecar)
{
	const sw_program *p = roles->program;
	roles->n_inputs = sw_program_inputs(p, p->entry, &roles->arena, &roles->inputs);
	size_t n_results = sw_entry(p)->results.len;
	roles->input_role = SW_NEW_N(&roles->arena, sw_role, roles->n_inputs + 1);
	roles->output_input = SW_NEW_N(&roles->arena, int32_t, n_results + 1);
	for (size_t i = 0; i < n_results; i++)
		roles->output_input[i] = -1;
	bool *is_state = SW_NEW_N(&roles->arena, bool, roles->n_inputs + 1);
	for (size_t i = 0; i < p->aliases.len; i++) {
		roles->output_input[p->aliases.data[i].output] = (int32_t)p->aliases.data[i].input;
		is_state[p->aliases.data[i].input] = true;
	}
	for (uint32_t i = 0; i < roles->n_inputs; i++) {
		sw_role role = sidecar->inputs[i].role;
		if (!is_state[i])
			role = SW_ROLE_DATA;
		else if (role == SW_ROLE_DATA || role == SW_ROLE_OTHER)
			role = SW_ROLE_PARAMETER;
		roles->input_role[i] = role;
		roles->from_parameter[roles->inputs[i]] = role == SW_ROLE_PARAMETER;
	}
}

void sw_roles_init(sw_roles *roles, const sw_program *program, const sw_sidecar *sidecar)
{
	*roles = (sw_roles){.program = program};
	sw_arena_init(&roles->arena);
	roles->planned = SW_NEW_N(&roles->arena, bool, program->computations.len + 1);
	roles->from_parameter = SW_NEW_N(&roles->arena, bool, program->values.len + 1);
	roles->trips = SW_NEW_N(&roles->arena, double, program->ops.len + 1);
	roles->moment = SW_NEW_N(&roles->arena, int32_t, program->ops.len + 1);
	roles->last_use = SW_NEW_N(&roles->arena, int32_t, program->values.len + 1);
	sw_mark_planned(program, program->entry, roles->planned);
	find_carries(roles);
	roles->n_moments = lay_out(roles, program->entry, 0, 1.0);
	find_last_uses(roles);
	find_input_roles(roles, sidecar);
	find_parameters(roles, program->entry);
}

void sw_roles_clear(sw_roles *roles)
{
	sw_vec_clear(&roles->carries);
	sw_arena_clear(&roles->arena);
}
