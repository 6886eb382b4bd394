/*
 * linear_algebra: what the kernels share that call LAPACK.
 */
#ifndef SW_INTERPRET_LINEAR_ALGEBRA_H
#define SW_INTERPRET_LINEAR_ALGEBRA_H

#include "interpret/kernel.h"

typedef struct sw_matrices {
	int64_t count;
	int rows, columns;
} sw_matrices;

/* Count the matrices and their rows and columns. Return false if they exceed the integers of
 * BLAS. */
bool sw_matrices_of(sw_shape shape, sw_matrices *m);
sw_status sw_matrix_too_large(const sw_call *call, sw_error *err);
/* Swap the dimensions of one matrix; `bytes` is the size of an element. */
void sw_transpose_matrix(size_t bytes, int rows, int columns, const void *from, void *to);

/* Is this a custom call of lapack_X<name>_ffi, where X is the letter of the element type? */
bool sw_is_lapack(const sw_program *program, const sw_op *op, const char *name);
/* Read LAPACK's letter from the backend_config (`uplo = 76 : ui8`); 0 if it is absent. */
char sw_lapack_letter(const sw_op *op, const char *name);

/* orthogonal.c: geqrf, orgqr and syevd, of f32 and f64. */
bool sw_prepare_orthogonal(const sw_program *program, const sw_op *op);
int64_t sw_workspace_orthogonal(const sw_program *program, const sw_op *op);
sw_status sw_kernel_orthogonal(sw_call *call, sw_error *err);

#endif
