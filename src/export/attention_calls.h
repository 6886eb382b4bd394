/*
 * attention_calls: attention in plain ops becomes calls of cuDNN, as
 * jax.nn.dot_product_attention(implementation="cudnn") writes them.
 *
 * The calls are those that the reader takes for ops (frontend/call_attention.c), so that a module
 * can be read back.
 */
#ifndef SW_EXPORT_ATTENTION_CALLS_H
#define SW_EXPORT_ATTENTION_CALLS_H

#include "program/program.h"

/* The extra of a custom call that has the attributes of stablehlo.custom_call, as text. */
#define SW_STABLE_CALL_ATTRIBUTES "stablehlo"

/* Which numbers a call may have. cuDNN has no attention of f32; the reader has, so that tests
 * compare with more digits. */
typedef enum sw_call_numbers { SW_CALLS_OF_HALVES, SW_CALLS_OF_FLOATS } sw_call_numbers;

/* Write the program in which each attention whose formula is known (fuse/attention_formula.h) is a
 * call each way, in loops too: of heads of at most 128 dimensions, a multiple of 8, with an even
 * number of queries and keys. What it computed before is computed by nobody any more, if nobody
 * else reads it. n_calls: how many were written. The caller owns *out. O(ops). */
sw_status sw_attention_calls(const sw_program *in, sw_call_numbers numbers, sw_program **out,
                             uint32_t *n_calls, sw_error *err);

#endif
