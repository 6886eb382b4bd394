/*
 * cost: seconds and bytes.
 *
 * Takes a cluster and what is to be done (a collective over a set of atoms, an op at its local share, a
 * whole partitioned program), gives seconds, bytes and their breakdown. Units: seconds, bytes per rank.
 *
 * Collectives (alpha-beta, per level of the topology). A group over a set of atoms has, at each level, m_l members
 * per part (product of its atoms' sizes inside that level). Where each part of a level holds D_l devices and the group m_l of
 * them, D_l / m_l groups leave the part at once and share its link:
 *     bandwidth_l = min(flow_bandwidth_l, bandwidth_l * m_l / D_l)
 * (AxoNN's equation 10 is the two-level case). A ring ordered by place crosses each part's boundary once, so the
 * bandwidth term of ring collectives is payload / min over crossed levels; all-to-all and permute count what crosses each
 * level. The latency term is ceil(log2(peers at the level)) * alpha_l summed over crossed levels; an all-reduce takes twice
 * that, or exchanges whole operands where that is quicker (small messages); a permute takes the largest alpha_l. Where parts are unequal, the busiest part of each level decides.
 * Kernels: roofline, max(flops / (peak * efficiency), bytes / memory bandwidth) + overhead.
 */
#ifndef SW_COST_H
#define SW_COST_H

#include "rules/rules.h"

/* Matches sw_collective_seconds of layout.h; context is a `const sw_cluster *`. SLICE and TO_PARTIAL cost 0. */
double sw_cost_collective(void *cluster, sw_move_kind kind, uint32_t atoms, int64_t operand_bytes);

/* One execution of an op on one device when its work is split `share` ways (sw_strategy_share). Moves of data that the executor does
 * not perform (reshape, parameter, constant) cost 0. Regions cost 0: their bodies' ops are counted by themselves. */
double sw_cost_op(const sw_cluster *cluster, const sw_program *program, sw_id op, int64_t share);

/* What a conditional, call or fusion runs inside, per execution: its dearest branch. Loops and all other ops: 0 (a planner sees into
 * loops; reducers are counted with their op). O(ops inside). */
double sw_cost_called(const sw_cluster *cluster, const sw_program *program, sw_id op);

/* A program with collectives, as `partition` writes it: per rank. While bodies count times their trips. */
typedef struct sw_program_cost {
	double compute_s, communication_s, step_time_s; /* step: one after the other, no overlap */
	int64_t payload_bytes;                          /* of the rank that sends most: exact, as the transport counts */
	int64_t peak_bytes;                             /* by liveness */
	int64_t collectives;                            /* executed, loops times trips */
} sw_program_cost;
void sw_cost_program(const sw_cluster *cluster, const sw_program *local, sw_program_cost *cost);

/* Which atoms a replica-group list varies over, and true if it is such a set (else *atoms is the mask of all). */
bool sw_cost_group_atoms(const sw_atoms *atoms, const sw_groups *groups, uint32_t *mask);

#endif
