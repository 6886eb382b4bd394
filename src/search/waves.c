/* A wave: meshes of one variant, entered into the queue together, and their results. */
#include "search/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- meshes ----------------------------------------------------------------------------- */

/* Search as many meshes of three axes as the first variant can afford, so that a mesh has one
 * number in all. */
static void limit_meshes(sw_search *s, sw_meshes *meshes)
{
	if (!*s->scope)
		s->afford_three = sw_meshes_afford_three(meshes, &s->wave->memo);
	sw_meshes_limit(meshes, s->afford_three, s->scope, sizeof(s->scope));
}

/* May some variable have any way? */
static bool has_choice(const sw_analysis *a)
{
	for (uint32_t i = 0; i < a->variables.n; i++)
		if (a->variables.list[i].way.kind == SW_WAY_ANY)
			return true;
	return false;
}

static sw_status strategy_meshes(sw_search *s, const sw_variant *v, sw_meshes *meshes)
{
	const sw_plan_options *o = s->asked.options;
	sw_plan_strategy strategy = o->strategy;
	bool choice = o->sync && has_choice(&s->wave->analysis);
	if (choice || (o->sync && strategy.kind == SW_PLAN_WAYS)) {
		strategy.kind = SW_PLAN_SYNC;
		strategy.owners = choice ? SW_OWNERS_ANY : SW_OWNERS_FILE;
	}
	sw_status status =
		sw_meshes_of(s->asked.cluster, &strategy, s->asked.model_limits,
	                     &s->wave->analysis.roles, v->rewrites.microbatches, meshes, s->err);
	if (status == SW_OK)
		status = sw_pins_cut(o->pins, s->asked.cluster, meshes, s->err);
	if (status == SW_OK)
		limit_meshes(s, meshes);
	return status;
}

/* Return the mesh of the incumbent; where that is one of a part of the cluster, the best of the whole
 * cluster that was played. NULL: there is none. */
static const sw_mesh *best_of_whole(const sw_search *s, const sw_variant *v)
{
	const sw_mesh_entry *best = NULL;
	if (!sw_search_incumbent_mesh(s)->copied)
		return sw_search_incumbent_mesh(s);
	for (size_t i = 0; i < v->entries.len; i++) {
		const sw_mesh_entry *e = &v->entries.data[i];
		bool played = !e->mesh.copied && e->line.feasible && e->line.bound_s == 0;
		if (played && (!best || e->line.step_time_s < best->line.step_time_s))
			best = e;
	}
	return best ? &best->mesh : NULL;
}

/* Return into which axis of another mesh one that refines it puts a border; -1: none. */
static int32_t axis_cut(const sw_mesh *mesh, const sw_mesh *of)
{
	for (int32_t k = 0; k < of->n_axes; k++) {
		bool same = false;
		for (int32_t i = 0; i < mesh->n_axes; i++)
			same = same || mesh->axes[i].atoms == of->axes[k].atoms;
		if (!same)
			return k;
	}
	return -1;
}

/* Return the longest part of that axis, compared with parts of one size. */
static double unevenness(const sw_mesh *mesh, const sw_mesh *of, int32_t cut)
{
	int64_t longest = 1;
	for (int32_t i = 0; i < mesh->n_axes; i++)
		if (!(mesh->axes[i].atoms & ~of->axes[cut].atoms))
			longest = SW_MAX(longest, mesh->axes[i].size);
	return (double)longest / sqrt((double)of->axes[cut].size);
}

/* The cutting of the axes of a mesh in two. */
typedef struct refinement {
	const sw_mesh *of;
	const sw_roles *roles;
	bool for_kernels; /* they take longer than they need */
	uint32_t cut;     /* axes of which a mesh is marked */
} refinement;

/* Return a figure by which a mesh comes before others; INFINITY: it is of no use. Kernels are quicker
 * where more is divided: one of 625 devices divides no dimension that 25 divide. Collectives are
 * where a dimension is split over one part of an axis, and another one over the other part. */
static double rank_of(const refinement *r, const sw_mesh *mesh)
{
	int32_t cut = axis_cut(mesh, r->of);
	if (!mesh->spare || !sw_mesh_refines(mesh, r->of) || cut < 0)
		return INFINITY;
	double divided = sw_mesh_input_bytes(mesh, r->roles) / sw_mesh_input_bytes(r->of, r->roles);
	if (r->for_kernels && divided < 0.5)
		return divided;
	return r->cut >> cut & 1 ? INFINITY : unevenness(mesh, r->of, cut);
}

/* Mark the spare meshes that cut an axis of the incumbent's in two, as many as can be afforded: for
 * kernels those that halve a device's inputs at least, those that divide most first; then, of each
 * axis, the one that cuts it most evenly. */
static void mark_refinements(const sw_search *s, const sw_variant *v, const sw_meshes *meshes,
                             bool *marked)
{
	refinement r = {.of = best_of_whole(s, v),
	                .roles = &s->wave->analysis.roles,
	                .for_kernels = sw_search_kernels_lack(s)};
	double left = s->asked.model_limits->refine_work / (double)v->plan->program->ops.len;
	for (; r.of && left >= 1; left--) {
		double least = INFINITY;
		size_t best = meshes->len;
		for (size_t i = 0; i < meshes->len; i++) {
			double rank = marked[i] ? INFINITY : rank_of(&r, &meshes->data[i]);
			best = rank < least ? i : best;
			least = fmin(least, rank);
		}
		if (best == meshes->len)
			return;
		marked[best] = true;
		r.cut |= 1u << axis_cut(&meshes->data[best], r.of);
	}
}

static bool is_asked_for(const sw_plan_options *options, const sw_mesh *mesh)
{
	bool named = strncmp(mesh->name, options->mesh, strlen(options->mesh)) == 0;
	if (sw_mesh_is_free(mesh))
		return named;
	return !mesh->copied && (named || (options->with_fixed && !mesh->grid));
}

/* Is it the turn of a mesh? Where memory is reserved, of the one that is wanted; where a part of the
 * cluster is padded for, of that part's. */
static bool is_its_turn(const sw_search *s, const sw_mesh *mesh)
{
	uint32_t part = s->proposals.padding.part;
	bool too_early = s->wave->mode == SW_MEMORY_UNCONSTRAINED && mesh->saves_memory;
	if (sw_mode_looks_again(s->wave->mode))
		return true;
	if (part)
		return mesh->copied && sw_mesh_atoms(mesh) == part;
	return !mesh->spare && !too_early && mesh->wide == s->proposals.widens;
}

static void mark_meshes(const sw_search *s, const sw_variant *v, const sw_meshes *meshes,
                        bool *marked)
{
	const char *asked = s->asked.options->mesh;
	for (size_t i = 0; i < meshes->len && !s->proposals.refines; i++)
		marked[i] = is_its_turn(s, &meshes->data[i]);
	if (s->proposals.refines)
		mark_refinements(s, v, meshes, marked);
	for (size_t i = 0; i < meshes->len && asked; i++)
		marked[i] &= is_asked_for(s->asked.options, &meshes->data[i]);
}

/* Return the entry of a mesh; add one if it has none. */
static sw_mesh_entry *entry_for(sw_variant *v, size_t number, bool untied)
{
	for (size_t i = 0; i < v->entries.len; i++)
		if (v->entries.data[i].number == number && v->entries.data[i].mesh.untied == untied)
			return &v->entries.data[i];
	sw_vec_push(&v->entries, ((sw_mesh_entry){.number = number}));
	return &v->entries.data[v->entries.len - 1];
}

static void name_mesh(sw_mesh *mesh, const char *words)
{
	size_t length = strlen(mesh->name);
	snprintf(mesh->name + length, sizeof(mesh->name) - length, "%s%s", words ? words : "",
	         mesh->untied ? ", untied" : "");
}

/* Enter a mesh; keep its result without a memory limit. */
static size_t enter_mesh(sw_variant *v, const sw_mesh *mesh, size_t number, bool untied,
                         const char *words)
{
	sw_mesh_entry *e = entry_for(v, number, untied);
	e->mesh = *mesh;
	e->mesh.untied = untied;
	name_mesh(&e->mesh, words);
	return (size_t)(e - v->entries.data);
}

/* Enter the wanted meshes; behind them, if repeated layers may differ, once more those with free
 * axes, or all if there is one mesh. Return how many; entries: [2 * meshes]. */
static size_t enter_meshes(const sw_search *s, sw_variant *v, const sw_meshes *meshes,
                           size_t *entries)
{
	sw_text words = {0};
	size_t n = 0;
	bool untie = s->asked.options->untied, *marked = sw_alloc(meshes->len + 1);
	sw_rewrites_add_words(&v->rewrites, &words);
	mark_meshes(s, v, meshes, marked);
	for (int untied = 0; untied <= untie; untied++)
		for (size_t i = 0; i < meshes->len; i++) {
			const sw_mesh *mesh = &meshes->data[i];
			if (sw_mesh_set_has(&v->meshes.wanted, i) && marked[i] &&
			    !(untied && !mesh->search && meshes->len > 1))
				entries[n++] = enter_mesh(v, mesh, i, untied, words.data);
		}
	free(marked);
	sw_text_clear(&words);
	return n;
}

/* ---- opening ---------------------------------------------------------------------------- */

/* What is reserved counts from the memory, or from the incumbent if that is smaller by as much. */
static int64_t memory_of(const sw_search *s, sw_memory_mode mode)
{
	int64_t memory = sw_search_memory(s), peak = s->incumbent.cost.peak_bytes,
	        reserved = memory / (int64_t)s->asked.limits->reserve_parts;
	if (mode != SW_MEMORY_RESERVED)
		return memory;
	return (peak > memory - reserved ? memory : peak) - reserved;
}

static sw_tally first_tally(const sw_search *s, sw_memory_mode mode)
{
	bool has = sw_search_has_incumbent(s);
	bool known = has && !sw_mode_looks_again(mode);
	return (sw_tally){.model_s = known ? s->incumbent.model_s : INFINITY,
	                  .step_s = sw_search_limit_s(s),
	                  .exceeding_s = INFINITY,
	                  .merged_share = s->merged_share,
	                  .fused_share = s->fused_share};
}

/* Does a mesh wait for all others? So do fixed strategies that were deferred, since a quicker plan
 * does not fit, as long as nothing fits: the free meshes will mostly find something that does, and
 * then few of these are made to fit, which takes many costings. Where the time may end before, a
 * fixed strategy that fits must not be missed. */
static bool is_last(const sw_search *s, const sw_mesh_entry *e)
{
	return s->wave->mode == SW_MEMORY_LIMITED && !sw_search_has_incumbent(s) &&
	       s->wave->time_limit_s == 0 && e->unconstrained.deferred &&
	       !sw_mesh_is_free(&e->mesh);
}

static void make_searches(sw_search *s, const size_t *entries, size_t n)
{
	sw_search_wave *w = s->wave;
	const sw_mesh_entry *all = sw_search_variant(s, w->variant)->entries.data;
	size_t next = 0;
	w->queue.n = n;
	w->queue.storage = sw_alloc(sizeof(*w->queue.storage) * (n + 1));
	w->queue.meshes = sw_alloc(sizeof(*w->queue.meshes) * (n + 1));
	for (int last = 0; last < 2; last++)
		for (size_t i = 0; i < n; i++) {
			if (is_last(s, &all[entries[i]]) != last)
				continue;
			w->queue.meshes[next] = &w->queue.storage[next];
			sw_mesh_search_init(w->queue.meshes[next++], s, entries[i]);
		}
}

static sw_status enter_wave(sw_search *s, sw_variant *v)
{
	sw_meshes meshes = {0};
	sw_status status = strategy_meshes(s, v, &meshes);
	if (status == SW_OK) {
		size_t *entries = sw_alloc(sizeof(*entries) * (2 * meshes.len + 1));
		make_searches(s, entries, enter_meshes(s, v, &meshes, entries));
		free(entries);
		sw_progress_start(&s->wave->progress, "plan", s->asked.options->quiet);
	}
	sw_vec_clear(&meshes);
	return status;
}

/* Let the meshes begin from the incumbent, and where it is asked for, at the prices of what it waits
 * for. */
static sw_status begin_at_incumbent(sw_search *s)
{
	sw_search_wave *w = s->wave;
	w->incumbent = sw_plan_sketch(sw_search_variant(s, w->variant)->plan);
	sw_snapshot_restore(&s->incumbent.snapshot, &s->strategies, w->incumbent);
	if (sw_search_has_coarse(s)) {
		w->coarse = sw_plan_sketch(w->incumbent);
		sw_snapshot_restore(&s->proposals.coarse.snapshot, &s->strategies, w->coarse);
		w->near = (sw_near_plan){w->coarse, &s->proposals.coarse.mesh};
	}
	if (w->mode != SW_MEMORY_REPRICED)
		return SW_OK;
	sw_prices *prices = &s->proposals.reprice.prices;
	w->analysis.prices = prices;
	w->analysis.overlap_weight = 1; /* the highest price */
	const sw_program_cost *cost = &s->incumbent.cost;
	sw_status status = sw_prices_add(prices, &w->analysis, w->incumbent, cost, s->err);
	/* Where messages hold up everything there is no place to which they could move. */
	if (prices->free_s < s->asked.limits->reprice_free * cost->step_time_s)
		sw_mesh_set_reset(&sw_search_variant(s, w->variant)->meshes.wanted, false);
	return status;
}

sw_status sw_wave_open(sw_search *s, size_t variant, sw_memory_mode mode, double time_limit_s)
{
	sw_variant *v = sw_search_variant(s, variant);
	const sw_plan_options *o = s->asked.options;
	sw_search_wave *w = sw_alloc(sizeof(*w));
	*w = (sw_search_wave){.variant = variant,
	                      .mode = mode,
	                      .memory_bytes = memory_of(s, mode),
	                      .start_s = sw_now_s(),
	                      .time_limit_s = isfinite(time_limit_s) ? fmax(time_limit_s, 1e-9) : 0,
	                      .tolerance = v->pad_map.n > 1 ? s->asked.limits->pad_behind : 1,
	                      .tally = first_tally(s, mode)};
	sw_analysis_options how = {.no_overlap = o->no_overlap, .limits = s->asked.model_limits};
	sw_analysis_init(&w->analysis, v->plan, s->asked.sidecar, how);
	sw_memo_init(&w->memo, &w->analysis, v->plan, o->threads);
	s->wave = w;
	sw_error *err = s->err, why = {0};
	s->err = variant > 0 ? &why : err;
	sw_status status = sw_pins_resolve(o->pins, &w->analysis, s->asked.sidecar, s->err);
	if (status == SW_OK)
		status = sw_sync_apply(o->sync, &w->analysis, s->asked.sidecar, s->err);
	s->err = err;
	if (status == SW_OK)
		sw_sync_say_sending(&w->analysis, s->asked.sidecar, v->plan);
	if (status == SW_OK && (s->proposals.refines || mode == SW_MEMORY_REPRICED))
		status = begin_at_incumbent(s);
	if (status != SW_OK && variant > 0)
		return SW_OK; /* the rewritten program has no op or tensor that a pin names */
	return status == SW_OK ? enter_wave(s, v) : status;
}

void sw_wave_start(sw_search *s)
{
	sw_search_wave *w = s->wave;
	w->start_s = sw_now_s();
	if (w->time_limit_s > 0)
		w->time_limit_s = fmax(fmin(w->time_limit_s, sw_search_left_s(s)), 1e-9);
}

double sw_wave_left_s(const sw_search_wave *w)
{
	return w->time_limit_s > 0 ? w->start_s + w->time_limit_s - sw_now_s() : INFINITY;
}

void sw_wave_free(sw_search *s)
{
	sw_search_wave *w = s->wave;
	if (!w)
		return;
	for (size_t i = 0; i < w->queue.n; i++)
		sw_mesh_search_clear(&w->queue.storage[i]);
	for (size_t i = 0; i < w->starts.len; i++)
		sw_warm_start_clear(&w->starts.data[i]);
	for (size_t i = 0; i < w->candidates.len; i++)
		sw_candidate_clear(&w->candidates.data[i]);
	sw_plan_sketch_free(w->incumbent);
	sw_plan_sketch_free(w->coarse);
	sw_vec_clear(&w->starts);
	sw_vec_clear(&w->candidates);
	free(w->queue.storage);
	free(w->queue.meshes);
	sw_memo_clear(&w->memo);
	sw_analysis_clear(&w->analysis);
	free(w);
	s->wave = NULL;
}

/* ---- closing ---------------------------------------------------------------------------- */

static sw_mesh_entry *searched(sw_variant *v, const sw_search_wave *w, size_t i)
{
	return &v->entries.data[w->queue.storage[i].entry];
}

/* Note which meshes are far behind without a memory limit, and which remain to be searched within
 * it, since their plans do not fit or were not costed. */
static void note_unconstrained(const sw_search *s, sw_variant *v)
{
	const sw_search_wave *w = s->wave;
	double best_s = INFINITY;
	v->unconstrained.far = s->incumbent.variant != w->variant || !sw_search_has_incumbent(s);
	v->unconstrained.far = v->unconstrained.far &&
	                       (double)v->unconstrained.cost.peak_bytes >
	                               s->asked.limits->far_too_large * (double)sw_search_memory(s);
	for (size_t i = 0; i < w->queue.n; i++)
		best_s = fmin(best_s, searched(v, w, i)->unconstrained.model_s);
	for (size_t i = 0; i < w->queue.n; i++) {
		const sw_mesh_entry *e = searched(v, w, i);
		const sw_unconstrained *u = &e->unconstrained;
		double seconds = e->mesh.search ? u->model_s : u->kernels_s;
		if (seconds > s->asked.limits->behind * best_s && !e->mesh.untied)
			sw_mesh_set_put(&v->meshes.behind, e->number, true);
		if (u->exceeds || u->deferred)
			sw_mesh_set_put(&v->meshes.open, e->number, true);
	}
}

/* Meshes that trade time for memory remain to be searched within it, too. */
static void open_memory_savers(sw_search *s, sw_variant *v)
{
	sw_meshes meshes = {0};
	sw_error *err = s->err, why = {0};
	s->err = &why;
	if (strategy_meshes(s, v, &meshes) == SW_OK)
		for (size_t i = 0; i < meshes.len; i++)
			if (meshes.data[i].saves_memory)
				sw_mesh_set_put(&v->meshes.open, i, true);
	s->err = err;
	sw_vec_clear(&meshes);
}

/* Note which meshes are far behind the best plan of the variant. */
static void note_behind(const sw_search *s, sw_variant *v, double step_s)
{
	const sw_search_wave *w = s->wave;
	double limit_s = s->asked.limits->behind * step_s;
	for (size_t i = 0; i < w->queue.n; i++) {
		const sw_mesh_entry *e = searched(v, w, i);
		const sw_alternative *a = &e->line;
		bool given_up = a->bound_s > 0, open = sw_mesh_set_has(&v->meshes.open, e->number);
		if ((given_up && e->mesh.search && !open) || a->bound_s > limit_s ||
		    (!given_up && a->feasible && a->step_time_s > limit_s))
			sw_mesh_set_put(&v->meshes.behind, e->number, true);
	}
}

/* Return the best step of the variant's own plans in this wave; INFINITY: it has none. */
static double best_step_s(const sw_variant *v, const sw_search_wave *w)
{
	double best_s = INFINITY;
	for (size_t i = 0; i < w->queue.n; i++) {
		const sw_alternative *a = &v->entries.data[w->queue.storage[i].entry].line;
		if (a->feasible && a->bound_s == 0)
			best_s = fmin(best_s, a->step_time_s);
	}
	return best_s;
}

void sw_wave_close(sw_search *s)
{
	sw_search_wave *w = s->wave;
	sw_variant *v = sw_search_variant(s, w->variant);
	sw_progress_end(&w->progress);
	s->merged_share = w->tally.merged_share;
	s->fused_share = w->tally.fused_share;
	v->left_out = SW_MAX(v->left_out, w->memo.left_out);
	s->tied = s->tied || w->memo.tied;
	if (w->queue.n > 0 && !sw_mode_looks_again(w->mode)) {
		double step_s = best_step_s(v, w);
		v->meshes.open.has.len = 0;
		if (w->mode == SW_MEMORY_UNCONSTRAINED)
			note_unconstrained(s, v);
		if (isfinite(step_s))
			note_behind(s, v, step_s);
		if (w->mode == SW_MEMORY_UNCONSTRAINED &&
		    v->unconstrained.cost.peak_bytes > sw_search_memory(s))
			open_memory_savers(s, v);
	}
	sw_wave_free(s);
}
