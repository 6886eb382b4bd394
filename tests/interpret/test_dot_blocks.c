/* Large dots are cut into blocks, which threads share: of whole numbers, whose sums are exact, the
 * result C of A and B takes a vector to where A takes what B makes of it, for grids of all forms,
 * both orders of each operand, batches, f32 and bf16; and it is the same for any number of
 * threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frontend/frontend.h"
#include "interpret/interpret.h"

typedef struct dot_case {
	int64_t batch, m, n, k;
	const char *type;
	bool lhs_turned, rhs_turned; /* the contracted dimension comes first */
} dot_case;

static void check(sw_status status, const sw_error *err)
{
	if (status != SW_OK)
		fail_msg("%s:%d:%d: %s", err->file, err->line, err->column, err->message);
}

static sw_program *write_dot(const dot_case *d)
{
	char text[1000];
	sw_program *program;
	sw_error err = {0};
	long long b = d->batch, m = d->m, n = d->n, k = d->k;
	int length = snprintf(
		text, sizeof text,
		"HloModule dot\nENTRY main {\n  a = %s[%lld,%lld,%lld] parameter(0)\n"
		"  b = %s[%lld,%lld,%lld] parameter(1)\n"
		"  ROOT c = f32[%lld,%lld,%lld] dot(a, b), lhs_batch_dims={0}, "
		"rhs_batch_dims={0}, lhs_contracting_dims={%d}, rhs_contracting_dims={%d}\n}\n",
		d->type, b, d->lhs_turned ? k : m, d->lhs_turned ? m : k, d->type, b,
		d->rhs_turned ? k : n, d->rhs_turned ? n : k, b, m, n, d->lhs_turned ? 1 : 2,
		d->rhs_turned ? 1 : 2);
	check(sw_read_hlo(text, (size_t)length, "test", &program, &err), &err);
	return program;
}

static int draw(uint64_t stream, int64_t i, int below)
{
	return (int)(below * sw_random_unit(5, stream, (uint64_t)i));
}

/* Element (row, column) of matrix `batch` of an operand. */
static double element_of(sw_tensor t, bool turned, int64_t batch, int64_t row, int64_t column)
{
	const int64_t *dims = t.shape.dims;
	int64_t at = turned ? column * dims[2] + row : row * dims[2] + column;
	return sw_element_get(t.shape.type, sw_tensor_data(t), batch * dims[1] * dims[2] + at);
}

/* Set y = M x for a matrix of the batch. */
static void apply(sw_tensor t, bool turned, int64_t batch, int64_t rows, int64_t columns,
                  const double *x, double *y)
{
	for (int64_t i = 0; i < rows; i++) {
		y[i] = 0;
		for (int64_t j = 0; j < columns; j++)
			y[i] += element_of(t, turned, batch, i, j) * x[j];
	}
}

static void check_result(const dot_case *d, sw_tensor a, sw_tensor b, sw_tensor c)
{
	double *x = sw_alloc(sizeof(double) * (size_t)(d->n + d->k + 2 * d->m)), *z = x + d->n,
	       *wanted = z + d->k, *found = wanted + d->m;
	for (int64_t i = 0; i < d->n; i++)
		x[i] = draw(7, i, 1000);
	for (int64_t batch = 0; batch < d->batch; batch++) {
		apply(b, !d->rhs_turned, batch, d->k, d->n, x, z);
		apply(a, d->lhs_turned, batch, d->m, d->k, z, wanted);
		apply(c, false, batch, d->m, d->n, x, found);
		assert_memory_equal(found, wanted, sizeof(double) * (size_t)d->m);
	}
	free(x);
}

static void check_dot(const dot_case *d)
{
	sw_program *program = write_dot(d);
	sw_tensor in[2], out[2];
	sw_error err = {0};
	for (uint32_t i = 0; i < 2; i++) {
		sw_shape shape = sw_value_shape(
			program,
			sw_op_at(program, sw_entry(program)->parameters.data[i])->first_result);
		check(sw_tensor_new(shape, true, &in[i], &err), &err);
		for (int64_t e = 0; e < sw_shape_elements(shape); e++)
			sw_element_set(shape.type, sw_tensor_data(in[i]), e, draw(i, e, 17) - 8);
	}
	for (int t = 0; t < 2; t++) {
		sw_interpreter *it;
		sw_interpret_options options = {.blas_threads = t ? 3 : 1};
		check(sw_interpreter_new(program, &options, &it, &err), &err);
		sw_tensor given[2] = {sw_tensor_keep(in[0]), sw_tensor_keep(in[1])};
		check(sw_interpret(it, given, 2, &out[t], 1, &err), &err);
		sw_interpreter_free(it);
	}
	check_result(d, in[0], in[1], out[0]);
	assert_memory_equal(sw_tensor_data(out[0]), sw_tensor_data(out[1]), out[0].buffer->bytes);
	for (int t = 0; t < 2; t++) {
		sw_tensor_drop(&in[t]);
		sw_tensor_drop(&out[t]);
	}
	sw_program_free(program);
}

static void all_blocks_are_computed(void **state)
{
	(void)state;
	static const int64_t sizes[][4] = {{1, 1200, 33, 300}, {1, 40, 2000, 200},
	                                   {1, 300, 333, 200}, {1, 600, 1500, 600},
	                                   {3, 200, 300, 100}, {20, 70, 90, 64}};
	for (size_t i = 0; i < SW_COUNT(sizes); i++)
		for (int form = 0; form < 4; form++) {
			const int64_t *s = sizes[i];
			check_dot(&(dot_case){s[0], s[1], s[2], s[3],
			                      (form + (int)i) % 2 ? "f32" : "bf16", (form & 1) != 0,
			                      (form & 2) != 0});
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_blocks_are_computed)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
