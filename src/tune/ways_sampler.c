/*
 * The sampler: ways drawn under the constraints of AutoDist's section 2.4, and changes of ways that
 * did well. A sample first draws its TASTE, how often each way is taken, so that samples are not
 * all the same mixture; then a way for each kind of variables, and for some variables their own.
 */
#include <math.h>

#include "tune/tune.h"

typedef struct taste {
	double way[SW_WAY_COUNT], sparse_way[SW_WAY_COUNT]; /* weights */
	/* chances; apart: parts differ from each other; said: of an algorithm */
	double proxy, parts, apart, own, coded, said;
} taste;

typedef struct ways_sampler {
	const sw_ways_space *space;
	const sw_tune_limits *limits;
	sw_rng *rng;
	sw_arena *arena;
	taste taste;
} ways_sampler;

static bool chance(ways_sampler *s, double share)
{
	return sw_rng_unit(s->rng) < share;
}

/* Weights that are now and then almost all of one way: exponentials, squared. */
static void draw_weights(ways_sampler *s, double *weights)
{
	for (int k = 0; k < SW_WAY_COUNT; k++) {
		double drawn = -log(1 - sw_rng_unit(s->rng));
		weights[k] = k == SW_WAY_ANY ? 0 : drawn * drawn;
	}
}

static void draw_taste(ways_sampler *s)
{
	static const double own[] = {0, 0.05, 0.3, 1};
	draw_weights(s, s->taste.way);
	draw_weights(s, s->taste.sparse_way);
	s->taste.proxy = sw_rng_unit(s->rng);
	s->taste.parts = sw_rng_unit(s->rng);
	s->taste.apart = chance(s, 0.3) ? sw_rng_unit(s->rng) : 0;
	s->taste.own = own[sw_rng_below(s->rng, SW_COUNT(own))];
	s->taste.coded = s->space->n_codecs > 0 ? sw_rng_unit(s->rng) : 0;
	s->taste.said = chance(s, 0.3) ? sw_rng_unit(s->rng) : 0;
}

/* ---- one variable ----------------------------------------------------------------------- */

static sw_way_kind draw_kind(ways_sampler *s, const sw_tuned_variable *v)
{
	const double *weights = v->sparse ? s->taste.sparse_way : s->taste.way;
	double sum = 0;
	for (int k = 0; k < SW_WAY_COUNT; k++)
		sum += weights[k];
	double at = sum * sw_rng_unit(s->rng);
	int k = 0;
	while (k < SW_WAY_COUNT - 1 && at >= weights[k])
		at -= weights[k++];
	return (sw_way_kind)k;
}

/* Owners are balanced, as the paper places them after the ways are drawn. */
static sw_way draw_way(ways_sampler *s, uint32_t variable, const sw_variable_ways *w, int32_t part)
{
	sw_way way = {.kind = draw_kind(s, &s->space->variables[variable])};
	if (!sw_ways_possible(s->space, variable, w->axis, w->n, part, way.kind))
		way.kind = SW_WAY_ALL_REDUCE;
	way.owner = way.kind == SW_WAY_OWNED ? -1 : 0;
	way.proxy = way.kind == SW_WAY_OWNED && chance(s, s->taste.proxy);
	return way;
}

/* Small variables stay whole; one that is more than its share of all bytes is divided if it has
 * owners, else their loads can't be even; others by chance. */
static bool is_divided(ways_sampler *s, const sw_tuned_variable *v, sw_way_kind kind)
{
	double share = (double)v->gradient_bytes / (double)s->space->gradient_bytes;
	if (!v->named || v->sparse || share < s->limits->small)
		return false;
	if (kind == SW_WAY_OWNED && share * (double)s->space->cluster->n_devices > 1)
		return chance(s, 0.75);
	return chance(s, s->taste.parts * 0.5);
}

static void draw_parts(ways_sampler *s, const sw_tuned_variable *v, sw_variable_ways *w)
{
	int64_t devices = s->space->cluster->n_devices, outer = s->space->cluster->levels[0].count;
	int64_t counts[] = {2, 3, 4, SW_MAX(outer, 2), devices};
	w->axis = (int32_t)(chance(s, 0.75) ? 0 : sw_rng_below(s->rng, v->shape.rank));
	int64_t n = counts[sw_rng_below(s->rng, SW_COUNT(counts))];
	w->n = (int32_t)SW_MIN(n, v->shape.dims[w->axis]);
	w->axis = w->n > 1 ? w->axis : 0;
	w->n = SW_MAX(w->n, 1);
}

static sw_variable_ways draw_variable(ways_sampler *s, uint32_t variable)
{
	const sw_tuned_variable *v = &s->space->variables[variable];
	sw_variable_ways w = {.n = 1};
	sw_way first = draw_way(s, variable, &w, 0);
	if (is_divided(s, v, first.kind))
		draw_parts(s, v, &w);
	w.parts = SW_NEW_N(s->arena, sw_way, w.n);
	for (int32_t k = 0; k < w.n; k++) {
		bool same = !chance(s, s->taste.apart) &&
		            sw_ways_possible(s->space, variable, w.axis, w.n, k, first.kind);
		w.parts[k] = same ? first : draw_way(s, variable, &w, k);
	}
	if (w.parts[0].kind != SW_WAY_GATHER && chance(s, s->taste.coded))
		w.codec = s->space->codecs[sw_rng_below(s->rng, s->space->n_codecs)];
	if (chance(s, s->taste.said))
		w.algorithm = 1 + (uint32_t)sw_rng_below(s->rng, SW_ALGORITHM_COUNT);
	return w;
}

/* The same for another variable of the kind, as far as its shape allows. */
static sw_variable_ways fit_to(ways_sampler *s, const sw_variable_ways *like, uint32_t variable)
{
	const sw_tuned_variable *v = &s->space->variables[variable];
	sw_variable_ways w = *like;
	if (w.n > 1 && (!v->named || w.axis >= v->shape.rank || v->shape.dims[w.axis] < w.n))
		w.n = 1;
	w.parts = SW_NEW_N(s->arena, sw_way, w.n);
	for (int32_t k = 0; k < w.n; k++) {
		w.parts[k] = like->parts[k];
		if (!sw_ways_possible(s->space, variable, w.axis, w.n, k, w.parts[k].kind))
			w.parts[k] = (sw_way){.kind = SW_WAY_ALL_REDUCE};
	}
	return w;
}

/* ---- all variables ---------------------------------------------------------------------- */

/* All-reduces merged by bytes are groups of about as many. */
static sw_merge draw_merge(ways_sampler *s)
{
	int64_t groups = INT64_C(1) << sw_rng_below(s->rng, 8);
	switch (sw_rng_below(s->rng, 3)) {
	case 0:
		return (sw_merge){0};
	case 1:
		return (sw_merge){.bytes = SW_MAX(s->space->gradient_bytes / groups, 1)};
	default:
		return (sw_merge){.ops = INT64_C(1) << sw_rng_below(s->rng, 10)};
	}
}

/* Now and then gradients that are there one after the other are merge groups, of about as many
 * bytes each. */
static void draw_groups(ways_sampler *s, sw_variable_ways *of)
{
	const sw_ways_space *space = s->space;
	int64_t n = INT64_C(1) << sw_rng_below(s->rng, 5);
	double bytes = 0, all = SW_MAX((double)space->gradient_bytes, 1);
	if (!chance(s, 0.2))
		return;
	for (uint32_t i = 0; i < space->n; i++) {
		uint32_t v = space->by_ready[i];
		of[v].group = 1 + (uint32_t)((double)(n - 1) * bytes / all);
		bytes += (double)space->variables[v].gradient_bytes;
	}
}

/* Now and then gradients are summed in an order of their own, in up to 16 steps: as they are there, or as the
 * next step reads what they update. */
static void draw_orders(ways_sampler *s, sw_variable_ways *of)
{
	const sw_ways_space *space = s->space;
	const uint32_t *order = chance(s, 0.5) ? space->by_ready : space->by_read;
	uint32_t steps = 2u << sw_rng_below(s->rng, 4);
	bool any = chance(s, 0.2);
	for (uint32_t i = 0; i < space->n; i++)
		of[order[i]].order = any ? 1 + i * steps / space->n : 0;
}

static void draw_kind_ways(ways_sampler *s, uint32_t kind, sw_variable_ways *of)
{
	sw_variable_ways shared = {0};
	for (uint32_t i = 0; i < s->space->n; i++) {
		if (s->space->variables[i].kind != kind)
			continue;
		if (shared.n == 0)
			of[i] = shared = draw_variable(s, i);
		else
			of[i] = chance(s, s->taste.own) ? draw_variable(s, i)
			                                : fit_to(s, &shared, i);
	}
}

sw_ways sw_ways_draw(const sw_ways_space *space, const sw_tune_limits *limits, sw_rng *rng,
                     sw_arena *arena)
{
	ways_sampler s = {.space = space, .limits = limits, .rng = rng, .arena = arena};
	sw_variable_ways *of = SW_NEW_N(arena, sw_variable_ways, space->n + 1);
	draw_taste(&s);
	sw_ways ways = {.merge = draw_merge(&s), .of = of};
	for (uint32_t k = 0; k < space->n_kinds; k++)
		draw_kind_ways(&s, k, of);
	draw_groups(&s, of);
	draw_orders(&s, of);
	sw_ways_settle(space, of);
	sw_ways_seal(space, &ways);
	return ways;
}

/* ---- changes ---------------------------------------------------------------------------- */

typedef void change_fn(ways_sampler *s, sw_ways *ways, sw_variable_ways *of, const sw_ways *other);

static void change_merge(ways_sampler *s, sw_ways *ways, sw_variable_ways *of, const sw_ways *other)
{
	(void)of;
	(void)other;
	ways->merge = draw_merge(s);
}

/* Let a kind of variables be a group of its own, or of another variable's, or of none. */
static void change_group(ways_sampler *s, sw_ways *ways, sw_variable_ways *of, const sw_ways *other)
{
	(void)ways;
	(void)other;
	uint32_t kind = (uint32_t)sw_rng_below(s->rng, s->space->n_kinds),
		 like = of[sw_rng_below(s->rng, s->space->n)].group;
	bool own = chance(s, 0.5);
	for (uint32_t i = 0; i < s->space->n; i++)
		if (s->space->variables[i].kind == kind)
			of[i].group = own ? s->space->n + 1 : like;
}

static void change_order(ways_sampler *s, sw_ways *ways, sw_variable_ways *of, const sw_ways *other)
{
	(void)ways;
	(void)other;
	draw_orders(s, of);
}

/* Let a kind's gradients be summed by another algorithm, or by the quickest. */
static void change_algorithm(ways_sampler *s, sw_ways *ways, sw_variable_ways *of,
                             const sw_ways *other)
{
	(void)ways;
	(void)other;
	uint32_t kind = (uint32_t)sw_rng_below(s->rng, s->space->n_kinds),
		 algorithm = (uint32_t)sw_rng_below(s->rng, SW_ALGORITHM_COUNT + 1);
	for (uint32_t i = 0; i < s->space->n; i++)
		if (s->space->variables[i].kind == kind)
			of[i].algorithm = algorithm;
}

static void change_kind(ways_sampler *s, sw_ways *ways, sw_variable_ways *of, const sw_ways *other)
{
	(void)ways;
	(void)other;
	s->taste.own = 0;
	draw_kind_ways(s, (uint32_t)sw_rng_below(s->rng, s->space->n_kinds), of);
}

static void change_variable(ways_sampler *s, sw_ways *ways, sw_variable_ways *of,
                            const sw_ways *other)
{
	(void)ways;
	(void)other;
	uint32_t i = (uint32_t)sw_rng_below(s->rng, s->space->n);
	of[i] = draw_variable(s, i);
}

/* Give one part to a device of its own choice, or to whoever has fewest bytes. */
static void change_owner(ways_sampler *s, sw_ways *ways, sw_variable_ways *of, const sw_ways *other)
{
	(void)ways;
	(void)other;
	uint32_t i = (uint32_t)sw_rng_below(s->rng, s->space->n);
	sw_variable_ways w = fit_to(s, &of[i], i);
	sw_way *way = &w.parts[sw_rng_below(s->rng, w.n)];
	if (way->kind == SW_WAY_OWNED)
		way->owner = sw_rng_below(s->rng, s->space->cluster->n_devices + 1) - 1;
	of[i] = w;
}

/* Flip whether all devices keep a kind's parameters. */
static void change_proxy(ways_sampler *s, sw_ways *ways, sw_variable_ways *of, const sw_ways *other)
{
	(void)ways;
	(void)other;
	uint32_t kind = (uint32_t)sw_rng_below(s->rng, s->space->n_kinds);
	for (uint32_t i = 0; i < s->space->n; i++) {
		if (s->space->variables[i].kind != kind)
			continue;
		of[i] = fit_to(s, &of[i], i);
		for (int32_t k = 0; k < of[i].n; k++)
			of[i].parts[k].proxy =
				of[i].parts[k].kind == SW_WAY_OWNED && !of[i].parts[k].proxy;
	}
}

/* Take about half of the kinds as others have them. */
static void cross(ways_sampler *s, sw_ways *ways, sw_variable_ways *of, const sw_ways *other)
{
	for (uint32_t k = 0; k < s->space->n_kinds; k++) {
		bool take = chance(s, 0.5);
		for (uint32_t i = 0; i < s->space->n && take; i++)
			if (s->space->variables[i].kind == k)
				of[i] = fit_to(s, &other->of[i], i);
	}
	if (chance(s, 0.5))
		ways->merge = other->merge;
}

sw_ways sw_ways_change(const sw_ways_space *space, const sw_tune_limits *limits,
                       const sw_ways *ways, const sw_ways *other, sw_rng *rng, sw_arena *arena)
{
	static change_fn *const changes[] = {change_kind,     change_kind,  change_kind,
	                                     change_merge,    change_group, change_owner,
	                                     change_proxy,    change_variable, cross,
	                                     change_order,    change_algorithm};
	ways_sampler s = {.space = space, .limits = limits, .rng = rng, .arena = arena};
	sw_variable_ways *of = SW_NEW_N(arena, sw_variable_ways, space->n + 1);
	draw_taste(&s);
	for (uint32_t i = 0; i < space->n; i++)
		of[i] = fit_to(&s, &ways->of[i], i);
	sw_ways changed = {.merge = ways->merge, .of = of};
	for (int64_t n = 1 + sw_rng_below(rng, 3); n > 0; n--)
		changes[sw_rng_below(rng, SW_COUNT(changes))](&s, &changed, of, other);
	sw_ways_settle(space, of);
	sw_ways_seal(space, &changed);
	return changed;
}
