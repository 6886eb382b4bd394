/* Replica groups as sets of atoms. */
#include "cost/cost.h"

static uint32_t all_atoms(const sw_atoms *atoms)
{
	return (uint32_t)((UINT64_C(1) << atoms->n) - 1);
}

static uint32_t differing_atoms(const sw_atoms *atoms, int64_t a, int64_t b)
{
	uint32_t mask = 0;
	for (int32_t i = atoms->n - 1; i >= 0; i--) {
		mask |= (uint32_t)(a % atoms->size[i] != b % atoms->size[i]) << i;
		a /= atoms->size[i];
		b /= atoms->size[i];
	}
	return mask;
}

/* Return whether the members of this group are devices, were not seen in an earlier group, and
 * agree in all atoms outside the mask. */
static bool is_group(const sw_atoms *atoms, const sw_groups *groups, int64_t group, uint32_t mask,
                     bool *seen)
{
	int64_t first = sw_groups_member(groups, group, 0), devices = sw_atoms_devices(atoms);
	for (int64_t m = 0; m < groups->group_size; m++) {
		int64_t member = sw_groups_member(groups, group, m);
		if (member < 0 || member >= devices || seen[member])
			return false;
		if (differing_atoms(atoms, first, member) & ~mask)
			return false;
		seen[member] = true;
	}
	return true;
}

/* Return the atoms that vary in the first group; the later groups are compared with it. */
static uint32_t varying_atoms(const sw_atoms *atoms, const sw_groups *groups)
{
	uint32_t mask = 0;
	int64_t first = sw_groups_member(groups, 0, 0);
	for (int64_t m = 1; m < groups->group_size; m++)
		mask |= differing_atoms(atoms, first, sw_groups_member(groups, 0, m));
	return mask;
}

/* Add the atoms of the digit [stride, stride * extent) of a device's number. Return false if a
 * boundary of the digit divides an atom. */
static bool digit_atoms(const sw_atoms *atoms, int64_t stride, int64_t extent, uint32_t *mask)
{
	int64_t below = 1, covered = 1;
	for (int32_t i = atoms->n - 1; i >= 0; i--) {
		bool inside = below >= stride && below < stride * extent;
		covered *= inside ? atoms->size[i] : 1;
		*mask |= (uint32_t)inside << i;
		below *= atoms->size[i];
	}
	return covered == extent;
}

/* Find the atoms of the iota form, whose members count through its last digits. Return false if
 * these are not atoms, or the form does not have all devices. */
static bool iota_atoms(const sw_atoms *atoms, const sw_groups *groups, uint32_t *mask)
{
	int64_t strides[SW_MAX_ATOMS], devices = 1, members = 1;
	uint32_t found = 0;
	int32_t n = groups->reshape.n;
	if (groups->list || n > SW_MAX_ATOMS)
		return false;
	for (int32_t d = n - 1; d >= 0; d--) {
		strides[d] = devices;
		devices *= groups->reshape.v[d];
	}
	for (int32_t i = n - 1; i >= 0 && members < groups->group_size; i--) {
		int64_t d = groups->transpose.n ? groups->transpose.v[i] : i;
		members *= groups->reshape.v[d];
		if (!digit_atoms(atoms, strides[d], groups->reshape.v[d], &found))
			return false;
	}
	if (members != groups->group_size || devices != sw_atoms_devices(atoms))
		return false;
	*mask = found;
	return true;
}

/* The members of a group agree outside the mask; if they are as many as the mask has coordinates,
 * the group has all of them. The order of members does not matter. */
bool sw_cost_group_atoms(const sw_atoms *atoms, const sw_groups *groups, uint32_t *mask)
{
	*mask = all_atoms(atoms);
	if (groups->n_groups == 0)
		return true;
	int64_t devices = sw_atoms_devices(atoms);
	if (groups->group_size < 1 || groups->n_groups != devices / groups->group_size ||
	    devices % groups->group_size)
		return false;
	if (iota_atoms(atoms, groups, mask))
		return true;
	uint32_t varying = varying_atoms(atoms, groups);
	if (sw_atoms_group_size(atoms, varying) != groups->group_size)
		return false;
	bool *seen = sw_alloc((size_t)devices), is_set = true;
	for (int64_t g = 0; g < groups->n_groups && is_set; g++)
		is_set = is_group(atoms, groups, g, varying, seen);
	free(seen);
	if (is_set)
		*mask = varying;
	return is_set;
}
