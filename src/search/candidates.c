/* Candidate plans: which may be the quickest, and which one is when it is scheduled and simulated.
 */
#include "search/internal.h"

#include "bound/bound.h"

#include <math.h>
#include <stdlib.h>

/* Plans that are simulated side by side: the same number on every machine, so that the answer is,
 * too. */
#define SIMULATED_AT_ONCE 2

double sw_cost_step_bound_s(const sw_program_cost *cost)
{
	return fmax(cost->compute_s, cost->least_communication_s);
}

void sw_candidate_clear(sw_candidate_plan *c)
{
	sw_snapshot_clear(&c->snapshot);
}

static sw_candidate_plan candidate_of(sw_search *s, const sw_mesh_search *m)
{
	sw_candidate_plan c = {.variant = s->wave->variant,
	                       .entry = m->entry,
	                       .move = m->move,
	                       .model_s = s->wave->mode == SW_MEMORY_REPRICED
	                                          ? s->incumbent.model_s /* at other prices */
	                                          : m->found.model_s,
	                       .cost = m->found.cost};
	snprintf(c.name, sizeof(c.name), "%s", m->mesh->name);
	sw_snapshot_take(&c.snapshot, m->sketch, &s->strategies);
	return c;
}

/* Return the quickest step that some plan, or the rival, is known to reach: no schedule is slower than one without
 * overlap. */
static double proven_step_s(const sw_search *s)
{
	double step_s = sw_search_limit_s(s);
	for (size_t i = 0; i < s->wave->candidates.len; i++)
		step_s = fmin(step_s, s->wave->candidates.data[i].cost.step_time_s);
	return step_s;
}

void sw_candidates_enter(sw_search *s, const sw_mesh_search *m)
{
	const sw_program_cost *cost = &m->found.cost;
	double bound_s =
		s->asked.options->no_overlap ? cost->step_time_s : sw_cost_step_bound_s(cost);
	if (m->found.feasible && bound_s < proven_step_s(s))
		sw_vec_push(&s->wave->candidates, candidate_of(s, m));
}

void sw_candidates_note_least(sw_search *s, const sw_mesh_search *m)
{
	sw_variant *v = sw_search_variant(s, s->wave->variant);
	const sw_program_cost *cost = &m->found.cost;
	if (v->least.snapshot.strategies && v->least.cost.peak_bytes <= cost->peak_bytes)
		return;
	sw_candidate_clear(&v->least);
	v->least = candidate_of(s, m);
}

/* ---- playing ---------------------------------------------------------------------------- */

typedef struct simulation {
	sw_candidate_plan *candidate;
	sw_plan *sketch;
	sw_status status;
	sw_error err;
} simulation;

typedef struct simulation_stage {
	const sw_search *search;
	simulation jobs[SIMULATED_AT_ONCE];
	int64_t n;
} simulation_stage;

/* Return so many times the incumbent, and what merging the candidate's collectives may save; 0:
 * there is no incumbent. */
static double behind_s(const sw_search *s, const sw_program_cost *cost, double times)
{
	double saved_s = fmax(cost->communication_s - cost->least_communication_s, 0);
	return sw_search_has_incumbent(s) ? times * s->incumbent.cost.step_time_s + saved_s : 0;
}

#define UNMERGED_S 1e-30 /* no order that takes longer is merged */

/* Play orders that merge nothing alone. */
static void scout_one(void *context, int64_t i)
{
	simulation_stage *stage = context;
	simulation *j = &stage->jobs[i];
	sw_snapshot_restore(&j->candidate->snapshot, &stage->search->strategies, j->sketch);
	j->sketch->beaten_s = 0;
	j->sketch->unmerged_s = UNMERGED_S;
	j->status = sw_simulate_plan(j->sketch, &j->candidate->cost, &j->candidate->scouted_s, &j->err);
}

static void simulate_one(void *context, int64_t i)
{
	simulation_stage *stage = context;
	simulation *j = &stage->jobs[i];
	sw_program_cost *cost = &j->candidate->cost;
	/* One whose first orders are far behind is not scheduled any further; nor are collectives
	 * merged where that can't make up for what it is behind. */
	j->sketch->beaten_s = behind_s(stage->search, cost, stage->search->asked.limits->behind);
	j->sketch->unmerged_s =
		behind_s(stage->search, cost, stage->search->asked.limits->unmerged_behind);
	if (j->sketch->unmerged_s > 0 && j->candidate->scouted_s > j->sketch->unmerged_s) {
		cost->step_time_s = j->candidate->scouted_s;
		j->status = SW_OK;
		return;
	}
	sw_snapshot_restore(&j->candidate->snapshot, &stage->search->strategies, j->sketch);
	j->status = sw_simulate_plan(j->sketch, cost, &cost->step_time_s, &j->err);
}

static int by_model(const void *a, const void *b)
{
	const sw_candidate_plan *x = a, *y = b;
	if (x->model_s != y->model_s)
		return x->model_s < y->model_s ? -1 : 1;
	return (x->entry > y->entry) - (x->entry < y->entry);
}

static int by_scout(const void *a, const void *b)
{
	const sw_candidate_plan *x = a, *y = b;
	if (x->scouted_s != y->scouted_s)
		return x->scouted_s < y->scouted_s ? -1 : 1;
	return by_model(a, b);
}

/* Make a candidate the incumbent if it is quicker. */
static void offer(sw_search *s, sw_candidate_plan *c)
{
	if (sw_search_has_incumbent(s) && s->incumbent.cost.step_time_s <= c->cost.step_time_s)
		return;
	sw_candidate_clear(&s->incumbent);
	s->incumbent = *c;
	c->snapshot = (sw_snapshot){0};
}

/* Take the next candidates that may be quicker than the incumbent; return where to continue. The first
 * of all is played alone: the schedule of one that is behind it is then cut short. */
static size_t fill_stage(simulation_stage *stage, sw_search_wave *w, size_t from)
{
	int64_t most = sw_search_has_incumbent(stage->search) ? SIMULATED_AT_ONCE : 1;
	stage->n = 0;
	for (; from < w->candidates.len && stage->n < most; from++) {
		sw_candidate_plan *c = &w->candidates.data[from];
		sw_estimate estimate = {.step_s = sw_cost_step_bound_s(&c->cost)};
		if (sw_prune(&w->tally, 1, &estimate) == SW_UNTRIED_NOT)
			stage->jobs[stage->n++].candidate = c;
	}
	return from;
}

/* Was the search for an order of the plan cut short, since it is behind? Then it is no quicker than what
 * it is behind. */
static bool is_cut(const simulation *j)
{
	double beaten_s = j->sketch->beaten_s, unmerged_s = j->sketch->unmerged_s,
	       step_s = j->candidate->cost.step_time_s;
	return (beaten_s > 0 && step_s > beaten_s) || (unmerged_s > 0 && step_s > unmerged_s);
}

static sw_status take_simulated(sw_search *s, simulation *j)
{
	sw_candidate_plan *c = j->candidate;
	sw_mesh_entry *e = &sw_search_variant(s, c->variant)->entries.data[c->entry];
	if (j->status != SW_OK && s->err)
		*s->err = j->err;
	if (j->status != SW_OK)
		return j->status;
	double bound_s = sw_search_variant(s, c->variant)->kernels_s;
	if (sw_bound_is_beaten(bound_s, c->cost.step_time_s)) {
		s->beaten.step_s = c->cost.step_time_s;
		s->beaten.bound_s = bound_s;
	}
	bool is_better =
		!sw_search_has_incumbent(s) || c->cost.step_time_s < s->incumbent.cost.step_time_s;
	if (!sw_mode_looks_again(s->wave->mode) || is_better) {
		e->line.step_time_s = c->cost.step_time_s;
		e->line.bound_s = 0;
		e->line.untried = is_cut(j) ? SW_UNTRIED_CUT : SW_UNTRIED_NOT;
	}
	s->wave->tally.step_s = fmin(s->wave->tally.step_s, c->cost.step_time_s);
	offer(s, c);
	return SW_OK;
}

/* Where nothing was played yet, find out which plan is to be played first: the one that is quickest by
 * orders that merge nothing. All orders of a plan take ten times as long to find, but for one that is
 * behind another they are cut short, and what was scouted is the answer. */
static sw_status scout(sw_search *s, simulation_stage *stage)
{
	sw_search_wave *w = s->wave;
	if (sw_search_has_incumbent(s) || w->candidates.len < 2)
		return SW_OK;
	for (size_t next = 0; next < w->candidates.len && sw_search_left_s(s) > 0;) {
		for (stage->n = 0; stage->n < SIMULATED_AT_ONCE && next < w->candidates.len; next++)
			stage->jobs[stage->n++].candidate = &w->candidates.data[next];
		sw_parallel_for(stage->n, w->memo.threads, scout_one, stage);
		for (int64_t i = 0; i < stage->n; i++)
			SW_TRY(stage->jobs[i].status);
	}
	qsort(w->candidates.data, w->candidates.len, sizeof(sw_candidate_plan), by_scout);
	return SW_OK;
}

static sw_status simulate_all(sw_search *s, simulation_stage *stage)
{
	sw_search_wave *w = s->wave;
	SW_TRY(scout(s, stage));
	for (size_t next = 0; next < w->candidates.len;) {
		bool needs_one = !s->lender && !sw_search_has_incumbent(s);
		if (!needs_one && sw_search_left_s(s) <= 0) {
			s->timed_out = true;
			break;
		}
		next = fill_stage(stage, w, next);
		sw_parallel_for(stage->n, w->memo.threads, simulate_one, stage);
		for (int64_t i = 0; i < stage->n; i++) {
			sw_status status = take_simulated(s, &stage->jobs[i]);
			if (status != SW_OK)
				return status;
		}
		/* Of the others only those are played that may be quicker. */
		sw_search_ask_rival(s);
		w->tally.step_s = fmin(w->tally.step_s, sw_search_limit_s(s));
	}
	return SW_OK;
}

sw_status sw_candidates_select(sw_search *s)
{
	sw_search_wave *w = s->wave;
	simulation_stage stage = {.search = s};
	sw_plan *base = sw_search_variant(s, w->variant)->plan;
	sw_status status = SW_OK;
	if (w->candidates.len == 0)
		return SW_OK;
	qsort(w->candidates.data, w->candidates.len, sizeof(sw_candidate_plan), by_model);
	for (size_t i = 0; s->asked.options->no_overlap && i < w->candidates.len; i++)
		offer(s, &w->candidates.data[i]);
	if (!s->asked.options->no_overlap) {
		w->tally.step_s = sw_search_limit_s(s);
		for (size_t i = 0; i < SIMULATED_AT_ONCE; i++)
			stage.jobs[i].sketch = sw_plan_sketch(base);
		status = simulate_all(s, &stage);
		for (size_t i = 0; i < SIMULATED_AT_ONCE; i++)
			sw_plan_sketch_free(stage.jobs[i].sketch);
	}
	for (size_t i = 0; i < w->candidates.len; i++)
		sw_candidate_clear(&w->candidates.data[i]);
	w->candidates.len = 0;
	return status;
}
