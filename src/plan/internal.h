/*
 * What the files of this folder share: roles, classes, axes' options, sites, the problem.
 * The steps, in order: meshes.c, roles.c, classes.c, profiles.c (options, candidates), problem.c, search.c; make.c is the driver.
 */
#ifndef SW_PLAN_INTERNAL_H
#define SW_PLAN_INTERNAL_H

#include "plan/plan.h"

/* ---- roles.c: what the entry's inputs are, and what follows from them ------------------------------------ */

/* How control flows through the loops: everything that is one value to a person. */
typedef struct sw_carry { /* one leaf of one while */
	sw_id loop;       /* op */
	uint32_t leaf;
	sw_id init, result, in_body, in_condition, next; /* values; next: the body's result */
} sw_carry;

typedef struct sw_roles {
	sw_arena arena;
	const sw_program *program;
	uint32_t n_inputs;
	const sw_id *inputs;        /* value per entry input leaf */
	sw_role *input_role;
	int32_t *output_input;      /* per entry result: the input it replaces, -1: none */
	bool *from_parameter;       /* per value: a parameter seen through converts, slices, transposes */
	double *trips;              /* per op: how often it runs in a step */
	int32_t *moment;            /* per op: position in the flattened order; body ops stand inside their while */
	int32_t *last_use;          /* per value: one past the moment of its last reader; a loop reads before its first turn */
	int32_t n_moments;
	SW_VEC(sw_carry) carries;
	bool *planned;              /* per computation: entry, bodies and conditions of whiles */
} sw_roles;
/* The computations whose ops are planned one by one: c, and the conditions and bodies of its loops. */
void sw_mark_planned(const sw_program *program, int32_t c, bool *planned);
void sw_roles_init(sw_roles *roles, const sw_program *program, const sw_sidecar *sidecar);
void sw_roles_clear(sw_roles *roles);

/* ---- classes.c: splits that the rules carry into each other ---------------------------------------------- */

typedef struct sw_split {     /* of a value: (dim, top); of an op: (factor, top) */
	int32_t where;
	int32_t class;
	int64_t top;
} sw_split;
typedef struct sw_classes {
	sw_arena arena;
	int32_t n;
	bool *data;   /* contains the leading dimension of a data input */
	bool *state;  /* contains a dimension of a state input */
	bool *heavy;  /* contains a dimension of a dot, or of a state or data input: worth a candidate */
	const uint32_t *value_start, *op_start; /* [n + 1] into the lists */
	const sw_split *value_splits, *op_splits;
	const uint8_t *partial; /* per value: monoids (bit) in which it may be P */
} sw_classes;
void sw_classes_init(sw_classes *classes, const sw_roles *roles, const sw_rule *const *rules);
void sw_classes_clear(sw_classes *classes);

/* ---- profiles.c: what a site may do, shared by all sites that are alike ------------------------------------ */

/* How an axis may be used. FREE: any class. DATA: whatever has the batch splits it, state at rest as the mesh's flags say.
 * STATE: as DATA for what has no batch, and nothing splits the batch (devices for which the batch is too small). TENSOR: dots
 * with a parameter split output or contraction, and nothing splits the batch. */
typedef enum sw_axis_use { SW_AXIS_FREE, SW_AXIS_DATA, SW_AXIS_STATE, SW_AXIS_TENSOR } sw_axis_use;
typedef struct sw_mesh {
	int32_t n_axes;
	sw_axis axes[SW_MAX_AXES];
	sw_axis_use use[SW_MAX_AXES];
	bool split_parameters, split_moments; /* DATA and STATE: at rest */
	char name[48];
} sw_mesh;

typedef struct sw_option { /* of one axis at one site */
	uint8_t kind;    /* sw_choice_kind */
	uint8_t monoid;
	int16_t index;   /* factor, or dim for sites that are not ops; passage */
	int64_t top;
} sw_option;
typedef struct sw_candidate {
	sw_option axis[SW_MAX_AXES];
} sw_candidate;

typedef struct sw_profile {
	int32_t n;                  /* candidates */
	uint32_t n_in, n_out;
	const sw_candidate *candidates;
	const uint32_t *in, *out;   /* layout numbers [candidate][operand], [candidate][result] */
	const double *seconds;      /* of one execution, per candidate */
} sw_profile;

typedef enum sw_site_kind { SW_SITE_OP, SW_SITE_INPUT, SW_SITE_CARRY, SW_SITE_OUTPUT } sw_site_kind;
typedef struct sw_site {
	uint8_t kind;
	uint32_t index;   /* op id; input leaf; carry; entry result */
	int32_t profile;
	int32_t node;     /* in the problem */
} sw_site;

/* A solution of one mesh, as layouts: where the searches of later meshes begin. */
typedef struct sw_start {
	size_t n_sites, n_hubs;
	int32_t *profile, *choice; /* per site */
	uint32_t *kept;            /* per hub: layout */
} sw_start;

typedef struct sw_planner {
	sw_arena arena;
	const sw_program *program;
	const sw_cluster *cluster;
	const sw_rule **rules;
	sw_roles roles;
	sw_classes classes;
	sw_layouts layouts;
	SW_VEC(sw_profile) profiles;
	sw_map profile_index;
	SW_VEC(sw_start) starts;
} sw_planner;
/* What does not depend on the mesh (make.c). The plan and its program must outlive the planner. */
void sw_planner_init(sw_planner *planner, const sw_plan *plan, const sw_sidecar *sidecar);
void sw_planner_clear(sw_planner *planner);
/* Bytes that are equal iff the shapes are. */
void sw_key_shape(sw_text *key, sw_shape shape);
/* Number of the site's profile under the mesh. */
int32_t sw_profile_of(sw_planner *planner, const sw_mesh *mesh, sw_site_kind kind, uint32_t index);
bool sw_candidate_strategy(const sw_atoms *atoms, const sw_mesh *mesh, const sw_rule *rule,
                           const sw_candidate *candidate, sw_strategy *strategy);

/* ---- problem.c: sites and hubs as a pairwise problem -------------------------------------------------------- */

typedef struct sw_hub {
	sw_id value;
	int32_t node, profile;
} sw_hub;
typedef struct sw_model {
	sw_arena arena;
	sw_planner *planner;
	const sw_mesh *mesh;
	sw_path_cache *paths;
	sw_problem problem;
	SW_VEC(sw_site) sites;
	SW_VEC(sw_hub) hubs;
	uint32_t *producer;  /* per value: its site */
	uint32_t *result_of; /* per value: which of the site's results */
	uint32_t *hub_of;    /* per value: number of its hub, SW_NO_ID: none */
	bool *counted_elsewhere; /* per value: another value has the same bytes */
	sw_map tables;       /* (layout lists, shape, trips) -> table of the problem */
} sw_model;
#define SW_COST_UNIT_S 1e-12 /* the problem's costs are whole picoseconds */
void sw_model_init(sw_model *model, sw_planner *planner, const sw_mesh *mesh, int64_t memory_bytes);
void sw_model_clear(sw_model *model);
/* Writes the decisions of an assignment into the plan. */
void sw_model_apply(const sw_model *model, const int32_t *assignment, sw_plan *plan);

/* ---- starts.c: solutions carried from one mesh to another ---------------------------------------------------- */

void sw_start_save(sw_start *start, const sw_model *model, const int32_t *assignment);
/* The same solution in another mesh's model; false if that has no such candidates. */
bool sw_start_place(const sw_start *start, const sw_model *model, int32_t *assignment);
void sw_start_clear(sw_start *start);

/* ---- meshes.c: strategies as meshes ------------------------------------------------------------------------ */

/* The meshes that a strategy searches; auto: the fixed strategies, then every grouping of the atoms into at most two axes. batch: what
 * the leading dimensions of all data inputs have in common; data axes take as many of the outer atoms as divide it. */
typedef SW_VEC(sw_mesh) sw_meshes;
sw_status sw_meshes_of(const sw_cluster *cluster, const sw_plan_strategy *strategy, int64_t batch, sw_meshes *meshes, sw_error *err);

/* ---- search.c ---------------------------------------------------------------------------------------------------- */

/* Tries every mesh and writes the best contender's decisions and figures into the plan. SW_NO if none fits in memory. */
sw_status sw_plan_search(sw_planner *planner, const sw_meshes *meshes, const sw_plan_options *options, sw_plan *plan, sw_error *err);

/* ---- object.c ---------------------------------------------------------------------------------------------------- */

/* Everything whole; takes the program. */
sw_plan *sw_plan_new(sw_program *canonical, const char *program_path, const sw_cluster *cluster);

#endif
