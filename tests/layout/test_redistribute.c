/* Redistribution: paths are the cheapest of all, right on real data, within memory, and
 * deterministic. */
#include "layout/exhaustive.h"
#include "layout/path_models.h"
#include "layout/references.h"

#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static random_model make_model(uint64_t seed)
{
	static const double scales[][2] = {{1, 1}, {0.01, 100}, {1, 0}, {0, 1}, {1, 1e3}};
	const double *scale = scales[seed % SW_COUNT(scales)];
	return (random_model){seed, scale[0], scale[1]};
}

/* ---- against all paths ------------------------------------------------------------------ */

/* The tensors are so small that all layouts can be listed, and every place of a digit is tried: the
 * path is the cheapest of all. */
static const struct {
	const char *shape, *atoms;
	int pairs;
} small_cases[] = {
	{"4", "2,2", 60},        {"6", "2,3", 60},        {"12", "2,3", 60},
	{"4,6", "2,3", 60},      {"4,4", "2,2", 60},      {"8,2", "2,2", 300},
	{"2,3,4", "2,3", 60},    {"3,5", "3,5", 40},      {"5", "5", 20},
	{"7", "2", 6},           {"6,6", "6,2", 60},      {"30", "5,6", 40},
	{"8", "2,2,2", 200},     {"4,2", "2,2,2", 200},   {"4,4", "2,2,2", 200},
	{"12", "2,3,2", 200},    {"6,2", "3,2,2", 200},   {"16", "2,2,2", 200},
	{"2,2,2", "2,2,2", 200}, {"12,6", "2,3,3", 100},  {"36", "2,3,2", 100},
	{"30,2", "5,2,3", 60},   {"8,8", "2,2,2", 60},    {"16", "2,2,2,2", 60},
	{"4,4", "2,2,2,2", 60},  {"12,2", "2,3,2,2", 60}, {"2,2,2", "2,2,2,2", 60},
};

static void compare_pair(const layout_graph *graph, const sw_redistribution *how, int32_t from,
                         int32_t to, int *found)
{
	const sw_layout *ends[] = {&graph->all.data[from], &graph->all.data[to]};
	sw_path path;
	sw_status status = sw_redistribute(how, graph->shape, ends[0], ends[1], &path, NULL);
	double least = cheapest_ps(graph, how, from, to);
	bool worse = status == SW_OK ? path.seconds * 1e12 > least * (1 + 1e-9) + 3 * path.n
	                             : isfinite(least);
	if (worse)
		fail_msg("%s within %lld: %g ps, but a path takes %g",
		         describe(how->atoms, graph->shape, ends[0], ends[1]),
		         (long long)how->memory_bytes, path.seconds * 1e12, least);
	if (status != SW_OK)
		return;
	check_path(how, graph->shape, ends[0], ends[1], &path);
	assert_true(how->memory_bytes == 0 || path.peak_bytes <= how->memory_bytes);
	++*found;
}

static void compare_case(size_t number, int *found)
{
	static const double bandwidths[] = {0, 8e9, 1e8};
	int64_t dims[SW_MAX_RANK];
	sw_atoms atoms = parse_atoms(small_cases[number].atoms);
	sw_shape shape = parse_shape(small_cases[number].shape, dims);
	sw_rng rng = {number, 0};
	layout_graph graph;
	layout_graph_init(&graph, &atoms, shape, SW_MONOID_SUM);
	for (int i = 0; i < small_cases[number].pairs; i++) {
		random_model model = make_model(1000 * number + (uint64_t)i);
		sw_redistribution how = {
			&atoms, random_seconds, &model, bandwidths[i % 3], i % 2 ? 0 : 1e-6, 0, false};
		int32_t from = (int32_t)sw_rng_below(&rng, (int64_t)graph.all.len);
		int32_t to = (int32_t)sw_rng_below(&rng, (int64_t)graph.all.len);
		if (sw_rng_below(&rng, 3) == 0)
			how.memory_bytes =
				8 * (1 + sw_rng_below(&rng, 2 * sw_shape_elements(shape)));
		compare_pair(&graph, &how, from, to, found);
	}
	layout_graph_clear(&graph);
}

static void the_path_is_the_cheapest_of_all(void **state)
{
	int found = 0;
	(void)state;
	for (size_t c = 0; c < SW_COUNT(small_cases); c++)
		compare_case(c, &found);
	assert_true(found > 2000);
}

/* ---- known answers ---------------------------------------------------------------------- */

static const struct {
	const char *atoms, *shape, *from, *to, *moves;
	int64_t payload;
} known[] = {
	{"2,2", "64,64", "[S0 S0]", "[S0 S0]", "", 0},
	{"2,2", "64,64", "[B B]", "[S0 S1]", "slice/3", 0},
	{"2,2", "64,64", "[S0 S0]", "[B B]", "all-gather/3", 24576},
	{"2,2", "64,64", "[P(sum) P(sum)]", "[B B]", "all-reduce/3", 49152},
	{"2,2", "64,64", "[P(sum) P(sum)]", "[S0 S0]", "reduce-scatter/3", 24576},
	{"2,2", "64,64", "[S0 S0]", "[S1 S1]", "all-to-all/3", 6144},
	{"2,2", "64,64", "[S0 S1]", "[S1 S0]", "permute/3", 8192},
	{"2,2", "64,64", "[B B]", "[P(sum) P(sum)]", "to-partial/3", 0},
	{"2,2", "64,64", "[S0 B]", "[S0 S0]", "slice/2", 0},
	{"2,2", "64,64", "[S0 P(sum)]", "[S0 S1]", "reduce-scatter/2", 8192},
	{"2,2", "64,64", "[S0 S0]", "[S0/16 S0/32]", "permute/3", 8192},
	{"2,2", "64,64", "[S0 B]", "[B S0]", "permute/3", 16384},
	{"2,2", "64,64", "[S0 B]", "[P(sum) B]", "all-gather/1 to-partial/1", 16384},
	/* slicing first would send as much */
	{"2,3", "66", "[P(sum) B]", "[B B]", "all-reduce/1", 528},
	{"2,2,2", "64,64", "[S0 P(sum) P(sum)]", "[S0 B B]", "all-reduce/6", 24576},
};

static char *describe_moves(const sw_path *path)
{
	sw_text text = {0};
	sw_text_add(&text, "");
	for (int32_t i = 0; i < path->n; i++)
		sw_text_addf(&text, "%s%s/%x", i ? " " : "", sw_move_name(path->moves[i].kind),
		             path->moves[i].atoms);
	return text.data ? text.data : sw_alloc(1);
}

static void common_redistributions_have_the_known_paths(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(known); i++) {
		int64_t dims[SW_MAX_RANK];
		sw_atoms atoms = parse_atoms(known[i].atoms);
		sw_shape shape = parse_shape(known[i].shape, dims);
		sw_redistribution how = {&atoms, plain_seconds, &atoms, 1e12, 0, 0, false};
		sw_layout from, to;
		sw_path path;
		assert_int_equal(sw_layout_parse(&atoms, shape, known[i].from, &from, NULL), SW_OK);
		assert_int_equal(sw_layout_parse(&atoms, shape, known[i].to, &to, NULL), SW_OK);
		assert_int_equal(sw_redistribute(&how, shape, &from, &to, &path, NULL), SW_OK);
		char *moves = describe_moves(&path);
		if (strcmp(moves, known[i].moves) != 0 || path.payload_bytes != known[i].payload)
			fail_msg("%s -> %s: %s, %lld bytes", known[i].from, known[i].to, moves,
			         (long long)path.payload_bytes);
		check_path(&how, shape, &from, &to, &path);
		free(moves);
	}
}

/* ---- many atoms ------------------------------------------------------------------------- */

/* Digits have any place and any order, as the search between other layouts may leave them. */
static sw_layout random_strided(sw_rng *rng, const sw_atoms *atoms, sw_shape shape)
{
	sw_layout layout = sw_layout_replicated(atoms);
	for (int32_t a = 0; a < atoms->n; a++) {
		int64_t choice = sw_rng_below(rng, shape.rank + 2);
		sw_layout next = layout;
		if (choice == shape.rank)
			next.state[a].kind = SW_STATE_P;
		else if (choice < shape.rank)
			next.state[a] = (sw_state){SW_STATE_S, (int8_t)choice,
			                           (int64_t)1 << sw_rng_below(rng, 10)};
		next.monoid = sw_layout_partial_atoms(&next) ? SW_MONOID_SUM : SW_MONOID_NONE;
		if (sw_layout_valid(atoms, shape, &next))
			layout = next;
	}
	return layout;
}

/* Exchange the states of atoms of one size. */
static sw_layout permuted(sw_rng *rng, const sw_atoms *atoms, sw_layout layout)
{
	for (int32_t i = 0; i < 2 * atoms->n; i++) {
		int64_t a = sw_rng_below(rng, atoms->n), b = sw_rng_below(rng, atoms->n);
		sw_state state = layout.state[a];
		if (atoms->size[a] != atoms->size[b])
			continue;
		layout.state[a] = layout.state[b];
		layout.state[b] = state;
	}
	return layout;
}

static void many_atoms_are_never_worse_than_the_references(void **state)
{
	const int64_t dims[] = {1536, 96, 1024};
	sw_shape shape = make_shape(3, dims);
	int compared = 0;
	(void)state;
	for (int i = 0; i < 600; i++) {
		sw_rng rng = {11, (uint64_t)i << 32};
		int32_t sizes[8], n = 3 + i % 6;
		for (int32_t a = 0; a < n; a++)
			sizes[a] = sw_rng_below(&rng, 5) == 0 ? 3 : 2;
		sw_atoms atoms = make_atoms(n, sizes);
		random_model model = make_model((uint64_t)i);
		sw_redistribution how = {&atoms,
		                         i % 4 ? plain_seconds : random_seconds,
		                         i % 4 ? (void *)&atoms : &model,
		                         (double[]){0, 1e12, 1e10}[i % 3],
		                         i % 2 ? 0 : 4e-6,
		                         0, false};
		sw_layout from = i % 5 ? random_layout(&rng, &atoms, shape)
		                       : random_strided(&rng, &atoms, shape);
		sw_layout to = i % 5 == 1   ? permuted(&rng, &atoms, from)
		               : i % 5 == 2 ? random_strided(&rng, &atoms, shape)
		                            : random_layout(&rng, &atoms, shape);
		if (i % 7 == 0)
			how.memory_bytes = sw_rng_below(&rng, 2 * sw_shape_bytes(shape));
		sw_path path;
		if (sw_redistribute(&how, shape, &from, &to, &path, NULL) == SW_OK)
			check_path(&how, shape, &from, &to, &path);
		check_against_references(&how, shape, &from, &to, &path, &compared);
	}
	assert_true(compared > 3000);
}

/* ---- memory, caching -------------------------------------------------------------------- */

/* [S0 B] to [B S0] by way of B needs the whole tensor twice; a permute needs only parts. */
static void memory_bounds_every_move(void **state)
{
	const int64_t dims[] = {64, 64};
	sw_atoms atoms = parse_atoms("2,2");
	sw_shape shape = make_shape(2, dims);
	sw_redistribution how = {&atoms, plain_seconds, &atoms, 0, 0, 0, false};
	sw_layout from, to;
	sw_error err;
	sw_path path;
	(void)state;
	assert_int_equal(sw_layout_parse(&atoms, shape, "[S0 S0]", &from, NULL), SW_OK);
	to = sw_layout_replicated(&atoms);
	how.memory_bytes = 64 * 64 * 8 * 5 / 4;
	assert_int_equal(sw_redistribute(&how, shape, &from, &to, &path, NULL), SW_OK);
	assert_int_equal(path.peak_bytes, how.memory_bytes);
	how.memory_bytes--;
	assert_int_equal(sw_redistribute(&how, shape, &from, &to, &path, &err), SW_NO);
	assert_string_equal(err.message,
	                    "no path from [S0 S0] to [B B] within 40959 bytes of memory");
	assert_int_equal(path.n, 0);
	assert_true(isinf(path.seconds));
	assert_int_equal(sw_redistribute(&how, shape, &to, &to, &path, &err), SW_OK);
}

static double never(void *context, sw_move_kind kind, uint32_t atoms, int64_t bytes)
{
	(void)context, (void)kind, (void)atoms, (void)bytes;
	return INFINITY;
}

static void moves_that_the_model_forbids_are_not_used(void **state)
{
	const int64_t dims[] = {8};
	sw_atoms atoms = parse_atoms("2");
	sw_shape shape = make_shape(1, dims);
	sw_redistribution how = {&atoms, never, NULL, 1e9, 0, 0, false};
	sw_path_cache *cache = sw_path_cache_new(&how);
	sw_layout whole = sw_layout_replicated(&atoms), split = whole;
	(void)state;
	assert_true(sw_layout_split(&atoms, &split, 1, 0, 8));
	assert_int_equal(sw_path_cache_get(cache, shape, &whole, &split)->n, 1);
	assert_true(isinf(sw_path_cache_get(cache, shape, &split, &whole)->seconds));
	assert_int_equal(sw_path_cache_get(cache, shape, &split, &whole)->n, 0);
	sw_path path;
	sw_error err;
	assert_int_equal(sw_redistribute(&how, shape, &split, &whole, &path, &err), SW_NO);
	assert_string_equal(err.message, "no path from [S0] to [B]: the cost model allows none");
	sw_path_cache_free(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_path_is_the_cheapest_of_all),
		cmocka_unit_test(common_redistributions_have_the_known_paths),
		cmocka_unit_test(many_atoms_are_never_worse_than_the_references),
		cmocka_unit_test(memory_bounds_every_move),
		cmocka_unit_test(moves_that_the_model_forbids_are_not_used),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
