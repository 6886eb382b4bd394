/*
 * fft: the four kinds of transform, over up to three minor dimensions of any length, in f64 for
 * every type. The dimensions are transformed one after the other: powers of two by the iterative
 * radix-2 algorithm, other lengths as a convolution with a chirp, of a power of two in length
 * (Bluestein, "A linear filtering approach to the computation of discrete Fourier transform",
 * 1970). Inverse transforms divide by the number of elements. A real transform keeps the first half
 * of its last dimension; its inverse restores the other half as the conjugate and drops imaginary
 * parts.
 */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "interpret/kernel.h"

typedef double complex complex_number;

/* exp(2 pi i k / n) is computed for each k separately: a recurrence would lose digits of f64
 * results. */
static complex_number root(int64_t k, int64_t n)
{
	double angle = 2 * M_PI * (double)k / (double)n;
	return cos(angle) + sin(angle) * (complex_number)I;
}

/* A transform of one length: its precomputed tables and its working memory. sign: -1 forward, 1
 * inverse. */
typedef struct transform {
	int64_t n, size;        /* size: n itself, or the power of two of the convolution */
	complex_number *roots;  /* [size]: exp(sign 2 pi i k / size) */
	complex_number *chirp;  /* [n]: exp(sign pi i k^2 / n); NULL: n is a power of two */
	complex_number *filter; /* [size]: the transform of the conjugate chirp, divided by size */
	complex_number *work;   /* [size] */
} transform;

static void reverse_bits(complex_number *x, int64_t n)
{
	for (int64_t i = 1, j = 0; i < n; i++) {
		int64_t bit = n >> 1;
		for (; j & bit; bit >>= 1)
			j ^= bit;
		j |= bit;
		if (i < j) {
			complex_number kept = x[i];
			x[i] = x[j];
			x[j] = kept;
		}
	}
}

/* Transform in place. The inverse direction uses the conjugate roots and does not divide. */
static void radix2(const complex_number *roots, complex_number *x, int64_t n, bool conjugate)
{
	reverse_bits(x, n);
	for (int64_t half = 1; half < n; half *= 2) {
		int64_t step = n / (2 * half);
		for (int64_t begin = 0; begin < n; begin += 2 * half)
			for (int64_t k = 0; k < half; k++) {
				complex_number w = roots[k * step], *a = &x[begin + k],
					       *b = a + half;
				complex_number t = (conjugate ? conj(w) : w) * *b;
				*b = *a - t;
				*a += t;
			}
	}
}

static void prepare_chirp(transform *t, int sign)
{
	for (int64_t k = 0, square = 0; k < t->n; k++) { /* square: k^2 mod 2n */
		t->chirp[k] = root(sign * square, 2 * t->n);
		square = (square + 2 * k + 1) % (2 * t->n);
	}
	memset(t->filter, 0, (size_t)t->size * sizeof *t->filter);
	for (int64_t k = 0; k < t->n; k++)
		t->filter[k] = t->filter[(t->size - k) % t->size] =
			conj(t->chirp[k]) / (double)t->size;
	radix2(t->roots, t->filter, t->size, false);
}

static void run(const transform *t, complex_number *x)
{
	if (!t->chirp) {
		radix2(t->roots, x, t->n, false);
		return;
	}
	for (int64_t k = 0; k < t->size; k++)
		t->work[k] = k < t->n ? x[k] * t->chirp[k] : 0;
	radix2(t->roots, t->work, t->size, false);
	for (int64_t k = 0; k < t->size; k++)
		t->work[k] *= t->filter[k];
	radix2(t->roots, t->work, t->size, true);
	for (int64_t k = 0; k < t->n; k++)
		x[k] = t->work[k] * t->chirp[k];
}

/* A transform of length n works on arrays of `size` numbers. Return how many numbers it needs in
 * all. */
static int64_t numbers_of(int64_t n, int64_t *size)
{
	bool power = (n & (n - 1)) == 0;
	*size = 1;
	while (*size < (power ? n : 2 * n - 1))
		*size *= 2;
	return power ? *size : 3 * *size + n;
}

static sw_status transform_new(sw_interpreter *it, int64_t n, int sign, transform *t,
                               sw_tensor *workspace, sw_error *err)
{
	bool power = (n & (n - 1)) == 0;
	int64_t size, numbers = numbers_of(n, &size);
	*t = (transform){.n = n, .size = size};
	sw_status status = sw_scratch_new(it, (sw_shape){SW_C128, 1, 0, &numbers}, workspace, err);
	if (status != SW_OK)
		return status;
	t->roots = sw_tensor_data(*workspace);
	for (int64_t k = 0; k < size; k++)
		t->roots[k] = root(sign * k, size);
	if (!power) {
		t->filter = t->roots + size;
		t->work = t->filter + size;
		t->chirp = t->work + size;
		prepare_chirp(t, sign);
	}
	return SW_OK;
}

/* ---- over a tensor ---------------------------------------------------------------------- */

/* The rows along a dimension. n elements of a row are transformed, from_n of them exist in the
 * input, and to_n are kept. Element i of row r is the (i * inner)-th after the row's first. */
typedef struct fft_rows {
	int64_t count, inner, n, from_n, to_n;
} fft_rows;

static fft_rows rows_along(sw_shape shape, int d, int64_t n, int64_t from_n, int64_t to_n)
{
	fft_rows r = {.count = 1, .inner = 1, .n = n, .from_n = from_n, .to_n = to_n};
	for (int i = 0; i < shape.rank; i++) {
		r.count *= i == d ? 1 : shape.dims[i];
		r.inner *= i > d ? shape.dims[i] : 1;
	}
	return r;
}

/* Read a row; the second half of a real inverse transform is the conjugate of the first. */
static void read_row(const fft_rows *r, const complex_number *x, int64_t row, complex_number *line)
{
	const complex_number *from = x + row / r->inner * r->from_n * r->inner + row % r->inner;
	for (int64_t i = 0; i < r->n; i++)
		line[i] = i < r->from_n ? from[i * r->inner] : conj(from[(r->n - i) * r->inner]);
}

static void write_row(const fft_rows *r, const complex_number *line, int64_t row, double divisor,
                      complex_number *out)
{
	complex_number *to = out + row / r->inner * r->to_n * r->inner + row % r->inner;
	for (int64_t i = 0; i < r->to_n; i++)
		to[i * r->inner] = line[i] / divisor;
}

/* x and out may be the same tensor if from_n equals to_n. */
static sw_status transform_rows(sw_interpreter *it, fft_rows r, int sign, sw_tensor x,
                                sw_tensor out, sw_error *err)
{
	transform t;
	sw_tensor workspace = {0}, line = {0};
	if (r.n == 0 || r.count == 0) {
		memset(sw_tensor_data(out), 0, out.buffer->bytes);
		return SW_OK;
	}
	sw_status status = transform_new(it, r.n, sign, &t, &workspace, err);
	if (status == SW_OK)
		status = sw_scratch_new(it, (sw_shape){SW_C128, 1, 0, &r.n}, &line, err);
	for (int64_t row = 0; status == SW_OK && row < r.count; row++) {
		read_row(&r, sw_tensor_data(x), row, sw_tensor_data(line));
		run(&t, sw_tensor_data(line));
		write_row(&r, sw_tensor_data(line), row, sign > 0 ? (double)r.n : 1,
		          sw_tensor_data(out));
	}
	sw_pool_drop(&it->pool, &workspace);
	sw_pool_drop(&it->pool, &line);
	return status;
}

/* Transform all dimensions but the last, in place. */
static sw_status transform_outer_dimensions(sw_call *call, int sign, sw_tensor x, sw_error *err)
{
	sw_status status = SW_OK;
	int last = x.shape.rank - 1;
	for (int d = last + 1 - call->op->attrs->fft.length.n; status == SW_OK && d < last; d++) {
		int64_t n = x.shape.dims[d];
		status = transform_rows(call->interpreter, rows_along(x.shape, d, n, n, n), sign, x,
		                        x, err);
	}
	return status;
}

/* Count the operand, the result in f64 and in its own type, and per dimension a transform and a
 * row. */
int64_t sw_workspace_fft(const sw_program *program, const sw_op *op, const sw_plan_op *plan)
{
	(void)plan;
	sw_shape from = sw_value_shape(program, op->operands[0]),
		 to = sw_value_shape(program, op->first_result);
	sw_ints length = op->attrs->fft.length;
	int64_t workspace = sw_workspace_elements(sw_shape_elements(from), SW_C128), size;
	workspace =
		sw_workspace_add(workspace, sw_workspace_elements(sw_shape_elements(to), SW_C128));
	workspace = sw_workspace_add(workspace, sw_workspace_of(to));
	for (int32_t i = 0; i < length.n; i++) {
		int64_t n = length.v[i];
		if (n <= 0)
			continue;
		workspace = sw_workspace_add(workspace,
		                             sw_workspace_elements(numbers_of(n, &size), SW_C128));
		workspace = sw_workspace_add(workspace, sw_workspace_elements(n, SW_C128));
	}
	return workspace;
}

sw_status sw_kernel_fft(sw_call *call, sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	const char *kind = call->op->attrs->fft.kind;
	sw_ints length = call->op->attrs->fft.length;
	sw_shape from = call->in[0].shape, to = call->shapes[0];
	int sign = kind[0] == 'I' ? 1 : -1, last = to.rank - 1;
	bool halves = strcmp(kind, "RFFT") == 0;
	fft_rows r = rows_along(to, last, length.v[length.n - 1], from.dims[last], to.dims[last]);
	sw_tensor x = {0}, y = {0};
	to.type = SW_C128;
	sw_status status = sw_convert_tensor(it, call->in[0], SW_C128, &x, err);
	/* the operand must not be overwritten */
	if (status == SW_OK && x.buffer == call->in[0].buffer) {
		sw_pool_drop(&it->pool, &x);
		status = sw_scratch_new(it, from, &x, err);
		if (status == SW_OK)
			memcpy(sw_tensor_data(x), sw_tensor_data(call->in[0]), x.buffer->bytes);
	}
	if (status == SW_OK)
		status = sw_scratch_new(it, to, &y, err);
	if (status == SW_OK && !halves)
		status = transform_outer_dimensions(call, sign, x, err);
	if (status == SW_OK)
		status = transform_rows(it, r, sign, x, y, err);
	if (status == SW_OK && halves)
		status = transform_outer_dimensions(call, sign, y, err);
	if (status == SW_OK)
		status = sw_convert_tensor(it, y, call->shapes[0].type, &call->out[0], err);
	sw_pool_drop(&it->pool, &x);
	sw_pool_drop(&it->pool, &y);
	return status;
}
