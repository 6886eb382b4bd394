/*
 * The search over meshes: problem, solve, measure; the cheapest that fits in memory wins. Each search begins where the
 * earlier ones ended.
 */
#include "plan/contest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The solver's work; a second is about 5e8 units. A fixed strategy gets the same alone and as a contender of `auto`, and begins
 * from nothing, so that `auto` is never worse than any of them; searches share theirs. */
#define FIXED_WORK INT64_C(600000000)
#define SEARCH_WORK INT64_C(6000000000)
#define LEAST_SEARCH_WORK INT64_C(400000000)
#define MOST_SEARCH_WORK INT64_C(1500000000)
/* A search ends this near its bound. */
#define NEAR_ENOUGH 0.001
/* A fixed strategy is given up where its bound is this far above a step that is had with another rewrite of the program. */
#define FIXED_SLACK 1.1

/* ---- trying a mesh ------------------------------------------------------------------------------------------- */

static void note_free(sw_planner *planner, const sw_program_cost *cost)
{
	if (planner->free.step_time_s == 0 || cost->step_time_s < planner->free.step_time_s)
		planner->free = *cost;
}

static bool is_search(const sw_mesh *mesh)
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
                                   sw_solution *solution, sw_error *err)
{
	const sw_planner *planner = model->planner;
	int32_t **starts = sw_alloc(sizeof(*starts) * (planner->starts.len + 1));
	int n = 0;
	for (size_t i = 0; is_search(model->mesh) && i < planner->starts.len; i++) {
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
	                        .quiet = true,
	                        .n_starts = n,
	                        .starts = (const int32_t *const *)starts};
	sw_status status = sw_solve_by(options->method, &model->problem, &how, solution, err);
	for (int i = 0; i < n; i++)
		free(starts[i]);
	free(starts);
	return status;
}

static int64_t memory_of(const sw_plan *plan, const sw_plan_options *options)
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
	int64_t missing = cost->peak_bytes - memory_of(plan, options);
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
	if (status != SW_OK || cost->peak_bytes <= memory_of(plan, options))
		return status;
	plan->regather = true;
	status = measure_again(plan, options, cost, &plan->regather, err);
	if (status != SW_OK || cost->peak_bytes <= memory_of(plan, options))
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
static double steps_bound_s(const sw_planner *planner, double model_s)
{
	return planner->overlap ? model_s / (1 + planner->hidden_weight) : model_s;
}

static double bound_of(const sw_solution *solution)
{
	return solution->answer == SW_SOLVED_INFEASIBLE ? INFINITY
	                                                : (double)solution->lower_bound * SW_COST_UNIT_S;
}

/* Solves under a capacity and measures what comes out. Infeasible is an answer, not an error. */
static sw_status solve_once(const sw_model *model, const sw_plan_options *options, sw_plan *plan,
                            contender *c, sw_error *err)
{
	sw_solution solution = {0};
	sw_status status = solve_from_starts(model, options, c->each, &solution, err);
	if (status != SW_OK)
		return status;
	c->feasible = solution.answer == SW_SOLVED_OPTIMAL || solution.answer == SW_SOLVED_FEASIBLE;
	c->bound_s = bound_of(&solution);
	c->timed_out = c->timed_out || solution.timed_out;
	c->model_s = (double)solution.cost * SW_COST_UNIT_S;
	c->measured_bytes = INT64_MAX;
	c->hopeless = c->feasible && c->bound_s >= c->each.below_s;
	c->feasible = c->feasible && !c->hopeless;
	if (c->feasible) {
		sw_start start;
		sw_start_save(&start, model, solution.assignment);
		sw_vec_push(&model->planner->starts, start);
		sw_model_apply(model, solution.assignment, plan);
		status = sw_plan_verify(plan, err);
		if (status == SW_OK)
			status = measure(plan, options, &c->cost, err);
		c->measured_bytes = c->cost.peak_bytes;
	}
	sw_solution_clear(&solution);
	return status;
}

/* What the model counts for the plan that was found last, in this mesh, for each byte that its program takes: it counts some twice and
 * others not at all. */
static double counted_per_byte(const sw_model *model, int64_t measured_bytes)
{
	const sw_planner *planner = model->planner;
	const sw_start *found = &planner->starts.data[planner->starts.len - 1];
	int32_t *assignment = sw_alloc(sizeof(int32_t) * (model->problem.nodes.len + 1));
	sw_evaluation counted = {0};
	if (sw_start_place(found, model, assignment))
		sw_problem_evaluate(&model->problem, assignment, &counted);
	free(assignment);
	return counted.peak_usage > 0 ? (double)counted.peak_usage / (double)measured_bytes : 1;
}

#define TIGHTER 0.98

/* By what was measured of the plan that the attempt before found. The first limit is no tighter than the memory, and looser where the model
 * counts more than there is: so it still bounds from below. Later ones exclude the plan that did not fit. */
static void set_capacity(sw_model *model, int attempt, int64_t memory, int64_t measured_bytes,
                         const sw_plan *plan)
{
	double room = (double)memory;
	if (attempt == 1)
		room *= SW_MAX(counted_per_byte(model, measured_bytes), 1);
	if (attempt > 1) {
		sw_model_count_copies(model, plan);
		room *= TIGHTER * counted_per_byte(model, measured_bytes);
	}
	if (attempt > 0)
		model->problem.capacity = (int64_t)room;
}

/* How far the model's count of some plan may be above what its program takes, though that of the plan it was calibrated by is not. */
#define DOUBT 1.25

/* That nothing fits is believed where nothing would fit in so much more; else what the plans that would are bounded by is. */
static sw_status bound_with_doubt(sw_model *model, const sw_plan_options *options, contender *c,
                                  sw_error *err)
{
	sw_solution solution;
	model->problem.capacity = (int64_t)(DOUBT * (double)model->problem.capacity);
	sw_status status = solve_from_starts(model, options, c->each, &solution, err);
	if (status != SW_OK)
		return status;
	c->bound_s = bound_of(&solution);
	sw_solution_clear(&solution);
	return status;
}

/* First without a limit: what then fits needs no memory model. Otherwise the model's spans limit the search; where the partitioned
 * program still exceeds the memory (spans are not its liveness to the byte), the capacity is tightened in proportion, with the copies
 * counted that readers held, and the problem solved again. The bound is that of the last attempt whose limit was no tighter than it must be. A mesh whose model is not built in
 * time has no more to say. */
static sw_status try_mesh(sw_planner *planner, const sw_mesh *mesh, const sw_plan_options *options,
                          sw_plan *plan, contender *c, least *small, sw_error *err)
{
	int64_t memory = memory_of(plan, options), capacity = INT64_MAX, least_bytes = INT64_MAX;
	double bound_s = 0, least_s = 0;
	sw_status status = SW_OK;
	bool again = true;
	for (int attempt = 0; attempt < 5 && again; attempt++) {
		sw_model model;
		if (!sw_model_init(&model, planner, mesh, capacity)) {
			sw_model_clear(&model);
			c->timed_out = true;
			break;
		}
		set_capacity(&model, attempt, memory, c->cost.peak_bytes, plan);
		*c = (contender){.each = c->each, .timed_out = c->timed_out};
		least_s = kernels_s(&model.problem);
		status = solve_once(&model, options, plan, c, err);
		if (status == SW_OK && attempt == 1 && isinf(c->bound_s) && c->each.bounds)
			status = bound_with_doubt(&model, options, c, err);
		sw_model_clear(&model);
		if (attempt <= 1)
			bound_s = SW_MAX(bound_s, c->bound_s);
		least_bytes = SW_MIN(least_bytes, c->measured_bytes);
		bool exceeds = status == SW_OK && c->feasible && c->cost.peak_bytes > memory;
		if (attempt == 0 && status == SW_OK && c->feasible)
			note_free(planner, &c->cost);
		if (exceeds)
			sw_least_note(small, plan, mesh, &c->cost);
		c->feasible = c->feasible && !exceeds;
		again = exceeds && !planner->unlimited;
		capacity = memory;
	}
	c->bound_s = bound_s;
	c->least_s = SW_MAX(least_s, steps_bound_s(planner, bound_s));
	c->measured_bytes = least_bytes;
	return status;
}

double sw_plan_gap(const sw_plan *plan)
{
	return plan->model_s > 0 ? fmax(0, 1 - plan->model_bound_s / plan->model_s) : 0;
}

/* ---- the search over meshes ------------------------------------------------------------------------------------ */

static void add_alternative(sw_plan *plan, const sw_plan_options *options, const sw_mesh *mesh,
                            const contender *c)
{
	sw_alternative a = {.feasible = c->feasible};
	snprintf(a.name, sizeof(a.name), "%s", mesh->name);
	if (c->feasible) {
		a.step_time_s = c->cost.step_time_s;
		a.compute_s = c->cost.compute_s;
		a.communication_s = c->cost.communication_s;
		a.payload_bytes = c->cost.payload_bytes;
	}
	a.peak_bytes = c->feasible                      ? c->cost.peak_bytes
	               : c->measured_bytes == INT64_MAX ? 0
	                                                : c->measured_bytes;
	if (c->hopeless)
		a.bound_s = c->bound_s;
	else if (c->feasible && options->play) /* until it is played */
		a.bound_s = sw_least_step_s(&c->cost);
	sw_vec_push(&plan->alternatives, a);
}

static sw_status nothing_in_time(int64_t memory_bytes, sw_error *err)
{
	sw_text have = {0};
	sw_text_add_bytes(&have, (double)memory_bytes);
	sw_status status =
		sw_fail(err, SW_NO,
	                "no plan that fits in %s (%lld bytes) per device was found within the time "
	                "limit: give it more time, or memory",
	                have.data, (long long)memory_bytes);
	sw_text_clear(&have);
	return status;
}

static sw_status nothing_fits(int64_t memory_bytes, int64_t least_bytes, sw_error *err)
{
	sw_text have = {0}, need = {0};
	sw_text_add_bytes(&have, (double)memory_bytes);
	sw_text_add_bytes(&need, (double)least_bytes);
	sw_status status = sw_fail(err, SW_NO,
	                           "no plan fits in %s (%lld bytes) per device; the least that was found "
	                           "needs %s (%lld bytes): "
	                           "use more devices, or devices with more memory",
	                           have.data, (long long)memory_bytes, need.data, (long long)least_bytes);
	sw_text_clear(&have);
	sw_text_clear(&need);
	return status;
}

/* Of the mesh at `index`: an equal share of the work of all, and of the time that is left. */
static limits limits_of(const sw_planner *planner, const sw_plan_options *options, double start_s,
                        const sw_meshes *meshes, size_t index, double best_s)
{
	int64_t share = SEARCH_WORK / (int64_t)meshes->len;
	limits each = {.work = FIXED_WORK,
	               .below_s = FIXED_SLACK * planner->slack * planner->known_s,
	               .bounds = is_search(&meshes->data[index]) || meshes->len == 1};
	if (is_search(&meshes->data[index])) {
		each.work = SW_MIN(SW_MAX(share, LEAST_SEARCH_WORK), MOST_SEARCH_WORK);
		each.below_s = planner->slack * best_s;
	}
	double left_s = options->time_limit_s - (sw_now_s() - start_s);
	if (options->time_limit_s > 0)
		each.seconds = SW_MAX(1e-3, left_s / (double)(meshes->len - index));
	return each;
}

/* The first mesh, which is a fixed strategy unless it is the only one, takes the time it needs, so that something is always tried. */
static sw_watch watch_of(const sw_plan_options *options, double start_s, const sw_meshes *meshes,
                         size_t index, sw_progress *progress)
{
	sw_watch watch = {.progress = progress, .mesh = meshes->data[index].name};
	watch.share = 1 / (double)meshes->len;
	watch.done = (double)index * watch.share;
	if (options->time_limit_s > 0 && index > 0)
		watch.deadline_s = start_s + options->time_limit_s;
	return watch;
}

static void say_left_out(int64_t options, sw_plan *plan)
{
	size_t length = strlen(plan->scope);
	if (options > 0)
		snprintf(plan->scope + length, sizeof(plan->scope) - length,
		         "; %lld ways to split some op were left out", (long long)options);
}

/* ---- the whole ----------------------------------------------------------------------------------------------------- */

sw_status sw_plan_search(sw_planner *planner, const sw_meshes *meshes, const sw_plan_options *options,
                         sw_contender_fn *seen, void *context, sw_plan *plan, sw_error *err)
{
	contest t = {.options = options, .surely_s = INFINITY};
	least small = {.known = &t.known};
	const candidate *won = NULL;
	double bound_s = INFINITY,
	       model_bound_s = INFINITY; /* of all searches; and nothing that was reached lies below them */
	double model_s = planner->known_s; /* the best so far by the model */
	int64_t least_bytes = INT64_MAX;
	sw_progress progress;
	sw_status status = SW_OK;
	double start_s = sw_now_s();
	bool timed_out = false;
	plan->memory_bytes = options->memory_bytes;
	planner->overlap = options->play ? sw_overlap_new(&planner->roles, plan->cluster) : NULL;
	planner->hidden_weight = planner->overlap ? sw_overlap_weight(&planner->roles, plan->cluster) : 1;
	sw_progress_start(&progress, "plan", options->quiet);
	for (size_t i = 0; i < meshes->len && status == SW_OK; i++) {
		const sw_mesh *mesh = &meshes->data[i];
		contender c = {.each = limits_of(planner, options, start_s, meshes, i, model_s)};
		planner->watch = watch_of(options, start_s, meshes, i, &progress);
		status = try_mesh(planner, mesh, options, plan, &c, &small, err);
		if (status != SW_OK)
			break;
		timed_out = timed_out || c.timed_out;
		add_alternative(plan, options, mesh, &c);
		sw_contest_enter(&t, plan, mesh, &c);
		if (c.each.bounds) {
			bound_s = SW_MIN(bound_s, c.least_s);
			model_bound_s = SW_MIN(model_bound_s, c.bound_s);
		}
		if (c.feasible && seen)
			seen(context, i, plan, c.cost.step_time_s);
		if (c.feasible) {
			bound_s = SW_MIN(bound_s, steps_bound_s(planner, c.model_s));
			model_bound_s = SW_MIN(model_bound_s, c.model_s);
			model_s = SW_MIN(model_s, c.model_s);
		} else {
			least_bytes = SW_MIN(least_bytes, c.measured_bytes);
		}
	}
	if (status == SW_OK)
		status = sw_contest_decide(&t, plan, &won, err);
	sw_progress_end(&progress);
	planner->watch = (sw_watch){0};
	plan->lower_bound_s = SW_MAX(0, bound_s);
	plan->model_bound_s = SW_MAX(0, model_bound_s);
	if (status == SW_OK && !won && small.cost.peak_bytes > 0) {
		sw_decisions_restore(&small.decisions, &t.known, plan);
		plan->predicted = small.cost;
		snprintf(plan->chosen, sizeof(plan->chosen), "%s", small.name);
	}
	if (status == SW_OK && !won)
		status = timed_out ? nothing_in_time(memory_of(plan, options), err)
		                   : nothing_fits(memory_of(plan, options), least_bytes, err);
	if (status == SW_OK) {
		if (timed_out)
			sw_vec_push(&plan->warnings, SW_TIME_LIMIT_WARNING);
		sw_decisions_restore(&won->decisions, &t.known, plan);
		snprintf(plan->chosen, sizeof(plan->chosen), "%s", won->name);
		say_left_out(planner->left_out, plan);
		plan->predicted = won->c.cost;
		plan->model_s = won->c.model_s;
		plan->lower_bound_s =
			SW_MIN(plan->lower_bound_s,
		               won->c.cost.step_time_s); /* which may be a little below the model's */
		plan->gap = sw_plan_gap(plan);
	}
	sw_decisions_clear(&small.decisions);
	sw_contest_clear(&t);
	return status;
}
