/*
 * Roles: the role of each entry input, the values that are parameters in another form, the
 * executions of each op, the program points of the entry and its regions in one line, and the
 * boundaries of regions.
 */
#include "model/internal.h"

#include <math.h>
#include <stdlib.h>

/* ---- program points and executions ------------------------------------------------------ */

/* Return the FLOPs and bytes of a computation, and one more so that an empty one counts. */
static double work_of(const sw_program *p, int32_t c)
{
	double work = 1;
	for (size_t i = 0; i < p->computations.data[c].ops.len; i++) {
		sw_id id = p->computations.data[c].ops.data[i];
		work += sw_op_flops(p, id) + sw_op_bytes(p, id);
	}
	return work;
}

static int32_t number_points(sw_roles *roles, int32_t c, int32_t point, double trips);

/* One branch runs, and it is not known which. Weight each by its share of the work of all branches:
 * the most expensive one counts most, and none is planned without care. The weighted mean is never
 * more than the most expensive branch, which is the cost that a partitioned program is given. */
static int32_t number_branches(sw_roles *roles, const sw_op *op, int32_t point, double trips)
{
	double all = 0;
	for (uint32_t k = 0; k < op->n_called; k++)
		all += work_of(roles->program, op->called[k]);
	for (uint32_t k = 0; k < op->n_called; k++) {
		double share = work_of(roles->program, op->called[k]) / all;
		point = number_points(roles, op->called[k], point,
		                      trips * (isfinite(share) ? share : 1.0 / op->n_called));
	}
	return point;
}

static int32_t number_loop(sw_roles *roles, const sw_op *op, int32_t point, double trips)
{
	double inner = trips * (double)SW_MAX(op->attrs->loop.trip_count, 1);
	point = number_points(roles, op->called[0], point, inner);
	return number_points(roles, op->called[1], point, inner);
}

/* Number the ops of c from `point` on, the ops of a region before the region itself; return the
 * next point. */
static int32_t number_points(sw_roles *roles, int32_t c, int32_t point, double trips)
{
	const sw_program *p = roles->program;
	const sw_computation *computation = &p->computations.data[c];
	for (size_t i = 0; i < computation->ops.len; i++) {
		sw_id id = computation->ops.data[i];
		const sw_op *op = sw_op_at(p, id);
		roles->trips[id] = trips;
		if (op->opcode == SW_OP_WHILE)
			point = number_loop(roles, op, point, trips);
		else if (op->opcode == SW_OP_CONDITIONAL)
			point = number_branches(roles, op, point, trips);
		roles->point[id] = point++;
	}
	return point;
}

static sw_id last_op(const sw_program *p, int32_t c)
{
	const sw_computation *computation = &p->computations.data[c];
	return computation->ops.data[computation->ops.len - 1];
}

/* ---- boundaries ------------------------------------------------------------------------- */

static sw_id leaf_of(const sw_program *p, int32_t c, uint32_t leaf)
{
	return sw_op_at(p, p->computations.data[c].parameters.data[0])->first_result + leaf;
}

/* A read just before the first op of c, which takes the operand as its parameter. */
static sw_boundary_read read_before(const sw_roles *roles, const sw_op *region, uint32_t operand,
                                    int32_t c)
{
	sw_id id = (sw_id)(region - roles->program->ops.data);
	sw_id first = roles->program->computations.data[c].ops.data[0];
	return (sw_boundary_read){region->operands[operand], roles->trips[id],
	                          SW_MAX(roles->point[first] - 1, 0)};
}

/* A read of a result of c, at the end of c. */
static sw_boundary_read read_after(const sw_roles *roles, int32_t c, uint32_t result)
{
	sw_id last = last_op(roles->program, c);
	return (sw_boundary_read){roles->program->computations.data[c].results.data[result],
	                          roles->trips[last], roles->point[last]};
}

/* Add a boundary with copies of the lists. */
static void add_boundary(sw_roles *roles, const sw_op *region, const sw_boundary_read *reads,
                         uint32_t n_reads, const sw_id *values, uint32_t n_values)
{
	sw_boundary boundary = {
		.region = (sw_id)(region - roles->program->ops.data),
		.is_predicate = n_values == 0,
		.n_reads = n_reads,
		.n_values = n_values,
		.reads = sw_arena_copy(&roles->arena, reads, sizeof(*reads) * n_reads),
		.values = sw_arena_copy(&roles->arena, values, sizeof(*values) * n_values),
	};
	sw_vec_push(&roles->boundaries, boundary);
}

static void add_loop_boundaries(sw_roles *roles, const sw_op *op)
{
	const sw_program *p = roles->program;
	int32_t condition = op->called[0], body = op->called[1];
	for (uint32_t k = 0; k < op->n_operands; k++) {
		const sw_boundary_read reads[] = {read_before(roles, op, k, condition),
		                                  read_after(roles, body, k)};
		const sw_id values[] = {leaf_of(p, body, k), leaf_of(p, condition, k),
		                        op->first_result + k};
		add_boundary(roles, op, reads, 2, values, 3);
	}
	const sw_boundary_read predicate = read_after(roles, condition, 0);
	add_boundary(roles, op, &predicate, 1, NULL, 0);
}

static void add_conditional_boundaries(sw_roles *roles, const sw_op *op)
{
	const sw_program *p = roles->program;
	sw_boundary_read *reads = SW_NEW_N(&roles->arena, sw_boundary_read, op->n_called);
	uint32_t operand = 1;
	for (uint32_t k = 0; k < op->n_called; k++) {
		const sw_computation *branch = &p->computations.data[op->called[k]];
		uint32_t leaves = sw_op_at(p, branch->parameters.data[0])->n_results;
		for (uint32_t i = 0; i < leaves; i++, operand++) {
			const sw_boundary_read read =
				read_before(roles, op, operand, op->called[k]);
			const sw_id leaf = leaf_of(p, op->called[k], i);
			add_boundary(roles, op, &read, 1, &leaf, 1);
		}
	}
	for (uint32_t i = 0; i < op->n_results; i++) {
		const sw_id result = op->first_result + i;
		for (uint32_t k = 0; k < op->n_called; k++)
			reads[k] = read_after(roles, op->called[k], i);
		add_boundary(roles, op, reads, op->n_called, &result, 1);
	}
	const sw_boundary_read predicate = read_before(roles, op, 0, op->called[0]);
	add_boundary(roles, op, &predicate, 1, NULL, 0);
}

static void find_boundaries(sw_roles *roles)
{
	const sw_program *p = roles->program;
	for (size_t i = 0; i < p->ops.len; i++) {
		const sw_op *op = &p->ops.data[i];
		roles->first_boundary[i] = (uint32_t)roles->boundaries.len;
		if (!roles->planned[op->computation])
			continue;
		if (op->opcode == SW_OP_WHILE)
			add_loop_boundaries(roles, op);
		else if (op->opcode == SW_OP_CONDITIONAL)
			add_conditional_boundaries(roles, op);
	}
	roles->first_boundary[p->ops.len] = (uint32_t)roles->boundaries.len;
}

/* ---- last uses -------------------------------------------------------------------------- */

static void extend_use(sw_roles *roles, sw_id value, int32_t point)
{
	roles->last_use[value] = SW_MAX(roles->last_use[value], point + 1);
}

/* Return the point at which a region releases a parameter. A loop releases it when it ends, for its
 * results take the buffers of the values that it carries; a branch when it ends itself, for several
 * branches are often given the same operand. */
static int32_t live_until(const sw_roles *roles, const sw_boundary *boundary,
                          const sw_op *parameter)
{
	const sw_op *region = sw_op_at(roles->program, boundary->region);
	bool body = region->opcode == SW_OP_WHILE && region->called[1] == parameter->computation;
	return body ? roles->point[boundary->region] - 1
	            : roles->point[last_op(roles->program, parameter->computation)];
}

/* Mark the body's result that a loop carries on in the buffer of its parameter: it can be written
 * there if the last reader of the parameter is the op that makes the result, or runs earlier. */
static void find_in_place(sw_roles *roles, const sw_boundary *boundary)
{
	const sw_program *p = roles->program;
	if (boundary->is_predicate || sw_op_at(p, boundary->region)->opcode != SW_OP_WHILE)
		return;
	sw_id leaf = boundary->values[0], next = boundary->reads[1].value,
	      by = p->values.data[next].op;
	if (sw_op_at(p, by)->opcode != SW_OP_PARAMETER &&
	    roles->last_use[leaf] <= roles->point[by] + 1)
		roles->in_place[next] = true;
}

/* Does a region pass the operand in unchanged while the caller keeps it for later readers? So does
 * a loop's result that the loop does not change, if the operand outlives the loop or nobody reads
 * the result. */
static bool may_alias(const sw_roles *roles, const sw_boundary *boundary, sw_id value)
{
	sw_id by = roles->program->values.data[value].op;
	uint8_t opcode = sw_op_at(roles->program, by)->opcode;
	bool changes = boundary->n_reads > 1 && boundary->reads[1].value != boundary->values[0];
	int32_t operand_end = roles->last_use[boundary->reads[0].value];
	if (changes || (opcode != SW_OP_PARAMETER && opcode != SW_OP_WHILE))
		return false;
	if (opcode == SW_OP_WHILE)
		return operand_end > roles->point[by] ||
		       roles->last_use[value] <= roles->point[by] + 1;
	return operand_end > boundary->reads[0].point + 1;
}

static void find_aliases(sw_roles *roles, const sw_boundary *boundary)
{
	for (uint32_t k = 0; k < boundary->n_values; k++)
		if (may_alias(roles, boundary, boundary->values[k]))
			roles->alias_of[boundary->values[k]] = boundary->reads[0].value;
}

static void use_parameters(sw_roles *roles, const sw_boundary *boundary)
{
	const sw_program *p = roles->program;
	for (uint32_t k = 0; k < boundary->n_values; k++) {
		const sw_op *op = sw_op_at(p, p->values.data[boundary->values[k]].op);
		if (op->opcode == SW_OP_PARAMETER)
			extend_use(roles, boundary->values[k], live_until(roles, boundary, op));
	}
}

static void find_last_uses(sw_roles *roles)
{
	const sw_program *p = roles->program;
	const sw_computation *entry = sw_entry(p);
	for (size_t v = 0; v < p->values.len; v++)
		roles->last_use[v] = roles->point[p->values.data[v].op] + 1;
	for (size_t i = 0; i < p->ops.len; i++) {
		const sw_op *op = &p->ops.data[i];
		bool reads = roles->planned[op->computation] && !sw_is_region(op);
		for (uint32_t k = 0; reads && k < op->n_operands; k++)
			extend_use(roles, op->operands[k], roles->point[i]);
	}
	for (size_t i = 0; i < entry->results.len; i++)
		extend_use(roles, entry->results.data[i], roles->n_points - 1);
	for (size_t i = 0; i < roles->boundaries.len; i++) {
		const sw_boundary *boundary = &roles->boundaries.data[i];
		for (uint32_t k = 0; k < boundary->n_reads; k++)
			extend_use(roles, boundary->reads[k].value, boundary->reads[k].point);
	}
	for (size_t i = 0; i < roles->boundaries.len; i++)
		find_in_place(roles, &roles->boundaries.data[i]);
	for (size_t i = 0; i < roles->boundaries.len; i++)
		use_parameters(roles, &roles->boundaries.data[i]);
	for (size_t i = 0; i < roles->boundaries.len; i++)
		find_aliases(roles, &roles->boundaries.data[i]);
}

/* ---- parameters ------------------------------------------------------------------------- */

/* Does the op only move, convert or pick elements, so that its result is still a parameter of the
 * model? */
static bool keeps_parameter(uint8_t opcode)
{
	static const uint8_t list[] = {SW_OP_CONVERT,   SW_OP_COPY,       SW_OP_RESHAPE,
	                               SW_OP_TRANSPOSE, SW_OP_SLICE,      SW_OP_DYNAMIC_SLICE,
	                               SW_OP_BITCAST,   SW_OP_OPT_BARRIER};
	for (size_t i = 0; i < SW_COUNT(list); i++)
		if (list[i] == opcode)
			return true;
	return false;
}

/* A boundary's values are parameters if all its reads from outside are: a loop carries the
 * parameter unchanged, or it trains it, so that what replaces it at the end of a trip does so at
 * the end of the step. */
static void propagate_through_boundary(sw_roles *roles, const sw_boundary *boundary, bool *trained)
{
	bool parameter = boundary->n_values > 0;
	if (boundary->n_reads == 2 && boundary->n_values == 3 && trained[boundary->values[2]])
		trained[boundary->reads[1].value] = true;
	for (uint32_t k = 0; k < boundary->n_reads; k++)
		parameter = parameter && (roles->from_parameter[boundary->reads[k].value] ||
		                          boundary->reads[k].value == boundary->values[0] ||
		                          (k > 0 && trained[boundary->reads[k].value]));
	for (uint32_t k = 0; k < boundary->n_values && parameter; k++)
		roles->from_parameter[boundary->values[k]] = true;
}

static void propagate_through_boundaries(sw_roles *roles, sw_id region, bool *trained)
{
	for (uint32_t i = roles->first_boundary[region]; i < roles->first_boundary[region + 1]; i++)
		propagate_through_boundary(roles, &roles->boundaries.data[i], trained);
}

static void find_parameters(sw_roles *roles, int32_t c, bool *trained)
{
	const sw_program *p = roles->program;
	const sw_computation *computation = &p->computations.data[c];
	for (size_t i = 0; i < computation->ops.len; i++) {
		sw_id id = computation->ops.data[i];
		const sw_op *op = sw_op_at(p, id);
		if (keeps_parameter(op->opcode))
			roles->from_parameter[op->first_result] =
				roles->from_parameter[op->operands[0]];
		if (!sw_is_region(op))
			continue;
		propagate_through_boundaries(roles, id, trained); /* into the region */
		for (uint32_t k = 0; k < op->n_called; k++)
			find_parameters(roles, op->called[k], trained);
		propagate_through_boundaries(roles, id, trained); /* out of the region */
	}
}

bool sw_is_dot(const sw_op *op)
{
	return op->opcode == SW_OP_DOT || op->opcode == SW_OP_CONVOLUTION;
}

int32_t sw_roles_weight(const sw_roles *roles, sw_id id)
{
	const sw_op *op = sw_op_at(roles->program, id);
	if (!sw_is_dot(op))
		return -1;
	bool first = roles->from_parameter[op->operands[0]],
	     second = roles->from_parameter[op->operands[1]];
	return first == second ? -1 : second;
}

static void find_input_roles(sw_roles *roles, const sw_sidecar *sidecar)
{
	const sw_program *p = roles->program;
	roles->n_inputs = sw_program_inputs(p, p->entry, &roles->arena, &roles->inputs);
	size_t n_results = sw_entry(p)->results.len;
	roles->input_role = SW_NEW_N(&roles->arena, sw_role, roles->n_inputs + 1);
	roles->arrives = SW_NEW_N(&roles->arena, bool, roles->n_inputs + 1);
	roles->batch_dim = SW_NEW_N(&roles->arena, int32_t, roles->n_inputs + 1);
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
		/* a parameter that no output replaces is frozen, and no data */
		if (!is_state[i] && role != SW_ROLE_PARAMETER)
			role = SW_ROLE_DATA;
		else if (role == SW_ROLE_DATA || role == SW_ROLE_OTHER)
			role = SW_ROLE_PARAMETER;
		roles->input_role[i] = role;
		roles->arrives[i] = sidecar->inputs[i].arrives;
		roles->from_parameter[roles->inputs[i]] = role == SW_ROLE_PARAMETER;
		roles->batch_dim[i] = role == SW_ROLE_DATA ? 0 : -1;
		if (role != SW_ROLE_DATA)
			roles->most_elements = SW_MAX(
				roles->most_elements,
				sw_shape_elements(sw_value_shape(p, roles->inputs[i])));
	}
	roles->batch = sw_find_batch(p, roles->inputs, roles->n_inputs, roles->batch_dim);
}

static void find_all_parameters(sw_roles *roles)
{
	const sw_computation *entry = sw_entry(roles->program);
	bool *trained = SW_NEW_N(&roles->arena, bool, roles->program->values.len + 1);
	for (size_t i = 0; i < entry->results.len; i++) {
		int32_t input = roles->output_input[i];
		trained[entry->results.data[i]] =
			input >= 0 && roles->input_role[input] == SW_ROLE_PARAMETER;
	}
	find_parameters(roles, roles->program->entry, trained);
}

/* ---- a batch that the step draws -------------------------------------------------------- */

/* Return the first dimension of the operand k of a dot that its result has and its weight has not;
 * -1: there is none. */
static int32_t rows_of(const sw_rule *rule, sw_shape shape, int32_t k)
{
	int32_t factor;
	int64_t top;
	for (int32_t d = 0; d < shape.rank; d++)
		if (shape.dims[d] > 1 &&
		    sw_rule_factor_at(rule, false, k, d, shape.dims[d], &factor, &top) &&
		    sw_rule_has_factor(rule, true, 0, factor) &&
		    !sw_rule_has_factor(rule, false, 1 - k, factor))
			return d;
	return -1;
}

/* Where no input has the batch, as the step draws its rows by chance or picks them out of tables,
 * take for it the rows of the dot with a weight that does most work. */
static void find_drawn_batch(sw_roles *roles)
{
	const sw_program *p = roles->program;
	sw_id best = SW_NO_ID;
	double most = 0;
	roles->drawn = SW_NO_ID;
	for (uint32_t i = 0; i < roles->n_inputs; i++)
		if (roles->batch_dim[i] >= 0)
			return;
	for (sw_id id = 0; id < p->ops.len; id++) {
		const sw_op *op = sw_op_at(p, id);
		if (!roles->planned[op->computation] || sw_roles_weight(roles, id) < 0)
			continue;
		double work = sw_op_flops(p, id) * roles->trips[id];
		best = work > most ? id : best;
		most = SW_MAX(most, work);
	}
	if (best == SW_NO_ID)
		return;
	int32_t k = 1 - sw_roles_weight(roles, best);
	sw_id value = sw_op_at(p, best)->operands[k];
	sw_shape shape = sw_value_shape(p, value);
	roles->drawn_dim = rows_of(sw_rule_make(p, best, &roles->arena), shape, k);
	if (roles->drawn_dim < 0)
		return;
	roles->drawn = value;
	roles->batch = shape.dims[roles->drawn_dim];
}

void sw_roles_init(sw_roles *roles, const sw_program *program, const sw_sidecar *sidecar)
{
	*roles = (sw_roles){.program = program};
	sw_arena_init(&roles->arena);
	roles->planned = SW_NEW_N(&roles->arena, bool, program->computations.len + 1);
	roles->from_parameter = SW_NEW_N(&roles->arena, bool, program->values.len + 1);
	roles->trips = SW_NEW_N(&roles->arena, double, program->ops.len + 1);
	roles->point = SW_NEW_N(&roles->arena, int32_t, program->ops.len + 1);
	roles->last_use = SW_NEW_N(&roles->arena, int32_t, program->values.len + 1);
	roles->in_place = SW_NEW_N(&roles->arena, bool, program->values.len + 1);
	roles->alias_of = SW_NEW_N(&roles->arena, sw_id, program->values.len + 1);
	for (size_t v = 0; v < program->values.len; v++)
		roles->alias_of[v] = SW_NO_ID;
	roles->first_boundary = SW_NEW_N(&roles->arena, uint32_t, program->ops.len + 1);
	sw_mark_planned(program, program->entry, roles->planned);
	roles->n_points = number_points(roles, program->entry, 0, 1.0);
	find_boundaries(roles);
	find_last_uses(roles);
	find_input_roles(roles, sidecar);
	find_all_parameters(roles);
	find_drawn_batch(roles);
}

void sw_roles_clear(sw_roles *roles)
{
	sw_vec_clear(&roles->boundaries);
	sw_arena_clear(&roles->arena);
}
