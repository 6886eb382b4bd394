/* What the files of this folder share with each other alone. */
#ifndef SW_MODEL_INTERNAL_H
#define SW_MODEL_INTERNAL_H

#include "model/model.h"

/* ---- equivalence.c: decisions that may do the same, whatever the mesh
 * ----------------------------- */

typedef struct sw_split_list {
	const sw_split *first;
	uint32_t n;
} sw_split_list;
sw_split_list sw_op_splits(const sw_analysis *analysis, sw_id op);
sw_split_list sw_value_splits(const sw_analysis *analysis, sw_id value);
/* The value whose layout a decision that is not an op decides. */
sw_id sw_decision_value(const sw_analysis *analysis, sw_decision_kind kind, uint32_t index);
/* What the user has decided of the decision, per atom; NULL: nothing. */
const sw_option *sw_pinned(const sw_analysis *analysis, sw_decision_kind kind, uint32_t index);
/* Bytes that are equal iff the shapes are. */
void sw_key_shape(sw_text *key, sw_shape shape);
/* The number of ops like this one, whose strategies cost the same. */
uint32_t sw_op_equivalence(sw_memo *memo, sw_id op);
/* The number of decisions like this one, whose strategy_tables are the same in every mesh; all pins
 * are resolved. */
uint32_t sw_decision_equivalence(sw_memo *memo, sw_decision_kind kind, uint32_t index);

/* Number of the decision's strategy_table under the mesh (strategy_tables.c). */
int32_t sw_strategy_table_of(sw_memo *memo, const sw_mesh *mesh, sw_decision_kind kind,
                             uint32_t index);
/* How many candidates the decisions of ops have in the mesh; ops that are alike count once. */
double sw_mesh_candidates(sw_memo *memo, const sw_mesh *mesh);
bool sw_candidate_strategy(const sw_atoms *atoms, const sw_mesh *mesh, const sw_rule *rule,
                           const sw_candidate *candidate, sw_strategy *strategy);

/* ---- repeated_layers.c: layers that are alike do alike ------------------------------------------
 */

/* What decisions, or materialised_values, have in common that are one node. */
#define SW_PLACE_ALONE UINT32_MAX /* kind: a node of its own */
typedef struct sw_equivalence_key {
	uint32_t kind, repeat;
	int32_t strategy_table;
} sw_equivalence_key;
sw_equivalence_key sw_class_of_decision(const sw_analysis *analysis, const sw_mesh *mesh,
                                        const sw_decision *decision);
sw_equivalence_key sw_class_of_materialised(const sw_analysis *analysis, const sw_mesh *mesh,
                                            const sw_materialised *materialised);

/* The classes of ops that stand in the same place of repeated layers; number NULL: the program is
 * too small for its layers to be tied. */
sw_equivalence sw_equivalent_layers(const sw_model_limits *limits, const sw_program *program,
                                    sw_arena *arena);

#endif
