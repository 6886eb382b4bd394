/*
 * The planner's driver: canonical program; for it and what padding makes of it meshes, rules,
 * roles, classes, search.
 */
#include "search/internal.h"

#include <math.h>
#include <string.h>

static bool splits_some_op(const sw_plan *plan)
{
	for (size_t i = 0; i < plan->program->ops.len; i++)
		for (int32_t a = 0; a < plan->strategies[i].n; a++)
			if (plan->strategies[i].atom[a].kind == SW_CHOICE_SPLIT)
				return true;
	return false;
}

static void add_warnings(sw_plan *plan)
{
	if (plan->cluster->n_devices > 1 && !splits_some_op(plan))
		sw_vec_push(
			&plan->warnings,
			sw_arena_printf(
				&plan->arena, "every device does the whole step: %s",
				plan->strategy.kind == SW_PLAN_AUTO
					? "nothing faster was found"
					: "the devices divide nothing that this strategy splits"));
	int32_t missing[SW_OPCODE_COUNT] = {0};
	for (size_t i = 0; i < plan->program->ops.len; i++)
		if (plan->rules[i]->missing)
			missing[plan->program->ops.data[i].opcode]++;
	for (int o = 0; o < SW_OPCODE_COUNT; o++)
		if (missing[o] > 0)
			sw_vec_push(
				&plan->warnings,
				sw_arena_printf(
					&plan->arena,
					"%d '%s' ops run replicated: there is no rule for them yet",
					missing[o], sw_opcode_name((sw_opcode)o)));
}

static uint32_t *absent(sw_planner *p, size_t n)
{
	uint32_t *numbers = SW_NEW_N(&p->arena, uint32_t, n + 1);
	memset(numbers, 0xff, sizeof(*numbers) * n);
	return numbers;
}

void sw_planner_init(sw_planner *p, const sw_plan *plan, const sw_sidecar *sidecar)
{
	*p = (sw_planner){.program = plan->program,
	                  .cluster = plan->cluster,
	                  .rules = plan->rules,
	                  .known_step_s = INFINITY,
	                  .known_s = INFINITY,
	                  .hidden_weight = 1,
	                  .threads = sw_cpu_count(),
	                  .tolerance = 1};
	p->own_paths = plan->paths ? NULL : sw_path_store_new(plan->cluster);
	p->paths = plan->paths ? plan->paths : p->own_paths;
	sw_arena_init(&p->arena);
	sw_layouts_copy(&p->layouts, &plan->layouts);
	sw_roles_init(&p->roles, plan->program, sidecar);
	sw_classes_init(&p->classes, &p->roles, plan->rules);
	p->pinned_inputs = SW_NEW_N(&p->arena, const sw_option *, p->roles.n_inputs + 1);
	p->pinned_ops = SW_NEW_N(&p->arena, const sw_option *, p->program->ops.len + 1);
	p->like = absent(p, p->program->ops.len);
	p->decision_like[SW_DECISION_OP] = absent(p, p->program->ops.len);
	p->decision_like[SW_DECISION_INPUT] = absent(p, p->roles.n_inputs);
	p->decision_like[SW_DECISION_BOUNDARY] = absent(p, p->roles.boundaries.len);
	p->decision_like[SW_DECISION_OUTPUT] = absent(p, sw_entry(p->program)->results.len);
}

void sw_planner_clear(sw_planner *p)
{
	sw_overlap_free(p->overlap);
	sw_classes_clear(&p->classes);
	sw_roles_clear(&p->roles);
	sw_layouts_clear(&p->layouts);
	for (size_t i = 0; i < p->starts.len; i++)
		sw_start_clear(&p->starts.data[i]);
	sw_vec_clear(&p->starts);
	sw_path_store_free(p->own_paths);
	sw_vec_clear(&p->strategy_tables);
	sw_map_clear(&p->strategy_table_index);
	sw_map_clear(&p->like_index);
	sw_map_clear(&p->decision_like_index);
	sw_text_clear(&p->decision_key);
	sw_vec_clear(&p->priced);
	sw_map_clear(&p->priced_index);
	sw_arena_clear(&p->arena);
}

static void say_method(sw_method method, sw_plan *plan)
{
	size_t length = strlen(plan->scope);
	if (method != SW_METHOD_EXACT)
		snprintf(plan->scope + length, sizeof(plan->scope) - length,
		         "; solved by the method %s%s%s", sw_method_name(method),
		         method == SW_METHOD_SEGMENTS ? " (effort 2), whose bound is of one pass"
		                                      : "",
		         sw_method_has_bound(method) ? "" : ", which proves no bound");
}

sw_status sw_plan_make(const sw_program *program, const char *program_path,
                       const sw_sidecar *sidecar, const sw_cluster *cluster,
                       const sw_plan_options *options, sw_plan **result, sw_error *err)
{
	double start_s = sw_now_s();
	sw_program *canonical;
	*result = NULL;
	sw_status status = sw_rewrite_canonical(program, &canonical, err);
	if (status == SW_OK)
		status = sw_plan_leaves(canonical, program_path, sidecar, cluster, options, result,
		                        err);
	if (status == SW_OK) {
		add_warnings(*result);
		say_method(options->method, *result);
		(*result)->memory_bytes = options->memory_bytes;
		(*result)->planning_s = sw_now_s() - start_s;
	}
	return status;
}

sw_status sw_plan_replicated(const sw_program *program, const sw_cluster *cluster, sw_plan **result,
                             sw_error *err)
{
	sw_program *canonical;
	*result = NULL;
	sw_status status = sw_rewrite_canonical(program, &canonical, err);
	if (status != SW_OK)
		return status;
	sw_plan *plan = sw_plan_new(canonical, program->source, cluster);
	plan->program_hash = sw_program_hash(canonical);
	plan->strategy.kind = SW_PLAN_SERIAL;
	snprintf(plan->chosen, sizeof(plan->chosen), "serial");
	*result = plan;
	return SW_OK;
}
