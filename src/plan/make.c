/*
 * The planner's driver: canonical program, meshes, rules, roles, classes, search.
 */
#include "plan/internal.h"

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
			sw_arena_printf(&plan->arena, "every device does the whole step: %s",
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
				sw_arena_printf(&plan->arena,
			                        "%d '%s' ops run replicated: there is no rule for them yet",
			                        missing[o], sw_opcode_name((sw_opcode)o)));
}

void sw_planner_init(sw_planner *p, const sw_plan *plan, const sw_sidecar *sidecar)
{
	*p = (sw_planner){.program = plan->program, .cluster = plan->cluster, .rules = plan->rules};
	sw_arena_init(&p->arena);
	sw_layouts_copy(&p->layouts, &plan->layouts);
	sw_roles_init(&p->roles, plan->program, sidecar);
	sw_classes_init(&p->classes, &p->roles, plan->rules);
}

void sw_planner_clear(sw_planner *p)
{
	sw_classes_clear(&p->classes);
	sw_roles_clear(&p->roles);
	sw_layouts_clear(&p->layouts);
	for (size_t i = 0; i < p->starts.len; i++)
		sw_start_clear(&p->starts.data[i]);
	sw_vec_clear(&p->starts);
	sw_vec_clear(&p->profiles);
	sw_map_clear(&p->profile_index);
	sw_arena_clear(&p->arena);
}

static int64_t greatest_divisor(int64_t a, int64_t b)
{
	return b == 0 ? a : greatest_divisor(b, a % b);
}

/* What the leading dimensions of all data inputs have in common. */
static int64_t batch_of(const sw_program *program, const sw_sidecar *sidecar)
{
	sw_arena arena;
	sw_arena_init(&arena);
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(program, program->entry, &arena, &inputs);
	int64_t batch = 0;
	for (uint32_t i = 0; i < n; i++) {
		sw_shape shape = sw_value_shape(program, inputs[i]);
		if (sidecar->inputs[i].role == SW_ROLE_DATA && shape.rank > 0)
			batch = greatest_divisor(shape.dims[0], batch);
	}
	sw_arena_clear(&arena);
	return SW_MAX(batch, 1);
}

sw_status sw_plan_make(const sw_program *program, const char *program_path, const sw_sidecar *sidecar,
                       const sw_cluster *cluster, const sw_plan_options *options, sw_plan **result,
                       sw_error *err)
{
	*result = NULL;
	double start_s = sw_now_s();
	sw_meshes meshes = {0};
	sw_status status =
		sw_meshes_of(cluster, &options->strategy, batch_of(program, sidecar), &meshes, err);
	if (status != SW_OK)
		return status;
	sw_program *canonical;
	status = sw_rewrite_canonical(program, &canonical, err);
	if (status != SW_OK) {
		sw_vec_clear(&meshes);
		return status;
	}
	sw_plan *plan = sw_plan_new(canonical, program_path, cluster);
	plan->program_hash = sw_program_hash(canonical);
	plan->strategy = options->strategy;
	snprintf(plan->scope, sizeof(plan->scope),
	         "plans on a mesh of at most two axes in which communication does not hide behind compute");
	sw_planner planner;
	sw_planner_init(&planner, plan, sidecar);
	status = sw_plan_search(&planner, &meshes, options, plan, err);
	sw_planner_clear(&planner);
	sw_vec_clear(&meshes);
	plan->planning_s = sw_now_s() - start_s;
	if (status == SW_OK) {
		add_warnings(plan);
		*result = plan;
	} else {
		sw_plan_free(plan);
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
