/*
 * onednn: matrix products by oneDNN, where it is installed. It multiplies f32 faster than OpenBLAS,
 * small and narrow matrices above all, and bf16 by the processor's own instructions. Loaded late,
 * as OpenBLAS is, and asked to use the calling thread only: the team shares out products.
 */
#ifndef SW_INTERPRET_ONEDNN_H
#define SW_INTERPRET_ONEDNN_H

#include "program/program.h"

/* c[m][n] = sum over k of a[m][k] b[k][n]; strides in elements; the columns of c
 * are contiguous. */
typedef struct sw_matrix_product {
	int64_t m, n, k;
	int64_t a_row,
		a_column; /* from one row of a to the next, and from one column to the next */
	int64_t b_row, b_column, c_row;
	sw_type result; /* bf16: the type of c, f32 or bf16 */
} sw_matrix_product;

/* Return false if the library is missing, or can't do it: the caller does it otherwise. For f32 one
 * stride of each matrix is 1. */
bool sw_onednn_multiply_f32(const sw_matrix_product *p, const void *a, const void *b, void *c);
/* Whether products of bf16 are quicker than in f32 after conversion: the processor has instructions
 * for them. Sums are in f32. */
bool sw_onednn_has_bf16(void);
bool sw_onednn_multiply_bf16(const sw_matrix_product *p, const void *a, const void *b, void *c);

#endif
