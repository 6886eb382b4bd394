/*
 * The workspace that ops need. All tensors that a kernel allocates are summed as if none were freed
 * before the end: the workspace is cut into pieces of exactly the requested sizes (pool.c), and a
 * freed piece serves a request of the same size again, so the sum suffices in whatever order they
 * are freed.
 *
 * A computation that a kernel runs in lanes keeps each of its values in the workspace as well, and
 * its results twice: the next run starts from the results of the previous one.
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

/* Count each side in the type to multiply in, and once more transposed; then the product, and the
 * result in its declared type. */
int64_t sw_workspace_of_dot(int64_t lhs, int64_t rhs, int64_t result, sw_type type)
{
	int64_t sides = sw_workspace_add(sw_workspace_elements(lhs, type),
	                                 sw_workspace_elements(rhs, type));
	int64_t product = sw_workspace_elements(result, type);
	return sw_workspace_add(sw_workspace_add(sides, sides), sw_workspace_add(product, product));
}

/* ---- computations that kernels run ------------------------------------------------------ */

/* A value may exist as a splat first and then be expanded. */
static int64_t workspace_of_value(const sw_program *program, sw_id value, int64_t lanes)
{
	int64_t n;
	sw_shape shape = sw_value_shape(program, value);
	if (!sw_mul_i64(sw_shape_elements(shape), lanes, &n))
		return INT64_MAX;
	return sw_workspace_add(sw_workspace_elements(n, shape.type), SW_ALIGNMENT);
}

/* Count narrow operands and results in the wider types, and the results again in their own. */
static int64_t workspace_to_widen(const sw_program *program, const sw_op *op, int64_t lanes)
{
	int64_t workspace = 0, n;
	for (uint32_t i = 0; i < op->n_operands + op->n_results; i++) {
		sw_id value = i < op->n_operands ? op->operands[i]
		                                 : op->first_result + (i - op->n_operands);
		sw_shape shape = sw_value_shape(program, value);
		n = sw_mul_i64(sw_shape_elements(shape), lanes, &n) ? n : INT64_MAX;
		workspace = sw_workspace_add(workspace,
		                             sw_workspace_elements(n, sw_wide_type(shape.type)));
		workspace = sw_workspace_add(workspace, workspace_of_value(program, value, lanes));
	}
	return workspace;
}

static int64_t workspace_of_regions(const sw_program *program, const sw_op *op, int64_t lanes)
{
	int64_t workspace = 0;
	for (uint32_t k = 0; k < op->n_called; k++)
		workspace = sw_workspace_add(workspace,
		                             sw_workspace_lanes(program, op->called[k], lanes));
	return workspace;
}

static int64_t workspace_of_op(const sw_program *program, const sw_op *op, int64_t lanes)
{
	sw_plan_op plan = {0};
	int64_t workspace = 0;
	for (uint32_t i = 0; i < op->n_results && op->opcode != SW_OP_CONSTANT; i++)
		workspace = sw_workspace_add(
			workspace, workspace_of_value(program, op->first_result + i, lanes));
	bool chosen = op->opcode != SW_OP_PARAMETER && op->opcode != SW_OP_CONSTANT &&
	              sw_choose_kernel(program, op, &plan);
	if (sw_runs_frames(op, plan.kernel.aliasing) || (sw_is_region(op) && lanes != 1))
		return sw_workspace_add(workspace, workspace_of_regions(program, op, lanes));
	if (!chosen)
		return workspace;
	if (lanes == 1)
		return sw_workspace_add(workspace, sw_op_workspace(program, op, &plan));
	return plan.kernel.widens && sw_op_is_narrow(program, op)
	               ? sw_workspace_add(workspace, workspace_to_widen(program, op, lanes))
	               : workspace;
}

int64_t sw_workspace_lanes(const sw_program *program, int32_t computation, int64_t lanes)
{
	const sw_computation *c = &program->computations.data[computation];
	bool lane_by_lane = lanes != 1 && !sw_computation_is_elementwise(program, computation);
	int64_t workspace = lane_by_lane ? sw_workspace_lanes(program, computation, 1) : 0;
	for (size_t i = 0; i < c->results.len; i++)
		workspace = sw_workspace_add(
			workspace, workspace_of_value(program, c->results.data[i], lanes));
	for (size_t k = 0; k < c->ops.len && !lane_by_lane; k++)
		workspace = sw_workspace_add(
			workspace,
			workspace_of_op(program, sw_op_at(program, c->ops.data[k]), lanes));
	return workspace;
}

int64_t sw_op_workspace(const sw_program *program, const sw_op *op, const sw_plan_op *plan)
{
	int64_t workspace = plan->kernel.workspace ? plan->kernel.workspace(program, op, plan) : 0;
	if (plan->kernel.widens && sw_op_is_narrow(program, op))
		workspace = sw_workspace_add(workspace, workspace_to_widen(program, op, 1));
	return workspace;
}
