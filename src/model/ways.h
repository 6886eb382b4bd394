/*
 * ways: how each VARIABLE is synchronised. A variable is a parameter with the moments that its
 * update reads; gradients and updates of its shape belong to it.
 *
 * A builder (ways_*.c) gives each variable its way; the options of decisions follow from it
 * (decision_options.c). Private to src/model, but for what model.h says.
 */
#ifndef SW_MODEL_WAYS_H
#define SW_MODEL_WAYS_H

#include "model/model.h"

/* Fill the ways of the variables for so many devices; deterministic. */
typedef void sw_ways_builder(sw_variable *variables, uint32_t n, int64_t devices);
sw_ways_builder sw_ways_any, sw_ways_all_reduce, sw_ways_one, sw_ways_balanced, sw_ways_partitioned,
	sw_ways_parallax, sw_ways_random;

/* Give the variables for which `owned` holds an owner, so that the device that owns most owns little
 * (sw_place_evenly); what owners have already counts, and whether all devices keep the parameter stays.
 * The owner is open: where the solver lets only some of them be owned, these are placed again. */
typedef bool sw_variable_test(const sw_variable *variable);
void sw_ways_give_evenly(sw_variable *variables, uint32_t n, int64_t devices,
                         sw_variable_test *owned);
/* Let every device keep what the step does not change: an owner would send it in each step. */
void sw_ways_disown(sw_variable *variables, uint32_t n);
/* Where owners serve some variables, by terms of gradients, let every device keep what has no parameter,
 * the running statistics of a batch norm, and what goes with a parameter go to its owner. */
void sw_ways_serve(sw_variable *variables, uint32_t n);

/* Let each device make the gradient of a variable for itself, surely or maybe. False: it is no product,
 * and no scattered rows, as the sums of a bias are. O(ops). */
bool sw_ways_gather(sw_analysis *a, uint32_t variable, sw_gathering gathering);

#endif
