/* Redistribution: paths are the cheapest of all, right on real data, within memory, and
 * deterministic. */
#include "layout/exhaustive.h"
#include "layout/references.h"
#include "layout/grouping.h"

#include <math.h>
#include <string.h>

#include "test.h"

/* A cost model with its own latency and bandwidth for every kind and set of atoms. */
typedef struct random_model {
	uint64_t seed;
	double alpha_scale, beta_scale;
} random_model;

static double random_seconds(void *context, sw_move_kind kind, uint32_t atoms, int64_t bytes)
{
	const random_model *model = context;
	double alpha =
		1e-6 * (1 + 19 * sw_random_unit(model->seed, kind, 2 * atoms)) * model->alpha_scale;
	double beta = 1e-9 * (1 + 19 * sw_random_unit(model->seed, kind, 2 * atoms + 1)) *
	              model->beta_scale;
	return alpha + beta * (double)bytes;
}

static random_model make_model(uint64_t seed)
{
	static const double scales[][2] = {{1, 1}, {0.01, 100}, {1, 0}, {0, 1}, {1, 1e3}};
	const double *scale = scales[seed % SW_COUNT(scales)];
	return (random_model){seed, scale[0], scale[1]};
}

static uint32_t partial_targets(const sw_layout *from, const sw_layout *to)
{
	return sw_layout_partial_atoms(to) & ~sw_layout_partial_atoms(from);
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

/* Check that the moves of a path are moves by their definition, lead from one end to the other, and
 * cost as much as the path states. */
static void check_path(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                       const sw_layout *to, const sw_path *path)
{
	sw_layout at = *from;
	double ps = 0;
	int64_t peak = 0;
	for (int32_t i = 0; i < path->n; i++) {
		const sw_move *move = &path->moves[i];
		assert_true(sw_layout_valid(how->atoms, shape, &move->after));
		uint32_t mask = classify_move(how->atoms, shape, &at, &move->after, move->kind,
		                              partial_targets(from, to), NULL);
		assert_int_equal(mask, move->atoms);
		ps += step_ps(how, shape, &at, move);
		peak = SW_MAX(peak, local_touches(how->atoms, shape, &at, move).peak);
		peak = SW_MAX(peak, sw_layout_local_bytes(how->atoms, shape, &at) +
		                            sw_layout_local_bytes(how->atoms, shape, &move->after));
		at = move->after;
	}
	assert_true(sw_layout_equal(&at, to));
	assert_int_equal(path->peak_bytes, peak);
	assert_true(fabs(path->seconds * 1e12 - ps) <= 3 * path->n + 1e-9 * ps);
}

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
			&atoms, random_seconds, &model, bandwidths[i % 3], i % 2 ? 0 : 1e-6, 0};
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

/* Bytes over 1 GB/s and a latency of 1 us, whatever the atoms. */
static double plain_seconds(void *context, sw_move_kind kind, uint32_t atoms, int64_t bytes)
{
	const sw_atoms *all = context;
	static const sw_opcode opcodes[] = {[SW_MOVE_ALL_GATHER] = SW_OP_ALL_GATHER,
	                                    [SW_MOVE_ALL_REDUCE] = SW_OP_ALL_REDUCE,
	                                    [SW_MOVE_REDUCE_SCATTER] = SW_OP_REDUCE_SCATTER,
	                                    [SW_MOVE_ALL_TO_ALL] = SW_OP_ALL_TO_ALL,
	                                    [SW_MOVE_PERMUTE] = SW_OP_COLLECTIVE_PERMUTE};
	return 1e-6 + 1e-9 * (double)sw_collective_payload_bytes(opcodes[kind], bytes,
	                                                         sw_atoms_group_size(all, atoms));
}

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
		sw_redistribution how = {&atoms, plain_seconds, &atoms, 1e12, 0, 0};
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

/* Neighbouring atoms mostly have the same state, as in plans. */
static sw_layout random_layout(sw_rng *rng, const sw_atoms *atoms, sw_shape shape)
{
	sw_layout layout = sw_layout_replicated(atoms);
	int64_t top[SW_MAX_RANK], choice = 0;
	for (int32_t dim = 0; dim < shape.rank; dim++)
		top[dim] = shape.dims[dim];
	for (int32_t a = 0; a < atoms->n; a++) {
		if (a == 0 || sw_rng_below(rng, 2) == 0)
			choice = sw_rng_below(rng, shape.rank + 2);
		if (choice == shape.rank)
			layout.state[a].kind = SW_STATE_P;
		else if (choice < shape.rank &&
		         sw_layout_split(atoms, &layout, 1u << a, (int32_t)choice, top[choice]))
			top[choice] /= atoms->size[a];
	}
	layout.monoid = sw_layout_partial_atoms(&layout) ? SW_MONOID_SUM : SW_MONOID_NONE;
	return layout;
}

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

static void check_against_references(const sw_redistribution *how, sw_shape shape,
                                     const sw_layout *from, const sw_layout *to,
                                     const sw_path *path, int *compared)
{
	for (int which = 0; which < SW_REFERENCES; which++) {
		double ps = reference_ps(how, shape, from, to, which);
		if (!isfinite(ps))
			continue;
		++*compared;
		if (!(path->seconds * 1e12 <= ps * (1 + 1e-9) + 100))
			fail_msg("%s within %lld: %g ps, but reference %d takes %g",
			         describe(how->atoms, shape, from, to),
			         (long long)how->memory_bytes, path->seconds * 1e12, which, ps);
	}
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
		                         0};
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
	sw_redistribution how = {&atoms, plain_seconds, &atoms, 0, 0, 0};
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
	sw_redistribution how = {&atoms, random_seconds, &model, 8e9, 1e-6, 3000000};
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

/* Paths over groups of atoms move real data, stay over groups, and are not cheaper than paths over
 * the atoms themselves. */
static void groups_of_atoms_move_together(void **state)
{
	const int64_t dims[] = {16, 8, 4};
	const uint32_t masks[] = {3, 12};
	sw_atoms atoms = parse_atoms("2,2,2,2");
	sw_shape shape = make_shape(3, dims);
	grouping groups;
	sw_redistribution how = {&atoms, plain_seconds, &atoms, 1e12, 0, 0};
	sw_path_cache *grouped = sw_path_cache_new_grouped(&how, masks, 2),
		      *single = sw_path_cache_new(&how);
	double *whole = sw_alloc(sizeof(double) * (size_t)sw_shape_elements(shape));
	sw_rng rng = {5, 0};
	int moves = 0, compared = 0;
	(void)state;
	grouping_init(&groups, &atoms, masks, 2);
	sw_redistribution grouped_how = {&groups.groups, plain_seconds, &groups.groups, 1e12, 0, 0};
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

/* Groups of sizes 4, 3, 4, 2 and 6 are treated as atoms of these sizes. */
static void paths_over_groups_are_never_worse_than_the_references(void **state)
{
	const int64_t dims[] = {1536, 96, 1152};
	const uint32_t masks[] = {0x03, 0x04, 0x18, 0x20, 0xc0};
	sw_atoms atoms = parse_atoms("2,2,3,2,2,2,2,3");
	sw_shape shape = make_shape(3, dims);
	sw_redistribution how = {&atoms, plain_seconds, &atoms, 1e12, 4e-6, 0};
	sw_path_cache *cache = sw_path_cache_new_grouped(&how, masks, SW_COUNT(masks));
	grouping groups;
	int compared = 0;
	sw_rng rng = {6, 0};
	(void)state;
	grouping_init(&groups, &atoms, masks, SW_COUNT(masks));
	sw_redistribution over_groups = {&groups.groups, plain_seconds, &groups.groups,
	                                 1e12,           4e-6,          0};
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
	sw_redistribution how = {&atoms, plain_seconds, &atoms, 8e9, 1e-6, 0};
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
	sw_redistribution how = {&atoms, counted_seconds, &prices, 8e9, 1e-6, 0};
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
	sw_redistribution how = {&atoms, plain_seconds, &atoms, 8e9, 1e-6, 0};
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
	sw_redistribution how = {&atoms, plain_seconds, &atoms, 1e12, 1e-6, 0};
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
	sw_redistribution how = {&atoms, plain_seconds, &atoms, 1e12, 1e-6, 0};
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
	sw_redistribution how = {&atoms, never, NULL, 1e9, 0, 0};
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
		cmocka_unit_test(the_cache_gives_the_path_that_a_fresh_search_gives),
		cmocka_unit_test(groups_of_atoms_move_together),
		cmocka_unit_test(paths_over_groups_are_never_worse_than_the_references),
		cmocka_unit_test(costs_of_paths_do_not_depend_on_earlier_queries),
		cmocka_unit_test(all_pairs_at_once_cost_what_each_costs),
		cmocka_unit_test(a_thousand_layouts_at_once_cost_little_more),
		cmocka_unit_test(the_pairs_of_very_many_layouts_are_found_at_once),
		cmocka_unit_test(few_layouts_at_once_cost_hardly_more),
		cmocka_unit_test(moves_that_the_model_forbids_are_not_used),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
