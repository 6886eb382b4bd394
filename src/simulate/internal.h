/*
 * The parts of the simulator. Private to src/simulate.
 *
 *     code.c            the program as instructions: ops that take time, in blocks that loops and
 *                       calls share
 *     meeting_groups.c  the groups that meet at a collective, the seconds that each takes alone,
 *                       and the links that it uses
 *     link_sharing.c    the rates of collectives that share links
 *     meeting_waves.c   the meetings of one start on all devices
 *     play.c            the devices, event by event
 */
#ifndef SW_SIMULATE_INTERNAL_H
#define SW_SIMULATE_INTERNAL_H

#include "simulate/simulate.h"

/* ---- code ------------------------------------------------------------------------------- */

typedef enum instruction_kind { KERNEL, START, DONE, CALL, LOOP } instruction_kind;
typedef struct instruction {
	instruction_kind kind;
	uint32_t collective; /* of a start and of its done: index in code.collectives */
	sw_id op;
	double seconds;                 /* of a kernel */
	double launches; /* by the host, of a kernel, more than 1 for a region; or of a start */
	const sw_owner *who;            /* of a kernel: the devices that run it; NULL: all */
	const struct code_block *block; /* the callee, or one iteration of the loop */
	/* of a loop: the trip count, and how many are played one by one */
	int64_t iterations, played;
} instruction;

/* The instructions of one execution of a computation, or of one iteration of a loop. */
typedef struct code_block {
	const instruction *at;
	size_t n;
	bool communicates;
	double compute_s; /* seconds of its kernels */
	double launches;  /* of kernels and collectives */
	double length;    /* instructions to play, those of loops times the iterations played */
} code_block;

typedef struct played_collective {
	sw_id op;     /* the collective itself: of an async-start the op in its computation */
	sw_id waiter; /* the op at which devices wait for it */
	const sw_owner *who; /* the devices that take part; NULL: all */
	int64_t operand_bytes;
	double seconds;
} played_collective;

/* What one device plays, and all that are like it. */
typedef struct code {
	sw_arena arena;
	const sw_cluster *cluster;
	const sw_device_class *who; /* plays it */
	const sw_program *program;
	bool detailed; /* kernels are not merged: a trace is written */
	/* iterations played of a loop; the others are taken to be like the last of them */
	int64_t played_iterations;
	const code_block *entry;
	sw_owners owners; /* of the entry's ops */
	SW_VEC(played_collective) collectives;
} code;

/* Compile the program as devices of one class run it; `c` is cleared by code_clear. The codes of
 * all devices have the same collectives, and play the same iterations of loops with collectives.
 * SW_ERR_INPUT if loops are nested so deep that playing them would take too long. O(ops). */
sw_status code_compile(code *c, const sw_cluster *cluster, const sw_device_class *who,
                       const sw_program *program, bool detailed, int64_t played_iterations,
                       sw_error *err);
void code_clear(code *c);

/* ---- groups ----------------------------------------------------------------------------- */

/* The use of a link, which leads out of a part or into it. */
typedef struct link_use {
	int32_t link;
	double share; /* of the link's bandwidth, while the group goes at full speed; (0, 1] */
} link_use;
typedef struct device_group {
	int32_t size;
	const int32_t *members; /* the devices played, in ascending order */
	/* at full speed: only the groups of its own op are under way */
	double seconds;
	int32_t n_uses;
	link_use *uses;
} device_group;
typedef struct device_groups {
	int32_t n_groups;
	const device_group *groups;
	const int32_t *group_of; /* per device */
} device_groups;

/* True if the devices of the cluster may differ in what they see of a step. Where all parts are
 * alike one device is played for all. */
bool devices_differ(const sw_cluster *cluster);
int32_t count_links(const sw_cluster *cluster);
/* Find the groups of a collective. n_devices: that of the cluster, or 1, which stands for all. The
 * lists are allocated in the arena. O(devices * (levels + log devices)). */
device_groups make_device_groups(const sw_cluster *cluster, const sw_program *program,
                                 const played_collective *what, int32_t n_devices, sw_arena *arena);

/* ---- share ------------------------------------------------------------------------------ */

typedef struct link_flow {
	const device_group *group;
	/* the number of the start within the step: the seconds of groups in one wave already
	 * account for each other */
	int64_t wave;
	double remaining_s;
	double rate; /* output; (0, 1] */
} link_flow;
/* Set the rates of the flows to max-min fair ones. scratch: [2 * n_links]. */
void share_links(link_flow *flows, size_t n, int32_t n_links, double *scratch);

/* ---- play ------------------------------------------------------------------------------- */

/* Play the codes on n_devices, of which device d runs codes[code_of[d]]; code_of NULL: the first.
 * breakdowns: [n_devices]; the events of a device go to the trace, if it isn't NULL, once for each
 * rank below trace_ranks that the device stands for. */
sw_status play(const code *codes, const int32_t *code_of, int32_t n_devices, sw_trace *trace,
               int32_t trace_ranks, sw_breakdown *breakdowns, double *step_time_s, sw_error *err);

#endif
