/*
 * Which readers re-gather.
 *
 * A value that is converted once for several readers (a weight gathered for the forward and the
 * backward pass, an activation for three dots) is cached from the first reader to the last. Where
 * memory is too small for that, some readers convert it again (plan->regathered): the version is
 * dropped in the GAP between the reader before and this one. Of the gaps over a program point that
 * exceeds a target, those with the most bytes x points per second of re-gathering are opened first;
 * then, the most expensive first, all are closed again for which the target leaves memory. The
 * target is found by costing partitioned programs, whose arena decides: live ranges count nearly
 * the same bytes. AxoNN (section IV-D) caches the gathered weights of as many layers as fit; here
 * that follows, for every value that several readers share.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/internal.h"
#include "search/live_versions.h"

/* ---- which gaps, for a target ----------------------------------------------------------- */

typedef struct gap_chooser {
	sw_version_ranges ranges;
	const sw_plan *plan;
	sw_demand demand;    /* of the ranges as chosen */
	int64_t *all_cached; /* [points] bytes with everything cached */
	/* [points + 1] how many points before this one exceed the target with everything cached */
	int32_t *above;
	sw_use **choices; /* uses whose gap may be opened, the greatest benefit first */
	size_t n_choices;
} gap_chooser;

static void add_range(void *context, int32_t begin, int32_t end, int64_t bytes)
{
	sw_demand_add(context, begin, end, bytes);
}

static void set_regather(gap_chooser *k, sw_use *use, bool regathers)
{
	sw_version_ranges_set(&k->ranges, use, regathers, add_range, &k->demand);
}

static void add_area(void *context, int32_t begin, int32_t end, int64_t bytes)
{
	*(double *)context += (double)bytes * (end - begin);
}

/* Return the bytes that an open gap frees, on average over its length. */
static double freed_bytes(gap_chooser *k, sw_use *use)
{
	double closed = 0, open = 0;
	sw_version_ranges_walk(&k->ranges, use->value, add_area, &closed);
	use->regathers = true;
	sw_version_ranges_walk(&k->ranges, use->value, add_area, &open);
	use->regathers = false;
	return (closed - open) / (use->point - use->previous_point - 1);
}

static void gap_chooser_init(gap_chooser *k, const sw_plan *plan, const sw_roles *roles,
                             sw_path_cache *paths)
{
	*k = (gap_chooser){.plan = plan};
	sw_version_ranges_init(&k->ranges, plan, roles, paths);
	int32_t n = roles->n_points;
	sw_arena *arena = &k->ranges.arena;
	k->all_cached = SW_NEW_N(arena, int64_t, n + 1);
	k->above = SW_NEW_N(arena, int32_t, n + 1);
	k->choices = SW_NEW_N(arena, sw_use *, k->ranges.uses.len + 1);
	sw_demand_init(&k->demand, n, arena);
	for (sw_id v = 0; v < plan->program->values.len; v++)
		sw_version_ranges_walk(&k->ranges, v, add_range, &k->demand);
	for (int32_t m = 0; m < n; m++)
		k->all_cached[m] = sw_demand_max(&k->demand, m, m + 1);
	for (uint32_t i = 0; i < k->ranges.uses.len; i++) {
		sw_use *use = &k->ranges.uses.data[i];
		use->freed_bytes = use->can_regather ? freed_bytes(k, use) : 0;
		if (use->freed_bytes > 0)
			k->choices[k->n_choices++] = use;
	}
}

static void gap_chooser_clear(gap_chooser *k)
{
	sw_version_ranges_clear(&k->ranges);
}

/* Break ties by the order of uses. */
static int by_benefit(const void *a, const void *b)
{
	const sw_use *x = *(sw_use *const *)a, *y = *(sw_use *const *)b;
	if (x->benefit != y->benefit)
		return x->benefit > y->benefit ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* The seconds at which re-gathering counts as free. */
#define MIN_SECONDS 1e-9

static void rank(gap_chooser *k, double target_bytes)
{
	for (int32_t m = 0; m < k->demand.n; m++)
		k->above[m + 1] = k->above[m] + ((double)k->all_cached[m] > target_bytes);
	for (size_t i = 0; i < k->n_choices; i++) {
		sw_use *use = k->choices[i];
		int32_t points = k->above[use->point] - k->above[use->previous_point + 1];
		use->benefit = use->freed_bytes * points / fmax(use->seconds, MIN_SECONDS);
	}
	if (k->n_choices > 0)
		qsort(k->choices, k->n_choices, sizeof(*k->choices), by_benefit);
}

static bool exceeds(const gap_chooser *k, const sw_use *use, double target_bytes)
{
	return (double)sw_demand_max(&k->demand, use->previous_point + 1, use->point) >
	       target_bytes;
}

/* Choose the open gaps for a target. O(choices (readers of a value + log points) + points). */
static void choose(gap_chooser *k, double target_bytes)
{
	rank(k, target_bytes);
	for (size_t i = 0; i < k->n_choices; i++) {
		sw_use *use = k->choices[i];
		if (use->regathers)
			set_regather(k, use, false);
	}
	for (size_t i = 0; i < k->n_choices; i++) {
		sw_use *use = k->choices[i];
		if (exceeds(k, use, target_bytes))
			set_regather(k, use, true);
	}
	for (size_t i = k->n_choices; i-- > 0;) {
		sw_use *use = k->choices[i];
		if (!use->regathers)
			continue;
		set_regather(k, use, false);
		if (exceeds(k, use, target_bytes))
			set_regather(k, use, true);
	}
}

/* Return the fewest bytes that closing one more gap would take. */
static double least_freed(const gap_chooser *k)
{
	double least = INFINITY;
	for (size_t i = 0; i < k->n_choices; i++) {
		const sw_use *use = k->choices[i];
		least = use->regathers ? fmin(least, use->freed_bytes) : least;
	}
	return least;
}

/* ---- the reads of a plan ---------------------------------------------------------------- */

static void write_reads(const gap_chooser *k, sw_reads *reads)
{
	reads->len = 0;
	for (size_t i = 0; i < k->ranges.uses.len; i++) {
		const sw_use *use = &k->ranges.uses.data[i];
		if (use->regathers)
			sw_vec_push(reads, ((sw_read){use->value, use->op}));
	}
	sw_reads_sort(reads);
}

void sw_plan_regather_all(sw_plan *plan)
{
	gap_chooser k;
	sw_sidecar sidecar;
	sw_roles roles;
	sw_path_store *store = sw_path_store_new(plan->cluster);
	sw_sidecar_default(plan->program, &sidecar);
	sw_roles_init(&roles, plan->program, &sidecar);
	gap_chooser_init(&k, plan, &roles, sw_path_store_get(store, plan->axes, plan->n_axes));
	choose(&k, 0);
	write_reads(&k, &plan->regathered);
	gap_chooser_clear(&k);
	sw_roles_clear(&roles);
	sw_sidecar_clear(&sidecar);
	sw_path_store_free(store);
}

/* ---- the target ------------------------------------------------------------------------- */

/* A costed program, and the target that led to it. */
typedef struct costed_target {
	double target_bytes;
	sw_reads regathered;
	sw_program_cost cost;
} costed_target;

typedef struct target_search {
	gap_chooser *gaps;
	const sw_costing *costing;
	costed_target fits,
		exceeds;   /* the costed targets nearest to the memory, from below and above */
	double next_bytes; /* of `fits`: the fewest bytes that caching more would take */
	bool bisect; /* next, bisect the targets; else interpolate the peaks linearly to the memory
	              */
} target_search;

static bool same_reads(const sw_reads *a, const sw_reads *b)
{
	return a->len == b->len &&
	       (a->len == 0 || !memcmp(a->data, b->data, a->len * sizeof(sw_read)));
}

static double next_target(const target_search *t)
{
	double low = t->fits.target_bytes, high = t->exceeds.target_bytes;
	double peaks = (double)(t->exceeds.cost.peak_bytes - t->fits.cost.peak_bytes);
	double rest = (double)(t->costing->memory_bytes - t->fits.cost.peak_bytes);
	double share = t->bisect || peaks <= 0 ? 0.5 : fmin(fmax(rest / peaks, 0.02), 0.98);
	return low + share * (high - low);
}

static void note_costed(target_search *t, costed_target *nearest, double target_bytes,
                        const sw_program_cost *cost)
{
	nearest->target_bytes = target_bytes;
	nearest->cost = *cost;
	sw_reads_copy(&nearest->regathered, &t->costing->plan->regathered);
	if (nearest == &t->fits)
		t->next_bytes = least_freed(t->gaps);
}

static sw_status try_target(target_search *t, int *costed, sw_error *err)
{
	const sw_costing *c = t->costing;
	sw_reads *reads = &c->plan->regathered;
	sw_program_cost cost;
	double target_bytes = next_target(t);
	choose(t->gaps, target_bytes);
	write_reads(t->gaps, reads);
	costed_target *same = same_reads(reads, &t->fits.regathered)      ? &t->fits
	                      : same_reads(reads, &t->exceeds.regathered) ? &t->exceeds
	                                                                  : NULL;
	t->bisect = same || !t->bisect;
	if (same) {
		same->target_bytes = target_bytes;
		return SW_OK;
	}
	++*costed;
	sw_status status = sw_cost_plan(c->options, c->plan, &cost, err);
	if (status == SW_OK)
		note_costed(t, cost.peak_bytes <= c->memory_bytes ? &t->fits : &t->exceeds,
		            target_bytes, &cost);
	return status;
}

/* Close as many gaps as the memory allows; the plan fits as it is. */
static sw_status cache_what_fits(target_search *t, sw_error *err)
{
	const sw_costing *c = t->costing;
	sw_status status = SW_OK;
	int costed = 0;
	for (int i = 0; i < (int)c->limits->max_regather_targets &&
	                costed < (int)c->limits->max_regather_costings && status == SW_OK;
	     i++) {
		if ((double)(c->memory_bytes - t->fits.cost.peak_bytes) < t->next_bytes ||
		    (c->deadline_s > 0 && sw_now_s() > c->deadline_s))
			break;
		status = try_target(t, &costed, err);
	}
	sw_reads_copy(&c->plan->regathered, &t->fits.regathered);
	return status;
}

/* Estimate the bytes that the plan takes as chosen, where it takes cached_bytes with everything
 * cached: live ranges give the difference and the ratio, and the smaller result counts. */
static int64_t estimate_bytes(const gap_chooser *k, int64_t cached_bytes)
{
	int64_t cached = 1, chosen = sw_demand_max(&k->demand, 0, k->demand.n);
	for (int32_t m = 0; m < k->demand.n; m++)
		cached = SW_MAX(cached, k->all_cached[m]);
	double part = (double)chosen / (double)cached;
	return SW_MIN((int64_t)(part * (double)cached_bytes),
	              SW_MAX(cached_bytes - (cached - chosen), 0));
}

static sw_status cost_all_open(target_search *t, sw_error *err)
{
	const sw_costing *c = t->costing;
	sw_program_cost cost;
	write_reads(t->gaps, &c->plan->regathered);
	sw_status status = sw_cost_plan(c->options, c->plan, &cost, err);
	if (status == SW_OK)
		note_costed(t, &t->fits,
		            (double)sw_demand_max(&t->gaps->demand, 0, t->gaps->demand.n), &cost);
	return status;
}

static sw_status find_target(target_search *t, sw_costing *c, sw_program_cost *cost, sw_error *err)
{
	const gap_chooser *k = t->gaps;
	note_costed(t, &t->exceeds, (double)sw_demand_max(&k->demand, 0, k->demand.n), cost);
	choose(t->gaps, 0);
	c->least_bytes = estimate_bytes(k, cost->peak_bytes);
	if ((double)c->least_bytes > c->doubt * (double)c->memory_bytes)
		return SW_OK;
	sw_status status = cost_all_open(t, err);
	if (status != SW_OK)
		return status;
	c->least_bytes = SW_MIN(t->fits.cost.peak_bytes, cost->peak_bytes);
	if (t->fits.cost.peak_bytes >= cost->peak_bytes) {
		sw_reads_copy(&c->plan->regathered, &t->exceeds.regathered);
		return SW_OK;
	}
	if (t->fits.cost.peak_bytes <= c->memory_bytes)
		status = cache_what_fits(t, err);
	*cost = t->fits.cost;
	return status;
}

sw_status sw_regather(sw_costing *c, sw_program_cost *cost, sw_error *err)
{
	gap_chooser k;
	target_search t = {.gaps = &k, .costing = c};
	c->least_bytes = cost->peak_bytes;
	if (sw_costing_is_lost(c, cost))
		return SW_OK;
	gap_chooser_init(&k, c->plan, c->roles,
	                 sw_path_store_get(c->paths, c->plan->axes, c->plan->n_axes));
	sw_status status = k.n_choices > 0 ? find_target(&t, c, cost, err) : SW_OK;
	sw_vec_clear(&t.fits.regathered);
	sw_vec_clear(&t.exceeds.regathered);
	gap_chooser_clear(&k);
	return status;
}
