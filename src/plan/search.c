/* The search of one mesh: problem, solve, measure, and again within memory if what is found does not fit. */
#include "plan/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A search ends this near its bound. */
#define NEAR_ENOUGH 0.001
/* ---- trying a mesh ------------------------------------------------------------------------------------------- */

static void note_free(sw_planner *planner, const sw_program_cost *cost)
{
	if (planner->free.step_time_s == 0 || cost->step_time_s < planner->free.step_time_s)
		planner->free = *cost;
}

bool sw_is_search(const sw_mesh *mesh)
{
	return mesh->n_axes == 0 || mesh->search;
}

/* 0: there is no such limit. */
static int64_t to_units(double seconds)
{
	double units = seconds / SW_COST_UNIT_S;
	return units < 4e18 ? llround(units) : 0;
}

/* A search begins where earlier meshes ended, as far as that is possible in this one. */
static sw_status solve_from_starts(const sw_model *model, const sw_plan_options *options, limits each,
                                   int threads, sw_solution *solution, sw_error *err)
{
	const sw_planner *planner = model->planner;
	int32_t **starts = sw_alloc(sizeof(*starts) * (planner->starts.len + 1));
	int n = 0;
	for (size_t i = 0; sw_is_search(model->mesh) && i < planner->starts.len; i++) {
		starts[n] = sw_alloc(sizeof(int32_t) * model->problem.nodes.len);
		if (sw_start_place(&planner->starts.data[i], model, starts[n]))
			n++;
		else
			free(starts[n]);
	}
	sw_solve_options how = {.work_limit = each.work,
	                        .time_limit_s = each.seconds,
	                        .gap = NEAR_ENOUGH,
	                        .cutoff = to_units(each.below_s),
	                        .seed = options->seed,
	                        .threads = threads,
	                        .quiet = true,
	                        .n_starts = n,
	                        .starts = (const int32_t *const *)starts};
	sw_status status = sw_solve_by(options->method, &model->problem, &how, solution, err);
	for (int i = 0; i < n; i++)
		free(starts[i]);
	free(starts);
	return status;
}

int64_t sw_memory_of(const sw_plan *plan, const sw_plan_options *options)
{
	return options->memory_bytes > 0 ? options->memory_bytes : plan->cluster->device.memory_bytes;
}

/* What is measured is kept if it takes less memory than what was. */
static sw_status measure_again(sw_plan *plan, const sw_plan_options *options, sw_program_cost *cost,
                               bool *kept, sw_error *err)
{
	sw_program_cost again;
	sw_status status = options->measure(plan, &again, err);
	*kept = status == SW_OK && again.peak_bytes < cost->peak_bytes;
	if (*kept)
		*cost = again;
	return status;
}

/* Streams are worth their loops only where they save a good part of what is missing. */
#define PARTS_OF_MISSING 8

static sw_status measure_streams(sw_plan *plan, const sw_plan_options *options, sw_program_cost *cost,
                                 sw_error *err)
{
	int64_t missing = cost->peak_bytes - sw_memory_of(plan, options);
	size_t bytes = sizeof(sw_strategy) * plan->program->ops.len;
	sw_strategy *before = sw_alloc(bytes);
	sw_status status = SW_OK;
	bool kept = true;
	memcpy(before, plan->strategies, bytes);
	if (sw_plan_stream(plan, SW_MAX(missing / PARTS_OF_MISSING, 1)) > 0)
		status = measure_again(plan, options, cost, &kept, err);
	if (!kept)
		memcpy(plan->strategies, before, bytes);
	free(before);
	return status;
}

/* What one reader has moved serves the next; where that takes too much memory, each moves it again, and what is too large even so is
 * streamed. */
static sw_status measure(sw_plan *plan, const sw_plan_options *options, sw_program_cost *cost,
                         sw_error *err)
{
	plan->regather = false;
	sw_status status = options->measure(plan, cost, err);
	if (status != SW_OK || cost->peak_bytes <= sw_memory_of(plan, options))
		return status;
	plan->regather = true;
	status = measure_again(plan, options, cost, &plan->regather, err);
	if (status != SW_OK || cost->peak_bytes <= sw_memory_of(plan, options))
		return status;
	return measure_streams(plan, options, cost, err);
}

/* Kernels run one after the other: no plan of the mesh takes less than the cheapest candidates of all ops. */
static double kernels_s(const sw_problem *problem)
{
	double sum = 0;
	for (size_t i = 0; i < problem->nodes.len; i++) {
		const sw_problem_node *node = &problem->nodes.data[i];
		int64_t cheapest = node->cost[0];
		for (int32_t k = 1; k < node->strategies; k++)
			cheapest = SW_MIN(cheapest, node->cost[k]);
		sum += (double)cheapest * SW_COST_UNIT_S;
	}
	return sum;
}

/* What a bound by the model says of steps. A step takes no less than its kernels and the communication that nothing can run beside, and no
 * less than all its communication: w times the latter, and the former, are the model's sum, so that 1 + w steps take no less than that. */
double sw_steps_bound_s(const sw_planner *planner, double model_s)
{
	return planner->overlap ? model_s / (1 + planner->hidden_weight) : model_s;
}

void sw_trial_give_up(trial *t, double bound_s)
{
	t->c.feasible = false;
	t->c.hopeless_s = bound_s;
}

/* Solves under the model's capacity. Infeasible is an answer, not an error. */
static sw_status solve_once(trial *t, const sw_plan_options *options, sw_error *err)
{
	sw_solution solution = {0};
	contender *c = &t->c;
	sw_status status = solve_from_starts(&t->model, options, c->each, t->threads, &solution, err);
	if (status != SW_OK)
		return status;
	c->feasible = solution.answer == SW_SOLVED_OPTIMAL || solution.answer == SW_SOLVED_FEASIBLE;
	c->bound_s = solution.answer == SW_SOLVED_INFEASIBLE
	                     ? INFINITY
	                     : (double)solution.lower_bound * SW_COST_UNIT_S;
	c->timed_out = c->timed_out || solution.timed_out;
	c->model_s = (double)solution.cost * SW_COST_UNIT_S;
	c->measured_bytes = INT64_MAX;
	c->applied = c->feasible && c->bound_s < c->each.below_s;
	if (c->feasible && c->bound_s >= c->each.worth_s)
		sw_trial_give_up(t, c->bound_s);
	if (c->applied) {
		sw_start start;
		sw_start_save(&start, &t->model, solution.assignment);
		sw_vec_push(&t->starts, start);
		sw_model_apply(&t->model, solution.assignment, t->plan);
	}
	sw_solution_clear(&solution);
	return SW_OK;
}

/* The model counts some bytes twice and others not at all. Where it counts more than there are for what was found without a limit, its
 * capacity is raised in that proportion: a looser limit still bounds from below. */
static void calibrate(sw_model *model, const sw_start *found, int64_t measured_bytes)
{
	int32_t *assignment = sw_alloc(sizeof(int32_t) * (model->problem.nodes.len + 1));
	sw_evaluation counted;
	if (sw_start_place(found, model, assignment)) {
		sw_problem_evaluate(&model->problem, assignment, &counted);
		double ratio = (double)counted.peak_usage / (double)measured_bytes;
		if (ratio > 1)
			model->problem.capacity = (int64_t)((double)model->problem.capacity * ratio);
	}
	free(assignment);
}

/* ---- attempts ------------------------------------------------------------------------------------------------------ */

/* First without a limit: what then fits needs no memory model. Otherwise the model's spans limit the search; where the partitioned
 * program still exceeds the memory (spans are not its liveness to the byte), the capacity is tightened in proportion, and the problem
 * solved again. The bound is that of the first attempt whose limit was no tighter than it must be. A mesh whose model is not built in
 * time has no more to say. */
#define MOST_ATTEMPTS 5

void sw_trial_begin(trial *t, const sw_mesh *mesh, limits each)
{
	t->mesh = mesh;
	t->c = (contender){.each = each};
	t->attempt = 0;
	t->again = true;
	t->capacity = t->least_bytes = INT64_MAX;
	t->bound_s = t->least_s = 0;
}

void sw_trial_build(trial *t, sw_planner *planner)
{
	if (!sw_model_init(&t->model, planner, t->mesh, t->capacity)) {
		sw_model_clear(&t->model);
		t->c.timed_out = true;
		t->again = false;
		return;
	}
	if (t->attempt == 1)
		calibrate(&t->model, &t->starts.data[t->starts.len - 1], t->c.cost.peak_bytes);
	t->capacity = t->model.problem.capacity;
	t->c = (contender){.each = t->c.each, .timed_out = t->c.timed_out};
	t->least_s = kernels_s(&t->model.problem);
}

void sw_trial_solve(trial *t, const sw_plan_options *options)
{
	t->status = solve_once(t, options, &t->err);
}

void sw_trial_measure(trial *t, const sw_plan_options *options)
{
	contender *c = &t->c;
	if (t->status != SW_OK || !c->feasible)
		return;
	t->status = sw_plan_verify(t->plan, &t->err);
	if (t->status == SW_OK)
		t->status = measure(t->plan, options, &c->cost, &t->err);
	c->measured_bytes = c->cost.peak_bytes;
}

void sw_trial_judge(trial *t, sw_planner *planner, const sw_plan_options *options, least *small)
{
	contender *c = &t->c;
	int64_t memory = sw_memory_of(t->plan, options);
	sw_model_clear(&t->model);
	if (t->attempt == 0 || (t->attempt == 1 && isfinite(c->bound_s)))
		t->bound_s = c->bound_s;
	t->least_bytes = SW_MIN(t->least_bytes, c->measured_bytes);
	bool exceeds = t->status == SW_OK && c->feasible && c->cost.peak_bytes > memory;
	if (t->attempt == 0 && t->status == SW_OK && c->feasible)
		note_free(planner, &c->cost);
	if (exceeds)
		sw_least_note(small, t->plan, t->mesh, &c->cost);
	c->feasible = c->feasible && !exceeds;
	t->again = exceeds && !planner->unlimited && t->attempt + 1 < MOST_ATTEMPTS;
	if (t->again)
		t->capacity = t->attempt == 0 ? memory
		                              : (int64_t)((double)t->capacity * 0.98 * (double)memory /
		                                          (double)c->cost.peak_bytes);
	t->attempt++;
}

void sw_trial_end(trial *t, sw_planner *planner)
{
	t->c.bound_s = t->bound_s;
	t->c.least_s = SW_MAX(t->least_s, sw_steps_bound_s(planner, t->bound_s));
	t->c.measured_bytes = t->least_bytes;
	for (size_t i = 0; i < t->starts.len; i++)
		sw_vec_push(&planner->starts, t->starts.data[i]);
	t->starts.len = 0;
}
