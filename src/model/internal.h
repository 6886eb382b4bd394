/* Types and functions that the files of this folder share with each other alone, in the order in
 * which a model uses them. */
#ifndef SW_MODEL_INTERNAL_H
#define SW_MODEL_INTERNAL_H

#include "model/model.h"

/* ---- shared_positions.c ------------------------------------------------------------------ */

/* Return, per value, whether it is a vector of positions that stands for several dimensions. O(ops).
 */
bool *sw_shared_positions(const sw_program *program, sw_arena *arena);

/* Find what each device computes of the whole batch, where gradients are taken apart into terms:
 * whole_ops and whole_values of the variables (whole_batch.c). O(ops). */
void sw_find_whole_batch(const sw_analysis *a, sw_variables *v);

/* ---- equivalence.c: decisions that have equal candidates in every mesh ------------------ */

typedef struct sw_split_list {
	const sw_split *first;
	uint32_t n;
} sw_split_list;
sw_split_list sw_op_splits(const sw_analysis *analysis, sw_id op);
sw_split_list sw_value_splits(const sw_analysis *analysis, sw_id value);
/* Return the value whose layout a decision that is not an op decides. */
sw_id sw_decision_value(const sw_analysis *analysis, sw_decision_kind kind, uint32_t index);
/* Return the pinned options of a decision, per atom; NULL: it is not pinned. */
const sw_option *sw_pinned(const sw_analysis *analysis, sw_decision_kind kind, uint32_t index);
/* Append bytes that are equal iff the shapes are. */
void sw_key_shape(sw_text *key, sw_shape shape);
/* Return the equivalence class of an op: the strategies of its members have equal costs. */
uint32_t sw_op_equivalence(sw_memo *memo, sw_id op);
/* Return the equivalence class of a decision: the strategy tables of its members are equal in every
 * mesh. All pins must be resolved. */
uint32_t sw_decision_equivalence(sw_memo *memo, sw_decision_kind kind, uint32_t index);

/* ---- decision_options.c: what each axis may do at a decision ---------------------------- */

typedef struct sw_decision_options {
	int32_t max, n[SW_MAX_AXES];
	sw_option list[SW_MAX_AXES][SW_MAX_OPTIONS];
	int64_t left_out; /* options beyond max */
} sw_decision_options;
/* Return the options of a decision per axis of the mesh; those of a pinned one are decided. */
sw_decision_options sw_options_of(const sw_analysis *analysis, const sw_mesh *mesh,
                                  sw_decision_kind kind, uint32_t index);
/* Let the axis also do nothing. */
void sw_options_add_none(sw_decision_options *o, int32_t axis);

/* ---- near_plan.c: the candidates near a plan on a finer mesh ----------------------------- */

typedef struct sw_near {
	int32_t whole[SW_MAX_AXES];     /* the axis of the plan's mesh that the axis is a part of */
	int32_t cut[SW_MAX_AXES];       /* 0: it is all of that axis, and does */
	sw_option planned[SW_MAX_AXES]; /* this in the plan */
} sw_near;
/* Has a mesh fewer candidates near the plan (NULL: there is none) than in all? */
bool sw_is_near_plan(const sw_near_plan *near, const sw_mesh *mesh);
/* Say which are near at a decision of a mesh that refines the plan's. Equal ones have equal bytes. */
sw_near sw_near_decision(const sw_analysis *analysis, const sw_mesh *mesh, const sw_near_plan *plan,
                         sw_decision_kind kind, uint32_t index);
bool sw_near_has(const sw_near *near, const sw_mesh *mesh, const sw_candidate *candidate);

/* ---- strategy_tables.c ------------------------------------------------------------------ */

/* A strategy of an op, written as a local op and costed. */
/* Fill roles.kernel_share and roles.stored if the device fuses. O(uses). */
void sw_fused_shares_find(sw_analysis *analysis);
/* Return the share of the op; 1 on a device that does not fuse. */
double sw_fused_share(const sw_analysis *analysis, sw_id op);

typedef struct sw_priced {
	bool possible;
	double seconds;
	int64_t temporary_bytes;
	const uint32_t *layouts; /* by number: of operands, then of results */
} sw_priced;
/* Return the number of the decision's strategy table under the mesh; near: NULL: of all candidates. */
int32_t sw_strategy_table_of(sw_memo *memo, const sw_mesh *mesh, const sw_near_plan *near,
                             sw_decision_kind kind, uint32_t index);
/* Return the number of candidates of all ops under the mesh; ops of one equivalence class count
 * once. */
double sw_mesh_candidates(sw_memo *memo, const sw_mesh *mesh);
/* Write a candidate of an op as a strategy; return false if the rule refuses it. */
bool sw_candidate_strategy(const sw_atoms *atoms, const sw_mesh *mesh, const sw_rule *rule,
                           const sw_candidate *candidate, sw_strategy *strategy);

/* Return the first candidate of b with the layouts of candidate i of a; -1: none (warm_starts.c). */
int32_t sw_strategy_table_find(const sw_strategy_table *a, int32_t i, const sw_strategy_table *b);

/* ---- variables ---------------------------------------------------------------------------- */

/* Return the variable that the op updates, or scatters the gradient of; -1: of none. */
static inline int32_t sw_variable_of_op(const sw_variables *v, sw_id op)
{
	return v->of_op[op] >= 0 ? v->of_op[op] : v->of_scatter[op];
}

/* ---- owner_places.c: who owns what -------------------------------------------------------- */

/* Let the owners that nobody has named be others, where the device that owns most owns less then. The
 * plan has an assignment of the model. O(ops + values + placing the variables). */
void sw_place_owners(const sw_model *model, sw_plan *plan);

/* ---- repeated_layers.c: tied layers ----------------------------------------------------- */

/* Decisions, or materialised layouts, with equal keys are TIED: they are one node. */
#define SW_TIE_NONE UINT32_MAX /* kind: tied to nothing */
typedef struct sw_tie_key {
	uint32_t kind;   /* sw_decision_kind, or that of materialised layouts */
	uint32_t repeat; /* equivalence class among repeated layers */
	int32_t table;
} sw_tie_key;
/* Are repeated layers planned alike on this mesh, whose decisions have so many candidates? */
bool sw_layers_are_tied(const sw_analysis *analysis, const sw_mesh *mesh, double candidates);
sw_tie_key sw_tie_of_decision(const sw_model *model, const sw_decision *decision);
sw_tie_key sw_tie_of_materialised(const sw_model *model, const sw_materialised *materialised);

/* ---- pairwise_problem.c: nodes ---------------------------------------------------------- */

typedef struct sw_model_node { /* tied decisions, or tied materialised layouts */
	int32_t table;
	double trips; /* of all decisions together, per step */
} sw_model_node;
/* Return the node of a tie key: that of an earlier member, or a new one. */
int32_t sw_model_node_of(sw_model *model, const sw_tie_key *tie);

/* ---- value_readers.c: who reads a value, and the layouts at both ends of an edge -------- */

/* One use of a value as an operand of a decision, `trips` times per step. */
typedef struct sw_value_reader {
	uint32_t decision, operand;
	double trips;
	int32_t point;
} sw_value_reader;
typedef struct sw_readers { /* per value: list[start[v] .. start[v + 1]) */
	uint32_t *start;
	sw_value_reader *list;
} sw_readers;
/* All decisions must have been listed. O(values + operands). */
void sw_readers_init(sw_readers *readers, const sw_model *model);
void sw_readers_clear(sw_readers *readers);

/* One end of an edge: an operand or a result of the decisions of a strategy table. */
typedef struct sw_edge_end {
	int32_t table;
	uint32_t which;
	bool out;
} sw_edge_end;
sw_edge_end sw_end_of_producer(const sw_model *model, sw_id value);
sw_edge_end sw_end_of_reader(const sw_model *model, const sw_value_reader *use);
/* A layout number per candidate: entry i is list[i * step]. */
typedef struct sw_layout_list {
	const uint32_t *list;
	uint32_t step;
	int32_t n;
} sw_layout_list;
sw_layout_list sw_layouts_at(const sw_model *model, sw_edge_end end);
/* Return the numbers of the layouts in the path cache, allocated. */
uint32_t *sw_number_layouts(const sw_model *model, sw_layout_list layouts);
/* Announce the layouts of all ends to the path cache. */
void sw_readers_expect(sw_model *model, const sw_readers *readers);

/* ---- conversion_costs.c: what an edge costs --------------------------------------------- */

/* Conversions of equal values along an edge. */
typedef struct sw_movement {
	double trips;    /* conversions of one value per step */
	double window_s; /* overlap window of them, seconds per step */
	double price;    /* of a second of collectives within it */
	double count;    /* values of tied layers */
	/* Added time of a conversion that makes a replicated value a term of a partial sum: some
	 * devices must select the neutral element. 0 for constants, mostly that element already. */
	double term_s;
	int32_t rests; /* 1: what is no partial sum stays as it is */
	int32_t made;  /* 1: what repeats a number is made in each layout that is read */
} sw_movement;
/* Return the number of the conversion between the layouts of two ends. */
uint32_t sw_conversion_between(sw_model *model, sw_shape shape, sw_edge_end from, sw_edge_end to);
/* Return the problem's cost table of these movements by a conversion. */
int32_t sw_conversion_cost_table(sw_model *model, uint32_t conversion, sw_movement movement);
/* Return whole units of SW_COST_UNIT_S; SW_FORBIDDEN: the time is infinite. */
int64_t sw_cost_from_seconds(double seconds);

/* ---- problem_edges.c: edges before they have costs -------------------------------------- */

typedef struct sw_model_edge {
	int32_t from, to;
	uint32_t conversion;
	sw_movement movement;
} sw_model_edge;
/* List the edges of all values, with the nodes of the materialised layouts. The readers of each value
 * are ordered by pass. */
void sw_find_edges(sw_model *model, sw_readers *readers);

/* ---- memory_spans.c --------------------------------------------------------------------- */

/* Add the spans of values, from their program points to their last readers. */
void sw_add_value_spans(sw_model *model, const sw_readers *readers);
/* Add the spans of the memory that local ops need while they run. */
void sw_add_workspace_spans(sw_model *model);

/* ---- annotations.c ---------------------------------------------------------------------- */

/* Store the options of the program's annotations in the analysis, as sw_pins_resolve does. */
sw_status sw_pins_take_annotations(sw_analysis *analysis, sw_error *err);

#endif
