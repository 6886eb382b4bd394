/*
 * dot: batched matrix products with arbitrary dimension numbers. f32, f64 and complex types use
 * CBLAS, bf16 and f16 are computed in f32, integers in plain loops of the result's type. Of bf16
 * the processor's matrix tiles are used where it has them (bf16_product.h).
 *
 * Each operand is viewed as [batch][rows][columns] with one stride for all rows and one for all
 * columns, if the order of its dimensions allows it; BLAS reads it in place if one of these strides
 * is 1. Otherwise the operand is transposed into that form first.
 */
#include "interpret/vector.h"

#include <string.h>

#include "interpret/bf16_product.h"
#include "interpret/blas.h"
#include "interpret/kernel.h"
#include "interpret/multiply.h"
#include "interpret/team.h"

/* One operand: batch dimensions, then outer ones (m or n), then inner ones (contracted). */
typedef struct side {
	const char *data;
	sw_tensor owned; /* the converted or transposed copy */
	int batch_rank;
	int64_t batch_stride[SW_MAX_RANK];
	int64_t outer, inner, outer_stride, inner_stride;
} side;

typedef struct product {
	sw_type type; /* of the operands and of the result; sums are in f32 at least */
	size_t bytes;
	int batch_rank;
	int64_t batch_dims[SW_MAX_RANK], batches, m, n, k;
	int64_t c_row; /* from one row of the result to the next */
	bool adds;     /* to what is in the result */
	side a, b;
	char *c;
} product;

typedef void multiply_fn(const product *p, const char *a, const char *b, char *c);

/* ---- the inner products ----------------------------------------------------------------- */

static int as_int(int64_t x)
{
	return (int)SW_MAX(x, 1);
}

/* BLAS requires one stride to be 1 and the other to be at least the extent of that dimension. */
static bool blas_reads(const side *s, bool *transposed, int *leading)
{
	if (s->inner_stride == 1 || s->inner == 1) {
		*transposed = false;
		*leading = as_int(s->outer == 1 ? s->inner : s->outer_stride);
		if (s->outer == 1 || s->outer_stride >= s->inner)
			return true;
	}
	if (s->outer_stride == 1 || s->outer == 1) {
		*transposed = true;
		*leading = as_int(s->inner == 1 ? s->outer : s->inner_stride);
		return s->inner == 1 || s->inner_stride >= s->outer;
	}
	return false;
}

/* a is m x k (its rows are outer) and b is stored as n x k, so the untransposed b is a transposed
 * operand for BLAS. */
#define BLAS(name, gemm, ONE, ZERO)                                                              \
	static void name(const product *p, const char *a, const char *b, char *c)                  \
	{                                                                                          \
		bool at = false, bt = false;                                                       \
		int lda = 1, ldb = 1;                                                              \
		blas_reads(&p->a, &at, &lda);                                                      \
		blas_reads(&p->b, &bt, &ldb);                                                      \
		sw_blas_functions()->gemm(CblasRowMajor, at ? CblasTrans : CblasNoTrans,           \
		                          bt ? CblasNoTrans : CblasTrans, as_int(p->m),            \
		                          as_int(p->n), as_int(p->k), ONE, (const void *)a, lda,   \
		                          (const void *)b, ldb, p->adds ? ONE : ZERO, (void *)c,   \
		                          as_int(p->c_row));                                       \
	}
static const float one_c64[2] = {1, 0}, zero_c64[2] = {0, 0};
static const double one_c128[2] = {1, 0}, zero_c128[2] = {0, 0};
BLAS(multiply_by_blas, sgemm, 1.0f, 0.0f)
BLAS(multiply_f64, dgemm, 1.0, 0.0)
BLAS(multiply_c64, cgemm, one_c64, zero_c64)
BLAS(multiply_c128, zgemm, one_c128, zero_c128)

/* A product that costs less than a call of a library. b's rows are contiguous. */
SW_CLONES static void multiply_little(const product *p, const float *a, const float *b, float *c)
{
	const int64_t n = p->n, k = p->k;
	for (int64_t i = 0; i < p->m; i++) {
		float *r = c + i * p->c_row;
		for (int64_t j = 0; j < n && !p->adds; j++)
			r[j] = a[i * p->a.outer_stride] * b[j];
		for (int64_t l = p->adds ? 0 : 1; l < k; l++) {
			const float x = a[i * p->a.outer_stride + l * p->a.inner_stride];
			const float *y = b + l * p->b.inner_stride;
			for (int64_t j = 0; j < n; j++)
				r[j] += x * y[j];
		}
	}
}

/* Multiply-adds of a product for which a library's call is worth its microsecond. */
enum { LITTLE = 4096 };

static void multiply_f32(const product *p, const char *a, const char *b, char *c)
{
	bool little = p->b.outer_stride == 1 && (p->k == 1 || p->m * p->n * p->k <= LITTLE);
	if (little)
		multiply_little(p, (const void *)a, (const void *)b, (void *)c);
	else
		multiply_by_blas(p, a, b, c);
}

/* Integers wrap, so the loop for the unsigned type of the same width serves signed types too. */
#define LOOPS(name, T, W)                                                                          \
	static void name(const product *p, const char *a, const char *b, char *c)                  \
	{                                                                                          \
		const T *x = (const T *)(const void *)a, *y = (const T *)(const void *)b;          \
		T *r = (T *)(void *)c;                                                             \
		for (int64_t i = 0; i < p->m; i++)                                                 \
			for (int64_t j = 0; j < p->n; j++) {                                       \
				W sum = 0;                                                         \
				for (int64_t l = 0; l < p->k; l++)                                 \
					sum += (W)x[i * p->a.outer_stride +                        \
					            l * p->a.inner_stride] *                       \
					       (W)y[j * p->b.outer_stride +                        \
					            l * p->b.inner_stride];                        \
				r[i * p->c_row + j] = (T)sum;                                      \
			}                                                                          \
	}
LOOPS(multiply_1, uint8_t, uint32_t)
LOOPS(multiply_2, uint16_t, uint32_t)
LOOPS(multiply_4, uint32_t, uint32_t)
LOOPS(multiply_8, uint64_t, uint64_t)

static multiply_fn *find_multiply(sw_type type)
{
	static multiply_fn *const by_type[SW_TYPE_COUNT] = {
		[SW_F32] = multiply_f32,   [SW_F64] = multiply_f64, [SW_C64] = multiply_c64,
		[SW_C128] = multiply_c128, [SW_S8] = multiply_1,    [SW_U8] = multiply_1,
		[SW_S16] = multiply_2,     [SW_U16] = multiply_2,   [SW_S32] = multiply_4,
		[SW_U32] = multiply_4,     [SW_S64] = multiply_8,   [SW_U64] = multiply_8,
	};
	return by_type[type];
}

bool sw_can_multiply(sw_type type)
{
	return find_multiply(type) != NULL;
}

bool sw_matrix_is_readable(const sw_matrix *matrix, int64_t n, int64_t k)
{
	side s = {.outer = n,
	          .inner = k,
	          .outer_stride = matrix->outer,
	          .inner_stride = matrix->inner};
	bool transposed;
	int leading;
	return matrix->outer <= INT32_MAX && matrix->inner <= INT32_MAX &&
	       blas_reads(&s, &transposed, &leading);
}

void sw_multiply_rows(sw_type type, int64_t m, int64_t n, int64_t k, const void *a,
                      const sw_matrix *b, void *c)
{
	product p = {.type = type, .m = m, .n = n, .k = k, .c_row = n};
	p.a = (side){.outer = m, .inner = k, .outer_stride = k, .inner_stride = 1};
	p.b = (side){.outer = n, .inner = k, .outer_stride = b->outer, .inner_stride = b->inner};
	find_multiply(type)(&p, a, b->data, c);
}

/* ---- preparing operands ----------------------------------------------------------------- */

sw_type sw_type_to_multiply_in(sw_type result)
{
	return result == SW_BF16 || result == SW_F16 ? SW_F32 : sw_wide_type(result);
}

/* Find the extent and the stride of a list of dimensions that are merged in the given order. Return
 * false if they do not form a single run. */
static bool joined(sw_shape shape, const int64_t *strides, const int64_t *list, int n,
                   int64_t *extent, int64_t *stride)
{
	*extent = 1;
	*stride = 1;
	bool first = true;
	for (int i = n - 1; i >= 0; i--) {
		int64_t d = list[i];
		if (shape.dims[d] == 1)
			continue;
		if (first)
			*stride = strides[d];
		else if (strides[d] != *stride * *extent)
			return false;
		first = false;
		*extent *= shape.dims[d];
	}
	return true;
}

static int free_dims(int rank, sw_ints batch, sw_ints contracting, int64_t *list)
{
	int n = 0;
	for (int d = 0; d < rank; d++) {
		if (!sw_ints_has(batch, d) && !sw_ints_has(contracting, d))
			list[n++] = d;
	}
	return n;
}

/* Set the extents and strides of a side that is read where it lies. Return false if its outer, or
 * its contracted, dimensions have no common stride. */
static bool view_in_place(side *s, sw_shape shape, sw_ints batch, const int64_t *outer, int n_outer,
                          sw_ints contracting)
{
	int64_t strides[SW_MAX_RANK];
	sw_dense_strides(shape, strides);
	s->batch_rank = batch.n;
	for (int i = 0; i < batch.n; i++)
		s->batch_stride[i] = strides[batch.v[i]];
	return joined(shape, strides, outer, n_outer, &s->outer, &s->outer_stride) &&
	       joined(shape, strides, contracting.v, contracting.n, &s->inner, &s->inner_stride);
}

static bool can_read_in_place(side *s, sw_shape shape, sw_ints batch, const int64_t *outer,
                              int n_outer, sw_ints contracting)
{
	bool transposed;
	int leading;
	return view_in_place(s, shape, batch, outer, n_outer, contracting) &&
	       s->outer_stride <= INT32_MAX && s->inner_stride <= INT32_MAX &&
	       blas_reads(s, &transposed, &leading);
}

static sw_status pack(sw_interpreter *it, side *s, sw_ints batch, const int64_t *outer, int n_outer,
                      sw_ints contracting, sw_error *err)
{
	int64_t order[SW_MAX_RANK], dims[SW_MAX_RANK];
	int at = 0;
	for (int i = 0; i < batch.n; i++)
		order[at++] = batch.v[i];
	for (int i = 0; i < n_outer; i++)
		order[at++] = outer[i];
	for (int i = 0; i < contracting.n; i++)
		order[at++] = contracting.v[i];
	sw_tensor packed;
	sw_status status = sw_transpose_tensor(it, s->owned, order, &packed, dims, err);
	if (status != SW_OK)
		return status;
	s->outer = s->inner = 1;
	for (int i = 0; i < n_outer; i++)
		s->outer *= dims[batch.n + i];
	for (int i = 0; i < contracting.n; i++)
		s->inner *= dims[batch.n + n_outer + i];
	s->outer_stride = SW_MAX(s->inner, 1);
	s->inner_stride = 1;
	int64_t stride = s->outer * s->inner;
	for (int i = batch.n - 1; i >= 0; i--) {
		s->batch_stride[i] = stride;
		stride *= dims[i];
	}
	packed.shape.dims = NULL; /* only its bytes are used */
	packed.shape.rank = 0;
	sw_pool_drop(&it->pool, &s->owned);
	s->owned = packed;
	return SW_OK;
}

static sw_status take_side(sw_interpreter *it, sw_tensor x, sw_type type, sw_ints batch,
                           sw_ints contracting, side *s, sw_error *err)
{
	int64_t outer[SW_MAX_RANK];
	int n_outer = free_dims(x.shape.rank, batch, contracting, outer);
	sw_status status = sw_convert_tensor(it, x, type, &s->owned, err);
	if (status == SW_OK && !can_read_in_place(s, x.shape, batch, outer, n_outer, contracting))
		status = pack(it, s, batch, outer, n_outer, contracting, err);
	s->data = status == SW_OK ? sw_tensor_data(s->owned) : NULL;
	return status;
}

/* ---- the kernel ------------------------------------------------------------------------- */

bool sw_can_dot(sw_type lhs, sw_type rhs, sw_type result)
{
	sw_type type = sw_type_to_multiply_in(result);
	return sw_can_multiply(type) && sw_can_convert(lhs, type) && sw_can_convert(rhs, type);
}

bool sw_prepare_dot(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	(void)plan;
	return sw_can_dot(sw_value_shape(program, op->operands[0]).type,
	                  sw_value_shape(program, op->operands[1]).type,
	                  sw_value_shape(program, op->first_result).type);
}

/* A product is cut into a grid of blocks, whose sizes do not depend on the number of threads, as
 * the library may add up in another order where a block ends. Products of a large batch are taken
 * one by one. */
typedef struct shared_product {
	const product *p;
	multiply_fn *multiply;
	int64_t rows, columns; /* of a block */
	int64_t down, across;  /* blocks along m and n */
} shared_product;

/* Multiply-adds that are worth a thread's turn, for up to FEW blocks; and those of a block where
 * there are more: for each block the library copies its operands again, which takes 40 % of the
 * time where each block has 16e6 (1024 x 512 x 512 on a processor with AVX-512), 10 % at 64e6. */
#define WORTH_A_BLOCK 4e6
#define WORTH_A_COPY 64e6
enum { FEW = 4, BLOCKS = 16, BLOCK_UNIT = 32 };

/* Cut an extent into `parts` of whole units; return how many there are. */
static int64_t cut_extent(int64_t extent, int64_t parts, int64_t *size)
{
	int64_t units = (extent + BLOCK_UNIT - 1) / BLOCK_UNIT;
	*size = SW_MAX((units + parts - 1) / parts, 1) * BLOCK_UNIT;
	return SW_MAX((extent + *size - 1) / *size, 1);
}

/* Of the grids of `wanted` blocks, a power of two, take the one for which the least is copied: the
 * left operand for each block across, the right one for each block down. */
static shared_product cut(const product *p)
{
	shared_product s = {.p = p, .multiply = find_multiply(p->type)};
	double work = (double)p->m * (double)p->n * (double)p->k * (double)p->batches;
	double blocks = SW_MAX(SW_MIN(work / WORTH_A_BLOCK, FEW),
	                       SW_MIN(work / WORTH_A_COPY, BLOCKS)) /
	                (double)p->batches;
	int64_t wanted = 1, down = 1;
	while (2 * (double)wanted <= blocks)
		wanted *= 2;
	for (int64_t d = 2; d <= wanted; d *= 2)
		if ((double)(wanted / d) * (double)p->m + (double)d * (double)p->n <
		    (double)(wanted / down) * (double)p->m + (double)down * (double)p->n)
			down = d;
	s.down = cut_extent(p->m, down, &s.rows);
	s.across = cut_extent(p->n, wanted / down, &s.columns);
	return s;
}

static void multiply_block(void *context, int member, int64_t i)
{
	const shared_product *s = context;
	const product *p = s->p;
	int64_t batch = i / (s->down * s->across), a = 0, b = 0,
		row = i / s->across % s->down * s->rows, column = i % s->across * s->columns;
	product part = *p;
	(void)member;
	part.m = part.a.outer = SW_MIN(s->rows, p->m - row);
	part.n = part.b.outer = SW_MIN(s->columns, p->n - column);
	int64_t at = (batch * p->m + row) * p->n + column;
	for (int d = p->batch_rank - 1; d >= 0; d--) {
		a += batch % p->batch_dims[d] * p->a.batch_stride[d];
		b += batch % p->batch_dims[d] * p->b.batch_stride[d];
		batch /= p->batch_dims[d];
	}
	a += row * p->a.outer_stride;
	b += column * p->b.outer_stride;
	s->multiply(&part, p->a.data + a * (int64_t)p->bytes, p->b.data + b * (int64_t)p->bytes,
	            p->c + at * (int64_t)p->bytes);
}

static void multiply_all(sw_team *team, product *p)
{
	p->batches = 1;
	for (int d = 0; d < p->batch_rank; d++)
		p->batches *= p->batch_dims[d];
	p->c_row = p->n;
	shared_product s = cut(p);
	double work = (double)p->batches * (double)p->m * (double)p->n * (double)p->k;
	int64_t n = p->batches * s.down * s.across;
	sw_team_run(work < WORTH_A_BLOCK / 16 ? NULL : team, n, SW_MAX(n / 64, 1), multiply_block,
	            &s);
}

static sw_status multiply_into(sw_team *team, product *p, sw_tensor c, sw_error *err)
{
	p->c = sw_tensor_data(c);
	p->m = p->a.outer;
	p->n = p->b.outer;
	p->k = p->a.inner;
	if (p->m > INT32_MAX || p->n > INT32_MAX || p->k > INT32_MAX)
		return sw_fail(err, SW_ERR_INPUT,
		               "a matrix product of more than 2^31 rows or columns");
	if (p->k == 0 || c.buffer->bytes == 0)
		memset(p->c, 0, p->adds ? 0 : c.buffer->bytes);
	else
		multiply_all(team, p);
	return SW_OK;
}

/* ---- bf16 by tiles ---------------------------------------------------------------------- */

/* Multiply-adds for which the order of tiles is worth its while. */
#define WORTH_TILES 32768

/* Set up one side and its room in the order of tiles. False: the product is computed in f32, whose
 * copies of the operands are what the workspace has room for. */
static bool view_for_tiles(sw_tensor x, sw_ints batch, sw_ints contracting, sw_bf16_side *to,
                           int64_t *bytes)
{
	side s = {0};
	int64_t outer[SW_MAX_RANK], n = sw_shape_elements(x.shape);
	int n_outer = free_dims(x.shape.rank, batch, contracting, outer);
	if (x.shape.type != SW_BF16 || n == 0 || n > INT64_MAX / 8 ||
	    !view_in_place(&s, x.shape, batch, outer, n_outer, contracting))
		return false;
	*to = (sw_bf16_side){.data = (const void *)sw_tensor_data(x),
	                     .outer = s.outer,
	                     .inner = s.inner,
	                     .outer_stride = s.outer_stride,
	                     .inner_stride = s.inner_stride};
	memcpy(to->batch_stride, s.batch_stride, sizeof to->batch_stride);
	*bytes = n / (s.outer * s.inner) * sw_bf16_packed_bytes(s.outer, s.inner);
	return *bytes <= sw_workspace_elements(n, SW_F32);
}

/* Set up the product, or return false if it is not one for tiles. */
static bool view_product(sw_tensor lhs, sw_tensor rhs, const sw_attrs *attrs, sw_type type,
                         sw_bf16_product *p, int64_t bytes[2])
{
	*p = (sw_bf16_product){.batch_rank = attrs->dot.lhs_batch.n, .rounds = type == SW_BF16};
	for (int i = 0; i < p->batch_rank; i++)
		p->batch_dims[i] = lhs.shape.dims[attrs->dot.lhs_batch.v[i]];
	return (type == SW_BF16 || type == SW_F32) && sw_bf16_tiles() &&
	       view_for_tiles(lhs, attrs->dot.lhs_batch, attrs->dot.lhs_contracting, &p->a,
	                      &bytes[0]) &&
	       view_for_tiles(rhs, attrs->dot.rhs_batch, attrs->dot.rhs_contracting, &p->b,
	                      &bytes[1]) &&
	       (double)p->a.outer * (double)p->b.outer * (double)p->a.inner >= WORTH_TILES;
}

static sw_status room_for_tiles(sw_interpreter *it, int64_t bytes, sw_tensor *room, void **packed,
                                sw_error *err)
{
	int64_t dims[1] = {bytes};
	sw_status status = sw_scratch_new(it, (sw_shape){.type = SW_U8, .rank = 1, .dims = dims},
	                                  room, err);
	*packed = status == SW_OK ? sw_tensor_data(*room) : NULL;
	return status;
}

static sw_status dot_by_tiles(sw_interpreter *it, sw_bf16_product *p, const int64_t bytes[2],
                              sw_shape shape, sw_tensor *out, sw_error *err)
{
	sw_tensor room[2] = {{.buffer = NULL}, {.buffer = NULL}};
	sw_status status = room_for_tiles(it, bytes[0], &room[0], &p->a.packed, err);
	if (status == SW_OK)
		status = room_for_tiles(it, bytes[1], &room[1], &p->b.packed, err);
	if (status == SW_OK && !out->buffer)
		status = sw_scratch_new(it, shape, out, err);
	if (status == SW_OK) {
		p->c = sw_tensor_data(*out);
		sw_bf16_multiply(it->team, p);
	}
	sw_pool_drop(&it->pool, &room[0]);
	sw_pool_drop(&it->pool, &room[1]);
	return status;
}

/* ---- any type --------------------------------------------------------------------------- */

static sw_status take_sides(sw_interpreter *it, sw_tensor lhs, sw_tensor rhs, const sw_attrs *attrs,
                            product *p, sw_error *err)
{
	p->bytes = (size_t)sw_type_bytes(p->type);
	p->batch_rank = attrs->dot.lhs_batch.n;
	for (int i = 0; i < p->batch_rank; i++)
		p->batch_dims[i] = lhs.shape.dims[attrs->dot.lhs_batch.v[i]];
	SW_TRY(take_side(it, lhs, p->type, attrs->dot.lhs_batch, attrs->dot.lhs_contracting, &p->a,
	                 err));
	return take_side(it, rhs, p->type, attrs->dot.rhs_batch, attrs->dot.rhs_contracting, &p->b,
	                 err);
}

static void drop_sides(sw_interpreter *it, product *p)
{
	sw_pool_drop(&it->pool, &p->a.owned);
	sw_pool_drop(&it->pool, &p->b.owned);
}

sw_status sw_dot_add_to(sw_interpreter *it, sw_tensor lhs, sw_tensor rhs, const sw_attrs *attrs,
                        sw_tensor sum, sw_error *err)
{
	product p = {.type = sum.shape.type, .adds = true};
	sw_status status = take_sides(it, lhs, rhs, attrs, &p, err);
	if (status == SW_OK)
		status = multiply_into(it->team, &p, sum, err);
	drop_sides(it, &p);
	return status;
}

static sw_status dot_in_wide_type(sw_interpreter *it, sw_tensor lhs, sw_tensor rhs,
                                  const sw_attrs *attrs, sw_shape shape, sw_tensor *out,
                                  sw_error *err)
{
	sw_tensor c = {0};
	sw_type type = shape.type;
	product p = {.type = sw_type_to_multiply_in(type)};
	sw_status status = take_sides(it, lhs, rhs, attrs, &p, err);
	shape.type = p.type;
	if (out->buffer && p.type == type)
		c = sw_tensor_keep(*out);
	else if (status == SW_OK)
		status = sw_scratch_new(it, shape, &c, err);
	if (status == SW_OK)
		status = multiply_into(it->team, &p, c, err);
	if (status == SW_OK && out->buffer && p.type != type)
		sw_convert_elements(p.type, sw_tensor_data(c), type, sw_tensor_data(*out),
		                    sw_shape_elements(shape));
	else if (status == SW_OK && !out->buffer)
		status = sw_convert_tensor(it, c, type, out, err);
	drop_sides(it, &p);
	sw_pool_drop(&it->pool, &c);
	return status;
}

sw_status sw_dot(sw_interpreter *it, sw_tensor lhs, sw_tensor rhs, const sw_attrs *attrs,
                 sw_shape shape, sw_tensor *out, sw_error *err)
{
	sw_bf16_product p;
	int64_t bytes[2];
	return view_product(lhs, rhs, attrs, shape.type, &p, bytes)
	               ? dot_by_tiles(it, &p, bytes, shape, out, err)
	               : dot_in_wide_type(it, lhs, rhs, attrs, shape, out, err);
}

/* Workspace that take_side needs for operand i, in bytes. */
static int64_t workspace_of_side(const sw_program *program, const sw_op *op, uint32_t i,
                                 sw_type type)
{
	sw_ints batch = i ? op->attrs->dot.rhs_batch : op->attrs->dot.lhs_batch,
		contracting = i ? op->attrs->dot.rhs_contracting : op->attrs->dot.lhs_contracting;
	sw_shape shape = sw_value_shape(program, op->operands[i]);
	int64_t outer[SW_MAX_RANK], workspace = sw_workspace_convert(shape, type);
	side s;
	if (!can_read_in_place(&s, shape, batch, outer,
	                       free_dims(shape.rank, batch, contracting, outer), contracting))
		workspace = sw_workspace_add(workspace,
		                             sw_workspace_elements(sw_shape_elements(shape), type));
	return workspace;
}

int64_t sw_workspace_dot(const sw_program *program, const sw_op *op, const sw_plan_op *plan)
{
	(void)plan;
	sw_shape shape = sw_value_shape(program, op->first_result);
	sw_type type = sw_type_to_multiply_in(shape.type);
	int64_t workspace = sw_workspace_convert(shape, type);
	for (uint32_t i = 0; i < 2; i++)
		workspace = sw_workspace_add(workspace, workspace_of_side(program, op, i, type));
	return workspace;
}

/* A call is one product of the batch. An operand that cannot be read in place is written in another
 * order and read again. */
sw_loops sw_loops_dot(const sw_program *program, const sw_op *op)
{
	sw_loops loops = {.calls = 1};
	sw_shape lhs = sw_value_shape(program, op->operands[0]);
	sw_ints batch = op->attrs->dot.lhs_batch;
	for (int i = 0; i < batch.n; i++)
		loops.calls *= (double)lhs.dims[batch.v[i]];
	for (uint32_t i = 0; i < 2; i++)
		loops.bytes += 2 * (double)workspace_of_side(
					   program, op, i,
					   sw_type_to_multiply_in(
						   sw_value_shape(program, op->first_result).type));
	return loops;
}

sw_status sw_kernel_dot(sw_call *call, sw_error *err)
{
	sw_status status = sw_result_new(call, 0, err);
	return status ? status
	              : sw_dot(call->interpreter, call->in[0], call->in[1], call->op->attrs,
	                       call->shapes[0], &call->out[0], err);
}
