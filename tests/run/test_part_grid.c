/* Parts by digits: what they hold, and what is copied from one to another, against brute force. */
#include <string.h>

#include "run/part_grid.h"
#include "test.h"

#define EXTENT_MOST 24

/* Draw up to three digits per dimension, nested. */
static sw_part_grid draw_grid(sw_rng *rng, int32_t rank)
{
	sw_part_grid grid = {0};
	for (int32_t d = 0; d < rank; d++) {
		sw_grid_digit found[3];
		int64_t stride = 1;
		int32_t n = (int32_t)sw_rng_below(rng, 4);
		for (int32_t k = 0; k < n; k++) {
			stride *= 1 + sw_rng_below(rng, 3);
			found[k] = (sw_grid_digit){d, 1 + (int32_t)sw_rng_below(rng, 3), stride};
			stride *= found[k].size;
		}
		for (int32_t k = n; k-- > 0;)
			grid.digits[grid.n++] = found[k];
	}
	return grid;
}

static bool holds(const sw_part_grid *grid, const int32_t *at, int32_t dim, int64_t index)
{
	for (int32_t k = 0; k < grid->n; k++)
		if (grid->digits[k].dim == dim &&
		    index / grid->digits[k].stride % grid->digits[k].size != at[k])
			return false;
	return true;
}

static void coordinates_of(const sw_part_grid *grid, int64_t part, int32_t *at)
{
	for (int32_t k = grid->n; k-- > 0; part /= grid->digits[k].size)
		at[k] = (int32_t)(part % grid->digits[k].size);
}

/* The part as brute force makes it: the elements that are held, in order. Returns their number. */
static int64_t cut(const sw_part_grid *grid, const int32_t *at, sw_shape array,
                   const int32_t *whole, int32_t *part)
{
	int64_t n = 0, e = 0;
	for (int64_t i = 0; i < array.dims[0]; i++)
		for (int64_t j = 0; j < array.dims[1]; j++)
			for (int64_t k = 0; k < array.dims[2]; k++, e++)
				if (holds(grid, at, 0, i) && holds(grid, at, 1, j) &&
				    holds(grid, at, 2, k))
					part[n++] = whole[e];
	return n;
}

#define ELEMENTS (EXTENT_MOST * EXTENT_MOST * EXTENT_MOST)
typedef struct arrays {
	int32_t whole[ELEMENTS], from[ELEMENTS], wanted[ELEMENTS], got[ELEMENTS];
} arrays;

static void check_target(sw_shape array, const sw_part_grid *from, const sw_part_grid *to,
                         int64_t target, arrays *a)
{
	int32_t at_to[SW_MAX_ATOMS], at_from[SW_MAX_ATOMS];
	int64_t to_dims[3], from_dims[3], bytes = 0;
	coordinates_of(to, target, at_to);
	int64_t n = cut(to, at_to, array, a->whole, a->wanted);
	sw_grid_dims(to, at_to, array, to_dims);
	assert_int_equal(to_dims[0] * to_dims[1] * to_dims[2], n);
	memset(a->got, -1, sizeof(a->got));
	for (int64_t p = 0; p < sw_grid_parts(from); p++) {
		coordinates_of(from, p, at_from);
		cut(from, at_from, array, a->whole, a->from);
		sw_grid_dims(from, at_from, array, from_dims);
		sw_grid_part source = {.grid = from, .coordinates = at_from, .dims = from_dims},
			     sink = {.grid = to, .coordinates = at_to, .dims = to_dims};
		bytes += sw_grid_copy(array, &source, (const char *)a->from, &sink, (char *)a->got);
	}
	assert_int_equal(bytes, n * 4);
	assert_memory_equal(a->got, a->wanted, (size_t)n * 4);
}

static void every_part_is_put_together_from_any_other_parts(void **state)
{
	(void)state;
	sw_rng rng = {.seed = 7};
	arrays *a = sw_alloc(sizeof(*a));
	sw_error err = {0};
	for (int32_t i = 0; i < ELEMENTS; i++)
		a->whole[i] = i;
	for (int trial = 0; trial < 200; trial++) {
		int64_t dims[3];
		for (int d = 0; d < 3; d++)
			dims[d] = 1 + sw_rng_below(&rng, 9);
		sw_shape array = {.type = SW_S32, .rank = 3, .dims = dims};
		sw_part_grid from = draw_grid(&rng, 3), to = draw_grid(&rng, 3);
		assert_int_equal(sw_grid_check(&from, array, &err), SW_OK);
		assert_int_equal(sw_grid_check(&to, array, &err), SW_OK);
		if (sw_grid_parts(&from) * sw_grid_parts(&to) > 2000)
			continue;
		for (int64_t part = 0; part < sw_grid_parts(&to); part++)
			check_target(array, &from, &to, part, a);
	}
	free(a);
}

/* The bytes that parts of a piece give to a part of another. */
static int64_t copy_piece(sw_shape array, const sw_part_grid *from, const sw_grid_piece *piece,
                          const sw_grid_part *to, arrays *a)
{
	int64_t extents[3], dims[3], before = 1, behind = 1, n = 0, bytes = 0;
	memcpy(extents, array.dims, sizeof(extents));
	extents[piece->dim] = piece->length;
	sw_shape cut_off = {.type = array.type, .rank = 3, .dims = extents};
	for (int32_t d = 0; d < 3; d++) {
		before *= d < piece->dim ? array.dims[d] : 1;
		behind *= d > piece->dim ? array.dims[d] : 1;
	}
	for (int64_t i = 0; i < before; i++)
		for (int64_t k = 0; k < piece->length * behind; k++)
			a->wanted[n++] = a->whole[(i * array.dims[piece->dim] + piece->start) * behind +
			                          k];
	for (int64_t p = 0; p < sw_grid_parts(from); p++) {
		int32_t at[SW_MAX_ATOMS];
		coordinates_of(from, p, at);
		cut(from, at, cut_off, a->wanted, a->from);
		sw_grid_dims(from, at, cut_off, dims);
		sw_grid_part source = {from, at, dims, *piece};
		bytes += sw_grid_copy(array, &source, (const char *)a->from, to, (char *)a->got);
	}
	return bytes;
}

static void pieces_of_any_lengths_are_put_together(void **state)
{
	(void)state;
	sw_rng rng = {.seed = 11};
	arrays *a = sw_alloc(sizeof(*a));
	for (int32_t i = 0; i < ELEMENTS; i++)
		a->whole[i] = i;
	for (int trial = 0; trial < 300; trial++) {
		int64_t dims[3], extents[3], n = 1, bytes = 0;
		for (int d = 0; d < 3; d++)
			extents[d] = dims[d] = 2 + sw_rng_below(&rng, 7);
		sw_shape array = {.type = SW_S32, .rank = 3, .dims = dims};
		int32_t dim = (int32_t)sw_rng_below(&rng, 3), at[SW_MAX_ATOMS] = {0};
		/* what is put together is a piece, too, along any dimension */
		sw_grid_piece whole = {.dim = (int32_t)sw_rng_below(&rng, 3)};
		whole.start = sw_rng_below(&rng, dims[whole.dim]);
		whole.length = 1 + sw_rng_below(&rng, dims[whole.dim] - whole.start);
		extents[whole.dim] = whole.length;
		static const sw_part_grid all = {0};
		sw_grid_part to = {&all, at, extents, whole};
		assert_false(sw_grid_is_padded(&to, array));
		memset(a->got, -1, sizeof(a->got));
		for (int64_t start = 0, length; start < dims[dim]; start += length) {
			length = 1 + sw_rng_below(&rng, dims[dim] - start);
			sw_part_grid from = draw_grid(&rng, 3);
			bytes += copy_piece(array, &from, &(sw_grid_piece){dim, start, length}, &to,
			                    a);
		}
		for (int32_t d = 0; d < 3; d++)
			n *= extents[d];
		assert_int_equal(bytes, n * 4);
		for (int64_t e = 0; e < n; e++) {
			int64_t i[3] = {e / (extents[1] * extents[2]), e / extents[2] % extents[1],
			                e % extents[2]};
			i[whole.dim] += whole.start;
			assert_int_equal(a->got[e], (i[0] * dims[1] + i[1]) * dims[2] + i[2]);
		}
	}
	free(a);
}

static void digits_that_no_array_has_are_refused(void **state)
{
	(void)state;
	int64_t dims[] = {8, 8};
	sw_shape array = {.type = SW_F32, .rank = 2, .dims = dims};
	static const sw_part_grid bad[] = {
		{1, {{2, 2, 1}}},                              /* no such dimension */
		{1, {{-1, 2, 1}}},                             /* nor this */
		{1, {{0, 0, 1}}},                              /* no values */
		{1, {{0, 2, 0}}},                              /* no stride */
		{2, {{1, 2, 1}, {0, 2, 1}}},                   /* order of dimensions */
		{2, {{0, 2, 3}, {0, 2, 1}}},                   /* do not nest */
		{2, {{0, 2, 1}, {0, 2, 2}}},                   /* ascending */
		{1, {{0, INT32_MAX, 1 << 20}}},                /* too large */
		{2, {{0, 1 << 15, 1 << 15}, {1, 1 << 15, 1}}}, /* too many parts */
	};
	for (size_t i = 0; i < SW_COUNT(bad); i++) {
		sw_error err = {0};
		assert_int_equal(sw_grid_check(&bad[i], array, &err), SW_ERR_INPUT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_part_is_put_together_from_any_other_parts),
		cmocka_unit_test(pieces_of_any_lengths_are_put_together),
		cmocka_unit_test(digits_that_no_array_has_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
