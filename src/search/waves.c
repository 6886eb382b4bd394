/* A wave: meshes of one variant, entered into the queue together; and what came of them. */
#include "search/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- meshes ------------------------------------------------------------------------------- */

/* As the first variant can afford, so that a mesh has one number in all of them. */
static void limit_meshes(sw_search *s, sw_meshes *meshes)
{
	if (!*s->scope)
		s->afford_three = sw_meshes_afford_three(meshes, &s->wave->memo);
	sw_meshes_limit(meshes, s->afford_three, s->scope, sizeof(s->scope));
}

static sw_status strategy_meshes(sw_search *s, const sw_variant *v, sw_meshes *meshes)
{
	const sw_plan_options *o = s->options;
	sw_status status =
		sw_meshes_of(s->cluster, &o->strategy, s->model_limits, &s->wave->analysis.roles,
	                     v->rewrites.microbatches, meshes, s->err);
	if (status == SW_OK)
		status = sw_pins_cut(o->pins, s->cluster, meshes, s->err);
	if (status == SW_OK)
		limit_meshes(s, meshes);
	return status;
}

/* The entry of a mesh; a new one if it had none. */
static sw_mesh_entry *entry_for(sw_variant *v, size_t number, bool freed)
{
	for (size_t i = 0; i < v->entries.len; i++)
		if (v->entries.data[i].number == number && v->entries.data[i].mesh.freed == freed)
			return &v->entries.data[i];
	sw_vec_push(&v->entries, ((sw_mesh_entry){.number = number}));
	return &v->entries.data[v->entries.len - 1];
}

static void name_mesh(sw_mesh *mesh, const char *words)
{
	size_t length = strlen(mesh->name);
	snprintf(mesh->name + length, sizeof(mesh->name) - length, "%s%s", words ? words : "",
	         mesh->freed ? ", untied" : "");
}

/* Enters a mesh; its result without a memory limit stays known. */
static size_t enter_mesh(sw_variant *v, const sw_mesh *mesh, size_t number, bool freed,
                         const char *words)
{
	sw_mesh_entry *e = entry_for(v, number, freed);
	e->mesh = *mesh;
	e->mesh.freed = freed;
	name_mesh(&e->mesh, words);
	return (size_t)(e - v->entries.data);
}

/* Enters the wanted meshes; behind them, if repeated layers may differ, those once more whose axes
 * are free, or all there are. Returns how many; entries: [2 * meshes]. */
static size_t enter_meshes(const sw_search *s, sw_variant *v, const sw_meshes *meshes,
                           size_t *entries)
{
	sw_text words = {0};
	size_t n = 0;
	bool untied = s->options->untied &&
	              sw_equivalence_is_tied(s->model_limits, v->plan->program, false);
	sw_rewrites_add_words(&v->rewrites, &words);
	for (int freed = 0; freed <= untied; freed++)
		for (size_t i = 0; i < meshes->len; i++) {
			const sw_mesh *mesh = &meshes->data[i];
			bool early = s->wave->mode == SW_MEMORY_UNCONSTRAINED && mesh->tight;
			if (sw_mesh_set_has(&v->wanted, i) && !early &&
			    !(freed && !mesh->search && meshes->len > 1))
				entries[n++] = enter_mesh(v, mesh, i, freed, words.data);
		}
	sw_text_clear(&words);
	return n;
}

/* ---- opening ------------------------------------------------------------------------------ */

static int64_t memory_of(const sw_search *s, sw_memory_mode mode)
{
	int64_t memory = sw_search_memory(s);
	return mode == SW_MEMORY_RESERVED ? memory - memory / (int64_t)s->limits->reserve_parts
	                                  : memory;
}

static sw_tally first_tally(const sw_search *s, sw_memory_mode mode)
{
	bool has = sw_search_has_incumbent(s);
	return (sw_tally){.model_s = has && mode != SW_MEMORY_RESERVED ? s->incumbent.model_s
	                                                               : INFINITY,
	                  .step_s = has ? s->incumbent.cost.step_time_s : INFINITY,
	                  .exceeding_s = INFINITY};
}

static void make_searches(sw_search *s, sw_variant *v, const size_t *entries, size_t n)
{
	sw_wave *w = s->wave;
	w->n = n;
	w->storage = sw_alloc(sizeof(*w->storage) * (n + 1));
	w->meshes = sw_alloc(sizeof(*w->meshes) * (n + 1));
	for (size_t i = 0; i < n; i++) {
		sw_mesh_entry *e = &v->entries.data[entries[i]];
		e->in_bound = sw_mesh_is_free(&e->mesh) || n == 1;
		w->meshes[i] = &w->storage[i];
		sw_mesh_search_init(w->meshes[i], s, entries[i]);
	}
}

static sw_status enter_wave(sw_search *s, sw_variant *v)
{
	sw_meshes meshes = {0};
	sw_status status = strategy_meshes(s, v, &meshes);
	if (status == SW_OK) {
		size_t *entries = sw_alloc(sizeof(*entries) * (2 * meshes.len + 1));
		make_searches(s, v, entries, enter_meshes(s, v, &meshes, entries));
		free(entries);
		sw_progress_start(&s->wave->progress, "plan", s->options->quiet);
	}
	sw_vec_clear(&meshes);
	return status;
}

sw_status sw_wave_open(sw_search *s, size_t variant, sw_memory_mode mode, double time_limit_s)
{
	sw_variant *v = sw_search_variant(s, variant);
	const sw_plan_options *o = s->options;
	sw_wave *w = sw_alloc(sizeof(*w));
	*w = (sw_wave){.variant = variant,
	               .mode = mode,
	               .memory_bytes = memory_of(s, mode),
	               .start_s = sw_now_s(),
	               .time_limit_s = isfinite(time_limit_s) ? time_limit_s : 0,
	               .tolerance = v->pad_map.n > 1 ? s->limits->pad_behind : 1,
	               .tally = first_tally(s, mode)};
	sw_analysis_options how = {
		.no_overlap = o->no_overlap, .untied = o->untied, .limits = s->model_limits};
	sw_analysis_init(&w->analysis, v->plan, s->sidecar, how);
	sw_memo_init(&w->memo, &w->analysis, v->plan, o->threads);
	s->wave = w;
	sw_error *err = s->err, why = {0};
	s->err = variant > 0 ? &why : err;
	sw_status status = sw_pins_resolve(o->pins, &w->analysis, s->sidecar, s->err);
	s->err = err;
	if (status != SW_OK && variant > 0)
		return SW_OK; /* a rewrite has left nothing of what is pinned */
	return status == SW_OK ? enter_wave(s, v) : status;
}

void sw_wave_free(sw_search *s)
{
	sw_wave *w = s->wave;
	if (!w)
		return;
	for (size_t i = 0; i < w->n; i++)
		sw_mesh_search_clear(&w->storage[i]);
	for (size_t i = 0; i < w->starts.len; i++)
		sw_start_clear(&w->starts.data[i]);
	for (size_t i = 0; i < w->candidates.len; i++)
		sw_candidate_clear(&w->candidates.data[i]);
	sw_vec_clear(&w->starts);
	sw_vec_clear(&w->candidates);
	free(w->storage);
	free(w->meshes);
	sw_memo_clear(&w->memo);
	sw_analysis_clear(&w->analysis);
	free(w);
	s->wave = NULL;
}

/* ---- closing ------------------------------------------------------------------------------ */

static sw_mesh_entry *searched(sw_variant *v, const sw_wave *w, size_t i)
{
	return &v->entries.data[w->storage[i].entry];
}

/* Which meshes are far behind without a memory limit; and which are left to be searched within it,
 * since what was found does not fit, or was not costed. */
static void note_unconstrained(const sw_search *s, sw_variant *v)
{
	const sw_wave *w = s->wave;
	double best_s = INFINITY;
	v->far = s->incumbent.variant != w->variant || !sw_search_has_incumbent(s);
	v->far = v->far && (double)v->unconstrained.peak_bytes >
	                           s->limits->far_too_large * (double)sw_search_memory(s);
	for (size_t i = 0; i < w->n; i++)
		best_s = fmin(best_s, searched(v, w, i)->unconstrained.model_s);
	for (size_t i = 0; i < w->n; i++) {
		const sw_mesh_entry *e = searched(v, w, i);
		const sw_unconstrained *u = &e->unconstrained;
		double seconds = e->mesh.search ? u->model_s : u->kernels_s;
		if (seconds > s->limits->behind * best_s && !e->mesh.freed)
			sw_mesh_set_put(&v->behind, e->number, true);
		if (u->exceeds || u->deferred)
			sw_mesh_set_put(&v->open, e->number, true);
	}
}

/* Meshes that save memory at the price of time are left to be searched within it, too. */
static void open_tight(sw_search *s, sw_variant *v)
{
	sw_meshes meshes = {0};
	sw_error *err = s->err, why = {0};
	s->err = &why;
	if (strategy_meshes(s, v, &meshes) == SW_OK)
		for (size_t i = 0; i < meshes.len; i++)
			if (meshes.data[i].tight)
				sw_mesh_set_put(&v->open, i, true);
	s->err = err;
	sw_vec_clear(&meshes);
}

/* Which meshes are far behind the best plan of the variant. */
static void note_behind(const sw_search *s, sw_variant *v, double step_s)
{
	const sw_wave *w = s->wave;
	double limit_s = s->limits->behind * step_s;
	for (size_t i = 0; i < w->n; i++) {
		const sw_mesh_entry *e = searched(v, w, i);
		const sw_alternative *a = &e->line;
		bool given_up = a->bound_s > 0, open = sw_mesh_set_has(&v->open, e->number);
		if ((given_up && e->mesh.search && !open) || a->bound_s > limit_s ||
		    (!given_up && a->feasible && a->step_time_s > limit_s))
			sw_mesh_set_put(&v->behind, e->number, true);
	}
}

/* The best step of the variant's own plans in this wave; INFINITY: it has none. */
static double best_step_s(const sw_variant *v, const sw_wave *w)
{
	double best_s = INFINITY;
	for (size_t i = 0; i < w->n; i++) {
		const sw_alternative *a = &v->entries.data[w->storage[i].entry].line;
		if (a->feasible && a->bound_s == 0)
			best_s = fmin(best_s, a->step_time_s);
	}
	return best_s;
}

void sw_wave_close(sw_search *s)
{
	sw_wave *w = s->wave;
	sw_variant *v = sw_search_variant(s, w->variant);
	sw_progress_end(&w->progress);
	v->left_out = SW_MAX(v->left_out, w->memo.left_out);
	if (w->n > 0 && w->mode != SW_MEMORY_RESERVED) {
		double step_s = best_step_s(v, w);
		v->open.has.len = 0;
		if (w->mode == SW_MEMORY_UNCONSTRAINED)
			note_unconstrained(s, v);
		if (isfinite(step_s))
			note_behind(s, v, step_s);
		if (w->mode == SW_MEMORY_UNCONSTRAINED &&
		    v->unconstrained.peak_bytes > sw_search_memory(s))
			open_tight(s, v);
	}
	sw_wave_free(s);
}
