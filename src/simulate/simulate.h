/*
 * simulate: play a scheduled program on a cluster model, event by event.
 *
 * Takes a cluster and the program that each of its devices runs (schedule), gives the times of its
 * ops: kernels run in order; collectives run in the order of their starts, each beginning when its
 * last member has arrived, and share links fairly with those under way; a done waits. Where devices
 * can't differ (equal parts, one program, no owners) one is played for all.
 */
#ifndef SW_SIMULATE_H
#define SW_SIMULATE_H

#include "partition/partition.h"
#include "schedule/schedule.h"
#include "simulate/trace.h"

/* The seconds of one device in one step; step_time_s = compute_s + exposed_comm_s + idle_s. */
typedef struct sw_breakdown {
	double compute_s;      /* kernels */
	double exposed_comm_s; /* waiting for collectives that all of its group had begun */
	/* waiting for other members to arrive at a collective, and at the end of the step */
	double idle_s;
	double hidden_comm_s; /* collectives that ran beside kernels */
} sw_breakdown;
typedef struct sw_simulation {
	double step_time_s; /* of the slowest device */
	int64_t n_ranks;
	sw_breakdown *ranks; /* [n_ranks]; owned */
	sw_breakdown mean;
	/* per device: the arena in which the executor lays its tensors (sw_placement_bytes) */
	int64_t peak_bytes;
} sw_simulation;
/* Simulate one step. trace: NULL, or it gets the events of the first `trace_ranks` ranks. The
 * caller clears `result`. SW_ERR_INPUT: loops nested so deep that they take too long to play. */
sw_status sw_simulate(const sw_cluster *cluster, const sw_program *scheduled, sw_trace *trace,
                      int32_t trace_ranks, sw_simulation *result, sw_error *err);
/* Return only the seconds of the step: without an arena, which takes longer to place. */
sw_status sw_simulate_seconds(const sw_cluster *cluster, const sw_program *scheduled,
                              double *step_time_s, sw_error *err);
void sw_simulation_clear(sw_simulation *result);
/* Partition, schedule (within the plan's memory) and simulate: the step that `run` is expected to
 * take, in seconds. measured: the result of sw_partition_measure for the plan, or NULL. */
sw_status sw_simulate_plan(const sw_plan *plan, const sw_program_cost *measured,
                           double *step_time_s, sw_error *err);

/* The same, with the seconds of each device, but without the memory. The caller clears `result`. */
sw_status sw_simulate_plan_ranks(const sw_plan *plan, const sw_program_cost *measured,
                                 sw_simulation *result, sw_error *err);

/* Cost a plan again that was made for another program or cluster. Without overlap a step takes the
 * sum of computation and communication. The bounds and alternatives of the original plan are
 * dropped. */
sw_status sw_simulate_recost(sw_plan *plan, bool overlap, sw_error *err);

#endif
