/*
 * schedule: in what order a device does its part.
 *
 * Takes the program that `partition` wrote, gives the same program with its collectives in two
 * halves (async-start, async-done, see sw_async_collective) and each computation's ops in the order
 * in which they are to run. Where its buffers then lie, sw_placement says.
 *
 * A device has two streams. KERNELS run in the order of the program; COLLECTIVES run one after the
 * other in the order of their starts, while kernels run; a done waits. (So does the executor, so
 * does the simulator.) Order within these rules is found by a list scheduler that hides latency
 * (order_backward.c) and puts starts and dones between the kernels (insert_collectives.c). AxoNN's three overlaps
 * (all-reduce behind the weight gradient; reduce-scatters until the end of the backward pass;
 * all-gathers prefetched) are consequences.
 *
 * A collective is over in the iteration of a loop, and in the step, in which it was begun: what is
 * gathered last (parameters that ZeRO-1 has updated) does not hide behind the next step's kernels.
 */
#ifndef SW_SCHEDULE_H
#define SW_SCHEDULE_H

#include "partition/partition.h"

/* Which collectives may run beside kernels: bits 1 << sw_collective_kind. */
#define SW_OVERLAP_ALL UINT32_C(0xffffffff)
typedef struct sw_schedule_options {
	/* 0: every collective is waited for where it stands, and the order stays as it was */
	uint32_t overlap;
	/* a program whose arena fits keeps fitting, whatever time that costs; 0: the device's */
	int64_t memory_bytes;
	/* sw_placement_bytes of the program, where it is known; 0: it is found */
	int64_t arena_bytes;
	/* all-reduces are begun together up to so many bytes, if nobody waits in between; 0: where
	 * that is quicker */
	int64_t merge_bytes;
} sw_schedule_options;
/* "all", "none", or a list: "all-reduce,all-gather". */
sw_status sw_overlap_parse(const char *text, uint32_t *overlap, sw_error *err);

/* A new program, equal to `local` in what it computes, that the two streams finish no later.
 * Requires a verified program; collectives in two halves that it has already stay pairs.
 * O(collectives * (ops + edges)). Errors: internal only. */
sw_status sw_schedule(const sw_cluster *cluster, const sw_program *local,
                      const sw_schedule_options *options, sw_program **scheduled, sw_error *err);

/* What the two streams take for a program as it stands, scheduled or not; of branches the dearest.
 * Links are not shared and all devices are alike: `simulate` knows better. O(ops + edges). */
double sw_schedule_seconds(const sw_cluster *cluster, const sw_program *scheduled);
/* No order of the program's ops is quicker on the two streams, however much memory there is; what
 * may run beside kernels as in the options. O(ops^2): for benchmarks and tests. */
double sw_schedule_bound_seconds(const sw_cluster *cluster, const sw_program *local,
                                 uint32_t overlap);
/* sw_schedule_seconds as a table per computation, callees first: op, stream, begin, end, in
 * microseconds from the computation's beginning. */
void sw_schedule_print_times(const sw_cluster *cluster, const sw_program *scheduled, sw_text *text);

#endif
