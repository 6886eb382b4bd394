/* scan: run a computation over the slices of its inputs along one dimension; the carried values go
 * from one slice to the next. */
#include <stdlib.h>
#include <string.h>

#include "interpret/kernel.h"

/* Copy slice `at` of `whole` to or from the dense `slice`, along dimension d of the whole. */
static void copy_slice(sw_tensor whole, int64_t d, int64_t at, void *slice, bool to_slice)
{
	int64_t outer = 1, inner = sw_type_bytes(whole.shape.type), n = whole.shape.dims[d];
	for (int64_t i = 0; i < whole.shape.rank; i++) {
		outer *= i < d ? whole.shape.dims[i] : 1;
		inner *= i > d ? whole.shape.dims[i] : 1;
	}
	for (int64_t o = 0; o < outer; o++) {
		char *there = (char *)sw_tensor_data(whole) + (o * n + at) * inner,
		     *here = (char *)slice + o * inner;
		memcpy(to_slice ? here : there, to_slice ? there : here, (size_t)inner);
	}
}

/* Set the computation's parameters: the slices of the inputs, then the carried values. */
static sw_status set_parameters(sw_call *call, uint32_t n_inputs, int64_t at, sw_tensor *carried,
                                sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	const sw_kernel_plan *plan = &it->plans[call->op->called[0]];
	sw_status status = SW_OK;
	for (uint32_t i = 0; status == SW_OK && i < n_inputs; i++) {
		sw_tensor *value = &it->values[plan->inputs[i]];
		status = sw_scratch_new(it, sw_value_shape(call->program, plan->inputs[i]), value,
		                        err);
		if (status == SW_OK)
			copy_slice(call->in[i], call->op->attrs->scan.dimension, at,
			           sw_tensor_data(*value), true);
	}
	for (uint32_t i = n_inputs; status == SW_OK && i < plan->n_inputs; i++) {
		it->values[plan->inputs[i]] = carried[i - n_inputs];
		carried[i - n_inputs].buffer = NULL;
	}
	return status;
}

/* results: the slices of this step, then the carried values, which are written directly into
 * `carried`. */
static sw_status step(sw_call *call, uint32_t n_inputs, uint32_t n_slices, int64_t at,
                      sw_tensor *results, sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	sw_status status = set_parameters(call, n_inputs, at, results + n_slices, err);
	if (status == SW_OK)
		status = sw_interpret_applied(it, call->op->called[0], results, err);
	for (uint32_t i = 0; status == SW_OK && i < n_slices; i++) {
		status = sw_write_out_splat(it, &results[i], err);
		if (status == SW_OK)
			copy_slice(call->out[i], call->op->attrs->scan.dimension, at,
			           sw_tensor_data(results[i]), false);
		sw_pool_drop(&it->pool, &results[i]);
	}
	return status;
}

/* The computation keeps its parameters in the workspace, as it does its other values. */
int64_t sw_workspace_scan(const sw_program *program, const sw_op *op, const sw_plan_op *plan)
{
	(void)plan;
	return sw_workspace_lanes(program, op->called[0], 1);
}

sw_status sw_kernel_scan(sw_call *call, sw_error *err)
{
	const sw_attrs *attrs = call->op->attrs;
	uint32_t carries = (uint32_t)attrs->scan.carries, n_inputs = call->op->n_operands - carries;
	uint32_t n_slices = call->op->n_results - carries;
	int64_t n = call->in[0].shape.dims[attrs->scan.dimension];
	sw_tensor *results = sw_alloc(sizeof *results * ((size_t)call->op->n_results + 1));
	sw_status status = SW_OK;
	for (uint32_t i = 0; status == SW_OK && i < n_slices; i++)
		status = sw_result_new(call, i, err);
	for (uint32_t i = 0; i < carries; i++)
		results[n_slices + i] = sw_tensor_keep(call->in[n_inputs + i]);
	for (int64_t i = 0; status == SW_OK && i < n; i++)
		status = step(call, n_inputs, n_slices, attrs->scan.reverse ? n - 1 - i : i,
		              results, err);
	for (uint32_t i = 0; i < carries; i++) {
		call->out[n_slices + i] = results[n_slices + i];
		call->out[n_slices + i].shape = call->shapes[n_slices + i];
	}
	free(results);
	return status;
}
