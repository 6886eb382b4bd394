/*
 * crossmesh: a tensor goes from one mesh of devices to another, disjoint one.
 *
 * This stage takes two SIDES (a mesh, which is a grid of some of the cluster's devices, and the
 * layout of the tensor on it) and gives a plan: the UNIT TASKS (a slice of the tensor, the devices
 * that hold it, the devices that need it), who sends what to whom in which order, the seconds that
 * this takes on the cluster, and seconds that no plan is below. Source: "On Optimizing the
 * Communication of Model Parallelism" (the cross-mesh resharding paper), sections 2.2 and 3.
 *
 * Layouts are those of src/layout, with one atom per axis of the mesh. A dimension that an axis
 * does not divide is padded on each side by itself: the last parts are smaller, or empty, and
 * nothing of the padding travels. So a unit task's slice is, in each dimension, the indices whose
 * digits are those of a part of the source AND those of a part of the target.
 *
 * Partial sums: if the source has P axes, every term of a slice travels along a chain of devices
 * that each add their own, and what reaches the receivers is the whole. If the target has P axes,
 * of a sum or a product the devices at coordinate 0 get the value and the others hold the neutral
 * element; of the other monoids all get the value.
 *
 * The model. A message between two devices uses the link out of the one's part and the link into
 * the other's, at the level at which the two meet (src/cost, sw_cost_pair); both directions of a
 * link are separate. A PHASE of a task takes a share of each of its links for as long as its data
 * pass there, and the shares on a link never exceed 1: so chains through the same devices follow
 * each other link by link. In the paper every task has the whole of its hosts' links from its
 * beginning to its end (equation 3). With b bytes and rates r_h of its hops a phase takes
 *
 *   CHAIN    in K chunks: sum of latencies + b / r + (b / K) (sum of 1 / r_h - 1 / r), r = min r_h;
 *            with A equal slow hops t + (A - 1) t / K (the paper counts a chunk more: t + A t / K)
 *   SCATTER  latency + the slowest link: bytes / min(bandwidth, flows * flow)
 *   GATHER   a ring of g: (g - 1) latencies + the slowest link, with (g - 1) / g b per hop
 *
 * and each message after the first costs its sender 0.02 latencies (src/cost, forms.c).
 */
#ifndef SW_CROSSMESH_H
#define SW_CROSSMESH_H

#include "cost/cost.h"

/* ---- sides ------------------------------------------------------------------------------ */

typedef struct sw_crossmesh_side {
	sw_atoms axes;          /* of the mesh, outermost first; sizes need not be primes */
	const int64_t *devices; /* [product of axes], row-major: numbers in the cluster */
	sw_layout layout;       /* a state per axis; fits `dims` */
	/* the tensor's dims, each rounded up to what the layout divides */
	int64_t dims[SW_MAX_RANK];
} sw_crossmesh_side;

/* Read a shape such as "f32[1024,1024,512]"; its dims are in the arena. */
sw_status sw_crossmesh_parse_shape(const char *text, sw_arena *arena, sw_shape *shape,
                                   sw_error *err);
/* Read "LAYOUT@MESH" (docs/reshard.md), such as "S0RR@2x4:0-7". The devices' list is in the arena.
 * SW_ERR_INPUT: the text does not parse, a device is not in the cluster or is named twice, or the
 * layout does not fit the mesh or the shape. */
sw_status sw_crossmesh_parse_side(const char *text, sw_shape shape, const sw_cluster *cluster,
                                  sw_arena *arena, sw_crossmesh_side *side, sw_error *err);
/* Print it in the form that reads back. */
void sw_crossmesh_print_side(const sw_crossmesh_side *side, sw_shape shape, sw_text *text);
/* Set side->dims from the shape and the layout. */
void sw_crossmesh_pad(sw_crossmesh_side *side, sw_shape shape);
/* Check that sides and shape fit each other and the cluster: SW_ERR_INPUT where meshes overlap, a
 * device is beyond the cluster, or both sides have partial values that are combined otherwise. */
sw_status sw_crossmesh_check(const sw_cluster *cluster, const sw_crossmesh_side *from,
                             const sw_crossmesh_side *to, sw_shape shape, sw_error *err);

/* ---- options ---------------------------------------------------------------------------- */

/* How one unit task travels (the paper, section 3.1). */
typedef enum sw_crossmesh_strategy {
	SW_CROSSMESH_SEND_RECV,         /* to each receiver by itself: A B t */
	SW_CROSSMESH_LOCAL_ALL_GATHER,  /* a part to each device of a host, which gather: A t */
	SW_CROSSMESH_GLOBAL_ALL_GATHER, /* a part to each receiver, and all of them gather: 2 t */
	SW_CROSSMESH_BROADCAST,         /* in chunks from one to the next: t + A t / K */
	SW_CROSSMESH_STRATEGIES,
	SW_CROSSMESH_AUTO = SW_CROSSMESH_STRATEGIES /* the quickest of them */
} sw_crossmesh_strategy;
/* Which holder sends, and in which order tasks are served (section 3.2). */
typedef enum sw_crossmesh_order {
	SW_CROSSMESH_NAIVE,  /* the first holder sends; tasks as they come */
	SW_CROSSMESH_GREEDY, /* longest first, each from the holder with the least to do */
	SW_CROSSMESH_DFS,    /* depth-first search with pruning, within a limit of work */
	SW_CROSSMESH_RANDOM, /* again and again the largest of some random sets without conflict */
	SW_CROSSMESH_ENSEMBLE, /* the best of all */
	SW_CROSSMESH_ORDERS
} sw_crossmesh_order;
const char *sw_crossmesh_strategy_name(sw_crossmesh_strategy strategy); /* "broadcast", "auto" */
const char *sw_crossmesh_order_name(sw_crossmesh_order order);          /* "ensemble" */
sw_status sw_crossmesh_parse_strategy(const char *text, sw_crossmesh_strategy *strategy,
                                      sw_error *err);
sw_status sw_crossmesh_parse_order(const char *text, sw_crossmesh_order *order, sw_error *err);

typedef struct sw_crossmesh_options {
	sw_crossmesh_strategy strategy;
	sw_crossmesh_order order;
	/* of a chain; 0: as many as make it quickest, at most SW_CROSSMESH_CHUNKS of at least
	 * SW_CROSSMESH_CHUNK_BYTES */
	int32_t chunks;
	/* into which each slice is cut, to balance loads; 0: as many as it takes to come within
	 * SW_CROSSMESH_TOLERANCE of the bound, at most SW_CROSSMESH_PIECES */
	int32_t pieces;
	int64_t work_limit;  /* of a search, in phases placed and options looked at; 0:
	                        SW_CROSSMESH_WORK */
	double time_limit_s; /* of the searches; 0: none. With it plans depend on the machine */
	uint64_t seed;
} sw_crossmesh_options;
sw_crossmesh_options sw_crossmesh_defaults(void); /* auto, ensemble, 0 elsewhere */

/* ---- plans ------------------------------------------------------------------------------ */

/* The part of the tensor that one part of the source and one part of the target have in common. */
typedef struct sw_unit_slice {
	int64_t source_part, target_part; /* row-major over the dims' classes of each side */
	const int64_t *source, *target;   /* [rank]: the class of either side per dimension */
	int64_t elements;
	/* [n_terms][n_holders], by term: devices that hold it. n_terms is 1 without P axes. */
	int32_t n_terms, n_holders;
	const int64_t *holders;
	int32_t n_receivers;
	const int64_t *receivers;
} sw_unit_slice;

/* Elements [first, first + elements) of a slice, in its row-major order, for those receivers that
 * are in one part of level - 1 with holders of all terms, but in no part of `level` with such
 * (level 0: anywhere). So what is near a receiver is taken from there. */
typedef struct sw_unit_task {
	int32_t slice, level;
	int64_t first, elements, bytes;
	int32_t n_receivers, n_holders; /* holders: of each term, those in that part */
	const int64_t *receivers, *holders;
} sw_unit_task;

typedef enum sw_phase_kind { SW_PHASE_CHAIN, SW_PHASE_SCATTER, SW_PHASE_GATHER } sw_phase_kind;
/* A share of the bandwidth of one direction of a link, while a phase's data pass there. */
typedef struct sw_link_share {
	int32_t link; /* index into the plan's links */
	double share; /* (0, 1] */
	/* from so long after the phase's start, and for so long; latencies are not in it, as what
	 * follows on a link need not wait until the last bytes have arrived */
	double begin_s, held_s;
	/* the last message over it: from here to there */
	int64_t from, to;
} sw_link_share;
/*
 * What some devices do together for a task:
 *   CHAIN    members[i] sends to members[i + 1], in chunks; the first n_terms of them hold terms,
 * and each but the first adds its own before it passes it on SCATTER  members[0] sends part i of n
 * - 1 (equal parts, the last ones smaller) to members[1 + i] GATHER   members[i] has part i of n;
 * each sends to the next what it got last, in a ring
 */
typedef struct sw_crossmesh_phase {
	sw_phase_kind kind;
	int32_t task, after; /* after: index of the phase that must be over, -1: none */
	int32_t n_members, n_terms, chunks;
	const int64_t *members;
	int32_t n_links;
	const sw_link_share *links;
	double seconds, start_s; /* seconds: of the phase alone */
} sw_crossmesh_phase;

/* Part i of n of a task's elements, in SCATTER and GATHER; chunk i of n in CHAIN. */
typedef struct sw_element_range {
	int64_t begin, length;
} sw_element_range;
static inline sw_element_range sw_crossmesh_part(int64_t elements, int64_t n, int64_t i)
{
	int64_t each = sw_ceil_div(elements, n), begin = SW_MIN(each * i, elements);
	return (sw_element_range){begin, SW_MIN(each, elements - begin)};
}

/* One direction of the link of a part of a level. */
typedef struct sw_crossmesh_link {
	int32_t level, part;
	bool into;
	double bandwidth, flow; /* bytes per second; flow: of one message */
	double busy_s;          /* sum of shares times the seconds they are held, in the plan */
} sw_crossmesh_link;

/* Seconds that no plan is below, and why: the volume that some parts of a level must send, or that
 * one part must receive, over what their links carry. */
typedef struct sw_crossmesh_bound {
	double seconds;
	int32_t level, part; /* of a part that is short; level -1: nothing has to travel */
	bool into;
	double bytes; /* of all parts that are short together */
} sw_crossmesh_bound;

typedef struct sw_crossmesh_plan {
	sw_arena arena;
	sw_shape shape;
	sw_crossmesh_side from, to; /* lists of devices are borrowed */
	sw_crossmesh_strategy strategy;
	sw_crossmesh_order order;
	int32_t pieces;
	int32_t n_slices, n_tasks, n_phases, n_links;
	const sw_unit_slice *slices;
	const sw_unit_task *tasks;
	const sw_crossmesh_phase *phases; /* in the order in which they are served */
	const sw_crossmesh_link *links;
	double seconds;
	sw_crossmesh_bound bound;
	int64_t work; /* that the searches took */
} sw_crossmesh_plan;

/* Make a plan. The same input gives the same plan unless there is a time limit. Sides are those
 * that sw_crossmesh_check accepts. A plan for a few hundred unit tasks takes about a millisecond
 * per strategy and number of pieces that is tried. */
sw_status sw_crossmesh_plan_make(const sw_cluster *cluster, const sw_crossmesh_side *from,
                                 const sw_crossmesh_side *to, sw_shape shape,
                                 const sw_crossmesh_options *options, sw_crossmesh_plan **plan,
                                 sw_error *err);
void sw_crossmesh_plan_free(sw_crossmesh_plan *plan); /* NULL is fine */
/* Return seconds over the bound, minus 1; 0 where nothing has to travel. */
double sw_crossmesh_gap(const sw_crossmesh_plan *plan);
double sw_crossmesh_phase_end(const sw_crossmesh_phase *phase);

/* ---- data ------------------------------------------------------------------------------- */

/* Copy `elements` elements of a slice, from number `first` on, from the part of the tensor that a
 * holder of the slice has to a buffer (pack), or from a buffer to the part that a receiver has
 * (unpack). Parts have the padded local dims of their side. O(dims + elements). */
void sw_crossmesh_pack(const sw_crossmesh_plan *plan, const sw_unit_slice *slice, int64_t first,
                       int64_t elements, const void *part, void *buffer);
void sw_crossmesh_unpack(const sw_crossmesh_plan *plan, const sw_unit_slice *slice, int64_t first,
                         int64_t elements, const void *buffer, void *part);
/* Return the bytes of one device's part on a side, with its padding. */
int64_t sw_crossmesh_local_bytes(const sw_crossmesh_side *side, sw_shape shape);
/* Return the index of a device in the side's mesh; -1: it is not in it. */
int64_t sw_crossmesh_index_of(const sw_crossmesh_side *side, int64_t device);
/* Return whether the device, a member of the mesh by index, gets the value (the others hold the
 * neutral element of a partial target). */
bool sw_crossmesh_gets_value(const sw_crossmesh_side *to, int64_t index);

/* ---- text ------------------------------------------------------------------------------- */

/* Add a table of the phases in order (at most `rows`, 0: all): what, how many bytes, who sends to
 * whom, from when to when. */
void sw_crossmesh_print_phases(const sw_crossmesh_plan *plan, int32_t rows, sw_text *text);
/* Add a timeline: a line per link of the outermost level that is used, with the unit tasks by their
 * last digit in `columns` columns. */
void sw_crossmesh_print_timeline(const sw_cluster *cluster, const sw_crossmesh_plan *plan,
                                 int32_t columns, sw_text *text);
/* Add "node 2 receives 512 MiB": why no plan is quicker. */
void sw_crossmesh_print_bound(const sw_cluster *cluster, const sw_crossmesh_bound *bound,
                              sw_text *text);

#endif
