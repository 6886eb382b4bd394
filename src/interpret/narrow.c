/*
 * Narrow types: the kernel of an op sees its operands in a wider type, and its results are
 * converted back. f32 holds every f8 and f4 exactly and has more than twice their digits, so
 * rounding twice equals rounding once for the four arithmetic operations and roots. Integers wrap
 * alike in any width. Ops that look at single bits see the elements zero-extended, and the
 * arithmetic right shift sees them sign-extended.
 */
#include "interpret/kernel.h"

#include <string.h>

struct sw_widened {
	sw_kernel_fn *run;
	sw_tensor *in;
	sw_shape *shapes;
};

static bool is_narrow(sw_type type)
{
	return sw_wide_type(type) != type;
}

sw_type sw_wide_type(sw_type type)
{
	switch (sw_type_kind_of(type)) {
	case SW_KIND_FLOAT:
		return sw_type_bits(type) <= 8 ? SW_F32 : type;
	case SW_KIND_SIGNED:
		return sw_type_bits(type) < 8 ? SW_S8 : type;
	case SW_KIND_UNSIGNED:
		return sw_type_bits(type) < 8 ? SW_U8 : type;
	default:
		return type;
	}
}

static bool sees_bits(const sw_op *op)
{
	return op->opcode == SW_OP_POPCNT || op->opcode == SW_OP_COUNT_LEADING_ZEROS ||
	       op->opcode == SW_OP_SHIFT_RIGHT_LOGICAL;
}

static sw_type seen_type(const sw_op *op, sw_type type)
{
	if (!is_narrow(type) || sw_type_kind_of(type) == SW_KIND_FLOAT)
		return sw_wide_type(type);
	return sees_bits(op)                                ? SW_U8
	       : op->opcode == SW_OP_SHIFT_RIGHT_ARITHMETIC ? SW_S8
	                                                    : sw_wide_type(type);
}

sw_type sw_operand_type(const sw_program *program, const sw_op *op, uint32_t i)
{
	return seen_type(op, sw_value_shape(program, op->operands[i]).type);
}

sw_type sw_result_type(const sw_program *program, const sw_op *op, uint32_t i)
{
	return seen_type(op, sw_value_shape(program, op->first_result + i).type);
}

bool sw_op_is_narrow(const sw_program *program, const sw_op *op)
{
	bool narrow = false;
	for (uint32_t i = 0; i < op->n_operands; i++)
		narrow |= is_narrow(sw_value_shape(program, op->operands[i]).type);
	for (uint32_t i = 0; i < op->n_results; i++)
		narrow |= is_narrow(sw_value_shape(program, op->first_result + i).type);
	return narrow;
}

/* Convert the elements that x's buffer holds to another type; x may be a splat, or lanes. */
static sw_status converted(sw_interpreter *it, sw_tensor x, sw_type type, sw_tensor *out,
                           sw_error *err)
{
	sw_type from = x.shape.type;
	*out = sw_tensor_keep(x);
	if (from == type)
		return SW_OK;
	int64_t n = (int64_t)x.buffer->bytes / sw_type_bytes(from);
	sw_pool_drop(&it->pool, out);
	sw_status status =
		sw_scratch_new(it, (sw_shape){.type = type, .rank = 1, .dims = &n}, out, err);
	if (status == SW_OK)
		sw_convert_elements(from, sw_tensor_data(x), type, sw_tensor_data(*out), n);
	out->shape = x.shape;
	out->shape.type = type;
	return status;
}

/* Keep the lowest bits and extend them by zeros, or by copies of the uppermost of them. */
static void keep_bits(sw_tensor x, int bits, bool copies)
{
	uint8_t *u = sw_tensor_data(x);
	for (size_t i = 0; i < x.buffer->bytes; i++) {
		unsigned low = u[i] & ((1u << bits) - 1), sign = 1u << (bits - 1);
		u[i] = (uint8_t)(copies ? (low ^ sign) - sign : low);
	}
}

static sw_status widen_operand(sw_call *call, uint32_t i, sw_tensor *out, sw_error *err)
{
	sw_tensor x = call->in[i];
	x.shape.type = sw_value_shape(call->program, call->op->operands[i]).type;
	sw_status status =
		converted(call->interpreter, x, seen_type(call->op, x.shape.type), out, err);
	bool copies = call->op->opcode == SW_OP_SHIFT_RIGHT_ARITHMETIC && i == 0;
	if (status == SW_OK && (sees_bits(call->op) || copies) && out->buffer->bytes &&
	    is_narrow(x.shape.type))
		keep_bits(*out, sw_type_bits(x.shape.type), copies);
	return status;
}

/* Correct the number of leading zeros, which was counted in 8 bits, to the width of the type. */
static void count_in_type(sw_tensor x, int bits)
{
	uint8_t *u = sw_tensor_data(x);
	for (size_t i = 0; i < x.buffer->bytes; i++)
		u[i] = (uint8_t)(u[i] - (8 - bits));
}

static sw_status narrow_result(sw_call *call, uint32_t i, sw_error *err)
{
	sw_shape shape = call->shapes[i];
	sw_tensor wide = call->out[i];
	if (call->op->opcode == SW_OP_COUNT_LEADING_ZEROS)
		count_in_type(wide, sw_type_bits(shape.type));
	call->out[i].buffer = NULL;
	sw_status status = converted(call->interpreter, wide, shape.type, &call->out[i], err);
	sw_pool_drop(&call->interpreter->pool, &wide);
	call->out[i].shape = shape;
	return status;
}

static sw_status run_widened(sw_call *call, sw_error *err)
{
	const struct sw_widened *w = call->plan->widened;
	const sw_op *op = call->op;
	sw_call wide = *call;
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < op->n_operands; i++)
		w->in[i].buffer = NULL;
	for (uint32_t i = 0; status == SW_OK && i < op->n_operands; i++)
		status = widen_operand(call, i, &w->in[i], err);
	for (uint32_t i = 0; i < op->n_results; i++) {
		w->shapes[i] = call->shapes[i];
		w->shapes[i].type = seen_type(op, call->shapes[i].type);
	}
	wide.in = w->in;
	wide.placed = false;
	wide.shapes = w->shapes;
	if (status == SW_OK)
		status = w->run(&wide, err);
	for (uint32_t i = 0; i < op->n_operands; i++)
		sw_pool_drop(&call->interpreter->pool, &w->in[i]);
	for (uint32_t i = 0; status == SW_OK && i < op->n_results; i++)
		status = narrow_result(call, i, err);
	return status;
}

void sw_widen_kernel(sw_arena *arena, const sw_op *op, sw_plan_op *plan)
{
	struct sw_widened *w = SW_NEW(arena, struct sw_widened);
	w->run = plan->kernel.run;
	w->in = SW_NEW_N(arena, sw_tensor, op->n_operands + 1);
	w->shapes = SW_NEW_N(arena, sw_shape, op->n_results + 1);
	plan->widened = w;
	plan->kernel.run = run_widened;
}
