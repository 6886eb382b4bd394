/*
 * The planner's driver: program, rules, roles, classes; then every mesh of the strategy: problem, solve, measure; the
 * cheapest that fits in memory is the plan.
 */
#include "plan/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the plan object --------------------------------------------------------------------------------------- */

sw_plan *sw_plan_new(sw_program *canonical, const char *program_path, const sw_cluster *cluster)
{
	sw_plan *plan = sw_alloc(sizeof(*plan));
	sw_arena_init(&plan->arena);
	plan->program = canonical;
	plan->cluster = cluster;
	plan->program_path = sw_arena_text(&plan->arena, program_path ? program_path : "");
	size_t ops = canonical->ops.len, values = canonical->values.len;
	plan->rules = SW_NEW_N(&plan->arena, const sw_rule *, ops + 1);
	plan->strategies = SW_NEW_N(&plan->arena, sw_strategy, ops + 1);
	plan->produced = SW_NEW_N(&plan->arena, uint32_t, values + 1);
	plan->kept = SW_NEW_N(&plan->arena, uint32_t, values + 1);
	plan->n_outputs = (uint32_t)sw_entry(canonical)->results.len;
	plan->outputs = SW_NEW_N(&plan->arena, uint32_t, plan->n_outputs + 1);
	for (size_t i = 0; i < ops; i++) {
		plan->rules[i] = sw_rule_make(canonical, (sw_id)i, &plan->arena);
		plan->strategies[i] = sw_strategy_none(&cluster->atoms);
	}
	sw_layout whole = sw_layout_replicated(&cluster->atoms);
	sw_layouts_id(&plan->layouts, &whole);
	return plan;
}

void sw_plan_free(sw_plan *plan)
{
	if (!plan)
		return;
	sw_program_free(plan->program);
	sw_layouts_clear(&plan->layouts);
	sw_vec_clear(&plan->alternatives);
	sw_vec_clear(&plan->warnings);
	sw_arena_clear(&plan->arena);
	free(plan);
}

bool sw_plan_op_layouts(const sw_plan *plan, sw_id op_id, sw_layout *operands, sw_layout *results)
{
	const sw_op *op = sw_op_at(plan->program, op_id);
	if (op->opcode != SW_OP_WHILE && op->opcode != SW_OP_PARAMETER)
		return sw_rule_layouts(plan->program, op_id, plan->rules[op_id], &plan->cluster->atoms, &plan->strategies[op_id],
		                       operands, results);
	for (uint32_t k = 0; k < op->n_results; k++) {
		results[k] = *sw_plan_layout(plan, plan->produced[op->first_result + k]);
		if (op->opcode == SW_OP_WHILE)
			operands[k] = results[k];
	}
	return true;
}

sw_redistribution sw_plan_redistribution(const sw_cluster *cluster)
{
	return (sw_redistribution){.atoms = &cluster->atoms, .seconds = sw_cost_collective, .context = (void *)cluster,
	                           .local_bandwidth = cluster->device.memory_bandwidth,
	                           .local_overhead_s = cluster->device.kernel_overhead_s};
}

/* ---- checking ---------------------------------------------------------------------------------------------- */

static sw_status check_op(const sw_plan *plan, sw_id op_id, sw_error *err)
{
	const sw_op *op = sw_op_at(plan->program, op_id);
	sw_layout *layouts = sw_alloc(sizeof(sw_layout) * (op->n_operands + op->n_results + 1));
	sw_layout *results = layouts + op->n_operands;
	bool ok = sw_plan_op_layouts(plan, op_id, layouts, results);
	for (uint32_t k = 0; ok && k < op->n_results; k++) {
		const sw_layout *said = sw_plan_layout(plan, plan->produced[op->first_result + k]);
		ok = sw_layout_equal(said, &results[k]) &&
		     sw_layout_valid(&plan->cluster->atoms, sw_value_shape(plan->program, op->first_result + k), said);
	}
	free(layouts);
	return ok ? SW_OK : sw_fail(err, SW_ERR_INTERNAL, "plan: op '%s' has an impossible strategy", op->name);
}

static sw_status check_states(const sw_plan *plan, sw_error *err)
{
	sw_arena arena;
	sw_arena_init(&arena);
	const sw_id *inputs;
	sw_program_inputs(plan->program, plan->program->entry, &arena, &inputs);
	sw_status status = SW_OK;
	for (size_t i = 0; i < plan->program->aliases.len && status == SW_OK; i++) {
		sw_alias alias = plan->program->aliases.data[i];
		if (plan->outputs[alias.output] != plan->produced[inputs[alias.input]])
			status = sw_fail(err, SW_ERR_INTERNAL, "plan: state %u lies differently before and after a step", alias.input);
	}
	sw_arena_clear(&arena);
	return status;
}

static void mark_computations(const sw_program *program, int32_t c, bool *planned)
{
	planned[c] = true;
	for (size_t i = 0; i < program->computations.data[c].ops.len; i++) {
		const sw_op *op = sw_op_at(program, program->computations.data[c].ops.data[i]);
		for (uint32_t k = 0; op->opcode == SW_OP_WHILE && k < op->n_called; k++)
			mark_computations(program, op->called[k], planned);
	}
}

sw_status sw_plan_verify(const sw_plan *plan, sw_error *err)
{
	const sw_program *program = plan->program;
	bool *planned = sw_alloc(program->computations.len + 1);
	mark_computations(program, program->entry, planned);
	sw_status status = SW_OK;
	for (size_t i = 0; i < program->ops.len && status == SW_OK; i++)
		if (planned[program->ops.data[i].computation])
			status = check_op(plan, (sw_id)i, err);
	free(planned);
	return status == SW_OK ? check_states(plan, err) : status;
}

/* Units of the solver's work per mesh: about a second. */
#define SOLVE_WORK INT64_C(400000000)

/* ---- trying a mesh ------------------------------------------------------------------------------------------- */

typedef struct contender {
	bool feasible;
	double model_s, bound_s;
	int64_t needed_bytes;   /* when not feasible: what it would take, by the model */
	int64_t measured_bytes; /* least peak of a partitioned program that was seen, INT64_MAX: none */
	sw_program_cost cost;
} contender;

/* The decisions of the best contender so far. */
typedef struct decisions {
	sw_strategy *strategies;
	uint32_t *produced, *kept, *outputs;
	sw_layouts layouts;
	int32_t n_axes;
	sw_axis axes[SW_MAX_AXES];
} decisions;

static void save(const sw_plan *plan, decisions *d, sw_arena *arena)
{
	size_t ops = plan->program->ops.len, values = plan->program->values.len;
	if (!d->strategies) {
		d->strategies = SW_NEW_N(arena, sw_strategy, ops + 1);
		d->produced = SW_NEW_N(arena, uint32_t, values + 1);
		d->kept = SW_NEW_N(arena, uint32_t, values + 1);
		d->outputs = SW_NEW_N(arena, uint32_t, plan->n_outputs + 1);
	}
	memcpy(d->strategies, plan->strategies, sizeof(sw_strategy) * ops);
	memcpy(d->produced, plan->produced, sizeof(uint32_t) * values);
	memcpy(d->kept, plan->kept, sizeof(uint32_t) * values);
	memcpy(d->outputs, plan->outputs, sizeof(uint32_t) * plan->n_outputs);
	sw_layouts_copy(&d->layouts, &plan->layouts);
	d->n_axes = plan->n_axes;
	memcpy(d->axes, plan->axes, sizeof(d->axes));
}

static void restore(sw_plan *plan, const decisions *d)
{
	memcpy(plan->strategies, d->strategies, sizeof(sw_strategy) * plan->program->ops.len);
	memcpy(plan->produced, d->produced, sizeof(uint32_t) * plan->program->values.len);
	memcpy(plan->kept, d->kept, sizeof(uint32_t) * plan->program->values.len);
	memcpy(plan->outputs, d->outputs, sizeof(uint32_t) * plan->n_outputs);
	sw_layouts_copy(&plan->layouts, &d->layouts);
	plan->n_axes = d->n_axes;
	memcpy(plan->axes, d->axes, sizeof(d->axes));
}

/* Begins where earlier meshes ended, as far as that is possible in this one. */
static sw_status solve_from_starts(const sw_model *model, const sw_plan_options *options, sw_solution *solution, sw_error *err)
{
	const sw_planner *planner = model->planner;
	int32_t **starts = sw_alloc(sizeof(*starts) * (planner->starts.len + 1));
	int n = 0;
	for (size_t i = 0; i < planner->starts.len; i++) {
		starts[n] = sw_alloc(sizeof(int32_t) * model->problem.nodes.len);
		if (sw_start_place(&planner->starts.data[i], model, starts[n]))
			n++;
		else
			free(starts[n]);
	}
	sw_solve_options how = {.work_limit = SOLVE_WORK, .time_limit_s = options->time_limit_s, .quiet = true,
	                        .n_starts = n, .starts = (const int32_t *const *)starts};
	sw_status status = sw_solve(&model->problem, &how, solution, err);
	for (int i = 0; i < n; i++)
		free(starts[i]);
	free(starts);
	return status;
}

/* Solves under a capacity and measures what comes out. Infeasible is an answer, not an error. */
static sw_status solve_once(const sw_model *model, const sw_plan_options *options, sw_plan *plan, contender *c, sw_error *err)
{
	sw_solution solution = {0};
	sw_status status = solve_from_starts(model, options, &solution, err);
	if (status != SW_OK)
		return status;
	c->feasible = solution.answer == SW_SOLVED_OPTIMAL || solution.answer == SW_SOLVED_FEASIBLE;
	c->bound_s = solution.answer == SW_SOLVED_INFEASIBLE ? INFINITY : (double)solution.lower_bound * SW_COST_UNIT_S;
	c->model_s = (double)solution.cost * SW_COST_UNIT_S;
	c->needed_bytes = solution.peak_usage;
	c->measured_bytes = INT64_MAX;
	if (c->feasible) {
		sw_start start;
		sw_start_save(&start, model, solution.assignment);
		sw_vec_push(&model->planner->starts, start);
		sw_model_apply(model, solution.assignment, plan);
		status = sw_plan_verify(plan, err);
		if (status == SW_OK)
			status = options->measure(plan, &c->cost, err);
		c->needed_bytes = c->measured_bytes = c->cost.peak_bytes;
	}
	sw_solution_clear(&solution);
	return status;
}

static int64_t memory_of(const sw_plan *plan, const sw_plan_options *options)
{
	return options->memory_bytes > 0 ? options->memory_bytes : plan->cluster->device.memory_bytes;
}

/* The model's spans are not the partitioned program's liveness to the byte: where the latter exceeds the memory, the capacity
 * is tightened in proportion, and the problem solved again. The bound is the first attempt's: the others exclude more than they must. */
static sw_status try_mesh(sw_planner *planner, const sw_mesh *mesh, const sw_plan_options *options, sw_plan *plan,
                          contender *c, sw_error *err)
{
	int64_t memory = memory_of(plan, options), capacity = memory, least_bytes = INT64_MAX;
	double bound_s = 0;
	sw_status status = SW_OK;
	bool again = true;
	for (int attempt = 0; attempt < 4 && again; attempt++) {
		sw_model model;
		sw_model_init(&model, planner, mesh, capacity);
		*c = (contender){0};
		status = solve_once(&model, options, plan, c, err);
		sw_model_clear(&model);
		bound_s = attempt == 0 ? c->bound_s : bound_s;
		least_bytes = SW_MIN(least_bytes, c->measured_bytes);
		again = status == SW_OK && c->feasible && c->cost.peak_bytes > memory;
		c->feasible = c->feasible && !again;
		if (again)
			capacity = (int64_t)((double)capacity * 0.98 * (double)memory / (double)c->cost.peak_bytes);
	}
	c->bound_s = bound_s;
	c->measured_bytes = least_bytes;
	return status;
}

static bool is_search(const sw_mesh *mesh)
{
	return mesh->n_axes == 0 || mesh->use[0] == SW_AXIS_FREE;
}

/* For the message that nothing fits: the least that a fixed strategy needs when only time counts, or that was seen on the way. */
static sw_status least_memory(sw_planner *planner, const sw_meshes *meshes, const sw_plan_options *options, sw_plan *plan,
                              int64_t *least_bytes, sw_error *err)
{
	sw_status status = SW_OK;
	for (size_t i = 0; i < meshes->len && status == SW_OK; i++) {
		contender c = {.measured_bytes = INT64_MAX};
		sw_model model;
		if (is_search(&meshes->data[i]) && meshes->len > 1)
			continue;
		sw_model_init(&model, planner, &meshes->data[i], INT64_MAX);
		status = solve_once(&model, options, plan, &c, err);
		sw_model_clear(&model);
		*least_bytes = SW_MIN(*least_bytes, c.measured_bytes);
	}
	return status;
}

/* ---- the search over meshes ------------------------------------------------------------------------------------ */

static void add_alternative(sw_plan *plan, const sw_mesh *mesh, const contender *c)
{
	sw_alternative a = {.feasible = c->feasible};
	snprintf(a.name, sizeof(a.name), "%s", mesh->name);
	if (c->feasible) {
		a.step_time_s = c->cost.step_time_s;
		a.compute_s = c->cost.compute_s;
		a.communication_s = c->cost.communication_s;
		a.payload_bytes = c->cost.payload_bytes;
	}
	a.peak_bytes = c->feasible ? c->cost.peak_bytes : c->needed_bytes;
	sw_vec_push(&plan->alternatives, a);
}

static sw_status search(sw_planner *planner, const sw_meshes *meshes, const sw_plan_options *options, sw_plan *plan, sw_error *err)
{
	decisions best = {0};
	contender won = {0};
	double bound_s = -1;
	int64_t least_bytes = INT64_MAX;
	sw_progress progress;
	sw_status status = SW_OK;
	sw_progress_start(&progress, "plan", options->quiet);
	for (size_t i = 0; i < meshes->len && status == SW_OK; i++) {
		contender c;
		sw_progress_update(&progress, (double)i / (double)meshes->len, "%s", meshes->data[i].name);
		status = try_mesh(planner, &meshes->data[i], options, plan, &c, err);
		if (status != SW_OK)
			break;
		add_alternative(plan, &meshes->data[i], &c);
		if (is_search(&meshes->data[i]) || meshes->len == 1)
			bound_s = bound_s < 0 ? c.bound_s : SW_MIN(bound_s, c.bound_s);
		if (!c.feasible)
			least_bytes = SW_MIN(least_bytes, c.measured_bytes);
		if (c.feasible && (!won.feasible || c.cost.step_time_s < won.cost.step_time_s)) {
			won = c;
			save(plan, &best, &planner->arena);
			snprintf(plan->chosen, sizeof(plan->chosen), "%s", meshes->data[i].name);
		}
	}
	sw_progress_end(&progress);
	if (status == SW_OK && !won.feasible)
		status = least_memory(planner, meshes, options, plan, &least_bytes, err);
	if (status == SW_OK && !won.feasible)
		status = sw_fail(err, SW_NO, "no plan fits in %lld bytes per device: the least that was found needs %lld; use more devices, more memory, or zero3",
		                 (long long)memory_of(plan, options), (long long)least_bytes);
	if (status == SW_OK) {
		restore(plan, &best);
		plan->predicted = won.cost;
		plan->model_s = won.model_s;
		plan->lower_bound_s = SW_MAX(0, SW_MIN(bound_s, won.model_s));
		plan->gap = won.model_s > 0 ? 1 - plan->lower_bound_s / won.model_s : 0;
	}
	sw_layouts_clear(&best.layouts);
	return status;
}

static void add_warnings(sw_plan *plan)
{
	int32_t missing[SW_OPCODE_COUNT] = {0};
	for (size_t i = 0; i < plan->program->ops.len; i++)
		if (plan->rules[i]->missing)
			missing[plan->program->ops.data[i].opcode]++;
	for (int o = 0; o < SW_OPCODE_COUNT; o++)
		if (missing[o] > 0)
			sw_vec_push(&plan->warnings, sw_arena_printf(&plan->arena, "%d '%s' ops run replicated: there is no rule for them yet",
			                                             missing[o], sw_opcode_name((sw_opcode)o)));
}

static void planner_init(sw_planner *p, const sw_plan *plan, const sw_sidecar *sidecar, const sw_redistribution *how)
{
	*p = (sw_planner){.program = plan->program, .cluster = plan->cluster, .rules = plan->rules};
	sw_arena_init(&p->arena);
	sw_layouts_copy(&p->layouts, &plan->layouts);
	sw_roles_init(&p->roles, plan->program, sidecar);
	sw_classes_init(&p->classes, &p->roles, plan->rules);
	p->paths = sw_path_cache_new(how);
}

static void planner_clear(sw_planner *p)
{
	sw_path_cache_free(p->paths);
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
                       const sw_cluster *cluster, const sw_plan_options *options, sw_plan **result, sw_error *err)
{
	*result = NULL;
	double start_s = sw_now_s();
	sw_meshes meshes = {0};
	sw_status status = sw_meshes_of(cluster, &options->strategy, batch_of(program, sidecar), &meshes, err);
	if (status != SW_OK)
		return status;
	sw_program *canonical;
	status = sw_rewrite_canonical(program, &canonical, err);
	if (status != SW_OK) {
		sw_vec_clear(&meshes);
		return status;
	}
	sw_plan *plan = sw_plan_new(canonical, program_path, cluster);
	plan->program_hash = sw_program_hash(program);
	plan->strategy = options->strategy;
	snprintf(plan->scope, sizeof(plan->scope),
	         "the additive model (no overlap), one split per axis and op from the classes of dots, state and data, at most two axes of adjacent atoms");
	sw_redistribution how = sw_plan_redistribution(cluster);
	sw_planner planner;
	planner_init(&planner, plan, sidecar, &how);
	status = search(&planner, &meshes, options, plan, err);
	planner_clear(&planner);
	sw_vec_clear(&meshes);
	add_warnings(plan);
	plan->planning_s = sw_now_s() - start_s;
	if (status == SW_OK)
		*result = plan;
	else
		sw_plan_free(plan);
	return status;
}

sw_status sw_plan_replicated(const sw_program *program, const sw_cluster *cluster, sw_plan **result, sw_error *err)
{
	sw_program *canonical;
	*result = NULL;
	sw_status status = sw_rewrite_canonical(program, &canonical, err);
	if (status != SW_OK)
		return status;
	sw_plan *plan = sw_plan_new(canonical, program->source, cluster);
	plan->program_hash = sw_program_hash(program);
	plan->strategy.kind = SW_PLAN_SERIAL;
	snprintf(plan->chosen, sizeof(plan->chosen), "serial");
	*result = plan;
	return SW_OK;
}
