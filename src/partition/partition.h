/*
 * partition: program + plan -> the program of one device, with explicit collectives.
 *
 * Takes a verified plan, gives a program in the same form as the one that was read: every value has
 * its local shape, redistributions are reshape / transpose / collective / dynamic-slice,
 * device-dependent numbers come from partition-id. One program serves all devices (SPMD). Entry
 * inputs and results keep number, order and aliases.
 */
#ifndef SW_PARTITION_H
#define SW_PARTITION_H

#include "plan/plan.h"

sw_status sw_partition(const sw_plan *plan, sw_program **local, sw_error *err);
/* The same by paths that the caller keeps (sw_plan_paths of the plan's cluster and axes): many
 * plans, each path found once. */
sw_status sw_partition_by(const sw_plan *plan, sw_path_cache *paths, sw_program **local,
                          sw_error *err);
/* The same, and what each local op was written for (plan.h, explain). */
sw_status sw_partition_with_origins(const sw_plan *plan, sw_program **local, sw_origins *origins,
                                    sw_error *err);
/* Partition, then cost: the figures of the program that will run; peak_bytes is its arena
 * (sw_placement), all that a device holds. Matches sw_plan_measure_fn. */
sw_status sw_partition_measure(const sw_plan *plan, sw_program_cost *cost, sw_error *err);

/* Writes the moves of one redistribution of local value x; returns the local value in layout `to`.
 */
sw_status sw_partition_redistribute(sw_coordinates *coordinates, sw_path_cache *paths,
                                    sw_shape whole, const sw_layout *from, const sw_layout *to,
                                    sw_id x, sw_id *result, sw_error *err);

#endif
