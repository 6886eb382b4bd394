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
	int32_t rows = problem->nodes.data[a].strategies, columns = problem->nodes.data[b].strategies;
	fill(rng, cost, (int64_t)rows * columns, forbidden_percent);
	if (rows == columns && sw_rng_below(rng, 6) == 0) /* one determines the other */
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
