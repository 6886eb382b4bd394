/*
 * calls: what the custom calls of a program compute. Private to src/frontend.
 *
 * There are two ways to know it. Targets of libraries whose ops this system has are EXPANDED: the
 * ops take the call's place, and nothing else needs to know that there was a call. For others a
 * SIGNATURE (program/call_signature.h) says how their dimensions correspond; it comes from a table
 * of this folder, or from a file of the user. docs/custom-calls.md lists both.
 */
#ifndef SW_FRONTEND_CALLS_H
#define SW_FRONTEND_CALLS_H

#include "frontend/frontend.h"

/* Give signatures to custom calls: first those of NAME.calls.yaml beside the program, if there is
 * such a file, then those of the table. Errors: bad file; a row that fits no op, or not its
 * shapes. */
sw_status sw_calls_describe(sw_program *program, const char *program_path, sw_error *err);

/* Replace the custom calls without a signature whose targets are known by ops. *program may become
 * another program. Errors: a call of a known target that cannot be understood keeps its place; no
 * error is made of it. */
sw_status sw_calls_expand(sw_program **program, sw_error *err);

/* One call while it is expanded. */
typedef struct sw_known_call {
	sw_program *out;
	int32_t c; /* computation of out */
	const sw_program *in;
	const sw_op *op;       /* of in */
	const sw_id *operands; /* of out */
	sw_id *results;        /* of out, to be filled in */
	json_t *config;        /* its backend_config; NULL: none, or no JSON */
} sw_known_call;
/* Write the ops that a call stands for. False: it is of a kind that is not understood, and stays a
 * call; what was written then has no reader. */
typedef bool sw_call_expansion(sw_known_call *call);
sw_call_expansion sw_call_product, sw_call_product_lt, sw_call_convolution,
	sw_call_convolution_bias, sw_call_attention, sw_call_attention_gradient, sw_call_threefry,
	sw_call_forward, sw_call_top_k, sw_call_cholesky;

static inline sw_shape sw_call_operand(const sw_known_call *call, uint32_t i)
{
	return sw_value_shape(call->out, call->operands[i]);
}
static inline sw_shape sw_call_result(const sw_known_call *call, uint32_t k)
{
	return sw_value_shape(call->in, call->op->first_result + k);
}
/* Return whether all operands and the first result are arrays of floats. */
bool sw_call_is_float(const sw_known_call *call);
/* Write an op of two operands; an array of one number; x in a type, where it has another. */
sw_id sw_call_binary(const sw_known_call *call, sw_opcode opcode, sw_id x, sw_id y);
sw_id sw_call_filled(const sw_known_call *call, sw_shape shape, double value);
sw_id sw_call_converted(const sw_known_call *call, sw_id x, sw_type type);
/* Write zeros of a result's shape: of a workspace, which nobody reads. */
sw_id sw_call_zeros(const sw_known_call *call, uint32_t result);
/* Return a number of the configuration, which may stand there as a text; `otherwise` if it is
 * absent. */
double sw_call_number(const json_t *config, const char *key, double otherwise);
/* Read a list of dimensions, [..] of numbers or texts, below rank. */
bool sw_call_dims(sw_program *out, const json_t *config, const char *key, int32_t rank,
                  sw_ints *dims);
/* Read dot dimension numbers as XLA's configurations have them. */
bool sw_call_dot(const sw_known_call *call, const json_t *numbers, sw_shape lhs, sw_shape rhs,
                 sw_attrs *attrs);

#endif
