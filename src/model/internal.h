/* Types and functions that the files of this folder share with each other alone, in the order in
 * which a model uses them. */
#ifndef SW_MODEL_INTERNAL_H
#define SW_MODEL_INTERNAL_H

#include "model/model.h"

/* ---- axonn_grids.c: the grids that AxoNN's communication model ranks -------------------- */

typedef struct sw_grid {
	sw_plan_strategy grid;
	double seconds; /* of communication per step, by that model */
	int32_t number; /* breaks ties */
} sw_grid;
typedef struct sw_grids {
	int32_t n;
	sw_grid *list;
} sw_grids;
/* Rank all grids of the cluster whose data axis divides the batch, quickest communication first.
 * The list is in the arena. O(grids * ops). */
sw_grids sw_grids_rank(const sw_cluster *cluster, const sw_roles *roles, int64_t batch,
                       sw_arena *arena);

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

/* ---- strategy_tables.c ------------------------------------------------------------------ */

/* A strategy of an op, written as a local op and costed. */
typedef struct sw_priced {
	bool possible;
	double seconds;
	int64_t temporary_bytes;
	const uint32_t *layouts; /* by number: of operands, then of results */
} sw_priced;
/* Return the number of the decision's strategy table under the mesh. */
int32_t sw_strategy_table_of(sw_memo *memo, const sw_mesh *mesh, sw_decision_kind kind,
                             uint32_t index);
/* Return the number of candidates of all ops under the mesh; ops of one equivalence class count
 * once. */
double sw_mesh_candidates(sw_memo *memo, const sw_mesh *mesh);
/* Write a candidate of an op as a strategy; return false if the rule refuses it. */
bool sw_candidate_strategy(const sw_atoms *atoms, const sw_mesh *mesh, const sw_rule *rule,
                           const sw_candidate *candidate, sw_strategy *strategy);

/* ---- repeated_layers.c: tied layers ----------------------------------------------------- */

/* Decisions, or materialised layouts, with equal keys are TIED: they are one node. */
#define SW_TIE_NONE UINT32_MAX /* kind: tied to nothing */
typedef struct sw_tie_key {
	uint32_t kind;   /* sw_decision_kind, or that of materialised layouts */
	uint32_t repeat; /* equivalence class among repeated layers */
	int32_t table;
} sw_tie_key;
sw_tie_key sw_tie_of_decision(const sw_analysis *analysis, const sw_mesh *mesh,
                              const sw_decision *decision);
sw_tie_key sw_tie_of_materialised(const sw_analysis *analysis, const sw_mesh *mesh,
                                  const sw_materialised *materialised);
/* Return the equivalence classes of ops at the same position of repeated layers; number NULL: the
 * program is too small for its layers to be tied. */
sw_equivalence sw_equivalent_layers(const sw_model_limits *limits, const sw_program *program,
                                    sw_arena *arena);

/* ---- pairwise_problem.c: nodes and edges before they have costs ------------------------- */

typedef struct sw_model_node { /* tied decisions, or tied materialised layouts */
	int32_t table;
	double trips; /* of all decisions together, per step */
} sw_model_node;
/* Conversions of equal values along an edge. */
typedef struct sw_movement {
	double trips;    /* conversions of one value per step */
	double window_s; /* overlap window of them, seconds per step */
	double count;    /* values of tied layers */
	/* Added time of a conversion that makes a replicated value a term of a partial sum: some
	 * devices must select the neutral element. 0 for constants, mostly that element already. */
	double term_s;
} sw_movement;
typedef struct sw_model_edge {
	int32_t from, to;
	uint32_t conversion;
	sw_movement movement;
} sw_model_edge;

#endif
