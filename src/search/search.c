/* The search of one mesh: problem, solve, measure, and again within memory if what is found does
 * not fit. */
#include "search/keep.h"
#include "search/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A search ends this near its bound. */
#define NEAR_ENOUGH 0.001

/* ---- trying a mesh ---------------------------------------------------------------------- */

static void note_free(sw_planner *planner, const sw_program_cost *cost, double model_s)
{
	if (planner->free.step_time_s > 0 && planner->free_s <= model_s)
		return;
	planner->free = *cost;
	planner->free_s = model_s;
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
void sw_trial_place(trial *t)
{
	const sw_planner *planner = t->model.planner;
	bool begins = sw_is_search(t->mesh) || t->mesh->freed;
	for (size_t i = 0; begins && i < planner->starts.len; i++) {
		int32_t *place = sw_alloc(sizeof(int32_t) * t->model.problem.nodes.len);
		if (sw_start_place(&planner->starts.data[i], &t->model, place))
			sw_vec_push(&t->places, place);
		else
			free(place);
	}
}

static void clear_places(trial *t)
{
	for (size_t i = 0; i < t->places.len; i++)
		free(t->places.data[i]);
	sw_vec_clear(&t->places);
}

/* With less than so much, what is found says little of what is to be had. */
#define LITTLE_WORK INT64_C(400000000)

/* The first limit is a guess, and what is found within it tells of the next; later ones begin near
 * the answer. */
static int64_t work_of(const trial *t)
{
	int64_t work = t->c.each.work;
	bool guess = t->attempt == 1 && !t->calibrated, later = t->attempt > 2;
	int64_t part = guess ? work / 4 : later ? work / 2 : work;
	return SW_MIN(work, SW_MAX(part, LITTLE_WORK));
}

static sw_status solve_from_places(trial *t, const sw_plan_options *options, sw_solution *solution)
{
	sw_solve_options how = {.work_limit = work_of(t),
	                        .time_limit_s = t->c.each.seconds,
	                        .gap = NEAR_ENOUGH,
	                        .cutoff = to_units(t->c.each.below_s),
	                        .seed = options->seed,
	                        .threads = t->threads,
	                        .quiet = true,
	                        .n_starts = (int)t->places.len,
	                        .starts = (const int32_t *const *)t->places.data};
	return sw_solve_by(options->method, &t->model.problem, &how, solution, &t->err);
}

int64_t sw_memory_of(const sw_plan *plan, const sw_plan_options *options)
{
	int64_t memory = options->memory_bytes > 0 ? options->memory_bytes
	                                           : plan->cluster->device.memory_bytes;
	return memory - options->spare_bytes;
}

/* How far the program of a plan may take less than what is counted by the lives of its values; or a
 * model's count of some plan be above what its program takes, though that of the plan it was
 * calibrated by is not. */
#define DOUBT 1.25

sw_status sw_search_measure(const sw_plan_options *options, const sw_plan *plan,
                            sw_program_cost *cost, sw_error *err)
{
	if (options->effort) {
		options->effort->programs++;
		options->effort->ops += (int64_t)plan->program->ops.len;
	}
	return sw_partition_measure(plan, cost, err);
}

typedef struct measuring {
	const sw_planner *planner;
	const sw_plan_options *options;
	sw_plan *plan;
	double deadline_s; /* of sw_now_s; 0: none */
	/* what is counted to take more than so many times the memory is not measured */
	double doubt;
	int64_t least_bytes; /* with all moved anew that may be, as counted or measured */
} measuring;

/* What one reader has moved serves the next (*shared); where that takes too much memory, some move
 * it again. */
static sw_status measure_shared(measuring *m, sw_program_cost *shared, sw_program_cost *cost,
                                sw_error *err)
{
	int64_t memory = sw_memory_of(m->plan, m->options);
	m->plan->regathered.len = 0;
	sw_status status = sw_search_measure(m->options, m->plan, shared, err);
	*cost = *shared;
	m->least_bytes = cost->peak_bytes;
	if (status == SW_OK && cost->peak_bytes > memory)
		status = sw_plan_keep(m->planner, m->options, memory, m->doubt, m->deadline_s,
		                      m->plan, cost, &m->least_bytes, err);
	return status;
}

/* Streams are worth their loops only where they save a good part of what is missing. */
#define PARTS_OF_MISSING 8

/* While one op runs, no other's streams save anything. */
static bool may_fit(const measuring *m, int64_t saved_bytes)
{
	double memory = (double)sw_memory_of(m->plan, m->options);
	return saved_bytes > 0 && (double)(m->least_bytes - saved_bytes) <= m->doubt * memory;
}

/* Streams are taken if the plan needs less memory with them. */
static sw_status measure_streams(measuring *m, sw_program_cost *cost, sw_error *err)
{
	sw_plan *plan = m->plan;
	int64_t missing = m->least_bytes - sw_memory_of(plan, m->options);
	size_t bytes = sizeof(sw_strategy) * plan->program->ops.len;
	sw_strategy *before = sw_alloc(bytes);
	sw_reads anew = {0};
	sw_program_cost shared, again = {.peak_bytes = INT64_MAX};
	sw_status status = SW_OK;
	memcpy(before, plan->strategies, bytes);
	sw_reads_copy(&anew, &plan->regathered);
	if (may_fit(m, sw_plan_stream(plan, SW_MAX(missing / PARTS_OF_MISSING, 1))))
		status = measure_shared(m, &shared, &again, err);
	if (status == SW_OK && again.peak_bytes < cost->peak_bytes)
		*cost = again;
	else {
		memcpy(plan->strategies, before, bytes);
		sw_reads_copy(&plan->regathered, &anew);
	}
	sw_vec_clear(&anew);
	free(before);
	return status;
}

static bool is_late(const trial *t)
{
	return t->deadline_s > 0 && sw_now_s() > t->deadline_s;
}

/* What is too large even where it is moved again is streamed. */
static sw_status measure_all(measuring *m, sw_program_cost *shared, sw_program_cost *cost,
                             sw_error *err)
{
	sw_status status = measure_shared(m, shared, cost, err);
	bool late = m->deadline_s > 0 && sw_now_s() > m->deadline_s;
	if (status == SW_OK && cost->peak_bytes > sw_memory_of(m->plan, m->options) && !late)
		status = measure_streams(m, cost, err);
	return status;
}

static sw_status measure(trial *t, const sw_plan_options *options)
{
	measuring m = {t->model.planner, options, t->plan, t->deadline_s, DOUBT, 0};
	contender *c = &t->c;
	sw_status status = measure_all(&m, &c->shared, &c->cost, &t->err);
	if (status == SW_OK)
		c->model_s += m.planner->hidden_weight *
		              (c->cost.communication_s - c->shared.communication_s);
	return status;
}

sw_status sw_plan_save_memory(const sw_planner *planner, const sw_plan_options *options,
                              sw_plan *plan, sw_error *err)
{
	sw_program_cost shared;
	measuring m = {planner, options, plan, planner->last_s, INFINITY, 0};
	return measure_all(&m, &shared, &plan->predicted, err);
}

/* What a bound by the model says of steps. A step takes no less than its kernels and the
 * communication that nothing can run beside, and no less than all its communication: w times the
 * latter, and the former, are the model's sum, so that 1 + w steps take no less than that. */
static double steps_at_most(const sw_planner *planner)
{
	return planner->overlap ? 1 + planner->hidden_weight : 1;
}

double sw_steps_bound_s(const sw_planner *planner, double model_s)
{
	return model_s / steps_at_most(planner);
}

double sw_worth_s(const sw_planner *planner, double step_s)
{
	return step_s * steps_at_most(planner);
}

void sw_trial_give_up(trial *t, double bound_s)
{
	t->c.feasible = false;
	t->c.hopeless_s = bound_s;
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

/* Solves under the model's capacity. Infeasible is an answer, not an error. */
static sw_status solve_once(trial *t, const sw_plan_options *options)
{
	const sw_solution *solution = &t->solution;
	contender *c = &t->c;
	sw_status status = solve_from_places(t, options, &t->solution);
	if (status != SW_OK)
		return status;
	c->feasible =
		solution->answer == SW_SOLVED_OPTIMAL || solution->answer == SW_SOLVED_FEASIBLE;
	c->bound_s = bound_of(solution);
	c->timed_out = c->timed_out || solution->timed_out;
	c->found_s = c->model_s = (double)solution->cost * SW_COST_UNIT_S;
	c->kernels_s = c->feasible ? kernels_s(&t->model.problem, solution->assignment) : 0;
	c->measured_bytes = INT64_MAX;
	c->applied = c->feasible && c->bound_s < c->each.below_s;
	if (c->feasible && c->bound_s >= c->each.worth_s)
		sw_trial_give_up(t, c->bound_s);
	return SW_OK;
}

/* What the model counts for the plan that was found last, in this mesh, for each byte that its
 * program takes: it counts some twice and others not at all. */
static double counted_per_byte(const trial *t, int64_t measured_bytes)
{
	int32_t *assignment = sw_alloc(sizeof(int32_t) * (t->model.problem.nodes.len + 1));
	sw_evaluation counted = {0};
	if (sw_start_place(&t->starts.data[t->starts.len - 1], &t->model, assignment))
		sw_problem_evaluate(&t->model.problem, assignment, &counted);
	free(assignment);
	return counted.peak_usage > 0 ? (double)counted.peak_usage / (double)measured_bytes : 1;
}

/* What is excluded is excluded by a little more: its neighbours mostly exceed the memory, too. */
#define TIGHTER 0.98

/* By what was measured of the plan that the attempt before found. The first limit is no tighter
 * than the memory, and looser where the model counts more than there is, or, where nothing was
 * measured yet, might: so it still bounds from below; unless a plan is known already that fits
 * though it exceeds the limit, for some readers move anew what others share, of which the model
 * knows nothing. Later ones exclude the plan that did not fit. */
static void set_capacity(trial *t)
{
	bool known = t->starts.len > 0, first = t->attempt == 1 || !t->calibrated;
	bool anew = t->attempt > 0 && t->c.feasible && t->plan->regathered.len > 0;
	double room = (double)t->memory;
	t->loose = t->attempt == 0 || (first && !anew);
	t->calibrated = t->attempt > 0 && known;
	if (t->attempt == 0)
		return;
	if (first) {
		room *= known ? SW_MAX(counted_per_byte(t, t->c.shared.peak_bytes), 1) : DOUBT;
	} else {
		sw_model_count_copies(&t->model, t->plan);
		const contender *c = &t->c;
		room *= c->feasible ? counted_per_byte(t, c->shared.peak_bytes)
		                    : TIGHTER * counted_per_byte(t, c->cost.peak_bytes);
	}
	t->model.problem.capacity = (int64_t)room;
}

/* That nothing fits is believed where nothing would fit in so much more; else what the plans that
 * would are bounded by is. */
static sw_status bound_with_doubt(trial *t, const sw_plan_options *options)
{
	sw_solution solution;
	sw_problem *problem = &t->model.problem;
	problem->capacity = (int64_t)(DOUBT * (double)problem->capacity);
	sw_status status = solve_from_places(t, options, &solution);
	if (status != SW_OK)
		return status;
	t->c.bound_s = bound_of(&solution);
	sw_solution_clear(&solution);
	return status;
}

/* ---- attempts --------------------------------------------------------------------------- */

/* First without a limit, unless what is found then is known to be far too large: what then fits
 * needs no memory model. Otherwise the model's spans limit the search; where the partitioned
 * program still exceeds the memory (spans are not its liveness to the byte), the capacity is
 * tightened in proportion, with the copies counted that readers held, and the problem solved again.
 * What fits only since some readers move anew what others share may be slower than what the solver
 * finds within less: that is tried as long as it makes plans quicker, and the quickest is taken.
 * The bound is the greatest of attempts whose limit was no tighter than it must be. A mesh whose
 * model is not built in time has no more to say. */
#define MOST_ATTEMPTS 5

/* What is found without a limit is known to need far more than there is. */
static bool is_far(const sw_planner *planner, const sw_tried *tried, int64_t memory)
{
	return planner->far ||
	       (tried && tried->exceeds && tried->cost.peak_bytes > DOUBT * (double)memory);
}

void sw_trial_init(trial *t, const sw_planner *planner, const sw_mesh *mesh, size_t number,
                   int64_t memory)
{
	*t = (trial){0};
	t->tried = planner->tried && !planner->unlimited ? &planner->tried[number] : NULL;
	t->mesh = mesh;
	t->attempt = t->first_attempt = is_far(planner, t->tried, memory) ? 1 : 0;
	t->again = true;
	t->memory = memory;
	t->least_bytes = t->c.measured_bytes = INT64_MAX;
	t->found_s = INFINITY;
}

/* Its model was not built in time. */
static void end_late(trial *t)
{
	sw_model_clear(&t->model);
	t->c.timed_out = true;
	t->again = t->begun = t->built = false;
}

void sw_trial_begin(trial *t, sw_planner *planner)
{
	t->begun = true;
	if (!sw_model_begin(&t->model, planner, t->mesh))
		end_late(t);
	else
		t->least_s = sw_model_kernels_s(&t->model);
}

void sw_trial_build(trial *t, sw_planner *planner)
{
	t->deadline_s = planner->watch.deadline_s;
	if (!t->begun)
		sw_trial_begin(t, planner);
	if (t->again && !sw_model_finish(&t->model, t->attempt > 0 ? t->memory : INT64_MAX))
		end_late(t);
	if (!t->again)
		return;
	t->built = true;
	set_capacity(t);
	t->c = (contender){.each = t->c.each, .timed_out = t->c.timed_out};
}

void sw_trial_drop(trial *t)
{
	sw_model_clear(&t->model);
	t->dropped = true;
	t->again = t->begun = t->built = false;
	t->bound_s = t->least_s;
	sw_trial_give_up(t, t->least_s);
}

void sw_trial_solve(trial *t, const sw_plan_options *options)
{
	t->status = solve_once(t, options);
	if (t->status == SW_OK && t->attempt == 1 && t->calibrated && isinf(t->c.bound_s) &&
	    t->c.each.bounds)
		t->status = bound_with_doubt(t, options);
	clear_places(t);
}

void sw_trial_apply(trial *t)
{
	if (t->status == SW_OK && t->c.applied) {
		sw_start start;
		sw_start_save(&start, &t->model, t->solution.assignment);
		sw_vec_push(&t->starts, start);
		sw_model_apply(&t->model, t->solution.assignment, t->plan);
	}
	sw_solution_clear(&t->solution);
}

/* Was the same found before, and does not fit? */
static bool is_known(const trial *t)
{
	return t->attempt == 0 && t->tried && t->tried->exceeds &&
	       t->tried->model_s == t->c.found_s;
}

void sw_trial_measure(trial *t, const sw_plan_options *options)
{
	contender *c = &t->c;
	if (t->status != SW_OK || !c->feasible)
		return;
	t->status = sw_plan_verify(t->plan, &t->err);
	if (t->status == SW_OK && is_known(t)) {
		c->shared = t->tried->shared;
		c->cost = t->tried->cost;
	} else if (t->status == SW_OK) {
		t->status = measure(t, options);
	}
	c->measured_bytes = c->cost.peak_bytes;
}

/* Another attempt gets what is left of the time; false: nothing is. */
static bool has_time(trial *t)
{
	contender *c = &t->c;
	bool late = is_late(t);
	c->timed_out = c->timed_out || late;
	if (t->deadline_s > 0)
		c->each.seconds = fmin(c->each.seconds, fmax(t->deadline_s - sw_now_s(), 1e-3));
	return !late;
}

static void keep_best(trial *t, strategies *known)
{
	if (t->best.feasible && t->best.cost.step_time_s <= t->c.cost.step_time_s)
		return;
	t->best = t->c;
	sw_decisions_save(t->plan, &t->decisions, known);
}

/* Attempts that gain less are the last. */
#define LITTLE_GAIN 0.01
/* What fits only since some readers move anew what others share, or was found within the limit that
 * was a guess, may be slower than what is found within another one; unless the bound says that
 * there is hardly anything to be had, or the attempt before was hardly worth it. */
static bool is_to_be_had_quicker(const trial *t)
{
	const contender *c = &t->c;
	double before_s = t->best.feasible ? t->best.model_s : INFINITY;
	bool guess = t->attempt == 1 && !t->calibrated, anew = t->plan->regathered.len > 0;
	if (!c->feasible || t->attempt == 0)
		return c->feasible && anew;
	return (anew || guess) && c->model_s * (1 - LITTLE_GAIN) > t->bound_s &&
	       c->model_s < (1 - LITTLE_GAIN) * before_s;
}

void sw_trial_judge(trial *t, sw_planner *planner, least *small)
{
	contender *c = &t->c;
	sw_model_clear(&t->model);
	t->begun = t->built = false;
	if (t->loose)
		t->bound_s = SW_MAX(t->bound_s, c->bound_s);
	t->least_bytes = SW_MIN(t->least_bytes, c->measured_bytes);
	bool exceeds = t->status == SW_OK && c->feasible && c->cost.peak_bytes > t->memory;
	if (t->attempt == 0 && t->status == SW_OK && c->feasible)
		note_free(planner, &c->shared, c->found_s);
	if (exceeds)
		sw_least_note(small, t->plan, t->mesh, &c->cost);
	c->feasible = c->feasible && !exceeds;
	bool wanted = (exceeds || is_to_be_had_quicker(t)) && !planner->unlimited &&
	              t->attempt + 1 < MOST_ATTEMPTS;
	t->again = has_time(t) && wanted;
	if (c->feasible)
		t->found_s = fmin(t->found_s, c->model_s);
	if (t->status == SW_OK && c->feasible && (t->again || t->best.feasible))
		keep_best(t, small->known);
	t->attempt++;
}

void sw_trial_end(trial *t, sw_planner *planner, const strategies *known)
{
	if (t->best.feasible) {
		t->best.timed_out = t->c.timed_out;
		t->c = t->best;
		sw_decisions_restore(&t->decisions, known, t->plan);
		sw_decisions_clear(&t->decisions);
	}
	t->c.bound_s = t->bound_s;
	t->c.least_s = SW_MAX(t->least_s, sw_steps_bound_s(planner, t->bound_s));
	t->c.measured_bytes = t->least_bytes;
	for (size_t i = 0; i < t->starts.len; i++)
		sw_vec_push(&planner->starts, t->starts.data[i]);
	t->starts.len = 0;
}

void sw_trial_clear(trial *t)
{
	if (t->begun)
		sw_model_clear(&t->model);
	for (size_t i = 0; i < t->starts.len; i++)
		sw_start_clear(&t->starts.data[i]);
	sw_vec_clear(&t->starts);
	sw_decisions_clear(&t->decisions);
}
