/* draw: strategies of one op, by chance. */
#ifndef SW_TESTS_BOUND_DRAW_H
#define SW_TESTS_BOUND_DRAW_H

#include "plan/plan.h"

typedef struct drawer {
	sw_rng rng;
	const sw_plan *plan;
	sw_layout *layouts; /* scratch: of the operands, then of the results, of one op */
} drawer;
/* The arena must outlive the drawer. */
drawer drawer_new(const sw_plan *plan, uint64_t seed, sw_arena *arena);
bool draw_chance(drawer *d, int percent);
/* Is the strategy possible? It then fills d->layouts. */
bool draw_possible(drawer *d, sw_id op, const sw_strategy *strategy);
/* Give each atom to a factor, and the atoms of a factor to adjacent digits of it from the top. */
sw_strategy draw_grid(drawer *d, sw_id op);
/* Draw the choices of some atoms of a possible strategy again; keep what stays possible. */
sw_strategy draw_atoms(drawer *d, sw_id op, sw_strategy strategy);

#endif
