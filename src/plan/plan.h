/*
 * plan: choose how the program runs on the cluster.
 *
 * Takes a canonical program (rewrite), a cluster and options, gives a PLAN: for every op a
 * strategy, for every value the layout in which it is produced and the one in which it is kept for
 * its consumers (its HUB), for every entry input and result the layout at rest; and what it will
 * cost, with a lower bound.
 *
 * How. (1) Rules of all ops. (2) CLASSES: splits (dimension, top) of all values that the rules
 * carry into each other form equivalence classes (flooding, Rhino 4.3.3): the batch is one, the
 * heads of a layer another. (3) Atoms are grouped in AXES of adjacent atoms (two are searched
 * freely, three where atoms and ops are few); each grouping is a leaf of the search. (4) A site's
 * CANDIDATES give each axis to one class that the op has, to a passage of partial sums, or to none.
 * (5) The pairwise problem: a node per SITE (an op; an entry input or result; a PORT, where values
 * go into a loop or conditional or come out of it) and a hub per value with several readers; node
 * cost: what the local op costs; edge cost: redistribution seconds; spans: local bytes over live
 * moments. (6) solve. (7) The cheapest assignment of all leaves and of the fixed strategies,
 * measured on the partitioned program and played as it is scheduled, is the plan. Fixed strategies
 * are constraints on the same problem. All this for the program as it is, and rewritten: padded
 * where dimensions do not divide, and where memory is short with activations computed again and in
 * microbatches.
 */
#ifndef SW_PLAN_H
#define SW_PLAN_H

#include "cost/cost.h"
#include "frontend/frontend.h"
#include "rewrite/rewrite.h"
#include "solve/methods.h"

typedef enum sw_strategy_kind {
	SW_PLAN_AUTO,
	SW_PLAN_DP,
	SW_PLAN_HOROVOD,
	SW_PLAN_ZERO1,
	SW_PLAN_ZERO2,
	SW_PLAN_ZERO3,
	SW_PLAN_MEGATRON,
	SW_PLAN_SUMMA,
	SW_PLAN_2_5D,
	SW_PLAN_AXONN,
	SW_PLAN_EXPERT,
	SW_PLAN_SERIAL
} sw_strategy_kind;
#define SW_STRATEGY_SIZES 4
typedef struct sw_plan_strategy {
	sw_strategy_kind kind;
	/* Devices along each axis, in the order in which they are written; size[0] == 0: as the
	 * planner finds best. MEGATRON: tensor; SUMMA: rows, columns; 2_5D: rows, columns, depth;
	 * AXONN: x, y, z, data; EXPERT: experts. */
	int64_t size[SW_STRATEGY_SIZES];
	/* MEGATRON: between the blocks activations are split over the sequence */
	bool sequence;
	int64_t merge_bytes; /* HOROVOD: gradients are reduced together, so many bytes at once */
	int64_t top;         /* AXONN without sizes: how many grids are planned */
} sw_plan_strategy;
/* What may be written is listed in docs/commands.md; the message of a failure lists it, too. What
 * is printed parses back. */
sw_status sw_plan_strategy_parse(const char *text, sw_plan_strategy *strategy, sw_error *err);
void sw_plan_strategy_print(const sw_plan_strategy *strategy, sw_text *text);

/* ---- pins: docs/pins.md ----------------------------------------------------------------- */

typedef struct sw_pin {
	const char *pattern; /* glob, of names of tensors or ops */
	bool is_op, whole, outer;
	int line;
	/* dimensions that are split, in the order written, and among how many devices each */
	int32_t n;
	int32_t dims[SW_MAX_RANK];
	/* contract: of an op, what it sums over; 1: not split */
	int64_t parts[SW_MAX_RANK], contract;
} sw_pin;
typedef struct sw_pins {
	sw_arena arena;
	const char *file; /* borrowed */
	size_t n;
	sw_pin *list;
} sw_pins;
sw_status sw_pins_read(const char *path, sw_pins *pins, sw_error *err);
void sw_pins_clear(sw_pins *pins);

/* Atoms that move together: a run of adjacent atoms. */
#define SW_MAX_AXES 4
typedef struct sw_axis {
	uint32_t atoms;
	int64_t size;
	char name[8]; /* "x", "y", "z", "w", or as a strategy calls it */
} sw_axis;

/* One line of "what else was considered". */
#define SW_NAME_ROOM 96
typedef struct sw_alternative {
	char name[SW_NAME_ROOM];
	bool feasible;
	double bound_s; /* > 0: was given up, since it can't be faster than this */
	/* step: with overlap, if it was played; else the sum */
	double step_time_s, compute_s, communication_s;
	int64_t payload_bytes, peak_bytes;
} sw_alternative;

/* Layouts by number: equal layouts have equal numbers; in a plan and its planner number 0 is the
 * whole tensor everywhere. */
typedef struct sw_layouts {
	sw_map index;
	SW_VEC(sw_layout) items;
} sw_layouts;
uint32_t sw_layouts_id(sw_layouts *layouts, const sw_layout *layout);
void sw_layouts_copy(sw_layouts *to, const sw_layouts *from); /* same numbers */
/* these, which differ, from 0 on */
void sw_layouts_set(sw_layouts *layouts, const sw_layout *items, size_t n);
void sw_layouts_clear(sw_layouts *layouts);

/* A reader of a value. */
typedef struct sw_read {
	sw_id value, op;
} sw_read;
typedef SW_VEC(sw_read) sw_reads;

typedef struct sw_path_store sw_path_store;
typedef struct sw_plan {
	sw_arena arena;
	sw_program *program; /* canonical, rewritten if `original` is there; owned */
	/* canonical, as it was before; NULL: nothing is rewritten; owned */
	sw_program *original;
	sw_rewrites rewrites;      /* what made one of the other */
	sw_padded_list padded;     /* the sizes that padding changed */
	const sw_cluster *cluster; /* borrowed */
	/* borrowed while the plan is being made, so that all that is tried shares them; else NULL
	 */
	sw_path_store *paths;
	const char *program_path;
	uint64_t program_hash;     /* of the canonical program before rewrites */
	sw_plan_strategy strategy; /* as asked */
	char chosen[SW_NAME_ROOM]; /* which contender won: "dp", "search x=2 y=2", ... */
	int32_t n_axes;
	sw_axis axes[SW_MAX_AXES];

	/* The decisions. Layouts are numbers into `layouts`. */
	sw_layouts layouts;
	const sw_rule **rules;   /* per op */
	sw_strategy *strategies; /* per op */
	/* per value: how its op leaves it (of regions, and of parameters in them: as the planner
	 * decided) */
	uint32_t *produced;
	/* per value: its hub; == produced where nothing is redistributed for all */
	uint32_t *kept;
	uint32_t *outputs; /* per entry result: the layout at rest */
	/* ascending, by value and op: these move the value for themselves and the next; what one
	 * moved serves all others behind it */
	sw_reads anew;
	uint32_t n_outputs;
	/* of all-reduces that the schedule is to begin as one; 0: as is quickest */
	int64_t merge_bytes;
	/* per device, within which it was planned and is scheduled; 0: the cluster file's */
	int64_t memory_bytes;

	/* What it costs. */
	/* step: with overlap, if the planner could play it; else compute + communication */
	sw_program_cost predicted;
	/* by the model that the solver worked on: this plan, and the best that was found, which may
	 * not be the quickest as scheduled */
	double model_s, model_best_s;
	/* what no plan in the scope is below by the model; 1 - model_bound_s / model_best_s */
	double model_bound_s, gap;
	/* below the step of every plan in the scope, however communication hides, where collectives
	 * begin one by one; 1 - lower_bound_s / the plan's step */
	double lower_bound_s, step_gap;
	char scope[512]; /* what the bound is relative to */
	double planning_s;
	SW_VEC(sw_alternative) alternatives;
	SW_VEC(const char *) warnings; /* ops without a rule, ... */
	/* what is another than when its file was written; NULL: nothing */
	struct sw_plan_changes *changes;
} sw_plan;

/* What a serial run computes: inputs and results have their true shapes. */
static inline const sw_program *sw_plan_serial(const sw_plan *plan)
{
	return plan->original ? plan->original : plan->program;
}
/* The layout in which a value is produced, or kept for its readers. */
static inline const sw_layout *sw_plan_layout(const sw_plan *plan, uint32_t number)
{
	return &plan->layouts.items.data[number];
}

/* Costs the program that a plan leads to: `partition` provides it, which stands below this folder.
 */
typedef sw_status sw_plan_measure_fn(const sw_plan *plan, sw_program_cost *cost, sw_error *err);
/* Seconds of a step of that program as `run` runs it, collectives beside kernels: `simulate`
 * provides it. */
typedef sw_status sw_plan_play_fn(const sw_plan *plan, const sw_program_cost *measured,
                                  double *step_time_s, sw_error *err);

typedef struct sw_plan_options {
	sw_plan_strategy strategy;
	int64_t memory_bytes; /* per device; 0: the cluster file's */
	/* of the memory: what the search leaves to the schedule, to begin collectives ahead; the
	 * planner's own choice */
	int64_t spare_bytes;
	/* 0: none. Of the whole search; what it cut short is a warning of the plan */
	double time_limit_s;
	bool untied; /* repeated layers of a large program may differ */
	/* what solves the problems; none but `exact` is for use: they are there to be compared */
	sw_method method;
	uint64_t seed; /* of methods that draw by chance */
	/* a rematerialisation policy, "none"; NULL: whichever is fastest */
	const char *remat;
	int32_t microbatches; /* 1: the batch is one; 0: whichever number is fastest */
	bool quiet;
	int threads;         /* 0: all processors. The plan is the same for any number */
	const sw_pins *pins; /* NULL: none. What can't be pinned so is SW_ERR_INPUT */
	sw_plan_measure_fn *measure;
	sw_plan_play_fn *play; /* NULL: collectives are waited for where they stand */
	/* NULL; or gets, where nothing fits in memory, the plan that needs least */
	struct sw_plan **least;
} sw_plan_options;

/* `program` is as read; the plan makes its own canonical copy. `sidecar` gives roles. SW_NO when
 * nothing fits in memory (the message says by how much, and where). */
sw_status sw_plan_make(const sw_program *program, const char *program_path,
                       const sw_sidecar *sidecar, const sw_cluster *cluster,
                       const sw_plan_options *options, sw_plan **plan, sw_error *err);
/* Everything replicated: what a single device runs. */
sw_status sw_plan_replicated(const sw_program *program, const sw_cluster *cluster, sw_plan **plan,
                             sw_error *err);
/* Any plan that is allowed, by chance: every op a strategy that its rule has, every input, result
 * and carried value a layout that it may have. What it costs is not looked at, nor written into the
 * plan. The same seed gives the same plan. */
sw_status sw_plan_random(const sw_program *program, const char *program_path,
                         const sw_cluster *cluster, uint64_t seed, sw_plan **plan, sw_error *err);
void sw_plan_free(sw_plan *plan);
/* Every decision is consistent: strategies possible, layouts valid, inputs and outputs no partial
 * sums, aliased ones equal. */
sw_status sw_plan_verify(const sw_plan *plan, sw_error *err);

/* Is that one of `anew`? O(log of their number). */
bool sw_plan_reads_anew(const sw_plan *plan, sw_id value, sw_id op);
/* Every reader moves anew where that frees memory between it and the one before. */
void sw_plan_share_nothing(sw_plan *plan);
void sw_reads_sort(sw_reads *reads); /* ascending, each once */
void sw_reads_copy(sw_reads *to, const sw_reads *from);

/* Layouts that the operands and results of an op have under the plan (regions' included). */
bool sw_plan_op_layouts(const sw_plan *plan, sw_id op, sw_layout *operands, sw_layout *results);
/* Layout numbers in which the k-th computation that a region calls gives its results; what decides
 * the way is whole. */
const uint32_t *sw_plan_called_results(const sw_plan *plan, const sw_op *region, uint32_t k);
/* How the planner and the partitioner price redistribution; the cluster must outlive the result. */
sw_redistribution sw_plan_redistribution(const sw_cluster *cluster);
/* The paths that both take under these axes: the atoms of an axis that lie on one level of the
 * cluster move together. */
sw_path_cache *sw_plan_paths(const sw_cluster *cluster, const sw_axis *axes, int32_t n_axes);
/* Such caches, kept for all who ask: the cluster must outlive the store, which keeps what it gives.
 */
sw_path_store *sw_path_store_new(const sw_cluster *cluster);
void sw_path_store_free(sw_path_store *store);
sw_path_cache *sw_path_store_get(sw_path_store *store, const sw_axis *axes, int32_t n_axes);

/* ---- plan file (docs/plan-file.md) ------------------------------------------------------ */

sw_status sw_plan_write(const sw_plan *plan, const char *path, sw_error *err);
/* Reads the plan and the program it names (relative to the working directory, else to the plan's
 * folder); the cluster is in the plan file. *cluster and *plan become the caller's. Where the
 * program is another than the plan was made for, its decisions are carried over to the ops that
 * correspond (carry.c), and `changes` says what became of them: the figures are those of the file
 * until sw_plan_measure_again. Refused, with one line that says why, where too little corresponds.
 */
sw_status sw_plan_read(const char *path, sw_cluster *cluster, sw_plan **plan, sw_error *err);
/* Where the program lies that a plan file names: there, else beside the plan. */
const char *sw_plan_find_program(const char *plan_path, const char *program_path, sw_arena *arena);

typedef struct sw_plan_changes {
	bool program, cluster;
	/* ops: of the program as it is; with other shapes or attributes; that the plan does not
	 * have; that the program does not have any more */
	int32_t n_ops, changed, added, gone;
	const char *first; /* op of these; NULL: none */
	/* decisions that don't fit any more: made anew like their neighbours', or whole */
	int32_t replaced;
	const char *first_replaced;
	const char *cluster_name;    /* for which it was made */
	const char *cluster_differs; /* in what the other one is another: a list in words */
	sw_program_cost was;         /* predicted then */
} sw_plan_changes;
/* The same plan for another cluster, whose devices are divided by the same atoms: else refused. The
 * cluster is borrowed. Figures: as above. */
sw_status sw_plan_move(sw_plan *plan, const sw_cluster *cluster, sw_error *err);
/* What a plan that has changed costs now, without overlap if nothing plays it. Bounds and
 * alternatives are of what it was made for, and are dropped. */
sw_status sw_plan_measure_again(sw_plan *plan, sw_plan_measure_fn *measure, sw_plan_play_fn *play,
                                sw_error *err);
/* One line: what changed, and the predicted step before and after. */
void sw_plan_changes_print(const sw_plan *plan, sw_text *text);

/* ---- explain ---------------------------------------------------------------------------- */

/* Where the ops of a partitioned program come from: those from `first` on, up to the next origin's,
 * were written for `op` (SW_NO_ID: for the results of a computation): they are its local op, or,
 * unless `value` is SW_NO_ID, move that value from one of `layouts` to another. */
typedef struct sw_origin {
	sw_id first, op, value;
	uint32_t from, to;
} sw_origin;
typedef struct sw_origins {
	SW_VEC(sw_origin) items; /* ascending */
	sw_layouts layouts;      /* the plan's first, by the same numbers */
} sw_origins;
void sw_origins_clear(sw_origins *origins);
const sw_origin *sw_origin_of(const sw_origins *origins, sw_id local_op);

/* What is explained. `local` and `origins` are what `partition` made of the plan; the sidecar names
 * the inputs. */
typedef struct sw_explained {
	const sw_plan *plan;
	const sw_program *local;
	const sw_origins *origins;
	const sw_sidecar *sidecar;
} sw_explained;
/* All that there is to say about a plan, as data (docs/plan-file.md, "What explain says"): blocks
 * of the model with the layouts in words, collectives by what they cost and what it would cost to
 * avoid them, memory at its peak, what else was considered, the gap. */
json_t *sw_plan_explain(const sw_explained *what);
/* The same for people. Tables end after a dozen lines unless they are to be whole. */
void sw_plan_explain_print(const json_t *explained, bool whole_tables, sw_text *text);
/* What two explanations say differently: "same", or lists of what one has and the other has not. */
json_t *sw_plan_diff(const json_t *explained, const json_t *other);
void sw_plan_diff_print(const json_t *diff, bool whole_tables, sw_text *text);

json_t *sw_plan_summary(const sw_plan *plan); /* the keys of design.md section 6 */

#endif
