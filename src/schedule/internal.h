/*
 * Private to schedule: one computation as a graph of TASKS, and the functions that order it, in the
 * order of the calls.
 *
 * A task is a kernel (an op, or a whole region), a collective that is waited for where it stands
 * (BLOCKING), or one half of a collective (START, DONE). Tasks are numbered in program order, a
 * start right before its done: 0, 1, 2 ... is a valid order, and every tie is broken by number.
 */
#ifndef SW_SCHEDULE_INTERNAL_H
#define SW_SCHEDULE_INTERNAL_H

#include "interpret/interpret.h"
#include "schedule/schedule.h"

#define SW_NO_TASK UINT32_MAX

/* ---- the graph -------------------------------------------------------------------------- */

typedef enum sw_task_kind {
	SW_TASK_KERNEL,
	SW_TASK_BLOCKING,
	SW_TASK_START,
	SW_TASK_DONE
} sw_task_kind;

typedef struct sw_schedule_task {
	sw_id op;
	sw_task_kind kind;
	bool split;       /* a half of an op that is one op in the program */
	uint32_t partner; /* of a start its done, and the reverse */
	/* of a start: the next one merged with it; SW_NO_TASK: none */
	uint32_t next_merged;
	/* a half whose collective was merged into an earlier one: now a kernel of zero seconds */
	bool absorbed;
	double seconds;      /* of a kernel, or of a collective (at its start) */
	double collective_s; /* of a region: seconds of its collectives, within or beside `seconds`
	                      */
	/* workspace beyond operands and results; of a region all bytes within it */
	double bytes;
} sw_schedule_task;

/* True for a kernel and for a blocking collective: both occupy the kernel stream. */
static inline bool sw_task_computes(const sw_schedule_task *task)
{
	return task->kind == SW_TASK_KERNEL || task->kind == SW_TASK_BLOCKING;
}

/* Cost of a called computation to its callers; zero where it is not scheduled. */
typedef struct sw_region_figures {
	double seconds, collective_s;
	double bytes; /* beyond its parameters */
	bool effects; /* has ops whose order matters although no value links them */
} sw_region_figures;

typedef struct sw_task_list {
	const uint32_t *start; /* [n + 1] */
	const uint32_t *tasks; /* of task t: tasks[start[t] .. start[t + 1]) */
} sw_task_list;

typedef struct sw_tasks {
	const sw_program *program;
	int32_t computation;
	uint32_t n, n_starts;
	double transfer_share;     /* share of the device that a collective takes from kernels */
	const sw_buffers *buffers; /* of the program */
	sw_schedule_task *tasks;
	sw_task_list before, after; /* predecessors, successors */
} sw_tasks;

/* True if the computations that the op calls are scheduled by themselves; those of other ops are
 * part of the op. */
static inline bool sw_runs_computations(const sw_op *op)
{
	return op->opcode == SW_OP_WHILE || op->opcode == SW_OP_CONDITIONAL ||
	       op->opcode == SW_OP_CALL;
}

/* Data that all computations of one program share. sw_tasks_make fills `maker` and `task`, the
 * caller fills `figures`, computation by computation. */
typedef struct sw_task_source {
	const sw_cluster *cluster;
	const sw_program *program;
	uint32_t overlap;
	sw_users users;
	uint32_t *maker; /* [values] the task that makes the value */
	uint32_t *task;  /* [ops] the first task of the op */
	sw_buffers buffers;
	sw_region_figures *figures; /* [computations] */
} sw_task_source;
/* The lists are allocated in the arena. */
void sw_task_source_init(sw_task_source *source, const sw_cluster *cluster,
                         const sw_program *program, uint32_t overlap, sw_arena *arena);
/* Build the graph of one computation; requires the figures of all computations that it calls.
 * O(ops + edges). */
void sw_tasks_make(const sw_task_source *source, int32_t computation, sw_arena *arena,
                   sw_tasks *graph);
typedef struct sw_task_edge {
	uint32_t from, to;
} sw_task_edge;
/* Add edges, and renumber the tasks: a topological order that always takes the ready task with the
 * smallest old number. Returns the new numbers, indexed by the old ones. O((n + edges) log n). */
const uint32_t *sw_tasks_link(sw_tasks *graph, const sw_task_edge *more, size_t n_more,
                              sw_arena *arena);
/* True if the op's results are counted with this task. The results of a collective in halves are
 * counted with its done; those of an absorbed one with its start. */
static inline bool sw_task_yields(const sw_tasks *graph, uint32_t t)
{
	const sw_schedule_task *task = &graph->tasks[t];
	return task->absorbed ? task->partner > t : task->kind != SW_TASK_START || !task->split;
}
/* Return the value whose buffer this value occupies: itself, if it has one of its own. */
static inline sw_id sw_task_buffer(const sw_tasks *graph, sw_id value)
{
	return graph->buffers->buffer[value];
}
/* Return the bytes of the value's own buffer; 0: it has none. */
static inline double sw_task_value_bytes(const sw_tasks *graph, sw_id value)
{
	return (double)graph->buffers->bytes[value];
}
/* Sum up a computation that takes `seconds` and holds at most `bytes`, for its callers. */
void sw_tasks_figure(const sw_task_source *source, const sw_tasks *graph, double seconds,
                     double bytes, sw_region_figures *figures);

/* ---- the two streams -------------------------------------------------------------------- */

/* The time at which each stream is free. */
typedef struct sw_streams {
	double kernels_s, collectives_s;
	double transfer_share; /* of the graph */
	double stretch;        /* collectives take so many times their predicted seconds */
} sw_streams;
sw_streams sw_streams_of(const sw_tasks *graph, double stretch);
/* When a task runs: of a start its collective, of a done the wait. */
typedef struct sw_stream_span {
	double begin_s, end_s;
} sw_stream_span;
/* Run the next task; landed_s: of a done, the end of its collective. O(1). */
sw_stream_span sw_streams_run(sw_streams *at, const sw_schedule_task *task, double landed_s);
/* Run all tasks in this order. Returns the makespan in seconds; spans: NULL, or [n]. O(n). */
double sw_streams_play(const sw_tasks *graph, const uint32_t *order, double stretch,
                       sw_stream_span *spans);

/* ---- orders of kernels ------------------------------------------------------------------ */

/* Each returns the *n kernels and blocking collectives in an order that the edges allow. */
typedef uint32_t *sw_kernel_order_fn(const sw_tasks *graph, const sw_schedule_limits *limits,
                                     sw_arena *arena, uint32_t *n);
/* Keep the program's order. O(n). */
sw_kernel_order_fn sw_order_program;
/* List-schedule backwards from the results, so that kernels run beside collectives.
 * O((n + edges) log n). */
sw_kernel_order_fn sw_order_backward;
/* List-schedule forwards, giving priority to the collective that needs the least work before it;
 * _ratio: the least work for each second that the collective takes. O(starts * (n + edges)). */
sw_kernel_order_fn sw_order_least_work;
sw_kernel_order_fn sw_order_least_work_ratio;
/* List-schedule forwards, so that each collective begins at its earliest start, the length of the
 * critical path to it. O((n + edges) log n). */
sw_kernel_order_fn sw_order_earliest_start;
/* Deviate from the program's order only where a collective needs its lead time: for programs short
 * of memory. O((n + edges) log n). */
sw_kernel_order_fn sw_order_deferred;
/* The same with a lead time of one collective: it holds less. */
sw_kernel_order_fn sw_order_deferred_tight;

/* ---- orders of all tasks ---------------------------------------------------------------- */

/* Bytes that an insertion of starts and dones may hold: spare_bytes beyond the insertion that needs
 * the least memory, but no more than max_bytes in all, unless that insertion itself needs more. */
typedef struct sw_memory_allowance {
	double spare_bytes, max_bytes;
} sw_memory_allowance;

/* Insert starts and dones between kernels in a fixed order, once per lead time. A prefetch (a
 * collective that holds more bytes the earlier it begins) begins `leads[i]` times its seconds
 * before its deadline; INFINITY: as early as memory allows. Fills orders[] with the different
 * results and returns how many they are. O((n + edges) log n) per lead time. */
size_t sw_insert_collectives(const sw_tasks *graph, const uint32_t *kernels, uint32_t n_kernels,
                             const double *leads, size_t n_leads, sw_memory_allowance may,
                             sw_arena *arena, const uint32_t **orders);
/* Reorder all tasks so that a task which would wait lets ready tasks pass.
 * O((n + edges) log n). */
uint32_t *sw_order_defer_waits(const sw_tasks *graph, const uint32_t *given, sw_arena *arena);
/* Run all that waits for no collective, kernels in the given order and starts as soon as they can
 * (order_kernels NULL: both in the program's order); then all waits whose collectives have begun,
 * and so on: so as many collectives as can be are under way together.
 * O((n + edges) log n), and what the order of kernels takes. */
uint32_t *sw_order_last_waits(const sw_tasks *graph, sw_kernel_order_fn *order_kernels,
                              const sw_schedule_limits *limits, sw_arena *arena);

/* Run all tasks backwards, each as late as it can by the times of the given order, then forwards by
 * those times. O((n + edges) log n). */
uint32_t *sw_order_justify(const sw_tasks *graph, const uint32_t *given, sw_arena *arena);

/* How collectives are merged: by the times of an order in which collectives are stretched. */
typedef struct sw_merge_way {
	double stretch;
	bool deferred; /* a start may wait for later ones of its kind */
	bool soonest;  /* reductions are cut into the groups of which the last ends soonest */
	bool groups;   /* merge the all-reduces of the plan's groups alone; else all but these */
	sw_merge merge;
} sw_merge_way;
/* Merge small collectives of the graph: `combined` is the graph with them, and the *n kernels
 * returned are ordered like `order`; NULL: nothing can be merged. O((n + edges) + starts^2). */
uint32_t *sw_order_combine(const sw_cluster *cluster, const sw_tasks *graph, const uint32_t *order,
                           sw_merge_way way, const sw_schedule_limits *limits, sw_arena *arena,
                           sw_tasks *combined, uint32_t *n);
/* Return the graph in which starts follow each other as the plan numbers them (sw_sending); itself where
 * it numbers none. O(numbers * (n + edges) + pairs of starts of neighbouring numbers). */
const sw_tasks *sw_order_said(const sw_tasks *graph, sw_arena *arena);
/* True if the result of kernel t is written over an operand. last: per buffer, the point of its
 * last read; at: the point at which t runs. */
bool sw_task_overwrites_operand(const sw_tasks *graph, uint32_t t, uint32_t result,
                                const int32_t *last, int32_t at);
/* Return the peak bytes of an order. O(n + values of the program). */
double sw_order_bytes(const sw_tasks *graph, const uint32_t *order, sw_arena *arena);

/* An order of all tasks of a graph: the graph given, or one with merged collectives. Both lie in
 * the arena. */
typedef struct sw_order {
	const sw_tasks *graph;
	const uint32_t *order;
	double seconds, bytes;
} sw_order;
/* What is known elsewhere, for one execution of a computation; INFINITY: nothing. */
typedef struct sw_order_rivals {
	double beaten_s;   /* the search ends with the first orders if those take longer */
	double unmerged_s; /* and with all orders without merging, likewise */
} sw_order_rivals;
/* Search for the best order. spare_bytes: bytes that it may hold beyond the program's own order, by
 * sw_order_bytes; below 0: it must hold that many less. */
sw_order sw_order_best(const sw_cluster *cluster, const sw_tasks *graph, double spare_bytes,
                       sw_order_rivals rivals, sw_merge merge, const sw_schedule_limits *limits,
                       sw_arena *arena);

/* Return a lower bound on the seconds of every order of the tasks. O(n (n + edges)). */
double sw_order_bound(const sw_tasks *graph, sw_arena *arena);

/* ---- bytes over the points of an order -------------------------------------------------- */

/* Bytes at each point: adds to a range [begin, end), finds the maximum of one. O(log n) each. */
typedef struct sw_profile {
	int32_t n, width;
	double *max, *added;
} sw_profile;
/* bytes: [n], at each point. */
void sw_profile_init(sw_profile *profile, const double *bytes, int32_t n, sw_arena *arena);
void sw_profile_add(sw_profile *profile, int32_t begin, int32_t end, double bytes);
/* -INFINITY if the range is empty */
double sw_profile_max(const sw_profile *profile, int32_t begin, int32_t end);
sw_profile sw_profile_copy(const sw_profile *profile, sw_arena *arena);

#endif
