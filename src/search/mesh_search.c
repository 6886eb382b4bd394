/*
 * The search of one mesh: model, solve, cost; and again within memory if the plan does not fit.
 *
 * The first attempt has no memory limit, unless its result is known to be far too large: a plan
 * that fits then needs no model of memory. Later attempts limit the model's live ranges. Where the
 * partitioned program still exceeds the memory (live ranges are not its arena to the byte), the
 * limit is tightened in proportion, and the copies that readers held are counted. A plan that fits
 * only because some readers re-gather may be slower than one that the solver finds within less
 * memory: attempts go on as long as they gain. The bound of a mesh is the greatest bound of the
 * attempts whose limit was no tighter than the memory.
 */
#include "search/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool sw_mesh_is_free(const sw_mesh *mesh)
{
	return mesh->n_axes == 0 || mesh->search;
}

double sw_model_step_bound_s(const sw_analysis *analysis, double model_s)
{
	return model_s / (analysis->overlap ? 1 + analysis->overlap_weight : 1);
}

static sw_mesh_entry *entry_of(const sw_mesh_search *m, const sw_search *s)
{
	return &sw_search_variant(s, s->wave->variant)->entries.data[m->entry];
}

/* Return the result without a memory limit; NULL: it is not known. */
static const sw_unconstrained *unconstrained_of(const sw_mesh_search *m, const sw_search *s)
{
	return s->wave->mode == SW_MEMORY_UNCONSTRAINED ? NULL : &entry_of(m, s)->unconstrained;
}

/* Is it known that the result without a limit needs far more than the memory? */
static bool needs_far_more(const sw_mesh_search *m, const sw_search *s)
{
	const sw_unconstrained *unconstrained = unconstrained_of(m, s);
	double limit = s->asked.limits->memory_doubt * (double)s->wave->memory_bytes;
	return unconstrained &&
	       (sw_search_variant(s, s->wave->variant)->unconstrained.far ||
	        (unconstrained->exceeds && (double)unconstrained->cost.peak_bytes > limit));
}

void sw_mesh_search_init(sw_mesh_search *m, const sw_search *s, size_t entry)
{
	*m = (sw_mesh_search){.entry = entry, .pending = true};
	m->mesh = &entry_of(m, s)->mesh;
	m->attempt = m->first_attempt = needs_far_more(m, s) ? 1 : 0;
	m->bounds.least_bytes = m->found.costed_bytes = INT64_MAX;
	m->bounds.best_s = INFINITY;
}

/* ---- the model -------------------------------------------------------------------------- */

static void stop_at_deadline(sw_mesh_search *m)
{
	sw_model_clear(&m->work.model);
	m->timed_out = true;
	m->pending = m->work.listed = m->work.built = false;
}

void sw_mesh_search_list(sw_mesh_search *m, sw_search_wave *wave, const sw_watch *watch)
{
	m->work.listed = true;
	if (!sw_model_begin(&m->work.model, &wave->memo, watch, m->mesh,
	                    wave->near.plan && m->mesh->spare ? &wave->near : NULL)) {
		stop_at_deadline(m);
		return;
	}
	m->bounds.kernels_s = sw_model_kernels_s(&m->work.model);
	m->bounds.input_bytes = sw_model_input_bytes(&m->work.model);
	m->bounds.pairs = sw_model_pairs(&m->work.model);
}

/* Return the bytes that the model counts for the last plan; 0: it does not know that plan. */
static double modelled_bytes(const sw_mesh_search *m)
{
	const sw_model *model = &m->work.model;
	int32_t *assignment = sw_alloc(sizeof(int32_t) * (model->problem.nodes.len + 1));
	const sw_warm_start *last = &m->work.starts.data[m->work.starts.len - 1];
	sw_evaluation counted = {0};
	if (sw_warm_start_apply(last, model, assignment))
		sw_problem_evaluate(&model->problem, assignment, &counted);
	free(assignment);
	return (double)counted.peak_usage;
}

/* Return them per byte that the partitioned program takes. */
static double modelled_bytes_per_byte(double modelled, int64_t costed_bytes)
{
	return modelled > 0 ? modelled / (double)costed_bytes : 1;
}

static bool is_calibrated(const sw_mesh_search *m)
{
	return m->capacity == SW_CAPACITY_CALIBRATED || m->capacity == SW_CAPACITY_TIGHTENED;
}

/* Later limits exclude the last plan and its neighbours, which mostly exceed the memory, too. */
static double next_limit(sw_mesh_search *m, const sw_search *s, double memory)
{
	const sw_found *f = &m->found;
	m->capacity = SW_CAPACITY_TIGHTENED;
	sw_model_count_copies(&m->work.model, m->sketch);
	double modelled = modelled_bytes(m);
	return memory * (f->feasible ? modelled_bytes_per_byte(modelled, f->cached.peak_bytes)
	                             : s->asked.limits->tightening *
	                                       modelled_bytes_per_byte(modelled, f->cost.peak_bytes));
}

/* The first limit is no tighter than the memory, and looser where the model counts more bytes than
 * the arena has. So its result still bounds the mesh; but not where a plan is known that exceeds
 * the limit and fits, because some of its readers re-gather, which the model does not know. Where
 * the model counts so much less than the arena has that the last plan would be found again, the
 * limit excludes that. */
static double first_limit(sw_mesh_search *m, const sw_search *s, double memory)
{
	bool regathers = m->found.feasible && m->found.regathers;
	if (m->work.starts.len == 0) {
		m->capacity = SW_CAPACITY_GUESSED;
		return memory * s->asked.limits->memory_doubt;
	}
	double modelled = modelled_bytes(m),
	       limit = memory * SW_MAX(modelled_bytes_per_byte(modelled, m->found.cached.peak_bytes), 1);
	if (modelled > 0 && modelled <= limit && m->found.cached.peak_bytes > memory)
		return next_limit(m, s, memory);
	m->capacity = regathers ? SW_CAPACITY_TIGHTENED : SW_CAPACITY_CALIBRATED;
	return limit;
}

static void set_limit(sw_mesh_search *m, const sw_search *s)
{
	double memory = (double)s->wave->memory_bytes;
	if (m->attempt == 0)
		m->capacity = SW_CAPACITY_NONE;
	else
		m->work.model.problem.capacity =
			(int64_t)(m->attempt == 1 || !is_calibrated(m) ? first_limit(m, s, memory)
		                                                       : next_limit(m, s, memory));
}

void sw_mesh_search_build(sw_mesh_search *m, sw_search *s, const sw_watch *watch)
{
	int64_t memory = m->attempt > 0 ? s->wave->memory_bytes : INT64_MAX;
	m->work.deadline_s = watch->deadline_s;
	if (!m->work.listed)
		sw_mesh_search_list(m, s->wave, watch);
	m->work.model.watch = *watch;
	if (m->pending && !sw_model_finish(&m->work.model, memory))
		stop_at_deadline(m);
	if (!m->pending)
		return;
	m->work.built = true;
	set_limit(m, s);
	m->found = (sw_found){.costed_bytes = INT64_MAX};
}

/* ---- solving ---------------------------------------------------------------------------- */

/* Do its axes cut those of the incumbent's mesh, if the wave begins there? */
static bool begins_at_incumbent(const sw_mesh_search *m, const sw_search *s)
{
	return s->wave->incumbent && sw_mesh_refines(m->mesh, sw_search_incumbent_mesh(s));
}

void sw_mesh_search_warm_start(sw_mesh_search *m, const sw_search *s)
{
	const sw_search_wave *wave = s->wave;
	const sw_model *model = &m->work.model;
	bool takes_starts = sw_mesh_is_free(m->mesh) || m->mesh->untied;
	size_t n = takes_starts ? wave->starts.len + begins_at_incumbent(m, s) : 0;
	for (size_t i = 0; i < n; i++) {
		int32_t *begin = sw_alloc(sizeof(int32_t) * model->problem.nodes.len);
		bool found = i < wave->starts.len
		                     ? sw_warm_start_apply(&wave->starts.data[i], model, begin)
		                     : sw_warm_start_from_plan(model, wave->incumbent, begin);
		if (found)
			sw_vec_push(&m->work.begins, begin);
		else
			free(begin);
	}
}

static void clear_begins(sw_mesh_search *m)
{
	for (size_t i = 0; i < m->work.begins.len; i++)
		free(m->work.begins.data[i]);
	sw_vec_clear(&m->work.begins);
}

/* Convert to the problem's cost units; 0: too large to be a limit. */
static int64_t to_units(double seconds)
{
	double units = seconds / SW_COST_UNIT_S;
	return units < 4e18 ? llround(units) : 0;
}

/* Wide meshes are many, and mostly behind. Those of a variant with a tolerance are only to tell which
 * classes of dimensions need padding. */
bool sw_mesh_search_hurries(const sw_mesh_search *m, const sw_search *s)
{
	return m->mesh->wide || s->wave->tolerance > 1;
}

double sw_mesh_search_work(const sw_mesh_search *m, const sw_search *s)
{
	double work = s->asked.limits->attempt_work;
	return sw_mesh_search_hurries(m, s) ? work / 16 : work;
}

static sw_status solve(sw_mesh_search *m, const sw_search *s, sw_solution *solution)
{
	sw_solve_options how = {.work_limit = (int64_t)sw_mesh_search_work(m, s),
	                        .time_limit_s = m->budget.seconds,
	                        .gap = s->asked.limits->solver_gap,
	                        .gap_work = (int64_t)s->asked.limits->gap_work,
	                        .cutoff = to_units(m->budget.cutoff_s),
	                        .seed = s->asked.options->seed,
	                        .threads = s->wave->memo.threads,
	                        .quiet = true,
	                        .n_starts = (int)m->work.begins.len,
	                        .starts = (const int32_t *const *)m->work.begins.data};
	return sw_solved_solve(s->solved, s->asked.options->method, &m->work.model.problem, &how,
	                       solution, &m->err);
}

static double bound_of(const sw_solution *solution)
{
	return solution->answer == SW_SOLVED_INFEASIBLE
	               ? INFINITY
	               : (double)solution->lower_bound * SW_COST_UNIT_S;
}

static double kernels_s(const sw_problem *problem, const int32_t *assignment)
{
	double sum = 0;
	for (size_t i = 0; i < problem->nodes.len; i++)
		sum += (double)problem->nodes.data[i].cost[assignment[i]] * SW_COST_UNIT_S;
	return sum;
}

void sw_mesh_search_drop(sw_mesh_search *m, sw_untried untried, double bound_s)
{
	sw_model_clear(&m->work.model);
	m->pending = m->work.listed = m->work.built = false;
	m->bounds.model_s = m->bounds.kernels_s;
	bool too_large = untried == SW_UNTRIED_TOO_LARGE, unbounded = too_large || untried == SW_UNTRIED_WORK;
	if (too_large)
		m->bounds.least_bytes = m->bounds.input_bytes;
	sw_mesh_search_reject(m, untried, unbounded ? 0 : bound_s);
}

void sw_mesh_search_reject(sw_mesh_search *m, sw_untried untried, double bound_s)
{
	m->found.feasible = false;
	m->found.untried = untried;
	m->found.untried_s = bound_s;
}

/* Solve under the model's capacity. Infeasible is an answer, not an error. */
static sw_status solve_attempt(sw_mesh_search *m, const sw_search *s)
{
	const sw_solution *solution = &m->work.solution;
	sw_found *f = &m->found;
	sw_status status = solve(m, s, &m->work.solution);
	if (status != SW_OK)
		return status;
	f->feasible =
		solution->answer == SW_SOLVED_OPTIMAL || solution->answer == SW_SOLVED_FEASIBLE;
	f->bound_s = bound_of(solution);
	f->cached_s = f->model_s = (double)solution->cost * SW_COST_UNIT_S;
	f->kernels_s = f->feasible ? kernels_s(&m->work.model.problem, solution->assignment) : 0;
	f->applied = f->feasible && f->bound_s < m->budget.cutoff_s;
	m->timed_out = m->timed_out || solution->timed_out;
	sw_untried untried = sw_prune(&(sw_tally){.step_s = m->budget.accept_s}, 1,
	                              &(sw_estimate){.step_s = f->bound_s});
	if (f->feasible && untried != SW_UNTRIED_NOT)
		sw_mesh_search_reject(m, SW_UNTRIED_MODEL, f->bound_s);
	return SW_OK;
}

void sw_mesh_search_solve(sw_mesh_search *m, const sw_search *s)
{
	m->status = solve_attempt(m, s);
	clear_begins(m);
}

void sw_mesh_search_apply(sw_mesh_search *m)
{
	if (m->status == SW_OK && m->found.applied) {
		sw_warm_start start;
		sw_warm_start_save(&start, &m->work.model, m->work.solution.assignment);
		sw_vec_push(&m->work.starts, start);
		sw_model_apply(&m->work.model, m->work.solution.assignment, m->sketch);
	}
	sw_solution_clear(&m->work.solution);
}

/* ---- costing ---------------------------------------------------------------------------- */

static sw_status cost(sw_mesh_search *m, const sw_search *s)
{
	const sw_search_wave *w = s->wave;
	sw_found *f = &m->found;
	sw_costing c = {.options = s->asked.options,
	                .limits = s->asked.limits,
	                .roles = &w->analysis.roles,
	                .paths = w->memo.paths,
	                .plan = m->sketch,
	                .memory_bytes = w->memory_bytes,
	                .deadline_s = m->work.deadline_s,
	                .doubt = s->asked.limits->memory_doubt,
	                .lost_s = w->tally.step_s};
	sw_status status = sw_costing_fit(&c, &f->cached, &f->cost, &m->err);
	f->regathers = c.regathers;
	f->lost = status == SW_OK && sw_costing_is_lost(&c, &f->cached);
	if (status == SW_OK)
		f->model_s += w->analysis.overlap_weight *
		              (f->cost.communication_s - f->cached.communication_s);
	return status;
}

/* Was this plan costed in the search without a limit, and found not to fit? */
static bool was_costed(const sw_mesh_search *m, const sw_unconstrained *unconstrained)
{
	return m->attempt == 0 && unconstrained && unconstrained->exceeds &&
	       unconstrained->model_s == m->found.cached_s;
}

void sw_mesh_search_cost(sw_mesh_search *m, const sw_search *s)
{
	const sw_unconstrained *unconstrained = unconstrained_of(m, s);
	sw_found *f = &m->found;
	if (m->status != SW_OK || !f->feasible)
		return;
	m->status = sw_plan_verify(m->sketch, &m->err);
	if (m->status == SW_OK && was_costed(m, unconstrained)) {
		f->cached = unconstrained->cached;
		f->cost = unconstrained->cost;
	} else if (m->status == SW_OK) {
		m->status = cost(m, s);
	}
	f->costed_bytes = f->cost.peak_bytes;
}

/* ---- judging ---------------------------------------------------------------------------- */

/* Give the next attempt the time that is left; return false if there is none. */
static bool has_time(sw_mesh_search *m)
{
	double deadline_s = m->work.deadline_s, now_s = sw_now_s();
	bool late = deadline_s > 0 && now_s > deadline_s;
	m->timed_out = m->timed_out || late;
	if (deadline_s > 0)
		m->budget.seconds = fmin(m->budget.seconds, fmax(deadline_s - now_s, SW_LEAST_SOLVER_S));
	return !late;
}

static void keep_best(sw_mesh_search *m, sw_strategy_set *strategies)
{
	if (m->best.found.feasible && m->best.found.cost.step_time_s <= m->found.cost.step_time_s)
		return;
	m->best.found = m->found;
	sw_snapshot_take(&m->best.snapshot, m->sketch, strategies);
}

/* May another attempt find a quicker plan? A plan that fits only because readers re-gather, or that
 * was found within a guessed limit, may be slower than one within another limit; unless the bound
 * leaves little to gain, or the last attempt gained little. */
static bool may_gain(const sw_mesh_search *m, const sw_search *s)
{
	const sw_found *f = &m->found;
	double before_s = m->best.found.feasible ? m->best.found.model_s : INFINITY,
	       rest = 1 - s->asked.limits->min_gain;
	bool guessed = m->attempt == 1 && m->capacity == SW_CAPACITY_GUESSED;
	if (!f->feasible || m->attempt == 0)
		return f->feasible && f->regathers;
	return (f->regathers || guessed) && f->model_s * rest > m->bounds.model_s &&
	       f->model_s < rest * before_s;
}

static void note_unconstrained(sw_mesh_search *m, sw_search *s)
{
	sw_variant *v = sw_search_variant(s, s->wave->variant);
	const sw_found *f = &m->found;
	if (m->attempt > 0 || m->status != SW_OK || !f->feasible)
		return;
	if (v->unconstrained.cost.step_time_s > 0 && v->unconstrained.model_s <= f->cached_s)
		return;
	v->unconstrained.cost = f->cached;
	v->unconstrained.model_s = f->cached_s;
	v->unconstrained.least_bytes = m->bounds.input_bytes;
	if (f->cached.peak_bytes > s->wave->memory_bytes)
		v->unconstrained.held = sw_held_state_of(m->sketch, &s->wave->analysis.roles);
}

void sw_mesh_search_judge(sw_mesh_search *m, sw_search *s)
{
	const sw_search_wave *w = s->wave;
	sw_found *f = &m->found;
	bool is_whole = !m->work.model.near && m->capacity != SW_CAPACITY_TIGHTENED;
	sw_model_clear(&m->work.model);
	m->work.listed = m->work.built = false;
	if (is_whole)
		m->bounds.model_s = SW_MAX(m->bounds.model_s, f->bound_s);
	m->bounds.least_bytes = SW_MIN(m->bounds.least_bytes, f->costed_bytes);
	note_unconstrained(m, s);
	bool exceeds = m->status == SW_OK && f->feasible && f->cost.peak_bytes > w->memory_bytes;
	if (exceeds)
		sw_candidates_note_least(s, m);
	f->feasible = f->feasible && !exceeds;
	if (f->lost)
		sw_mesh_search_reject(m, SW_UNTRIED_SLOWER, sw_cost_step_bound_s(&f->cached));
	/* What a tighter limit gives takes longer yet. */
	bool behind = exceeds && m->best.found.feasible && f->cached_s >= m->best.found.model_s;
	bool wanted = (exceeds || may_gain(m, s)) && !f->lost && !behind && w->mode != SW_MEMORY_UNCONSTRAINED &&
	              m->attempt + 1 < (int)s->asked.limits->max_attempts && !s->hopeless_bytes;
	m->pending = has_time(m) && wanted;
	if (f->feasible)
		m->bounds.best_s = fmin(m->bounds.best_s, f->model_s);
	if (m->status == SW_OK && f->feasible && (m->pending || m->best.found.feasible))
		keep_best(m, &s->strategies);
	m->attempt++;
}

void sw_mesh_search_end(sw_mesh_search *m, sw_search *s)
{
	if (m->best.found.feasible) {
		m->found = m->best.found;
		sw_snapshot_restore(&m->best.snapshot, &s->strategies, m->sketch);
	}
	sw_snapshot_clear(&m->best.snapshot);
	for (size_t i = 0; i < m->work.starts.len; i++)
		sw_vec_push(&s->wave->starts, m->work.starts.data[i]);
	m->work.starts.len = 0;
}

void sw_mesh_search_clear(sw_mesh_search *m)
{
	if (m->work.listed)
		sw_model_clear(&m->work.model);
	for (size_t i = 0; i < m->work.starts.len; i++)
		sw_warm_start_clear(&m->work.starts.data[i]);
	sw_vec_clear(&m->work.starts);
	sw_snapshot_clear(&m->best.snapshot);
}
