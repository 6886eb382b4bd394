/*
 * schedule: fix the order in which a device runs its ops.
 *
 * Takes the program that `partition` wrote, gives the same program with each collective in two
 * halves (async-start, async-done, see sw_async_collective) and the ops of each computation in the
 * order in which they are to run. sw_placement then says where the buffers lie.
 *
 * A device has two streams. KERNELS run in program order. COLLECTIVES run one after the other in
 * the order of their starts, beside the kernels; a done waits for its collective. The executor and
 * the simulator follow the same rules. Within them, list scheduling finds the order: order_*.c
 * order the kernels, insert_collectives.c puts starts and dones between them, and best_order.c
 * keeps the best candidate. AxoNN's three overlaps (all-reduce behind the weight gradient;
 * reduce-scatters until the end of the backward pass; all-gathers prefetched) are consequences.
 *
 * A collective ends in the loop iteration, and in the step, in which it began: a gather at the end
 * of a step (of parameters that ZeRO-1 has updated) does not hide behind the next step's kernels.
 */
#ifndef SW_SCHEDULE_H
#define SW_SCHEDULE_H

#include "cost/cost.h"
#include "schedule/limits.h"

/* Which collectives may run beside kernels: bits 1 << sw_collective_kind. */
#define SW_OVERLAP_ALL UINT32_C(0xffffffff)
typedef struct sw_schedule_options {
	/* 0: every collective is waited for where it stands, and the order does not change */
	uint32_t overlap;
	/* A program whose arena fits this keeps fitting it, even if the step becomes slower; 0: the
	 * device's memory. */
	int64_t memory_bytes;
	/* sw_placement_bytes of the program where the caller knows it; 0: computed here */
	int64_t arena_bytes;
	sw_merge merge;
	/* The search for an order ends with the first ones if those take longer: somebody knows a
	 * program that is so much quicker that no order of this one makes up for it. It may exceed
	 * the memory then. 0: none is known. */
	double beaten_s;
	/* Collectives are not merged where the best order without that takes longer: somebody knows a
	 * program that is quicker than what merging saves. It may exceed the memory then. 0: none is
	 * known. */
	double unmerged_s;
	const sw_schedule_limits *limits; /* NULL: sw_schedule_default_limits */
} sw_schedule_options;
/* "all", "none", or a list: "all-reduce,all-gather". */
sw_status sw_overlap_parse(const char *text, uint32_t *overlap, sw_error *err);

/* Write `*scheduled`, a new program that computes the same as `local` and that the two streams
 * finish no later. The caller owns it (sw_program_free). Requires a verified program; a collective
 * that already is in two halves stays a pair. O(collectives * (ops + edges)). Errors: internal
 * ones only. */
sw_status sw_schedule(const sw_cluster *cluster, const sw_program *local,
                      const sw_schedule_options *options, sw_program **scheduled, sw_error *err);

/* Seconds that the two streams take for a program in its present order, scheduled or not; of the
 * branches of a conditional the most expensive counts. Links are not shared and all devices are
 * alike here: `simulate` models both. O(ops + edges). */
double sw_schedule_seconds(const sw_cluster *cluster, const sw_program *scheduled);
/* Lower bound in seconds: no order of the program's ops takes less on the two streams, whatever
 * memory it uses; `overlap` as in the options. O(ops^2): for benchmarks and tests. */
double sw_schedule_bound_seconds(const sw_cluster *cluster, const sw_program *local,
                                 uint32_t overlap);
/* Print what sw_schedule_seconds computes: per computation, callees first, a table of op, stream,
 * begin and end, in microseconds from the beginning of the computation. */
void sw_schedule_print_times(const sw_cluster *cluster, const sw_program *scheduled, sw_text *text);

#endif
