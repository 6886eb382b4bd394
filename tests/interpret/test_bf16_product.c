/* Products of bf16 by matrix tiles, of whole numbers, whose sums are exact: every element equals
 * the sum in integers, for sizes beside those of tiles, any order of dimensions, batches and
 * threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "interpret/bf16_product.h"
#include "interpret/types.h"

/* In which order a side lies: contracted or outer indices are neighbours, or neither. */
typedef enum neighbours { ROWS, COLUMNS, SPREAD } neighbours;

/* The matrices of a side lie one behind the other; between them, and between rows, there is NaN. */
static uint16_t *make_side(sw_bf16_side *s, neighbours order, int64_t outer, int64_t inner,
                           int64_t batches, uint64_t stream)
{
	int64_t gap = order == SPREAD ? 2 : 1;
	s->outer = outer;
	s->inner = inner;
	s->outer_stride = order == COLUMNS ? 1 : gap * inner + 1;
	s->inner_stride = order == COLUMNS ? outer + 1 : gap;
	s->batch_stride[0] = order == COLUMNS ? inner * (outer + 1) : outer * (gap * inner + 1);
	size_t n = (size_t)(batches * s->batch_stride[0]);
	uint16_t *data = sw_alloc(n * sizeof *data);
	for (size_t i = 0; i < n; i++)
		data[i] = 0x7fc0;
	for (int64_t b = 0, at = 0; b < batches; b++)
		for (int64_t o = 0; o < outer; o++)
			for (int64_t i = 0; i < inner; i++, at++)
				data[b * s->batch_stride[0] + o * s->outer_stride +
				     i * s->inner_stride] =
					sw_bf16_of_f32(
						(float)((int)(17 * sw_random_unit(3, stream,
				                                                  (uint64_t)at)) -
				                        8));
	s->data = data;
	s->packed = aligned_alloc(64, (size_t)(batches * sw_bf16_packed_bytes(outer, inner)));
	memset(s->packed, 0xff, (size_t)(batches * sw_bf16_packed_bytes(outer, inner)));
	return data;
}

static float element_of(const sw_bf16_side *s, int64_t batch, int64_t outer, int64_t inner)
{
	return sw_f32_of_bf16(s->data[batch * s->batch_stride[0] + outer * s->outer_stride +
	                              inner * s->inner_stride]);
}

static void check_sums(const sw_bf16_product *p)
{
	for (int64_t b = 0, at = 0; b < p->batch_dims[0]; b++)
		for (int64_t i = 0; i < p->a.outer; i++)
			for (int64_t j = 0; j < p->b.outer; j++, at++) {
				float sum = 0;
				for (int64_t l = 0; l < p->a.inner; l++)
					sum += element_of(&p->a, b, i, l) *
					       element_of(&p->b, b, j, l);
				if (p->rounds)
					assert_int_equal(((uint16_t *)p->c)[at],
					                 sw_bf16_of_f32(sum));
				else
					assert_true(((float *)p->c)[at] == sum);
			}
}

static void check_product(sw_team *team, neighbours a, neighbours b, int64_t batches,
                          const int64_t size[3], bool rounds)
{
	sw_bf16_product p = {.batch_rank = 1, .batch_dims = {batches}, .rounds = rounds};
	uint16_t *x = make_side(&p.a, a, size[0], size[2], batches, 1),
		 *y = make_side(&p.b, b, size[1], size[2], batches, 2);
	size_t n = (size_t)(batches * size[0] * size[1]);
	p.c = sw_alloc((n + 1) * sizeof(float));
	memset(p.c, 0xff, (n + 1) * sizeof(float));
	sw_bf16_multiply(team, &p);
	check_sums(&p);
	if (rounds)
		assert_int_equal(((uint16_t *)p.c)[n], 0xffff);
	else
		assert_int_equal(((uint32_t *)p.c)[n], UINT32_MAX);
	free(x);
	free(y);
	free(p.a.packed);
	free(p.b.packed);
	free(p.c);
}

static void sums_are_exact(void **state)
{
	(void)state;
	static const int64_t sizes[][3] = {{1, 1, 1},    {16, 16, 32},  {32, 32, 64},
	                                   {17, 33, 31}, {31, 15, 33},  {48, 47, 65},
	                                   {5, 200, 96}, {129, 16, 16}, {64, 300, 32}};
	if (!sw_bf16_tiles())
		skip();
	sw_team *teams[] = {NULL, sw_team_new(3)};
	for (size_t i = 0; i < SW_COUNT(sizes); i++)
		for (int orders = 0; orders < 9; orders++)
			for (int rounds = 0; rounds < 2; rounds++)
				check_product(teams[(i + (size_t)orders) % 2], orders % 3,
				              orders / 3, 1 + (orders + rounds) % 3, sizes[i],
				              rounds);
	sw_team_free(teams[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_exact)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
