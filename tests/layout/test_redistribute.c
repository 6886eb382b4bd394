/* Redistribution: cheapest among all paths, right on real data, within memory, and always the same. */
#include "layout/layouts.h"
#include "layout/together.h"

#include <math.h>
#include <string.h>

#include "test.h"

/* A model with its own latency and bandwidth for every kind and set of atoms. */
typedef struct random_model {
	uint64_t seed;
	double alpha_scale, beta_scale;
} random_model;

static double random_seconds(void *context, sw_move_kind kind, uint32_t atoms, int64_t bytes)
{
	const random_model *model = context;
	double alpha = 1e-6 * (1 + 19 * sw_random_unit(model->seed, kind, 2 * atoms)) * model->alpha_scale;
	double beta = 1e-9 * (1 + 19 * sw_random_unit(model->seed, kind, 2 * atoms + 1)) * model->beta_scale;
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

/* ---- against all paths --------------------------------------------------------------------------------------- */

static double step_ps(const sw_redistribution *how, sw_shape shape, const sw_layout *before, const sw_move *move)
{
	int64_t operand = sw_layout_local_bytes(how->atoms, shape, before);
	int64_t result = sw_layout_local_bytes(how->atoms, shape, &move->after);
	if (how->memory_bytes > 0 && operand + result > how->memory_bytes)
		return INFINITY;
	touches local = local_touches(how->atoms, shape, before, move);
	double ps = 1e12 * how->local_overhead_s * local.n;
	if (how->local_bandwidth > 0)
		ps += 1e12 * (double)local.bytes / how->local_bandwidth;
	if (move->kind != SW_MOVE_SLICE && move->kind != SW_MOVE_TO_PARTIAL)
		ps += 1e12 * how->seconds(how->context, move->kind, move->atoms, operand);
	return ps;
}

/* Bellman-Ford over all valid layouts with all single moves between them. */
static double cheapest_ps(const sw_redistribution *how, sw_shape shape, const layout_list *all, const sw_layout *from,
                          const sw_layout *to)
{
	double *ps = sw_alloc(all->len * sizeof(double)), found = INFINITY;
	for (size_t i = 0; i < all->len; i++)
		ps[i] = sw_layout_equal(&all->data[i], from) ? 0 : INFINITY;
	for (bool changed = true; changed;) {
		changed = false;
		for (size_t i = 0; i < all->len; i++) {
			for (size_t j = 0; j < all->len && ps[i] < INFINITY; j++) {
				for (int kind = 0; kind < SW_MOVE_COUNT; kind++) {
					sw_move move;
					if (!classify_move(how->atoms, shape, &all->data[i], &all->data[j], (sw_move_kind)kind,
					                   partial_targets(from, to), &move))
						continue;
					double step = ps[i] + step_ps(how, shape, &all->data[i], &move);
					if (step < ps[j]) {
						ps[j] = step;
						changed = true;
					}
				}
			}
		}
	}
	for (size_t i = 0; i < all->len; i++)
		if (sw_layout_equal(&all->data[i], to))
			found = ps[i];
	free(ps);
	return found;
}

/* exact: at most two atoms, where every plain place is tried. With three, places that only differ in transposes and in what
 * is in the way later are not; on shapes this small and models this wild that shows now and then, and never in the mean. */
static const struct {
	const char *shape, *atoms;
	int pairs;
} small_cases[] = {
	{"4", "2,2", 40}, {"6", "2,3", 40}, {"12", "2,3", 40}, {"4,6", "2,3", 40}, {"4,4", "2,2", 40}, {"8,2", "2,2", 40},
	{"2,3,4", "2,3", 30}, {"3,5", "3,5", 20}, {"5", "5", 10}, {"7", "2", 3}, {"8", "2,2,2", 20}, {"4,2", "2,2,2", 20},
	{"4,4", "2,2,2", 4}, {"12", "2,3,2", 10}, {"6,2", "3,2,2", 8}, {"16", "2,2,2", 4},
};

/* Moves of a path must be moves by their definition, lead from one end to the other, and cost what the path says. */
static void check_path(const sw_redistribution *how, sw_shape shape, const sw_layout *from, const sw_layout *to,
                       const sw_path *path)
{
	sw_layout at = *from;
	double ps = 0;
	int64_t peak = 0;
	for (int32_t i = 0; i < path->n; i++) {
		const sw_move *move = &path->moves[i];
		assert_true(sw_layout_valid(how->atoms, shape, &move->after));
		uint32_t mask = classify_move(how->atoms, shape, &at, &move->after, move->kind, partial_targets(from, to), NULL);
		assert_int_equal(mask, move->atoms);
		ps += step_ps(how, shape, &at, move);
		peak = SW_MAX(peak, sw_layout_local_bytes(how->atoms, shape, &at) +
		                            sw_layout_local_bytes(how->atoms, shape, &move->after));
		at = move->after;
	}
	assert_true(sw_layout_equal(&at, to));
	assert_int_equal(path->peak_bytes, peak);
	assert_true(fabs(path->seconds * 1e12 - ps) <= 3 * path->n + 1e-9 * ps);
}

typedef struct excess {
	double sum, worst;
	int n;
} excess;

static void count_excess(excess *sum, double ps, double least)
{
	double ratio = ps <= least + 40 ? 1 : ps / least; /* rounding to picoseconds: a few per move */
	sum->sum += ratio;
	sum->worst = SW_MAX(sum->worst, ratio);
	sum->n++;
}

static void compare_with_all(const char *shape_text, const char *atoms_text, uint64_t seed, int pairs, double bandwidth,
                             excess *sum)
{
	int64_t dims[SW_MAX_RANK];
	sw_atoms atoms = parse_atoms(atoms_text);
	sw_shape shape = parse_shape(shape_text, dims);
	layout_list all = {0};
	sw_rng rng = {seed, 0};
	list_layouts(&atoms, shape, SW_MONOID_SUM, &all);
	for (int i = 0; i < pairs; i++) {
		random_model model = make_model(seed + (uint64_t)i);
		sw_redistribution how = {&atoms, random_seconds, &model, bandwidth, i % 2 ? 0 : 1e-6, 0};
		const sw_layout *from = &all.data[sw_rng_below(&rng, (int64_t)all.len)];
		const sw_layout *to = &all.data[sw_rng_below(&rng, (int64_t)all.len)];
		if (sw_rng_below(&rng, 3) == 0)
			how.memory_bytes = 8 * (1 + sw_rng_below(&rng, 2 * sw_shape_elements(shape)));
		sw_path path;
		sw_status status = sw_redistribute(&how, shape, from, to, &path, NULL);
		double least = cheapest_ps(&how, shape, &all, from, to);
		if (status != SW_OK && isfinite(least)) {
			char *pair = describe(&atoms, shape, from, to);
			fail_msg("seed %llu, [%s] over %s, %s within %lld: no path, but one takes %g ps",
			         (unsigned long long)seed, shape_text, atoms_text, pair, (long long)how.memory_bytes, least);
		}
		if (status == SW_OK) {
			check_path(&how, shape, from, to, &path);
			count_excess(sum, path.seconds * 1e12, least);
		}
	}
	sw_vec_clear(&all);
}

static void compare_cases(size_t begin, size_t end, excess *sum)
{
	static const double bandwidths[] = {0, 8e9, 1e8};
	for (size_t c = begin; c < end; c++)
		for (size_t b = 0; b < SW_COUNT(bandwidths); b++)
			compare_with_all(small_cases[c].shape, small_cases[c].atoms, 1000 * c + 100 * b,
			                 small_cases[c].pairs, bandwidths[b], sum);
}

static void two_atoms_find_the_cheapest_of_all_paths(void **state)
{
	excess sum = {0};
	(void)state;
	compare_cases(0, 10, &sum);
	assert_true(sum.n > 500);
	assert_true(sum.worst < 1 + 1e-9);
}

static void three_atoms_come_close_to_the_cheapest(void **state)
{
	excess sum = {0};
	(void)state;
	compare_cases(10, SW_COUNT(small_cases), &sum);
	assert_true(sum.n > 100);
	assert_true(sum.worst < 1.3);
	assert_true(sum.sum / sum.n < 1.003);
}

/* ---- known answers --------------------------------------------------------------------------------------------- */

/* Bytes over 1 GB/s and a latency of 1 us, whatever the atoms. */
static double plain_seconds(void *context, sw_move_kind kind, uint32_t atoms, int64_t bytes)
{
	const sw_atoms *all = context;
	static const sw_opcode opcodes[] = {
		[SW_MOVE_ALL_GATHER] = SW_OP_ALL_GATHER, [SW_MOVE_ALL_REDUCE] = SW_OP_ALL_REDUCE,
		[SW_MOVE_REDUCE_SCATTER] = SW_OP_REDUCE_SCATTER, [SW_MOVE_ALL_TO_ALL] = SW_OP_ALL_TO_ALL,
		[SW_MOVE_PERMUTE] = SW_OP_COLLECTIVE_PERMUTE};
	return 1e-6 + 1e-9 * (double)sw_collective_payload_bytes(opcodes[kind], bytes, sw_atoms_group_size(all, atoms));
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
	{"2,3", "66", "[P(sum) B]", "[B B]", "all-reduce/1", 528}, /* slicing first would send as much */
	{"2,2,2", "64,64", "[S0 P(sum) P(sum)]", "[S0 B B]", "all-reduce/6", 24576},
};

static char *describe_moves(const sw_path *path)
{
	sw_text text = {0};
	sw_text_add(&text, "");
	for (int32_t i = 0; i < path->n; i++)
		sw_text_addf(&text, "%s%s/%x", i ? " " : "", sw_move_name(path->moves[i].kind), path->moves[i].atoms);
	return text.data ? text.data : sw_alloc(1);
}

static void common_redistributions_are_the_known_ones(void **state)
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

/* ---- many atoms ----------------------------------------------------------------------------------------------------- */

/* The path gather-and-reduce, then slice, as a bound from above. */
static double by_way_of_b_ps(const sw_redistribution *how, sw_shape shape, const sw_layout *from, const sw_layout *to)
{
	static const sw_move_kind kinds[] = {SW_MOVE_ALL_REDUCE, SW_MOVE_ALL_GATHER, SW_MOVE_SLICE, SW_MOVE_TO_PARTIAL};
	static const uint8_t begins[] = {SW_STATE_P, SW_STATE_S, SW_STATE_B, SW_STATE_B};
	sw_layout at = *from;
	double ps = 0;
	for (size_t k = 0; k < SW_COUNT(kinds); k++) {
		sw_move move = {.kind = kinds[k], .after = at};
		for (int32_t a = 0; a < at.n; a++) {
			bool there = at.state[a].kind == to->state[a].kind && at.state[a].dim == to->state[a].dim &&
			             at.state[a].stride == to->state[a].stride;
			if (there || at.state[a].kind != begins[k] || (k >= 2 && (k == 3) != (to->state[a].kind == SW_STATE_P)))
				continue;
			move.atoms |= 1u << a;
			move.after.state[a] = k < 2 ? (sw_state){.kind = SW_STATE_B} : to->state[a];
		}
		move.after.monoid = sw_layout_partial_atoms(&move.after) ? SW_MONOID_SUM : SW_MONOID_NONE;
		if (move.atoms)
			ps += step_ps(how, shape, &at, &move);
		at = move.after;
	}
	assert_true(sw_layout_equal(&at, to));
	return ps;
}

/* Neighbouring atoms mostly in the same state, as plans have them. */
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
		else if (choice < shape.rank && sw_layout_split(atoms, &layout, 1u << a, (int32_t)choice, top[choice]))
			top[choice] /= atoms->size[a];
	}
	layout.monoid = sw_layout_partial_atoms(&layout) ? SW_MONOID_SUM : SW_MONOID_NONE;
	return layout;
}

static void many_atoms_are_never_worse_than_by_way_of_b(void **state)
{
	static const char *const atoms_of[] = {"2,2,2,2", "2,2,2,2,2,2", "3,2,2,2,2,2,2,2", "2,2,2,2,2,2,2,2,2,2"};
	const int64_t dims[] = {3072, 1024};
	sw_shape shape = make_shape(2, dims);
	sw_rng rng = {11, 0};
	(void)state;
	for (int i = 0; i < 120; i++) {
		sw_atoms atoms = parse_atoms(atoms_of[i % 4]);
		random_model model = make_model((uint64_t)i);
		sw_redistribution how = {&atoms, random_seconds, &model, i % 3 ? 8e9 : 2e12, i % 2 ? 0 : 4e-6, 0};
		sw_layout from = random_layout(&rng, &atoms, shape), to = random_layout(&rng, &atoms, shape);
		sw_path path;
		assert_int_equal(sw_redistribute(&how, shape, &from, &to, &path, NULL), SW_OK);
		check_path(&how, shape, &from, &to, &path);
		assert_true(path.seconds * 1e12 <= by_way_of_b_ps(&how, shape, &from, &to) * (1 + 1e-9) + 100);
	}
}

/* ---- memory, caching --------------------------------------------------------------------------------------------------- */

/* [S0 B] to [B S0] by way of B needs the whole tensor twice; a permute only parts. */
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
	assert_string_equal(err.message, "no path from [S0 S0] to [B B] within 40959 bytes of memory");
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
		assert_memory_equal(a->moves[i].to_atom, b->moves[i].to_atom, sizeof(a->moves[i].to_atom));
	}
}

/* What was asked before, and in which order, changes nothing. */
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
		assert_ptr_equal(first, sw_path_cache_get(forwards, shape, &ends[i][0], &ends[i][1]));
	}
	sw_path_cache_free(forwards);
	sw_path_cache_free(backwards);
	sw_path_cache_free(NULL);
}

/* Paths over groups of atoms move real data, stay over groups, and are no better than paths over the atoms themselves. */
static void groups_of_atoms_move_together(void **state)
{
	const int64_t dims[] = {16, 8, 4};
	const uint32_t masks[] = {3, 12};
	sw_atoms atoms = parse_atoms("2,2,2,2");
	sw_shape shape = make_shape(3, dims);
	grouping groups;
	sw_redistribution how = {&atoms, plain_seconds, &atoms, 1e12, 0, 0};
	sw_path_cache *grouped = sw_path_cache_new_grouped(&how, masks, 2), *single = sw_path_cache_new(&how);
	double *whole = sw_alloc(sizeof(double) * (size_t)sw_shape_elements(shape));
	sw_rng rng = {5, 0};
	int moves = 0;
	(void)state;
	grouping_init(&groups, &atoms, masks, 2);
	for (int64_t i = 0; i < sw_shape_elements(shape); i++)
		whole[i] = (double)(i % 97);
	for (int i = 0; i < 300; i++) {
		sw_layout ends[2], small;
		for (int k = 0; k < 2; k++) {
			small = random_layout(&rng, &groups.groups, shape);
			grouping_spread(&groups, &small, &ends[k]);
			assert_true(sw_layout_valid(&atoms, shape, &ends[k]));
		}
		const sw_path *path = sw_path_cache_get(grouped, shape, &ends[0], &ends[1]);
		assert_true(path->seconds >= sw_path_cache_get(single, shape, &ends[0], &ends[1])->seconds * (1 - 1e-6));
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
	assert_true(moves > 300);
	free(whole);
	sw_path_cache_free(grouped);
	sw_path_cache_free(single);
}

static double never(void *context, sw_move_kind kind, uint32_t atoms, int64_t bytes)
{
	(void)context, (void)kind, (void)atoms, (void)bytes;
	return INFINITY;
}

static void what_the_model_forbids_is_not_done(void **state)
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
		cmocka_unit_test(two_atoms_find_the_cheapest_of_all_paths),
		cmocka_unit_test(three_atoms_come_close_to_the_cheapest),
		cmocka_unit_test(common_redistributions_are_the_known_ones),
		cmocka_unit_test(many_atoms_are_never_worse_than_by_way_of_b),
		cmocka_unit_test(memory_bounds_every_move),
		cmocka_unit_test(the_cache_gives_the_path_that_a_fresh_search_gives),
		cmocka_unit_test(groups_of_atoms_move_together),
		cmocka_unit_test(what_the_model_forbids_is_not_done),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
