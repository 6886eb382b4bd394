/*
 * plan: the plan as an object, its file, and the fixed strategies by name.
 *
 * A PLAN says how a canonical program (rewrite) runs on a cluster. It holds a strategy for every
 * op; for every value the layout in which it is produced and its MATERIALISED layout, in which it
 * is held for its readers; and for every entry input and result the layout at rest. It also holds
 * the predicted cost and a lower bound.
 *
 * How a plan is found (model/ and search/). (1) The rules of all ops are made. (2) Splits
 * (dimension, top) of all values that the rules carry into each other form equivalence CLASSES
 * (flooding, Rhino 4.3.3): the batch is one class, the heads of a layer another. (3) The atoms are
 * grouped into AXES of adjacent atoms (two axes are searched freely, three where their candidates
 * are few); each grouping is a mesh. (4) The CANDIDATES of a decision give each axis to one class
 * that the op has, to a linearity of partial sums, or to nothing. (5) The pairwise
 * problem has a node per DECISION (an op, an entry input or result, or a BOUNDARY, where values
 * enter or leave a loop or conditional) and a node for the materialised layout of each value with
 * several readers. A node costs the seconds of the local op, an edge the seconds of redistribution;
 * usage is local bytes over live program points. (6) The solver solves it. (7) The cheapest
 * assignments of all meshes and of the fixed strategies are partitioned, measured and played as
 * they are scheduled; the quickest is the plan. Fixed strategies are constraints on the same
 * problem. All this is done for the program as it is and for rewritten variants: padded where
 * dimensions do not divide, and, where memory is short, with rematerialisation and in microbatches.
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
	SW_PLAN_ALL_REDUCE,
	SW_PLAN_ZERO1,
	SW_PLAN_ZERO2,
	SW_PLAN_ZERO3,
	SW_PLAN_MEGATRON,
	SW_PLAN_SUMMA,
	SW_PLAN_2_5D,
	SW_PLAN_AXONN,
	SW_PLAN_EXPERT,
	SW_PLAN_PS,
	SW_PLAN_PARALLAX,
	SW_PLAN_RANDOM,
	SW_PLAN_SYNC,
	SW_PLAN_WAYS,
	SW_PLAN_SERIAL
} sw_strategy_kind;
/* Which builder gives variables their owners (model/ways_*.c). */
typedef enum sw_owners_rule {
	SW_OWNERS_NONE,
	SW_OWNERS_FILE, /* those that a file of ways says (model/sync_file.c) */
	SW_OWNERS_ANY,
	SW_OWNERS_ONE,
	SW_OWNERS_BALANCED,
	SW_OWNERS_PARTITIONED,
	SW_OWNERS_PARALLAX,
	SW_OWNERS_RANDOM,
	SW_OWNERS_COUNT
} sw_owners_rule;
/* Into how many parts variables are divided along their first dimension: the least number from 2 on
 * that divides it, or the least that does not (AutoDist's partitioned all-reduce, and its uneven
 * partitioned parameter server). */
typedef enum sw_parts_rule { SW_PARTS_NONE, SW_PARTS_EVEN, SW_PARTS_UNEVEN } sw_parts_rule;
#define SW_STRATEGY_SIZES 4
#define SW_ZERO_STAGES 3
typedef struct sw_plan_strategy {
	sw_strategy_kind kind;
	/* The number of devices along each axis, in the order in which the sizes are written;
	 * size[0] == 0: the planner chooses. MEGATRON: tensor; SUMMA: rows, columns; 2_5D: rows,
	 * columns, depth; AXONN: x, y, z, data; EXPERT: experts. */
	int64_t size[SW_STRATEGY_SIZES];
	/* MEGATRON: activations between the blocks are split over the sequence */
	bool sequence;
	/* MEGATRON: what data parallelism splits at rest besides, as `zero1` to `zero3`; 0: nothing
	 */
	int64_t zero;
	/* HOROVOD: bytes of gradients, ALL_REDUCE: variables, that one all-reduce takes */
	sw_merge merge;
	/* PS, PARALLAX, RANDOM, SYNC, WAYS: who owns the variables; AUTO: ANY, plans with owners are
	 * searched, too; else NONE */
	sw_owners_rule owners;
	sw_parts_rule parts; /* PS, ALL_REDUCE */
	bool proxy;          /* PS: every device keeps a copy of the parameters between steps */
	/* PS: that copy may be so many steps old, or SW_STALE_ANY (partition/served.h) */
	bool has_stale;
	int64_t stale;
	/* PS: it is served by its owner, also if it may not be stale; likewise */
	bool served;
	int64_t top;         /* AXONN without sizes: number of grids that are planned */
	/* AXONN without sizes: grids are ranked by the paper's rings and equation 10, else by the
	 * seconds of the cluster's collectives */
	bool paper;
	/* Slices of the devices, each with a stage of a pipeline that is planned so by itself; 0:
	 * no pipeline; SW_STAGES_AUTO: the fastest number. Plans of sw_plan_make have none. */
	int32_t stages;
} sw_plan_strategy;
/* Does the strategy let owners serve variables, by asking for it, or as values may be old? */
static inline bool sw_strategy_serves(const sw_plan_strategy *strategy)
{
	return strategy->served || strategy->stale != 0;
}
#define SW_STAGES_AUTO (-1)
#define SW_MAX_STAGES 65536
#define SW_TOP_GRIDS 5 /* number of grids planned unless `top` is given */
/* Parse the text of --strategy; docs/commands.md lists the accepted forms, and so does the message
 * of a failure. Printed text parses back. */
sw_status sw_plan_strategy_parse(const char *text, sw_plan_strategy *strategy, sw_error *err);
void sw_plan_strategy_print(const sw_plan_strategy *strategy, sw_text *text);

/* A mesh axis: a run of adjacent atoms that always have the same role. */
#define SW_MAX_AXES 4
typedef struct sw_axis {
	uint32_t atoms;
	int64_t size;
	char name[8]; /* "x", "y", "z", "w", or the strategy's own name for it */
	/* what it sends is mostly gradients and updated parameters, which frameworks send in large
	 * buckets (stages 1 and 2 of ZeRO) */
	bool coalesced;
} sw_axis;

/* Why no plan of a mesh, or of a program variant, was carried to the end. */
typedef enum sw_untried {
	SW_UNTRIED_NOT,      /* it was */
	SW_UNTRIED_SLOWER,   /* its bound exceeds the incumbent */
	SW_UNTRIED_MODEL,    /* its bound by the model does, which is no bound of a played step */
	SW_UNTRIED_DEFERRED, /* a quicker one does not fit in memory, so this one was left for later
	                      */
	SW_UNTRIED_BEHIND,   /* its mesh was far behind in another variant of the program */
	SW_UNTRIED_TOO_LARGE, /* no plan of the program fits in memory */
	SW_UNTRIED_TIME,      /* the time limit came first */
	SW_UNTRIED_WORK,      /* its problem is too large for the work that it may take */
	SW_UNTRIED_CUT, /* a plan was played, but so far behind that its order was searched no further */
	SW_UNTRIED_COUNT
} sw_untried;
/* "slower", "deferred", ...; "" for SW_UNTRIED_NOT. */
const char *sw_untried_word(sw_untried untried);
/* The reverse; SW_UNTRIED_NOT for NULL and for words that are none. */
sw_untried sw_untried_of(const char *word);

/* One row of the table of alternatives that `explain` prints. */
#define SW_NAME_BYTES 96
typedef struct sw_alternative {
	char name[SW_NAME_BYTES];
	bool feasible;
	double bound_s; /* > 0: it was pruned, since no plan of it is faster than this */
	sw_untried untried;
	/* step: with overlap if it was played, else compute + communication. Of a plan that was pruned or
	 * cut short it is the most that the strategy takes when it is planned alone. */
	double step_time_s, compute_s, communication_s;
	int64_t payload_bytes, peak_bytes;
} sw_alternative;
/* Does the strategy take no longer than the row's step, and maybe less, when it is planned alone? Else it
 * takes just that, or the row has no step. */
bool sw_alternative_is_at_most(const sw_alternative *row);

/* A table of layouts. Equal layouts have equal numbers; in a plan and in its planner, number 0 is
 * the whole tensor. */
typedef struct sw_layouts {
	sw_map index;
	SW_VEC(sw_layout) items;
} sw_layouts;
uint32_t sw_layouts_id(sw_layouts *layouts, const sw_layout *layout);
/* Return its number; SW_ABSENT: it is none of them. */
uint32_t sw_layouts_find(const sw_layouts *layouts, const sw_layout *layout);
void sw_layouts_copy(sw_layouts *to, const sw_layouts *from); /* keeps the numbers */
/* Replace the contents by these layouts, numbered from 0; they must differ from each other. */
void sw_layouts_set(sw_layouts *layouts, const sw_layout *items, size_t n);
void sw_layouts_clear(sw_layouts *layouts);

/* One use of a value: op `op` reads `value`. */
typedef struct sw_read {
	sw_id value, op;
} sw_read;
typedef SW_VEC(sw_read) sw_reads;

typedef struct sw_path_store sw_path_store;
typedef struct sw_plan {
	sw_arena arena;
	sw_program *program; /* canonical, rewritten if `original` is set; owned */
	/* the canonical program before rewrites; NULL if nothing is rewritten; owned */
	sw_program *original;
	/* The canonical program as it was read, where `forms` gives its variables other forms; else
	 * NULL. Owned; `original` and `program` are of what comes of that. */
	sw_program *undivided;
	sw_variable_forms forms;   /* in the arena */
	sw_rewrites rewrites;      /* the rewrites that turned `original` into `program` */
	sw_ints shares; /* microbatches that each part takes (shares.c); none: all are of all devices */
	/* The last microbatch is computed after the loop over the others, so that what all of them
	 * sum up is sent beside its backward pass. */
	bool last_apart;
	sw_padded_list padded;     /* sizes changed by padding */
	const sw_cluster *cluster; /* borrowed */
	/* Borrowed while the planner runs, so that all attempts share its paths; else NULL. */
	sw_path_store *paths;
	const char *program_path;
	uint64_t program_hash;      /* of the canonical program before rewrites, in these forms */
	sw_plan_strategy strategy;  /* as requested */
	char chosen[SW_NAME_BYTES]; /* the candidate plan that was taken: "dp", "search x=2 y=2",
	                               ... */
	int32_t n_axes;
	sw_axis axes[SW_MAX_AXES];

	/* The decisions. Layouts are numbers into `layouts`. */
	sw_layouts layouts;
	const sw_rule **rules;   /* per op */
	sw_strategy *strategies; /* per op */
	/* per value: the layout in which its op leaves it; for results of regions, and for
	 * parameters inside regions, the layout that the planner chose */
	uint32_t *produced;
	/* per value: its materialised layout; == produced where no redistribution is shared by the
	 * readers */
	uint32_t *materialised;
	uint32_t *outputs; /* per entry result: its layout at rest */
	/* Ascending by value, then op. These readers re-gather the value from its materialised
	 * layout; the copy then serves all later readers that need the same layout. */
	sw_reads regathered;
	uint32_t n_outputs;
	sw_merge merge; /* how many all-reduces the schedule begins as one; borrows from the arena */
	/* per value: how the collectives that are written of it are done; NULL: nothing is said */
	sw_sending *sending;
	/* memory per device for which the plan was made and is scheduled; 0: the cluster file's */
	int64_t memory_bytes;
	/* Borrowed while the planner runs, for the schedules that it plays; else NULL: the default
	 * ones. */
	const struct sw_schedule_limits *schedule_limits;
	/* Borrowed while the planner runs: by name, in which sw_pass_order an op of the program runs; NULL:
	 * all run in one (passes.c). */
	const sw_map *passes;
	/* While the planner runs: how slow a schedule need not be made quicker any more (schedule.h);
	 * 0: none. */
	double beaten_s;
	/* Likewise, how slow one need not be made quicker by merging collectives; 0: none. */
	double unmerged_s;

	/* The predicted cost. */
	/* step: with overlap, if the planner could play it; else compute + communication */
	sw_program_cost predicted;
	/* Seconds by the solver's cost model: of this plan, of the best assignment found, which
	 * need not be the quickest once scheduled, and the solver's bound on that one's mesh. */
	double model_s, model_best_s, model_bound_s;
	/* The certificate: no step of a plan in the scope is shorter than lower_bound_s (0: not
	 * known), as it is simulated; gap = 1 - lower_bound_s / the plan's step. */
	double lower_bound_s, gap;
	/* variables may be stale: seconds from one step to the next in the long run, over which
	 * `predicted`, the synchronous step, is longer; 0: they may not, or it is not known */
	double stale_step_s;
	char scope[256];    /* the plans for which the bound holds */
	char searched[512]; /* the plans that were searched */
	double planning_s;
	SW_VEC(sw_alternative) alternatives;
	SW_VEC(const char *) warnings; /* ops without a rule, ... */
	/* differences from the program and cluster in its file; NULL if none */
	struct sw_plan_changes *changes;
} sw_plan;

/* Return the program that a serial run executes: its inputs and results have their unpadded
 * shapes. */
static inline const sw_program *sw_plan_serial(const sw_plan *plan)
{
	return plan->original ? plan->original : plan->program;
}
/* Return the layout with this number (see produced, materialised and outputs). */
static inline const sw_layout *sw_plan_layout(const sw_plan *plan, uint32_t number)
{
	return &plan->layouts.items.data[number];
}

/* ---- shares.c --------------------------------------------------------------------------- */

/* A plan may give the parts of the cluster along its outermost atoms, n of them, unequal shares of
 * the batch: plan->shares says how many of the microbatches part p takes. */
/* Return those atoms; 0: there are no shares. */
uint32_t sw_plan_share_atoms(const sw_plan *plan);
/* Is the op a loop over microbatches whose iterations are shared, or whose last one is apart? */
bool sw_plan_changes_loop(const sw_plan *plan, sw_id op);
/* Return the iterations of such a loop on a device, the last one included: *first to *end - 1. */
void sw_plan_iterations(const sw_plan *plan, int64_t device, int64_t *first, int64_t *end);
/* Return under which monoid the k-th value that a loop carries adds up what its iterations give (a
 * sum, where it is filled iteration by iteration); NONE: it does not change; PRODUCT: it is no
 * sum. */
sw_monoid sw_loop_sum(const sw_program *program, const sw_op *loop, uint32_t k);
/* Make of a plan of one part a plan of the whole cluster, of as many parts as there are shares. The
 * plan has all of the batch in as many microbatches as the shares add up to. Its cost is not
 * renewed. SW_ERR_INPUT: a loop carries what is no sum, or variables have forms. */
sw_status sw_plan_share(sw_plan *plan, const sw_cluster *whole, sw_ints shares, sw_error *err);
/* Check that the shares fit the plan. */
sw_status sw_plan_check_shares(const sw_plan *plan, sw_error *err);
/* Add "shares 5:3". */
void sw_shares_print(const sw_plan *plan, sw_text *text);
/* The section "shares" of the plan file: NULL if there are none. What is read lies in the arena. */
json_t *sw_shares_json(const sw_plan *plan);
sw_status sw_shares_read(const json_t *list, sw_arena *arena, sw_ints *shares, sw_error *err);

/* ---- sending.c -------------------------------------------------------------------------- */

/* Return the number of the merge group of that name, which is added if the plan has none; `bytes`
 * as in sw_merge_group. */
uint32_t sw_merge_group_number(sw_plan *plan, const char *name, int64_t bytes);
/* Say how the gradient of a variable of the plan's program is summed, and its update sent. Its order is
 * SW_MAX_ORDER at most. O(ops). */
#define SW_MAX_ORDER 1000000
void sw_sending_say(sw_plan *plan, const sw_variable_map *map, uint32_t variable, sw_sending sending);
/* Return what is said of a variable. O(ops). */
sw_sending sw_sending_of(const sw_plan *plan, const sw_variable_map *map, uint32_t variable);

/* ---- variable_forms.c ------------------------------------------------------------------- */

/* Write the sidecar of sw_plan_serial(plan) where plan->undivided is set; `read` is that of the
 * program as it was read. The caller clears it. */
sw_status sw_plan_sidecar(const sw_plan *plan, const sw_sidecar *read, sw_sidecar *sidecar,
                          sw_error *err);
/* The same of any plan, by the path of the program: as sw_sidecar_find. */
sw_status sw_plan_find_sidecar(const sw_plan *plan, const char *path, sw_sidecar *sidecar,
                               sw_error *err);
/* Is a gradient coded? */
bool sw_forms_code(const sw_variable_forms *forms);
/* Are variables served by their owners, so that devices may have old values of them? */
bool sw_forms_served(const sw_variable_forms *forms);
/* Are they, and may values of some of them be older than in a synchronous step? */
bool sw_forms_stale(const sw_variable_forms *forms);
/* Is less sent of a gradient than it has? */
bool sw_forms_lack(const sw_variable_forms *forms);
sw_variable_forms sw_forms_copy(const sw_variable_forms *forms, sw_arena *arena);
/* The section "variables" of the plan file: NULL if there are none. What is read lies in the
 * arena. */
json_t *sw_forms_json(const sw_variable_forms *forms);
sw_status sw_forms_read(const json_t *json, sw_arena *arena, sw_variable_forms *forms,
                        sw_error *err);

void sw_plan_free(sw_plan *plan);
/* Check that the decisions are consistent: strategies are possible, layouts are valid, entry inputs
 * and outputs are no partial sums, aliased ones have equal layouts, and owners have nothing but
 * state and values of the entry. */
sw_status sw_plan_verify(const sw_plan *plan, sw_error *err);

/* Is this use one of `regathered`? O(log of their number). */
bool sw_plan_regathers(const sw_plan *plan, sw_id value, sw_id op);
void sw_reads_sort(sw_reads *reads); /* ascending, without duplicates */
void sw_reads_copy(sw_reads *to, const sw_reads *from);

/* May owners do the op? It is one of the entry with operands, which say who they are, without
 * tokens, and no region. */
bool sw_plan_op_may_be_owned(const sw_program *program, sw_id op);
/* Compute the layouts of the operands and results of an op under the plan, regions included. False
 * if the strategy is impossible. */
bool sw_plan_op_layouts(const sw_plan *plan, sw_id op, sw_layout *operands, sw_layout *results);
/* Return the layout numbers in which the k-th computation called by a region gives its results. The
 * condition of a loop gives the whole tensor. */
const uint32_t *sw_plan_called_results(const sw_plan *plan, const sw_op *region, uint32_t k);
/* How the planner and the partitioner price redistribution; the cluster must outlive the result. */
sw_redistribution sw_plan_redistribution(const sw_cluster *cluster);
/* A new cache of the redistribution paths that the planner and the partitioner take under these
 * axes: the atoms of an axis that lie on one level of the cluster move together. */
sw_path_cache *sw_plan_paths(const sw_cluster *cluster, const sw_axis *axes, int32_t n_axes);
/* A store of path caches, one per grouping of the atoms; safe to share between threads. The cluster
 * must outlive the store. The store owns the caches that it returns. */
sw_path_store *sw_path_store_new(const sw_cluster *cluster);
void sw_path_store_free(sw_path_store *store);
sw_path_cache *sw_path_store_get(sw_path_store *store, const sw_axis *axes, int32_t n_axes);
/* Return the number of the layout in which a value is kept for a program that reads it later: that
 * in which it is produced; of a partial sum, that to which it is moved at once, or, if that is one too,
 * without it. */
uint32_t sw_plan_at_rest(sw_plan *plan, sw_id value);
/* Make a plan in which everything is replicated: each device runs the whole program. */
sw_status sw_plan_replicated(const sw_program *program, const sw_cluster *cluster, sw_plan **plan,
                             sw_error *err);

/* Make a plan of a program that is a part of the one of `whole`, whose ops it has by name: they do
 * as they do there; ops that are new, or can't, follow their largest operand. inputs, outputs: the
 * layouts at rest of the part's inputs and results; NULL entries: an input is whole, a result stays
 * as it is produced. Takes `part`, which is canonical, also if it fails. */
sw_status sw_plan_part(const sw_plan *whole, sw_program *part, const sw_layout *const *inputs,
                       const sw_layout *const *outputs, sw_plan **plan, sw_error *err);

/* ---- passes.c --------------------------------------------------------------------------- */

/* A program may run as several, pass by pass: a stage of a pipeline has a forward and a backward pass
 * of each microbatch, and others between them. */
typedef enum sw_pass_order {
	SW_NO_PASS, /* of the whole program: what begins or ends it */
	SW_EARLIER_PASS,
	SW_LATER_PASS
} sw_pass_order;
sw_pass_order sw_plan_pass(const sw_plan *plan, sw_id op);
/* Does a pass hand the value on to a later one, or does every pass begin with it? */
bool sw_plan_is_handed_on(const sw_plan *plan, sw_id value);
/* Let later passes convert what is handed on to them from the layout in which it rests
 * (sw_plan_at_rest): add these reads to plan->regathered. Nothing where all ops run in one pass.
 * O(ops + operands). */
void sw_plan_convert_between_passes(sw_plan *plan);

/* ---- plan file (docs/plan-file.md) ------------------------------------------------------ */

sw_status sw_plan_write(const sw_plan *plan, const char *path, sw_error *err);
/* Read the plan and the program it names (relative to the working directory, else to the plan's
 * folder); the cluster is in the plan file. *cluster and *plan become the caller's. Where the
 * program differs from the one that the plan was made for, decisions are carried over to the ops
 * that correspond (carry.c), and `changes` records it; the figures are those of the file until
 * sw_simulate_recost. Where too little corresponds the plan is refused with one line that says
 * why. */
sw_status sw_plan_read(const char *path, sw_cluster *cluster, sw_plan **plan, sw_error *err);
/* The same, of the contents of the file. */
sw_status sw_plan_parse(const char *text, size_t length, const char *path, sw_cluster *cluster,
                        sw_plan **plan, sw_error *err);
/* Return the path of the program that a plan file names: as named if that file exists, else beside
 * the plan. */
const char *sw_plan_find_program(const char *plan_path, const char *program_path, sw_arena *arena);

typedef struct sw_plan_changes {
	bool program, cluster, edited; /* edited: decisions or figures in the file */
	/* Numbers of ops: in the program as it is now; whose shapes or attributes changed; added
	 * since the plan was made; removed since then. */
	int32_t n_ops, changed, added, gone;
	/* name of the first op that changed, was added or removed; NULL if none */
	const char *first;
	/* decisions that no longer fit, replaced by those of a neighbour or by replication */
	int32_t replaced;
	const char *first_replaced;
	const char *cluster_name;    /* the cluster for which the plan was made */
	const char *cluster_differs; /* how the clusters differ: a list in words */
	sw_program_cost was;         /* the prediction in the plan file */
} sw_plan_changes;
/* Move the plan to another cluster, which is borrowed. Refused unless its devices are divided into
 * the same atoms. The figures stay as they are until sw_simulate_recost. */
sw_status sw_plan_move(sw_plan *plan, const sw_cluster *cluster, sw_error *err);
/* Print one line: the changes, and the predicted step before and after. */
void sw_plan_changes_print(const sw_plan *plan, sw_text *text);

/* Write the plan's gap, bound and scope in a sentence. */
void sw_plan_add_certificate(const sw_plan *plan, sw_text *text);
json_t *sw_plan_summary(const sw_plan *plan); /* "predicted" of docs/plan-file.md */

/* ---- plan_rewrites.c: rewrites of the program that precede planning ----------------- */

/* The rates by which the seconds of recomputation are estimated. */
sw_remat_device sw_plan_remat_device(const sw_cluster *cluster, const sw_program *program);
/* Append the rewrites to a plan's name: ", padded 1/16, remat blocks, 4 microbatches". */
void sw_rewrites_add_words(const sw_rewrites *rewrites, sw_text *text);
sw_rewrites sw_rewrites_copy(const sw_rewrites *rewrites, sw_arena *arena);
/* The section "rewrites" of the plan file: NULL if there are none. The rewrites that are read are
 * allocated in the arena. */
json_t *sw_rewrites_json(const sw_rewrites *rewrites);
sw_status sw_rewrites_read(const json_t *list, sw_arena *arena, sw_rewrites *rewrites,
                           sw_error *err);

/* ---- plan.c --------------------------------------------------------------------------- */

/* Make a plan in which every value is replicated. Takes ownership of the program. */
sw_plan *sw_plan_new(sw_program *canonical, const char *program_path, const sw_cluster *cluster);
/* A sketch is a plan with decisions of its own that borrows the program and everything else from
 * `plan`, so that a variant can be tried beside others. */
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
