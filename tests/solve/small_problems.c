#include "small_problems.h"

#include <string.h>

static int64_t random_cost(sw_rng *rng, int forbidden_percent)
{
	if (sw_rng_below(rng, 100) < forbidden_percent)
		return SW_FORBIDDEN;
	return sw_rng_below(rng, 2) ? sw_rng_below(rng, 4) : sw_rng_below(rng, 60) - 15;
}

static void fill(sw_rng *rng, int64_t *numbers, int64_t count, int forbidden_percent)
{
	for (int64_t i = 0; i < count; i++)
		numbers[i] = random_cost(rng, forbidden_percent);
}

static void add_random_edge(sw_problem *problem, sw_rng *rng, int forbidden_percent)
{
	int64_t cost[16], n = (int64_t)problem->nodes.len;
	int32_t a = (int32_t)sw_rng_below(rng, n), b = (int32_t)sw_rng_below(rng, n);
	int32_t rows = problem->nodes.data[a].strategies,
		columns = problem->nodes.data[b].strategies;
	fill(rng, cost, (int64_t)rows * columns, forbidden_percent);
	if (rows == columns && sw_rng_below(rng, 6) == 0) /* one node determines the other */
		for (int32_t i = 0; i < rows * columns; i++)
			cost[i] = i / columns == i % columns ? cost[i] : SW_FORBIDDEN;
	sw_problem_add_edge(problem, a, b, sw_problem_add_table(problem, rows, columns, cost));
}

static void add_random_span(sw_problem *problem, sw_rng *rng)
{
	int64_t usage[4];
	int32_t node = (int32_t)sw_rng_below(rng, (int64_t)problem->nodes.len);
	int32_t begin = (int32_t)sw_rng_below(rng, 12);
	for (int i = 0; i < 4; i++)
		usage[i] = sw_rng_below(rng, 3) ? sw_rng_below(rng, 10) : 0;
	sw_problem_add_span(problem, node, begin, begin + (int32_t)sw_rng_below(rng, 6), usage);
}

static void tie_two(sw_problem *problem, sw_rng *rng)
{
	int64_t n = (int64_t)problem->nodes.len;
	int32_t a = (int32_t)sw_rng_below(rng, n), b = (int32_t)sw_rng_below(rng, n);
	if (problem->nodes.data[a].strategies == problem->nodes.data[b].strategies)
		sw_problem_tie(problem, a, b);
}

void small_problem_make(sw_problem *problem, uint64_t seed)
{
	sw_rng rng = {seed, 0};
	static const int forbidden[] = {0, 0, 5, 25, 50};
	int percent = forbidden[sw_rng_below(&rng, 5)];
	int64_t nodes = 1 + sw_rng_below(&rng, 8), edges = sw_rng_below(&rng, 2 * nodes + 4);
	sw_problem_init(problem);
	for (int64_t n = 0; n < nodes; n++) {
		int64_t cost[4];
		fill(&rng, cost, 4, percent / 4);
		sw_problem_add_node(problem, 1 + (int32_t)sw_rng_below(&rng, 4), cost);
	}
	for (int64_t e = 0; e < edges; e++)
		add_random_edge(problem, &rng, percent);
	int64_t spans = sw_rng_below(&rng, 3) ? sw_rng_below(&rng, 2 * nodes) : 0;
	for (int64_t s = 0; s < spans; s++)
		add_random_span(problem, &rng);
	if (sw_rng_below(&rng, 4) == 0)
		tie_two(problem, &rng);
	if (sw_rng_below(&rng, 5))
		problem->capacity = sw_rng_below(&rng, 5 + 4 * spans);
}

int64_t product_of_strategies(const sw_problem *problem)
{
	int64_t product = 1;
	for (size_t n = 0; n < problem->nodes.len; n++)
		product *= problem->nodes.data[n].strategies;
	return product;
}

void small_problem_solve(const sw_problem *problem, small_optimum *optimum)
{
	int64_t assignments = product_of_strategies(problem);
	memset(optimum, 0, sizeof *optimum);
	for (int64_t number = 0; number < assignments; number++) {
		int32_t x[16];
		int64_t rest = number;
		sw_evaluation evaluation;
		for (size_t n = 0; n < problem->nodes.len; n++) {
			x[n] = (int32_t)(rest % problem->nodes.data[n].strategies);
			rest /= problem->nodes.data[n].strategies;
		}
		sw_problem_evaluate(problem, x, &evaluation);
		if (!evaluation.allowed || !evaluation.within)
			continue;
		if (optimum->feasible && optimum->cost <= evaluation.cost)
			continue;
		optimum->feasible = true;
		optimum->cost = evaluation.cost;
		memcpy(optimum->assignment, x, sizeof x);
	}
}

/* ---- tight problems --------------------------------------------------------------------- */

#define MOST_POINTS 16

static void add_tight_node(sw_problem *problem, sw_rng *rng, int64_t scale)
{
	int64_t cost[4], usage[4];
	int32_t strategies = 2 + (int32_t)sw_rng_below(rng, 3);
	for (int i = 0; i < 4; i++) {
		usage[i] = sw_rng_below(rng, 100);
		cost[i] = 100 - usage[i] + sw_rng_below(rng, 30);
	}
	int32_t node = sw_problem_add_node(problem, strategies, cost);
	int64_t spans = 1 + sw_rng_below(rng, 3);
	for (int64_t s = 0; s < spans; s++) {
		int64_t scaled[4];
		int32_t begin = (int32_t)sw_rng_below(rng, 8);
		for (int i = 0; i < 4; i++)
			scaled[i] = (usage[i] + sw_rng_below(rng, 10)) * scale +
			            sw_rng_below(rng, scale);
		sw_problem_add_span(problem, node, begin, begin + (int32_t)sw_rng_below(rng, 7),
		                    scaled);
	}
}

static void add_tight_edge(sw_problem *problem, sw_rng *rng, int32_t a, int32_t b, int percent)
{
	int64_t cost[16];
	int32_t rows = problem->nodes.data[a].strategies,
		columns = problem->nodes.data[b].strategies;
	for (int i = 0; i < 16; i++)
		cost[i] = sw_rng_below(rng, 100) < percent ? SW_FORBIDDEN : sw_rng_below(rng, 60);
	sw_problem_add_edge(problem, a, b, sw_problem_add_table(problem, rows, columns, cost));
}

void tight_problem_make(sw_problem *problem, uint64_t seed)
{
	sw_rng rng = {seed, 1};
	sw_evaluation value;
	int32_t nodes = 10 + (int32_t)sw_rng_below(&rng, 5), x[16];
	int32_t isolated = (int32_t)sw_rng_below(&rng, 3);
	int percent = (int)sw_rng_below(&rng, 3) * 8;
	static const int64_t scales[] = {1, 1, 1000, (int64_t)1 << 44};
	int64_t scale = scales[sw_rng_below(&rng, 4)];
	sw_problem_init(problem);
	for (int32_t v = 0; v < nodes; v++)
		add_tight_node(problem, &rng, scale);
	for (int32_t v = isolated + 1; v < nodes; v++) {
		int32_t other = isolated + (int32_t)sw_rng_below(&rng, v - isolated);
		for (int64_t k = 1 + sw_rng_below(&rng, 2); k > 0; k--)
			add_tight_edge(problem, &rng, sw_rng_below(&rng, 2) ? other : v, other,
			               percent);
		add_tight_edge(problem, &rng, other, v, percent);
		add_tight_edge(problem, &rng, v,
		               isolated + (int32_t)sw_rng_below(&rng, v - isolated), percent);
	}
	if (sw_rng_below(&rng, 4) == 0)
		tie_two(problem, &rng);
	for (int32_t v = 0; v < nodes; v++)
		x[v] = (int32_t)sw_rng_below(&rng, problem->nodes.data[v].strategies);
	sw_problem_evaluate(problem, x, &value);
	problem->capacity = value.peak_usage / 100 * (75 + sw_rng_below(&rng, 30));
}

/* A depth-first search; nodes before `depth` are chosen. */
typedef struct descent {
	const sw_problem *problem;
	small_optimum *optimum;
	int32_t x[16];
	int64_t rest[17]; /* least cost that the nodes from this one on add */
	int64_t used[MOST_POINTS];
} descent;

static int32_t later_end(const sw_edge *edge)
{
	return SW_MAX(edge->from, edge->to);
}

/* 0 if all entries are forbidden: the search finds that out later. */
static int64_t least_entry(const int64_t *cost, int64_t entries)
{
	int64_t least = cost[0];
	for (int64_t i = 1; i < entries; i++)
		least = SW_MIN(least, cost[i]);
	return least == SW_FORBIDDEN ? 0 : least;
}

static void sum_rest(descent *d)
{
	const sw_problem *problem = d->problem;
	for (int32_t v = (int32_t)problem->nodes.len; v-- > 0;) {
		const sw_problem_node *node = &problem->nodes.data[v];
		d->rest[v] = d->rest[v + 1] + least_entry(node->cost, node->strategies);
		for (size_t e = 0; e < problem->edges.len; e++) {
			const sw_cost_table *table =
				&problem->tables.data[problem->edges.data[e].table];
			int64_t least =
				least_entry(table->cost, (int64_t)table->rows * table->columns);
			d->rest[v] += later_end(&problem->edges.data[e]) == v ? least : 0;
		}
	}
}

/* The cost that node v's choice adds to that of the nodes before it; SW_FORBIDDEN if it is. */
static int64_t added_cost(const descent *d, int32_t v)
{
	const sw_problem *problem = d->problem;
	int64_t cost = problem->nodes.data[v].cost[d->x[v]];
	for (size_t e = 0; e < problem->edges.len && cost != SW_FORBIDDEN; e++) {
		const sw_edge *edge = &problem->edges.data[e];
		const sw_cost_table *table = &problem->tables.data[edge->table];
		if (later_end(edge) != v)
			continue;
		int64_t more = table->cost[d->x[edge->from] * table->columns + d->x[edge->to]];
		cost = more == SW_FORBIDDEN ? more : cost + more;
	}
	return cost;
}

/* Add the usage of node v, times `sign`. False if a point exceeds the capacity. */
static bool add_usage(descent *d, int32_t v, int sign)
{
	bool within = true;
	for (size_t s = 0; s < d->problem->spans.len; s++) {
		const sw_usage_span *span = &d->problem->spans.data[s];
		for (int32_t t = span->begin; span->node == v && t < span->end; t++) {
			d->used[t] += sign * span->usage[d->x[v]];
			within &= d->used[t] <= d->problem->capacity;
		}
	}
	return within;
}

static bool keeps_ties(const descent *d, int32_t v)
{
	for (int32_t u = 0; u <= v; u++) {
		int32_t other = d->problem->tied_to.data[u];
		if (other <= v && d->x[u] != d->x[other])
			return false;
	}
	return true;
}

static void descend(descent *d, int32_t v, int64_t cost)
{
	small_optimum *best = d->optimum;
	if (best->feasible && cost + d->rest[v] >= best->cost)
		return;
	if (v == (int32_t)d->problem->nodes.len) {
		best->feasible = true;
		best->cost = cost;
		memcpy(best->assignment, d->x, sizeof d->x);
		return;
	}
	for (d->x[v] = 0; d->x[v] < d->problem->nodes.data[v].strategies; d->x[v]++) {
		int64_t more = added_cost(d, v);
		if (more == SW_FORBIDDEN || !keeps_ties(d, v))
			continue;
		if (add_usage(d, v, 1))
			descend(d, v + 1, cost + more);
		add_usage(d, v, -1);
	}
}

void tight_problem_solve(const sw_problem *problem, small_optimum *optimum)
{
	descent d = {.problem = problem, .optimum = optimum};
	memset(optimum, 0, sizeof *optimum);
	sum_rest(&d);
	descend(&d, 0, 0);
}

/* ---- large problems --------------------------------------------------------------------- */

void large_problem_make(sw_problem *problem, uint64_t seed)
{
	sw_rng rng = {seed, 0};
	int64_t cost[6], table[36], usage[6];
	sw_problem_init(problem);
	for (int32_t v = 0; v < 120; v++) {
		for (int i = 0; i < 6; i++) {
			cost[i] = sw_rng_below(&rng, 1000);
			usage[i] = 1000 - cost[i];
		}
		sw_problem_add_node(problem, 6, cost);
		sw_problem_add_span(problem, v, v / 2, v + 10, usage);
		for (int k = 0; v && k < 3; k++) {
			for (int i = 0; i < 36; i++)
				table[i] = sw_rng_below(&rng, 500);
			sw_problem_add_edge(problem, (int32_t)sw_rng_below(&rng, v), v,
			                    sw_problem_add_table(problem, 6, 6, table));
		}
	}
	problem->capacity = 30000;
}
