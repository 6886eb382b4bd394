/* Elementwise ops of two operands, including compare: one table per type, generated from
 * binary_template.h. */
#include "interpret/vector.h"

#include <math.h>

#include "interpret/kernel.h"
#include "interpret/types.h"

#define SW_TEMPLATE "interpret/binary_template.h"
#include "interpret/templates.h"

static sw_binary_fn *const *const tables[SW_TYPE_COUNT] = {
#define X(name, tag) [SW_##name] = table_##tag,
	SW_REAL_TYPES(X)
#undef X
};

static sw_binary_fn *const (*const compare_tables[SW_TYPE_COUNT])[6] = {
#define X(name, tag) [SW_##name] = compare_table_##tag,
	SW_REAL_TYPES(X)
#undef X
};

sw_binary_fn *sw_find_binary(sw_opcode opcode, sw_type type)
{
	if (sw_type_kind_of(type) == SW_KIND_COMPLEX)
		return sw_find_complex_binary(opcode, type);
	return tables[type] ? tables[type][opcode] : NULL;
}

sw_binary_fn *sw_find_compare(sw_direction direction, bool total_order, sw_type type)
{
	return compare_tables[type] ? compare_tables[type][total_order][direction] : NULL;
}

sw_opcode sw_monoid_opcode(sw_monoid monoid)
{
	static const sw_opcode opcodes[] = {
		[SW_MONOID_NONE] = SW_OP_UNKNOWN,
		[SW_MONOID_SUM] = SW_OP_ADD,
		[SW_MONOID_PRODUCT] = SW_OP_MULTIPLY,
		[SW_MONOID_MAX] = SW_OP_MAXIMUM,
		[SW_MONOID_MIN] = SW_OP_MINIMUM,
		[SW_MONOID_AND] = SW_OP_AND,
		[SW_MONOID_OR] = SW_OP_OR,
	};
	return opcodes[monoid];
}

bool sw_prepare_binary(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	plan->impl.binary = sw_find_binary(op->opcode, sw_operand_type(program, op, 0));
	return plan->impl.binary != NULL;
}

bool sw_prepare_compare(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	const char *type = op->attrs->compare.type;
	bool total = type && strcmp(type, "TOTALORDER") == 0;
	sw_type operand = sw_operand_type(program, op, 0);
	plan->impl.binary = sw_find_compare(op->attrs->compare.direction, total, operand);
	if (!plan->impl.binary && op->attrs->compare.direction <= SW_NE)
		plan->impl.binary = sw_find_complex_binary(SW_OP_COMPARE, operand);
	return plan->impl.binary != NULL;
}

static sw_status run(sw_call *call, sw_error *err)
{
	int x_stride = sw_stride_of(call->in[0]), y_stride = sw_stride_of(call->in[1]);
	int64_t n = x_stride || y_stride ? sw_shape_elements(call->shapes[0]) : 1;
	sw_status status = sw_result_in_place(call, 0, n, err);
	if (status == SW_OK)
		call->plan->impl.binary(n, sw_tensor_data(call->in[0]), x_stride,
		                        sw_tensor_data(call->in[1]), y_stride,
		                        sw_tensor_data(call->out[0]));
	return status;
}

sw_status sw_kernel_binary(sw_call *call, sw_error *err)
{
	return run(call, err);
}

/* Complex types have a loop for EQ only; NE is its negation. */
sw_status sw_kernel_compare(sw_call *call, sw_error *err)
{
	sw_status status = run(call, err);
	bool complex_type = sw_type_kind_of(call->in[0].shape.type) == SW_KIND_COMPLEX;
	if (status == SW_OK && complex_type && call->op->attrs->compare.direction == SW_NE) {
		uint8_t *r = sw_tensor_data(call->out[0]);
		for (size_t i = 0; i < call->out[0].buffer->bytes; i++)
			r[i] = !r[i];
	}
	return status;
}
