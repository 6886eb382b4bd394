/* The choice of the knapsacks, and their dynamic programming. */
#include "solve/bound/capacity_knapsack.h"
#include "solve/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const solve_knapsack_limits *const limits = &default_limits.knapsack;

/* ---- choosing --------------------------------------------------------------------------- */

/* The usage of each strategy of node v at a point. False if v has no span there. */
static bool usage_at(const core *c, int32_t v, int32_t point, int64_t *usage)
{
	bool any = false;
	memset(usage, 0, (size_t)core_strategies(c, v) * sizeof *usage);
	for (int32_t k = c->span_first[v]; k < c->span_first[v + 1]; k++) {
		const graph_span *span = &c->spans[k];
		if (point < span->begin || point >= span->end)
			continue;
		any = true;
		for (int32_t i = 0; i < core_strategies(c, v); i++)
			usage[i] += span->usage[i];
	}
	return any;
}

typedef struct heavy_node {
	int32_t node;
	int64_t most;
	int64_t *usage;
	const double *given; /* the remembered messages, or NULL */
} heavy_node;

static int by_usage(const void *a, const void *b)
{
	const heavy_node *x = a, *y = b;
	return x->most != y->most ? (x->most < y->most ? 1 : -1)
	                          : (x->node > y->node) - (x->node < y->node);
}

static int by_node(const void *a, const void *b)
{
	const heavy_node *x = a, *y = b;
	return (x->node > y->node) - (x->node < y->node);
}

/* The messages from the knapsack of a point that a node remembers, or NULL. */
static const double *remembered_message(const graph_node *v, int32_t point)
{
	for (size_t k = 0; k < v->given.len; k++)
		if (v->given.data[k].point == point)
			return v->given.data[k].given;
	return NULL;
}

static bool varies(const double *given, int32_t n)
{
	for (int32_t i = 1; given && i < n; i++)
		if (given[i] != given[0])
			return true;
	return false;
}

/* Find the nodes of largest usage at a point, and those that remember messages from its knapsack,
 * in order of their numbers; their usages go to the arena. */
static int32_t find_heavy(const core *c, const graph *g, int32_t point, sw_arena *arena,
                          heavy_node *found, int64_t *usage)
{
	int32_t count = 0;
	heavy_node *all = sw_alloc((size_t)(c->n_nodes + 1) * sizeof *all);
	for (int32_t v = 0; v < c->n_nodes; v++) {
		const double *given = remembered_message(&g->nodes[c->graph_node[v]], point);
		if (!usage_at(c, v, point, usage) && !given)
			continue;
		int64_t most = most_of(usage, core_strategies(c, v));
		if (varies(given, core_strategies(c, v)))
			all[count++] = (heavy_node){v, INT64_MAX, NULL, given};
		else if ((double)most >= limits->min_usage * (double)c->capacity[point])
			all[count++] = (heavy_node){v, most, NULL, given};
	}
	qsort(all, (size_t)count, sizeof *all, by_usage);
	count = SW_MIN(count, limits->max_members);
	memcpy(found, all, (size_t)count * sizeof *all);
	free(all);
	qsort(found, (size_t)count, sizeof *found, by_node);
	for (int32_t k = 0; k < count; k++) {
		usage_at(c, found[k].node, point, usage);
		size_t bytes = (size_t)core_strategies(c, found[k].node) * sizeof *usage;
		found[k].usage = sw_arena_copy(arena, usage, bytes);
	}
	return count;
}

/* The share of all usages that is left when they are rounded down to units, relative to the share
 * of the capacity that is left. */
static double share_kept_by(const core *c, const heavy_node *members, int32_t count,
                            int64_t capacity, int64_t unit)
{
	double kept = 0, all = 0;
	for (int32_t k = 0; k < count; k++)
		for (int32_t i = 0; i < core_strategies(c, members[k].node); i++) {
			all += (double)members[k].usage[i];
			kept += (double)(members[k].usage[i] / unit * unit);
		}
	return kept / (all + 1) * (double)capacity / ((double)(capacity / unit * unit) + 1);
}

static int64_t choose_unit(const core *c, const heavy_node *members, int32_t count,
                           int64_t capacity)
{
	int64_t best = 1, strategies = 1;
	double most = -1;
	for (int32_t k = 0; k < count; k++)
		strategies += core_strategies(c, members[k].node);
	int64_t units = SW_MAX(SW_MIN(limits->unit_budget / strategies, limits->max_units),
	                       limits->min_units);
	if (capacity < units)
		return 1;
	for (int k = 0; k < limits->units_tried; k++) {
		int64_t unit = capacity / (units - k) + 1;
		double kept = share_kept_by(c, members, count, capacity, unit);
		if (kept > most) {
			most = kept;
			best = unit;
		}
	}
	return best;
}

typedef struct weighted_strategy {
	int32_t index, weight;
	double given;
} weighted_strategy;

static int by_weight(const void *a, const void *b)
{
	const weighted_strategy *x = a, *y = b;
	if (x->weight != y->weight)
		return x->weight < y->weight ? -1 : 1;
	if (x->given != y->given)
		return x->given < y->given ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* Strategies of the same weight that remember the same message share a choice. */
static void add_member(const core *c, knapsack *s, sw_arena *arena, const heavy_node *from,
                       int64_t unit)
{
	int32_t n = core_strategies(c, from->node), count = 0, k = s->members++;
	weighted_strategy *order = sw_alloc((size_t)n * sizeof *order);
	for (int32_t i = 0; i < n; i++) {
		int32_t weight = (int32_t)SW_MIN(from->usage[i] / unit, s->units + 1);
		order[i] = (weighted_strategy){i, weight, from->given ? from->given[i] : 0};
	}
	qsort(order, (size_t)n, sizeof *order, by_weight);
	s->node[k] = from->node;
	s->choice[k] = SW_NEW_N(arena, int32_t, n);
	for (int32_t i = 0; i < n; i++) {
		bool new = !i || order[i].weight != order[i - 1].weight ||
		           order[i].given != order[i - 1].given;
		if (new) {
			s->weight[s->first[k] + count] = order[i].weight;
			s->given[s->first[k] + count++] = order[i].given;
		}
		s->choice[k][order[i].index] = count - 1;
	}
	s->first[k + 1] = s->first[k] + count;
	free(order);
}

static void build(const core *c, knapsack *s, sw_arena *arena, int32_t point,
                  const heavy_node *members, int32_t count)
{
	int64_t capacity = c->capacity[point], unit = choose_unit(c, members, count, capacity),
		strategies = 0;
	for (int32_t k = 0; k < count; k++)
		strategies += core_strategies(c, members[k].node);
	*s = (knapsack){.point = point,
	                .units = (int32_t)(capacity / unit),
	                .unfit = 4 * (double)c->magnitude + 4};
	s->node = SW_NEW_N(arena, int32_t, count);
	s->first = SW_NEW_N(arena, int32_t, count + 1);
	s->weight = SW_NEW_N(arena, int32_t, strategies);
	s->choice = SW_NEW_N(arena, int32_t *, count);
	s->given = SW_NEW_N(arena, double, strategies);
	for (int32_t k = 0; k < count; k++)
		add_member(c, s, arena, &members[k], unit);
	s->before = SW_NEW_N(arena, double, (int64_t)count *(s->units + 1));
	s->after = SW_NEW_N(arena, double, (int64_t)count *(s->units + 1));
}

/* Whether two knapsacks have mostly the same members: the combinations that they exclude are then
 * mostly the same, too, and a second one only divides the messages. */
static bool has_same_members(const knapsack *a, const knapsack *b)
{
	int32_t common = 0;
	for (int32_t i = 0, j = 0; i < a->members && j < b->members;) {
		common += a->node[i] == b->node[j];
		int32_t x = a->node[i], y = b->node[j];
		i += x <= y;
		j += y <= x;
	}
	return common > limits->max_common * SW_MAX(a->members, b->members);
}

/* Whether some combination of its members does not fit. */
static bool can_bind(const knapsack *s)
{
	int64_t most = 0;
	for (int32_t k = 0; k < s->members; k++)
		most += s->weight[s->first[k + 1] - 1];
	return s->members > 1 && most > s->units;
}

int knapsacks_choose(const core *c, const graph *g, const double *value, sw_arena *arena,
                     knapsack **chosen)
{
	int count = 0;
	double all = 0, limit = INFINITY;
	int32_t limit_point = -1;
	heavy_node *members = sw_alloc((size_t)limits->max_members * sizeof *members);
	*chosen = SW_NEW_N(arena, knapsack, limits->max_knapsacks);
	int64_t *usage = sw_alloc((size_t)c->max_strategies * sizeof *usage);
	for (int32_t t = 0; t < c->points; t++)
		all += value[t] < INFINITY ? value[t] : 0;
	for (int tried = 0; tried < 4 * limits->max_knapsacks && count < limits->max_knapsacks;
	     tried++) {
		int32_t best = -1; /* the dearest point after the last one tried */
		double most = limits->min_price * all;
		for (int32_t t = 0; t < c->points; t++) {
			bool below = value[t] < limit || (value[t] == limit && t > limit_point);
			if (below && value[t] > most) {
				best = t;
				most = value[t];
			}
		}
		if (best < 0)
			break;
		limit = most;
		limit_point = best;
		int32_t n = find_heavy(c, g, best, arena, members, usage);
		if (!n)
			continue;
		build(c, &(*chosen)[count], arena, best, members, n);
		bool new = can_bind(&(*chosen)[count]);
		for (int k = 0; k < count && new &&most < INFINITY; k++)
			new = !has_same_members(&(*chosen)[k], &(*chosen)[count]);
		count += new;
	}
	free(usage);
	free(members);
	return count;
}

/* ---- dynamic programming ---------------------------------------------------------------- */

static double *before_of(const knapsack *s, int32_t k)
{
	return s->before + (int64_t)k * (s->units + 1);
}

static double *after_of(const knapsack *s, int32_t k)
{
	return s->after + (int64_t)k * (s->units + 1);
}

/* Independent minima that the compiler makes a vector of. */
#define LANES 8

/* The least of a[u] + b[u]. */
SW_VECTORISED static double least_sum(const double *restrict a, const double *restrict b, int32_t n)
{
	double low[LANES], least = INFINITY;
	int32_t u = 0;
	for (int l = 0; l < LANES; l++)
		low[l] = INFINITY;
	for (; u + LANES <= n; u += LANES)
		for (int l = 0; l < LANES; l++) {
			double sum = a[u + l] + b[u + l];
			low[l] = sum < low[l] ? sum : low[l];
		}
	for (; u < n; u++)
		least = a[u] + b[u] < least ? a[u] + b[u] : least;
	for (int l = 0; l < LANES; l++)
		least = low[l] < least ? low[l] : least;
	return least;
}

/* `before` and `after` hold, per number of units allowed, the least sum of messages taken back;
 * `after` in reverse order, so that both are read upwards. */
void knapsack_pull(knapsack *s, int32_t k)
{
	const double *before = before_of(s, k), *after = after_of(s, k);
	for (int32_t a = s->first[k]; a < s->first[k + 1]; a++) {
		int32_t spare = s->units - s->weight[a];
		const double *rest = after + s->units - spare;
		s->given[a] =
			spare < 0 ? s->unfit : SW_MIN(least_sum(before, rest, spare + 1), s->unfit);
	}
}

SW_VECTORISED void knapsack_step_forward(knapsack *s, int32_t k)
{
	if (k + 1 == s->members)
		return;
	const double *from = before_of(s, k);
	double *to = before_of(s, k + 1);
	for (int32_t u = 0; u <= s->units; u++)
		to[u] = INFINITY;
	for (int32_t a = s->first[k]; a < s->first[k + 1]; a++) {
		int32_t w = s->weight[a];
		double given = s->given[a];
		for (int32_t u = w; u <= s->units; u++) {
			double sum = from[u - w] - given;
			to[u] = sum < to[u] ? sum : to[u];
		}
	}
}

SW_VECTORISED void knapsack_step_back(knapsack *s, int32_t k)
{
	if (k == 0)
		return;
	const double *from = after_of(s, k);
	double *to = after_of(s, k - 1);
	for (int32_t u = 0; u <= s->units; u++)
		to[u] = INFINITY;
	for (int32_t a = s->first[k]; a < s->first[k + 1]; a++) {
		int32_t w = s->weight[a];
		double given = s->given[a];
		for (int32_t u = 0; u <= s->units - w; u++) {
			double sum = from[u + w] - given;
			to[u] = sum < to[u] ? sum : to[u];
		}
	}
}

void knapsack_begin(knapsack *s)
{
	memset(before_of(s, 0), 0, (size_t)(s->units + 1) * sizeof(double));
	memset(after_of(s, s->members - 1), 0, (size_t)(s->units + 1) * sizeof(double));
	for (int32_t k = s->members; k-- > 1;)
		knapsack_step_back(s, k);
}

wide knapsack_least(const knapsack *s, const int64_t *given)
{
	const wide infinite = (wide)1 << 120;
	wide *least = sw_alloc((size_t)(s->units + 1) * sizeof *least);
	/* u falls, so that least[u - w] is still that of the members before */
	for (int32_t k = 0; k < s->members; k++)
		for (int32_t u = s->units; u >= 0; u--) {
			wide low = infinite;
			for (int32_t a = s->first[k]; a < s->first[k + 1] && s->weight[a] <= u; a++)
				low = SW_MIN(low, least[u - s->weight[a]] - given[a]);
			least[u] = low;
		}
	wide result = least[s->units];
	free(least);
	return result;
}
