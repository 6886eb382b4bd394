/*
 * The custom calls that JAX emits for QR factors (geqrf, and orgqr for Q) and for eigenvalues of
 * symmetric matrices (syevd) on CPU, of f32 and f64, with LAPACK. Its matrices are column-major, so
 * that each is transposed, computed on, and transposed back.
 */
#include <string.h>

#include "interpret/blas.h"
#include "interpret/linear_algebra.h"

/* Columns that LAPACK works on together. */
enum { BLOCK = 32 };

typedef enum routine { NEITHER, GEQRF, ORGQR, SYEVD } routine;

static routine routine_of(const sw_program *program, const sw_op *op)
{
	sw_type type = op->n_operands ? sw_value_shape(program, op->operands[0]).type : SW_PRED;
	if (type != SW_F32 && type != SW_F64)
		return NEITHER;
	return sw_is_lapack(program, op, "geqrf")   ? GEQRF
	       : sw_is_lapack(program, op, "orgqr") ? ORGQR
	       : sw_is_lapack(program, op, "syevd") ? SYEVD
	                                            : NEITHER;
}

/* Return the length of a list of numbers for each matrix; -1 if it is none. */
static int64_t length_of(const sw_program *program, sw_id value, sw_shape a)
{
	sw_shape shape = sw_value_shape(program, value);
	if (shape.type != a.type || shape.rank != a.rank - 1)
		return -1;
	for (int32_t d = 0; d < a.rank - 2; d++)
		if (shape.dims[d] != a.dims[d])
			return -1;
	return shape.dims[shape.rank - 1];
}

static bool is_info(const sw_program *program, sw_id value, int64_t count)
{
	sw_shape shape = sw_value_shape(program, value);
	return shape.type == SW_S32 && sw_shape_elements(shape) == count;
}

bool sw_prepare_orthogonal(const sw_program *program, const sw_op *op)
{
	routine kind = routine_of(program, op);
	sw_matrices m;
	if (kind == NEITHER || op->n_operands != (kind == ORGQR ? 2 : 1) ||
	    op->n_results != (kind == GEQRF   ? 2
	                      : kind == ORGQR ? 1
	                                      : 3))
		return false;
	sw_shape a = sw_value_shape(program, op->operands[0]);
	if (a.rank < 2 || !sw_matrices_of(a, &m) ||
	    !sw_shape_equal(a, sw_value_shape(program, op->first_result)))
		return false;
	if (kind == GEQRF)
		return length_of(program, op->first_result + 1, a) == SW_MIN(m.rows, m.columns);
	if (kind == ORGQR)
		return m.columns <= m.rows && length_of(program, op->operands[1], a) >= 0 &&
		       length_of(program, op->operands[1], a) <= m.columns;
	return m.rows == m.columns && length_of(program, op->first_result + 1, a) == m.rows &&
	       is_info(program, op->first_result + 2, m.count) && sw_lapack_letter(op, "uplo") &&
	       sw_lapack_letter(op, "mode");
}

/* ---- work memory ------------------------------------------------------------------------ */

/* The sizes of LAPACK's work memory: numbers of the type, and integers. */
typedef struct work_sizes {
	int64_t numbers, integers;
} work_sizes;

static work_sizes work_of(routine kind, const sw_matrices *m)
{
	int64_t n = m->columns;
	if (kind == SYEVD)
		return (work_sizes){1 + 6 * n + 2 * n * n, 3 + 5 * n};
	return (work_sizes){SW_MAX(n, 1) * BLOCK, 0};
}

static sw_shape list_of(int64_t *length, sw_type type)
{
	return (sw_shape){.type = type, .rank = 1, .dims = length};
}

int64_t sw_workspace_orthogonal(const sw_program *program, const sw_op *op)
{
	sw_shape a = sw_value_shape(program, op->first_result);
	sw_matrices m;
	sw_matrices_of(a, &m);
	work_sizes sizes = work_of(routine_of(program, op), &m);
	int64_t space = sw_workspace_elements((int64_t)m.rows * m.columns, a.type);
	space = sw_workspace_add(space, sw_workspace_elements(sizes.numbers, a.type));
	return sizes.integers
	               ? sw_workspace_add(space, sw_workspace_elements(sizes.integers, SW_S32))
	               : space;
}

/* ---- the calls -------------------------------------------------------------------------- */

typedef struct orthogonal_work {
	routine kind;
	sw_type type;
	sw_matrices m;
	int lda, n_numbers, n_integers, n_reflectors;
	sw_tensor matrix, numbers, integers; /* scratch */
} orthogonal_work;

static sw_status begin(sw_call *call, orthogonal_work *w, sw_error *err)
{
	sw_shape a = call->shapes[0];
	*w = (orthogonal_work){.kind = routine_of(call->program, call->op), .type = a.type};
	if (!sw_matrices_of(a, &w->m))
		return sw_matrix_too_large(call, err);
	work_sizes sizes = work_of(w->kind, &w->m);
	int64_t elements = (int64_t)w->m.rows * w->m.columns;
	if (sizes.numbers > INT32_MAX)
		return sw_matrix_too_large(call, err);
	w->lda = SW_MAX(w->m.rows, 1);
	w->n_numbers = (int)sizes.numbers;
	w->n_integers = (int)sizes.integers;
	if (w->kind == ORGQR)
		w->n_reflectors = (int)call->in[1].shape.dims[a.rank - 2];
	sw_status status =
		sw_scratch_new(call->interpreter, list_of(&elements, w->type), &w->matrix, err);
	if (status == SW_OK)
		status = sw_scratch_new(call->interpreter, list_of(&sizes.numbers, w->type),
		                        &w->numbers, err);
	if (status == SW_OK && sizes.integers)
		status = sw_scratch_new(call->interpreter, list_of(&sizes.integers, SW_S32),
		                        &w->integers, err);
	for (uint32_t i = 0; status == SW_OK && i < call->op->n_results; i++)
		status = sw_result_new(call, i, err);
	return status;
}

static void end(sw_call *call, orthogonal_work *w)
{
	sw_pool_drop(&call->interpreter->pool, &w->matrix);
	sw_pool_drop(&call->interpreter->pool, &w->numbers);
	sw_pool_drop(&call->interpreter->pool, &w->integers);
}

/* Return matrix i of the list that a tensor of as many lists has. */
static void *list_at(const orthogonal_work *w, sw_tensor tensor, int64_t i)
{
	int64_t length = tensor.shape.dims[tensor.shape.rank - 1];
	return (char *)sw_tensor_data(tensor) +
	       (size_t)(i * length) * (size_t)sw_type_bytes(w->type);
}

static void compute(sw_call *call, orthogonal_work *w, int64_t i)
{
	const sw_blas *blas = sw_blas_functions();
	bool wide = w->type == SW_F64;
	int info = 0;
	void *a = sw_tensor_data(w->matrix), *numbers = sw_tensor_data(w->numbers);
	if (w->kind == GEQRF) {
		(wide ? blas->dgeqrf : blas->sgeqrf)(&w->m.rows, &w->m.columns, a, &w->lda,
		                                     list_at(w, call->out[1], i), numbers,
		                                     &w->n_numbers, &info);
	} else if (w->kind == ORGQR) {
		(wide ? blas->dorgqr : blas->sorgqr)(&w->m.rows, &w->m.columns, &w->n_reflectors, a,
		                                     &w->lda, list_at(w, call->in[1], i), numbers,
		                                     &w->n_numbers, &info);
	} else {
		char mode = sw_lapack_letter(call->op, "mode"),
		     uplo = sw_lapack_letter(call->op, "uplo");
		(wide ? blas->dsyevd : blas->ssyevd)(
			&mode, &uplo, &w->m.rows, a, &w->lda, list_at(w, call->out[1], i), numbers,
			&w->n_numbers, sw_tensor_data(w->integers), &w->n_integers, &info);
		((int32_t *)sw_tensor_data(call->out[2]))[i] = info;
	}
}

sw_status sw_kernel_orthogonal(sw_call *call, sw_error *err)
{
	orthogonal_work w;
	sw_status status = begin(call, &w, err);
	size_t bytes = (size_t)sw_type_bytes(w.type),
	       each = (size_t)w.m.rows * (size_t)w.m.columns * bytes;
	for (int64_t i = 0; status == SW_OK && each > 0 && i < w.m.count; i++) {
		sw_transpose_matrix(bytes, w.m.rows, w.m.columns,
		                    (const char *)sw_tensor_data(call->in[0]) + (size_t)i * each,
		                    sw_tensor_data(w.matrix));
		compute(call, &w, i);
		sw_transpose_matrix(bytes, w.m.columns, w.m.rows, sw_tensor_data(w.matrix),
		                    (char *)sw_tensor_data(call->out[0]) + (size_t)i * each);
	}
	end(call, &w);
	return status;
}
