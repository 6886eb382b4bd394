/* Items on bins, against every placement of a few, and against the bound of many. */
#include "helpers.h"

#include "base/even_placement.h"

#define MOST_ITEMS 9
#define MOST_BINS 3

/* Return the least load of the fullest bin over all placements of items from `i` on. */
static int64_t best_of_all(const int64_t *sizes, size_t n, size_t i, int64_t *load, int64_t bins)
{
	int64_t best = INT64_MAX, most = 0;
	for (int64_t b = 0; b < bins; b++)
		most = SW_MAX(most, load[b]);
	if (i == n)
		return most;
	for (int64_t b = 0; b < bins; b++) {
		load[b] += sizes[i];
		best = SW_MIN(best, best_of_all(sizes, n, i + 1, load, bins));
		load[b] -= sizes[i];
	}
	return best;
}

static int64_t fullest(const int64_t *load, int64_t bins)
{
	int64_t most = 0;
	for (int64_t b = 0; b < bins; b++)
		most = SW_MAX(most, load[b]);
	return most;
}

static void an_exchange_improves_on_the_largest_first(void **state)
{
	(void)state;
	static const int64_t sizes[] = {3, 3, 2, 2, 2};
	int64_t load[2] = {0}, bin_of[5];
	assert_int_equal(sw_place_evenly(sizes, 5, load, 2, bin_of), 6);
	assert_int_equal(load[0], 6);
	assert_int_equal(load[1], 6);
}

static void few_items_are_placed_as_well_as_can_be(void **state)
{
	(void)state;
	sw_rng rng = {.seed = 7};
	int optimal = 0;
	enum { CASES = 300 };
	for (int c = 0; c < CASES; c++) {
		int64_t sizes[MOST_ITEMS], bin_of[MOST_ITEMS], given[MOST_BINS] = {0},
			load[MOST_BINS] = {0}, again[MOST_BINS] = {0};
		size_t n = 1 + (size_t)sw_rng_below(&rng, MOST_ITEMS);
		int64_t bins = 2 + sw_rng_below(&rng, MOST_BINS - 1);
		for (size_t i = 0; i < n; i++)
			sizes[i] = sw_rng_below(&rng, 50);
		given[0] = load[0] = again[0] = c % 3 ? 0 : sw_rng_below(&rng, 80);
		int64_t best = best_of_all(sizes, n, 0, given, bins),
			bound = sw_place_evenly(sizes, n, load, bins, bin_of);
		for (size_t i = 0; i < n; i++)
			again[bin_of[i]] += sizes[i];
		assert_memory_equal(again, load, sizeof(load));
		assert_true(bound <= best && best <= fullest(load, bins));
		assert_true(3 * fullest(load, bins) <= 4 * best + 3 * load[0]);
		optimal += fullest(load, bins) == best;
	}
	assert_true(optimal >= CASES * 9 / 10);
}

static void many_items_come_near_the_mean(void **state)
{
	(void)state;
	enum { N = 400, BINS = 16 };
	sw_rng rng = {.seed = 9};
	int64_t sizes[N], load[BINS] = {0}, bin_of[N];
	for (int i = 0; i < N; i++)
		sizes[i] = 1 + sw_rng_below(&rng, 1000000);
	int64_t bound = sw_place_evenly(sizes, N, load, BINS, bin_of);
	assert_true((double)fullest(load, BINS) < 1.0001 * (double)bound);
	assert_true(sw_place_evenly(sizes, 0, load, BINS, bin_of) == fullest(load, BINS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exchange_improves_on_the_largest_first),
		cmocka_unit_test(few_items_are_placed_as_well_as_can_be),
		cmocka_unit_test(many_items_come_near_the_mean),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
