/*
 * Private to schedule: one computation as a graph of TASKS, and what is done with it, in the order
 * of the calls.
 *
 * A task is a kernel (an op, or a region as a whole), a collective that is waited for where it
 * stands, or one half of a collective. Tasks are numbered in the program's order, a start right
 * before its done: 0, 1, 2 ... is a valid order, and every tie is broken by it.
 */
#ifndef SW_SCHEDULE_INTERNAL_H
#define SW_SCHEDULE_INTERNAL_H

#include "interpret/interpret.h"
#include "schedule/schedule.h"

#define SW_NO_TASK UINT32_MAX

typedef enum sw_task_kind {
	SW_TASK_KERNEL,
	SW_TASK_BLOCKING,
	SW_TASK_START,
	SW_TASK_DONE
} sw_task_kind;

typedef struct sw_task {
	sw_id op;
	sw_task_kind kind;
	bool split;       /* a half of an op that the program has in one piece */
	uint32_t partner; /* of a start its done, and the reverse */
	/* of a start: the next of those that are begun as one; SW_NO_TASK: none */
	uint32_t with;
	/* a half of one that another is begun as one with, in front: a kernel that takes no time */
	bool joined;
	double seconds;      /* of a kernel, or of a collective (at its start) */
	double collective_s; /* of a region: what its collectives take of `seconds` or beside it */
	/* what it needs beyond operands and results: working space; of a region all that is in it
	 */
	double bytes;
} sw_task;

/* A kernel, or a collective that runs in its place. */
static inline bool sw_task_computes(const sw_task *task)
{
	return task->kind == SW_TASK_KERNEL || task->kind == SW_TASK_BLOCKING;
}

/* What a called computation is to its caller; zero where it is not scheduled. */
typedef struct sw_region_figures {
	double seconds, collective_s;
	double bytes; /* beyond its parameters */
	bool effects; /* ops whose order counts although no value says so */
} sw_region_figures;

typedef struct sw_task_list {
	const uint32_t *start; /* [n + 1] */
	const uint32_t *tasks; /* of task t: tasks[start[t] .. start[t + 1]) */
} sw_task_list;

typedef struct sw_tasks {
	const sw_program *program;
	int32_t computation;
	uint32_t n, n_starts;
	double transfer_share; /* of the device, taken from kernels by a collective beside them */
	const sw_buffers *buffers; /* of the program */
	sw_task *tasks;
	sw_task_list before, after;
} sw_tasks;

/* Its computations are programs of their own; those of other ops are counted with the op. */
static inline bool sw_runs_computations(const sw_op *op)
{
	return op->opcode == SW_OP_WHILE || op->opcode == SW_OP_CONDITIONAL ||
	       op->opcode == SW_OP_CALL;
}

/* What is the same for all computations of one program. `maker` is filled as computations come. */
typedef struct sw_task_source {
	const sw_cluster *cluster;
	const sw_program *program;
	uint32_t overlap;
	sw_users users;
	uint32_t *maker; /* [values] */
	uint32_t *task;  /* [ops]: the task that an op begins with */
	sw_buffers buffers;
	sw_region_figures *figures; /* [computations] */
} sw_task_source;
void sw_task_source_init(sw_task_source *source, const sw_cluster *cluster,
                         const sw_program *program, uint32_t overlap, sw_arena *arena);
/* The graph of one computation; the figures of all that it calls are there. O(ops + edges). */
void sw_tasks_make(const sw_task_source *source, int32_t computation, sw_arena *arena,
                   sw_tasks *graph);
typedef struct sw_task_edge {
	uint32_t from, to;
} sw_task_edge;
/* More edges; tasks are numbered anew, each as soon after those it had before it as they let it.
 * Returns the new numbers, by the old ones. O((n + edges) log n). */
const uint32_t *sw_tasks_link(sw_tasks *graph, const sw_task_edge *more, size_t n_more,
                              sw_arena *arena);
/* Are the op's results counted with this task? Those of a collective in halves are with its done;
 * of one that is joined, with its start. */
static inline bool sw_task_yields(const sw_tasks *graph, uint32_t t)
{
	const sw_task *task = &graph->tasks[t];
	return task->joined ? task->partner > t : task->kind != SW_TASK_START || !task->split;
}
/* The value whose buffer it has, and the bytes of its own one. */
static inline sw_id sw_task_buffer(const sw_tasks *graph, sw_id value)
{
	return graph->buffers->buffer[value];
}
static inline double sw_task_value_bytes(const sw_tasks *graph, sw_id value)
{
	return (double)graph->buffers->bytes[value];
}
/* Sums of one computation that ran for `seconds`, for its callers. */
void sw_tasks_figure(const sw_task_source *source, const sw_tasks *graph, double seconds,
                     double bytes, sw_region_figures *figures);

/* The two streams, and when each is free. */
typedef struct sw_streams {
	double kernels_s, collectives_s;
	double transfer_share; /* of the graph */
	double stretch;        /* collectives take so many times what they should */
} sw_streams;
sw_streams sw_streams_of(const sw_tasks *graph, double stretch);
/* Of a start when its collective runs, of a done the wait. */
typedef struct sw_stream_span {
	double begin_s, end_s;
} sw_stream_span;
/* The next task; landed_s: of a done, when its collective is over. */
sw_stream_span sw_streams_run(sw_streams *at, const sw_task *task, double landed_s);
/* All tasks in this order. Returns the makespan; spans: NULL, or [n]. O(n). */
double sw_streams_play(const sw_tasks *graph, const uint32_t *order, double stretch,
                       sw_stream_span *spans);

/* Kernels and blocking collectives in program order; *n of them. */
uint32_t *sw_order_kept(const sw_tasks *graph, sw_arena *arena, uint32_t *n);
/* The same, ordered so that collectives have something to hide behind. O((n + edges) log n). */
uint32_t *sw_order_hide(const sw_tasks *graph, sw_arena *arena, uint32_t *n);
/* The same, ordered so that collectives can begin early. O(starts * (n + edges)). */
uint32_t *sw_order_feed_soon(const sw_tasks *graph, sw_arena *arena, uint32_t *n);
uint32_t *sw_order_feed_much(const sw_tasks *graph, sw_arena *arena, uint32_t *n);

/* The same, ordered so that each collective can begin as soon as the longest way to it lets it.
 * O((n + edges) log n). */
uint32_t *sw_order_early(const sw_tasks *graph, sw_arena *arena, uint32_t *n);
/* The same, as near to the program's as leaves each collective its time: for where memory is short.
 * O((n + edges) log n). */
uint32_t *sw_order_due(const sw_tasks *graph, sw_arena *arena, uint32_t *n);
/* The same with no more time for each than it takes: it holds less. */
uint32_t *sw_order_due_barely(const sw_tasks *graph, sw_arena *arena, uint32_t *n);

/* What a placement of starts and dones may hold: `spare_bytes` beyond what the least would need,
 * but no more than `room_bytes` in all, if the least needs less. */
typedef struct sw_allowance {
	double spare_bytes, room_bytes;
} sw_allowance;

/* All tasks: starts and dones between kernels in a fixed order;
 * what holds more the earlier it begins (a prefetch) is begun so that it may take `slack` times its
 * time and still be there, at INFINITY as early as there is room. Fills orders[] with those that
 * the slacks lead to, equal ones once; returns how many. O((n + edges) log n). */
size_t sw_place_halves(const sw_tasks *graph, const uint32_t *kernels, uint32_t n_kernels,
                       const double *slacks, size_t n_slacks, sw_allowance may, sw_arena *arena,
                       const uint32_t **orders);
/* All tasks, in the order given but for those that would wait while others can run. O((n + edges)
 * log n). */
uint32_t *sw_order_slip(const sw_tasks *graph, const uint32_t *given, sw_arena *arena);
/* The graph with collectives begun as one where that takes less time in this order (seen when they
 * are stretched), or all-reduces up to merge_bytes (0: not so), and an order of its kernels, *n of
 * them, that is like the one given; NULL: there are none to be begun as one. O((n + edges) +
 * starts^2). */
uint32_t *sw_order_combine(const sw_cluster *cluster, const sw_tasks *graph, const uint32_t *order,
                           double stretch, bool held, int64_t merge_bytes, sw_arena *arena,
                           sw_tasks *combined, uint32_t *n);
/* Does the result of kernel t take the place of an operand? last: per buffer, when it is read for
 * the last time; at: when t runs. */
bool sw_task_takes_place(const sw_tasks *graph, uint32_t t, uint32_t result, const int32_t *last,
                         int32_t at);
/* The most that is held at once. O(n + values of the program). */
double sw_order_bytes(const sw_tasks *graph, const uint32_t *order, sw_arena *arena);

/* The order that is taken: of the graph given, or of one with collectives begun as one. It lies in
 * the arena. */
typedef struct sw_order {
	const sw_tasks *graph;
	const uint32_t *order;
	double seconds, bytes;
} sw_order;
/* spare_bytes: beyond what the program's own order is reckoned to hold; below 0: others are to hold
 * so much less. */
sw_order sw_order_choose(const sw_cluster *cluster, const sw_tasks *graph, double spare_bytes,
                         int64_t merge_bytes, sw_arena *arena);

/* Seconds that no order of the tasks is under. O(n (n + edges)). */
double sw_order_bound(const sw_tasks *graph, sw_arena *arena);

/* Bytes at each point: adds to ranges, asks for the most in one. [begin, end). O(log n) each. */
typedef struct sw_profile {
	int32_t n, width;
	double *most, *added;
} sw_profile;
void sw_profile_init(sw_profile *profile, const double *bytes, int32_t n, sw_arena *arena);
void sw_profile_add(sw_profile *profile, int32_t begin, int32_t end, double bytes);
/* -INFINITY if empty */
double sw_profile_most(const sw_profile *profile, int32_t begin, int32_t end);
sw_profile sw_profile_copy(const sw_profile *profile, sw_arena *arena);

#endif
