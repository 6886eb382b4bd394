/*
 * Tied layers: the decisions at the same position of each repeated layer are one node of the
 * problem, and so are their materialised layouts. That makes large problems small. Where the user
 * wants layers untied, a mesh is searched with tied layers first, then once more from that solution
 * with untied ones.
 */
#include "model/internal.h"

enum { OF_MATERIALISED = SW_DECISION_OUTPUT + 1 }; /* and of each sw_kept, one more */

bool sw_layers_are_tied(const sw_analysis *analysis, const sw_mesh *mesh, double candidates)
{
	return !mesh->untied && candidates > analysis->limits->untied_work;
}

static sw_tie_key tie_nothing(int32_t table)
{
	return (sw_tie_key){.kind = SW_TIE_NONE, .table = table};
}

static sw_tie_key tie_of_value(const sw_analysis *analysis, uint32_t kind, sw_id value,
                               int32_t table)
{
	return (sw_tie_key){kind, analysis->layers.of_value[value], table};
}

sw_tie_key sw_tie_of_decision(const sw_model *model, const sw_decision *decision)
{
	const sw_analysis *analysis = model->analysis;
	const sw_boundary *boundary;
	if (!model->tied)
		return tie_nothing(decision->table);
	switch ((sw_decision_kind)decision->kind) {
	case SW_DECISION_OP:
		return (sw_tie_key){SW_DECISION_OP, analysis->layers.number[decision->index],
		                    decision->table};
	case SW_DECISION_INPUT:
		return tie_of_value(analysis, SW_DECISION_INPUT,
		                    analysis->roles.inputs[decision->index], decision->table);
	case SW_DECISION_BOUNDARY:
		boundary = &analysis->roles.boundaries.data[decision->index];
		return boundary->is_predicate ? tie_nothing(decision->table)
		                              : tie_of_value(analysis, SW_DECISION_BOUNDARY,
		                                             boundary->values[0], decision->table);
	case SW_DECISION_OUTPUT:
		/* A state's output is its input's node; the others are few. */
		break;
	}
	return tie_nothing(decision->table);
}

sw_tie_key sw_tie_of_materialised(const sw_model *model, const sw_materialised *materialised)
{
	if (!model->tied)
		return tie_nothing(materialised->table);
	return tie_of_value(model->analysis, OF_MATERIALISED + materialised->kept, materialised->value,
	                    materialised->table);
}
