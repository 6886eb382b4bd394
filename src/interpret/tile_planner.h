/* What the steps of planning a fusion's tiles share. */
#ifndef SW_INTERPRET_TILE_PLANNER_H
#define SW_INTERPRET_TILE_PLANNER_H

#include "interpret/tile.h"

typedef struct sw_tile_planner {
	sw_tile_plan *plan;
	sw_arena *arena;
	sw_id first_value; /* of the computation */
	int32_t *numbers;  /* per value of the program from first_value on: its number here */
	bool *forbidden;   /* per atom: it can't be a variable */
	bool *required;    /* per step: it waits for a reduction over variables */
} sw_tile_planner;

/* Add the ops of the fusion's computation as steps. False: an op can't be one (plan->refused). */
bool sw_tile_add_steps(sw_tile_planner *p, const sw_computation *c);
/* Choose which atoms the loop steps through, for tiles of about so many elements. False: they are
 * too many. */
bool sw_tile_choose_variables(sw_tile_planner *p, int64_t tile_elements);
/* Return the elements of a value. */
int64_t sw_tile_elements(const sw_tile_value *v);

#endif
