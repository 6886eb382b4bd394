/* The cut found is the cheapest of all sets of nodes that hold the sink and not the source. */
#include "test.h"

#include "rewrite/min_cut.h"

#define NODES 8
#define ARCS 18

typedef struct arc {
	int32_t from, to;
	int64_t capacity;
} arc;

static int64_t cost_of(const arc *arcs, int n, uint32_t behind)
{
	int64_t cost = 0;
	for (int i = 0; i < n; i++)
		if (!(behind >> arcs[i].from & 1) && (behind >> arcs[i].to & 1))
			cost += arcs[i].capacity;
	return cost;
}

/* Of the cheapest sets, return the one with the fewest nodes, which is the nearest to the sink. */
static uint32_t brute_force(const arc *arcs, int n)
{
	uint32_t best = 1U << SW_CUT_SINK;
	for (uint32_t behind = 0; behind < 1U << NODES; behind++) {
		if ((behind >> SW_CUT_SOURCE & 1) || !(behind >> SW_CUT_SINK & 1))
			continue;
		int64_t gain = cost_of(arcs, n, best) - cost_of(arcs, n, behind);
		if (gain > 0 ||
		    (gain == 0 && __builtin_popcount(behind) < __builtin_popcount(best)))
			best = behind;
	}
	return best;
}

static uint32_t solve(const arc *arcs, int n, bool *found)
{
	sw_cut cut;
	bool behind[NODES];
	uint32_t set = 0;
	sw_cut_init(&cut, NODES);
	for (int i = 0; i < n; i++)
		sw_cut_add(&cut, arcs[i].from, arcs[i].to, arcs[i].capacity);
	*found = sw_cut_solve(&cut, behind);
	for (int v = 0; v < NODES; v++)
		set |= (uint32_t)behind[v] << v;
	sw_cut_clear(&cut);
	return set;
}

static void cuts_are_the_cheapest(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 2000; seed++) {
		sw_rng rng = {.seed = seed};
		arc arcs[ARCS];
		bool found;
		int n = 1 + (int)sw_rng_below(&rng, ARCS);
		for (int i = 0; i < n; i++)
			arcs[i] = (arc){(int32_t)sw_rng_below(&rng, NODES),
			                (int32_t)sw_rng_below(&rng, NODES),
			                (int64_t)sw_rng_below(&rng, 6)};
		uint32_t set = solve(arcs, n, &found);
		assert_true(found);
		if (set != brute_force(arcs, n))
			fail_msg("seed %llu", (unsigned long long)seed);
	}
}

static void arcs_that_must_not_be_cut_are_not_cut(void **state)
{
	(void)state;
	const arc open[] = {{0, 2, SW_CUT_NEVER}, {2, 3, 7}, {3, 1, SW_CUT_NEVER}};
	const arc closed[] = {{0, 2, SW_CUT_NEVER}, {2, 1, SW_CUT_NEVER}};
	bool found;
	assert_int_equal(solve(open, 3, &found), 1 << 1 | 1 << 3);
	assert_true(found);
	solve(closed, 2, &found);
	assert_false(found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_are_the_cheapest),
		cmocka_unit_test(arcs_that_must_not_be_cut_are_not_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
