/*
 * simulate: play a scheduled program on a cluster model, event by event.
 *
 * Takes a cluster and the program that each of its devices runs (schedule), gives what happens
 * when: kernels in order, collectives in the order of their starts, each from when its last member
 * has come to it, sharing links with those under way by fair share; dones wait. Devices that can't
 * differ (equal parts, one program) are played as one.
 */
#ifndef SW_SIMULATE_H
#define SW_SIMULATE_H

#include "schedule/schedule.h"
#include "simulate/trace.h"

/* Of one device and step; step_time_s = compute_s + exposed_comm_s + idle_s. */
typedef struct sw_breakdown {
	double compute_s;      /* kernels */
	double exposed_comm_s; /* waiting for collectives that its group had begun */
	/* waiting for others to come to a collective, and at the end of the step */
	double idle_s;
	double hidden_comm_s; /* of collectives, what ran beside kernels */
} sw_breakdown;
typedef struct sw_simulation {
	double step_time_s; /* of the last device */
	int64_t n_ranks;
	sw_breakdown *ranks; /* [n_ranks]; owned */
	sw_breakdown mean;
	/* per device: of the arena that the executor lays its tensors in (sw_placement_bytes) */
	int64_t peak_bytes;
} sw_simulation;
/* trace: NULL, or where the events go, of the first `trace_ranks` ranks. SW_ERR_INPUT: loops nested
 * so deep that they take too long to play. */
sw_status sw_simulate(const sw_cluster *cluster, const sw_program *scheduled, sw_trace *trace,
                      int32_t trace_ranks, sw_simulation *result, sw_error *err);
void sw_simulation_clear(sw_simulation *result);
/* Partition, schedule (within the plan's memory), simulate: the step that `run` is to take.
 * measured: what sw_partition_measure says of the plan, or NULL. */
sw_status sw_simulate_plan(const sw_plan *plan, const sw_program_cost *measured,
                           double *step_time_s, sw_error *err);

/* Costs a plan again that was made for another program or cluster. Without overlap, a step is
 * computation plus communication. Bounds and alternatives held for the original and are dropped. */
sw_status sw_simulate_recost(sw_plan *plan, bool overlap, sw_error *err);

#endif
