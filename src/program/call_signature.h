/*
 * The SIGNATURE of a custom call: a line of text that says how the dimensions of its operands and
 * results correspond, which of them may be divided among devices, and what the call takes.
 *
 *     b s h d, b t h d, b t h d -> b s h d, b h s; split b h; flops 4*b*h*s*t*d; workspace 4*b*s
 *
 * A dimension is a NAME, a number, `_` (whatever it is, it stays whole), or a product of names,
 * major to minor, in parentheses: (h d). One name has one size throughout. `...` in front stands
 * for any number of dimensions. An array without dimensions is `()`. After the arrays:
 *
 *     split NAMES       the call computes each part of these alone; all results have them. `...`:
 *                       all dimensions that it stands for
 *     sum NAMES         parts of these give results of which the sum is meant; no result has them
 *     flops EXPRESSION  floating-point operations, of numbers, the sizes of names, and `...`, the
 *                       product of all that it stands for: + - * / and parentheses
 *     workspace EXPRESSION  bytes that the call needs beside its operands and results
 *
 * All other names stay whole. The text is an attribute of the op, so that a printed program has it;
 * its sizes are those of the op's own shapes, so that it holds for a part as for the whole.
 */
#ifndef SW_CALL_SIGNATURE_H
#define SW_CALL_SIGNATURE_H

#include "program/program.h"

#define SW_CALL_NAMES 32    /* of a signature, those of `...` included */
#define SW_CALL_DIM_NAMES 4 /* of a product */

typedef enum sw_call_use { SW_CALL_WHOLE, SW_CALL_SPLIT, SW_CALL_SUM } sw_call_use;

typedef struct sw_call_name {
	const char *text; /* not terminated */
	int32_t length;
	int64_t size;
	sw_call_use use;
} sw_call_name;

/* A dimension: its names, major to minor; none where it stays whole. */
typedef struct sw_call_dim {
	int32_t n;
	int32_t names[SW_CALL_DIM_NAMES];
} sw_call_dim;

typedef struct sw_call_signature {
	int32_t n_names;
	sw_call_name names[SW_CALL_NAMES];
	const sw_call_dim **arrays; /* per operand, then per result: [rank] */
	double flops, workspace;    /* 0 where the text does not say */
} sw_call_signature;

/* Read a signature for operands and results of these shapes. Everything lives in `arena`, but for
 * names, which point into `text`. Errors: the text is no signature, or contradicts the shapes (the
 * message says where; it names neither file nor op). O(text + dimensions). */
sw_status sw_call_signature_read(const char *text, const sw_shape *operands, uint32_t n_operands,
                                 const sw_shape *results, uint32_t n_results, sw_arena *arena,
                                 sw_call_signature *signature, sw_error *err);

/* The same for the shapes of an op. */
sw_status sw_call_signature_fit(const sw_program *program, const sw_op *op, const char *text,
                                sw_arena *arena, sw_call_signature *signature, sw_error *err);

/* The same of an op of a verified program, whose signature is known to be right; false if the op is
 * no custom call, or has none. */
bool sw_call_signature_of(const sw_program *program, const sw_op *op, sw_arena *arena,
                          sw_call_signature *signature);

/* Return the operations, and the bytes of workspace, that an op's signature states: 0 without one.
 */
double sw_call_flops(const sw_program *program, const sw_op *op);
double sw_call_workspace(const sw_program *program, const sw_op *op);

#endif
