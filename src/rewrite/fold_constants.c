/* What follows from constants, computed by the interpreter as it would be in the run: numbers, and
 * short lists, as of places that are counted, put together and moved before something is gathered
 * there. */
#include "rewrite/internal.h"

#include <string.h>

#include "frontend/sharding.h"
#include "interpret/interpret.h"
#include "program/shapes.h"

/* Longer lists are no places that a program writes out. */
#define MAX_ELEMENTS 4096

static bool is_short(sw_shape shape)
{
	int64_t elements = sw_shape_elements(shape);
	return !shape.bounded && elements > 0 && elements <= MAX_ELEMENTS;
}

/* Return whether the op gives whole numbers exactly, of constants, one of which is a list that is
 * written out; what is made of single numbers alone stays a broadcast. */
static bool is_list(const sw_program *out, const sw_program *in, const sw_op *op,
                    const sw_id *operands)
{
	sw_opcode opcode = (sw_opcode)op->opcode;
	bool list = false;
	if (op->n_results != 1 || op->n_operands == 0 || opcode == SW_OP_BROADCAST ||
	    sw_op_sharding(op) ||
	    !(sw_opcode_is_elementwise(opcode) || sw_opcode_class(opcode) == SW_CLASS_SHAPE))
		return false;
	sw_shape shape = sw_value_shape(in, op->first_result);
	if (!is_short(shape) || !sw_is_whole(shape.type))
		return false;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_shape operand = sw_value_shape(out, operands[k]);
		const sw_op *constant = sw_constant_of(out, operands[k]);
		if (!constant || !is_short(operand) || !sw_is_whole(operand.type))
			return false;
		list |= constant->attrs->constant.shape.rank > 0;
	}
	return list;
}

/* Return a program that has one result: the op, of constants; of single numbers, if `single`. */
static sw_program *program_of(const sw_program *out, const sw_program *in, const sw_op *op,
                              const sw_id *operands, bool single)
{
	sw_program *program = sw_program_new("constant");
	int32_t c = sw_build_computation(program, "constant");
	sw_id *x = SW_NEW_N(&program->arena, sw_id, op->n_operands), result = SW_NO_ID;
	sw_shape shape = sw_value_shape(in, op->first_result);
	sw_error err = {0};
	for (uint32_t k = 0; k < op->n_operands; k++) {
		const sw_op *constant = sw_constant_of(out, operands[k]);
		const sw_op *made = sw_op_at(out, out->values.data[operands[k]].op);
		x[k] = sw_build_copy_op(program, c, out, (sw_id)(constant - out->ops.data), NULL,
		                        NULL);
		if (made != constant && !single)
			x[k] = sw_build_copy_op(program, c, out, (sw_id)(made - out->ops.data),
			                        &x[k], NULL);
	}
	shape = single ? (sw_shape){.type = shape.type}
	               : sw_build_shape(program, shape.type, shape.dims, shape.rank);
	if (sw_build_op_like(program, c, op, op->name, x, shape, &result, &err) == SW_OK) {
		sw_build_results(program, c, &result, 1, false);
		program->entry = c;
		if (sw_program_verify(program, &err) == SW_OK)
			return program;
	}
	sw_program_free(program);
	return NULL;
}

bool sw_fold_by_running(const sw_program *out, const sw_program *in, const sw_op *op,
                        const sw_id *operands, bool single, void *elements)
{
	sw_program *program = program_of(out, in, op, operands, single);
	sw_interpreter *interpreter = NULL;
	sw_interpret_options options = {0};
	sw_tensor result = {0};
	sw_error err = {0};
	if (!program)
		return false;
	sw_status status = sw_interpreter_new(program, &options, &interpreter, &err);
	if (status == SW_OK)
		status = sw_interpret(interpreter, NULL, 0, &result, 1, &err);
	if (status == SW_OK) {
		memcpy(elements, sw_tensor_data(result), (size_t)sw_shape_bytes(result.shape));
		sw_tensor_drop(&result);
	}
	if (interpreter)
		sw_interpreter_free(interpreter);
	sw_program_free(program);
	return status == SW_OK;
}

bool sw_fold_array(sw_program *out, const sw_program *in, const sw_op *op, const sw_id *operands,
                   sw_literal *literal)
{
	if (!is_list(out, in, op, operands))
		return false;
	sw_shape shape = sw_value_shape(in, op->first_result);
	void *elements = sw_arena_alloc(&out->arena, (size_t)sw_shape_bytes(shape) + 1);
	literal->shape = sw_build_shape(out, shape.type, shape.dims, shape.rank);
	literal->data = elements;
	return sw_fold_by_running(out, in, op, operands, false, elements);
}
