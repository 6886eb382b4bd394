/* scaled-dot: multiply each operand by its scale, one element of which applies to a block of the
 * operand, then compute a dot. */
#include "interpret/kernel.h"
#include "interpret/multiply.h"

bool sw_prepare_scaled_dot(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	(void)plan;
	sw_type result = sw_value_shape(program, op->first_result).type;
	for (uint32_t i = 0; i < op->n_operands; i++) {
		if (!sw_can_dot(sw_value_shape(program, op->operands[i]).type, result, result))
			return false;
	}
	return true;
}

/* Return the index of the scale of element e of x; each dimension of x is a multiple of the
 * scale's. */
static int64_t scale_of(sw_shape x, sw_shape scale, int64_t e)
{
	int64_t at = 0, stride = 1;
	for (int d = x.rank - 1; d >= 0 && scale.rank; d--) {
		int64_t index = e % x.dims[d];
		e /= x.dims[d];
		at += index / (x.dims[d] / scale.dims[d]) * stride;
		stride *= scale.dims[d];
	}
	return at;
}

static sw_status apply(sw_interpreter *it, sw_tensor x, const sw_tensor *scale, sw_type type,
                       sw_tensor *out, sw_error *err)
{
	sw_tensor product = {0}, factor = {0};
	sw_binary_fn *multiply = sw_find_binary(SW_OP_MULTIPLY, type);
	sw_shape shape = x.shape;
	shape.type = type;
	sw_status status = sw_convert_tensor(it, x, type, out, err);
	if (status != SW_OK || !scale)
		return status;
	status = sw_convert_tensor(it, *scale, type, &factor, err);
	if (status == SW_OK)
		status = sw_scratch_new(it, shape, &product, err);
	int64_t n = status == SW_OK ? sw_shape_elements(shape) : 0, bytes = sw_type_bytes(type);
	for (int64_t e = 0; e < n; e++)
		multiply(1, (char *)sw_tensor_data(*out) + e * bytes, 0,
		         (char *)sw_tensor_data(factor) + scale_of(shape, scale->shape, e) * bytes,
		         0, (char *)sw_tensor_data(product) + e * bytes);
	sw_pool_drop(&it->pool, &factor);
	sw_pool_drop(&it->pool, out);
	*out = product;
	return status;
}

int64_t sw_workspace_scaled_dot(const sw_program *program, const sw_op *op, const sw_plan_op *plan)
{
	(void)plan;
	sw_shape shape = sw_value_shape(program, op->first_result);
	sw_type type = sw_type_to_multiply_in(shape.type);
	int64_t n[2] = {0}, workspace = sw_workspace_of(shape);
	for (uint32_t i = 0; i < op->n_operands; i++) {
		n[i & 1] = SW_MAX(n[i & 1],
		                  sw_shape_elements(sw_value_shape(program, op->operands[i])));
		workspace = sw_workspace_add(workspace, sw_workspace_elements(n[i & 1], type));
	}
	workspace = sw_workspace_add(
		workspace, sw_workspace_of_dot(n[0], n[1], sw_shape_elements(shape), type));
	return sw_workspace_add(workspace, sw_workspace_add(sw_workspace_elements(n[0], type),
	                                                    sw_workspace_elements(n[1], type)));
}

sw_status sw_kernel_scaled_dot(sw_call *call, sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	sw_type type = sw_type_to_multiply_in(call->shapes[0].type);
	sw_tensor side[2] = {{.buffer = NULL}, {.buffer = NULL}};
	sw_status status = SW_OK;
	for (uint32_t i = 0; status == SW_OK && i < 2; i++)
		status = apply(it, call->in[i],
		               i + 2 < call->op->n_operands ? &call->in[i + 2] : NULL, type,
		               &side[i], err);
	if (status == SW_OK)
		status = sw_dot(it, side[0], side[1], call->op->attrs, call->shapes[0],
		                &call->out[0], err);
	sw_pool_drop(&it->pool, &side[0]);
	sw_pool_drop(&it->pool, &side[1]);
	return status;
}
