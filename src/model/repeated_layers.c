/*
 * Repeated layers do alike: decisions that stand in the same place of each are one node of the
 * problem, and so are their materialised_values. It makes large problems small. Where they are
 * wanted untied, a mesh is searched so first, and once more from there with them free.
 */
#include "model/internal.h"

enum { OF_MATERIALISED = SW_DECISION_OUTPUT + 1 };

bool sw_equivalence_is_tied(const sw_model_limits *limits, const sw_program *program, bool untied)
{
	return !untied && (double)program->ops.len >= limits->tied_ops;
}

/* A greater radius tells layers apart that are alike, a smaller one ties what is not. */
sw_equivalence sw_equivalent_layers(const sw_model_limits *limits, const sw_program *program,
                                    sw_arena *arena)
{
	return sw_equivalence_is_tied(limits, program, false)
	               ? sw_program_equivalence(program, (int32_t)limits->layer_radius, arena)
	               : (sw_equivalence){0};
}

static bool are_tied(const sw_analysis *analysis, const sw_mesh *mesh)
{
	return sw_equivalence_is_tied(analysis->limits, analysis->program,
	                              analysis->untied && mesh->freed);
}

static sw_equivalence_key alone(int32_t strategy_table)
{
	return (sw_equivalence_key){.kind = SW_PLACE_ALONE, .strategy_table = strategy_table};
}

static sw_equivalence_key class_of_value(const sw_analysis *p, uint32_t kind, sw_id value,
                                         int32_t strategy_table)
{
	return (sw_equivalence_key){kind, p->layers.of_value[value], strategy_table};
}

sw_equivalence_key sw_class_of_decision(const sw_analysis *p, const sw_mesh *mesh,
                                        const sw_decision *decision)
{
	const sw_boundary *boundary;
	if (!are_tied(p, mesh))
		return alone(decision->strategy_table);
	switch ((sw_decision_kind)decision->kind) {
	case SW_DECISION_OP:
		return (sw_equivalence_key){SW_DECISION_OP, p->layers.number[decision->index],
		                            decision->strategy_table};
	case SW_DECISION_INPUT:
		return class_of_value(p, SW_DECISION_INPUT, p->roles.inputs[decision->index],
		                      decision->strategy_table);
	case SW_DECISION_BOUNDARY:
		boundary = &p->roles.boundaries.data[decision->index];
		return boundary->decides
		               ? alone(decision->strategy_table)
		               : class_of_value(p, SW_DECISION_BOUNDARY, boundary->values[0],
		                                decision->strategy_table);
	case SW_DECISION_OUTPUT:
		break; /* a state's lies as its input; others are few */
	}
	return alone(decision->strategy_table);
}

sw_equivalence_key sw_class_of_materialised(const sw_analysis *p, const sw_mesh *mesh,
                                            const sw_materialised *materialised)
{
	if (!are_tied(p, mesh))
		return alone(materialised->strategy_table);
	return class_of_value(p, OF_MATERIALISED, materialised->value,
	                      materialised->strategy_table);
}
