/*
 * cost: seconds and bytes.
 *
 * Takes a cluster and what is to be done (a collective over a set of atoms, an op, a
 * whole partitioned program), gives seconds, bytes and their breakdown. Units: seconds, bytes per
 * rank.
 *
 * Collectives (alpha-beta, per level of the topology) are done by one of several algorithms; what
 * each sends over each level's links is in forms.c, with the sources. A group over a set of atoms
 * has, at each level, m_l members per part. Where each part of a level holds D_l devices and the
 * group m_l of them, r_l = D_l / m_l groups leave the part at once and share its link: bandwidth_l
 * = min(flow_bandwidth_l, bandwidth_l / (r_l (1 + contention_l (r_l - 1)))) for one stream of each
 * group (AxoNN's equation 10 is the two-level case); the levels work side by side, and a round of
 * messages takes the largest alpha_l of the levels that it crosses. Where parts, or their links,
 * are unequal, the part that is last to be done decides. The seconds of a collective are those of
 * the algorithm that the transport takes: the fastest, as measured or by formula. By formula more
 * bytes are never cheaper. Kernels: what is fitted for the op's family where the cluster file has
 * it (sw_kernel_fit); else the roofline, max(flops / (peak * efficiency), bytes / memory bandwidth)
 * + overhead.
 */
#ifndef SW_COST_H
#define SW_COST_H

#include "rules/rules.h"

/* Matches sw_collective_seconds of layout.h; context is a `const sw_cluster *`. SLICE and
 * TO_PARTIAL cost 0. */
double sw_cost_collective(void *cluster, sw_move_kind kind, uint32_t atoms, int64_t operand_bytes);

/* The same by one algorithm, from the levels' figures alone; and what the transport does: where
 * these atoms were measured, the fastest there (seconds between points are interpolated, in
 * logarithms; beyond the last one in proportion to what the algorithm's formula says), elsewhere
 * the fastest by formula. sw_cost_collective is the seconds of that. */
typedef struct sw_collective_choice {
	sw_algorithm algorithm;
	double seconds;
	bool measured;
} sw_collective_choice;
double sw_cost_algorithm(const sw_cluster *cluster, sw_algorithm algorithm, sw_collective_kind kind,
                         uint32_t atoms, int64_t operand_bytes);
sw_collective_choice sw_cost_choose(const sw_cluster *cluster, sw_collective_kind kind,
                                    uint32_t atoms, int64_t operand_bytes);
/* Several of this kind may be begun as one, which then takes the latency of one. */
bool sw_collective_combines(sw_collective_kind kind);
/* The least that the bytes take as part of one, with whichever others: by the rate of the most
 * efficient larger one. What can't be combined takes its own. */
double sw_cost_share(const sw_cluster *cluster, sw_collective_kind kind, uint32_t atoms,
                     int64_t operand_bytes);
/* What the transport does and the formulas count: data is cut into at most SW_LANES parts, of
 * pieces of at least SW_PIECE_BYTES (such a piece takes longer to send than to begin, on links from
 * 0.1 to 10 GB/s), which overlap; a direct or hierarchical all-reduce exchanges whole operands, in
 * one round (per level) instead of two, where that is quicker by formula. */
#define SW_LANES 16
#define SW_PIECE_BYTES 131072
bool sw_cost_goes_whole(const sw_cluster *cluster, sw_algorithm algorithm, uint32_t atoms,
                        int64_t operand_bytes);
/* How k parts whose links have these bandwidths share the combining of an all-reduce, directly
 * among them, so that it is done soonest. Sums to 1. */
void sw_cost_link_shares(const double *bandwidths, int32_t k, double *shares);
/* One message of `bytes` each way between two devices, while nothing else is under way: alpha of
 * the level at which they meet, and the bytes over what one flow can use of the narrower of both
 * parts' links: the share flow_bandwidth / bandwidth of it. 0 for a device and itself. */
double sw_cost_pair(const sw_cluster *cluster, int64_t a, int64_t b, int64_t bytes);
/* Of a collective op: what it is, the atoms it works over, and its operands' bytes. An async-start
 * is what it begins. False: none. */
bool sw_cost_collective_op(const sw_cluster *cluster, const sw_program *program, sw_id op,
                           sw_collective_kind *kind, uint32_t *atoms, int64_t *operand_bytes);
double sw_cost_collective_op_seconds(const sw_cluster *cluster, const sw_program *program,
                                     sw_id op);

/* Which family an op's kernel is of; SW_FAMILY_COUNT: it costs nothing, or is a region or
 * collective. */
sw_family sw_cost_family(const sw_program *program, sw_id op);
/* What an op asks of a kernel of the executor: operations (sw_op_flops, functions that take longer
 * counting as more), and its calls, rows and bytes (sw_op_loops). */
typedef struct sw_kernel_work {
	double flops, bytes, calls, rows;
} sw_kernel_work;
sw_kernel_work sw_cost_work(const sw_program *program, sw_id op);
/* Seconds of that by what is fitted for the family (sw_kernel_fit). */
double sw_cost_fitted(const sw_device *device, sw_family family, sw_type type,
                      const sw_kernel_work *work);
/* One execution of an op on one device. Moves of data that the executor does not perform (reshape,
 * parameter, constant) cost 0. Regions cost 0: their bodies' ops are counted by themselves. */
double sw_cost_op(const sw_cluster *cluster, const sw_program *program, sw_id op);

/* A program with collectives, as `partition` writes it: per rank. While bodies count times their
 * trips. */
typedef struct sw_program_cost {
	double compute_s, communication_s, step_time_s; /* step: one after the other, no overlap */
	/* however many collectives are begun as one: the sum of their shares */
	double least_communication_s;
	/* of the rank that sends most: exact, as the transport counts */
	int64_t payload_bytes;
	/* by liveness: a quick figure; what is held is the arena (sw_placement_bytes) */
	int64_t peak_bytes;
	int64_t collectives; /* executed, loops times trips */
} sw_program_cost;
void sw_cost_program(const sw_cluster *cluster, const sw_program *local, sw_program_cost *cost);
/* The branch of a conditional that takes longest, kernels and collectives one after the other; the
 * first of equals. O(ops in branches). */
uint32_t sw_cost_dearest_branch(const sw_cluster *cluster, const sw_program *program, sw_id op);

/* Which atoms a replica-group list varies over, and true if it is such a set (else *atoms is the
 * mask of all). */
bool sw_cost_group_atoms(const sw_atoms *atoms, const sw_groups *groups, uint32_t *mask);

#endif
