/* The transport's functions against their definitions: all types, monoids, groups and numbers of
 * ranks. */
#include "ranks.h"
#include "transport/algorithm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- algorithms ------------------------------------------------------------------------- */

static void each_algorithm_has_a_function_for_each_collective_that_it_serves(void **state)
{
	(void)state;
	for (sw_algorithm a = 0; a < SW_ALGORITHM_COUNT; a++)
		for (sw_collective_kind kind = 0; kind < SW_COLLECTIVE_PERMUTE; kind++)
			if (sw_algorithm_serves(a, kind) !=
			    (sw_algorithm_function(a, kind) != NULL))
				fail_msg("%s, %s: the row of SW_ALGORITHMS and sw_%s_functions "
				         "disagree",
				         sw_algorithm_name(a), sw_collective_name(kind),
				         sw_algorithm_name(a));
}

/* ---- operands --------------------------------------------------------------------------- */

/* Small integers, which every type can represent: fewer values for types of one or two bits, 0 and
 * -1 in s1; 1 and 2 for scales, which are powers of two. */
static double sample(sw_type type, int32_t rank, int64_t e)
{
	bool few = type == SW_PRED || type == SW_U1 || type == SW_S2;
	uint64_t bits = sw_random_bits(7, (uint64_t)rank, (uint64_t)e);
	if (type == SW_S1)
		return -(double)(bits % 2);
	return type == SW_F8E8M0FNU ? (double)(1 + bits % 2) : (double)(bits % (few ? 2 : 3));
}

static void *fill(sw_type type, int32_t rank, int64_t begin, int64_t elements)
{
	char *data = sw_alloc((size_t)SW_MAX(elements * sw_type_bytes(type), 1));
	for (int64_t e = 0; e < elements; e++)
		sw_element_set(type, data, e, sample(type, rank, begin + e));
	return data;
}

static double combine(sw_monoid monoid, double a, double b)
{
	switch (monoid) {
	case SW_MONOID_SUM:
		return a + b;
	case SW_MONOID_PRODUCT:
		return a * b;
	case SW_MONOID_MAX:
		return fmax(a, b);
	case SW_MONOID_MIN:
		return fmin(a, b);
	case SW_MONOID_AND:
		return (double)((int64_t)a & (int64_t)b);
	default:
		return (double)((int64_t)a | (int64_t)b);
	}
}

static bool has_operation(sw_monoid monoid, sw_type type)
{
	sw_type_kind kind = sw_type_kind_of(type);
	bool logic = monoid == SW_MONOID_AND || monoid == SW_MONOID_OR;
	if (type == SW_F8E8M0FNU) /* it has no zero, unlike the samples */
		return false;
	if (kind == SW_KIND_PRED)
		return logic;
	if (kind == SW_KIND_COMPLEX)
		return monoid == SW_MONOID_SUM || monoid == SW_MONOID_PRODUCT;
	/* The sums of the samples must be representable. */
	bool wide = sw_type_bytes(type) > 1 || monoid == SW_MONOID_MAX || monoid == SW_MONOID_MIN;
	return kind == SW_KIND_FLOAT ? !logic && wide : kind != SW_KIND_TOKEN && wide;
}

/* Compute element e of the operands of the group's ranks, combined in their order, as bytes of the
 * type. */
static void expect(sw_monoid monoid, sw_type type, const int32_t *ranks, int32_t n, int64_t e,
                   void *bytes)
{
	double value = sample(type, ranks[0], e);
	for (int32_t i = 1; i < n; i++)
		value = combine(monoid, value, sample(type, ranks[i], e));
	sw_element_set(type, bytes, 0, value);
}

static sw_status compare(const char *what, sw_monoid monoid, sw_type type, const int32_t *ranks,
                         int32_t n, int64_t begin, int64_t elements, const void *got, sw_error *err)
{
	int64_t width = sw_type_bytes(type);
	char wanted[16];
	for (int64_t e = 0; e < elements; e++) {
		memset(wanted, 0, sizeof(wanted));
		expect(monoid, type, ranks, n, begin + e, wanted);
		if (memcmp(wanted, (const char *)got + e * width, (size_t)width))
			return sw_fail(err, SW_NO, "%s %s %s: element %lld of %lld is %g, not %g",
			               what, sw_type_name(type), sw_monoid_name(monoid),
			               (long long)e, (long long)elements,
			               sw_element_get(type, got, e),
			               sw_element_get(type, wanted, 0));
	}
	return SW_OK;
}

/* ---- reductions ------------------------------------------------------------------------- */

static sw_status all_reduce(sw_transport *t, const int32_t *ranks, int32_t n, sw_monoid monoid,
                            sw_type type, int64_t elements, sw_error *err)
{
	void *in = fill(type, t->rank, 0, elements), *out = fill(type, 0, 0, elements);
	sw_status status = t->ops->all_reduce(t, ranks, n, monoid, type, in, out, elements, err);
	if (status == SW_OK)
		status = compare("all-reduce", monoid, type, ranks, n, 0, elements, out, err);
	free(in);
	free(out);
	return status;
}

static sw_status reduce_scatter(sw_transport *t, const int32_t *ranks, int32_t n, int32_t position,
                                sw_monoid monoid, sw_type type, int64_t elements, sw_error *err)
{
	void *in = fill(type, t->rank, 0, n * elements), *out = fill(type, 0, 0, elements);
	sw_status status =
		t->ops->reduce_scatter(t, ranks, n, monoid, type, in, out, elements, err);
	if (status == SW_OK)
		status = compare("reduce-scatter", monoid, type, ranks, n, position * elements,
		                 elements, out, err);
	free(in);
	free(out);
	return status;
}

static sw_status reduce_in_groups(sw_transport *t, sw_monoid monoid, sw_type type, int64_t elements,
                                  sw_error *err)
{
	int32_t ranks[MAX_RANKS], n, position;
	sw_status status = SW_OK;
	for (int kind = 0; kind < GROUP_KINDS && status == SW_OK; kind++) {
		if (!make_group(kind, t->size, t->rank, ranks, &n, &position))
			continue;
		status = all_reduce(t, ranks, n, monoid, type, elements, err);
		if (status == SW_OK)
			status = reduce_scatter(t, ranks, n, position, monoid, type, elements, err);
	}
	return status;
}

static sw_status reduce_every_type(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	sw_status status = SW_OK;
	for (sw_type type = 0; type < SW_TYPE_COUNT; type++)
		for (sw_monoid monoid = SW_MONOID_SUM; monoid <= SW_MONOID_OR && status == SW_OK;
		     monoid++)
			if (has_operation(monoid, type))
				status = reduce_in_groups(t, monoid, type, 13, err);
	return status;
}

static sw_status reduce_every_size(sw_transport *t, void *context, sw_error *err)
{
	static const sw_type types[] = {SW_F32, SW_S8};
	static const int64_t sizes[] = {0, 1, 7, 1025, 20001};
	(void)context;
	sw_status status = SW_OK;
	for (size_t i = 0; i < SW_COUNT(types); i++)
		for (size_t k = 0; k < SW_COUNT(sizes) - (i > 0) && status == SW_OK; k++)
			status = reduce_in_groups(t, SW_MONOID_SUM, types[i], sizes[k], err);
	return status;
}

/* Reduce one type of each way to compute: float, double, integers, complex, logical. */
static sw_status reduce_some_types(sw_transport *t, void *context, sw_error *err)
{
	static const sw_type types[] = {SW_PRED, SW_S32, SW_U8, SW_F16, SW_F64, SW_C64};
	(void)context;
	sw_status status = SW_OK;
	for (size_t i = 0; i < SW_COUNT(types); i++)
		for (sw_monoid monoid = SW_MONOID_SUM; monoid <= SW_MONOID_OR && status == SW_OK;
		     monoid++)
			if (has_operation(monoid, types[i]))
				status = reduce_in_groups(t, monoid, types[i], 13, err);
	return status;
}

static void reductions_of_every_type_and_monoid(void **state)
{
	(void)state;
	run_everywhere(reduce_every_type, NULL);
	run_by_every_algorithm(reduce_some_types, NULL);
}

static void reductions_of_every_size(void **state)
{
	(void)state;
	run_by_every_algorithm(reduce_every_size, NULL);
}

/* 1/3 is exact in no type: the sum is rounded once, and all ranks get the same bits. */
static sw_status sum_thirds(sw_transport *t, void *context, sw_error *err)
{
	enum { ELEMENTS = 9001 };
	sw_type type = *(const sw_type *)context;
	int32_t ranks[MAX_RANKS], n, position;
	char *in = sw_alloc(ELEMENTS * 8), *out = sw_alloc(ELEMENTS * 8),
	     *all = sw_alloc(ELEMENTS * 8 * MAX_RANKS);
	double third;
	sw_element_set(type, &third, 0, 1.0 / 3);
	float sum = 0;
	for (int32_t r = 0; r < t->size; r++)
		sum += (float)sw_element_get(type, &third, 0);
	char wanted[8];
	sw_element_set(type, wanted, 0, sum);
	for (int64_t e = 0; e < ELEMENTS; e++)
		sw_element_set(type, in, e, 1.0 / 3);
	make_group(0, t->size, t->rank, ranks, &n, &position);
	int64_t width = sw_type_bytes(type), bytes = ELEMENTS * width;
	sw_status status =
		t->ops->all_reduce(t, ranks, n, SW_MONOID_SUM, type, in, out, ELEMENTS, err);
	if (status == SW_OK)
		status = t->ops->all_gather(t, ranks, n, out, all, bytes, err);
	for (int64_t e = 0; e < n * ELEMENTS && status == SW_OK; e++)
		if (memcmp(wanted, all + e * width, (size_t)width))
			status = sw_fail(err, SW_NO, "%s: %g is not %g", sw_type_name(type),
			                 sw_element_get(type, all, e), sum);
	free(in);
	free(out);
	free(all);
	return status;
}

static void sums_are_rounded_once_and_equal_everywhere(void **state)
{
	(void)state;
	static sw_type types[] = {SW_F32, SW_BF16, SW_F16};
	for (size_t i = 0; i < SW_COUNT(types); i++)
		run_everywhere(sum_thirds, &types[i]);
}

/* Sum inexact numbers: every rank gets the same bits, near the true sum, with every algorithm. */
static sw_status sum_roughly(sw_transport *t, void *context, sw_error *err)
{
	/* enough for more than one lane; narrow types are slower */
	sw_type type = *(const sw_type *)context;
	int64_t elements = type == SW_F32 ? 600001 : 5001;
	int32_t ranks[MAX_RANKS], n, position;
	int64_t width = sw_type_bytes(type), bytes = elements * width;
	char *in = sw_alloc((size_t)bytes), *out = sw_alloc((size_t)bytes),
	     *all = sw_alloc((size_t)bytes * MAX_RANKS);
	for (int64_t e = 0; e < elements; e++)
		sw_element_set(type, in, e, sw_random_unit(3, (uint64_t)t->rank, (uint64_t)e));
	make_group(0, t->size, t->rank, ranks, &n, &position);
	sw_status status =
		t->ops->all_reduce(t, ranks, n, SW_MONOID_SUM, type, in, out, elements, err);
	if (status == SW_OK)
		status = t->ops->all_gather(t, ranks, n, out, all, bytes, err);
	for (int32_t r = 0; r < n && status == SW_OK; r++)
		if (memcmp(all + r * bytes, out, (size_t)bytes))
			status = sw_fail(err, SW_NO, "rank %d has other sums than rank %d", r,
			                 t->rank);
	for (int64_t e = 0; e < elements && status == SW_OK; e += 97) {
		double sum = 0, got = sw_element_get(type, out, e);
		for (int32_t r = 0; r < n; r++)
			sum += sw_random_unit(3, (uint64_t)r, (uint64_t)e);
		if (fabs(got - sum) > n * sum * (type == SW_BF16 ? 1. / 128 : 1e-6))
			status = sw_fail(err, SW_NO, "element %lld is %g, not %g", (long long)e,
			                 got, sum);
	}
	free(in);
	free(out);
	free(all);
	return status;
}

static void all_ranks_get_the_same_sums(void **state)
{
	(void)state;
	static sw_type types[] = {SW_F32, SW_BF16};
	for (size_t i = 0; i < SW_COUNT(types); i++)
		run_by_every_algorithm(sum_roughly, &types[i]);
}

static sw_status reduce_nan(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	int32_t ranks[MAX_RANKS], n, position;
	make_group(0, t->size, t->rank, ranks, &n, &position);
	float in = t->rank == t->size - 1 ? NAN : (float)t->rank, out = 0;
	for (sw_monoid monoid = SW_MONOID_SUM; monoid <= SW_MONOID_MIN; monoid++) {
		sw_status status =
			t->ops->all_reduce(t, ranks, n, monoid, SW_F32, &in, &out, 1, err);
		if (status)
			return status;
		if (!isnan(out))
			return sw_fail(err, SW_NO, "%s of a NaN is %g", sw_monoid_name(monoid),
			               out);
	}
	return SW_OK;
}

static void nan_propagates_through_every_reduction(void **state)
{
	(void)state;
	run_by_every_algorithm(reduce_nan, NULL);
}

/* ---- moves ------------------------------------------------------------------------------ */

/* Byte b of block i that rank r sends. */
static char mark(int32_t r, int32_t i, int64_t b)
{
	return (char)(((uint64_t)r * 977 + (uint64_t)i * 131 + (uint64_t)b) *
	                      UINT64_C(0x9e3779b97f4a7c15) >>
	              56);
}

static sw_status gather(sw_transport *t, const int32_t *ranks, int32_t n, int64_t bytes,
                        sw_error *err)
{
	char *in = sw_alloc((size_t)bytes + 1), *out = sw_alloc((size_t)(n * bytes) + 1);
	for (int64_t b = 0; b < bytes; b++)
		in[b] = mark(t->rank, 0, b);
	sw_status status = t->ops->all_gather(t, ranks, n, in, out, bytes, err);
	for (int64_t k = 0; k < n * bytes && status == SW_OK; k++)
		if (out[k] != mark(ranks[k / bytes], 0, k % bytes))
			status = sw_fail(err, SW_NO, "all-gather of %lld: byte %lld",
			                 (long long)bytes, (long long)k);
	free(in);
	free(out);
	return status;
}

static sw_status exchange_blocks(sw_transport *t, const int32_t *ranks, int32_t n, int32_t position,
                                 int64_t bytes, sw_error *err)
{
	char *in = sw_alloc((size_t)(n * bytes) + 1), *out = sw_alloc((size_t)(n * bytes) + 1);
	for (int64_t k = 0; k < n * bytes; k++)
		in[k] = mark(t->rank, (int32_t)(k / bytes), k % bytes);
	sw_status status = t->ops->all_to_all(t, ranks, n, in, out, bytes, err);
	for (int64_t k = 0; k < n * bytes && status == SW_OK; k++)
		if (out[k] != mark(ranks[k / bytes], position, k % bytes))
			status = sw_fail(err, SW_NO, "all-to-all of %lld: byte %lld",
			                 (long long)bytes, (long long)k);
	free(in);
	free(out);
	return status;
}

static sw_status broadcast_block(sw_transport *t, const int32_t *ranks, int32_t n, int64_t bytes,
                                 sw_error *err)
{
	char *in = sw_alloc((size_t)bytes + 1), *out = sw_alloc((size_t)bytes + 1);
	for (int64_t b = 0; b < bytes; b++)
		in[b] = mark(t->rank, 3, b);
	sw_status status = t->ops->group_broadcast(t, ranks, n, in, out, bytes, err);
	for (int64_t b = 0; b < bytes && status == SW_OK; b++)
		if (out[b] != mark(ranks[0], 3, b))
			status = sw_fail(err, SW_NO, "broadcast of %lld: byte %lld",
			                 (long long)bytes, (long long)b);
	free(in);
	free(out);
	return status;
}

/* The first rank of the group gets the sum of small integers, which is exact in any order. */
static sw_status reduce_block(sw_transport *t, const int32_t *ranks, int32_t n, int32_t position,
                              int64_t bytes, sw_error *err)
{
	int64_t elements = bytes / (int64_t)sizeof(float);
	float *in = sw_alloc((size_t)bytes + 4), *out = sw_alloc((size_t)bytes + 4);
	for (int64_t e = 0; e < elements; e++)
		in[e] = (float)mark(t->rank, 5, e);
	sw_status status =
		t->ops->group_reduce(t, ranks, n, SW_MONOID_SUM, SW_F32, in, out, elements, err);
	for (int64_t e = 0; e < elements && position == 0 && status == SW_OK; e++) {
		float sum = 0;
		for (int32_t r = 0; r < n; r++)
			sum += (float)mark(ranks[r], 5, e);
		if (out[e] != sum)
			status = sw_fail(
				err, SW_NO, "reduction of %lld: element %lld is %g, not %g",
				(long long)bytes, (long long)e, (double)out[e], (double)sum);
	}
	free(in);
	free(out);
	return status;
}

static sw_status move_in_groups(sw_transport *t, void *context, sw_error *err)
{
	static const int64_t sizes[] = {0, 1, 12, 20011, 300011};
	int32_t ranks[MAX_RANKS], n, position;
	(void)context;
	sw_status status = SW_OK;
	for (int kind = 0; kind < GROUP_KINDS; kind++) {
		for (size_t k = 0; k < SW_COUNT(sizes) && status == SW_OK; k++) {
			bool large = sizes[k] > 100000;
			if ((large && kind > 1) ||
			    !make_group(kind, t->size, t->rank, ranks, &n, &position))
				continue;
			status = gather(t, ranks, n, sizes[k], err);
			if (status == SW_OK)
				status = exchange_blocks(t, ranks, n, position, sizes[k], err);
			if (status == SW_OK)
				status = broadcast_block(t, ranks, n, sizes[k], err);
			if (status == SW_OK)
				status = reduce_block(t, ranks, n, position, sizes[k], err);
		}
	}
	return status;
}

static void gathers_and_exchanges_of_every_size(void **state)
{
	(void)state;
	run_by_every_algorithm(move_in_groups, NULL);
}

/* Unless the shift is cyclic, the last rank receives from no rank, and the first sends to none. */
static sw_status shift(sw_transport *t, void *context, sw_error *err)
{
	enum { BYTES = 70001 };
	bool closed = *(const bool *)context;
	int32_t target = t->rank - 1, source = t->rank + 1;
	if (closed)
		target = (target + t->size) % t->size;
	source = source < t->size ? source : closed ? 0 : -1;
	char *in = sw_alloc(BYTES), *out = sw_alloc(BYTES);
	sw_status status = SW_OK;
	for (int round = 0; round < 5 && status == SW_OK; round++) {
		for (int64_t b = 0; b < BYTES; b++)
			in[b] = mark(t->rank, round, b);
		memset(out, 99, BYTES);
		status = t->ops->permute(t, target, source, in, out, BYTES, err);
		for (int64_t b = 0; b < BYTES && status == SW_OK; b++)
			if (out[b] != (source < 0 ? 0 : mark(source, round, b)))
				status = sw_fail(err, SW_NO, "permute, round %d: byte %lld", round,
				                 (long long)b);
	}
	free(in);
	free(out);
	return status;
}

static void a_permute_shifts_and_leaves_zeros(void **state)
{
	(void)state;
	static bool closed[] = {false, true};
	run_everywhere(shift, &closed[0]);
	run_everywhere(shift, &closed[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_algorithm_has_a_function_for_each_collective_that_it_serves),
		cmocka_unit_test(reductions_of_every_type_and_monoid),
		cmocka_unit_test(reductions_of_every_size),
		cmocka_unit_test(sums_are_rounded_once_and_equal_everywhere),
		cmocka_unit_test(all_ranks_get_the_same_sums),
		cmocka_unit_test(nan_propagates_through_every_reduction),
		cmocka_unit_test(gathers_and_exchanges_of_every_size),
		cmocka_unit_test(a_permute_shifts_and_leaves_zeros),
	};
	return cmocka_run_group_tests(tests, NULL, end_ranks);
}
