/*
 * cholesky and triangular-solve with LAPACK and BLAS, and the custom calls that JAX emits for them
 * (and for the LU factors of solve, det and inv) on CPU. The matrices are row-major; the lower
 * triangle of a row-major matrix is, read column by column, the upper triangle of its transpose.
 */
#include <math.h>
#include <string.h>

#include "interpret/blas.h"
#include "interpret/kernel.h"
#include "interpret/linear_algebra.h"

static sw_factor_fn *find_factor(sw_type type)
{
	const sw_blas *blas = sw_blas_functions();
	return type == SW_F32   ? blas->spotrf
	       : type == SW_F64 ? blas->dpotrf
	       : type == SW_C64 ? blas->cpotrf
	                        : blas->zpotrf;
}

/* Return f32 for the narrower floats. */
static sw_type type_to_solve_in(sw_type type)
{
	return type == SW_F16 || type == SW_BF16 ? SW_F32 : sw_wide_type(type);
}

bool sw_matrices_of(sw_shape shape, sw_matrices *m)
{
	int64_t rows = shape.dims[shape.rank - 2], columns = shape.dims[shape.rank - 1];
	m->count = 1;
	for (int d = 0; d < shape.rank - 2; d++)
		m->count *= shape.dims[d];
	m->rows = (int)rows;
	m->columns = (int)columns;
	return rows <= INT32_MAX && columns <= INT32_MAX;
}

sw_status sw_matrix_too_large(const sw_call *call, sw_error *err)
{
	return sw_fail(err, SW_ERR_INPUT, "'%s': a matrix of more than 2^31 rows or columns",
	               call->op->name);
}

/* Copy an operand into a scratch tensor of the type to compute in. */
static sw_status own_copy(sw_call *call, uint32_t operand, sw_type type, sw_tensor *out,
                          sw_error *err)
{
	sw_tensor x = call->in[operand];
	sw_shape shape = x.shape;
	shape.type = type;
	sw_status status = sw_scratch_new(call->interpreter, shape, out, err);
	if (status == SW_OK)
		sw_convert_elements(x.shape.type, sw_tensor_data(x), type, sw_tensor_data(*out),
		                    sw_shape_elements(shape));
	return status;
}

/* ---- cholesky --------------------------------------------------------------------------- */

/* Set the other triangle to zero. */
static void clear_triangle(char *a, int n, bool upper, size_t bytes)
{
	for (int i = 0; i < n; i++) {
		char *row = a + (size_t)i * (size_t)n * bytes;
		if (upper)
			memset(row + ((size_t)i + 1) * bytes, 0, (size_t)(n - 1 - i) * bytes);
		else
			memset(row, 0, (size_t)i * bytes);
	}
}

static int factor(sw_type type, bool lower, int n, void *a)
{
	int info = 0, lda = SW_MAX(n, 1);
	find_factor(type)(lower ? "U" : "L", &n, a, &lda, &info);
	return info;
}

/* A matrix that is not positive definite gives NaN. */
sw_status sw_kernel_cholesky(sw_call *call, sw_error *err)
{
	sw_matrices m;
	sw_tensor a = {0};
	sw_type type = type_to_solve_in(call->shapes[0].type);
	bool lower = call->op->attrs->cholesky.lower;
	if (!sw_matrices_of(call->shapes[0], &m))
		return sw_matrix_too_large(call, err);
	sw_status status = own_copy(call, 0, type, &a, err);
	size_t bytes = (size_t)sw_type_bytes(type), each = (size_t)m.rows * (size_t)m.rows;
	for (int64_t i = 0; status == SW_OK && i < m.count; i++) {
		char *at = (char *)sw_tensor_data(a) + (size_t)i * each * bytes;
		int info = factor(type, lower, m.rows, at);
		clear_triangle(at, m.rows, lower, bytes);
		for (size_t e = 0; info && e < each; e++)
			sw_element_set(type, at, (int64_t)e, NAN);
	}
	if (status == SW_OK)
		status = sw_convert_tensor(call->interpreter, a, call->shapes[0].type,
		                           &call->out[0], err);
	sw_pool_drop(&call->interpreter->pool, &a);
	return status;
}

int64_t sw_workspace_cholesky(const sw_program *program, const sw_op *op, const sw_plan_op *plan)
{
	(void)plan;
	sw_shape shape = sw_value_shape(program, op->first_result);
	return sw_workspace_add(
		sw_workspace_elements(sw_shape_elements(shape), type_to_solve_in(shape.type)),
		sw_workspace_of(shape));
}

/* ---- triangular-solve ------------------------------------------------------------------- */

typedef struct triangle {
	bool left, lower, unit;
	CBLAS_TRANSPOSE transpose;
} triangle;

static void solve(sw_type type, const triangle *t, int rows, int columns, const void *a, void *b)
{
	CBLAS_SIDE side = t->left ? CblasLeft : CblasRight;
	CBLAS_UPLO uplo = t->lower ? CblasLower : CblasUpper;
	CBLAS_DIAG diagonal = t->unit ? CblasUnit : CblasNonUnit;
	int n = t->left ? rows : columns;
	const sw_blas *blas = sw_blas_functions();
	const double one[2] = {1, 0};
	const float one32[2] = {1, 0};
	if (type == SW_F32)
		blas->strsm(CblasRowMajor, side, uplo, t->transpose, diagonal, rows, columns, 1, a,
		            n, b, columns);
	else if (type == SW_F64)
		blas->dtrsm(CblasRowMajor, side, uplo, t->transpose, diagonal, rows, columns, 1, a,
		            n, b, columns);
	else if (type == SW_C64)
		blas->ctrsm(CblasRowMajor, side, uplo, t->transpose, diagonal, rows, columns, one32,
		            a, n, b, columns);
	else
		blas->ztrsm(CblasRowMajor, side, uplo, t->transpose, diagonal, rows, columns, one,
		            a, n, b, columns);
}

static sw_status solve_all(sw_call *call, const triangle *t, sw_error *err)
{
	sw_matrices ma, mb;
	sw_interpreter *it = call->interpreter;
	sw_tensor a = {0}, b = {0};
	sw_type type = type_to_solve_in(call->shapes[0].type);
	if (!sw_matrices_of(call->in[0].shape, &ma) || !sw_matrices_of(call->shapes[0], &mb))
		return sw_matrix_too_large(call, err);
	sw_status status = sw_convert_tensor(it, call->in[0], type, &a, err);
	if (status == SW_OK)
		status = own_copy(call, 1, type, &b, err);
	size_t bytes = (size_t)sw_type_bytes(type);
	for (int64_t i = 0; status == SW_OK && b.buffer->bytes && i < mb.count; i++)
		solve(type, t, mb.rows, mb.columns,
		      (char *)sw_tensor_data(a) +
		              (size_t)i * (size_t)ma.rows * (size_t)ma.rows * bytes,
		      (char *)sw_tensor_data(b) +
		              (size_t)i * (size_t)mb.rows * (size_t)mb.columns * bytes);
	if (status == SW_OK)
		status = sw_convert_tensor(it, b, call->shapes[0].type, &call->out[0], err);
	sw_pool_drop(&it->pool, &a);
	sw_pool_drop(&it->pool, &b);
	return status;
}

int64_t sw_workspace_triangular_solve(const sw_program *program, const sw_op *op,
                                      const sw_plan_op *plan)
{
	(void)plan;
	sw_shape a = sw_value_shape(program, op->operands[0]),
		 b = sw_value_shape(program, op->first_result);
	sw_type type = type_to_solve_in(b.type);
	int64_t workspace = sw_workspace_add(sw_workspace_convert(a, type), sw_workspace_of(b));
	return sw_workspace_add(workspace, sw_workspace_elements(sw_shape_elements(b), type));
}

sw_status sw_kernel_triangular_solve(sw_call *call, sw_error *err)
{
	const sw_attrs *attrs = call->op->attrs;
	const char *word = attrs->triangular_solve.transpose_a;
	bool transposes = word && strcmp(word, "TRANSPOSE") == 0,
	     adjoint = word && strcmp(word, "ADJOINT") == 0;
	triangle t = {.left = attrs->triangular_solve.left_side,
	              .lower = attrs->triangular_solve.lower,
	              .unit = attrs->triangular_solve.unit_diagonal,
	              .transpose = adjoint      ? CblasConjTrans
	                           : transposes ? CblasTrans
	                                        : CblasNoTrans};
	return solve_all(call, &t, err);
}

/* ---- custom calls ----------------------------------------------------------------------- */

bool sw_is_lapack(const sw_program *program, const sw_op *op, const char *name)
{
	static const char letters[SW_TYPE_COUNT] = {
		[SW_F32] = 's', [SW_F64] = 'd', [SW_C64] = 'c', [SW_C128] = 'z'};
	char target[32];
	char letter = op->n_operands ? letters[sw_value_shape(program, op->operands[0]).type] : 0;
	snprintf(target, sizeof target, "lapack_%c%s_ffi", letter, name);
	return letter && strcmp(op->attrs->custom.target, target) == 0;
}

char sw_lapack_letter(const sw_op *op, const char *name)
{
	for (const sw_extra *e = op->extras; e; e = e->next) {
		const char *at =
			strcmp(e->name, "backend_config") == 0 ? strstr(e->text, name) : NULL;
		int letter;
		if (at && sscanf(at + strlen(name), " = %d", &letter) == 1)
			return (char)letter;
	}
	return 0;
}

static bool is_square(sw_shape a)
{
	return a.rank >= 2 && a.dims[a.rank - 1] == a.dims[a.rank - 2];
}

/* Return true if result i is a list of `each` s32 numbers for each of `count` matrices. */
static bool is_list(const sw_program *program, const sw_op *op, uint32_t i, int64_t each,
                    int64_t count)
{
	sw_shape shape = sw_value_shape(program, op->first_result + i);
	return shape.type == SW_S32 && sw_shape_elements(shape) == each * count;
}

/* Return true if the op factorises matrices in place: its results are the matrices and `lists`
 * lists of s32, the last of which has one number per matrix. */
static bool is_factorisation(const sw_program *program, const sw_op *op, uint32_t lists,
                             sw_matrices *m)
{
	sw_shape a = sw_value_shape(program, op->operands[0]);
	return op->n_operands == 1 && op->n_results == 1 + lists && a.rank >= 2 &&
	       sw_matrices_of(a, m) &&
	       sw_shape_equal(a, sw_value_shape(program, op->first_result)) &&
	       is_list(program, op, lists, 1, m->count);
}

bool sw_prepare_lapack(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	sw_matrices m;
	(void)plan;
	if (sw_is_lapack(program, op, "potrf"))
		return is_factorisation(program, op, 1, &m) && m.rows == m.columns &&
		       sw_lapack_letter(op, "uplo");
	if (sw_is_lapack(program, op, "getrf"))
		return is_factorisation(program, op, 2, &m) &&
		       is_list(program, op, 1, SW_MIN(m.rows, m.columns), m.count);
	if (!sw_is_lapack(program, op, "trsm"))
		return sw_prepare_orthogonal(program, op);
	if (op->n_operands != 2 || op->n_results != 1)
		return false;
	sw_shape a = sw_value_shape(program, op->operands[0]),
		 b = sw_value_shape(program, op->operands[1]);
	bool fits = is_square(a) && a.type == b.type && a.rank == b.rank &&
	            sw_shape_equal(b, sw_value_shape(program, op->first_result));
	for (int d = 0; fits && d < a.rank - 2; d++)
		fits = a.dims[d] == b.dims[d];
	return fits &&
	       a.dims[a.rank - 1] == b.dims[b.rank - (sw_lapack_letter(op, "side") == 'L' ? 2 : 1)];
}

/* The other triangle is left unchanged; there is one info per matrix. */
static sw_status potrf(sw_call *call, sw_error *err)
{
	sw_matrices m;
	sw_shape shape = call->shapes[0];
	if (!sw_matrices_of(shape, &m))
		return sw_matrix_too_large(call, err);
	sw_status status = own_copy(call, 0, shape.type, &call->out[0], err);
	if (status == SW_OK)
		status = sw_result_new(call, 1, err);
	size_t each = (size_t)m.rows * (size_t)m.rows * (size_t)sw_type_bytes(shape.type);
	for (int64_t i = 0; status == SW_OK && i < m.count; i++)
		((int32_t *)sw_tensor_data(call->out[1]))[i] =
			factor(shape.type, sw_lapack_letter(call->op, "uplo") == 'L', m.rows,
		               (char *)sw_tensor_data(call->out[0]) + (size_t)i * each);
	return status;
}

static sw_lu_fn *find_lu(sw_type type)
{
	const sw_blas *blas = sw_blas_functions();
	return type == SW_F32   ? blas->sgetrf
	       : type == SW_F64 ? blas->dgetrf
	       : type == SW_C64 ? blas->cgetrf
	                        : blas->zgetrf;
}

void sw_transpose_matrix(size_t bytes, int rows, int columns, const void *from, void *to)
{
	sw_strided s = {.rank = 2, .dims = {rows, columns}, .src = {columns, 1}, .dst = {1, rows}};
	if (rows && columns)
		sw_strided_copy(&s, bytes, to, from);
}

/* LAPACK's matrices are column-major, so a transposed copy is factorised and transposed back.
 * Pivots count from 1. */
static sw_status getrf(sw_call *call, sw_error *err)
{
	sw_matrices m;
	sw_shape shape = call->shapes[0];
	sw_tensor columns = {0};
	sw_matrices_of(shape, &m);
	sw_status status = sw_scratch_new(call->interpreter, shape, &columns, err);
	for (uint32_t i = 0; status == SW_OK && i < 3; i++)
		status = sw_result_new(call, i, err);
	size_t bytes = (size_t)sw_type_bytes(shape.type),
	       each = (size_t)m.rows * (size_t)m.columns * bytes;
	int lda = SW_MAX(m.rows, 1);
	for (int64_t i = 0; status == SW_OK && i < m.count; i++) {
		int32_t *pivots =
			(int32_t *)sw_tensor_data(call->out[1]) + i * SW_MIN(m.rows, m.columns);
		char *a = (char *)sw_tensor_data(columns) + (size_t)i * each;
		sw_transpose_matrix(bytes, m.rows, m.columns,
		          (const char *)sw_tensor_data(call->in[0]) + (size_t)i * each, a);
		find_lu(shape.type)(&m.rows, &m.columns, a, &lda, pivots,
		                    (int32_t *)sw_tensor_data(call->out[2]) + i);
		sw_transpose_matrix(bytes, m.columns, m.rows, a,
		          (char *)sw_tensor_data(call->out[0]) + (size_t)i * each);
	}
	sw_pool_drop(&call->interpreter->pool, &columns);
	return status;
}

/* Count a copy in LAPACK's order. */
int64_t sw_workspace_lapack(const sw_program *program, const sw_op *op, const sw_plan_op *plan)
{
	if (sw_prepare_orthogonal(program, op))
		return sw_workspace_orthogonal(program, op);
	return op->n_operands == 2 ? sw_workspace_triangular_solve(program, op, plan)
	                           : sw_workspace_of(sw_value_shape(program, op->first_result));
}

sw_status sw_kernel_lapack(sw_call *call, sw_error *err)
{
	if (sw_is_lapack(call->program, call->op, "potrf"))
		return potrf(call, err);
	if (sw_is_lapack(call->program, call->op, "getrf"))
		return getrf(call, err);
	if (!sw_is_lapack(call->program, call->op, "trsm"))
		return sw_kernel_orthogonal(call, err);
	char transpose = sw_lapack_letter(call->op, "trans_x");
	triangle t = {.left = sw_lapack_letter(call->op, "side") == 'L',
	              .lower = sw_lapack_letter(call->op, "uplo") == 'L',
	              .unit = sw_lapack_letter(call->op, "diag") == 'U',
	              .transpose = transpose == 'C'   ? CblasConjTrans
	                           : transpose == 'T' ? CblasTrans
	                                              : CblasNoTrans};
	return solve_all(call, &t, err);
}
