/* Atoms: a device's number as digits. */
#include "cluster/cluster.h"

int64_t sw_atoms_devices(const sw_atoms *atoms)
{
	int64_t devices = 1;
	for (int32_t a = 0; a < atoms->n; a++)
		devices *= atoms->size[a];
	return devices;
}

int64_t sw_atoms_stride(const sw_atoms *atoms, int32_t atom)
{
	int64_t stride = 1;
	for (int32_t a = atom + 1; a < atoms->n; a++)
		stride *= atoms->size[a];
	return stride;
}

int32_t sw_atoms_coordinate(const sw_atoms *atoms, int64_t device, int32_t atom)
{
	return (int32_t)(device / sw_atoms_stride(atoms, atom) % atoms->size[atom]);
}

int64_t sw_atoms_group_size(const sw_atoms *atoms, uint32_t mask)
{
	int64_t size = 1;
	for (int32_t a = 0; a < atoms->n; a++)
		if (mask >> a & 1)
			size *= atoms->size[a];
	return size;
}

/* Neighbouring atoms on the same side of the mask are merged into one axis, which gives the
 * shortest iota form. */
static int32_t merge_axes(const sw_atoms *atoms, uint32_t mask, int64_t *extents, bool *inside)
{
	int32_t n = 0;
	for (int32_t a = 0; a < atoms->n; a++) {
		bool in = mask >> a & 1;
		if (n > 0 && inside[n - 1] == in) {
			extents[n - 1] *= atoms->size[a];
		} else {
			extents[n] = atoms->size[a];
			inside[n++] = in;
		}
	}
	return n;
}

sw_groups sw_atoms_groups(const sw_atoms *atoms, uint32_t mask, sw_arena *arena)
{
	int64_t extents[SW_MAX_ATOMS] = {1};
	bool inside[SW_MAX_ATOMS] = {false};
	int32_t n = SW_MAX(merge_axes(atoms, mask, extents, inside), 1), k = 0;
	sw_groups groups = {.group_size = sw_atoms_group_size(atoms, mask)};
	groups.n_groups = sw_atoms_devices(atoms) / groups.group_size;
	groups.reshape = (sw_ints){n, sw_arena_copy(arena, extents, (size_t)n * sizeof(*extents))};
	if (n == 1 || (n == 2 && inside[1]))
		return groups;
	int64_t *order = SW_NEW_N(arena, int64_t, n);
	for (int pass = 0; pass < 2; pass++)
		for (int32_t i = 0; i < n; i++)
			if (inside[i] == (pass == 1))
				order[k++] = i;
	groups.transpose = (sw_ints){n, order};
	return groups;
}
