/*
 * partition: program + plan -> the program of one device, with explicit collectives.
 *
 * Takes a verified plan and gives a program in the same form as the one that was read. Every value
 * has its local shape; redistributions are reshape / transpose / collective / dynamic-slice;
 * device-dependent numbers come from partition-id. One program serves all devices (SPMD). Entry
 * inputs and results keep their number, order and aliases.
 */
#ifndef SW_PARTITION_H
#define SW_PARTITION_H

#include "plan/plan.h"

/* Where the ops of a partitioned program come from. The ops from `first` on, up to the next
 * origin's `first`, were written for `op` (SW_NO_ID: for the results of a computation). They are
 * its local op, or, unless `value` is SW_NO_ID, they move that value from layout `from` to layout
 * `to`. */
typedef struct sw_origin {
	sw_id first, op, value;
	uint32_t from, to;
} sw_origin;
typedef struct sw_origins {
	SW_VEC(sw_origin) items; /* ascending */
	sw_layouts layouts;      /* the plan's layouts first, with the same numbers */
} sw_origins;
void sw_origins_clear(sw_origins *origins);
const sw_origin *sw_origin_of(const sw_origins *origins, sw_id local_op);

/* Write the program of one device, cut into the kernels that the device runs (`fusion` of the
 * cluster file, src/fuse). */
sw_status sw_partition(const sw_plan *plan, sw_program **local, sw_error *err);
/* The same with a path cache of the caller's (sw_plan_paths of the plan's cluster and axes), so
 * that many plans search each path once. */
sw_status sw_partition_by(const sw_plan *plan, sw_path_cache *paths, sw_program **local,
                          sw_error *err);
/* The same, op by op, before ops are joined to kernels; record in `origins` what each local op was
 * written for. */
sw_status sw_partition_with_origins(const sw_plan *plan, sw_program **local, sw_origins *origins,
                                    sw_error *err);
/* Partition, then cost: the figures of the program that will run. peak_bytes is the size of its
 * arena (sw_placement): everything that a device holds. */
sw_status sw_partition_measure(const sw_plan *plan, sw_program_cost *cost, sw_error *err);

/* Write the moves of one redistribution of local value x; *result is the local value in layout
 * `to`. */
sw_status sw_partition_redistribute(sw_coordinates *coordinates, sw_path_cache *paths,
                                    sw_shape whole, const sw_layout *from, const sw_layout *to,
                                    sw_id x, sw_id *result, sw_error *err);

#endif
