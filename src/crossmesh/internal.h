/*
 * internal: what the files of crossmesh share, in the order in which it is made.
 *
 *     slices.c         the slices, who holds and who needs them
 *     unit_tasks.c     unit tasks: slices cut into pieces, receivers grouped by who is near
 *     transfer_links.c the links of the two meshes
 *     task_options.c   for each task and each possible sender: phases, links, seconds
 *     timeline.c       tasks placed one after the other
 *     order_plain.c    naive and greedy; order_depth.c, order_drawn.c: the searches
 *     transfer_bound.c the lower bound
 *     crossmesh_plan.c the driver
 */
#ifndef SW_CROSSMESH_INTERNAL_H
#define SW_CROSSMESH_INTERNAL_H

#include "crossmesh/crossmesh.h"
#include "crossmesh/limits.h"

typedef struct slice_list {
	int32_t n;
	const sw_unit_slice *slices;
} slice_list;
/* Return the slices with at least one element, in row-major order of the tensor. O(blocks of the
 * dims + slices * rank + devices). */
slice_list slices_find(const sw_crossmesh_side *from, const sw_crossmesh_side *to, sw_shape shape,
                       sw_arena *arena);

typedef struct task_list {
	int32_t n;
	const sw_unit_task *tasks;
} task_list;
task_list tasks_make(const sw_cluster *cluster, const slice_list *slices, sw_shape shape,
                     int32_t pieces, sw_arena *arena);

/* ---- links ------------------------------------------------------------------------------ */

/* number[level]: index of the link out of a part of the level, by (part - first[level]); the link
 * into it is the next one. */
typedef struct link_table {
	const sw_cluster *cluster;
	int32_t n;
	sw_crossmesh_link *links;
	int32_t first[SW_MAX_LEVELS];
	int32_t *number[SW_MAX_LEVELS];
} link_table;
link_table links_make(const sw_cluster *cluster, const sw_crossmesh_side *from,
                      const sw_crossmesh_side *to, sw_arena *arena);

/* ---- options ---------------------------------------------------------------------------- */

/* One way to do a task: by one of its possible senders. */
typedef struct task_option {
	int32_t n_phases;
	sw_crossmesh_phase *phases; /* `after` counts within the option */
	double seconds;             /* of all phases one after the other, where they share links */
	int64_t work;               /* to look at it or to place it: SW_CROSSMESH_WORK */
} task_option;
typedef struct task_ways {
	int32_t n, kind; /* kind: tasks of one kind have equal links, shares and seconds */
	task_option *options;
	int32_t devices; /* members of the first option */
} task_ways;
typedef struct ways_list {
	int32_t n, n_kinds;
	task_ways *tasks;
	const link_table *links;
} ways_list;
ways_list ways_make(const link_table *links, const slice_list *slices, const task_list *tasks,
                    sw_crossmesh_strategy strategy, int32_t chunks, sw_arena *arena);

/* ---- the timeline ----------------------------------------------------------------------- */

/* A use of a link that has begun: until `end` it has this share. */
typedef struct link_hold {
	double end, share;
} link_hold;
/* Uses of a link end in ascending order. Where there are too many, the two that end first count as
 * one that ends later. */
typedef struct link_state {
	double last_start;
	int32_t n;
	link_hold uses[SW_CROSSMESH_USES];
} link_state;
typedef struct timeline {
	const link_table *links;
	link_state *states;
	double end;
} timeline;
timeline timeline_new(const link_table *links, sw_arena *arena);
void timeline_reset(timeline *t);
void timeline_copy(timeline *to, const timeline *from);
/* Return when the first phase of an option may begin: not before what was placed on its links
 * earlier has begun, and when they have enough left. */
double timeline_earliest(const timeline *t, const task_option *option);
/* Place all phases; starts (may be NULL) gets their beginnings. */
void timeline_place(timeline *t, const task_option *option, double *starts);

/* ---- orders ----------------------------------------------------------------------------- */

typedef struct placed_task {
	int32_t task, option;
} placed_task;
typedef struct task_order {
	double seconds;
	sw_crossmesh_order by;
	placed_task *placed; /* [n tasks] */
} task_order;
typedef struct transfer_search {
	const ways_list *ways;
	double bound_s;
	int64_t work_limit, work; /* in phases placed and options looked at */
	double stop_at_s;         /* on the clock of sw_now_s; 0: never */
	uint64_t seed;
	sw_arena *arena;
	timeline line;
} transfer_search;
task_order order_new(transfer_search *s, sw_crossmesh_order by);
/* Place the order on an empty timeline; set and return its seconds. */
double order_play(transfer_search *s, task_order *order);
void order_take_if_better(const transfer_search *s, task_order *best, const task_order *other);
bool order_is_good_enough(const transfer_search *s, const task_order *order);
bool order_out_of_work(const transfer_search *s);
void order_naive(transfer_search *s, task_order *order);
void order_greedy(transfer_search *s, task_order *order);
/* Both improve *best, which is a whole order. */
void order_drawn(transfer_search *s, task_order *best);
void order_depth(transfer_search *s, task_order *best);

/* ---- the bound -------------------------------------------------------------------------- */

sw_crossmesh_bound bound_of(const sw_cluster *cluster, const sw_crossmesh_side *from,
                            const sw_crossmesh_side *to, const slice_list *slices,
                            const link_table *links, sw_shape shape, sw_arena *arena);

#endif
