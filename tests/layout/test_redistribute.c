/* Redistribution: cheapest among all paths, right on real data, within memory, and always the same. */
#include "layout/layouts.h"

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
	double ps = how->local_bandwidth > 0
	                    ? 1e12 * (double)touched_bytes(how->atoms, shape, before, move) / how->local_bandwidth
	                    : 0;
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

static const struct {
	const char *shape, *atoms;
	int pairs;
} small_cases[] = {
	{"4", "2,2", 40}, {"6", "2,3", 40}, {"12", "2,3", 40}, {"4,6", "2,3", 40}, {"4,4", "2,2", 40}, {"8,2", "2,2", 40},
	{"2,3,4", "2,3", 30}, {"8", "2,2,2", 20}, {"4,2", "2,2,2", 20}, {"4,4", "2,2,2", 4}, {"12", "2,3,2", 10},
	{"6,2", "3,2,2", 8}, {"3,5", "3,5", 20}, {"5", "5", 10}, {"7", "2", 3}, {"16", "2,2,2", 4},
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

static void compare_with_all(const char *shape_text, const char *atoms_text, uint64_t seed, int pairs, double bandwidth)
{
	int64_t dims[SW_MAX_RANK];
	sw_atoms atoms = parse_atoms(atoms_text);
	sw_shape shape = parse_shape(shape_text, dims);
	layout_list all = {0};
	sw_rng rng = {seed, 0};
	list_layouts(&atoms, shape, SW_MONOID_SUM, &all);
	for (int i = 0; i < pairs; i++) {
		random_model model = make_model(seed + (uint64_t)i);
		sw_redistribution how = {&atoms, random_seconds, &model, bandwidth, 0};
		const sw_layout *from = &all.data[sw_rng_below(&rng, (int64_t)all.len)];
		const sw_layout *to = &all.data[sw_rng_below(&rng, (int64_t)all.len)];
		if (sw_rng_below(&rng, 3) == 0)
			how.memory_bytes = 8 * (1 + sw_rng_below(&rng, 2 * sw_shape_elements(shape)));
		sw_path path;
		sw_status status = sw_redistribute(&how, shape, from, to, &path, NULL);
		double least = cheapest_ps(&how, shape, &all, from, to);
		if (status == SW_OK)
			check_path(&how, shape, from, to, &path);
		if (status == SW_OK ? path.seconds * 1e12 > least * (1 + 1e-9) + 40 : isfinite(least)) {
			char *pair = describe(&atoms, shape, from, to);
			fail_msg("seed %llu, [%s] over %s, %s, memory %lld: %g ps, least %g", (unsigned long long)seed,
			         shape_text, atoms_text, pair, (long long)how.memory_bytes,
			         status == SW_OK ? path.seconds * 1e12 : INFINITY, least);
		}
	}
	sw_vec_clear(&all);
}

static void finds_the_cheapest_of_all_paths(void **state)
{
	(void)state;
	for (size_t c = 0; c < SW_COUNT(small_cases); c++)
		for (int b = 0; b < 3; b++)
			compare_with_all(small_cases[c].shape, small_cases[c].atoms, 1000 * c + 100 * (uint64_t)b,
			                 small_cases[c].pairs, b == 0 ? 0 : b == 1 ? 8e9 : 1e8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_cheapest_of_all_paths),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
