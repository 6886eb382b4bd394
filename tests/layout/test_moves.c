/* Moves and paths are carried out on real data with the steps of the lowering: every device ends
 * with its part. */
#include "layout/layouts.h"

#include <string.h>

#include "test.h"

static const struct {
	const char *shape, *atoms;
} cases[] = {
	{"8", "2,2,2"},  {"12", "2,3,2"},   {"12,4", "2,2"},
	{"4,6", "2,3"},  {"4,4", "2,2,2"},  {"2,6,4", "3,2,2"},
	{"30", "2,3,5"}, {"6,10", "5,2,3"}, {"16,4", "2,2,2,2"},
};

static double *make_whole(sw_shape shape, uint64_t seed)
{
	int64_t elements = sw_shape_elements(shape);
	double *whole = sw_alloc((size_t)elements * sizeof(double));
	for (int64_t i = 0; i < elements; i++)
		whole[i] = (double)(sw_random_bits(seed, 0, (uint64_t)i) % 100000);
	return whole;
}

static void check_move(const sw_atoms *atoms, sw_shape shape, const sw_layout *before,
                       const sw_move *move, sw_monoid monoid, uint64_t seed)
{
	double *whole = make_whole(shape, seed);
	parts p = make_parts(atoms, shape, before, whole, seed, monoid);
	assert_true(parts_match(atoms, shape, before, &p, whole, monoid));
	apply_move(atoms, shape, before, move, monoid, &p);
	if (!parts_match(atoms, shape, &move->after, &p, whole, monoid)) {
		char *text = describe(atoms, shape, before, &move->after);
		fail_msg("seed %llu: %s of atoms %x: %s", (unsigned long long)seed,
		         sw_move_name(move->kind), move->atoms, text);
	}
	free_parts(&p);
	free(whole);
}

/* The moves go between any two layouts that are one move apart, whether or not a path would use
 * them. */
static void every_legal_move_delivers_the_parts(void **state)
{
	int moves[SW_MOVE_COUNT] = {0};
	(void)state;
	for (size_t c = 0; c < SW_COUNT(cases); c++) {
		int64_t dims[SW_MAX_RANK];
		sw_atoms atoms = parse_atoms(cases[c].atoms);
		sw_shape shape = parse_shape(cases[c].shape, dims);
		sw_monoid monoid = c % 2 ? SW_MONOID_MAX : SW_MONOID_SUM;
		layout_list all = {0};
		sw_rng rng = {c, 0};
		list_layouts(&atoms, shape, monoid, &all);
		for (int tries = 0, done = 0; tries < 200000 && done < 400; tries++) {
			sw_move_kind kind = (sw_move_kind)sw_rng_below(&rng, SW_MOVE_KEEP);
			const sw_layout *before = &all.data[sw_rng_below(&rng, (int64_t)all.len)];
			const sw_layout *after = &all.data[sw_rng_below(&rng, (int64_t)all.len)];
			sw_move move;
			if (!classify_move(&atoms, shape, before, after, kind, UINT32_MAX, &move))
				continue;
			check_move(&atoms, shape, before, &move, monoid, (uint64_t)tries);
			moves[kind]++;
			done++;
		}
		sw_vec_clear(&all);
	}
	/* those of owners are played on ranks, by tests/partition/test_moves.c */
	for (int kind = 0; kind < SW_MOVE_KEEP; kind++)
		assert_true(moves[kind] > 20);
}

static double random_seconds(void *context, sw_move_kind kind, uint32_t atoms, int64_t bytes)
{
	uint64_t seed = *(uint64_t *)context;
	return sw_random_unit(seed, kind, 2 * atoms) +
	       0.01 * sw_random_unit(seed, kind, 2 * atoms + 1) * (double)bytes;
}

static void check_path(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                       const sw_layout *to, const sw_path *path, sw_monoid monoid, int *moves)
{
	double *whole = make_whole(shape, 7);
	parts p = make_parts(how->atoms, shape, from, whole, 7, monoid);
	sw_layout at = *from;
	for (int32_t i = 0; i < path->n; i++) {
		apply_move(how->atoms, shape, &at, &path->moves[i], monoid, &p);
		at = path->moves[i].after;
		moves[path->moves[i].kind]++;
		assert_true(parts_match(how->atoms, shape, &at, &p, whole, monoid));
	}
	assert_true(sw_layout_equal(&at, to));
	free_parts(&p);
	free(whole);
}

static void every_path_delivers_the_parts(void **state)
{
	int moves[SW_MOVE_COUNT] = {0};
	(void)state;
	for (size_t c = 0; c < SW_COUNT(cases); c++) {
		int64_t dims[SW_MAX_RANK];
		uint64_t seed = 0;
		sw_atoms atoms = parse_atoms(cases[c].atoms);
		sw_shape shape = parse_shape(cases[c].shape, dims);
		sw_monoid monoid = c % 2 ? SW_MONOID_SUM : SW_MONOID_MAX;
		sw_redistribution how = {&atoms, random_seconds, &seed, 0, 0, 0, false};
		layout_list all = {0};
		sw_rng rng = {100 + c, 0};
		list_layouts(&atoms, shape, monoid, &all);
		for (int i = 0; i < 150; i++) {
			const sw_layout *from = &all.data[sw_rng_below(&rng, (int64_t)all.len)];
			const sw_layout *to = &all.data[sw_rng_below(&rng, (int64_t)all.len)];
			sw_path path;
			seed = 1000 * c + (uint64_t)i;
			assert_int_equal(sw_redistribute(&how, shape, from, to, &path, NULL),
			                 SW_OK);
			check_path(&how, shape, from, to, &path, monoid, moves);
		}
		sw_vec_clear(&all);
	}
	for (int kind = 0; kind < SW_MOVE_KEEP; kind++)
		assert_true(moves[kind] > 0);
}

/* Random layouts over many atoms, where atoms with the same change of state move as one. */
static sw_layout random_layout(sw_rng *rng, const sw_atoms *atoms, sw_shape shape, sw_monoid monoid)
{
	for (;;) {
		sw_layout layout = sw_layout_replicated(atoms);
		for (int32_t a = 0; a < atoms->n; a++) {
			int64_t choice = sw_rng_below(rng, shape.rank + 2);
			if (choice < shape.rank)
				layout.state[a] =
					(sw_state){.kind = SW_STATE_S,
				                   .dim = (int8_t)choice,
				                   .stride = (int64_t)1 << sw_rng_below(rng, 6)};
			else if (choice == shape.rank)
				layout.state[a].kind = SW_STATE_P;
		}
		layout.monoid = sw_layout_partial_atoms(&layout) ? monoid : SW_MONOID_NONE;
		if (sw_layout_valid(atoms, shape, &layout))
			return layout;
	}
}

static void paths_over_many_atoms_deliver_the_parts(void **state)
{
	static const struct {
		const char *shape, *atoms;
	} many[] = {{"32,8", "2,2,2,2,2"}, {"64,32", "2,2,2,2,2,2"}, {"32,16,8", "2,2,2,2,2,2,2"}};
	int moves[SW_MOVE_COUNT] = {0};
	(void)state;
	for (size_t c = 0; c < SW_COUNT(many); c++) {
		int64_t dims[SW_MAX_RANK];
		uint64_t seed = 0;
		sw_atoms atoms = parse_atoms(many[c].atoms);
		sw_shape shape = parse_shape(many[c].shape, dims);
		sw_redistribution how = {&atoms, random_seconds, &seed, 0, 0, 0, false};
		sw_rng rng = {200 + c, 0};
		for (int i = 0; i < 12; i++) {
			sw_layout from = random_layout(&rng, &atoms, shape, SW_MONOID_SUM);
			sw_layout to = random_layout(&rng, &atoms, shape, SW_MONOID_SUM);
			sw_path path;
			seed = 1000 * c + (uint64_t)i;
			assert_int_equal(sw_redistribute(&how, shape, &from, &to, &path, NULL),
			                 SW_OK);
			check_path(&how, shape, &from, &to, &path, SW_MONOID_SUM, moves);
		}
	}
}

/* In the pairs of a permute each device sends at most once and receives at most once, and none
 * sends to itself. */
static void permute_pairs_are_a_permutation(void **state)
{
	const int64_t dims[] = {16, 16};
	sw_atoms atoms = parse_atoms("2,3,2,2");
	sw_shape shape = make_shape(2, dims);
	layout_list all = {0};
	sw_rng rng = {5, 0};
	sw_arena arena;
	int found = 0;
	(void)state;
	sw_arena_init(&arena);
	list_layouts(&atoms, shape, SW_MONOID_SUM, &all);
	for (int i = 0; i < 100000 && found < 50; i++) {
		const sw_layout *before = &all.data[sw_rng_below(&rng, (int64_t)all.len)];
		const sw_layout *after = &all.data[sw_rng_below(&rng, (int64_t)all.len)];
		const int64_t *pairs;
		sw_move move;
		bool sends[24] = {false}, receives[24] = {false};
		if (!classify_move(&atoms, shape, before, after, SW_MOVE_PERMUTE, 0, &move))
			continue;
		found++;
		int32_t n = sw_move_permute_pairs(&atoms, &move, &arena, &pairs);
		for (int32_t k = 0; k < n; k++) {
			assert_true(pairs[2 * k] != pairs[2 * k + 1]);
			assert_false(sends[pairs[2 * k]]);
			assert_false(receives[pairs[2 * k + 1]]);
			sends[pairs[2 * k]] = receives[pairs[2 * k + 1]] = true;
		}
		assert_memory_equal(sends, receives, sizeof(sends));
	}
	assert_true(found >= 20);
	sw_vec_clear(&all);
	sw_arena_clear(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_legal_move_delivers_the_parts),
		cmocka_unit_test(every_path_delivers_the_parts),
		cmocka_unit_test(paths_over_many_atoms_deliver_the_parts),
		cmocka_unit_test(permute_pairs_are_a_permutation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
