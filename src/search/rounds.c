/*
 * The search over meshes, in rounds of some side by side; the cheapest that fits in memory wins.
 * Each search begins where those of earlier rounds ended.
 */
#include "search/rounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The solver's work; a second is about 5e8 units. A fixed strategy gets the same alone and as a
 * contender of `auto`, and begins from nothing, so that `auto` is never worse than any of them;
 * searches share theirs. */
#define FIXED_WORK INT64_C(600000000)
#define SEARCH_WORK INT64_C(6000000000)
#define LEAST_SEARCH_WORK INT64_C(400000000)
#define MOST_SEARCH_WORK INT64_C(1500000000)

static double gap_of(double bound_s, double seconds)
{
	return seconds > 0 ? fmax(0, 1 - bound_s / seconds) : 0;
}

void sw_plan_set_gaps(sw_plan *plan)
{
	plan->gap = gap_of(plan->model_bound_s, plan->model_best_s);
	plan->step_gap = gap_of(plan->lower_bound_s, plan->predicted.step_time_s);
}

/* ---- the search over meshes ------------------------------------------------------------- */

static sw_alternative alternative_of(const sw_plan_options *options, const sw_mesh *mesh,
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
	if (c->hopeless_s > 0)
		a.bound_s = c->hopeless_s;
	else if (c->feasible && !options->no_overlap) /* until it is played */
		a.bound_s = sw_least_step_s(&c->cost);
	return a;
}

/* ---- rounds ----------------------------------------------------------------------------- */

/* A fixed strategy is given up where no step of it is less than one that is had with another
 * rewrite of the program; an equal share of the work of all, and of the time that is left. */
static limits limits_of(const search *s, size_t position)
{
	const sw_planner *planner = s->planner;
	int64_t share = SEARCH_WORK / (int64_t)s->meshes->len;
	const trial *t = sw_search_at(s, position);
	limits each = {.work = FIXED_WORK,
	               .worth_s = sw_worth_s(planner, planner->known_s),
	               .bounds = t->c.each.bounds};
	if (sw_is_search(t->mesh)) {
		each.work = SW_MIN(SW_MAX(share, LEAST_SEARCH_WORK), MOST_SEARCH_WORK);
		each.worth_s = s->all.model_s;
	}
	each.below_s = planner->tolerance * each.worth_s;
	double left_s = s->options->time_limit_s - (sw_now_s() - s->start_s);
	if (s->options->time_limit_s > 0)
		each.seconds = SW_MAX(1e-3, left_s / (double)(s->meshes->len - position));
	return each;
}

/* To be solved, unless what was found since it was built leaves no hope. */
static void make_ready(search *s, size_t position)
{
	trial *t = sw_search_at(s, position);
	sw_search_drop(s, t, &s->all);
	if (!t->again)
		return;
	if (t->attempt == t->first_attempt)
		t->c.each = limits_of(s, position);
	t->plan = s->sketches[position - s->first];
	t->threads = s->planner->threads;
	sw_trial_place(t);
}

static void build_one(void *context, int64_t i)
{
	search *s = context;
	size_t position = s->first + (size_t)i;
	sw_search_build(s, position);
	make_ready(s, position);
	if (position + 1 == s->first + s->n && s->first_attempt)
		s->building = sw_beside_start(s->planner->threads, sw_search_build_ahead, s);
}

static void solve_one(void *context, int64_t i)
{
	search *s = context;
	trial *t = sw_search_at(s, s->first + (size_t)i);
	if (t->again)
		sw_trial_solve(t, s->options);
}

static void apply_open(void *context, int64_t i)
{
	search *s = context;
	sw_trial_apply(s->open[i]);
}

static sw_status pass_error(const sw_error *from, sw_status status, sw_error *to)
{
	if (to)
		*to = *from;
	return status;
}

static void measure_open(void *context, int64_t i)
{
	search *s = context;
	sw_trial_measure(s->measured[i], s->options);
}

static int by_model(const void *a, const void *b)
{
	const trial *x = *(trial *const *)a, *y = *(trial *const *)b;
	if (x->c.model_s != y->c.model_s)
		return x->c.model_s < y->c.model_s ? -1 : 1;
	return (x > y) - (x < y);
}

/* Collectives that begin as one may take less than the model says: as much less as was seen they
 * could. */
static double least_of_found(const search *s, const contender *c)
{
	return fmax(c->kernels_s, s->all.share * sw_steps_bound_s(s->planner, c->bound_s));
}

static void note_measured(tally *all, const contender *c, int64_t memory)
{
	if (!c->feasible)
		return;
	if (c->cost.peak_bytes <= memory)
		all->step_s = fmin(all->step_s, c->cost.step_time_s);
	else
		all->large_s = fmin(all->large_s, c->model_s);
	if (c->cost.communication_s > 0) {
		double share = c->cost.least_communication_s / c->cost.communication_s;
		all->share = all->share > 0 ? fmin(all->share, share) : share;
	}
}

/* Those first that are quickest by the model: of which no step is less than what is had anyway need
 * not be measured. */
static void measure_all(search *s, int64_t n_open)
{
	int64_t memory = sw_memory_of(s->plan, s->options), n;
	qsort(s->open, (size_t)n_open, sizeof(*s->open), by_model);
	for (int64_t i = 0; i < n_open;) {
		for (n = 0; i < n_open && n < MEASURED_AT_ONCE; i++) {
			trial *t = s->open[i];
			double least_s = least_of_found(s, &t->c);
			bool hopeless = least_s >= s->all.step_s;
			t->put_off = t->c.feasible && !hopeless &&
			             sw_search_is_early(s, &s->all, t->c.model_s);
			if (t->c.feasible && (hopeless || t->put_off))
				sw_trial_give_up(t, least_s);
			else
				s->measured[n++] = t;
		}
		sw_parallel_for(n, s->planner->threads, measure_open, s);
		for (int64_t k = 0; k < n; k++)
			note_measured(&s->all, &s->measured[k]->c, memory);
	}
}

/* Those of the round that have an attempt to make; how many. */
static int64_t list_open(search *s)
{
	int64_t n_open = 0;
	for (size_t i = 0; i < s->n; i++)
		if (sw_search_at(s, s->first + i)->again)
			s->open[n_open++] = sw_search_at(s, s->first + i);
	return n_open;
}

static void measure_round(search *s)
{
	int64_t n_open = list_open(s);
	sw_parallel_for(n_open, s->planner->threads, apply_open, s);
	measure_all(s, n_open);
}

/* Each model is solved while the next is built, unless it was built ahead; beside the first attempt
 * those of the next searches are. */
static void attempt(search *s)
{
	sw_pipeline((int64_t)s->n, s->planner->threads, build_one, solve_one, s);
	measure_round(s);
	if (s->building)
		sw_beside_join(s->building);
	s->building = NULL;
}

/* Nothing that is slower by the model than what has been found is wanted: of itself, and of the
 * other searches of its round. */
static void lower_worth(search *s)
{
	double all_s = INFINITY;
	for (size_t i = 0; i < s->n; i++)
		all_s = fmin(all_s, sw_search_at(s, s->first + i)->found_s);
	for (size_t i = 0; i < s->n; i++) {
		trial *t = sw_search_at(s, s->first + i);
		double found_s = sw_is_search(t->mesh) ? all_s : t->found_s;
		t->c.each.worth_s = fmin(t->c.each.worth_s, found_s);
		t->c.each.below_s = s->planner->tolerance * t->c.each.worth_s;
	}
}

/* What came out; is there more to attempt? */
static sw_status judge_round(search *s, bool *again)
{
	sw_status status = SW_OK;
	*again = false;
	for (size_t i = 0; i < s->n; i++) {
		trial *t = sw_search_at(s, s->first + i);
		if (!t->again)
			continue;
		sw_trial_judge(t, s->planner, &s->small);
		*again = *again || t->again;
		if (status == SW_OK && t->status != SW_OK)
			status = pass_error(&t->err, t->status, s->err);
	}
	lower_worth(s);
	return status;
}

/* What was dropped takes no less than its kernels by the model. */
static sw_tried tried_by(const trial *t, int64_t memory)
{
	const contender *c = &t->c;
	return (sw_tried){.model_s = c->applied   ? c->found_s
	                             : t->dropped ? t->least_s
	                                          : INFINITY,
	                  .bound_s = c->bound_s,
	                  .least_s = c->least_s,
	                  .exceeds = c->cost.peak_bytes > memory,
	                  .put_off = t->put_off,
	                  .shared = c->shared,
	                  .cost = c->cost};
}

/* No step of this plan is less. */
static double least_of_plan(const search *s, const contender *c)
{
	return fmax(sw_least_step_s(&c->cost), sw_steps_bound_s(s->planner, c->model_s));
}

static void count(search *s, size_t number, const trial *t)
{
	const contender *c = &t->c;
	tally *all = &s->all;
	all->timed_out = all->timed_out || c->timed_out;
	s->plan->alternatives.data[number] = alternative_of(s->options, t->mesh, c);
	if (s->planner->unlimited && s->planner->tried)
		s->planner->tried[number] = tried_by(t, sw_memory_of(s->plan, s->options));
	sw_contest_enter(&s->contest, t->plan, t->mesh, number, c);
	if (c->each.bounds) {
		all->bound_s = SW_MIN(all->bound_s, c->least_s);
		all->model_bound_s = SW_MIN(all->model_bound_s, c->bound_s);
	}
	if (s->seen && c->applied && (c->feasible || c->hopeless_s > 0))
		s->seen(s->context, number, t->plan, c->model_s);
	if (c->feasible) {
		all->bound_s = SW_MIN(all->bound_s, least_of_plan(s, c));
		all->found_s = SW_MIN(all->found_s, t->found_s);
		all->model_bound_s = SW_MIN(all->model_bound_s, t->found_s);
		all->model_s = SW_MIN(all->model_s, t->found_s);
	}
}

static sw_status search_round(search *s)
{
	bool again = true;
	sw_status status = SW_OK;
	s->first_attempt = true;
	while (again && status == SW_OK) {
		attempt(s);
		status = judge_round(s, &again);
		s->first_attempt = false;
	}
	for (size_t i = 0; i < s->n; i++) {
		trial *t = sw_search_at(s, s->first + i);
		sw_trial_end(t, s->planner, &s->contest.known);
		if (status == SW_OK)
			count(s, s->order[s->first + i], t);
	}
	return status;
}

static sw_status search_all(search *s)
{
	sw_status status = SW_OK;
	for (s->n = 0; s->first + s->n < s->meshes->len && status == SW_OK;) {
		s->first += s->n;
		s->n = sw_search_round(s->meshes, s->first);
		s->before = s->all;
		status = search_round(s);
	}
	return status;
}

/* ---- the whole -------------------------------------------------------------------------- */

static void search_init(search *s)
{
	sw_planner *planner = s->planner;
	s->contest = (contest){.options = s->options,
	                       .known_s = planner->known_step_s,
	                       .surely_s = planner->known_step_s,
	                       .last_s = planner->last_s};
	s->small.known = &s->contest.known;
	s->all = (tally){.bound_s = INFINITY,
	                 .model_bound_s = INFINITY,
	                 .model_s = planner->known_s,
	                 .found_s = INFINITY,
	                 .step_s = planner->known_step_s,
	                 .large_s = INFINITY};
	s->start_s = sw_now_s();
	s->plan->memory_bytes = s->options->memory_bytes;
	planner->overlap =
		!s->options->no_overlap ? sw_overlap_new(&planner->roles, s->plan->cluster) : NULL;
	planner->hidden_weight =
		planner->overlap ? sw_overlap_weight(&planner->roles, s->plan->cluster) : 1;
	s->trials = sw_alloc(sizeof(trial) * (s->meshes->len + 1));
	s->order = sw_alloc(sizeof(*s->order) * (s->meshes->len + 1));
	for (size_t i = 0; i < s->meshes->len; i++) {
		sw_trial_init(&s->trials[i], planner, &s->meshes->data[i], i,
		              sw_memory_of(s->plan, s->options));
		s->trials[i].c.each.bounds =
			sw_is_search(&s->meshes->data[i]) || s->meshes->len == 1;
		s->order[i] = i;
		sw_vec_push(&s->plan->alternatives, (sw_alternative){0});
	}
	for (size_t i = 0; i < SW_MIN(s->meshes->len, (size_t)MOST_IN_ROUND); i++)
		s->sketches[i] = sw_plan_sketch(s->plan);
	sw_progress_start(&s->progress, "plan", s->options->quiet);
}

static void search_clear(search *s)
{
	for (size_t i = 0; i < s->meshes->len; i++)
		sw_trial_clear(&s->trials[i]);
	for (int i = 0; i < MOST_IN_ROUND; i++)
		sw_plan_sketch_free(s->sketches[i]);
	free(s->trials);
	free(s->order);
	sw_decisions_clear(&s->small.decisions);
	sw_contest_clear(&s->contest);
}

/* What needs least of all that does not fit. */
static void take_least(const search *s)
{
	if (s->small.cost.peak_bytes == 0)
		return;
	sw_decisions_restore(&s->small.decisions, &s->contest.known, s->plan);
	s->plan->predicted = s->small.cost;
	snprintf(s->plan->chosen, sizeof(s->plan->chosen), "%s", s->small.name);
}

static void take_winner(const search *s, const candidate *won)
{
	sw_plan *plan = s->plan;
	if (s->all.timed_out || s->contest.timed_out)
		sw_vec_push(&plan->warnings, SW_TIME_LIMIT_WARNING);
	sw_decisions_restore(&won->decisions, &s->contest.known, plan);
	snprintf(plan->chosen, sizeof(plan->chosen), "%s", won->name);
	plan->predicted = won->c.cost;
	plan->model_s = won->c.model_s;
	plan->lower_bound_s = SW_MIN(plan->lower_bound_s,
	                             /* which may be a little below the model's */
	                             won->c.cost.step_time_s);
	sw_plan_set_gaps(plan);
}

sw_status sw_plan_search(sw_planner *planner, const sw_meshes *meshes,
                         const sw_plan_options *options, sw_contender_fn *seen, void *context,
                         sw_plan *plan, sw_error *err)
{
	search s = {planner, meshes, options, seen, context, plan, .err = err};
	const candidate *won = NULL;
	search_init(&s);
	sw_status status = search_all(&s);
	if (status == SW_OK)
		status = sw_contest_decide(&s.contest, planner->threads, plan, &won, err);
	sw_progress_end(&s.progress);
	planner->watch = (sw_watch){0};
	plan->lower_bound_s = SW_MAX(0, s.all.bound_s);
	plan->model_bound_s = SW_MAX(0, s.all.model_bound_s);
	plan->model_best_s = isfinite(s.all.found_s) ? s.all.found_s : 0;
	if (status == SW_OK && !won) {
		take_least(&s);
		status = SW_NO;
	} else if (status == SW_OK) {
		take_winner(&s, won);
	}
	search_clear(&s);
	return status;
}
