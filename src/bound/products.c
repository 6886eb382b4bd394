/* All ways to divide a product among the parts of the outermost level. */
#include "bound/products.h"

#include <math.h>
#include <string.h>

bool sw_bound_parts(const sw_cluster *cluster, int32_t *level)
{
	for (int32_t l = 0; l < cluster->n_levels; l++)
		if (cluster->levels[l].count == 0 || cluster->levels[l].part_bandwidth)
			return false;
	*level = 0;
	while (*level < cluster->n_levels && cluster->levels[*level].count == 1)
		++*level;
	return *level < cluster->n_levels && cluster->calibration.n_points == 0;
}

typedef struct enumeration {
	division *d;
	int32_t n_outer, n_inner, outer[SW_MAX_ATOMS], inner[SW_MAX_ATOMS];
	int32_t n_others; /* 3: copies and passes; 1: copies alone */
	sw_product_way at;
	int32_t n_ways;
	sw_product_way ways[MAX_WAYS];
} enumeration;

static void add_way(enumeration *e)
{
	e->at.kernels_s = division_cheapest_s(e->d);
	e->ways[e->n_ways++] = e->at;
}

/* Give the primes of the parts from number `at` on to factors, or to copies. Equal primes are given
 * in one order. */
static void divide(enumeration *e, int32_t at, int32_t from)
{
	division *d = e->d;
	if (at == e->n_outer) {
		add_way(e);
		return;
	}
	int32_t prime = e->outer[at];
	bool same = at + 1 < e->n_outer && e->outer[at + 1] == prime;
	for (int32_t f = from; f < d->n; f++) {
		if (d->rule->factors[f].size <= e->at.parts[f])
			continue;
		e->at.parts[f] *= prime;
		division_set_parts(d, f, e->at.parts[f]);
		divide(e, at + 1, same ? f : 0);
		e->at.parts[f] /= prime;
		division_set_parts(d, f, e->at.parts[f]);
	}
	double *others[] = {&e->at.copies, &e->at.passes[0], &e->at.passes[1]};
	for (int32_t i = SW_MAX(from - d->n, 0); i < e->n_others; i++) {
		*others[i] *= prime;
		divide(e, at + 1, same ? d->n + i : 0);
		*others[i] /= prime;
	}
}

/* Return the number of ways to give the primes of the parts to k factors or to copies. */
static double number_of_ways(const enumeration *e, int32_t k)
{
	double ways = 1;
	for (int32_t i = 0, n = 0; i < e->n_outer; i++) {
		n = i > 0 && e->outer[i] == e->outer[i - 1] ? n + 1 : 1;
		ways *= (double)(n + k) / n; /* C(n + k, k) of n equal primes, factor by factor */
	}
	return ways;
}

/* Take the primes of the parts out of those of all devices. Both lists descend, as a level's atoms
 * do. */
static void split_primes(enumeration *e, int32_t level)
{
	const sw_cluster *cluster = e->d->cluster;
	memcpy(e->inner, e->d->primes, sizeof(e->inner));
	e->n_inner = e->d->n_primes;
	for (int32_t a = 0; a < cluster->atoms.n; a++) {
		if (cluster->atom_level[a] != level)
			continue;
		int32_t i = 0;
		while (e->inner[i] != cluster->atoms.size[a])
			i++;
		memmove(&e->inner[i], &e->inner[i + 1],
		        sizeof(*e->inner) * (size_t)(--e->n_inner - i));
		e->outer[e->n_outer++] = cluster->atoms.size[a];
	}
}

static void keep(const enumeration *e, sw_arena *arena, sw_product_kind *product)
{
	sw_product_way *ways = SW_NEW_N(arena, sw_product_way, e->n_ways);
	memcpy(ways, e->ways, sizeof(*ways) * (size_t)e->n_ways);
	*product = (sw_product_kind){
		.rule = e->d->rule, .ways = ways, .n_ways = e->n_ways, .least_s = INFINITY};
	for (int32_t i = 0; i < e->n_ways; i++)
		product->least_s = fmin(product->least_s, ways[i].kernels_s);
}

bool sw_bound_product(division *d, int32_t level, ways_choice of, sw_id op, const sw_rule *rule,
                      sw_arena *arena, sw_product_kind *product)
{
	division saved = *d;
	division_begin(d, op, rule);
	enumeration *e = sw_alloc(sizeof(*e));
	*e = (enumeration){.d = d, .n_others = of.coarse ? 1 : 3, .at = {.copies = 1}};
	if (!of.coarse)
		e->at.passes[0] = e->at.passes[1] = 1;
	for (int32_t f = 0; f < MAX_FACTORS; f++)
		e->at.parts[f] = 1;
	split_primes(e, level);
	bool few = rule->n_factors <= MAX_FACTORS &&
	           number_of_ways(e, d->n + e->n_others - 1) <= of.most;
	if (few) {
		memcpy(d->primes, e->inner, sizeof(d->primes));
		d->n_primes = e->n_inner;
		divide(e, 0, 0);
		keep(e, arena, product);
	}
	memcpy(d->primes, saved.primes, sizeof(d->primes));
	d->n_primes = saved.n_primes;
	free(e);
	return few;
}
