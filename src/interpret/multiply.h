/* The matrix product that dot and convolution share. */
#ifndef SW_INTERPRET_MULTIPLY_H
#define SW_INTERPRET_MULTIPLY_H

#include "program/program.h"

/* Return the type to multiply in: f32 for narrower floats, s8 and u8 for narrower integers,
 * otherwise the type itself. */
sw_type sw_type_to_multiply_in(sw_type result);
bool sw_can_multiply(sw_type type);
/* Compute c[m][n] = a[m][k] b[n][k]^T, all dense. All sizes are positive and below 2^31. */
void sw_multiply_dense(sw_type type, int64_t m, int64_t n, int64_t k, const void *a, const void *b,
                       void *c);

#endif
