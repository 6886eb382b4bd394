/*
 * The parts of the simulator. Private to src/simulate.
 *
 *     code.c      the program as instructions: what takes time, in blocks that loops and calls
 * share meeting_groups.c  who meets at a collective, how long they take by themselves, and which links
 * they use link_sharing.c  how fast those go that are under way at once play.c      the devices, event
 * by event
 */
#ifndef SW_SIMULATE_INTERNAL_H
#define SW_SIMULATE_INTERNAL_H

#include "simulate/simulate.h"

/* ---- code ------------------------------------------------------------------------------- */

typedef enum instruction_kind { KERNEL, START, DONE, CALL, LOOP } instruction_kind;
typedef struct instruction {
	instruction_kind kind;
	uint32_t collective; /* of a start and of its done */
	sw_id op;
	double seconds;            /* of a kernel */
	const struct block *block; /* called, or a iteration of the loop */
	/* of a loop: all of them, and those that are played one by one */
	int64_t iterations, played;
} instruction;

/* What one execution of a computation, or one iteration of a loop, consists of. */
typedef struct block {
	const instruction *at;
	size_t n;
	bool communicates;
	double compute_s; /* of kernels */
	double length; /* instructions to be played, of the loops in it their played iterations */
} block;

typedef struct collective {
	sw_id op;     /* that communicates: of an async-start what is in it */
	sw_id waiter; /* the op at whose place devices wait for it */
	int64_t operand_bytes;
	double seconds;
} collective;

typedef struct code {
	sw_arena arena;
	const sw_cluster *cluster;
	const sw_program *program;
	bool detailed;             /* kernels one by one: somebody wants a trace */
	int64_t played_iterations; /* of a loop; the others are taken to be like the last of them */
	const block *entry;
	SW_VEC(collective) collectives;
} code;

/* SW_ERR_INPUT if loops are nested so deep that this would take too long. */
sw_status code_compile(code *c, const sw_cluster *cluster, const sw_program *program, bool detailed,
                       int64_t played_iterations, sw_error *err);
void code_clear(code *c);

/* ---- groups ----------------------------------------------------------------------------- */

/* A link leads out of a part, or into it. */
typedef struct link_use {
	int32_t link;
	double share; /* of the link's bandwidth, while the group goes at full speed; (0, 1] */
} link_use;
typedef struct group {
	int32_t size;
	const int32_t *members; /* devices as they are played */
	/* at full speed: besides its own op's groups nothing is under way */
	double seconds;
	int32_t n_uses;
	link_use *uses;
} group;
typedef struct grouping {
	int32_t n_groups;
	const group *groups;
	const int32_t *group_of; /* per device */
} grouping;

/* May the devices of this cluster differ in what they see of a step? Where all parts are alike they
 * are one. */
bool devices_differ(const sw_cluster *cluster);
int32_t count_links(const sw_cluster *cluster);
/* n_devices: the cluster's, or 1, which stands for all. Lists go to the arena. O(devices * (levels
 * + log devices)). */
grouping make_grouping(const sw_cluster *cluster, const sw_program *program, const collective *what,
                       int32_t n_devices, sw_arena *arena);

/* ---- share ------------------------------------------------------------------------------ */

typedef struct flow {
	const group *group;
	/* which start, counted over the step: those of one wave know of each other in their seconds
	 */
	int64_t wave;
	double remaining_s;
	double rate; /* out; (0, 1] */
} flow;
/* Max-min fair rates. room: [2 * n_links] of scratch. */
void share_links(flow *flows, size_t n, int32_t n_links, double *room);

/* ---- play ------------------------------------------------------------------------------- */

/* breakdowns: [n_devices]; events of device d go to the trace, if there is one, for all ranks below
 * trace_ranks that it stands for. */
sw_status play(const code *c, int32_t n_devices, sw_trace *trace, int32_t trace_ranks,
               sw_breakdown *breakdowns, double *step_time_s, sw_error *err);

#endif
