/*
 * Atoms that move together: a group of adjacent atoms seen as one atom of their product's size.
 */
#ifndef SW_LAYOUT_TOGETHER_H
#define SW_LAYOUT_TOGETHER_H

#include "layout/layout.h"

typedef struct grouping {
	const sw_atoms *atoms;
	sw_atoms groups;                /* the groups as atoms */
	uint32_t members[SW_MAX_ATOMS]; /* per group: its atoms */
} grouping;

/* masks[i]: adjacent atoms; together all atoms, outermost first. */
void grouping_init(grouping *g, const sw_atoms *atoms, const uint32_t *masks, int32_t n);
/* The layout over groups; false if some group's atoms differ in kind or dimension, or their digits
 * are not adjacent. */
bool grouping_gather(const grouping *g, const sw_layout *layout, sw_layout *grouped);
/* And back. */
void grouping_spread(const grouping *g, const sw_layout *grouped, sw_layout *layout);
uint32_t grouping_atoms(const grouping *g, uint32_t groups);
void grouping_spread_path(const grouping *g, sw_path *path);

#endif
