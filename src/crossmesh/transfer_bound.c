/*
 * Seconds that no plan is below, from what must cross the links of each level.
 *
 * Into a part of a level: the slices that it needs and does not hold (of a partial value: not all
 * terms of) must enter it, each once, over its own link or that of a part around it.
 *
 * Out of parts: each byte of a slice (of each term of a partial value) that someone outside its
 * holders' parts needs must leave one of these parts; which one is free, also byte by byte
 * (send_least_s). Of the terms of a slice only those count whose holders are in different parts: a
 * part that holds several terms sends their sum once.
 *
 * Data enters or leaves at most as fast as the links, and not in the first latency.
 */
#include "crossmesh/transfer_bound.h"
#include "crossmesh/internal.h"

#include <math.h>
#include <string.h>

typedef struct bound_finder {
	const sw_cluster *cluster;
	const slice_list *slices;
	const link_table *links;
	int64_t width; /* bytes of an element */
	sw_arena *arena;
	sw_crossmesh_bound best;
} bound_finder;

/* The links of one level: parts are counted from the first. */
typedef struct level_parts_used {
	int32_t level, first, n;
	double latency_s; /* the least of this level and those around it */
	double *rates;    /* [n]: of a part's own link and those of the parts around it */
} level_parts_used;

/* Fill the rates; a part that no device of the meshes is in has none. */
static level_parts_used parts_of_level(bound_finder *f, const sw_crossmesh_side *sides[2],
                                       int32_t level)
{
	const sw_cluster *cluster = f->cluster;
	level_parts_used parts = {
		.level = level, .first = f->links->first[level], .latency_s = INFINITY};
	int32_t last = parts.first;
	for (int32_t s = 0; s < 2; s++)
		for (int64_t i = 0; i < sw_atoms_devices(&sides[s]->axes); i++)
			last = SW_MAX(last, sw_cluster_part_at(cluster, sides[s]->devices[i], level));
	parts.n = last - parts.first + 1;
	parts.rates = SW_NEW_N(f->arena, double, parts.n);
	for (int32_t s = 0; s < 2; s++) {
		for (int64_t i = 0; i < sw_atoms_devices(&sides[s]->axes); i++) {
			int64_t device = sides[s]->devices[i];
			double *rate = &parts.rates[sw_cluster_part_at(cluster, device, level) - parts.first];
			if (*rate > 0)
				continue;
			for (int32_t l = 0; l <= level; l++)
				*rate += f->links->links[f->links->number[l][sw_cluster_part_at(cluster,
				                                                     device, l) -
				                                             f->links->first[l]]]
				                 .bandwidth;
		}
	}
	for (int32_t l = 0; l <= level; l++)
		parts.latency_s = fmin(parts.latency_s, cluster->levels[l].latency_s);
	return parts;
}

static void take(bound_finder *f, const level_parts_used *parts, double seconds, int32_t part,
                 bool into, double bytes)
{
	double all = seconds + parts->latency_s;
	if (bytes <= 0 || all <= f->best.seconds)
		return;
	f->best = (sw_crossmesh_bound){
		.seconds = all, .level = parts->level, .part = part, .into = into, .bytes = bytes};
}

/* ---- holders ---------------------------------------------------------------------------- */

/* List the parts of the holders of a term, each once. Return their number. */
static int32_t holder_parts(const bound_finder *f, const sw_unit_slice *s, int32_t term,
                            int32_t level, int32_t *list)
{
	int32_t n = 0;
	for (int32_t h = 0; h < s->n_holders; h++) {
		int64_t device = s->holders[(int64_t)term * s->n_holders + h];
		int32_t part = sw_cluster_part_at(f->cluster, device, level), at = 0;
		/* devices are in the mesh's order: mostly that of the parts */
		if (n > 0 && list[n - 1] == part)
			continue;
		while (at < n && list[at] != part)
			at++;
		if (at == n)
			list[n++] = part;
	}
	return n;
}

static bool has_part(const int32_t *list, int32_t n, int32_t part)
{
	for (int32_t i = 0; i < n; i++)
		if (list[i] == part)
			return true;
	return false;
}

static bool holds_all_terms(const bound_finder *f, const sw_unit_slice *s, int32_t level,
                            int32_t part)
{
	for (int32_t t = 0; t < s->n_terms; t++) {
		bool held = false;
		for (int32_t h = 0; h < s->n_holders && !held; h++)
			held = sw_cluster_part_at(f->cluster, s->holders[(int64_t)t * s->n_holders + h],
			               level) == part;
		if (!held)
			return false;
	}
	return true;
}

/* ---- into parts ------------------------------------------------------------------------- */

static void bound_into(bound_finder *f, const level_parts_used *parts)
{
	double *bytes = sw_alloc((size_t)parts->n * sizeof(*bytes));
	for (int32_t i = 0; i < f->slices->n; i++) {
		const sw_unit_slice *s = &f->slices->slices[i];
		int32_t before = -1;
		for (int32_t r = 0; r < s->n_receivers; r++) {
			int32_t part = sw_cluster_part_at(f->cluster, s->receivers[r], parts->level);
			/* receivers are in the order of the mesh: look for an earlier one in
			 * the same part */
			bool seen = part == before;
			for (int32_t q = 0; q < r && !seen; q++)
				seen = sw_cluster_part_at(f->cluster, s->receivers[q], parts->level) == part;
			before = part;
			if (!seen && !holds_all_terms(f, s, parts->level, part))
				bytes[part - parts->first] += (double)(s->elements * f->width);
		}
	}
	for (int32_t p = 0; p < parts->n; p++)
		if (bytes[p] > 0)
			take(f, parts, bytes[p] / parts->rates[p], parts->first + p, true,
			     bytes[p]);
	free(bytes);
}

/* ---- out of parts ----------------------------------------------------------------------- */

typedef SW_VEC(send_demand) demand_list;

static bool someone_outside(const bound_finder *f, const sw_unit_slice *s, int32_t level,
                            const int32_t *holders, int32_t n)
{
	for (int32_t r = 0; r < s->n_receivers; r++)
		if (!has_part(holders, n, sw_cluster_part_at(f->cluster, s->receivers[r], level)))
			return true;
	return false;
}

static int compare_parts(const void *a, const void *b)
{
	return *(const int32_t *)a - *(const int32_t *)b;
}

/* Demands of the same parts are one. */
static void add_demand(bound_finder *f, sw_map *known, int32_t *parts, int32_t n, double bytes,
                       demand_list *demands)
{
	qsort(parts, (size_t)n, sizeof(*parts), compare_parts);
	uint32_t next = (uint32_t)demands->len;
	uint32_t at = sw_map_intern(known, parts, (size_t)n * sizeof(*parts), next);
	if (at == next)
		sw_vec_push(demands, ((send_demand){0, n,
		                                    sw_arena_copy(f->arena, parts,
		                                                  (size_t)n * sizeof(*parts))}));
	demands->data[at].bytes += bytes;
}

/* Add the terms of a slice whose holders' parts are not those of an earlier term; parts are counted
 * from the first. */
static void add_terms(bound_finder *f, const level_parts_used *parts, const sw_unit_slice *s,
                      int32_t *list, bool *taken, sw_map *known, demand_list *demands)
{
	memset(taken, 0, (size_t)parts->n * sizeof(*taken));
	for (int32_t t = 0; t < s->n_terms; t++) {
		int32_t n = holder_parts(f, s, t, parts->level, list);
		bool apart = someone_outside(f, s, parts->level, list, n);
		for (int32_t i = 0; i < n; i++) {
			list[i] -= parts->first;
			apart = apart && !taken[list[i]];
		}
		for (int32_t i = 0; i < n && apart; i++)
			taken[list[i]] = true;
		if (apart)
			add_demand(f, known, list, n, (double)(s->elements * f->width), demands);
	}
}

static void bound_out(bound_finder *f, const level_parts_used *parts)
{
	demand_list demands = {0};
	sw_map known = {0};
	int32_t *list = sw_alloc((size_t)parts->n * sizeof(*list));
	bool *set = sw_alloc((size_t)parts->n * sizeof(*set));
	double bytes = 0;
	for (int32_t i = 0; i < f->slices->n; i++)
		add_terms(f, parts, &f->slices->slices[i], list, set, &known, &demands);
	memset(set, 0, (size_t)parts->n * sizeof(*set));
	double seconds = send_least_s(demands.data, (int32_t)demands.len, parts->rates, parts->n,
	                              set, &bytes);
	for (int32_t p = 0; p < parts->n; p++)
		if (set[p]) {
			take(f, parts, seconds, parts->first + p, false, bytes);
			break;
		}
	sw_map_clear(&known);
	sw_vec_clear(&demands);
	free(list);
	free(set);
}

sw_crossmesh_bound bound_of(const sw_cluster *cluster, const sw_crossmesh_side *from,
                            const sw_crossmesh_side *to, const slice_list *slices,
                            const link_table *links, sw_shape shape, sw_arena *arena)
{
	bound_finder f = {.cluster = cluster,
	                  .slices = slices,
	                  .links = links,
	                  .width = sw_type_bytes(shape.type),
	                  .arena = arena,
	                  .best = {.level = -1}};
	const sw_crossmesh_side *sides[2] = {from, to};
	for (int32_t level = 0; level < cluster->n_levels; level++) {
		level_parts_used parts = parts_of_level(&f, sides, level);
		bound_into(&f, &parts);
		bound_out(&f, &parts);
	}
	return f.best;
}
