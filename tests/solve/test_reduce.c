/* Every exact reduction, alone and all together, against exhaustion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "small_problems.h"
#include "solve/graph.h"

static bool left_within(const graph *g, const int32_t *x)
{
	for (int32_t t = 0, taken = 0; t < g->moments; t++) {
		int64_t used = 0;
		for (int32_t v = 0; v < g->n_nodes; v++)
			for (size_t s = 0; s < g->nodes[v].spans.len; s++) {
				const graph_span *span = &g->nodes[v].spans.data[s];
				if (span->begin <= t && t < span->end)
					used += span->usage[x[v]];
			}
		taken += (int32_t)g->capacity_left[t];
		if (used > g->capacity[t] + taken)
			return false;
	}
	return true;
}

static int64_t left_cost(const graph *g, const int32_t *x)
{
	int64_t cost = g->constant;
	for (int32_t v = 0; v < g->n_nodes; v++)
		if (g->nodes[v].alive)
			cost = cost_plus(cost, g->nodes[v].cost[x[v]]);
	for (size_t e = 0; e < g->edges.len; e++) {
		const graph_edge *edge = &g->edges.data[e];
		if (edge->table < 0)
			continue;
		const graph_table *table = &g->tables.data[edge->table];
		cost = cost_plus(cost, table->cost[x[edge->node[0]] * table->columns + x[edge->node[1]]]);
	}
	return cost;
}

static bool next_assignment(const graph *g, int32_t *x)
{
	for (int32_t v = 0; v < g->n_nodes; v++) {
		if (!g->nodes[v].alive)
			continue;
		if (++x[v] < g->nodes[v].strategies)
			return true;
		x[v] = 0;
	}
	return false;
}

static bool best_of_left(const graph *g, int32_t *best, int64_t *cost)
{
	int32_t x[16] = {0};
	*cost = SW_FORBIDDEN;
	if (g->infeasible)
		return false;
	do {
		int64_t now = left_cost(g, x);
		if (now < *cost && left_within(g, x)) {
			*cost = now;
			memcpy(best, x, sizeof x);
		}
	} while (next_assignment(g, x));
	return *cost != SW_FORBIDDEN;
}

static void compare_steps(uint64_t seed, unsigned steps)
{
	sw_problem problem;
	small_optimum optimum;
	graph g;
	int32_t x[16] = {0};
	int64_t cost;
	small_problem_make(&problem, seed);
	small_problem_solve(&problem, &optimum);
	graph_build(&g, &problem);
	graph_reduce(&g, steps);
	bool feasible = best_of_left(&g, x, &cost);
	if (feasible != optimum.feasible || (feasible && cost != optimum.cost))
		fail_msg("seed %llu, steps %u: %d %lld, expected %d %lld", (unsigned long long)seed, steps, feasible,
		         (long long)cost, optimum.feasible, (long long)optimum.cost);
	if (feasible) {
		sw_evaluation evaluation;
		graph_restore(&g, x);
		sw_problem_evaluate(&problem, x, &evaluation);
		if (!evaluation.allowed || !evaluation.within || evaluation.cost != optimum.cost)
			fail_msg("seed %llu, steps %u: mapped back to %lld, expected %lld", (unsigned long long)seed,
			         steps, (long long)evaluation.cost, (long long)optimum.cost);
	}
	graph_clear(&g);
	sw_problem_clear(&problem);
}

#define FIRST_SEED 1000
#define PROBLEMS 150

static void each_step_alone_keeps_the_optimum(void **state)
{
	(void)state;
	print_message("seeds %d to %d\n", FIRST_SEED, FIRST_SEED + PROBLEMS - 1);
	for (unsigned step = 1; step <= REDUCE_ALL; step *= 2)
		for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS; seed++)
			compare_steps(seed, step);
}

static void all_steps_but_one_keep_the_optimum(void **state)
{
	(void)state;
	for (unsigned step = 1; step <= REDUCE_ALL; step *= 2)
		for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS; seed++)
			compare_steps(seed, REDUCE_ALL & ~step);
}

static void all_steps_keep_the_optimum(void **state)
{
	(void)state;
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + 4 * PROBLEMS; seed++)
		compare_steps(seed, REDUCE_ALL);
}

/* A path without capacity vanishes wholly. */
static void trees_vanish(void **state)
{
	(void)state;
	sw_problem problem;
	graph g;
	int64_t cost[4] = {3, 1, 4, 1}, table[16];
	sw_problem_init(&problem);
	for (int i = 0; i < 16; i++)
		table[i] = (i * 7) % 11;
	int32_t shared = sw_problem_add_table(&problem, 4, 4, table);
	for (int32_t v = 0; v < 100; v++) {
		sw_problem_add_node(&problem, 4, cost);
		if (v)
			sw_problem_add_edge(&problem, v / 2, v, shared);
	}
	graph_build(&g, &problem);
	graph_reduce(&g, REDUCE_ALL);
	for (int32_t v = 0; v < g.n_nodes; v++)
		assert_false(g.nodes[v].alive);
	assert_int_equal(g.n_tables, g.n_tables);
	graph_clear(&g);
	sw_problem_clear(&problem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_step_alone_keeps_the_optimum),
		cmocka_unit_test(all_steps_but_one_keep_the_optimum),
		cmocka_unit_test(all_steps_keep_the_optimum),
		cmocka_unit_test(trees_vanish),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
