/*
 * What is moved once for several readers (a weight gathered for the forward pass and the backward,
 * an activation for three dots) is kept from the first to the last. Where memory is too small for
 * that, some readers move it anew (plan->regathered): it is dropped in the GAP between the reader
 * before and this one. Which gaps is chosen here: of those over a point that exceeds a target,
 * first those that free most bytes x points for the least seconds of moving again; then, dearest
 * first, all are closed again that the target leaves room for. The target is found by measuring
 * partitioned programs, whose arena decides: bytes are counted here by the lives of values, which
 * is near it but not the same. AxoNN (section IV-D) keeps the gathered weights of as many layers as
 * fit; here that follows, for whatever is moved for several.
 */
#include "search/keep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/keep_lives.h"

/* ---- which gaps, for a target ----------------------------------------------------------- */

typedef struct keeper {
	sw_lives lives;
	const sw_plan *plan;
	sw_demand demand;  /* as chosen */
	int64_t *all_kept; /* [points] */
	/* [points + 1] how many points before exceed the target with all kept */
	int32_t *above;
	sw_use **choices; /* whose gap may be opened, the worthiest first */
	size_t n_choices;
} keeper;

static void add_life(void *context, int32_t begin, int32_t end, int64_t bytes)
{
	sw_demand_add(context, begin, end, bytes);
}

static void set(keeper *k, sw_use *use, bool anew)
{
	sw_lives_set(&k->lives, use, anew, add_life, &k->demand);
}

static void add_area(void *context, int32_t begin, int32_t end, int64_t bytes)
{
	*(double *)context += (double)bytes * (end - begin);
}

/* Bytes that an open gap frees, over its length. */
static double freed_bytes(keeper *k, sw_use *use)
{
	double closed = 0, open = 0;
	sw_lives_walk(&k->lives, use->value, add_area, &closed);
	use->anew = true;
	sw_lives_walk(&k->lives, use->value, add_area, &open);
	use->anew = false;
	return (closed - open) / (use->point - use->since - 1);
}

static void keeper_init(keeper *k, const sw_plan *plan, const sw_roles *roles, sw_path_cache *paths)
{
	*k = (keeper){.plan = plan};
	sw_lives_init(&k->lives, plan, roles, paths);
	int32_t n = roles->n_points;
	sw_arena *arena = &k->lives.arena;
	k->all_kept = SW_NEW_N(arena, int64_t, n + 1);
	k->above = SW_NEW_N(arena, int32_t, n + 1);
	k->choices = SW_NEW_N(arena, sw_use *, k->lives.uses.len + 1);
	sw_demand_init(&k->demand, n, arena);
	for (sw_id v = 0; v < plan->program->values.len; v++)
		sw_lives_walk(&k->lives, v, add_life, &k->demand);
	for (int32_t m = 0; m < n; m++)
		k->all_kept[m] = sw_demand_most(&k->demand, m, m + 1);
	for (uint32_t i = 0; i < k->lives.uses.len; i++) {
		sw_use *use = &k->lives.uses.data[i];
		use->freed = use->may ? freed_bytes(k, use) : 0;
		if (use->freed > 0)
			k->choices[k->n_choices++] = use;
	}
}

static void keeper_clear(keeper *k)
{
	sw_lives_clear(&k->lives);
}

/* Equals in the order of uses. */
static int by_worth(const void *a, const void *b)
{
	const sw_use *x = *(sw_use *const *)a, *y = *(sw_use *const *)b;
	if (x->worth != y->worth)
		return x->worth > y->worth ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* A second less than this costs nothing. */
#define NO_SECONDS 1e-9

static void rank(keeper *k, double target_bytes)
{
	for (int32_t m = 0; m < k->demand.n; m++)
		k->above[m + 1] = k->above[m] + ((double)k->all_kept[m] > target_bytes);
	for (size_t i = 0; i < k->n_choices; i++) {
		sw_use *use = k->choices[i];
		int32_t points = k->above[use->point] - k->above[use->since + 1];
		use->worth = use->freed * points / fmax(use->seconds, NO_SECONDS);
	}
	if (k->n_choices > 0)
		qsort(k->choices, k->n_choices, sizeof(*k->choices), by_worth);
}

static bool exceeds(const keeper *k, const sw_use *use, double target_bytes)
{
	return (double)sw_demand_most(&k->demand, use->since + 1, use->point) > target_bytes;
}

/* O(choices (readers of a value + log points) + points). */
static void choose(keeper *k, double target_bytes)
{
	rank(k, target_bytes);
	for (size_t i = 0; i < k->n_choices; i++) {
		sw_use *use = k->choices[i];
		if (use->anew)
			set(k, use, false);
	}
	for (size_t i = 0; i < k->n_choices; i++) {
		sw_use *use = k->choices[i];
		if (exceeds(k, use, target_bytes))
			set(k, use, true);
	}
	for (size_t i = k->n_choices; i-- > 0;) {
		sw_use *use = k->choices[i];
		if (!use->anew)
			continue;
		set(k, use, false);
		if (exceeds(k, use, target_bytes))
			set(k, use, true);
	}
}

/* The smallest part that closing one gap more would take. */
static double least_freed(const keeper *k)
{
	double least = INFINITY;
	for (size_t i = 0; i < k->n_choices; i++) {
		const sw_use *use = k->choices[i];
		least = use->anew ? fmin(least, use->freed) : least;
	}
	return least;
}

/* ---- the reads of a plan ------------------------------------------------------------- */

static void write_reads(const keeper *k, sw_reads *reads)
{
	reads->len = 0;
	for (size_t i = 0; i < k->n_choices; i++) {
		const sw_use *use = k->choices[i];
		if (use->anew)
			sw_vec_push(reads, ((sw_read){use->value, use->op}));
	}
	sw_reads_sort(reads);
}

void sw_plan_share_nothing(sw_plan *plan)
{
	keeper k;
	sw_sidecar sidecar;
	sw_roles roles;
	sw_path_store *store = sw_path_store_new(plan->cluster);
	sw_sidecar_default(plan->program, &sidecar);
	sw_roles_init(&roles, plan->program, &sidecar);
	keeper_init(&k, plan, &roles, sw_path_store_get(store, plan->axes, plan->n_axes));
	choose(&k, 0);
	write_reads(&k, &plan->regathered);
	keeper_clear(&k);
	sw_roles_clear(&roles);
	sw_sidecar_clear(&sidecar);
	sw_path_store_free(store);
}

/* ---- the target ------------------------------------------------------------------------- */

#define MOST_MEASURED 6
#define MOST_TARGETS 16

/* What was measured, by the target that led to it. */
typedef struct trial {
	double target_bytes;
	sw_reads anew;
	sw_program_cost cost;
} trial;

typedef struct trials {
	keeper *k;
	sw_plan *plan;
	const sw_plan_options *options;
	int64_t memory_bytes;
	double deadline_s;   /* of sw_now_s; 0: none */
	trial fits, exceeds; /* nearest to the memory */
	double spare_bytes;  /* of what fits, the least that keeping more would take */
	/* the next target lies in the middle; else where a line through both meets the memory */
	bool halve;
} trials;

static bool same_reads(const sw_reads *a, const sw_reads *b)
{
	return a->len == b->len &&
	       (a->len == 0 || !memcmp(a->data, b->data, a->len * sizeof(sw_read)));
}

static double next_target(const trials *t)
{
	double low = t->fits.target_bytes, high = t->exceeds.target_bytes;
	double peaks = (double)(t->exceeds.cost.peak_bytes - t->fits.cost.peak_bytes);
	double room = (double)(t->memory_bytes - t->fits.cost.peak_bytes);
	double share = t->halve || peaks <= 0 ? 0.5 : fmin(fmax(room / peaks, 0.02), 0.98);
	return low + share * (high - low);
}

static void note(trials *t, trial *nearest, double target_bytes, const sw_program_cost *cost)
{
	nearest->target_bytes = target_bytes;
	nearest->cost = *cost;
	sw_reads_copy(&nearest->anew, &t->plan->regathered);
	if (nearest == &t->fits)
		t->spare_bytes = least_freed(t->k);
}

static sw_status try_target(trials *t, int *measured, sw_error *err)
{
	sw_program_cost cost;
	double target_bytes = next_target(t);
	choose(t->k, target_bytes);
	write_reads(t->k, &t->plan->regathered);
	trial *same = same_reads(&t->plan->regathered, &t->fits.anew)      ? &t->fits
	              : same_reads(&t->plan->regathered, &t->exceeds.anew) ? &t->exceeds
	                                                                   : NULL;
	t->halve = same || !t->halve;
	if (same) {
		same->target_bytes = target_bytes;
		return SW_OK;
	}
	++*measured;
	sw_status status = sw_search_measure(t->options, t->plan, &cost, err);
	if (status == SW_OK)
		note(t, cost.peak_bytes <= t->memory_bytes ? &t->fits : &t->exceeds, target_bytes,
		     &cost);
	return status;
}

/* As many gaps closed as the memory has room for; the plan fits as it is. */
static sw_status keep_what_fits(trials *t, sw_error *err)
{
	sw_status status = SW_OK;
	int measured = 0;
	for (int i = 0; i < MOST_TARGETS && measured < MOST_MEASURED && status == SW_OK; i++) {
		if ((double)(t->memory_bytes - t->fits.cost.peak_bytes) < t->spare_bytes ||
		    (t->deadline_s > 0 && sw_now_s() > t->deadline_s))
			break;
		status = try_target(t, &measured, err);
	}
	sw_reads_copy(&t->plan->regathered, &t->fits.anew);
	return status;
}

/* What the plan takes as chosen, if it takes so much with all kept: less by as much, or by the same
 * part, as is counted. */
static int64_t counted(const keeper *k, int64_t kept_bytes)
{
	int64_t kept = 1, chosen = sw_demand_most(&k->demand, 0, k->demand.n);
	for (int32_t m = 0; m < k->demand.n; m++)
		kept = SW_MAX(kept, k->all_kept[m]);
	double part = (double)chosen / (double)kept;
	return SW_MIN((int64_t)(part * (double)kept_bytes),
	              SW_MAX(kept_bytes - (kept - chosen), 0));
}

static sw_status measure_all_anew(trials *t, sw_error *err)
{
	sw_program_cost cost;
	write_reads(t->k, &t->plan->regathered);
	sw_status status = sw_search_measure(t->options, t->plan, &cost, err);
	if (status == SW_OK)
		note(t, &t->fits, (double)sw_demand_most(&t->k->demand, 0, t->k->demand.n), &cost);
	return status;
}

static sw_status keep(trials *t, double doubt, sw_program_cost *cost, int64_t *least_bytes,
                      sw_error *err)
{
	const keeper *k = t->k;
	note(t, &t->exceeds, (double)sw_demand_most(&k->demand, 0, k->demand.n), cost);
	choose(t->k, 0);
	*least_bytes = counted(k, cost->peak_bytes);
	if ((double)*least_bytes > doubt * (double)t->memory_bytes)
		return SW_OK;
	sw_status status = measure_all_anew(t, err);
	if (status != SW_OK)
		return status;
	*least_bytes = SW_MIN(t->fits.cost.peak_bytes, cost->peak_bytes);
	if (t->fits.cost.peak_bytes >= cost->peak_bytes) {
		sw_reads_copy(&t->plan->regathered, &t->exceeds.anew);
		return SW_OK;
	}
	if (t->fits.cost.peak_bytes <= t->memory_bytes)
		status = keep_what_fits(t, err);
	*cost = t->fits.cost;
	return status;
}

sw_status sw_plan_keep(const sw_planner *planner, const sw_plan_options *options,
                       int64_t memory_bytes, double doubt, double deadline_s, sw_plan *plan,
                       sw_program_cost *cost, int64_t *least_bytes, sw_error *err)
{
	keeper k;
	trials t = {.k = &k,
	            .plan = plan,
	            .options = options,
	            .memory_bytes = memory_bytes,
	            .deadline_s = deadline_s};
	keeper_init(&k, plan, &planner->roles,
	            sw_path_store_get(planner->paths, plan->axes, plan->n_axes));
	*least_bytes = cost->peak_bytes;
	sw_status status = k.n_choices > 0 ? keep(&t, doubt, cost, least_bytes, err) : SW_OK;
	sw_vec_clear(&t.fits.anew);
	sw_vec_clear(&t.exceeds.anew);
	keeper_clear(&k);
	return status;
}
