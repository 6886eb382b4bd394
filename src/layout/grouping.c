/* Convert layouts and paths between groups of atoms and the atoms themselves. */
#include "layout/grouping.h"

#include <string.h>

void grouping_init(grouping *g, const sw_atoms *atoms, const uint32_t *masks, int32_t n)
{
	*g = (grouping){.atoms = atoms, .groups = {.n = n}};
	for (int32_t i = 0; i < n; i++) {
		g->members[i] = masks[i];
		g->groups.size[i] = (int32_t)sw_atoms_group_size(atoms, masks[i]);
	}
}

/* Return whether atom a continues the digits of the member before it, whose state is `outer`. */
static bool continues(const sw_atoms *atoms, const sw_state *outer, const sw_state *inner,
                      int32_t a)
{
	return outer->kind == inner->kind && outer->dim == inner->dim &&
	       (inner->kind != SW_STATE_S || outer->stride == inner->stride * atoms->size[a]);
}

/* The owner's coordinate in a group has those in its atoms as digits, the outermost first. */
static void gather_owner(const sw_atoms *atoms, const sw_state *inner, int32_t a, sw_state *group)
{
	if (inner->kind == SW_STATE_O)
		group->stride = group->stride * atoms->size[a] + inner->stride;
	else
		group->stride = inner->stride;
}

bool grouping_gather(const grouping *g, const sw_layout *layout, sw_layout *grouped)
{
	memset(grouped, 0, sizeof(*grouped));
	grouped->monoid = layout->monoid;
	grouped->n = g->groups.n;
	for (int32_t i = 0; i < g->groups.n; i++) {
		const sw_state *before = NULL;
		for (int32_t a = 0; a < g->atoms->n; a++) {
			if (!(g->members[i] >> a & 1))
				continue;
			if (before && !continues(g->atoms, before, &layout->state[a], a))
				return false;
			before = &layout->state[a];
			/* The stride of the innermost digit is the stride of the group. */
			grouped->state[i].kind = before->kind;
			grouped->state[i].dim = before->dim;
			gather_owner(g->atoms, before, a, &grouped->state[i]);
		}
	}
	return true;
}

void grouping_spread(const grouping *g, const sw_layout *grouped, sw_layout *layout)
{
	memset(layout, 0, sizeof(*layout));
	layout->monoid = grouped->monoid;
	layout->n = g->atoms->n;
	for (int32_t i = 0; i < g->groups.n; i++) {
		int64_t stride = grouped->state[i].stride;
		bool owned = grouped->state[i].kind == SW_STATE_O;
		for (int32_t a = g->atoms->n - 1; a >= 0; a--) {
			if (!(g->members[i] >> a & 1))
				continue;
			layout->state[a] = grouped->state[i];
			layout->state[a].stride = owned ? stride % g->atoms->size[a] : stride;
			stride = owned ? stride / g->atoms->size[a] : stride * g->atoms->size[a];
		}
	}
}

uint32_t grouping_atoms(const grouping *g, uint32_t groups)
{
	uint32_t atoms = 0;
	for (int32_t i = 0; i < g->groups.n; i++)
		if (groups >> i & 1)
			atoms |= g->members[i];
	return atoms;
}

static int32_t lowest_bit(uint32_t mask)
{
	int32_t bit = 0;
	while (!(mask >> bit & 1))
		bit++;
	return bit;
}

/* Replace a permutation of groups by one of atoms. Groups of equal size have equally many atoms of
 * the same sizes, in the same order. */
static void spread_permutation(const grouping *g, sw_move *move)
{
	int8_t to_group[SW_MAX_ATOMS];
	memcpy(to_group, move->to_atom, sizeof(to_group));
	for (int32_t i = 0; i < g->groups.n; i++) {
		if (!(move->atoms >> i & 1))
			continue;
		uint32_t from = g->members[i], to = g->members[to_group[i]];
		for (; from; from &= from - 1, to &= to - 1)
			move->to_atom[lowest_bit(from)] = (int8_t)lowest_bit(to);
	}
}

void grouping_spread_path(const grouping *g, sw_path *path)
{
	for (int32_t i = 0; i < path->n; i++) {
		sw_move *move = &path->moves[i];
		sw_layout after = move->after;
		if (move->kind == SW_MOVE_PERMUTE)
			spread_permutation(g, move);
		grouping_spread(g, &after, &move->after);
		move->atoms = grouping_atoms(g, move->atoms);
	}
}
