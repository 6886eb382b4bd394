/*
 * model: program + cluster -> the solver's problem.
 *
 * This stage takes a canonical program with the roles of its inputs, a cluster, the user's pins and
 * a strategy. It gives, for each mesh of the strategy, a pairwise problem (solve/solve.h): a node
 * per decision, whose strategies are the layouts or op strategies that the mesh allows, with costs
 * for kernels and redistribution and spans for memory. A solution is written into a plan.
 *
 * In the order of the calls:
 *
 *   sw_pins_read          the pins file, once per request
 *   sw_analysis_init      roles, split classes and overlap windows of one program; no mesh yet
 *   sw_pins_resolve       find the decisions that are pinned
 *   sw_memo_init          the caches that the models of several meshes share
 *   sw_meshes_of          the meshes of a strategy; sw_pins_cut and sw_meshes_limit adapt them
 *   sw_model_begin        the decisions of one mesh and their strategy tables
 *   sw_model_finish       the edges, costs and spans: the problem is complete
 *   sw_warm_start_apply   begin where the solution of an earlier mesh ended
 *   sw_model_apply        write an assignment into a plan
 *   sw_pins_check         check that the plan holds to the pins
 *
 * sw_plan_random draws a valid plan without any model, for tests.
 */
#ifndef SW_MODEL_MODEL_H
#define SW_MODEL_MODEL_H

#include "model/limits.h"
#include "plan/fixed_strategy.h"
#include "solve/methods.h"

/* ---- pins.c, docs/pins.md: decisions of the user ---------------------------------------- */

typedef struct sw_pin {
	const char *pattern; /* glob, of names of tensors or ops */
	bool is_op;          /* the pattern names ops; else tensors */
	bool whole;          /* not split at all */
	bool outer;          /* count devices from the outermost atom; else from the innermost */
	int line;            /* of the file */
	/* dimensions that are split, in the order written, and among how many devices each */
	int32_t n;
	int32_t dims[SW_MAX_RANK];
	int64_t parts[SW_MAX_RANK];
	int64_t contract; /* of an op: devices that share its contraction; 1: not split */
} sw_pin;
/* What the annotations of a program say (annotations.c). */
typedef struct sw_annotations {
	/* numbers of annotations: pins; those that leave the layout open; those that have no form */
	uint32_t taken, open, lost;
	/* bit a: no axis has both atom a - 1 and atom a; an array is split over atom a */
	uint32_t cuts, pinned;
} sw_annotations;
typedef struct sw_pins {
	sw_arena arena;
	const char *file; /* borrowed; the program where there are annotations only */
	sw_annotations annotations;
	size_t n;
	sw_pin *list;
	/* Pins of what a program does not have decide nothing, and are no error: of a stage's program,
	 * which has a part of the tensors. */
	bool of_parts;
} sw_pins;
sw_status sw_pins_read(const char *path, sw_pins *pins, sw_error *err);
void sw_pins_clear(sw_pins *pins);
/* Take the annotations of a program that was read as pins, too; pins of a file count more. An
 * annotation that the cluster can't follow is SW_ERR_INPUT. */
sw_status sw_pins_annotate(sw_pins *pins, const sw_program *program, const sw_cluster *cluster,
                           sw_error *err);

/* ---- roles.c: roles of inputs, order and count of ops, live ranges, boundaries ---------- */

/* A BOUNDARY: one layout shared by values that cross into, around or out of a region (a loop or a
 * conditional). Its reads are converted into that layout; its values have it.
 *
 *   one value that a loop carries    reads:  the initial value, the body's result
 *                                    values: the parameter of the body, that of the condition, the
 *                                            loop's result
 *   a branch's parameter             reads:  the conditional's operand
 *                                    values: the parameter
 *   a conditional's result           reads:  the result of each branch
 *                                    values: the conditional's result
 *   a predicate (is_predicate)       reads:  the loop's condition, or the conditional's predicate
 * or index, which every device needs whole values: none */
typedef struct sw_boundary_read {
	sw_id value;
	double trips;  /* times per step */
	int32_t point; /* program point of the read */
} sw_boundary_read;
typedef struct sw_boundary {
	sw_id region; /* op */
	bool is_predicate;
	uint32_t n_reads, n_values;
	const sw_boundary_read *reads;
	const sw_id *values;
} sw_boundary;

/* A PROGRAM POINT is an op's position in the flattened program: the ops of a region stand before
 * the region's op. */
typedef struct sw_roles {
	sw_arena arena;
	const sw_program *program; /* borrowed */
	uint32_t n_inputs;
	const sw_id *inputs; /* value per entry input leaf */
	sw_role *input_role;
	bool *arrives; /* per input, as in the sidecar */
	int32_t *batch_dim;    /* per entry input, as sw_find_batch finds it; -1: none */
	/* as sw_find_batch returns it; where no input has the batch, that of `drawn` */
	int64_t batch;
	sw_id drawn;           /* the value that has the batch where no input has it; SW_NO_ID: none */
	int32_t drawn_dim;     /* the dimension in which it has it */
	int64_t most_elements; /* of an input that is no data */
	int32_t *output_input; /* per entry result: the input that it replaces; -1: none */
	/* per value: a trained parameter, maybe seen through converts, slices or transposes */
	bool *from_parameter;
	/* per op: executions per step; those of a branch are weighted (roles.c, number_branches) */
	double *trips;
	int32_t *point; /* per op */
	/* per value: one past the point of its last reader; a region reads its operands just before
	 * its first op */
	int32_t *last_use;
	/* per value: is it the body's result that a loop carries on in the buffer of the last
	 * iteration's? */
	bool *in_place;
	/* per value: the value outside a region that it equals and that stays live, so that both
	 * may be one buffer; SW_NO_ID: none */
	sw_id *alias_of;
	int32_t n_points;
	SW_VEC(sw_boundary) boundaries; /* by region */
	uint32_t *first_boundary;       /* [ops + 1], per region: into boundaries */
	bool *planned;                  /* per computation: the entry, and those its regions call */
	/* On a device that fuses (fused_shares.c), else NULL: per op, the share of its seconds
	 * alone that it takes as part of a kernel; per value, it has a buffer. */
	const double *kernel_share;
	const bool *stored;
} sw_roles;
/* The program must outlive the roles. O(ops). */
void sw_roles_init(sw_roles *roles, const sw_program *program, const sw_sidecar *sidecar);
void sw_roles_clear(sw_roles *roles);
bool sw_is_dot(const sw_op *op); /* a dot or a convolution */
/* Return the operand of a dot that is a parameter where the other is none; -1: it has none, or op
 * is no dot. */
int32_t sw_roles_weight(const sw_roles *roles, sw_id op);

/* ---- split_classes.c: splits that rules propagate into each other ----------------------- */

/* A SPLIT of a value (dim, top) or of an op (factor, top): all digits just below `top`. Splits that
 * some rule maps to each other are one CLASS. */
typedef struct sw_split {
	int32_t where; /* dim or factor */
	int32_t class;
	int64_t top;
} sw_split;
typedef struct sw_classes {
	sw_arena arena;
	int32_t n;
	uint8_t *roles;                         /* per class: bits of sw_class_role */
	const uint32_t *value_start, *op_start; /* [n + 1] into the lists */
	const sw_split *value_splits, *op_splits;
	const uint8_t *partial; /* per value: monoids (bit) in which it may be P */
} sw_classes;
void sw_classes_init(sw_classes *classes, const sw_roles *roles, const sw_rule *const *rules);
void sw_classes_clear(sw_classes *classes);

/* ---- overlap_window.c: communication that kernels may hide ------------------------------ */

typedef struct sw_overlap sw_overlap;
/* Of the planned computations. The roles must outlive it. */
sw_overlap *sw_overlap_new(const sw_roles *roles, const sw_cluster *cluster,
                           const sw_model_limits *limits);
void sw_overlap_free(sw_overlap *overlap);
/* The seconds of all kernels of a computation, per step. */
double sw_overlap_all_s(const sw_overlap *overlap, int32_t computation);
/* When what is sent between two ops may begin and must have ended, in seconds of the computation's
 * kernels, in the order that lets the one be as early and the other as late as possible. */
typedef struct sw_overlap_span {
	double begin_s, end_s, all_s; /* all_s: of all kernels of the computation */
} sw_overlap_span;
/* Of the op `from` and the op `to` of its computation. SW_NO_ID: until the computation ends. from ==
 * to: between the op and all its readers. O(1). */
sw_overlap_span sw_overlap_span_of(const sw_overlap *overlap, sw_id from, sw_id to);
/* Return the overlap window in seconds per step: the kernels that may run within that span. */
double sw_overlap_window_s(const sw_overlap *overlap, sw_id from, sw_id to);
/* Return the cost in seconds of one second of communication inside its overlap window. Where data
 * parallelism communicates for as long as its kernels take it is 1: one more second lengthens the
 * step by a second. Where it communicates for less it is smaller in proportion, for most of the
 * communication is hidden. It is a power of two. atoms: over which data is parallel. */
double sw_overlap_weight(const sw_roles *roles, const sw_cluster *cluster, uint32_t atoms,
                         const sw_model_limits *limits);

/* ---- step_prices.c: what seconds cost at each place of a step ---------------------------- */

#define SW_PRICE_SPANS 32
/* Of the spans of equal seconds into which the kernels of a computation are cut: by how many of the
 * plans that were played messages hold each up. */
typedef struct sw_prices {
	int32_t plays;
	double free_s; /* of the last: the kernels that nothing holds up, of some computation */
	double (*held)[SW_PRICE_SPANS]; /* per computation; owned */
} sw_prices;

/* ---- variables.c: how each variable is synchronised ---------------------------------------- */

/* The ways of a variable: each device keeps it, and gradients are all-reduced; a device owns it,
 * gets the sum of the gradients and gives out what is new; each device has an equal part, of all or
 * (MOMENTS) of the moments; or whatever of these the solver takes; or each device keeps it, and makes
 * the gradient of what all others have (GATHER). */
typedef enum sw_way_kind {
	SW_WAY_ALL_REDUCE,
	SW_WAY_OWNED,
	SW_WAY_SPLIT,
	SW_WAY_MOMENTS,
	SW_WAY_ANY,
	SW_WAY_GATHER,
	SW_WAY_COUNT
} sw_way_kind;
typedef struct sw_way {
	sw_way_kind kind;
	int64_t owner; /* OWNED, ANY: the device */
	bool open;     /* likewise: it is any device, and may be another once it is known what is owned */
	bool proxy;    /* OWNED: all devices keep the parameter, the owner its moments */
} sw_way;
typedef struct sw_variable {
	uint32_t input; /* the parameter's leaf */
	int64_t bytes;  /* of the parameter and its moments; 0: it needs no owner */
	bool trained;   /* else the step does not change it, so that it needs no owner */
	bool sparse;    /* its gradient is scattered rows */
	bool divides;   /* some dimension divides by the devices */
	bool part;      /* it is a part of a variable of the program as it was read */
	bool parameter; /* it has one; else it is state that no gradient changes by itself */
	int32_t goes_with; /* if it has none: the variable whose update alone reads it; -1: none */
	bool served;    /* its owner gets the terms of its gradient, and serves it */
	sw_way way;
	/* of a file of ways, the last entry that matches it; NULL: none does (sw_sync_apply) */
	const struct sw_sync_entry *asked;
} sw_variable;
/* Does each device make all of a gradient itself, of gathered operands of the op that makes it? */
typedef enum sw_gathering { SW_GATHERS_NOT, SW_GATHERS_MAYBE, SW_GATHERS_SURELY } sw_gathering;
typedef struct sw_variables {
	sw_arena *arena; /* the analysis's */
	uint32_t n;      /* 0: the strategy has no ways */
	sw_variable *list;
	const int32_t *of_input;   /* per input leaf: its variable; -1: of none */
	const int32_t *of_op;      /* per op of an update: likewise */
	const int32_t *of_scatter; /* per scatter that gives a variable's gradient: likewise */
	const int32_t *of_end;     /* per op that gives a gradient, or a term of it: likewise */
	uint8_t *gathers; /* per op: sw_gathering; NULL: of none */
	/* per op: it cuts the gradient of a part out of a gradient of which only parts are read, so
	 * that sums over devices are of the parts; NULL: there are no parts */
	const bool *cuts_part;
	/* per op: it decodes gradients, or adds them up; NULL: no gradient is coded */
	const bool *decodes;
	const bool *after_sum; /* likewise: it rounds their sum */
	/* per op, per value: each device computes it of the whole batch (whole_batch.c); NULL: no
	 * gradient is taken apart into terms */
	const bool *whole_ops, *whole_values;
} sw_variables;

const char *sw_way_word(sw_way_kind kind); /* as a file of ways has it: "ps" */

/* A file of ways, docs/sync.md (sync_file.c): how the user wants variables to be synchronised. */
typedef struct sw_sync_entry {
	const char *pattern; /* glob of names of parameters, or of parts */
	int line, of_owner;  /* lines: of the entry; of its first key that only `ps` has, 0: none */
	bool has_way;
	bool balanced; /* the owner is whoever has the fewest bytes; else way.owner */
	sw_way way;
	bool no_proxy; /* it says so */
	bool has_codec;
	sw_codec codec;
	bool has_stale, served;
	int64_t stale;   /* steps, or SW_STALE_ANY; 0 if nothing is said */
	int of_parts;   /* line of what it says of parts; 0: nothing */
	bool has_axis;
	int32_t axis;   /* along which it is divided */
	int64_t parts;  /* into so many, about equal; 0: into those of `sizes` */
	sw_ints sizes;
	/* its variables' all-reduces begin together, up to so many bytes; NULL: nothing is said.
	 * Where bytes are given the group is the entry's own, and its name says them */
	const char *group;
	int64_t group_bytes;
	int of_group; /* its line */
	uint32_t algorithm, order; /* as in sw_sending */
	int of_algorithm, of_order; /* lines: of each; 0: nothing is said */
} sw_sync_entry;
/* Does the entry let owners serve variables, by asking for it, or as values may be old? */
static inline bool sw_sync_serves(const sw_sync_entry *asked)
{
	return asked->served || asked->stale != 0;
}
typedef struct sw_sync {
	sw_arena arena;
	const char *file; /* borrowed */
	bool merges;      /* it says how many all-reduces are one; else the strategy does */
	sw_merge merge;
	size_t n;
	sw_sync_entry *list;
} sw_sync;
/* Return how many all-reduces are merged: as the file says (NULL: there is none), or the strategy. */
sw_merge sw_sync_merge(const sw_sync *sync, const sw_plan_strategy *strategy);

/* List the forms that a strategy, a codec for all, and a file of ways (NULL: none) want variables of
 * a canonical program to have, in the arena. What the file says counts more. Parts that a variable
 * can't have, and codecs on one device, are SW_ERR_INPUT (asked_forms.c). O(entries *
 * variables). */
typedef struct sw_forms_request {
	const sw_program *program;
	const sw_sidecar *sidecar;
	const sw_plan_strategy *strategy;
	const sw_sync *sync;
	sw_codec codec;
	int64_t devices;
} sw_forms_request;
sw_status sw_forms_asked(const sw_forms_request *request, sw_arena *arena,
                         sw_variable_forms *forms, sw_error *err);

sw_status sw_sync_read(const char *path, sw_sync *sync, sw_error *err);
/* The same, of the list that a file of another kind holds; the tree must outlive *sync, whose arena
 * is the caller's, and is initialised. */
sw_status sw_sync_of_yaml(const sw_yaml *list, sw_sync *sync, sw_error *err);
/* Print the entries, a line each behind `indent`; the text of a whole file reads back. */
void sw_sync_print(const sw_sync *sync, const char *indent, sw_text *text);
void sw_sync_clear(sw_sync *sync);

/* ---- analysis.c: everything that no mesh changes ---------------------------------------- */

typedef struct sw_option { /* of one axis at one decision */
	uint8_t kind;      /* sw_choice_kind */
	uint8_t monoid;
	int16_t index; /* PASS: linearity; SPLIT: factor of an op, dimension of a value */
	/* of a pin: the axis may do nothing or split one of these, by bits; 0: it does as above */
	uint32_t open;
	int64_t top; /* SPLIT; OWN: the owner's coordinate on the axis */
} sw_option;

/* A program, its cluster and its user's pins, analysed. It is const once sw_pins_resolve
 * returned. */
typedef struct sw_analysis {
	sw_arena arena;
	const sw_program *program; /* borrowed, as are the cluster and the rules */
	const sw_cluster *cluster;
	const sw_rule **rules;
	const sw_model_limits *limits;
	sw_roles roles;
	sw_classes classes;
	sw_overlap *overlap;   /* NULL: collectives block; nothing is hidden */
	/* of sw_overlap_weight over all atoms, in (0, 1]; 1 without overlap */
	double overlap_weight;
	/* borrowed: seconds cost what these say, in place of overlap_weight; NULL: they don't */
	const sw_prices *prices;
	sw_variables variables;
	sw_equivalence layers; /* ops at the same position of repeated layers */
	/* Of a program that runs pass by pass (plan/plan.h), else NULL: per op, it runs in a later
	 * pass; per value, a later pass may get it as it rests between passes. */
	const bool *is_later, *is_handed_on;
	/* per input leaf, per op: the pinned options, per atom; NULL: not pinned */
	const sw_option **pinned_inputs, **pinned_ops;
} sw_analysis;
typedef struct sw_analysis_options {
	bool no_overlap;
	const sw_model_limits *limits; /* NULL: sw_model_default_limits; outlives the analysis */
} sw_analysis_options;
/* The plan and its program must outlive the analysis. O(ops). */
void sw_analysis_init(sw_analysis *analysis, const sw_plan *plan, const sw_sidecar *sidecar,
                      sw_analysis_options options);
void sw_analysis_clear(sw_analysis *analysis);

/* Play what a plan of the analysed program sends against its kernels, and count which spans messages
 * hold up. cost: of the plan. Not without overlap. O(ops + SW_PRICE_SPANS^3 * computations). */
sw_status sw_prices_add(sw_prices *prices, const sw_analysis *analysis, const sw_plan *plan,
                        const sw_program_cost *cost, sw_error *err);
void sw_prices_clear(sw_prices *prices);
/* With the analysis's prices: return the cost in seconds of a second of messages between the op and a
 * reader, as sw_overlap_span_of takes them, and of a second of a kernel. */
double sw_message_price(const sw_analysis *analysis, sw_id from, sw_id to);
double sw_kernel_price(const sw_analysis *analysis, sw_id op);

/* Let the strategy's builder (ways_*.c) give each variable its way; deterministic. Reads `bytes`,
 * `sparse` and `divides` of the variables. */
void sw_ways_build(const sw_plan_strategy *strategy, sw_variable *variables, uint32_t n,
                   int64_t devices);

/* Find the variables, and let the builder of the plan's strategy give each its way; nothing where it
 * has neither ways nor parts. sw_analysis_init calls it. O(ops). */
void sw_variables_find(sw_analysis *analysis, const sw_plan *plan, const sw_sidecar *sidecar);

/* Give the variables the ways of a file (NULL: none). A pattern that matches none, and a way that a
 * variable can't have, are SW_ERR_INPUT. O(entries * variables). */
sw_status sw_sync_apply(const sw_sync *sync, sw_analysis *analysis, const sw_sidecar *sidecar,
                        sw_error *err);
/* Return the product or scatter that makes a gradient which an op gives, moved and rounded perhaps;
 * SW_NO_ID: none does. */
sw_id sw_gradient_maker(const sw_program *program, sw_id op);
/* Let the plan, of whose program the analysis is, send what is of variables as the file says: in merge
 * groups, by algorithms, in an order; after sw_sync_apply. */
void sw_sync_say_sending(const sw_analysis *a, const sw_sidecar *sidecar, sw_plan *plan);

/* Find the decisions of all pins (NULL: none) and store their options in the analysis. An
 * impossible pin is SW_ERR_INPUT. */
sw_status sw_pins_resolve(const sw_pins *pins, sw_analysis *analysis, const sw_sidecar *sidecar,
                          sw_error *err);

/* ---- op_price.c: the cost of one op ----------------------------------------------------- */

/* Cost one execution of the local op, with the collectives that it contains. `operands` are the
 * layouts that sw_rule_layouts gives. Return false if the local op can't be written. */
bool sw_price_local(const sw_analysis *analysis, sw_id op, const sw_strategy *strategy,
                    const sw_layout *operands, sw_program_cost *cost);

/* ---- memo.c: caches shared by the models of several meshes ------------------------------ */

typedef enum sw_decision_kind {
	SW_DECISION_OP,
	SW_DECISION_INPUT,
	SW_DECISION_BOUNDARY,
	SW_DECISION_OUTPUT
} sw_decision_kind;

typedef struct sw_candidate { /* a strategy of a decision: an option per axis */
	sw_option axis[SW_MAX_AXES];
} sw_candidate;
/* The STRATEGY TABLE of a decision under a mesh: its candidates with their layouts and costs.
 * Decisions with equal options share one. Layouts are numbers of sw_memo.layouts. */
typedef struct sw_strategy_table {
	int32_t n; /* candidates */
	uint32_t n_in, n_out;
	const sw_candidate *candidates; /* NULL: of a materialised layout */
	const uint32_t *in, *out;       /* layouts [candidate][operand], [candidate][result] */
	const double *seconds;          /* of one execution, per candidate; NULL: nothing */
	/* memory of the local op besides operands and results, per candidate; NULL: none */
	const int64_t *temporary_bytes;
} sw_strategy_table;

/* All entries are pure functions of the analysis: the order in which meshes are modelled changes
 * the numbers of entries and nothing else. Not thread-safe: models are built one by one. */
typedef struct sw_memo {
	sw_arena arena;
	const sw_analysis *analysis; /* borrowed */
	sw_layouts layouts;
	SW_VEC(sw_strategy_table) tables;
	sw_map table_index;
	uint32_t *op_class; /* per op: its equivalence class; SW_ABSENT: not computed yet */
	sw_map op_class_index;
	/* per kind and index: likewise */
	uint32_t *decision_class[SW_DECISION_OUTPUT + 1];
	sw_map decision_class_index;
	sw_text key;                      /* scratch */
	SW_VEC(struct sw_priced) priced;  /* strategies of ops, written and costed */
	sw_map priced_index;              /* (op class, strategy) -> priced */
	sw_path_store *paths, *own_paths; /* own: where the plan has none */
	int threads;                      /* that search redistribution paths */
	int64_t left_out;                 /* options that exceeded MAX_OPTIONS of an axis */
	bool tied;                        /* some mesh has tied layers */
} sw_memo;
/* The analysis must outlive the memo; so must the paths of the plan, if it has some. threads: 0:
 * all processors. */
void sw_memo_init(sw_memo *memo, const sw_analysis *analysis, const sw_plan *plan, int threads);
void sw_memo_clear(sw_memo *memo);

/* ---- meshes.c: the meshes of a strategy ------------------------------------------------- */

typedef struct sw_mesh {
	int32_t n_axes;
	sw_axis axes[SW_MAX_AXES];
	const sw_axis_use *use[SW_MAX_AXES];
	bool search; /* axes are free: no split is demanded of any decision */
	bool grid;   /* its axes are those of AxoNN's or SUMMA's grid */
	/* trades time for memory: is searched only where memory is short. These meshes are last */
	bool saves_memory;
	/* is searched only where the bound leaves something to gain */
	bool wide;
	/* is a part of the cluster: all other devices do the same as one of it */
	bool copied;
	/* is beyond the budget of three axes: is searched only where it cuts an axis of the best
	 * plan's mesh in two */
	bool spare;
	/* is searched after the same mesh with tied layers, from its solution: layers may differ */
	bool untied;
	char name[SW_NAME_BYTES];
} sw_mesh;
typedef SW_VEC(sw_mesh) sw_meshes;

/* Add the meshes of a strategy. auto: the fixed strategies, then each grouping of adjacent atoms
 * into two free axes (one where there is one atom), and into three, then AxoNN's best grid, further
 * ones as far as grids_work affords, and Megatron within ZeRO-3 as AxoNN grids. `roles` tell the
 * sizes to split: the batch, which runs in `microbatches` parts, and the experts; NULL: nothing is
 * known of the program. */
sw_status sw_meshes_of(const sw_cluster *cluster, const sw_plan_strategy *strategy,
                       const sw_model_limits *limits, const sw_roles *roles, int32_t microbatches,
                       sw_meshes *meshes, sw_error *err);
/* Cut axes where a pin's devices begin or end (NULL: no pins). Drop the meshes that would need more
 * than SW_MAX_AXES; SW_ERR_INPUT if none is left. */
sw_status sw_pins_cut(const sw_pins *pins, const sw_cluster *cluster, sw_meshes *meshes,
                      sw_error *err);
/* Return on how many of the meshes of three free axes, the first ones, all candidates together are
 * within three_axes_work; those of equal ops count once. */
int32_t sw_meshes_afford_three(const sw_meshes *meshes, sw_memo *memo);
/* Mark the meshes of three free axes as spare, except the first `most`. Write into `scope` which
 * plans are surely left, in words. */
void sw_meshes_limit(sw_meshes *meshes, int32_t most, char *scope, size_t scope_bytes);
uint32_t sw_mesh_atoms(const sw_mesh *mesh); /* of all axes */
/* Return whether each axis of the mesh lies within an axis of the other one. */
bool sw_mesh_refines(const sw_mesh *mesh, const sw_mesh *other);
/* Return the bytes of a device's inputs, each divided by the sizes of all axes that divide one of
 * its dimensions. */
double sw_mesh_input_bytes(const sw_mesh *mesh, const sw_roles *roles);

/* ---- fused_shares.c: what ops take as parts of kernels ----------------------------------- */

/* Set seconds[op] of each op of a program whose work is divided evenly among so many devices, as a
 * part of its kernel where devices fuse. Only the op that ends a kernel has its overhead. */
void sw_fused_seconds(const sw_cluster *cluster, const sw_program *program, int64_t devices,
                      double *seconds);

/* ---- pairwise_problem.c: one mesh as a pairwise problem --------------------------------- */

#define SW_COST_UNIT_S 1e-12 /* the problem's costs are whole picoseconds */

/* The clock that bounds the building of a model, and the terminal that shows its progress. */
typedef struct sw_watch {
	double deadline_s;     /* of sw_now_s; 0: none */
	sw_progress *progress; /* NULL: none */
	const char *mesh;      /* its name, for the terminal */
	double done, share;    /* of the search, in [0, 1]: before this mesh, and of this mesh */
} sw_watch;

typedef struct sw_decision {
	uint8_t kind;   /* sw_decision_kind */
	uint32_t index; /* op id, input leaf, boundary or entry result, by kind */
	int32_t table;  /* strategy table, in the memo */
	int32_t node;   /* in the problem */
} sw_decision;
/* The layout in which a value is kept for its readers, where that is a choice of its own: for all of
 * them; or where a later pass reads it too, for those of one pass, or between passes. */
typedef enum sw_kept {
	SW_KEPT,       /* for all readers, or for those of the earlier pass */
	SW_KEPT_LATER, /* for those of the later pass */
	SW_KEPT_AT_REST /* between passes: of a value that may be a partial sum */
} sw_kept;
typedef struct sw_materialised {
	sw_id value;
	sw_kept kept;
	int32_t node, table;
	uint32_t first_use, n_uses; /* the readers that it is kept for, in those of the model */
} sw_materialised;

/* Indices of a model that is being built, for its nodes, edges and cost tables. */
typedef struct sw_model_index {
	SW_VEC(int32_t) table_of_class; /* per equivalence class of decisions; -1: not made yet */
	uint32_t *producer;             /* per value: its decision */
	uint32_t *result_of;            /* per value: which of the decision's results */
	/* per value: into sw_model.materialised, of SW_KEPT and of SW_KEPT_AT_REST; SW_NO_ID: none */
	uint32_t *materialised_of, *rest_of;
	SW_VEC(struct sw_model_node) nodes; /* of the problem, by number */
	SW_VEC(struct sw_model_edge) edges;
	SW_VEC(struct sw_conversion) conversions;
	sw_map node_of_tie;         /* sw_tie_key -> node */
	sw_map expected;            /* (shape, end of an edge): its layouts are in the path cache */
	sw_map materialised_tables; /* ends of edges -> strategy table of a materialised layout */
	sw_map conversion_of_lists, conversion_of_ends, edge_index;
	sw_map cost_tables; /* (conversion, movement) -> cost table of the problem */
} sw_model_index;

/* Of a model that stays near a plan (near_plan.c), the axes that may do anything else. */
#define SW_FREE_AXES 2
/* A plan with its mesh, near which a model stays. */
typedef struct sw_near_plan {
	const sw_plan *plan;
	const sw_mesh *mesh;
} sw_near_plan;

typedef struct sw_model {
	sw_arena arena;
	const sw_analysis *analysis; /* borrowed, as are the memo and the mesh */
	sw_memo *memo;
	sw_watch watch;
	const sw_mesh *mesh;
	const sw_near_plan *near; /* NULL: it has all candidates */
	/* The analysis's; where the mesh is a part of the cluster, of its atoms alone. There kernels take
	 * `copies` times as long as on all devices, and so do overlap windows: the part is planned as if
	 * it was the cluster. */
	double overlap_weight, copies;
	sw_path_cache *paths; /* the memo's, of this mesh */
	sw_problem problem;
	SW_VEC(sw_decision) decisions;
	SW_VEC(sw_materialised) materialised;
	sw_model_index index;
	/* the memo's tables and layouts as they were when the model was finished, since the memo's
	 * may move when other models are built; NULL: not finished */
	const sw_strategy_table *tables;
	const sw_layout *layouts;
	size_t n_layouts;
	bool tied; /* repeated layers are planned alike */
	bool late; /* the deadline passed before the model was finished */
} sw_model;
/* List the decisions of a mesh and make their strategy tables. watch: NULL: no deadline, no
 * terminal. near: NULL: of all candidates. Return false if the deadline passes first; after false,
 * here or below, the model can only be cleared. */
bool sw_model_begin(sw_model *model, sw_memo *memo, const sw_watch *watch, const sw_mesh *mesh,
                    const sw_near_plan *near);
/* Return the seconds per step of the cheapest candidates of all decisions. Kernels run one after
 * the other, so no plan of the mesh takes less where each op is a kernel; on a device that fuses, where
 * ops are priced by their share of a kernel, it is an estimate. The model must have begun. */
double sw_model_kernels_s(const sw_model *model);
/* Return the sum of the squares of the numbers of candidates, which the entries of the problem's
 * tables grow with. The model must have begun. */
double sw_model_pairs(const sw_model *model);
/* Return the bytes per device of the program's inputs, each in its smallest layout. All of them are
 * there when a step begins, so no plan of the mesh needs less. The model must have begun. */
int64_t sw_model_input_bytes(const sw_model *model);
/* Add edges, costs and spans. From then on the model may be solved and applied while the memo
 * builds others. Spans are left out where no plan could exceed memory_bytes. */
bool sw_model_finish(sw_model *model, int64_t memory_bytes);
/* Begin and finish, without a watch. */
bool sw_model_init(sw_model *model, sw_memo *memo, const sw_mesh *mesh, int64_t memory_bytes);
void sw_model_clear(sw_model *model);
/* Return a strategy table by its number in the memo, before and after the model is finished. */
const sw_strategy_table *sw_model_strategy_table(const sw_model *model, int32_t number);
/* Move the problem out of the model, for callers that solve it without a plan; the model is
 * cleared. */
sw_problem sw_model_take_problem(sw_model *model);
/* Write the decisions of an assignment into the plan. */
void sw_model_apply(const sw_model *model, const int32_t *assignment, sw_plan *plan);

/* Add spans for the copies that ops hold of operands in another layout than the materialised one:
 * while the op runs, the bytes beyond those of the materialised layout in `nearby`, a plan of the
 * same mesh. An assignment that differs from that plan may have bytes counted twice: bounds of the
 * problem hold no more. (reader_copies.c) */
void sw_model_count_copies(sw_model *model, const sw_plan *nearby);

/* ---- mixed_ways.c: each variable's ways from another mesh -------------------------------- */

/* A model on whose mesh variables have any way, in the problem of which some are narrowed. */
typedef struct sw_mixed_ways {
	sw_model *model;      /* borrowed, as all that follows */
	const int64_t **cost; /* per node: of all its strategies */
	int32_t *of_decision; /* per decision: its variable; -1: of none */
} sw_mixed_ways;
void sw_mixed_ways_init(sw_mixed_ways *mixed, sw_model *model);
/* Leave a variable what a mesh of the same atoms, whose model of the same memo has begun, leaves it, in
 * place of what it had before. O(decisions + candidates of the variable, squared). */
void sw_mixed_ways_give(sw_mixed_ways *mixed, uint32_t variable, const sw_model *uniform);

/* ---- warm_starts.c: solutions carried from one mesh to another -------------------------- */

/* A solution of one mesh: candidates, and layouts of materialised values. */
typedef struct sw_warm_start {
	size_t n_decisions, n_materialised;
	int32_t n_axes;
	int32_t *table, *choice; /* per decision */
	uint32_t *layout;        /* per materialised value */
} sw_warm_start;
void sw_warm_start_save(sw_warm_start *start, const sw_model *model, const int32_t *assignment);
/* Give the same solution in another mesh's model, or else the one whose axes are used most alike.
 * Return false if the numbers of decisions differ, or the model lacks the candidates and has
 * another number of axes. */
bool sw_warm_start_apply(const sw_warm_start *start, const sw_model *model, int32_t *assignment);
void sw_warm_start_clear(sw_warm_start *start);
/* Give what a plan decides in the model of a mesh whose axes cut those of the plan's mesh in parts:
 * assignment, per node. Return false if the model lacks a candidate of it. */
bool sw_warm_start_from_plan(const sw_model *model, const sw_plan *plan, int32_t *assignment);

/* ---- pins.c: the answer, checked -------------------------------------------------------- */

/* Does the plan hold to the pins? SW_ERR_INTERNAL: it does not. */
sw_status sw_pins_check(const sw_analysis *analysis, const sw_plan *plan, sw_error *err);

/* ---- random_plan.c: random plans, for tests --------------------------------------------- */

/* Draw a valid plan: for every op a strategy that its rule has, for every input, result and
 * boundary a layout that it may have; owners: some of them on one device of some atoms. Costs are
 * neither looked at nor written into the plan. The same seed gives the same plan. */
sw_status sw_plan_random(const sw_program *program, const char *program_path,
                         const sw_cluster *cluster, uint64_t seed, bool owners, sw_plan **plan,
                         sw_error *err);

#endif
