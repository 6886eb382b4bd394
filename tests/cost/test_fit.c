/* Fitting: known figures are recovered from the seconds that the formulas give under them, with
 * noise and outliers. */
#include <math.h>
#include <string.h>

#include "cost/clusters.h"
#include "cost/fit.h"
#include "test.h"

#define NOISE 0.02    /* relative standard deviation of measured seconds */
#define OUTLIERS 0.08 /* fraction of outliers among the points */
#define LATE 2.5      /* factor on the seconds of an outlier */
#define MAX_POINTS 4000

typedef struct point_list {
	sw_link_point at[MAX_POINTS];
	double exact[MAX_POINTS];
	int32_t n;
} point_list;

static void add_point(point_list *p, const sw_cluster *truth, sw_link_point point)
{
	point.seconds = point.atoms ? sw_cost_algorithm(truth, point.algorithm, point.kind,
	                                                point.atoms, point.bytes)
	                            : sw_cost_pair(truth, point.from, point.to, point.bytes);
	if (!isfinite(point.seconds) || point.seconds <= 0)
		return;
	assert_true(p->n < MAX_POINTS);
	p->exact[p->n] = point.seconds;
	uint64_t i = (uint64_t)p->n;
	point.seconds *= exp(NOISE * sw_random_normal(1, 0, i));
	if (sw_random_unit(1, 1, i) < OUTLIERS)
		point.seconds *= LATE;
	point.deviation_s = NOISE * point.seconds;
	p->at[p->n++] = point;
}

/* Add every algorithm of every collective over every set of atoms, and every pair of devices. */
static void add_points(point_list *p, const sw_cluster *truth)
{
	for (int64_t bytes = 1024; bytes <= 64 << 20; bytes *= 16) {
		for (uint32_t atoms = 1; atoms < 1u << truth->atoms.n; atoms++)
			for (int k = 0; k < SW_COLLECTIVE_COUNT; k++)
				for (int a = 0; a < SW_ALGORITHM_COUNT; a++)
					if (sw_algorithm_serves((sw_algorithm)a,
					                        (sw_collective_kind)k))
						add_point(p, truth,
						          (sw_link_point){
								  .kind = (sw_collective_kind)k,
								  .algorithm = (sw_algorithm)a,
								  .atoms = atoms,
								  .bytes = bytes});
		for (int32_t b = 0; b < truth->n_devices; b++)
			for (int32_t a = 0; a < b; a++)
				add_point(p, truth,
				          (sw_link_point){.kind = SW_COLLECTIVE_PERMUTE,
				                          .from = a,
				                          .to = b,
				                          .bytes = bytes});
	}
}

/* Return a guess that is wrong by up to `factor`, up or down. */
static double wrong(double value, double factor, uint64_t i)
{
	return value * exp((2 * sw_random_unit(2, 0, i) - 1) * log(factor));
}

static void guess(const sw_cluster *truth, double factor, double *parts, sw_cluster *shape)
{
	uint64_t draws = 0;
	*shape = *truth;
	for (int32_t l = 0; l < shape->n_levels; l++) {
		sw_level *level = &shape->levels[l];
		level->latency_s = wrong(level->latency_s, factor, draws++);
		level->bandwidth = wrong(level->bandwidth, factor, draws++);
		level->flow_bandwidth = level->bandwidth;
		level->contention = 0;
		if (!level->part_bandwidth)
			continue;
		int64_t n = shape->place[(shape->n_devices - 1) * shape->n_levels + l] + 1;
		for (int64_t part = 0; part < n; part++)
			parts[part] = level->bandwidth;
		level->part_bandwidth = parts;
	}
}

static void assert_near(const char *what, double actual, double expected, double tolerance)
{
	if (!(fabs(actual - expected) <= tolerance * expected))
		fail_msg("%s is %g, not %g", what, actual, expected);
}

static double value_of(const sw_cluster *truth, const char *name)
{
	for (int32_t l = 0; l < truth->n_levels; l++) {
		const sw_level *level = &truth->levels[l];
		size_t length = strlen(level->name);
		if (strncmp(name, level->name, length) != 0 || name[length] != ' ')
			continue;
		const char *figure = name + length + 1;
		if (strcmp(figure, "latency") == 0)
			return level->latency_s;
		if (strcmp(figure, "bandwidth") == 0)
			return level->bandwidth;
		if (strcmp(figure, "flow bandwidth") == 0)
			return level->flow_bandwidth;
		if (strcmp(figure, "contention") == 0)
			return level->contention;
		return level->part_bandwidth[atoi(figure)];
	}
	fail_msg("no figure is called %s", name);
	return 0;
}

/* Check that under the fitted figures every point takes as long as it truly does, and that every
 * figure that was seen is the true one. */
static void check_recovery(const sw_cluster *truth)
{
	static point_list p;
	sw_arena arena;
	sw_cluster shape, fitted;
	sw_fit fit;
	double parts[64];
	sw_arena_init(&arena);
	p.n = 0;
	add_points(&p, truth);
	guess(truth, 20, parts, &shape);
	fitted = shape;
	sw_fit_links(&shape, p.at, p.n, &arena, fitted.levels, &fit);
	for (int32_t i = 0; i < p.n; i++)
		assert_near(sw_collective_name(p.at[i].kind), p.at[i].fitted_s, p.exact[i], 0.05);
	assert_true(fit.n_parameters > 0 && fit.n_points == p.n);
	assert_true(fit.median_error < 1.5 * NOISE);
	assert_true(fit.worst_error > 0.5); /* that of an outlier */
	int seen = 0;
	for (int32_t i = 0; i < fit.n_parameters; i++) {
		const sw_fit_parameter *f = &fit.parameters[i];
		seen += f->seen;
		if (f->unit == SW_FIT_NUMBER)
			assert_true(!f->seen || fabs(f->value - value_of(truth, f->name)) <
			                                fmax(0.02, 6 * f->error));
		else if (f->seen)
			assert_near(f->name, f->value, value_of(truth, f->name),
			            fmax(0.02, 6 * f->error));
	}
	assert_true(seen >= 2);
	sw_arena_clear(&arena);
}

static void known_figures_are_recovered(void **state)
{
	(void)state;
	static const level_text shapes[][3] = {
		{{"4", 40e-6, 125e6, 0}},
		{{"2", 40e-6, 125e6, 0}, {"4", 3e-6, 4e9, 0}},
		{{"2", 40e-6, 2e9, 0.4e9}, {"2", 3e-6, 8e9, 5e9}},
		{{"2", 60e-6, 1e9, 0}, {"2", 9e-6, 3e9, 0}, {"2", 1e-6, 20e9, 0}},
		{{"2", 50e-6, 1e9, 0}, {"[1, 4]", 5e-6, 6e9, 0}},
	};
	for (size_t i = 0; i < SW_COUNT(shapes); i++) {
		sw_cluster truth;
		size_t n = 0;
		while (n < 3 && shapes[i][n].count)
			n++;
		make_cluster(&truth, shapes[i], n);
		check_recovery(&truth);
		sw_cluster_clear(&truth);
	}
}

static void contention_and_unequal_links_are_recovered(void **state)
{
	(void)state;
	static const double links[] = {120e6, 60e6, 250e6};
	sw_cluster truth;
	make_cluster(&truth, (const level_text[]){{"2", 40e-6, 1e9, 0}, {"4", 3e-6, 4e9, 0}}, 2);
	truth.levels[0].contention = 0.15;
	check_recovery(&truth);
	sw_cluster_clear(&truth);
	make_cluster(&truth, (const level_text[]){{"3", 40e-6, 60e6, 0}}, 1);
	truth.levels[0].part_bandwidth = links;
	check_recovery(&truth);
	sw_cluster_clear(&truth);
}

static void without_points_the_guess_stays(void **state)
{
	(void)state;
	sw_cluster shape;
	sw_arena arena;
	sw_fit fit;
	sw_level levels[SW_MAX_LEVELS];
	sw_arena_init(&arena);
	make_cluster(&shape, (const level_text[]){{"2", 40e-6, 2e9, 1e9}, {"2", 3e-6, 8e9, 0}}, 2);
	sw_fit_links(&shape, NULL, 0, &arena, levels, &fit);
	assert_near("latency", levels[0].latency_s, 40e-6, 1e-9);
	assert_near("bandwidth", levels[1].bandwidth, 8e9, 1e-9);
	assert_near("flow bandwidth", levels[0].flow_bandwidth, 1e9, 1e-9);
	for (int32_t i = 0; i < fit.n_parameters; i++)
		assert_false(fit.parameters[i].seen);
	sw_arena_clear(&arena);
	sw_cluster_clear(&shape);
}

/* Return work of all kinds, in sizes from a few elements to more than any cache holds. */
static sw_kernel_work some_work(uint64_t n)
{
	return (sw_kernel_work){.flops = exp(7 + 14 * sw_random_unit(3, 0, n)),
	                        .bytes = exp(7 + 12 * sw_random_unit(3, 1, n)),
	                        .calls = floor(exp(6 * sw_random_unit(3, 3, n))),
	                        .rows = floor(exp(3 + 8 * sw_random_unit(3, 4, n)))};
}

static void assert_term(const char *what, double found, double truth)
{
	if (truth > 0)
		assert_near(what, found, truth, 0.08);
	else
		assert_true(found == 0);
}

static void known_kernels_are_recovered(void **state)
{
	(void)state;
	enum { EACH = 120, FAMILIES = 3 };
	static const sw_kernel_fit truth[FAMILIES] = {
		{.given = true,
	         .overhead_s = 2e-6,
	         .flops_per_s = 80e9,
	         .bytes_per_s = 20e9,
	         .cached_bytes_per_s = 20e9,
	         .call_s = 1e-6},
		{.given = true, .overhead_s = 5e-6, .bytes_per_s = 9e9, .cached_bytes_per_s = 60e9},
		{.given = true, .overhead_s = 1e-6, .flops_per_s = 30e9, .row_s = 20e-9}};
	static sw_kernel_point points[FAMILIES * EACH];
	sw_device true_device = {.flops = {[SW_F32] = 100e9}, .cache_bytes = 1 << 20},
		  device = {.flops = {[SW_F32] = 100e9}};
	sw_arena arena;
	sw_fit fit;
	int32_t n = 0;
	sw_arena_init(&arena);
	for (int family = 0; family < FAMILIES; family++) {
		true_device.kernels[family] = truth[family];
		for (int i = 0; i < EACH; i++) {
			sw_kernel_point p = {.what = "test",
			                     .family = (sw_family)family,
			                     .type = SW_F32,
			                     .work = some_work((uint64_t)n)};
			p.seconds = sw_cost_fitted(&true_device, p.family, p.type, &p.work) *
			            exp(NOISE * sw_random_normal(3, 2, (uint64_t)n)) *
			            (i % 13 == 5 ? LATE : 1);
			points[n++] = p;
		}
	}
	sw_fit_kernels(&device, points, n, &arena, &fit);
	assert_near("cache", device.cache_bytes, true_device.cache_bytes, 1e-9);
	for (int family = 0; family < FAMILIES; family++) {
		const sw_kernel_fit *found = &device.kernels[family];
		assert_true(found->given);
		assert_term("overhead", found->overhead_s, truth[family].overhead_s);
		assert_term("call", found->call_s, truth[family].call_s);
		assert_term("row", found->row_s, truth[family].row_s);
		assert_term("flops", found->flops_per_s, truth[family].flops_per_s);
	}
	assert_term("bandwidth", device.kernels[0].bytes_per_s, truth[0].bytes_per_s);
	assert_term("bandwidth", device.kernels[1].bytes_per_s, truth[1].bytes_per_s);
	assert_term("cached bandwidth", device.kernels[1].cached_bytes_per_s,
	            truth[1].cached_bytes_per_s);
	for (int family = FAMILIES; family < SW_FAMILY_COUNT; family++)
		assert_false(device.kernels[family].given);
	assert_true(fit.median_error < 1.5 * NOISE && fit.worst_error > 0.4);
	sw_arena_clear(&arena);
}

static void a_pair_takes_the_narrower_link(void **state)
{
	(void)state;
	static const double links[] = {100e6, 50e6, 200e6};
	sw_cluster cluster;
	make_cluster(&cluster, (const level_text[]){{"3", 10e-6, 50e6, 0}, {"2", 1e-6, 1e9, 0}}, 2);
	cluster.levels[0].part_bandwidth = links;
	cluster.levels[0].flow_bandwidth = 25e6; /* half of a link */
	assert_seconds(sw_cost_pair(&cluster, 0, 2, 1000000), 10e-6 + 1e6 / 25e6);
	assert_seconds(sw_cost_pair(&cluster, 5, 1, 1000000), 10e-6 + 1e6 / 50e6);
	assert_seconds(sw_cost_pair(&cluster, 4, 5, 1000000), 1e-6 + 1e6 / 1e9);
	assert_seconds(sw_cost_pair(&cluster, 3, 3, 1000000), 0);
	sw_cluster_clear(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_figures_are_recovered),
		cmocka_unit_test(contention_and_unequal_links_are_recovered),
		cmocka_unit_test(without_points_the_guess_stays),
		cmocka_unit_test(known_kernels_are_recovered),
		cmocka_unit_test(a_pair_takes_the_narrower_link),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
