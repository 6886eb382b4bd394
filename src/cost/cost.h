/*
 * cost: seconds and bytes.
 *
 * The functions take a cluster and a piece of work (a collective over a set of atoms, an op, a
 * whole partitioned program), and give its seconds and bytes and their breakdown. Units: seconds,
 * bytes per rank.
 *
 * Collectives follow the alpha-beta model per level of the topology, and one of several algorithms
 * does them; forms.c has the formulas of the algorithms, with their sources. A group over a set of
 * atoms has, at each level l, m_l members per part. Where each part of a level holds D_l devices
 * and the group m_l of them, r_l = D_l / m_l groups leave the part at once and share its link: for
 * one stream of each group bandwidth_l = min(flow_bandwidth_l, bandwidth_l / (r_l (1 + contention_l
 * (r_l - 1)))) (AxoNN's equation 10 is the two-level case). The levels work in parallel, and a
 * round of messages takes the largest alpha_l of the levels that it crosses. Where parts, or their
 * links, are unequal, the part that finishes last decides. The seconds of a collective are those of
 * the algorithm that the transport uses: the fastest, as measured or by formula. By formula, more
 * bytes are never cheaper.
 *
 * Kernels follow the fit of the op's family where the cluster file has one (sw_kernel_fit); else
 * the roofline, max(flops / (peak * efficiency), bytes / memory bandwidth) + overhead.
 */
#ifndef SW_COST_H
#define SW_COST_H

#include "rules/rules.h"

/* Return the seconds of a layout move. The type is sw_collective_seconds of layout.h; context is a
 * `const sw_cluster *`. SLICE and TO_PARTIAL cost 0. */
double sw_cost_collective(void *cluster, sw_move_kind kind, uint32_t atoms, int64_t operand_bytes);

/* A MERGE GROUP: all-reduces that begin as one, up to so many bytes per rank; 0: all of them. */
typedef struct sw_merge_group {
	const char *name;
	int64_t bytes;
} sw_merge_group;
/* How many all-reduces of an order begin as one: as many as follow each other without an op that
 * waits for one of them, until together they have more than `bytes` per rank, or are more than
 * `ops`. 0: that does not matter; both 0: the scheduler merges what is faster together. That is of
 * all-reduces that are in no group; those of a group begin together and apart from all others. */
typedef struct sw_merge {
	int64_t bytes, ops;
	uint32_t n_groups;
	const sw_merge_group *groups; /* borrowed; number k + 1 of an op is the k-th */
} sw_merge;
static inline bool sw_merge_is_given(sw_merge merge)
{
	return merge.bytes > 0 || merge.ops > 0;
}

/* sw_cost_algorithm gives the seconds of a collective by one algorithm, by formula. sw_cost_choose
 * gives the algorithm that the transport uses: if the collective was measured over these atoms, the
 * one that was fastest there (seconds between two points are interpolated in logarithms; outside
 * the measured range they are in proportion to the algorithm's formula), elsewhere the fastest by
 * formula, with the device's overhead of a collective. sw_cost_collective returns the seconds of that
 * choice. */
typedef struct sw_collective_choice {
	sw_algorithm algorithm;
	double seconds;
	bool measured;
} sw_collective_choice;
double sw_cost_algorithm(const sw_cluster *cluster, sw_algorithm algorithm, sw_collective_kind kind,
                         uint32_t atoms, int64_t operand_bytes);
sw_collective_choice sw_cost_choose(const sw_cluster *cluster, sw_collective_kind kind,
                                    uint32_t atoms, int64_t operand_bytes);
/* The same where a plan says the algorithm, as in sw_sending: no quicker than sw_cost_choose, and that one
 * where the device's library has no such algorithm. */
sw_collective_choice sw_cost_choose_said(const sw_cluster *cluster, uint32_t algorithm,
                                         sw_collective_kind kind, uint32_t atoms,
                                         int64_t operand_bytes);
/* Return whether several collectives of this kind may be started as one, which then takes the
 * latency of one. */
bool sw_collective_combines(sw_collective_kind kind);
/* Return the least seconds that the bytes may take as part of a combined collective: their share at
 * the rate of the most efficient collective that is at least as large. A kind that cannot be
 * combined takes its own seconds. */
double sw_cost_share(const sw_cluster *cluster, sw_collective_kind kind, uint32_t atoms,
                     int64_t operand_bytes);
/* Constants that the transport and the formulas share. Data is cut into at most SW_LANES parts that
 * overlap, of pieces of at least SW_PIECE_BYTES; a piece of that size takes longer to send than to
 * start, on links from 0.1 to 10 GB/s. sw_cost_goes_whole returns whether a direct or hierarchical
 * all-reduce exchanges whole operands, in one round (per level) instead of two, because that is
 * quicker by formula. */
#define SW_LANES 16
#define SW_PIECE_BYTES 131072
bool sw_cost_goes_whole(const sw_cluster *cluster, sw_algorithm algorithm, uint32_t atoms,
                        int64_t operand_bytes);
/* Divide the combining of an all-reduce among k parts whose links have these bandwidths, and which
 * exchange data directly, so that it finishes soonest. The shares sum to 1. */
void sw_cost_link_shares(const double *bandwidths, int32_t k, double *shares);
/* Return the seconds of one message of `bytes` each way between two devices on an otherwise idle
 * cluster: alpha of the level at which they meet, plus the bytes over the bandwidth of one flow
 * through the narrower of both parts' links, which is the fraction flow_bandwidth / bandwidth of
 * it. 0 if both are the same device. */
double sw_cost_pair(const sw_cluster *cluster, int64_t a, int64_t b, int64_t bytes);
/* The same between a device and a host beside the cluster, whose link is one of the outermost
 * level, of the bandwidth that is the level's where parts have none of their own. */
double sw_cost_pair_outside(const sw_cluster *cluster, int64_t device, int64_t bytes);
/* Describe a collective op: its kind, the atoms that it works over, and its operands' bytes. An
 * async-start is described as the collective that it starts. Return false if the op is not a
 * collective. */
bool sw_cost_collective_op(const sw_cluster *cluster, const sw_program *program, sw_id op,
                           sw_collective_kind *kind, uint32_t *atoms, int64_t *operand_bytes);
double sw_cost_collective_op_seconds(const sw_cluster *cluster, const sw_program *program,
                                     sw_id op);
/* Return what the plan says of a collective op; of an async-start, of the collective that it starts. */
sw_sending sw_cost_sending(const sw_program *program, sw_id op);
/* Return how many launches a collective over these atoms takes of the device's host for all of its
 * members, beyond its own. */
double sw_cost_member_launches(const sw_device *device, const sw_atoms *all, uint32_t atoms);

/* Return the family of an op's kernel; SW_FAMILY_COUNT if it costs nothing, or is a region or a
 * collective. */
sw_family sw_cost_family(const sw_program *program, sw_id op);
/* The work of an op for a kernel of the executor: its operations (sw_op_flops, with a higher count
 * for slower functions), and its calls, rows and bytes (sw_op_loops). */
typedef struct sw_kernel_work {
	double flops, bytes, calls, rows;
} sw_kernel_work;
sw_kernel_work sw_cost_work(const sw_program *program, sw_id op);
/* Return the seconds of that work by the fit of the family (sw_kernel_fit). */
double sw_cost_fitted(const sw_device *device, sw_family family, sw_type type,
                      const sw_kernel_work *work);
/* Return the seconds of one execution of an op on one device. Moves of data that the executor does
 * not perform (reshape, parameter, constant) cost 0. Regions cost 0, because the ops of their
 * bodies are counted by themselves. */
double sw_cost_op(const sw_cluster *cluster, const sw_program *program, sw_id op);
/* Return seconds that no execution of the op on smaller shapes is below, if it does `flops`
 * operations (sw_op_flops) and moves `bytes` at least (sum of sw_cost_traffic * bytes). The shapes
 * of `op` itself do not matter. attention: the op may be one of attention's products. */
double sw_cost_part(const sw_cluster *cluster, const sw_program *program, sw_id op, bool attention,
                    double flops, double bytes);
/* May the op be one of attention's products, on a device that fuses? Those have a batch, and their
 * kernels have rates and tiles of their own. */
bool sw_cost_may_be_attention(const sw_op *op);
/* Return the operations that the kernel of an op costs: of a dot those of whole tiles in whole rounds,
 * where the device's file gives tiles, else sw_op_flops. */
double sw_cost_flops(const sw_cluster *cluster, const sw_program *program, sw_id op);
/* Return the operations that the kernel of a dot costs, of `batch` products of [m, k] and [k, n] that
 * no attention fuses: those of whole tiles in whole rounds, where the device's file gives tiles and
 * no fit of matmuls; else the dot's own. It grows with each size, and m products of an m-th of a
 * size cost no less than one. */
double sw_cost_product_flops(const sw_device *device, double batch, double m, double n, double k);
/* Return how many times the kernel of an op moves the bytes of operand `which`, or of result
 * `which - n_operands`. */
double sw_cost_traffic(const sw_op *op, uint32_t which);

/* Devices of one class take the same time for a program: they are of one kind, and run each loop as
 * often. */
typedef struct sw_device_class {
	int64_t device;     /* one of them */
	sw_cluster cluster; /* as if all devices were of its kind; borrowed */
} sw_device_class;
typedef struct sw_device_classes {
	int32_t n;
	const sw_device_class *list; /* [n] */
	const int32_t *of;           /* per device: its class; NULL: all are of one */
} sw_device_classes;
/* All of it lies in the arena. O(ops + devices * classes). */
sw_device_classes sw_device_classes_of(const sw_cluster *cluster, const sw_program *program,
                                       sw_arena *arena);

/* The cost per rank of a program with collectives, as `partition` writes it: of the class of
 * devices that takes longest. The bodies of while loops count as often as their trip count. */
typedef struct sw_program_cost {
	double compute_s, communication_s, step_time_s; /* step: the sum of both, without overlap */
	/* sum of the collectives' shares (sw_cost_share): a lower bound for any combining */
	double least_communication_s;
	/* of the rank that sends most; exact, as the transport counts */
	int64_t payload_bytes;
	/* by liveness, a quick figure, as if each device had all that only owners have; the memory
	 * that is allocated is the arena (sw_placement_bytes) */
	int64_t peak_bytes;
	int64_t collectives; /* number executed, with loops counted by trip count */
} sw_program_cost;
void sw_cost_program(const sw_cluster *cluster, const sw_program *local, sw_program_cost *cost);
/* Write what each device of the cluster sends in the program's collectives: bytes[device], as the
 * transport counts payload. O(ops * devices). */
void sw_cost_payloads(const sw_cluster *cluster, const sw_program *local, int64_t *bytes);
/* Return the branch of a conditional that takes longest, with kernels and collectives one after the
 * other; the first of several equal ones. O(ops in branches). */
uint32_t sw_cost_dearest_branch(const sw_cluster *cluster, const sw_program *program, sw_id op);

/* Return the bytes of a device that a program may use: its memory less what is reserved. */
int64_t sw_cost_memory_bytes(const sw_device *device);
/* The 90 % interval of a predicted time: seconds / (1 + prediction_error) to seconds * (1 +
 * prediction_error), equal to the seconds where the cluster file has no error. The other function
 * adds " (90 %: 2.8 s to 3.6 s)" to the text, or nothing. */
typedef struct sw_interval {
	double low_s, high_s;
} sw_interval;
sw_interval sw_cost_interval(const sw_device *device, double seconds);
void sw_cost_add_interval(const sw_device *device, double seconds, sw_text *text);

/* Set *atoms to the atoms over which replica groups vary. Return false if the groups are not such a
 * set; *atoms is then the mask of all atoms. */
bool sw_cost_group_atoms(const sw_atoms *atoms, const sw_groups *groups, uint32_t *mask);

#endif
