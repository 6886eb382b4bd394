/*
 * model: program + cluster -> the solver's problem.
 */
#ifndef SW_MODEL_MODEL_H
#define SW_MODEL_MODEL_H

#include "model/limits.h"
#include "plan/fixed_strategy.h"
#include "solve/methods.h"

/* ---- roles.c: what the entry's inputs are, and what follows from them ------------------- */

/* A BOUNDARY: one layout where values go into a region, around it, or out of it. Some values are
 * converted into it (reads), others come out of it (values): what a loop carries       reads:
 * initial, next; values: the leaf in the condition, in the body, and the result a branch's
 * parameter      reads: the operand; values: the leaf in the branch a conditional's result reads:
 * each branch's result; values: the result what decides the way      reads: a loop's condition, a
 * conditional's predicate or index; every device needs the whole */
typedef struct sw_boundary_read {
	sw_id value;
	double trips; /* how often, in a step */
	int32_t point;
} sw_boundary_read;
typedef struct sw_boundary {
	sw_id region; /* op */
	bool decides; /* the way: whole, and no values */
	uint32_t n_reads, n_values;
	const sw_boundary_read *reads;
	const sw_id *values;
} sw_boundary;

typedef struct sw_roles {
	sw_arena arena;
	const sw_program *program;
	uint32_t n_inputs;
	const sw_id *inputs; /* value per entry input leaf */
	sw_role *input_role;
	int32_t *output_input; /* per entry result: the input it replaces, -1: none */
	/* per value: a parameter seen through converts, slices, transposes */
	bool *from_parameter;
	/* per op: how often it runs in a step; a branch's are weighted, see lay_out_branches */
	double *trips;
	/* per op: position in the flattened order; ops of regions stand before their region */
	int32_t *point;
	/* per value: one past the point of its last reader; a region reads just before its first
	 * op */
	int32_t *last_use;
	/* per value: the next of what a loop carries, which lies where that lay */
	bool *carried_over;
	/* per value: what a region shows there, unchanged, and its caller keeps: it may be the same
	 * bytes; SW_NO_ID: nothing */
	sw_id *shown;
	int32_t n_points;
	SW_VEC(sw_boundary) boundaries; /* those of a region stand together, regions by number */
	uint32_t *first_boundary;       /* per op, and one more: into boundaries */
	bool *planned;                  /* per computation: entry, and what its regions call */
} sw_roles;
void sw_roles_init(sw_roles *roles, const sw_program *program, const sw_sidecar *sidecar);
void sw_roles_clear(sw_roles *roles);
bool sw_is_dot(const sw_op *op); /* or convolution */
/* The operand of a dot that is a parameter where the other is none; -1: not so. */
int32_t sw_roles_weight(const sw_roles *roles, sw_id op);

/* ---- split_classes.c: splits that the rules carry into each other -----------------------------
 */

typedef struct sw_split { /* of a value: (dim, top); of an op: (factor, top) */
	int32_t where;
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

/* ---- op_price.c: what an op's strategy costs ----------------------------------------------- */

typedef struct sw_analysis sw_analysis;
/* One execution of the local op, with operands that lie so (as sw_rule_layouts says) and the
 * collectives that it has inside. False if it can't be written. */
bool sw_price_local(const sw_analysis *analysis, sw_id op, const sw_strategy *strategy,
                    const sw_layout *operands, sw_program_cost *cost);

/* ---- overlap_window.c: how much communication kernels can run beside ---------------------------
 */

typedef struct sw_overlap sw_overlap;
/* Of the planned computations. The roles must outlive it. */
sw_overlap *sw_overlap_new(const sw_roles *roles, const sw_cluster *cluster,
                           const sw_model_limits *limits);
void sw_overlap_free(sw_overlap *overlap);
/* Seconds per step of the kernels that may run between the op `from` and the op `to` of its
 * computation, in some order; SW_NO_ID: the computation's end. from == to: between it and all that
 * reads it. O(1). */
double sw_overlap_window_s(const sw_overlap *overlap, sw_id from, sw_id to);
/* What a second of communication should count that kernels may run beside. Where data parallelism
 * communicates for as long as its kernels take, all of it: a second more is a second of the step.
 * Where it communicates for less, in proportion, for most will hide; a power of two. */
double sw_overlap_weight(const sw_roles *roles, const sw_cluster *cluster,
                         const sw_model_limits *limits);

/* ---- strategy_tables.c: what a decision may do, shared by all decisions that are alike
 * ----------------- */

typedef struct sw_mesh {
	int32_t n_axes;
	sw_axis axes[SW_MAX_AXES];
	const sw_axis_use *use[SW_MAX_AXES];
	bool search; /* axes are free: nothing is demanded, and a decision may do anything */
	/* saves memory at the price of time: is looked at where there is too little. Such stand
	 * last */
	bool tight;
	/* comes after the same mesh with repeated layers alike, and begins where that ended: if so
	 * planned, they may differ */
	bool freed;
	char name[SW_NAME_BYTES];
} sw_mesh;

typedef struct sw_option { /* of one axis at one decision */
	uint8_t kind;      /* sw_choice_kind */
	uint8_t monoid;
	int16_t index; /* factor, or dim for decisions that are not ops; linearity */
	int64_t top;
} sw_option;
typedef struct sw_candidate {
	sw_option axis[SW_MAX_AXES];
} sw_candidate;

typedef struct sw_strategy_table {
	int32_t n; /* candidates */
	uint32_t n_in, n_out;
	const sw_candidate *candidates;
	const uint32_t *in, *out; /* layout numbers [candidate][operand], [candidate][result] */
	const double *seconds;    /* of one execution, per candidate */
	/* what the local op takes besides operands and results; NULL: nothing */
	const int64_t *temporary_bytes;
} sw_strategy_table;

/* A strategy of an op, once written and priced. */
typedef struct sw_priced {
	bool possible;
	double seconds;
	int64_t temporary_bytes;
	const uint32_t *layouts; /* by number: of operands, then of results */
} sw_priced;

typedef enum sw_decision_kind {
	SW_DECISION_OP,
	SW_DECISION_INPUT,
	SW_DECISION_BOUNDARY,
	SW_DECISION_OUTPUT
} sw_decision_kind;
typedef struct sw_decision {
	uint8_t kind;
	uint32_t index; /* op id; input leaf; boundary; entry result */
	int32_t strategy_table;
	int32_t node; /* in the problem */
} sw_decision;

/* A solution of one mesh, as layouts: where the searches of later meshes begin. */
typedef struct sw_start {
	size_t n_decisions, n_materialised_values;
	int32_t n_axes;
	int32_t *strategy_table, *choice; /* per decision */
	uint32_t *kept;                   /* per materialised: layout */
} sw_start;

/* ---- analysis.c: what is known before any mesh is looked at ------------------------------ */

/* What a program, its cluster and its user determine. Const once its pins are resolved. */
struct sw_analysis {
	sw_arena arena;
	const sw_program *program; /* borrowed, as are the cluster and the rules */
	const sw_cluster *cluster;
	const sw_rule **rules;
	const sw_model_limits *limits;
	sw_roles roles;
	sw_classes classes;
	sw_overlap *overlap; /* NULL: a kernel and a collective never run side by side */
	/* What a second of communication counts during which kernels may run, in (0, 1]; 1 without
	 * overlap. */
	double overlap_weight;
	bool untied;           /* repeated layers may differ on the meshes that ask for it */
	sw_equivalence layers; /* number NULL: the program is too small for its layers to be tied */
	/* Per input leaf, per op: the options per atom that the user has pinned; NULL: none. */
	const sw_option **pinned_inputs, **pinned_ops;
};
typedef struct sw_analysis_options {
	bool no_overlap, untied;
	const sw_model_limits *limits; /* NULL: the default ones; must outlive the analysis */
} sw_analysis_options;
/* The plan and its program must outlive the analysis. O(ops). */
void sw_analysis_init(sw_analysis *analysis, const sw_plan *plan, const sw_sidecar *sidecar,
                      sw_analysis_options options);
void sw_analysis_clear(sw_analysis *analysis);

/* ---- memo.c: what the models of several meshes share -------------------------------------- */

/* Caches. All entries are pure functions of the analysis, so that the order in which meshes are
 * modelled changes numbers, and nothing else. Not thread-safe: models are built one by one. */
typedef struct sw_memo {
	sw_arena arena;
	const sw_analysis *analysis;
	sw_layouts layouts;
	SW_VEC(sw_strategy_table) strategy_tables;
	sw_map strategy_table_index;
	uint32_t *op_class; /* per op: its equivalence class; SW_ABSENT: not found yet */
	sw_map op_class_index;
	uint32_t *decision_class[SW_DECISION_OUTPUT + 1]; /* per kind, and index: likewise */
	sw_map decision_class_index;
	sw_text key;                      /* scratch */
	SW_VEC(sw_priced) priced;         /* strategies of ops */
	sw_map priced_index;              /* (op class, strategy) -> priced */
	sw_path_store *paths, *own_paths; /* own: where the plan has none */
	int threads;                      /* that find paths */
	int64_t left_out; /* options of axes at decisions that exceeded the limits */
} sw_memo;
void sw_memo_init(sw_memo *memo, const sw_analysis *analysis, const sw_plan *plan, int threads);
void sw_memo_clear(sw_memo *memo);

/* The clock that bounds the building of a model, and the terminal that shows it. */
typedef struct sw_watch {
	double deadline_s;     /* of sw_now_s; 0: none */
	sw_progress *progress; /* NULL: none */
	const char *mesh;
	double done, share; /* of the search, in [0, 1]: before this mesh, and of this mesh */
} sw_watch;

/* ---- pairwise_problem.c: decisions and materialised_values as a pairwise problem
 * ------------------------------------ */

typedef struct sw_materialised {
	sw_id value;
	int32_t node, strategy_table;
} sw_materialised;
typedef struct sw_model_node { /* one or more decisions, or materialised_values, that do alike */
	int32_t strategy_table;
	double trips; /* of all decisions, in a step */
} sw_model_node;
/* What is moved along a conversion: so often, while kernels can run beside it for so long; and so
 * many times alike, in as many layers. To make a term of a sum of it takes so much longer than the
 * conversion itself: what is none on some devices is selected, but a constant that is the sum's
 * neutral element. */
typedef struct sw_movement {
	double trips, window_s, count, term_s;
} sw_movement;
typedef struct sw_model_edge {
	int32_t from, to;
	uint32_t conversion;
	sw_movement what;
} sw_model_edge;
typedef struct sw_model {
	sw_arena arena;
	const sw_analysis *analysis;
	sw_memo *memo;
	sw_watch watch;
	const sw_mesh *mesh;
	sw_path_cache *paths; /* the planner's */
	sw_problem problem;
	SW_VEC(int32_t)
	strategy_table_of; /* per number of decisions that are alike; -1: not asked for yet */
	SW_VEC(sw_decision) decisions;
	SW_VEC(sw_materialised) materialised_values;
	uint32_t *producer;          /* per value: its decision */
	uint32_t *result_of;         /* per value: which of the decision's results */
	uint32_t *materialised_of;   /* per value: number of its materialised, SW_NO_ID: none */
	SW_VEC(sw_model_node) nodes; /* of the problem, by number */
	SW_VEC(sw_model_edge) edges;
	SW_VEC(struct sw_conversion)
	conversions;   /* from which layouts to which, and how long that takes */
	sw_map places; /* sw_equivalence_key -> node */
	sw_map expected, materialised_strategy_tables, conversion_of_lists, conversion_of_ends,
		edge_index;
	sw_map tables; /* (conversion, trips) -> table of the problem */
	/* once it is built: the planner's, as they were then; NULL: it is not yet */
	const sw_strategy_table *strategy_tables;
	const sw_layout *layouts;
	size_t n_layouts;
	bool late; /* the planner's deadline passed before it was built */
} sw_model;
#define SW_COST_UNIT_S 1e-12 /* the problem's costs are whole picoseconds */
/* Decisions, and their strategy_tables. False if the planner's deadline passes first: then, and
 * from any of these, the model can only be cleared. */
bool sw_model_begin(sw_model *model, sw_memo *memo, const sw_watch *watch, const sw_mesh *mesh);
/* Seconds of the cheapest candidates of all decisions, of a model that was begun: kernels run one
 * after the other, so no plan of the mesh takes less. */
double sw_model_kernels_s(const sw_model *model);
/* The rest; from then on the model may be applied while the planner builds others. */
bool sw_model_finish(sw_model *model, int64_t memory_bytes);
/* Both. */
bool sw_model_init(sw_model *model, sw_memo *memo, const sw_mesh *mesh, int64_t memory_bytes);
const sw_strategy_table *sw_model_strategy_table(const sw_model *model, int32_t number);
void sw_model_clear(sw_model *model);
/* The problem alone, for those who solve it otherwise; the model is cleared. */
sw_problem sw_model_take_problem(sw_model *model);
/* Writes the decisions of an assignment into the plan. */
void sw_model_apply(const sw_model *model, const int32_t *assignment, sw_plan *plan);

/* In a large program, unless it is wanted otherwise. */
bool sw_equivalence_is_tied(const sw_model_limits *limits, const sw_program *program, bool untied);

/* ---- reader_copies.c: what readers hold beside what is kept -------------------------------------
 */

/* Adds spans for the copies that ops read of values in other layouts than the plan keeps them in:
 * beyond that one's bytes, while the op runs. The plan is of the same mesh. What differs from it
 * may be counted twice, so that a bound no longer holds. */
void sw_model_count_copies(sw_model *model, const sw_plan *near);

/* ---- warm_starts.c: solutions carried from one mesh to another ------------------------------- */

void sw_start_save(sw_start *start, const sw_model *model, const int32_t *assignment);
/* The same solution in another mesh's model, or what does the same on each of its axes; false if
 * that has no such candidates. */
bool sw_start_place(const sw_start *start, const sw_model *model, int32_t *assignment);
void sw_start_clear(sw_start *start);

/* ---- meshes.c: strategies as meshes ----------------------------------------------------- */

/* The meshes that a strategy searches; auto: the fixed strategies, then every grouping of the atoms
 * into at most three axes, and AxoNN's first grids where the ops are few, else those of its
 * grids that are Megatron within ZeRO-3. Roles say what the program has to
 * split: the batch, done in so many iterations, experts (NULL: nothing is known of it). */
typedef SW_VEC(sw_mesh) sw_meshes;
sw_status sw_meshes_of(const sw_cluster *cluster, const sw_plan_strategy *strategy,
                       const sw_model_limits *limits, const sw_roles *roles, int32_t iterations,
                       sw_meshes *meshes, sw_error *err);
/* AxoNN's grids (axonn_grids.c), those first whose communication takes least by its model. O(grids
 * * ops). */
typedef struct sw_grid {
	sw_plan_strategy grid;
	double seconds;
	int32_t number;
} sw_grid;
typedef struct sw_grids {
	int32_t n;
	sw_grid *list;
} sw_grids;
sw_grids sw_grids_rank(const sw_cluster *cluster, const sw_roles *roles, int64_t batch,
                       sw_arena *arena);
/* Three axes have the cube of one's candidates. Are those of all the meshes together, counted once
 * for ops that are alike, within three_axes_work? */
bool sw_meshes_afford_three(const sw_meshes *meshes, sw_memo *memo);
/* Leaves out the searches of three axes unless they can be afforded; says in words what is left. */
void sw_meshes_limit(sw_meshes *meshes, bool afford_three, char *scope, size_t room);

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

/* ---- pins.c: what users have decided ---------------------------------------------------- */

/* Finds the decisions of all pins (NULL: none) and decides their options; the planner is to have
 * all else. */
sw_status sw_pins_resolve(const sw_pins *pins, sw_analysis *analysis, const sw_sidecar *sidecar,
                          sw_error *err);
/* Cuts axes where a pin's devices begin or end; meshes that would have too many axes are left out.
 */
sw_status sw_pins_cut(const sw_pins *pins, const sw_cluster *cluster, sw_meshes *meshes,
                      sw_error *err);
/* Has the plan what was pinned? */
sw_status sw_pins_check(const sw_analysis *analysis, const sw_plan *plan, sw_error *err);

/* ---- random_plan.c: plans by chance ------------------------------------------------------- */

/* Any plan that is allowed, by chance: every op a strategy that its rule has, every input, result
 * and carried value a layout that it may have. What it costs is not looked at, nor written into the
 * plan. The same seed gives the same plan. */
sw_status sw_plan_random(const sw_program *program, const char *program_path,
                         const sw_cluster *cluster, uint64_t seed, sw_plan **plan, sw_error *err);

#endif
