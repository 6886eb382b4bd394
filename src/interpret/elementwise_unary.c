/* Elementwise ops of one operand: one table per type, generated from unary_template.h. */
#include "interpret/vector.h"

#include <math.h>

#include "interpret/kernel.h"
#include "interpret/math32.h"
#include "interpret/types.h"

#define SW_TEMPLATE "interpret/unary_template.h"
#include "interpret/templates.h"

static sw_unary_fn *const *const tables[SW_TYPE_COUNT] = {
#define X(name, tag) [SW_##name] = table_##tag,
	SW_REAL_TYPES(X)
#undef X
};

sw_unary_fn *sw_find_unary(sw_opcode opcode, sw_type type)
{
	if (sw_type_kind_of(type) == SW_KIND_COMPLEX)
		return sw_find_complex_unary(opcode, type);
	return tables[type] ? tables[type][opcode] : NULL;
}

bool sw_prepare_unary(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	plan->impl.unary = sw_find_unary(op->opcode, sw_operand_type(program, op, 0));
	return plan->impl.unary != NULL;
}

sw_status sw_kernel_unary(sw_call *call, sw_error *err)
{
	int64_t n = sw_stride_of(call->in[0]) ? sw_shape_elements(call->shapes[0]) : 1;
	sw_status status = sw_result_in_place(call, 0, n, err);
	if (status == SW_OK)
		call->plan->impl.unary(n, sw_tensor_data(call->in[0]),
		                       sw_tensor_data(call->out[0]));
	return status;
}
