/*
 * A batch of meshes, searched side by side.
 *
 * Models are built one after the other, for they share caches; each is solved while the next is
 * built. Then the plans are costed, quickest by the model first: a plan need not be costed if no
 * step of it can beat the incumbent. The size of a batch is the same on every machine.
 */
#include "search/internal.h"

#include <math.h>
#include <stdlib.h>

/* Plans that are costed side by side; meshes of a batch at most. Both are the same on every
 * machine, so that the answer is, too. */
#define COSTED_AT_ONCE 2
#define MAX_BATCH 8

typedef struct batch_run {
	sw_search *search;
	sw_mesh_search **meshes; /* [n] of the wave's queue */
	size_t first, n;
	bool first_attempt;
	sw_beside *prefetching; /* NULL: no model is built ahead */
	sw_mesh_search *open[MAX_BATCH];
	sw_mesh_search *costed[COSTED_AT_ONCE];
} batch_run;

static sw_mesh_entry *entry_of(const sw_search *s, const sw_mesh_search *m)
{
	return &sw_search_variant(s, s->wave->variant)->entries.data[m->entry];
}

/* ---- budgets ---------------------------------------------------------------------------- */

/* Set the budget of a mesh. A fixed strategy gets equal work alone and as a part of `auto`, and no
 * warm start, so that `auto` is never worse than any of them. It is cut off only where no step of
 * it can beat the incumbent of another variant, as far as is known of what merging and fusing save.
 * Free meshes are cut off at the best plan of this wave. Of the time that is left to the wave a free
 * mesh gets an equal part; a fixed strategy, which is mostly solved at once, as much as half. */
static sw_budget budget_of(const sw_search *s, const sw_mesh_search *m, size_t position)
{
	const sw_search_wave *w = s->wave;
	double least = sw_tally_share(s, &w->tally) * sw_model_step_bound_s(&w->analysis, 1);
	sw_budget b = {.accept_s = INFINITY};
	if (sw_search_has_incumbent(s) && !sw_mode_looks_again(w->mode) && least > 0)
		b.accept_s = s->incumbent.cost.step_time_s / least;
	if (sw_mesh_is_free(m->mesh))
		b.accept_s = w->tally.model_s;
	if (m->mesh->wide)
		b.accept_s = s->asked.limits->wide_behind * w->tally.model_s;
	if (sw_mesh_is_costed_anyway(s, m->mesh))
		b.accept_s = INFINITY;
	b.cutoff_s = w->tolerance * b.accept_s;
	double left_s = sw_wave_left_s(w), rest = (double)(w->queue.n - position);
	if (isfinite(left_s))
		b.seconds = fmax(SW_LEAST_SOLVER_S, left_s / (sw_mesh_is_free(m->mesh) ? rest : fmin(rest, 2)));
	return b;
}

/* Lower the cutoffs to the best plan so far by the model: that of the mesh itself, and for free
 * meshes that of the other free meshes of the batch. */
static void lower_budgets(batch_run *b)
{
	double all_s = INFINITY;
	for (size_t i = 0; i < b->n; i++)
		all_s = fmin(all_s, b->meshes[i]->bounds.best_s);
	for (size_t i = 0; i < b->n; i++) {
		sw_mesh_search *m = b->meshes[i];
		double best_s = sw_mesh_is_free(m->mesh) ? all_s : m->bounds.best_s;
		m->budget.accept_s = fmin(m->budget.accept_s, best_s);
		m->budget.cutoff_s = b->search->wave->tolerance * m->budget.accept_s;
	}
}

/* ---- modelling and solving -------------------------------------------------------------- */

static void build_one(void *context, int64_t i)
{
	batch_run *b = context;
	sw_search *s = b->search;
	sw_queue_build(s, b->first + (size_t)i); /* may sort the meshes */
	sw_mesh_search *m = b->meshes[i];
	sw_queue_prune(s, &s->wave->tally, m);
	if (m->pending) {
		if (!m->sketch)
			m->sketch = sw_plan_sketch(sw_search_variant(s, s->wave->variant)->plan);
		if (m->attempt == m->first_attempt)
			m->budget = budget_of(s, m, b->first + (size_t)i);
		sw_mesh_search_warm_start(m, s);
	}
	if ((size_t)i + 1 == b->n && b->first_attempt)
		b->prefetching = sw_beside_start(s->wave->memo.threads, sw_queue_prefetch, s);
}

static void solve_one(void *context, int64_t i)
{
	batch_run *b = context;
	if (b->meshes[i]->pending)
		sw_mesh_search_solve(b->meshes[i], b->search);
}

/* ---- costing ---------------------------------------------------------------------------- */

static void apply_one(void *context, int64_t i)
{
	batch_run *b = context;
	sw_mesh_search_apply(b->open[i]);
}

static void cost_one(void *context, int64_t i)
{
	batch_run *b = context;
	sw_mesh_search_cost(b->costed[i], b->search);
}

static int by_model(const void *a, const void *b)
{
	const sw_mesh_search *x = *(sw_mesh_search *const *)a, *y = *(sw_mesh_search *const *)b;
	if (x->found.model_s != y->found.model_s)
		return x->found.model_s < y->found.model_s ? -1 : 1;
	return (x > y) - (x < y);
}

/* Collectives that are merged may take less than the model says, and so may kernels that fuse. Scale
 * the model's bounds by the smallest shares that any costed plan had. */
static double step_bound_s(const sw_search *s, const sw_found *f)
{
	const sw_search_wave *w = s->wave;
	return fmax(sw_tally_kernels_share(s, &w->tally) * f->kernels_s,
	            sw_tally_share(s, &w->tally) *
	                    sw_model_step_bound_s(&w->analysis, f->bound_s));
}

static double least_share(double known, double part_s, double whole_s)
{
	double share = whole_s > 0 ? part_s / whole_s : 1;
	return known > 0 ? fmin(known, share) : share;
}

static void note_cost(sw_search_wave *w, const sw_found *f)
{
	sw_tally *t = &w->tally;
	if (!f->feasible)
		return;
	if (f->cost.peak_bytes <= w->memory_bytes)
		t->step_s = fmin(t->step_s, f->cost.step_time_s);
	else
		t->exceeding_s = fmin(t->exceeding_s, f->model_s);
	if (f->cost.communication_s > 0)
		t->merged_share = least_share(t->merged_share, f->cost.least_communication_s,
		                              f->cost.communication_s);
	t->fused_share = least_share(t->fused_share, f->cost.compute_s, f->kernels_s);
}

/* Is a solved mesh given up before it is costed? */
static bool is_pruned(sw_search *s, sw_mesh_search *m)
{
	const sw_search_wave *w = s->wave;
	double bound_s =
		sw_mesh_is_costed_anyway(s, m->mesh) ? 0 : step_bound_s(s, &m->found);
	sw_estimate estimate = {.step_s = bound_s,
	                        .model_s = m->found.model_s,
	                        .deferrable = w->mode == SW_MEMORY_UNCONSTRAINED};
	sw_untried untried = sw_prune(&w->tally, 1, &estimate);
	if (untried == SW_UNTRIED_SLOWER && m->bounds.kernels_s < w->tally.step_s)
		untried = SW_UNTRIED_MODEL;
	if (m->found.feasible && untried != SW_UNTRIED_NOT)
		sw_mesh_search_reject(m, untried, bound_s);
	return !m->found.feasible && m->found.untried != SW_UNTRIED_NOT;
}

/* Give up the plans that are not costed yet when the time is over. */
static void stop_costing(batch_run *b, int64_t from, int64_t n_open)
{
	for (int64_t i = from; i < n_open; i++) {
		sw_mesh_search *m = b->open[i];
		m->timed_out = true;
		if (m->found.feasible)
			sw_mesh_search_reject(m, SW_UNTRIED_TIME, 0);
	}
}

/* Is the time over? Until a plan that fits is known, one is costed anyway, and others as long as the
 * whole search lasts. */
static bool is_late(const sw_search *s, int64_t costed)
{
	bool needs_one = !s->lender && isinf(s->wave->tally.step_s) &&
	                 (costed == 0 || sw_now_s() < sw_search_last_s(s));
	return sw_wave_left_s(s->wave) <= 0 && !needs_one;
}

static void cost_all(batch_run *b, int64_t n_open)
{
	sw_search *s = b->search;
	qsort(b->open, (size_t)n_open, sizeof(sw_mesh_search *), by_model);
	for (int64_t i = 0; i < n_open;) {
		int64_t n = 0;
		if (is_late(s, i)) {
			stop_costing(b, i, n_open);
			return;
		}
		for (; i < n_open && n < COSTED_AT_ONCE; i++)
			if (!is_pruned(s, b->open[i]))
				b->costed[n++] = b->open[i];
		sw_parallel_for(n, s->wave->memo.threads, cost_one, b);
		for (int64_t k = 0; k < n; k++)
			note_cost(s->wave, &b->costed[k]->found);
	}
}

static int64_t list_open(batch_run *b)
{
	int64_t n_open = 0;
	for (size_t i = 0; i < b->n; i++)
		if (b->meshes[i]->pending)
			b->open[n_open++] = b->meshes[i];
	return n_open;
}

/* ---- attempts --------------------------------------------------------------------------- */

static void attempt(batch_run *b)
{
	int threads = b->search->wave->memo.threads;
	sw_pipeline((int64_t)b->n, threads, build_one, solve_one, b);
	int64_t n_open = list_open(b);
	sw_parallel_for(n_open, threads, apply_one, b);
	cost_all(b, n_open);
	if (b->prefetching)
		sw_beside_join(b->prefetching);
	b->prefetching = NULL;
	b->first_attempt = false;
}

/* Judge the attempts; *again: does another one follow? */
static sw_status judge(batch_run *b, bool *again)
{
	sw_status status = SW_OK;
	*again = false;
	for (size_t i = 0; i < b->n; i++) {
		sw_mesh_search *m = b->meshes[i];
		if (!m->pending)
			continue;
		sw_mesh_search_judge(m, b->search);
		*again = *again || m->pending;
		if (status == SW_OK && m->status != SW_OK) {
			status = m->status;
			if (b->search->err)
				*b->search->err = m->err;
		}
	}
	lower_budgets(b);
	return status;
}

/* ---- results ---------------------------------------------------------------------------- */

static sw_alternative line_of(const sw_search *s, const sw_mesh_search *m)
{
	const sw_found *f = &m->found;
	const sw_program_cost *c = &f->cost;
	int64_t least = m->bounds.least_bytes;
	sw_alternative a = {.feasible = f->feasible, .untried = f->untried};
	snprintf(a.name, sizeof(a.name), "%s", m->mesh->name);
	if (f->feasible) {
		a.step_time_s = c->step_time_s;
		a.compute_s = c->compute_s;
		a.communication_s = c->communication_s;
		a.payload_bytes = c->payload_bytes;
	}
	a.peak_bytes = f->feasible ? c->peak_bytes : least == INT64_MAX ? 0 : least;
	if (f->untried != SW_UNTRIED_NOT)
		a.bound_s = f->untried_s;
	else if (m->timed_out && !f->applied)
		a.untried = SW_UNTRIED_TIME;
	/* A bound until the plan is simulated. */
	else if (f->feasible && !s->asked.options->no_overlap)
		a.bound_s = sw_cost_step_bound_s(c);
	return a;
}

/* Return the step of a solved plan by the model, if all that may hide does. */
static double hidden_s(const sw_search *s, const sw_found *f)
{
	const sw_analysis *analysis = &s->wave->analysis;
	if (!analysis->overlap || analysis->overlap_weight <= 0)
		return f->cached_s;
	return fmax(f->kernels_s, (f->cached_s - f->kernels_s) / analysis->overlap_weight);
}

/* Note the result without a memory limit. A dropped mesh takes at least its kernels by the model.
 */
static void note_unconstrained(const sw_search *s, sw_mesh_entry *e, const sw_mesh_search *m)
{
	const sw_found *f = &m->found;
	bool dropped = f->untried != SW_UNTRIED_NOT && !f->applied && f->cached_s == 0;
	if (s->wave->mode == SW_MEMORY_UNCONSTRAINED)
		e->unconstrained =
			(sw_unconstrained){.model_s = f->applied ? f->cached_s
		                                      : dropped  ? m->bounds.kernels_s
		                                                 : INFINITY,
		                           .kernels_s = e->kernels_s,
		                           .hidden_s = f->applied ? hidden_s(s, f) : 0,
		                           .exceeds = f->cost.peak_bytes > s->wave->memory_bytes,
		                           .deferred = f->untried == SW_UNTRIED_DEFERRED,
		                           .cached = f->cached,
		                           .cost = f->cost};
}

static void note_bounds(const sw_search *s, sw_mesh_entry *e, const sw_mesh_search *m)
{
	e->kernels_s = m->bounds.kernels_s;
	e->model_bound_s = m->bounds.model_s;
	e->best_s = m->found.feasible ? m->bounds.best_s : INFINITY;
	e->least_bytes = m->bounds.input_bytes;
	e->timed_out = m->timed_out;
	note_unconstrained(s, e, m);
}

static void enter(sw_search *s, sw_mesh_search *m)
{
	sw_mesh_entry *e = entry_of(s, m);
	const sw_found *f = &m->found;
	s->timed_out = s->timed_out || m->timed_out;
	if (!sw_mode_looks_again(s->wave->mode)) {
		note_bounds(s, e, m);
		e->line = line_of(s, m);
	}
	sw_candidates_enter(s, m);
	if (f->applied && (f->feasible || f->untried != SW_UNTRIED_NOT))
		sw_padding_note_need(s, m);
	if (f->feasible)
		s->wave->tally.model_s = fmin(s->wave->tally.model_s, m->bounds.best_s);
}

sw_status sw_batch_search(sw_search *s)
{
	sw_search_wave *w = s->wave;
	batch_run b = {.search = s,
	               .first = w->queue.next - w->queue.batch,
	               .n = w->queue.batch,
	               .meshes = w->queue.meshes + w->queue.next - w->queue.batch,
	               .first_attempt = true};
	bool again = true;
	sw_status status = SW_OK;
	w->before = w->tally;
	while (again && status == SW_OK) {
		attempt(&b);
		status = judge(&b, &again);
	}
	for (size_t i = 0; i < b.n; i++) {
		sw_mesh_search_end(b.meshes[i], s);
		if (status == SW_OK)
			enter(s, b.meshes[i]);
		sw_plan_sketch_free(b.meshes[i]->sketch);
		b.meshes[i]->sketch = NULL;
	}
	return status;
}
