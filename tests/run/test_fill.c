/* Filling inputs: the same numbers in every layout, and the distributions that recipes name. */
#include "fixtures.h"

#include <math.h>
#include <string.h>

static const sw_atoms atoms = {.n = 3, .size = {2, 3, 2}};

static sw_shape make_shape(sw_type type, const int64_t *dims, int32_t rank)
{
	return (sw_shape){.type = type, .rank = rank, .dims = dims};
}

static sw_tensor fill_part(sw_shape whole, const sw_layout *layout, int64_t device,
                           const sw_fill *fill, int64_t *dims)
{
	sw_tensor tensor;
	sw_error err;
	sw_layout_local_dims(&atoms, whole, layout, dims);
	assert_int_equal(
		sw_tensor_new(make_shape(whole.type, dims, whole.rank), false, &tensor, &err),
		SW_OK);
	assert_int_equal(
		sw_fill_local(&atoms, whole, NULL, layout, device, fill, 5, 9, &tensor, &err),
		SW_OK);
	return tensor;
}

static void check_layout(sw_shape shape, const char *text, const sw_fill *fill)
{
	sw_layout layout, whole = sw_layout_replicated(&atoms);
	sw_error err = {0};
	int64_t dims[SW_MAX_RANK], part_dims[SW_MAX_RANK];
	assert_int_equal(sw_layout_parse(&atoms, shape, text, &layout, &err), SW_OK);
	sw_tensor all = fill_part(shape, &whole, 0, fill, dims);
	size_t bytes = (size_t)sw_layout_local_bytes(&atoms, shape, &layout);
	char *wanted = sw_alloc(bytes);
	for (int64_t device = 0; device < sw_atoms_devices(&atoms); device++) {
		sw_tensor part = fill_part(shape, &layout, device, fill, part_dims);
		sw_layout_cut(&atoms, shape, &layout, device, sw_type_bytes(shape.type),
		              sw_tensor_data(all), wanted);
		assert_memory_equal(wanted, sw_tensor_data(part), bytes);
		sw_tensor_drop(&part);
	}
	free(wanted);
	sw_tensor_drop(&all);
}

static void every_layout_draws_the_same_numbers(void **state)
{
	(void)state;
	static const int64_t dims[] = {12, 24};
	static const char *const layouts[] = {
		"[B B B]", "[S0 S0 S0]", "[S1 S1 S1]", "[S0 S1 S0]", "[S1/1 B S0]", "[B S0/1 S1]",
	};
	static const sw_fill fills[] = {
		{.kind = SW_FILL_NORMAL, .a = 0, .b = 1},
		{.kind = SW_FILL_UNIFORM, .a = -1, .b = 3},
		{.kind = SW_FILL_INTEGERS, .a = 0, .b = 100},
		{.kind = SW_FILL_CONSTANT, .a = 7, .b = 0},
	};
	static const sw_type types[] = {SW_F32, SW_BF16, SW_S32, SW_F64};
	for (size_t t = 0; t < SW_COUNT(types); t++)
		for (size_t f = 0; f < SW_COUNT(fills); f++)
			for (size_t i = 0; i < SW_COUNT(layouts); i++)
				check_layout(make_shape(types[t], dims, 2), layouts[i], &fills[f]);
}

/* Compute the mean, the deviation and the range of 10,000 numbers. */
static void draw(const sw_fill *fill, double *mean, double *deviation, double *low, double *high)
{
	static const int64_t dims[] = {100, 100};
	sw_layout whole = sw_layout_replicated(&atoms);
	int64_t local[SW_MAX_RANK];
	sw_tensor tensor = fill_part(make_shape(SW_F64, dims, 2), &whole, 0, fill, local);
	const double *x = sw_tensor_data(tensor);
	double sum = 0, squares = 0;
	*low = INFINITY;
	*high = -INFINITY;
	for (int i = 0; i < 10000; i++) {
		sum += x[i];
		squares += x[i] * x[i];
		*low = fmin(*low, x[i]);
		*high = fmax(*high, x[i]);
	}
	*mean = sum / 10000;
	*deviation = sqrt(squares / 10000 - *mean * *mean);
	sw_tensor_drop(&tensor);
}

static void recipes_have_their_distributions(void **state)
{
	(void)state;
	static const struct {
		sw_fill fill;
		double mean, deviation, low, high; /* low and high bound all numbers */
	} cases[] = {
		{{.kind = SW_FILL_ZEROS, .a = 5, .b = 5}, 0, 0, 0, 0},
		{{.kind = SW_FILL_ONES, .a = 5, .b = 5}, 1, 0, 1, 1},
		{{.kind = SW_FILL_CONSTANT, .a = 5, .b = 0}, 5, 0, 5, 5},
		{{.kind = SW_FILL_NORMAL, .a = 2, .b = 0.5}, 2, 0.5, -1, 5},
		{{.kind = SW_FILL_UNIFORM, .a = -1, .b = 3}, 1, 1.1547, -1, 3},
		{{.kind = SW_FILL_INTEGERS, .a = 0, .b = 10}, 4.5, 2.8723, 0, 9},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		double mean, deviation, low, high;
		draw(&cases[i].fill, &mean, &deviation, &low, &high);
		/* The tolerance is four standard errors of 10,000 numbers. */
		assert_true(fabs(mean - cases[i].mean) <= 0.04 * cases[i].deviation);
		assert_true(fabs(deviation - cases[i].deviation) <= 0.04 * cases[i].deviation);
		assert_true(low >= cases[i].low && high <= cases[i].high);
	}
}

static void scalars_and_empty_tensors_are_filled(void **state)
{
	(void)state;
	static const int64_t none[] = {0, 4};
	sw_layout whole = sw_layout_replicated(&atoms);
	int64_t dims[SW_MAX_RANK];
	sw_fill three = {.kind = SW_FILL_CONSTANT, .a = 3, .b = 0};
	sw_tensor scalar = fill_part(make_shape(SW_S32, NULL, 0), &whole, 3, &three, dims);
	assert_int_equal(*(int32_t *)sw_tensor_data(scalar), 3);
	sw_tensor_drop(&scalar);
	sw_tensor empty = fill_part(make_shape(SW_F32, none, 2), &whole, 3, &three, dims);
	sw_tensor_drop(&empty);
}

static void partial_sums_are_refused(void **state)
{
	(void)state;
	static const int64_t dims[] = {4};
	sw_layout layout = sw_layout_replicated(&atoms);
	sw_tensor tensor;
	sw_error err;
	sw_fill zeros = {.kind = SW_FILL_ZEROS, .a = 0, .b = 0};
	layout.state[0].kind = SW_STATE_P;
	layout.monoid = SW_MONOID_SUM;
	assert_int_equal(sw_tensor_new(make_shape(SW_F32, dims, 1), false, &tensor, &err), SW_OK);
	assert_int_equal(
		sw_fill_local(&atoms, tensor.shape, NULL, &layout, 0, &zeros, 0, 0, &tensor, &err),
		SW_ERR_INTERNAL);
	sw_tensor_drop(&tensor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_layout_draws_the_same_numbers),
		cmocka_unit_test(recipes_have_their_distributions),
		cmocka_unit_test(scalars_and_empty_tensors_are_filled),
		cmocka_unit_test(partial_sums_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
