/* Every exact reduction, alone and all together, against exhaustive search. */
#include "test.h"

#include <math.h>
#include <string.h>

#include "reduced_graph.h"
#include "small_problems.h"

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
	bool feasible = reduced_best(&g, x, &cost);
	if (feasible != optimum.feasible || (feasible && cost != optimum.cost))
		fail_msg("seed %llu, steps %u: %d %lld, expected %d %lld", (unsigned long long)seed,
		         steps, feasible, (long long)cost, optimum.feasible,
		         (long long)optimum.cost);
	if (feasible) {
		sw_evaluation evaluation;
		graph_restore(&g, x);
		sw_problem_evaluate(&problem, x, &evaluation);
		if (!evaluation.allowed || !evaluation.within || evaluation.cost != optimum.cost)
			fail_msg("seed %llu, steps %u: mapped back to %lld, expected %lld",
			         (unsigned long long)seed, steps, (long long)evaluation.cost,
			         (long long)optimum.cost);
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

/* ---- every assignment, not only the best ------------------------------------------------ */

static void fail_at(uint64_t seed, unsigned steps, const char *what)
{
	fail_msg("seed %llu, steps %u: %s", (unsigned long long)seed, steps, what);
}

/* An assignment of the reduced graph, mapped back, has the cost that the graph says, and fits if
 * the graph says so. */
static void check_every_restored(uint64_t seed, unsigned steps, const sw_problem *problem,
                                 const graph *g)
{
	int32_t x[REDUCED_NODES] = {0};
	do {
		int32_t whole[REDUCED_NODES];
		sw_evaluation value;
		int64_t cost = reduced_cost(g, x);
		memcpy(whole, x, sizeof whole);
		graph_restore(g, whole);
		sw_problem_evaluate(problem, whole, &value);
		if (value.allowed != (cost != SW_FORBIDDEN))
			fail_at(seed, steps, "forbidden in one, allowed in the other");
		if (value.allowed && value.cost != cost)
			fail_at(seed, steps, "another cost when mapped back");
		if (value.allowed && value.within != left_within(g, x))
			fail_at(seed, steps, "fits in one, not in the other");
	} while (reduced_next(g, x));
}

/* An assignment that fits, projected and mapped back, still fits and costs no more. */
static void check_every_projected(uint64_t seed, unsigned steps, const sw_problem *problem,
                                  const graph *g)
{
	int32_t x[REDUCED_NODES] = {0};
	for (int64_t number = product_of_strategies(problem); number-- > 0;) {
		int64_t rest = number;
		sw_evaluation before, after;
		for (size_t n = 0; n < problem->nodes.len; n++) {
			x[n] = (int32_t)(rest % problem->nodes.data[n].strategies);
			rest /= problem->nodes.data[n].strategies;
		}
		sw_problem_evaluate(problem, x, &before);
		if (!before.allowed || !before.within)
			continue;
		graph_project(g, x);
		for (int32_t v = 0; v < g->n_nodes; v++)
			if (g->nodes[v].alive && (x[v] < 0 || x[v] >= g->nodes[v].strategies))
				fail_at(seed, steps, "projected out of range");
		graph_restore(g, x);
		sw_problem_evaluate(problem, x, &after);
		if (!after.allowed || !after.within || after.cost > before.cost)
			fail_at(seed, steps, "worse after it was projected");
	}
}

static void check_spans(uint64_t seed, unsigned steps, const graph *g)
{
	for (int32_t v = 0; v < g->n_nodes; v++) {
		const graph_node *node = &g->nodes[v];
		for (size_t s = 0; s < node->spans.len && (steps & REDUCE_POINTS); s++) {
			const graph_span *span = &node->spans.data[s];
			int64_t most = 0;
			for (int32_t i = 0; i < node->strategies; i++)
				most = SW_MAX(most, span->usage[i]);
			if (span->begin < 0 || span->begin >= span->end || span->end > g->points ||
			    !most)
				fail_at(seed, steps, "an idle span is left");
			if (s && span->begin < span[-1].end)
				fail_at(seed, steps, "spans overlap");
		}
		for (size_t e = 0; e < node->edges.len; e++) {
			const graph_edge *edge = &g->edges.data[node->edges.data[e]];
			const graph_table *table = &g->tables.data[edge->table];
			int32_t side = edge_side(edge, v);
			if (edge->node[side] != v || edge->place[side] != (int32_t)e ||
			    table->references < 1)
				fail_at(seed, steps, "the edges are not in order");
			if ((side ? table->columns : table->rows) != node->strategies)
				fail_at(seed, steps, "a table of another size");
		}
	}
}

/* With messages everywhere: each reduction must keep them as long as their nodes have
 * strategies. */
static void check_everything(uint64_t seed, unsigned steps)
{
	sw_problem problem;
	graph g;
	sw_rng rng = {seed, 4};
	small_problem_make(&problem, seed);
	graph_build(&g, &problem);
	reduced_fill_memory(&g, &rng, true);
	graph_reduce(&g, steps);
	if (!g.infeasible && product_of_strategies(&problem) <= 5000) {
		assert_true(isfinite(reduced_sum_memory(&g)));
		check_spans(seed, steps, &g);
		check_every_restored(seed, steps, &problem, &g);
		check_every_projected(seed, steps, &problem, &g);
		graph copy;
		graph_copy(&copy, &g);
		double sum = reduced_sum_memory(&g);
		assert_true(fabs(reduced_sum_memory(&copy) - sum) <= 1e-9 * (fabs(sum) + 1));
		check_spans(seed, steps, &copy);
		graph_clear(&copy);
	}
	graph_clear(&g);
	sw_problem_clear(&problem);
}

static void every_assignment_keeps_cost_and_usage(void **state)
{
	(void)state;
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + 4 * PROBLEMS; seed++) {
		for (unsigned step = 1; step <= REDUCE_ALL; step *= 2)
			check_everything(seed, step);
		check_everything(seed, REDUCE_MERGE | REDUCE_LEAF | REDUCE_POINTS);
		check_everything(seed, REDUCE_ALL & ~(unsigned)REDUCE_DEGREE);
		check_everything(seed, REDUCE_ALL);
	}
}

/* A path without capacity is reduced to nothing. */
static void trees_without_capacity_are_reduced_to_nothing(void **state)
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
	graph_clear(&g);
	sw_problem_clear(&problem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_step_alone_keeps_the_optimum),
		cmocka_unit_test(all_steps_but_one_keep_the_optimum),
		cmocka_unit_test(all_steps_keep_the_optimum),
		cmocka_unit_test(every_assignment_keeps_cost_and_usage),
		cmocka_unit_test(trees_without_capacity_are_reduced_to_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
