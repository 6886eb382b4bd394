/* Atoms: devices as digits, and groups of devices. */
#include "cluster/cluster.h"

#include "test.h"

static const sw_atoms lists[] = {
	{0, {0}},
	{1, {2}},
	{1, {5}},
	{2, {2, 3}},
	{3, {3, 2, 2}},
	{4, {2, 3, 5, 2}},
	{5, {2, 2, 2, 2, 2}},
};

static void digits_make_up_the_device(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(lists); i++) {
		const sw_atoms *atoms = &lists[i];
		for (int64_t device = 0; device < sw_atoms_devices(atoms); device++) {
			int64_t sum = 0;
			for (int32_t a = 0; a < atoms->n; a++) {
				int32_t c = sw_atoms_coordinate(atoms, device, a);
				assert_in_range(c, 0, atoms->size[a] - 1);
				sum += c * sw_atoms_stride(atoms, a);
			}
			assert_int_equal(sum, device);
		}
	}
}

/* Member m of a group has the digits of m on the mask's atoms, outermost most significant, and
 * shares all others. */
static void check_groups(const sw_atoms *atoms, uint32_t mask, sw_arena *arena)
{
	sw_groups groups = sw_atoms_groups(atoms, mask, arena);
	int64_t devices = sw_atoms_devices(atoms), size = sw_atoms_group_size(atoms, mask);
	bool *seen = sw_arena_alloc(arena, (size_t)devices * sizeof(bool));
	assert_int_equal(groups.group_size, size);
	assert_int_equal(groups.n_groups * size, devices);
	assert_null(groups.list);
	for (int64_t g = 0; g < groups.n_groups; g++) {
		int64_t first = sw_groups_member(&groups, g, 0);
		for (int64_t m = 0; m < size; m++) {
			int64_t device = sw_groups_member(&groups, g, m), number = 0;
			assert_false(seen[device]);
			seen[device] = true;
			for (int32_t a = 0; a < atoms->n; a++) {
				int32_t c = sw_atoms_coordinate(atoms, device, a);
				if (mask >> a & 1)
					number = number * atoms->size[a] + c;
				else
					assert_int_equal(c, sw_atoms_coordinate(atoms, first, a));
			}
			assert_int_equal(number, m);
		}
	}
}

static void groups_differ_in_the_mask_only(void **state)
{
	sw_arena arena;
	(void)state;
	sw_arena_init(&arena);
	for (size_t i = 0; i < SW_COUNT(lists); i++)
		for (uint32_t mask = 0; mask < 1u << lists[i].n; mask++)
			check_groups(&lists[i], mask, &arena);
	sw_arena_clear(&arena);
}

static void innermost_atoms_need_no_transpose(void **state)
{
	sw_arena arena;
	(void)state;
	sw_arena_init(&arena);
	sw_groups groups = sw_atoms_groups(&lists[6], 0x1c, &arena);
	assert_int_equal(groups.transpose.n, 0);
	assert_int_equal(groups.reshape.n, 2);
	groups = sw_atoms_groups(&lists[6], 0x03, &arena);
	assert_int_equal(groups.transpose.n, 2);
	sw_arena_clear(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(digits_make_up_the_device),
		cmocka_unit_test(groups_differ_in_the_mask_only),
		cmocka_unit_test(innermost_atoms_need_no_transpose),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
