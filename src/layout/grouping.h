/*
 * grouping: groups of adjacent atoms that move together, each seen as one atom whose size is the
 * product of theirs.
 */
#ifndef SW_LAYOUT_GROUPING_H
#define SW_LAYOUT_GROUPING_H

#include "layout/layout.h"

typedef struct grouping {
	const sw_atoms *atoms;
	sw_atoms groups;                /* the groups as atoms */
	uint32_t members[SW_MAX_ATOMS]; /* the atoms of each group */
} grouping;

/* Form the groups: masks[i] holds adjacent atoms; together the masks hold all atoms, outermost
 * first. */
void grouping_init(grouping *g, const sw_atoms *atoms, const uint32_t *masks, int32_t n);
/* Write the layout over groups; return false if the atoms of some group differ in kind or
 * dimension, or their digits are not adjacent. */
bool grouping_gather(const grouping *g, const sw_layout *layout, sw_layout *grouped);
/* Write the layout over atoms of a layout over groups. */
void grouping_spread(const grouping *g, const sw_layout *grouped, sw_layout *layout);
/* Return the atoms of the groups of a mask. */
uint32_t grouping_atoms(const grouping *g, uint32_t groups);
/* Replace groups by their atoms in every move of the path. */
void grouping_spread_path(const grouping *g, sw_path *path);

#endif
