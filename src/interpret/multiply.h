/* The matrix product that dot and convolution share. */
#ifndef SW_INTERPRET_MULTIPLY_H
#define SW_INTERPRET_MULTIPLY_H

#include "program/program.h"

/* Return the type to multiply in: f32 for narrower floats, s8 and u8 for narrower integers,
 * otherwise the type itself. */
sw_type sw_type_to_multiply_in(sw_type result);
bool sw_can_multiply(sw_type type);
/* A matrix whose element (row, column) is at row * outer + column * inner, in elements. */
typedef struct sw_matrix {
	const void *data;
	int64_t outer, inner;
} sw_matrix;
/* Can a matrix of n rows and k columns be multiplied where it lies? */
bool sw_matrix_is_readable(const sw_matrix *matrix, int64_t n, int64_t k);
/* Compute c[m][n] = a[m][k] b[n][k]^T, with a and c dense, and b readable. All sizes are positive
 * and below 2^31. */
void sw_multiply_rows(sw_type type, int64_t m, int64_t n, int64_t k, const void *a,
                      const sw_matrix *b, void *c);

#endif
