/* The analysis: everything that the program, its cluster and its user determine before any mesh is
 * modelled. */
#include "model/internal.h"

static void find_passes(sw_analysis *a, const sw_plan *plan)
{
	const sw_program *program = plan->program;
	if (!plan->passes)
		return;
	bool *is_later = SW_NEW_N(&a->arena, bool, program->ops.len + 1),
	     *is_handed_on = SW_NEW_N(&a->arena, bool, program->values.len + 1);
	for (sw_id id = 0; id < program->ops.len; id++)
		is_later[id] = sw_plan_pass(plan, id) == SW_LATER_PASS;
	for (sw_id v = 0; v < program->values.len; v++)
		is_handed_on[v] = sw_plan_is_handed_on(plan, v);
	a->is_later = is_later;
	a->is_handed_on = is_handed_on;
}

void sw_analysis_init(sw_analysis *a, const sw_plan *plan, const sw_sidecar *sidecar,
                      sw_analysis_options options)
{
	*a = (sw_analysis){.program = plan->program,
	                   .cluster = plan->cluster,
	                   .rules = plan->rules,
	                   .limits = options.limits ? options.limits : &sw_model_default_limits,
	                   .overlap_weight = 1};
	sw_arena_init(&a->arena);
	sw_roles_init(&a->roles, plan->program, sidecar);
	sw_fused_shares_find(a);
	sw_classes_init(&a->classes, &a->roles, plan->rules);
	sw_variables_find(a, plan, sidecar);
	if (!options.no_overlap) {
		a->overlap = sw_overlap_new(&a->roles, plan->cluster, a->limits);
		a->overlap_weight = sw_overlap_weight(
			&a->roles, plan->cluster, (1u << plan->cluster->atoms.n) - 1, a->limits);
	}
	a->layers =
		sw_program_equivalence(plan->program, (int32_t)a->limits->layer_radius, &a->arena);
	find_passes(a, plan);
	a->pinned_inputs = SW_NEW_N(&a->arena, const sw_option *, a->roles.n_inputs + 1);
	a->pinned_ops = SW_NEW_N(&a->arena, const sw_option *, plan->program->ops.len + 1);
}

void sw_analysis_clear(sw_analysis *a)
{
	sw_overlap_free(a->overlap);
	sw_classes_clear(&a->classes);
	sw_roles_clear(&a->roles);
	sw_arena_clear(&a->arena);
}
