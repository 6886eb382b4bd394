/*
 * plan: choose how the program runs on the cluster.
 *
 * Takes a canonical program (rewrite), a cluster and options, gives a PLAN: for every op a
 * strategy, for every value the layout in which it is produced and the one in which it is kept for
 * its consumers (its MATERIALISED), for every entry input and result the layout at rest; and what
 * it will cost, with a lower bound.
 *
 * How. (1) Rules of all ops. (2) CLASSES: splits (dimension, top) of all values that the rules
 * carry into each other form equivalence classes (flooding, Rhino 4.3.3): the batch is one, the
 * heads of a layer another. (3) Atoms are grouped in AXES of adjacent atoms (two are searched
 * freely, three where atoms and ops are few); each grouping is a leaf of the search. (4) A site's
 * CANDIDATES give each axis to one class that the op has, to a linearity of partial sums, or to
 * none. (5) The pairwise problem: a node per SITE (an op; an entry input or result; a BOUNDARY,
 * where values go into a loop or conditional or come out of it) and a materialised per value with
 * several readers; node cost: what the local op costs; edge cost: redistribution seconds; spans:
 * local bytes over live moments. (6) solve. (7) The cheapest assignment of all leaves and of the
 * fixed strategies, measured on the partitioned program and played as it is scheduled, is the plan.
 * Fixed strategies are constraints on the same problem. All this for the program as it is, and
 * rewritten: padded where dimensions do not divide, and where memory is short with activations
 * computed again and in microbatches.
 */
#ifndef SW_PLAN_H
#define SW_PLAN_H

#include "cost/cost.h"
#include "frontend/frontend.h"
#include "rewrite/rewrite.h"

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
#define SW_TOP_GRIDS 5 /* that are planned unless it is said how many */
/* What may be written is listed in docs/commands.md; the message of a failure lists it, too. What
 * is printed parses back. */
sw_status sw_plan_strategy_parse(const char *text, sw_plan_strategy *strategy, sw_error *err);
void sw_plan_strategy_print(const sw_plan_strategy *strategy, sw_text *text);

/* Atoms that move together: a run of adjacent atoms. */
#define SW_MAX_AXES 4
typedef struct sw_axis {
	uint32_t atoms;
	int64_t size;
	char name[8]; /* "x", "y", "z", "w", or as a strategy calls it */
} sw_axis;

/* Why no plan of a mesh, or of a program variant, was carried to the end. */
typedef enum sw_untried {
	SW_UNTRIED_NOT,      /* it was */
	SW_UNTRIED_SLOWER,   /* its bound exceeds the incumbent */
	SW_UNTRIED_DEFERRED, /* a quicker one does not fit in memory, so this one was left for later
	                      */
	SW_UNTRIED_BEHIND,   /* its mesh was far behind in another variant of the program */
	SW_UNTRIED_TOO_LARGE, /* no plan of the program fits in memory */
	SW_UNTRIED_TIME,      /* the time limit came first */
	SW_UNTRIED_COUNT
} sw_untried;
/* "slower", "deferred", ...; "" for SW_UNTRIED_NOT. */
const char *sw_untried_word(sw_untried untried);
/* The reverse; SW_UNTRIED_NOT for NULL and for words that are none. */
sw_untried sw_untried_of(const char *word);

/* One line of "what else was considered". */
#define SW_NAME_BYTES 96
typedef struct sw_alternative {
	char name[SW_NAME_BYTES];
	bool feasible;
	double bound_s; /* > 0: was given up, since it can't be faster than this */
	sw_untried untried;
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
	uint64_t program_hash;      /* of the canonical program before rewrites */
	sw_plan_strategy strategy;  /* as asked */
	char chosen[SW_NAME_BYTES]; /* which contender won: "dp", "search x=2 y=2", ... */
	int32_t n_axes;
	sw_axis axes[SW_MAX_AXES];

	/* The decisions. Layouts are numbers into `layouts`. */
	sw_layouts layouts;
	const sw_rule **rules;   /* per op */
	sw_strategy *strategies; /* per op */
	/* per value: how its op leaves it (of regions, and of parameters in them: as the planner
	 * decided) */
	uint32_t *produced;
	/* per value: its materialised; == produced where nothing is redistributed for all */
	uint32_t *materialised;
	uint32_t *outputs; /* per entry result: the layout at rest */
	/* ascending, by value and op: these move the value for themselves and the next; what one
	 * moved serves all others behind it */
	sw_reads regathered;
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

void sw_plan_free(sw_plan *plan);
/* Every decision is consistent: strategies possible, layouts valid, inputs and outputs no partial
 * sums, aliased ones equal. */
sw_status sw_plan_verify(const sw_plan *plan, sw_error *err);

/* Is that one of `regathered`? O(log of their number). */
bool sw_plan_regathers(const sw_plan *plan, sw_id value, sw_id op);
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
/* Everything replicated: what a single device runs. */
sw_status sw_plan_replicated(const sw_program *program, const sw_cluster *cluster, sw_plan **plan,
                             sw_error *err);

/* ---- plan file (docs/plan-file.md) ------------------------------------------------------ */

sw_status sw_plan_write(const sw_plan *plan, const char *path, sw_error *err);
/* Reads the plan and the program it names (relative to the working directory, else to the plan's
 * folder); the cluster is in the plan file. *cluster and *plan become the caller's. Where the
 * program is another than the plan was made for, its decisions are carried over to the ops that
 * correspond (carry.c), and `changes` says what became of them: the figures are those of the file
 * until sw_simulate_recost. Refused, with one line that says why, where too little corresponds.
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
/* One line: what changed, and the predicted step before and after. */
void sw_plan_changes_print(const sw_plan *plan, sw_text *text);

json_t *sw_plan_summary(const sw_plan *plan); /* the keys of design.md section 6 */

/* ---- plan_rewrites.c: what was done to a program before its layouts are chosen --------------- */

/* By which the seconds of what is computed again are estimated. */
sw_remat_device sw_plan_remat_device(const sw_cluster *cluster, const sw_program *program);
/* To a plan's name: ", padded 1/16, remat blocks, 4 microbatches". */
void sw_rewrites_add_words(const sw_rewrites *rewrites, sw_text *text);
sw_rewrites sw_rewrites_copy(const sw_rewrites *rewrites, sw_arena *arena);
/* Of the plan file; NULL: there are none. What is read lies in the arena. */
json_t *sw_rewrites_json(const sw_rewrites *rewrites);
sw_status sw_rewrites_read(const json_t *list, sw_arena *arena, sw_rewrites *rewrites,
                           sw_error *err);

/* ---- plan.c --------------------------------------------------------------------------- */

/* Everything whole; takes the program. */
sw_plan *sw_plan_new(sw_program *canonical, const char *program_path, const sw_cluster *cluster);
/* Decisions of its own about a plan's program, which it borrows with all else: to be tried beside
 * others. */
sw_plan *sw_plan_sketch(const sw_plan *plan);
void sw_plan_sketch_free(sw_plan *sketch);

/* ---- snapshot.c: the decisions of a plan, saved apart from it ---------------------------- */

/* Strategies by number: those of a plan's ops differ little. */
typedef struct sw_strategy_set {
	sw_map index;
	SW_VEC(sw_strategy) items;
} sw_strategy_set;
void sw_strategy_set_clear(sw_strategy_set *set);

typedef struct sw_snapshot {
	uint32_t *strategies; /* per op: a number of the set; NULL: nothing is saved */
	uint32_t *produced, *materialised, *outputs;
	sw_reads regathered;
	sw_layouts layouts;
	int32_t n_axes;
	sw_axis axes[SW_MAX_AXES];
} sw_snapshot;
/* Replaces what the snapshot had; its strategies are added to the set. O(ops + values). */
void sw_snapshot_take(sw_snapshot *snapshot, const sw_plan *plan, sw_strategy_set *set);
/* Writes the decisions into a plan of the same program. O(ops + values). */
void sw_snapshot_restore(const sw_snapshot *snapshot, const sw_strategy_set *set, sw_plan *plan);
void sw_snapshot_clear(sw_snapshot *snapshot);

#endif
