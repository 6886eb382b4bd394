/* Knapsacks against all combinations of their members' strategies. */
#include "test.h"

#include <math.h>
#include <string.h>

#include "solve/bound/capacity_knapsack.h"

#define FIRST_SEED 30000
#define PROBLEMS 3000
#define MOST_MEMBERS_TRIED 6

/* Some nodes around one point, whose usages fill units exactly, nearly, or not at all. */
static void make_problem(sw_problem *problem, sw_rng *rng)
{
	static const int64_t scales[] = {1, 1, 7, 1000, (int64_t)1 << 40, ((int64_t)1 << 55) - 1};
	int64_t scale = scales[sw_rng_below(rng, SW_COUNT(scales))], all = 0;
	int32_t nodes = 1 + (int32_t)sw_rng_below(rng, MOST_MEMBERS_TRIED), other = -1;
	sw_problem_init(problem);
	for (int32_t v = 0; v < nodes; v++) {
		int64_t cost[5] = {0}, usage[5], table[25] = {0};
		int32_t strategies = 1 + (int32_t)sw_rng_below(rng, 5),
			begin = (int32_t)sw_rng_below(rng, 3);
		int64_t most = 0;
		for (int i = 0; i < 5; i++) {
			usage[i] = sw_rng_below(rng, 3) ? sw_rng_below(rng, 30) * scale : 0;
			usage[i] += sw_rng_below(rng, 2) ? sw_rng_below(rng, scale) : 0;
			cost[i] = sw_rng_below(rng, 50);
			most = i < strategies ? SW_MAX(most, usage[i]) : most;
		}
		all += most;
		sw_problem_add_node(problem, strategies, cost);
		sw_problem_add_span(problem, v, begin, begin + 1 + (int32_t)sw_rng_below(rng, 3),
		                    usage);
		if (sw_rng_below(rng, 3) == 0)
			sw_problem_add_span(problem, v, 1, 3, usage);
		table[0] = 1;
		if (other >= 0)
			sw_problem_add_edge(
				problem, other, v,
				sw_problem_add_table(problem, problem->nodes.data[other].strategies,
			                             strategies, table));
		other = v;
	}
	problem->capacity = sw_rng_below(rng, all + 2);
}

typedef struct subject {
	uint64_t seed;
	sw_rng rng;
	sw_problem problem;
	graph g;
	core c;
	sw_arena arena;
	knapsack *knapsacks;
	int count;
} subject;

static void make_subject(subject *s, uint64_t seed)
{
	double worth[64];
	*s = (subject){.seed = seed, .rng = {seed, 3}};
	make_problem(&s->problem, &s->rng);
	graph_build(&s->g, &s->problem);
	if (sw_rng_below(&s->rng, 2))
		graph_reduce(&s->g, REDUCE_POINTS);
	sw_arena_init(&s->arena);
	if (s->g.infeasible)
		return;
	for (int32_t t = 0; t < s->g.points; t++)
		worth[t] = sw_rng_below(&s->rng, 4) ? sw_rng_unit(&s->rng) : 0;
	for (int32_t v = 0; v < s->g.n_nodes; v++) {
		double given[5];
		for (int i = 0; i < 5; i++)
			given[i] = (double)sw_rng_below(&s->rng, 4);
		if (s->g.nodes[v].alive && s->g.points && sw_rng_below(&s->rng, 3) == 0) {
			int32_t t = (int32_t)sw_rng_below(&s->rng, s->g.points);
			graph_add_given(&s->g, v, t, given);
			worth[t] = INFINITY;
		}
	}
	core_init(&s->c, &s->g);
	s->count = knapsacks_choose(&s->c, &s->g, worth, &s->arena, &s->knapsacks);
}

static void clear_subject(subject *s)
{
	core_clear(&s->c);
	sw_arena_clear(&s->arena);
	graph_clear(&s->g);
	sw_problem_clear(&s->problem);
}

static int32_t strategies_of(const subject *s, const knapsack *sack, int32_t member)
{
	return core_strategies(&s->c, sack->node[member]);
}

static int64_t usage_of(const subject *s, const knapsack *sack, int32_t member, int32_t strategy)
{
	int64_t usage = 0;
	int32_t v = sack->node[member];
	for (int32_t k = s->c.span_first[v]; k < s->c.span_first[v + 1]; k++)
		if (s->c.spans[k].begin <= sack->point && sack->point < s->c.spans[k].end)
			usage += s->c.spans[k].usage[strategy];
	return usage;
}

static int32_t choices_of(const knapsack *sack, int32_t member)
{
	return sack->first[member + 1] - sack->first[member];
}

/* The next combination of choices; false after the last. */
static bool next_combination(const knapsack *sack, int32_t *a)
{
	for (int32_t k = 0; k < sack->members; k++) {
		if (++a[k] < choices_of(sack, k))
			return true;
		a[k] = 0;
	}
	return false;
}

static int64_t weight_of(const knapsack *sack, const int32_t *a)
{
	int64_t weight = 0;
	for (int32_t k = 0; k < sack->members; k++)
		weight += sack->weight[sack->first[k] + a[k]];
	return weight;
}

/* ---- construction ----------------------------------------------------------------------- */

static void check_choices(const subject *s, const knapsack *sack)
{
	for (int32_t k = 0; k < sack->members; k++) {
		bool used[8] = {0};
		assert_true(!k || sack->node[k] > sack->node[k - 1]);
		for (int32_t i = 0; i < strategies_of(s, sack, k); i++) {
			int32_t a = sack->choice[k][i];
			assert_in_range(a, 0, choices_of(sack, k) - 1);
			used[a] = true;
			if (sack->weight[sack->first[k] + a] > sack->units)
				assert_true(usage_of(s, sack, k, i) > s->c.capacity[sack->point]);
		}
		for (int32_t a = 0; a < choices_of(sack, k); a++) {
			const int32_t *weight = &sack->weight[sack->first[k]];
			assert_true(used[a] && weight[a] >= 0);
			assert_true(!a || weight[a] >= weight[a - 1]);
		}
	}
}

/* Combinations of strategies are counted through as numbers. */
static void check_every_fitting_combination(const subject *s, const knapsack *sack)
{
	int64_t combinations = 1;
	bool some_do_not_fit = false;
	for (int32_t k = 0; k < sack->members; k++)
		combinations *= strategies_of(s, sack, k);
	for (int64_t number = 0; number < combinations; number++) {
		int64_t rest = number, weight = 0;
		__int128 usage = 0;
		for (int32_t k = 0; k < sack->members; k++) {
			int32_t n = strategies_of(s, sack, k), i = (int32_t)(rest % n);
			rest /= n;
			usage += usage_of(s, sack, k, i);
			weight += sack->weight[sack->first[k] + sack->choice[k][i]];
		}
		some_do_not_fit |= weight > sack->units;
		if (usage <= s->c.capacity[sack->point] && weight > sack->units)
			fail_msg("seed %llu: a combination that fits is excluded",
			         (unsigned long long)s->seed);
		/* Small capacities have units of one, which is exact. */
		if (s->c.capacity[sack->point] < 128 && weight <= sack->units)
			assert_true(usage <= s->c.capacity[sack->point]);
	}
	assert_true(some_do_not_fit && sack->members > 1);
}

static void check_memory(const subject *s, const knapsack *sack)
{
	for (int32_t k = 0; k < sack->members; k++) {
		const graph_node *node = &s->g.nodes[s->c.graph_node[sack->node[k]]];
		for (int32_t i = 0; i < node->strategies; i++) {
			double expected = 0;
			for (size_t m = 0; m < node->given.len; m++)
				if (node->given.data[m].point == sack->point)
					expected = node->given.data[m].given[i];
			assert_true(sack->given[sack->first[k] + sack->choice[k][i]] == expected);
		}
	}
}

static void rounded_usages_exclude_no_combination_that_fits(void **state)
{
	(void)state;
	int64_t checked = 0;
	print_message("seeds %d to %d\n", FIRST_SEED, FIRST_SEED + PROBLEMS - 1);
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS; seed++) {
		subject s;
		make_subject(&s, seed);
		for (int k = 0; k < s.count; k++) {
			check_choices(&s, &s.knapsacks[k]);
			check_every_fitting_combination(&s, &s.knapsacks[k]);
			check_memory(&s, &s.knapsacks[k]);
			for (int other = 0; other < k; other++)
				assert_int_not_equal(s.knapsacks[k].point,
				                     s.knapsacks[other].point);
			checked++;
		}
		clear_subject(&s);
	}
	assert_true(checked > PROBLEMS / 4);
}

/* ---- minima over combinations ----------------------------------------------------------- */

static double random_given(sw_rng *rng)
{
	/* a multiple of 1/16, so that sums are exact */
	return (double)sw_rng_below(rng, 4000) / 16 - 100;
}

static double least_with(const knapsack *sack, int32_t member, int32_t choice)
{
	int32_t a[MOST_MEMBERS_TRIED] = {0};
	double least = sack->unfit;
	do {
		double sum = 0;
		for (int32_t k = 0; k < sack->members; k++)
			sum -= k == member ? 0 : sack->given[sack->first[k] + a[k]];
		if (a[member] == choice && weight_of(sack, a) <= sack->units)
			least = SW_MIN(least, sum);
	} while (next_combination(sack, a));
	return least;
}

/* Compute member k's messages, compare them, and set random ones. */
static void check_pull(subject *s, knapsack *sack, int32_t k)
{
	double expected[8];
	for (int32_t a = 0; a < choices_of(sack, k); a++)
		expected[a] = least_with(sack, k, a);
	knapsack_pull(sack, k);
	for (int32_t a = 0; a < choices_of(sack, k); a++)
		if (sack->given[sack->first[k] + a] != expected[a])
			fail_msg("seed %llu, member %d, choice %d: %.12g instead of %.12g",
			         (unsigned long long)s->seed, k, a, sack->given[sack->first[k] + a],
			         expected[a]);
	for (int32_t a = 0; a < choices_of(sack, k) && sw_rng_below(&s->rng, 2); a++)
		sack->given[sack->first[k] + a] = random_given(&s->rng);
}

static void the_message_to_a_member_is_the_least_cost_of_the_others(void **state)
{
	(void)state;
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS; seed++) {
		subject s;
		make_subject(&s, seed);
		for (int n = 0; n < SW_MIN(s.count, 2); n++) {
			knapsack *sack = &s.knapsacks[n];
			for (int32_t a = 0; a < sack->first[sack->members]; a++)
				sack->given[a] = random_given(&s.rng);
			sack->unfit = 1e6;
			knapsack_begin(sack);
			for (int sweep = 0; sweep < 2; sweep++) {
				for (int32_t k = 0; k < sack->members; k++) {
					check_pull(&s, sack, k);
					knapsack_step_forward(sack, k);
				}
				for (int32_t k = sack->members; k-- > 0;) {
					check_pull(&s, sack, k);
					knapsack_step_back(sack, k);
				}
			}
		}
		clear_subject(&s);
	}
}

static int64_t random_integer(sw_rng *rng)
{
	static const int64_t large = (int64_t)1 << 60;
	int64_t kind = sw_rng_below(rng, 8);
	return kind == 0 ? large : kind == 1 ? -large : sw_rng_below(rng, 2000) - 1000;
}

static void the_exact_minimum_is_that_of_all_combinations(void **state)
{
	(void)state;
	const wide infinite = (wide)1 << 100;
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + PROBLEMS; seed++) {
		subject s;
		make_subject(&s, seed);
		for (int n = 0; n < s.count; n++) {
			const knapsack *sack = &s.knapsacks[n];
			int32_t a[MOST_MEMBERS_TRIED] = {0};
			int64_t given[MOST_MEMBERS_TRIED * 5];
			wide least = infinite;
			for (int32_t k = 0; k < sack->first[sack->members]; k++)
				given[k] = random_integer(&s.rng);
			do {
				wide sum = 0;
				for (int32_t k = 0; k < sack->members; k++)
					sum -= given[sack->first[k] + a[k]];
				if (weight_of(sack, a) <= sack->units)
					least = SW_MIN(least, sum);
			} while (next_combination(sack, a));
			wide found = knapsack_least(sack, given);
			if (SW_MIN(found, infinite) != least)
				fail_msg("seed %llu: %.12g instead of %.12g",
				         (unsigned long long)seed, (double)found, (double)least);
		}
		clear_subject(&s);
	}
}

/* Each of two nodes alone exceeds the capacity: no combination fits. */
static void messages_of_a_knapsack_that_nothing_fits_exceed_all_costs(void **state)
{
	(void)state;
	const int64_t cost[2] = {0, 1}, usage[2] = {7, 9}, given[2] = {5, -5},
		      table[4] = {1, 0, 0, 1};
	const double worth[1] = {1};
	sw_problem problem;
	graph g;
	core c;
	sw_arena arena;
	knapsack *sack;
	sw_problem_init(&problem);
	for (int v = 0; v < 2; v++) {
		sw_problem_add_node(&problem, 2, cost);
		sw_problem_add_span(&problem, v, 0, 1, usage);
	}
	sw_problem_add_edge(&problem, 0, 1, sw_problem_add_table(&problem, 2, 2, table));
	problem.capacity = 10;
	graph_build(&g, &problem);
	core_init(&c, &g);
	sw_arena_init(&arena);
	assert_int_equal(knapsacks_choose(&c, &g, worth, &arena, &sack), 1);
	knapsack_begin(sack);
	knapsack_pull(sack, 0);
	for (int32_t a = 0; a < sack->first[1]; a++)
		assert_true(sack->given[a] == sack->unfit && isfinite(sack->unfit));
	int64_t both[4] = {given[0], given[1], given[0], given[1]};
	assert_true(knapsack_least(sack, both) > (wide)1 << 100);
	sw_arena_clear(&arena);
	core_clear(&c);
	graph_clear(&g);
	sw_problem_clear(&problem);
}

/* ---- the choice of points --------------------------------------------------------------- */

/* Sixty nodes at forty points, of which the last have the largest value, and one in the middle is
 * remembered. */
#define REMEMBERED 20

static void make_wide(sw_problem *problem, graph *g, double *worth)
{
	sw_problem_init(problem);
	for (int32_t v = 0; v < 60; v++) {
		const int64_t cost[3] = {0, 1, 2}, usage[3] = {0, 5 + v, 10 + v};
		sw_problem_add_node(problem, 3, cost);
		sw_problem_add_span(problem, v, v / 2, v / 2 + 11, usage);
	}
	problem->capacity = 300;
	graph_build(g, problem);
	for (int32_t t = 0; t < g->points; t++)
		worth[t] = t;
	const double given[3] = {1, 2, 4};
	graph_add_given(g, 40, REMEMBERED, given);
	worth[REMEMBERED] = INFINITY;
}

static void the_dearest_points_that_differ_are_chosen(void **state)
{
	(void)state;
	double worth[64];
	sw_problem problem;
	graph g;
	core c;
	sw_arena arena;
	knapsack *sacks;
	make_wide(&problem, &g, worth);
	core_init(&c, &g);
	sw_arena_init(&arena);
	int count = knapsacks_choose(&c, &g, worth, &arena, &sacks);
	assert_in_range(count, 2, 12);
	assert_int_equal(sacks[0].point, REMEMBERED);
	for (int k = 2; k < count; k++)
		assert_true(worth[sacks[k].point] < worth[sacks[k - 1].point]);
	for (int k = 0; k < count; k++)
		assert_in_range(sacks[k].members, 2, 32);
	sw_arena_clear(&arena);
	core_clear(&c);
	graph_clear(&g);
	sw_problem_clear(&problem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounded_usages_exclude_no_combination_that_fits),
		cmocka_unit_test(the_message_to_a_member_is_the_least_cost_of_the_others),
		cmocka_unit_test(the_exact_minimum_is_that_of_all_combinations),
		cmocka_unit_test(messages_of_a_knapsack_that_nothing_fits_exceed_all_costs),
		cmocka_unit_test(the_dearest_points_that_differ_are_chosen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
