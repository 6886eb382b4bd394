/* Replica groups that are sets of atoms are distinguished from those that are not. */
#include "test.h"

#include "cost/cost.h"

#include <string.h>

static const sw_atoms three_twos = {.n = 3, .size = {2, 2, 2}};

typedef struct group_case {
	const char *name;
	int64_t n_groups, group_size;
	int64_t list[8];
	bool is_set;
	uint32_t mask;
} group_case;

static void lists_are_recognised(void **state)
{
	(void)state;
	const group_case cases[] = {
		{"innermost", 4, 2, {0, 1, 2, 3, 4, 5, 6, 7}, true, 4},
		{"outermost", 4, 2, {0, 4, 1, 5, 2, 6, 3, 7}, true, 1},
		{"outer and inner", 2, 4, {0, 1, 4, 5, 2, 3, 6, 7}, true, 5},
		{"members and groups in any order", 2, 4, {7, 2, 6, 3, 1, 0, 5, 4}, true, 5},
		{"all", 1, 8, {0, 1, 2, 3, 4, 5, 6, 7}, true, 7},
		{"each alone", 8, 1, {0, 1, 2, 3, 4, 5, 6, 7}, true, 0},
		{"crossed pairs", 4, 2, {0, 3, 1, 2, 4, 7, 5, 6}, false, 7},
		{"pairs along different atoms", 4, 2, {0, 1, 2, 3, 4, 6, 5, 7}, false, 7},
		{"ragged", 2, 4, {0, 1, 2, 3, 4, 5, -1, -1}, false, 7},
		{"a rank that does not exist", 4, 2, {0, 1, 2, 3, 4, 5, 6, 8}, false, 7},
		{"a rank twice", 4, 2, {0, 1, 0, 1, 4, 5, 6, 7}, false, 7},
		{"some ranks only", 2, 2, {0, 1, 2, 3}, false, 7},
		{"three of eight", 2, 3, {0, 1, 2, 3, 4, 5}, false, 7},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_groups groups = {
			cases[i].n_groups, cases[i].group_size, cases[i].list, {0}, {0}};
		uint32_t mask = 99;
		if (sw_cost_group_atoms(&three_twos, &groups, &mask) != cases[i].is_set ||
		    mask != cases[i].mask)
			fail_msg("%s: mask %u", cases[i].name, mask);
	}
}

static void no_groups_are_all_ranks(void **state)
{
	(void)state;
	uint32_t mask = 0;
	sw_groups groups = {0};
	assert_true(sw_cost_group_atoms(&three_twos, &groups, &mask));
	assert_int_equal(mask, 7);
}

/* The digits of an iota form need not be those of the devices. */
static void an_iota_form_has_the_atoms_of_its_list(void **state)
{
	(void)state;
	static const sw_atoms shapes[] = {
		{.n = 3, .size = {2, 2, 2}}, {.n = 2, .size = {4, 2}}, {.n = 2, .size = {2, 4}}};
	static const int64_t extents[][3] = {{2, 2, 2}, {4, 2, 1}, {2, 4, 1}, {1, 8, 1}};
	static const int64_t orders[][3] = {{0, 1, 2}, {1, 0, 2}, {2, 1, 0},
	                                    {0, 2, 1}, {1, 2, 0}, {2, 0, 1}};
	int recognised = 0, others = 0;
	for (size_t c = 0; c < SW_COUNT(shapes) * SW_COUNT(extents) * SW_COUNT(orders) * 4; c++) {
		const sw_atoms *atoms = &shapes[c % 3];
		sw_groups iota = {.group_size = INT64_C(1) << c / 3 % 4};
		iota.n_groups = 8 / iota.group_size;
		iota.reshape = (sw_ints){3, extents[c / 12 % 4]};
		iota.transpose = (sw_ints){3, orders[c / 48]};
		int64_t list[8];
		for (int64_t i = 0; i < 8; i++)
			list[i] = sw_groups_member(&iota, i / iota.group_size, i % iota.group_size);
		sw_groups listed = {iota.n_groups, iota.group_size, list, {0}, {0}};
		uint32_t mask, mask_of_list;
		bool is_set = sw_cost_group_atoms(atoms, &listed, &mask_of_list);
		assert_int_equal(sw_cost_group_atoms(atoms, &iota, &mask), is_set);
		assert_int_equal(mask, mask_of_list);
		recognised += is_set;
		others += !is_set;
	}
	assert_true(recognised > 100 && others > 20);
}

static void every_mask_is_recognised_in_iota_form_and_as_a_list(void **state)
{
	(void)state;
	const sw_atoms shapes[] = {
		{.n = 0},
		{.n = 1, .size = {5}},
		{.n = 4, .size = {3, 2, 2, 5}},
		{.n = 6, .size = {2, 2, 3, 2, 2, 2}},
	};
	for (size_t i = 0; i < SW_COUNT(shapes); i++)
		for (uint32_t mask = 0; mask < UINT32_C(1) << shapes[i].n; mask++) {
			sw_arena arena = {0};
			sw_groups iota = sw_atoms_groups(&shapes[i], mask, &arena);
			int64_t devices = sw_atoms_devices(&shapes[i]),
				*list = SW_NEW_N(&arena, int64_t, devices);
			for (int64_t k = 0; k < devices; k++)
				list[k] = sw_groups_member(&iota, k / iota.group_size,
				                           k % iota.group_size);
			sw_groups listed = {iota.n_groups, iota.group_size, list, {0}, {0}};
			uint32_t found = 99, found_in_list = 99;
			assert_true(sw_cost_group_atoms(&shapes[i], &iota, &found));
			assert_true(sw_cost_group_atoms(&shapes[i], &listed, &found_in_list));
			assert_int_equal(found, mask);
			assert_int_equal(found_in_list, mask);
			sw_arena_clear(&arena);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_recognised),
		cmocka_unit_test(no_groups_are_all_ranks),
		cmocka_unit_test(an_iota_form_has_the_atoms_of_its_list),
		cmocka_unit_test(every_mask_is_recognised_in_iota_form_and_as_a_list),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
