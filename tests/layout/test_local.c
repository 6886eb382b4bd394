/* A device's part is compared with the definition: an element is held iff all its digits are the
 * device's coordinates. */
#include "layout/layouts.h"

#include <string.h>

#include "test.h"

static void unravel(sw_shape shape, int64_t element, int64_t *index)
{
	for (int32_t dim = shape.rank - 1; dim >= 0; dim--) {
		index[dim] = element % shape.dims[dim];
		element /= shape.dims[dim];
	}
}

static int64_t ravel(const int64_t *dims, int32_t rank, const int64_t *index)
{
	int64_t element = 0;
	for (int32_t dim = 0; dim < rank; dim++)
		element = element * dims[dim] + index[dim];
	return element;
}

/* Coordinates are computed independently here, so that the arithmetic of sw_atoms is checked
 * too. */
static bool held(const sw_atoms *atoms, const sw_layout *layout, int64_t device,
                 const int64_t *index)
{
	for (int32_t a = atoms->n - 1; a >= 0; a--) {
		int64_t coordinate = device % atoms->size[a];
		device /= atoms->size[a];
		sw_state s = layout->state[a];
		if (s.kind == SW_STATE_S && index[s.dim] / s.stride % atoms->size[a] != coordinate)
			return false;
	}
	return true;
}

/* Check that the part consists of the elements that the device holds, in the order of the whole. */
static void check_device(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout,
                         int64_t device, const int32_t *whole, int32_t *part, int32_t *pasted)
{
	int64_t elements = sw_shape_elements(shape), local_dims[SW_MAX_RANK], local = 0;
	sw_layout_local_dims(atoms, shape, layout, local_dims);
	sw_layout_cut(atoms, shape, layout, device, sizeof(*whole), whole, part);
	sw_layout_paste(atoms, shape, layout, device, sizeof(*whole), part, pasted);
	for (int64_t e = 0; e < elements; e++) {
		int64_t index[SW_MAX_RANK], at[SW_MAX_RANK];
		unravel(shape, e, index);
		bool expected = held(atoms, layout, device, index);
		assert_int_equal(sw_layout_holds(atoms, layout, device, index), expected);
		if (!expected)
			continue;
		assert_int_equal(part[local], whole[e]);
		sw_shape local_shape = {.type = shape.type, .rank = shape.rank, .dims = local_dims};
		unravel(local_shape, local, at);
		assert_int_equal(ravel(local_dims, shape.rank, at), local);
		for (int32_t dim = 0; dim < shape.rank; dim++)
			assert_int_equal(
				sw_layout_global_index(atoms, layout, dim, device, at[dim]),
				index[dim]);
		local++;
	}
	assert_int_equal(local * sw_type_bytes(shape.type),
	                 sw_layout_local_bytes(atoms, shape, layout));
}

static void check_all_layouts(const sw_atoms *atoms, sw_shape shape)
{
	int64_t elements = sw_shape_elements(shape);
	int32_t *whole = sw_alloc((size_t)elements * 3 * sizeof(*whole) + 1),
		*part = whole + elements, *pasted = part + elements;
	layout_list all = {0};
	for (int64_t e = 0; e < elements; e++)
		whole[e] = (int32_t)(1000 + e);
	list_layouts(atoms, shape, SW_MONOID_SUM, &all);
	for (size_t i = 0; i < all.len; i++) {
		memset(pasted, 0, (size_t)elements * sizeof(*pasted));
		for (int64_t device = 0; device < sw_atoms_devices(atoms); device++)
			check_device(atoms, shape, &all.data[i], device, whole, part, pasted);
		assert_memory_equal(pasted, whole, (size_t)elements * sizeof(*whole));
	}
	sw_vec_clear(&all);
	free(whole);
}

/* Check all lists of up to three atoms of sizes 2, 3 and 5. */
static void for_all_atoms(sw_shape shape, int32_t most)
{
	static const int32_t sizes[] = {2, 3, 5};
	for (int32_t n = 0; n <= most; n++) {
		int32_t codes = n == 0 ? 1 : n == 1 ? 3 : n == 2 ? 9 : 27;
		for (int32_t code = 0; code < codes; code++) {
			sw_atoms atoms = {.n = n};
			for (int32_t a = 0, rest = code; a < n; a++, rest /= 3)
				atoms.size[a] = sizes[rest % 3];
			check_all_layouts(&atoms, shape);
		}
	}
}

static void parts_of_one_dimension(void **state)
{
	(void)state;
	for (int64_t n = 0; n <= 12; n++)
		for_all_atoms((sw_shape){.type = SW_S32, .rank = 1, .dims = &n}, 3);
}

static void parts_of_two_dimensions(void **state)
{
	(void)state;
	for (int64_t a = 1; a <= 12; a++) {
		for (int64_t b = 1; b <= 12; b++) {
			const int64_t dims[] = {a, b};
			for_all_atoms((sw_shape){.type = SW_S32, .rank = 2, .dims = dims},
			              a * b <= 48 ? 3 : 2);
		}
	}
}

static void parts_of_more_dimensions(void **state)
{
	static const int64_t shapes[][4] = {{2, 3, 4, 1}, {6, 1, 2, 2}, {5, 3, 2, 1},
	                                    {1, 4, 1, 6}, {3, 3, 3, 3}, {2, 0, 4, 2}};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(shapes); i++)
		for_all_atoms((sw_shape){.type = SW_S32, .rank = 4, .dims = shapes[i]},
		              i == 4 ? 2 : 3);
	for_all_atoms((sw_shape){.type = SW_S32, .rank = 0}, 2);
}

/* Elements of every size, in runs of one element and of many. */
static void elements_of_any_size(void **state)
{
	const int64_t dims[] = {4, 6, 3};
	sw_atoms atoms = parse_atoms("2,3");
	sw_shape shape = make_shape(3, dims);
	layout_list all = {0};
	(void)state;
	list_layouts(&atoms, shape, SW_MONOID_NONE, &all);
	for (int64_t bytes = 1; bytes <= 16; bytes *= 2) {
		unsigned char whole[72 * 16], part[72 * 16], pasted[72 * 16];
		for (size_t i = 0; i < sizeof(whole); i++)
			whole[i] = (unsigned char)(i * 7);
		for (size_t i = 0; i < all.len; i++) {
			memset(pasted, 0, sizeof(pasted));
			for (int64_t d = 0; d < 6; d++) {
				sw_layout_cut(&atoms, shape, &all.data[i], d, bytes, whole, part);
				sw_layout_paste(&atoms, shape, &all.data[i], d, bytes, part,
				                pasted);
			}
			assert_memory_equal(pasted, whole, (size_t)(72 * bytes));
		}
	}
	sw_vec_clear(&all);
}

/* ---- local data as digits --------------------------------------------------------------- */

static const struct {
	const char *atoms, *shape, *layout, *with;
	uint32_t extra;
	const char *factors; /* extent:atom; atom - for a run */
} factor_cases[] = {
	{"2,2", "8", "[B B]", "[S0 S0]", 3, "2:0 2:1 2:-"},
	{"2,2", "8", "[B B]", "[S0/1 S0/2]", 3, "2:- 2:1 2:0"},
	{"2,2", "8", "[S0 B]", "[S0 S0]", 2, "2:1 2:-"},
	/* the run spans the digit that is absent */
	{"2,2", "8", "[B S0/2]", "[S0 S0]", 1, "2:0 2:-"},
	/* all-to-all within a dimension, before ... */
	{"2,2", "12", "[S0 B]", "[S0/1 B]", 1, "3:- 2:0"},
	{"2,2", "12", "[S0/1 B]", "[S0 B]", 1, "2:0 3:-"}, /* ... and after */
	{"2,2", "8", "[S0 S0]", "[S0 S0]", 0, "2:-"},
	{"2,2", "4", "[S0 S0]", "[S0 S0]", 0, ""},
	{"2,3", "5", "[B B]", "[B B]", 3, "5:-"},
};

static void local_digits_are_where_the_table_states(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(factor_cases); i++) {
		int64_t dims[SW_MAX_RANK], extents[2 * SW_MAX_ATOMS + 1];
		int32_t atom_of[2 * SW_MAX_ATOMS + 1];
		sw_atoms atoms = parse_atoms(factor_cases[i].atoms);
		sw_shape shape = parse_shape(factor_cases[i].shape, dims);
		sw_layout layout, with;
		sw_text text = {0};
		assert_int_equal(
			sw_layout_parse(&atoms, shape, factor_cases[i].layout, &layout, NULL),
			SW_OK);
		assert_int_equal(sw_layout_parse(&atoms, shape, factor_cases[i].with, &with, NULL),
		                 SW_OK);
		int32_t n = sw_layout_local_digits(&atoms, shape, &layout, &with,
		                                   factor_cases[i].extra, 0, extents, atom_of);
		sw_text_add(&text, "");
		for (int32_t k = 0; k < n; k++) {
			sw_text_addf(&text, "%s%lld:", k ? " " : "", (long long)extents[k]);
			sw_text_addf(&text, atom_of[k] < 0 ? "-" : "%d", atom_of[k]);
		}
		assert_string_equal(text.data ? text.data : "", factor_cases[i].factors);
		sw_text_clear(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_one_dimension),
		cmocka_unit_test(parts_of_two_dimensions),
		cmocka_unit_test(parts_of_more_dimensions),
		cmocka_unit_test(elements_of_any_size),
		cmocka_unit_test(local_digits_are_where_the_table_states),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
