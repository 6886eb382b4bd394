/*
 * Paths at once: the cache gives what a fresh search gives, over groups of atoms, too; and the
 * costs of all pairs of many layouts.
 */
#include "layout/grouping.h"
#include "layout/path_models.h"
#include "layout/references.h"

#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void same_path(const sw_path *a, const sw_path *b)
{
	assert_int_equal(a->n, b->n);
	assert_true(a->seconds == b->seconds);
	assert_int_equal(a->payload_bytes, b->payload_bytes);
	assert_int_equal(a->peak_bytes, b->peak_bytes);
	for (int32_t i = 0; i < a->n; i++) {
		assert_int_equal(a->moves[i].kind, b->moves[i].kind);
		assert_int_equal(a->moves[i].atoms, b->moves[i].atoms);
		assert_true(sw_layout_equal(&a->moves[i].after, &b->moves[i].after));
		assert_memory_equal(a->moves[i].to_atom, b->moves[i].to_atom,
		                    sizeof(a->moves[i].to_atom));
	}
}

/* Earlier queries and their order do not change the path. */
static void the_cache_gives_the_path_that_a_fresh_search_gives(void **state)
{
	const int64_t dims[] = {48, 16, 8};
	sw_atoms atoms = parse_atoms("2,2,2,2");
	sw_shape shape = make_shape(3, dims);
	random_model model = {3, 1, 1};
	sw_redistribution how = {&atoms, random_seconds, &model, 8e9, 1e-6, 3000000, false};
	sw_path_cache *forwards = sw_path_cache_new(&how), *backwards = sw_path_cache_new(&how);
	sw_layout ends[60][2];
	sw_rng rng = {17, 0};
	(void)state;
	for (int i = 0; i < 60; i++) {
		ends[i][0] = random_layout(&rng, &atoms, shape);
		ends[i][1] = random_layout(&rng, &atoms, shape);
	}
	for (int i = 59; i >= 0; i--)
		sw_path_cache_get(backwards, shape, &ends[i][0], &ends[i][1]);
	for (int i = 0; i < 60; i++) {
		sw_path path;
		sw_redistribute(&how, shape, &ends[i][0], &ends[i][1], &path, NULL);
		const sw_path *first = sw_path_cache_get(forwards, shape, &ends[i][0], &ends[i][1]);
		same_path(&path, first);
		same_path(&path, sw_path_cache_get(backwards, shape, &ends[i][0], &ends[i][1]));
		assert_ptr_equal(first,
		                 sw_path_cache_get(forwards, shape, &ends[i][0], &ends[i][1]));
	}
	sw_path_cache_free(forwards);
	sw_path_cache_free(backwards);
	sw_path_cache_free(NULL);
}

/* ---- groups ----------------------------------------------------------------------------- */

/* Paths over groups of atoms move real data, stay over groups, and are not cheaper than paths over
 * the atoms themselves. */
static void groups_of_atoms_move_together(void **state)
{
	const int64_t dims[] = {16, 8, 4};
	const uint32_t masks[] = {3, 12};
	sw_atoms atoms = parse_atoms("2,2,2,2");
	sw_shape shape = make_shape(3, dims);
	grouping groups;
	sw_redistribution how = {&atoms, plain_seconds, &atoms, 1e12, 0, 0, false};
	sw_path_cache *grouped = sw_path_cache_new_grouped(&how, masks, 2),
		      *single = sw_path_cache_new(&how);
	double *whole = sw_alloc(sizeof(double) * (size_t)sw_shape_elements(shape));
	sw_rng rng = {5, 0};
	int moves = 0, compared = 0;
	(void)state;
	grouping_init(&groups, &atoms, masks, 2);
	sw_redistribution grouped_how = {&groups.groups, plain_seconds, &groups.groups, 1e12, 0, 0, false};
	for (int64_t i = 0; i < sw_shape_elements(shape); i++)
		whole[i] = (double)(i % 97);
	for (int i = 0; i < 300; i++) {
		sw_layout ends[2], gathered[2], small;
		for (int k = 0; k < 2; k++) {
			gathered[k] = random_layout(&rng, &groups.groups, shape);
			grouping_spread(&groups, &gathered[k], &ends[k]);
			assert_true(sw_layout_valid(&atoms, shape, &ends[k]));
		}
		const sw_path *path = sw_path_cache_get(grouped, shape, &ends[0], &ends[1]);
		assert_true(path->seconds >=
		            sw_path_cache_get(single, shape, &ends[0], &ends[1])->seconds *
		                    (1 - 1e-6));
		check_against_references(&grouped_how, shape, &gathered[0], &gathered[1], path,
		                         &compared);
		sw_monoid monoid = ends[0].monoid ? ends[0].monoid : ends[1].monoid;
		parts p = make_parts(&atoms, shape, &ends[0], whole, (uint64_t)i, monoid);
		const sw_layout *before = &ends[0];
		for (int32_t m = 0; m < path->n; m++, moves++) {
			assert_true(grouping_gather(&groups, &path->moves[m].after, &small));
			apply_move(&atoms, shape, before, &path->moves[m], monoid, &p);
			before = &path->moves[m].after;
		}
		assert_true(sw_layout_equal(before, &ends[1]));
		assert_true(parts_match(&atoms, shape, &ends[1], &p, whole, monoid));
		free_parts(&p);
	}
	assert_true(moves > 300 && compared > 1000);
	free(whole);
	sw_path_cache_free(grouped);
	sw_path_cache_free(single);
}

/* Where conversions are direct, a path is the cheapest single move if there is one, in the table of
 * all pairs as well; else it is the path that is taken without that wish. */
static void direct_paths_are_single_moves(void **state)
{
	const int64_t dims[] = {1 << 12, 8};
	sw_atoms atoms = parse_atoms("2,4,2");
	sw_shape shape = make_shape(2, dims);
	random_model model = {3, 1, 1};
	sw_redistribution how = {&atoms, random_seconds, &model, 1e12, 1e-6, 0, false};
	sw_path_cache *composed = sw_path_cache_new(&how);
	how.direct = true;
	sw_path_cache *direct = sw_path_cache_new(&how), *table = sw_path_cache_new(&how);
	sw_layout ends[60];
	sw_rng rng = {7, 0};
	int single = 0, dearer = 0, several = 0;
	(void)state;
	uint32_t number = sw_path_cache_shape(table, shape);
	sw_path_cache_begin(table);
	for (size_t i = 0; i < SW_COUNT(ends); i++) {
		ends[i] = random_layout(&rng, &atoms, shape);
		sw_path_cache_expect(table, number, sw_path_cache_layout(table, &ends[i]));
	}
	while (sw_path_cache_find(table, 1))
		;
	for (size_t i = 0; i < SW_COUNT(ends); i++)
		for (size_t j = 0; j < SW_COUNT(ends); j++) {
			if (ends[i].monoid && ends[j].monoid && ends[i].monoid != ends[j].monoid)
				continue;
			const sw_path *a = sw_path_cache_get(composed, shape, &ends[i], &ends[j]),
				      *b = sw_path_cache_get(direct, shape, &ends[i], &ends[j]);
			uint32_t from = sw_path_cache_layout(table, &ends[i]),
				 to = sw_path_cache_layout(table, &ends[j]);
			double seconds;
			sw_path_cache_seconds(table, number, &from, 1, &to, 1, &seconds);
			assert_true(a->n > 1 || b->n == a->n);
			assert_true(b->seconds >= a->seconds * (1 - 1e-9));
			if (b->n == 1)
				assert_true(fabs(seconds - b->seconds) <= 1e-9 * b->seconds);
			single += b->n == 1;
			several += b->n > 1;
			dearer += b->n == 1 && a->n > 1;
		}
	print_message("%d single moves, %d dearer than several; %d of several\n", single,
	              dearer, several);
	assert_true(single > 50 && several > 50 && dearer > 0);
	sw_path_cache_free(composed);
	sw_path_cache_free(direct);
	sw_path_cache_free(table);
}

/* Groups of sizes 4, 3, 4, 2 and 6 are treated as atoms of these sizes. */
static void paths_over_groups_are_never_worse_than_the_references(void **state)
{
	const int64_t dims[] = {1536, 96, 1152};
	const uint32_t masks[] = {0x03, 0x04, 0x18, 0x20, 0xc0};
	sw_atoms atoms = parse_atoms("2,2,3,2,2,2,2,3");
	sw_shape shape = make_shape(3, dims);
	sw_redistribution how = {&atoms, plain_seconds, &atoms, 1e12, 4e-6, 0, false};
	sw_path_cache *cache = sw_path_cache_new_grouped(&how, masks, SW_COUNT(masks));
	grouping groups;
	int compared = 0;
	sw_rng rng = {6, 0};
	(void)state;
	grouping_init(&groups, &atoms, masks, SW_COUNT(masks));
	sw_redistribution over_groups = {
		&groups.groups, plain_seconds, &groups.groups, 1e12, 4e-6, 0, false};
	for (int i = 0; i < 200; i++) {
		sw_layout gathered[2], ends[2];
		for (int k = 0; k < 2; k++) {
			gathered[k] = random_layout(&rng, &groups.groups, shape);
			grouping_spread(&groups, &gathered[k], &ends[k]);
		}
		const sw_path *path = sw_path_cache_get(cache, shape, &ends[0], &ends[1]);
		check_path(&how, shape, &ends[0], &ends[1], path);
		check_against_references(&over_groups, shape, &gathered[0], &gathered[1], path,
		                         &compared);
	}
	assert_true(compared > 1000);
	sw_path_cache_free(cache);
}

/* ---- all pairs -------------------------------------------------------------------------- */

/* Query a cache for all pairs of a list at once; seconds[i * n + j]. */
static double *all_seconds(sw_path_cache *cache, sw_shape shape, const sw_layout *layouts,
                           int32_t n)
{
	uint32_t number = sw_path_cache_shape(cache, shape);
	uint32_t *numbers = sw_alloc(sizeof(*numbers) * (size_t)n);
	double *seconds = sw_alloc(sizeof(*seconds) * (size_t)n * (size_t)n);
	sw_path_cache_begin(cache);
	for (int32_t i = 0; i < n; i++) {
		numbers[i] = sw_path_cache_layout(cache, &layouts[i]);
		sw_path_cache_expect(cache, number, numbers[i]);
	}
	sw_path_cache_seconds(cache, number, numbers, n, numbers, n, seconds);
	free(numbers);
	return seconds;
}

/* The intermediate layouts of a path are combined from the layouts that are queried together, not
 * from those of earlier queries. */
static void costs_of_paths_do_not_depend_on_earlier_queries(void **state)
{
	const int64_t dims[] = {8, 4};
	sw_atoms atoms = parse_atoms("2,2");
	sw_shape shape = make_shape(2, dims);
	sw_redistribution how = {&atoms, plain_seconds, &atoms, 8e9, 1e-6, 0, false};
	sw_path_cache *asked = sw_path_cache_new(&how);
	layout_list list = {0};
	int32_t dearer = 0;
	(void)state;
	list_layouts(&atoms, shape, SW_MONOID_SUM, &list);
	int32_t n = (int32_t)list.len;
	double *all = all_seconds(asked, shape, list.data, n);
	for (int32_t i = 0; i < n; i++)
		for (int32_t j = 0; j < i; j++) {
			const sw_layout two[] = {list.data[i], list.data[j]};
			sw_path_cache *fresh = sw_path_cache_new(&how);
			double *alone = all_seconds(fresh, shape, two, 2),
			       *later = all_seconds(asked, shape, two, 2);
			for (int k = 0; k < 4; k++)
				assert_true(alone[k] == later[k]);
			dearer += alone[1] > all[i * n + j];
			free(alone);
			free(later);
			sw_path_cache_free(fresh);
		}
	assert_true(dearer > 0);
	free(all);
	sw_vec_clear(&list);
	sw_path_cache_free(asked);
}

typedef struct counted_prices {
	const sw_atoms *atoms;
	int64_t asked;
} counted_prices;

static double counted_seconds(void *context, sw_move_kind kind, uint32_t atoms,
                              int64_t operand_bytes)
{
	counted_prices *c = context;
	c->asked++;
	return plain_seconds((void *)c->atoms, kind, atoms, operand_bytes);
}

/* One by one, the pairs of as many layouts as three axes allow would take minutes. */
static void the_pairs_of_very_many_layouts_are_found_at_once(void **state)
{
	const int64_t dims[] = {32, 16};
	sw_atoms atoms = parse_atoms("2,2,2");
	sw_shape shape = make_shape(2, dims);
	counted_prices prices = {.atoms = &atoms};
	sw_redistribution how = {&atoms, counted_seconds, &prices, 8e9, 1e-6, 0, false};
	sw_path_cache *cache = sw_path_cache_new(&how);
	layout_list list = {0};
	(void)state;
	list_layouts(&atoms, shape, SW_MONOID_SUM, &list);
	assert_in_range(list.len, 700, 2000);
	free(all_seconds(cache, shape, list.data, (int32_t)list.len));
	assert_true(prices.asked < (int64_t)list.len);
	sw_vec_clear(&list);
	sw_path_cache_free(cache);
}

/* With every layout in the list there are no others: each pair costs as much as its own path. */
static void all_pairs_at_once_cost_what_each_costs(void **state)
{
	const int64_t dims[] = {8, 4};
	sw_atoms atoms = parse_atoms("2,2");
	sw_shape shape = make_shape(2, dims);
	sw_redistribution how = {&atoms, plain_seconds, &atoms, 8e9, 1e-6, 0, false};
	sw_path_cache *cache = sw_path_cache_new(&how);
	layout_list list = {0};
	(void)state;
	list_layouts(&atoms, shape, SW_MONOID_SUM, &list);
	double *seconds = all_seconds(cache, shape, list.data, (int32_t)list.len);
	assert_true(list.len > 20);
	for (size_t i = 0; i < list.len; i++)
		for (size_t j = 0; j < list.len; j++) {
			double own = sw_path_cache_get(cache, shape, &list.data[i], &list.data[j])
			                     ->seconds;
			if (fabs(seconds[i * list.len + j] - own) > 1e-9 * own) {
				char *which = describe(&atoms, shape, &list.data[i], &list.data[j]);
				printf("%s: %.9g at once, %.9g alone\n", which,
				       seconds[i * list.len + j], own);
				free(which);
			}
		}
	free(seconds);
	sw_vec_clear(&list);
	sw_path_cache_free(cache);
}

/* The layouts are so many that hardly any intermediate layouts fit in the table: all can still be
 * reached, and within seconds, where a search pair by pair would take half an hour. */
static void a_thousand_layouts_at_once_cost_little_more(void **state)
{
	enum { N = 1400, SAMPLES = 400 };
	const int64_t dims[] = {64, 32, 8};
	sw_atoms atoms = parse_atoms("2,2,2,2,2");
	sw_shape shape = make_shape(3, dims);
	sw_redistribution how = {&atoms, plain_seconds, &atoms, 1e12, 1e-6, 0, false};
	sw_path_cache *cache = sw_path_cache_new(&how);
	sw_layout *layouts = sw_alloc(sizeof(*layouts) * N);
	sw_rng rng = {12, 0};
	double sum = 0, own_sum = 0;
	(void)state;
	for (int k = 0; k < N; k++) {
		layouts[k] = random_layout(&rng, &atoms, shape);
		layouts[k].monoid =
			sw_layout_partial_atoms(&layouts[k]) ? SW_MONOID_SUM : SW_MONOID_NONE;
	}
	double *seconds = all_seconds(cache, shape, layouts, N);
	for (int i = 0; i < N * N; i++)
		assert_true(isfinite(seconds[i]));
	for (int k = 0; k < SAMPLES; k++) {
		int i = k, j = N - 1 - 2 * k;
		double own = sw_path_cache_get(cache, shape, &layouts[i], &layouts[j])->seconds;
		sum += seconds[i * N + j];
		own_sum += own;
	}
	printf("%d layouts: %.3f of what each pair costs\n", N, sum / own_sum);
	assert_true(sum < 1.25 * own_sum);
	free(seconds);
	free(layouts);
	sw_path_cache_free(cache);
}

/* The intermediate layouts of a few layouts are combined from their states: occasionally another
 * path is a little cheaper. */
static void few_layouts_at_once_cost_hardly_more(void **state)
{
	const int64_t dims[] = {64, 32, 8};
	const uint32_t masks[] = {3, 12, 16};
	sw_atoms atoms = parse_atoms("2,2,2,2,2");
	sw_shape shape = make_shape(3, dims);
	grouping groups;
	sw_redistribution how = {&atoms, plain_seconds, &atoms, 1e12, 1e-6, 0, false};
	sw_rng rng = {11, 0};
	int equal = 0, pairs = 0;
	double sum = 0, own_sum = 0;
	(void)state;
	grouping_init(&groups, &atoms, masks, 3);
	for (int round = 0; round < 12; round++) {
		sw_path_cache *cache = sw_path_cache_new_grouped(&how, masks, 3);
		sw_layout layouts[10];
		for (int k = 0; k < 10; k++) {
			sw_layout gathered = random_layout(&rng, &groups.groups, shape);
			gathered.monoid =
				sw_layout_partial_atoms(&gathered) ? SW_MONOID_SUM : SW_MONOID_NONE;
			grouping_spread(&groups, &gathered, &layouts[k]);
		}
		double *seconds = all_seconds(cache, shape, layouts, 10);
		for (int i = 0; i < 10; i++)
			for (int j = 0; j < 10; j++, pairs++) {
				double own =
					sw_path_cache_get(cache, shape, &layouts[i], &layouts[j])
						->seconds;
				equal += fabs(seconds[10 * i + j] - own) <= 1e-9 * own;
				sum += seconds[10 * i + j];
				own_sum += own;
			}
		free(seconds);
		sw_path_cache_free(cache);
	}
	printf("%d of %d pairs cost the same; all together %.4f times as much\n", equal, pairs,
	       sum / own_sum);
	assert_true(equal > 0.8 * pairs);
	assert_true(sum > 0.98 * own_sum && sum < 1.02 * own_sum);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cache_gives_the_path_that_a_fresh_search_gives),
		cmocka_unit_test(groups_of_atoms_move_together),
		cmocka_unit_test(direct_paths_are_single_moves),
		cmocka_unit_test(paths_over_groups_are_never_worse_than_the_references),
		cmocka_unit_test(costs_of_paths_do_not_depend_on_earlier_queries),
		cmocka_unit_test(all_pairs_at_once_cost_what_each_costs),
		cmocka_unit_test(a_thousand_layouts_at_once_cost_little_more),
		cmocka_unit_test(the_pairs_of_very_many_layouts_are_found_at_once),
		cmocka_unit_test(few_layouts_at_once_cost_hardly_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
