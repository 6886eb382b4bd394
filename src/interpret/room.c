/*
 * How much working space ops need. A kernel's own tensors are summed as if none were given back
 * before the end: the space is cut into pieces of exactly the sizes that are asked for (pool.c),
 * and a piece that was given back serves the same size again, so that the sum is enough whatever
 * the order.
 *
 * A computation that a kernel runs on lanes keeps its values there too, each once, and its results
 * once more: those of the run before are what the next one starts from.
 */
#include "interpret/kernel.h"

int64_t sw_workspace_add(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

int64_t sw_workspace_elements(int64_t n, sw_type type)
{
	int64_t bytes;
	if (!sw_mul_i64(n, sw_type_bytes(type), &bytes) || bytes > INT64_MAX - SW_ALIGNMENT)
		return INT64_MAX;
	return SW_MAX((bytes + SW_ALIGNMENT - 1) / SW_ALIGNMENT, 1) * SW_ALIGNMENT;
}

int64_t sw_workspace_of(sw_shape shape)
{
	return sw_workspace_elements(sw_shape_elements(shape), shape.type);
}

int64_t sw_workspace_convert(sw_shape shape, sw_type to)
{
	return shape.type == to ? 0 : sw_workspace_elements(sw_shape_elements(shape), to);
}

/* Each side in the type that is multiplied in, and once more in another order; the product, and the
 * result. */
int64_t sw_workspace_of_dot(int64_t lhs, int64_t rhs, int64_t result, sw_type type)
{
	int64_t sides = sw_workspace_add(sw_workspace_elements(lhs, type),
	                                 sw_workspace_elements(rhs, type));
	int64_t product = sw_workspace_elements(result, type);
	return sw_workspace_add(sw_workspace_add(sides, sides), sw_workspace_add(product, product));
}

/* ---- computations that kernels run ------------------------------------------------------ */

/* A value may be there as a splat, and then written out. */
static int64_t room_of_value(const sw_program *program, sw_id value, int64_t lanes)
{
	int64_t n;
	sw_shape shape = sw_value_shape(program, value);
	if (!sw_mul_i64(sw_shape_elements(shape), lanes, &n))
		return INT64_MAX;
	return sw_workspace_add(sw_workspace_elements(n, shape.type), SW_ALIGNMENT);
}

/* Narrow operands and results in the types that are computed in, and the results again as they are.
 */
static int64_t room_to_widen(const sw_program *program, const sw_op *op, int64_t lanes)
{
	int64_t room = 0, n;
	for (uint32_t i = 0; i < op->n_operands + op->n_results; i++) {
		sw_id value = i < op->n_operands ? op->operands[i]
		                                 : op->first_result + (i - op->n_operands);
		sw_shape shape = sw_value_shape(program, value);
		n = sw_mul_i64(sw_shape_elements(shape), lanes, &n) ? n : INT64_MAX;
		room = sw_workspace_add(room, sw_workspace_elements(n, sw_wide_type(shape.type)));
		room = sw_workspace_add(room, room_of_value(program, value, lanes));
	}
	return room;
}

static int64_t room_of_regions(const sw_program *program, const sw_op *op, int64_t lanes)
{
	int64_t room = 0;
	for (uint32_t k = 0; k < op->n_called; k++)
		room = sw_workspace_add(room, sw_workspace_lanes(program, op->called[k], lanes));
	return room;
}

static int64_t room_inside(const sw_program *program, const sw_op *op, int64_t lanes)
{
	sw_plan_op plan = {0};
	int64_t room = 0;
	for (uint32_t i = 0; i < op->n_results && op->opcode != SW_OP_CONSTANT; i++)
		room = sw_workspace_add(room, room_of_value(program, op->first_result + i, lanes));
	if (sw_is_region(op))
		return sw_workspace_add(room, room_of_regions(program, op, lanes));
	if (op->opcode == SW_OP_PARAMETER || op->opcode == SW_OP_CONSTANT ||
	    !sw_choose_kernel(program, op, &plan))
		return room;
	if (lanes == 1)
		return sw_workspace_add(room, sw_op_workspace(program, op, &plan));
	return plan.kernel.widens && sw_op_is_narrow(program, op)
	               ? sw_workspace_add(room, room_to_widen(program, op, lanes))
	               : room;
}

int64_t sw_workspace_lanes(const sw_program *program, int32_t computation, int64_t lanes)
{
	const sw_computation *c = &program->computations.data[computation];
	bool apart = lanes != 1 && !sw_computation_is_elementwise(program, computation);
	int64_t room = apart ? sw_workspace_lanes(program, computation, 1) : 0;
	for (size_t i = 0; i < c->results.len; i++)
		room = sw_workspace_add(room, room_of_value(program, c->results.data[i], lanes));
	for (size_t k = 0; k < c->ops.len && !apart; k++)
		room = sw_workspace_add(
			room, room_inside(program, sw_op_at(program, c->ops.data[k]), lanes));
	return room;
}

int64_t sw_op_workspace(const sw_program *program, const sw_op *op, const sw_plan_op *plan)
{
	int64_t room = plan->kernel.room ? plan->kernel.room(program, op, plan) : 0;
	if (plan->kernel.widens && sw_op_is_narrow(program, op))
		room = sw_workspace_add(room, room_to_widen(program, op, 1));
	return room;
}
