/*
 * The queue: which meshes of the open wave are searched next, and which are not searched at all.
 *
 * Fixed strategies come first, ordered by a bound of their kernels; then free meshes, which begin
 * where the others ended; then fixed strategies that are mostly too slow (waves.c). sw_prune
 * (prune.c) decides what is given up.
 */
#include "search/internal.h"

#include <math.h>

/* Meshes per batch. Fixed strategies are searched side by side, for none needs another's result;
 * free meshes begin where others ended, so only as many as the cores keep busy. The numbers are the
 * same on every machine, so that the answer is, too. */
#define FIXED_AT_ONCE 8
#define FREE_AT_ONCE 2

/* ---- pruning ---------------------------------------------------------------------------- */

bool sw_mesh_is_costed_anyway(const sw_search *s, const sw_mesh *mesh)
{
	return mesh->copied && s->asked.cluster->device.fusion != SW_FUSION_NONE;
}

/* Do the mesh's inputs alone exceed the memory, while a smaller plan is known? */
static bool is_too_large(const sw_search *s, const sw_mesh_search *m)
{
	const sw_variant *least = sw_variant_least(s);
	return s->wave->mode != SW_MEMORY_UNCONSTRAINED &&
	       m->bounds.input_bytes > s->wave->memory_bytes &&
	       (sw_search_has_incumbent(s) ||
	        (least && least->least.cost.peak_bytes <= m->bounds.input_bytes));
}

/* The model prices op by op, with an estimate of what fusing saves. So its kernels bound a step only
 * where each op is one; else the costed plan that saved most tells how much of them remains. */
double sw_tally_kernels_share(const sw_search *s, const sw_tally *tally)
{
	return s->asked.cluster->device.fusion == SW_FUSION_NONE ? 1 : fmin(tally->fused_share, 1);
}

double sw_tally_share(const sw_search *s, const sw_tally *tally)
{
	return fmin(sw_tally_kernels_share(s, tally), tally->merged_share);
}

/* Return how many times its bound a step of the mesh would have to take at most to be worth its
 * search: a free mesh of a large program takes long. */
static double worth(const sw_search *s, const sw_mesh_search *m)
{
	const sw_search_limits *limits = s->asked.limits;
	double gain =
		limits->gain_per_op * fmax(0, (double)s->canonical->ops.len - limits->gain_ops);
	return sw_mesh_is_free(m->mesh) ? 1 + gain : 1;
}

/* Is the problem of a mesh that gets a part of the work so large that this is not worth its model? The
 * solver would answer what it began with. */
static bool is_laborious(const sw_search *s, const sw_mesh_search *m)
{
	return sw_mesh_search_hurries(m, s) &&
	       s->asked.limits->hurried_sweeps * m->bounds.pairs > sw_mesh_search_work(m, s);
}

void sw_queue_prune(const sw_search *s, const sw_tally *tally, sw_mesh_search *m)
{
	/* A wave with a tolerance keeps meshes that are somewhat behind. */
	bool tolerant = s->wave->tolerance > 1;
	if (!m->pending || m->attempt != m->first_attempt)
		return;
	bool unconstrained = s->wave->mode == SW_MEMORY_UNCONSTRAINED;
	double bound_s = sw_mesh_is_costed_anyway(s, m->mesh)
	                         ? 0
	                         : sw_tally_kernels_share(s, tally) * m->bounds.kernels_s;
	sw_estimate estimate = {.step_s = bound_s * worth(s, m),
	                        .model_s = m->bounds.kernels_s,
	                        .by_model = tolerant,
	                        .too_large = is_too_large(s, m),
	                        .laborious = is_laborious(s, m),
	                        .deferrable = unconstrained && !tolerant};
	sw_untried untried = sw_prune(tally, s->wave->tolerance, &estimate);
	if (untried != SW_UNTRIED_NOT)
		sw_mesh_search_drop(m, untried, bound_s);
}

/* ---- order ------------------------------------------------------------------------------ */

/* Return the end of the run of fixed strategies, or of free meshes, that begins at `first`. */
static size_t run_end(const sw_search_wave *w, size_t first)
{
	size_t end = first + 1;
	while (end < w->queue.n && sw_mesh_is_free(w->queue.meshes[end]->mesh) ==
	                                   sw_mesh_is_free(w->queue.meshes[first]->mesh))
		end++;
	return end;
}

static size_t batch_at(const sw_search_wave *w, size_t first)
{
	if (first >= w->queue.n)
		return 0;
	size_t most = sw_mesh_is_free(w->queue.meshes[first]->mesh) ? FREE_AT_ONCE : FIXED_AT_ONCE;
	return SW_MIN(most, run_end(w, first) - first);
}

/* Is a mesh before `position` tried whose inputs fit in memory? */
static bool something_is_tried(const sw_search *s, size_t position)
{
	const sw_search_wave *w = s->wave;
	for (size_t i = 0; i < position; i++) {
		const sw_mesh_search *m = w->queue.meshes[i];
		if (m->work.listed && m->bounds.input_bytes <= w->memory_bytes)
			return true;
	}
	return isfinite(w->before.step_s);
}

/* Bound the time of the model at `position` by the time of the wave. The first model of which a plan may
 * fit may take all that is left of the search, so that something is tried. */
static sw_watch watch_for(sw_search *s, size_t position)
{
	sw_search_wave *w = s->wave;
	double share = 1 / (double)w->queue.n;
	sw_watch watch = {.progress = &w->progress,
	                  .mesh = w->queue.meshes[position]->mesh->name,
	                  .share = share,
	                  .done = (double)position * share};
	if (w->time_limit_s > 0)
		watch.deadline_s = position > 0 && something_is_tried(s, position)
		                           ? w->start_s + w->time_limit_s
		                           : sw_search_last_s(s);
	return watch;
}

static bool comes_before(const sw_mesh_search *a, const sw_mesh_search *b)
{
	return a->pending && (!b->pending || a->bounds.kernels_s < b->bounds.kernels_s);
}

/* Sort a run of fixed strategies by the least time of their kernels: once the best ones are
 * searched, much slower ones need no model. Within a time limit only those of one batch: the time
 * may be over before all are looked at. */
static void sort_fixed(sw_search *s, size_t first)
{
	sw_search_wave *w = s->wave;
	w->queue.n_sorted = first + (w->time_limit_s > 0 ? batch_at(w, first)
	                                                 : run_end(w, first) - first);
	for (size_t i = first; i < w->queue.n_sorted; i++) {
		sw_watch watch = watch_for(s, i);
		sw_mesh_search *m = w->queue.meshes[i];
		size_t k = i;
		sw_mesh_search_list(m, w, &watch);
		for (; k > first && comes_before(m, w->queue.meshes[k - 1]); k--)
			w->queue.meshes[k] = w->queue.meshes[k - 1];
		w->queue.meshes[k] = m;
	}
}

void sw_queue_build(sw_search *s, size_t position)
{
	sw_search_wave *w = s->wave;
	if (position >= w->queue.n_sorted && !sw_mesh_is_free(w->queue.meshes[position]->mesh))
		sort_fixed(s, position);
	sw_mesh_search *m = w->queue.meshes[position];
	sw_watch watch = watch_for(s, position);
	if (m->pending && !m->work.listed)
		sw_mesh_search_list(m, w, &watch);
	sw_queue_prune(s, &w->before, m);
	if (m->pending && !m->work.built)
		sw_mesh_search_build(m, s, &watch);
}

bool sw_queue_take(sw_search *s)
{
	sw_search_wave *w = s->wave;
	w->queue.batch = batch_at(w, w->queue.next);
	w->queue.next += w->queue.batch;
	return w->queue.batch > 0;
}

void sw_queue_prefetch(void *context)
{
	sw_search *s = context;
	const sw_search_wave *w = s->wave;
	size_t next = w->queue.next;
	while (next < w->queue.n && !sw_mesh_is_free(w->queue.meshes[next]->mesh))
		next++;
	size_t n = batch_at(w, next);
	for (size_t i = 0; i < n; i++)
		sw_queue_build(s, next + i);
}
