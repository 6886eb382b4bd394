/*
 * blas: the library of matrix products, loaded when a program that multiplies is prepared.
 *
 * The library is OpenBLAS. Linked in the usual way it would start a thread per core in every
 * process, each with 128 MiB of work memory, and ask for refused memory again without end. So it is
 * loaded late, and what its calls will need is probed before anything is computed: a process that
 * multiplies nothing has no such thread, and a refusal is an error message.
 */
#ifndef SW_INTERPRET_BLAS_H
#define SW_INTERPRET_BLAS_H

#include <cblas.h>

#include "program/program.h"

/* LAPACK's factors, which come with the library. Matrices are column-major; *info > 0: the leading
 * minor of that order is not positive. */
typedef void sw_factor_fn(const char *uplo, const int *n, void *a, const int *lda, int *info);
typedef void sw_lu_fn(const int *m, const int *n, void *a, const int *lda, int *pivots, int *info);
typedef void sw_qr_fn(const int *m, const int *n, void *a, const int *lda, void *tau, void *work,
                      const int *n_work, int *info);
typedef void sw_q_fn(const int *m, const int *n, const int *k, void *a, const int *lda,
                     const void *tau, void *work, const int *n_work, int *info);
typedef void sw_eigen_fn(const char *mode, const char *uplo, const int *n, void *a, const int *lda,
                         void *values, void *work, const int *n_work, int *integers,
                         const int *n_integers, int *info);

/* The functions of the library that kernels call, under their names without "cblas_" and "_". */
typedef struct sw_blas {
	__typeof__(cblas_sgemm) *sgemm;
	__typeof__(cblas_dgemm) *dgemm;
	__typeof__(cblas_cgemm) *cgemm;
	__typeof__(cblas_zgemm) *zgemm;
	__typeof__(cblas_strsm) *strsm;
	__typeof__(cblas_dtrsm) *dtrsm;
	__typeof__(cblas_ctrsm) *ctrsm;
	__typeof__(cblas_ztrsm) *ztrsm;
	sw_factor_fn *spotrf, *dpotrf, *cpotrf, *zpotrf;
	sw_lu_fn *sgetrf, *dgetrf, *cgetrf, *zgetrf;
	sw_qr_fn *sgeqrf, *dgeqrf;
	sw_q_fn *sorgqr, *dorgqr;
	sw_eigen_fn *ssyevd, *dsyevd;
} sw_blas;

/* Does an op of this program call the library? */
bool sw_blas_needed(const sw_program *program);
/* Load the library and set work memory aside for one more caller, who computes with up to `threads`
 * threads (0: as many as now). SW_ERR_IO if the library is missing or the system refuses memory.
 * Thread-safe. sw_blas_release gives one caller's share back. */
sw_status sw_blas_reserve(int threads, sw_error *err);
void sw_blas_release(void);
/* Compute with `threads` threads from now on, in the whole process: a caller has reserved them.
 * Fewer are used where the system refuses threads. */
void sw_blas_set_threads(int threads);
/* The functions. A caller has reserved its share. */
const sw_blas *sw_blas_functions(void);

#endif
