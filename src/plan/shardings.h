/*
 * shardings: a plan's layouts at rest in the terms of jax.sharding: a mesh of named axes, and for
 * each entry input and result a PartitionSpec.
 *
 * A PartitionSpec cuts a dimension into equal BLOCKS, by a list of axes, outermost first. A layout
 * says more; what a spec cannot say is listed in words for each value.
 */
#ifndef SW_PLAN_SHARDINGS_H
#define SW_PLAN_SHARDINGS_H

#include "plan/plan.h"

/* Return an object with the keys of docs/commands.md, "export". The devices of the mesh are in the
 * order of their numbers, the last axis fastest. An axis of the mesh is a run of adjacent atoms of
 * one axis of the plan that the layouts of all values split as one. The sidecar is that of sw_plan_serial. A
 * spec always has the number of parts of the layout. O(leaves * atoms^2). */
json_t *sw_plan_shardings(const sw_plan *plan, const sw_sidecar *sidecar);

#endif
