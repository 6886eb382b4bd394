/* Program variants: the program as it is, and rewritten. */
#include "search/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bound/bound.h"
#include "fuse/fuse.h"
#include "interpret/interpret.h"

/* ---- sets of meshes --------------------------------------------------------------------- */

bool sw_mesh_set_has(const sw_mesh_set *set, size_t mesh)
{
	return mesh < set->has.len ? set->has.data[mesh] : set->rest;
}

void sw_mesh_set_reset(sw_mesh_set *set, bool all)
{
	set->has.len = 0;
	set->rest = all;
}

bool sw_mesh_set_has_any(const sw_mesh_set *set)
{
	bool any = set->rest;
	for (size_t i = 0; i < set->has.len; i++)
		any = any || set->has.data[i];
	return any;
}

void sw_mesh_set_put(sw_mesh_set *set, size_t mesh, bool has)
{
	while (set->has.len <= mesh)
		sw_vec_push(&set->has, set->rest);
	set->has.data[mesh] = has;
}

void sw_mesh_set_add(sw_mesh_set *set, const sw_mesh_set *more)
{
	size_t n = SW_MAX(set->has.len, more->has.len);
	for (size_t i = 0; i < n; i++)
		sw_mesh_set_put(set, i, sw_mesh_set_has(set, i) || sw_mesh_set_has(more, i));
	set->rest = set->rest || more->rest;
}

/* ---- variants --------------------------------------------------------------------------- */

bool sw_variant_wants_equal(const sw_variant *v, size_t n, const sw_mesh_entry *e)
{
	for (size_t i = 0; i < n; i++) {
		const sw_mesh_entry *other = &v->entries.data[i];
		if (sw_mesh_set_has(&v->meshes.wanted, other->number) &&
		    other->line.step_time_s == e->line.step_time_s &&
		    other->line.compute_s == e->line.compute_s)
			return true;
	}
	return false;
}

static bool rewrites_nothing(const sw_rewrites *rewrites)
{
	return rewrites->padding.multiple == 0 && !rewrites->remat && rewrites->microbatches < 2;
}

static double kernels_s(const sw_search *s, const sw_plan *plan)
{
	return sw_bound_kernels_s(plan->program, s->asked.sidecar, plan->rules, s->asked.cluster,
	                          plan->strategy.owners != SW_OWNERS_NONE);
}

static sw_status rewrite(const sw_search *s, sw_variant *v, sw_program **program, sw_error *err)
{
	sw_remat_device device = sw_plan_remat_device(s->asked.cluster, s->canonical);
	sw_status status = sw_rewrite_in_order(s->canonical, s->asked.sidecar, &v->rewrites, device,
	                                       program, &v->padded, err);
	if (rewrites_nothing(&v->rewrites))
		*program = s->canonical;
	return status;
}

static size_t same_program(const sw_search *s, uint64_t hash)
{
	size_t i = 0;
	while (i < s->variants.len && s->variants.data[i].hash != hash)
		i++;
	return i;
}

static sw_plan *base_plan(const sw_search *s, sw_program *program)
{
	sw_plan *plan = sw_plan_new(program, s->asked.program_path, s->asked.cluster);
	plan->strategy = s->asked.options->strategy;
	plan->merge = sw_sync_merge(s->asked.options->sync, &s->asked.options->strategy);
	plan->memory_bytes = s->asked.options->memory_bytes;
	plan->schedule_limits = s->asked.options->limits.schedule;
	plan->passes = s->asked.options->passes;
	plan->paths = s->paths;
	plan->forms = sw_forms_copy(&s->forms, &plan->arena);
	return plan;
}

/* Fused values have no buffer. */
static sw_status share_bytes(const sw_search *s, const sw_program *program, int64_t *bytes,
                             sw_error *err)
{
	sw_program *fused = NULL;
	sw_fusion device = s->asked.cluster->device.fusion;
	sw_status status = device ? sw_fuse(program, device, &fused, err) : SW_OK;
	if (status == SW_OK)
		*bytes = sw_least_share_bytes(fused ? fused : program, s->asked.cluster->n_devices);
	sw_program_free(fused);
	return status;
}

bool sw_rewrites_save_alike(const sw_rewrites *a, const sw_rewrites *b)
{
	return SW_MAX(a->microbatches, 1) == SW_MAX(b->microbatches, 1) &&
	       !a->remat == !b->remat && (!a->remat || !strcmp(a->remat, b->remat));
}

static bool are_equal(const sw_rewrites *a, const sw_rewrites *b)
{
	return sw_rewrites_save_alike(a, b) &&
	       a->padding.multiple == b->padding.multiple && a->padding.share == b->padding.share &&
	       a->padding.classes.n == 0 && b->padding.classes.n == 0;
}

static sw_written *find_written(const sw_search *owner, const sw_rewrites *rewrites)
{
	for (size_t i = 0; i < owner->written.len; i++)
		if (are_equal(&owner->written.data[i]->rewrites, rewrites))
			return owner->written.data[i];
	return NULL;
}

static void copy_padded(sw_padded_list *to, const sw_padded_list *from)
{
	for (size_t i = 0; i < from->len; i++)
		sw_vec_push(to, from->data[i]);
}

static void keep_written(sw_search *owner, sw_variant *v)
{
	sw_written *w = sw_alloc(sizeof(*w));
	*w = (sw_written){.rewrites = sw_rewrites_copy(&v->rewrites, &owner->arena),
	                  .program = v->plan->program,
	                  .hash = v->hash,
	                  .share_bytes = v->share_bytes,
	                  .kernels_s = v->kernels_s};
	copy_padded(&w->padded, &v->padded);
	sw_vec_push(&owner->written, w);
	v->written = w;
}

void sw_variants_free_written(sw_search *s)
{
	for (size_t i = 0; i < s->written.len; i++) {
		sw_written *w = s->written.data[i];
		if (!w->taken && w->program != s->canonical)
			sw_program_free(w->program);
		sw_vec_clear(&w->padded);
		free(w);
	}
	sw_vec_clear(&s->written);
}

static void take_written(const sw_search *s, sw_written *w, sw_variant *v)
{
	v->written = w;
	v->hash = w->hash;
	v->share_bytes = w->share_bytes;
	v->kernels_s = w->kernels_s;
	copy_padded(&v->padded, &w->padded);
	v->plan = base_plan(s, w->program);
}

sw_status sw_variant_write(sw_search *s, sw_variant *v, sw_error *err)
{
	sw_program *program = NULL;
	sw_search *owner = sw_search_owner(s);
	sw_written *known = find_written(owner, &v->rewrites);
	if (known) {
		take_written(s, known, v);
		return SW_OK;
	}
	SW_TRY(rewrite(s, v, &program, err));
	v->hash = sw_program_hash(program);
	sw_status status = share_bytes(s, program, &v->share_bytes, err);
	v->plan = base_plan(s, program);
	v->kernels_s = kernels_s(s, v->plan);
	if (status == SW_OK && isfinite(owner->end_s))
		keep_written(owner, v);
	return status;
}

sw_status sw_variant_add(sw_search *s, const sw_rewrites *rewrites, const sw_mesh_set *wanted,
                         size_t *number, sw_error *err)
{
	sw_variant v = {.rewrites = sw_rewrites_copy(rewrites, &s->arena)};
	if (s->variants.len > 0 && sw_search_left_s(s) <= 0) {
		s->timed_out = true;
		return SW_NO;
	}
	sw_status status = sw_variant_write(s, &v, err);
	if (status != SW_OK) {
		sw_variant_clear(s, &v);
		return status;
	}
	*number = same_program(s, v.hash);
	if (*number < s->variants.len) {
		sw_mesh_set_add(&s->variants.data[*number].meshes.wanted, wanted);
		sw_variant_clear(s, &v);
		return SW_OK;
	}
	sw_mesh_set_add(&v.meshes.wanted, wanted);
	if (rewrites->padding.multiple > 0 && wanted->rest)
		v.pad_map = sw_rewrite_pad_map(s->canonical, rewrites->padding, v.plan->program,
		                               &s->arena);
	sw_vec_push(&s->variants, v);
	return SW_OK;
}

void sw_variant_clear(const sw_search *s, sw_variant *v)
{
	if (v->plan && (v->written || v->plan->program == s->canonical))
		v->plan->program = NULL;
	if (v->plan)
		v->plan->paths = NULL;
	sw_plan_free(v->plan);
	sw_vec_clear(&v->padded);
	sw_vec_clear(&v->meshes.wanted.has);
	sw_vec_clear(&v->meshes.behind.has);
	sw_vec_clear(&v->meshes.open.has);
	sw_vec_clear(&v->entries);
	sw_candidate_clear(&v->least);
}

bool sw_variant_is_too_large(const sw_search *s, const sw_variant *v)
{
	return v->share_bytes > sw_search_memory(s);
}

bool sw_variant_was_searched(const sw_variant *v)
{
	return v->entries.len > 0;
}

bool sw_variant_fits(const sw_variant *v)
{
	for (size_t i = 0; i < v->entries.len; i++)
		if (v->entries.data[i].line.feasible)
			return true;
	return false;
}

/* Within memory, with more computed again or in more microbatches a plan only takes longer, by the
 * model, than the quickest without a memory limit, even if all of that one's collectives that may hide
 * do. */
bool sw_variant_loses(const sw_search *s, const sw_variant *v)
{
	double least_s = INFINITY;
	for (size_t i = 0; i < v->entries.len; i++) {
		double hidden_s = v->entries.data[i].unconstrained.hidden_s;
		least_s = hidden_s > 0 ? fmin(least_s, hidden_s) : least_s;
	}
	return isfinite(least_s) && s->rival_s > 0 && least_s >= s->rival_s;
}

sw_variant *sw_variant_least(const sw_search *s)
{
	sw_variant *least = NULL;
	for (size_t i = 0; i < s->variants.len; i++) {
		sw_variant *v = &s->variants.data[i];
		if (v->least.snapshot.strategies &&
		    (!least || v->least.cost.peak_bytes < least->least.cost.peak_bytes))
			least = v;
	}
	return least;
}

void sw_variant_note_untried(sw_variant *v, sw_untried untried, double bound_s)
{
	sw_text words = {0};
	sw_alternative line = {.untried = untried, .bound_s = bound_s};
	sw_rewrites_add_words(&v->rewrites, &words);
	snprintf(line.name, sizeof(line.name), "any%s", words.data ? words.data : "");
	v->untried = line;
	sw_text_clear(&words);
}
