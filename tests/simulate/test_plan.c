/* Plans are compared by their scheduled and simulated steps. */
#include "simulate/plays.h"
#include "search/search.h"
#include "simulate/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const fixtures[] = {"mlp", "mlp-clip", "gpt-tiny-scan"};
static const char *const clusters[] = {"lab-4x1", "local-2x2"};

typedef struct subject {
	char path[512];
	sw_cluster cluster;
	sw_program *program;
	sw_sidecar sidecar;
} subject;

static void check(sw_status status, const sw_error *err)
{
	if (status != SW_OK)
		fail_msg("%s: %s", err->file, err->message);
}

static void open_subject(const char *fixture, const char *cluster, subject *s)
{
	sw_error err = {0};
	snprintf(s->path, sizeof(s->path), SW_SOURCE_DIR "/clusters/%s.yaml", cluster);
	check(sw_cluster_read(s->path, &s->cluster, &err), &err);
	snprintf(s->path, sizeof(s->path), SW_SOURCE_DIR "/tests/programs/%s.hlo.gz", fixture);
	check(sw_read_program(s->path, &s->program, &err), &err);
	check(sw_sidecar_find(s->path, s->program, &s->sidecar, &err), &err);
}

static void close_subject(subject *s)
{
	sw_sidecar_clear(&s->sidecar);
	sw_program_free(s->program);
	sw_cluster_clear(&s->cluster);
}

static sw_plan *make_plan(const subject *s, const char *strategy, bool plays)
{
	sw_error err = {0};
	sw_plan *plan;
	sw_plan_options options = {.no_overlap = !plays, .quiet = true};
	check(sw_plan_strategy_parse(strategy, &options.strategy, &err), &err);
	check(sw_plan_make(s->program, s->path, &s->sidecar, &s->cluster, &options, &plan, &err),
	      &err);
	return plan;
}

static double simulated_s(const sw_plan *plan)
{
	sw_error err = {0};
	double step_s = 0;
	check(sw_simulate_plan(plan, NULL, &step_s, &err), &err);
	return step_s;
}

/* Return the seconds of the kernels alone, shared by all devices: where each op is a kernel, no lower
 * bound is below it. */
static double roofline_s(const subject *s)
{
	sw_program_cost cost;
	sw_cost_program(&s->cluster, s->program, &cost);
	return cost.compute_s / (double)s->cluster.n_devices;
}

static void a_plans_step_is_the_one_that_is_simulated(void **state)
{
	(void)state;
	for (size_t f = 0; f < SW_COUNT(fixtures); f++) {
		subject s;
		open_subject(fixtures[f], clusters[f % SW_COUNT(clusters)], &s);
		s.cluster.device.fusion = f % 2 ? SW_FUSION_LOOPS : SW_FUSION_NONE;
		sw_plan *plan = make_plan(&s, "auto", true);
		const sw_program_cost *cost = &plan->predicted;
		assert_seconds(cost->step_time_s, simulated_s(plan));
		assert_true(cost->step_time_s <=
		            (cost->compute_s + cost->communication_s) * (1 + 1e-9));
		assert_true(cost->step_time_s >= cost->compute_s * (1 - 1e-9));
		assert_true(plan->lower_bound_s > 0 && plan->lower_bound_s <= cost->step_time_s);
		assert_true(plan->gap >= 0 && plan->gap < 1);
		assert_true(plan->model_bound_s <= plan->model_best_s &&
		            plan->model_best_s <= plan->model_s);
		assert_true(fabs(plan->gap - (1 - plan->lower_bound_s / cost->step_time_s)) <
		            1e-9);
		assert_true(s.cluster.device.fusion != SW_FUSION_NONE ||
		            plan->lower_bound_s >= roofline_s(&s) * (1 - 1e-9));
		sw_plan_free(plan);
		close_subject(&s);
	}
}

static void auto_is_at_least_as_fast_as_every_fixed_strategy_when_played(void **state)
{
	static const char *const strategies[] = {"dp", "zero1", "zero3", "megatron:tp=2",
	                                         "megatron:tp=4"};
	(void)state;
	for (size_t f = 0; f < SW_COUNT(fixtures); f++)
		for (size_t c = 0; c < SW_COUNT(clusters); c++) {
			subject s;
			open_subject(fixtures[f], clusters[c], &s);
			sw_plan *best = make_plan(&s, "auto", true);
			for (size_t i = 0; i < SW_COUNT(strategies); i++) {
				sw_plan *fixed = make_plan(&s, strategies[i], true);
				double fixed_s = simulated_s(fixed), best_s = simulated_s(best);
				if (fixed_s < best_s * (1 - 1e-9))
					fail_msg("%s on %s: %s takes %g s, auto %g s", fixtures[f],
					         clusters[c], strategies[i], fixed_s, best_s);
				if (fixed_s < best->lower_bound_s * (1 - 1e-9))
					fail_msg("%s on %s: %s takes %g s, less than the bound of "
					         "%g s",
					         fixtures[f], clusters[c], strategies[i], fixed_s,
					         best->lower_bound_s);
				sw_plan_free(fixed);
			}
			sw_plan_free(best);
			close_subject(&s);
		}
}

/* Without overlap, the kernels and collectives of every parallel plan of this small program take
 * longer than one device alone. */
static void overlap_makes_another_plan_the_best(void **state)
{
	subject s;
	(void)state;
	open_subject("mlp", "lab-4x1", &s);
	s.cluster.device.fusion = SW_FUSION_NONE; /* more to hide behind */
	sw_plan *additive = make_plan(&s, "auto", false), *played = make_plan(&s, "auto", true);
	assert_true(simulated_s(played) < 0.9 * simulated_s(additive));
	assert_true(played->predicted.communication_s > 0);
	assert_int_equal(additive->predicted.collectives, 0);
	sw_plan_free(additive);
	sw_plan_free(played);
	close_subject(&s);
}

/* Return the step of a plan with zero3, rematerialised blocks and 4 microbatches. */
static double step_within(const subject *s, int64_t memory_bytes)
{
	sw_error err = {0};
	sw_plan *plan;
	sw_plan_options options = {
		.memory_bytes = memory_bytes, .microbatches = 4, .remat = "blocks", .quiet = true};
	check(sw_plan_strategy_parse("zero3", &options.strategy, &err), &err);
	check(sw_plan_make(s->program, s->path, &s->sidecar, &s->cluster, &options, &plan, &err),
	      &err);
	double step_s = plan->predicted.step_time_s;
	assert_true(plan->predicted.peak_bytes <= memory_bytes);
	assert_seconds(step_s, simulated_s(plan));
	assert_true(plan->lower_bound_s <= step_s);
	assert_true(plan->model_bound_s <= plan->model_best_s &&
	            plan->model_best_s <= plan->model_s);
	sw_plan_free(plan);
	return step_s;
}

/* Values that are kept instead of rematerialised must leave memory to begin collectives early. */
static void more_memory_makes_steps_at_most_slightly_slower(void **state)
{
	static const struct {
		const char *cluster;
		int64_t memory_bytes[5];
	} cases[] = {{"lab-2x4", {6700000, 7040000, 8200000, 8600000, 10000000}},
	             {"lab-4x1", {6680000, 7040000, 7280000, 7400000, 8000000}}};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		double before_s = INFINITY;
		subject s;
		open_subject("gpt", cases[i].cluster, &s);
		for (size_t k = 0; k < SW_COUNT(cases[i].memory_bytes); k++) {
			double step_s = step_within(&s, cases[i].memory_bytes[k]);
			if (step_s > 1.02 * before_s)
				fail_msg("%s, %lld bytes: %g s, with less %g s", cases[i].cluster,
				         (long long)cases[i].memory_bytes[k], step_s, before_s);
			before_s = step_s;
		}
		close_subject(&s);
	}
}

static void pruned_candidates_could_not_have_won(void **state)
{
	subject s;
	(void)state;
	open_subject("gpt-tiny-scan", "lab-4x1", &s);
	sw_plan *plan = make_plan(&s, "auto", true);
	for (size_t i = 0; i < plan->alternatives.len; i++) {
		const sw_alternative *a = &plan->alternatives.data[i];
		double larger_s = SW_MAX(a->compute_s, a->communication_s);
		if (!a->feasible)
			continue;
		assert_true(a->step_time_s >= plan->predicted.step_time_s * (1 - 1e-9));
		assert_true(a->step_time_s >= a->compute_s * (1 - 1e-9));
		if (a->bound_s > 0) {
			/* collectives that begin as one take less than each alone */
			assert_true(a->bound_s >= a->compute_s * (1 - 1e-9) &&
			            a->bound_s <= larger_s * (1 + 1e-9));
			assert_true(a->bound_s >= plan->predicted.step_time_s * (1 - 1e-9));
		}
	}
	sw_plan_free(plan);
	close_subject(&s);
}

static char *plan_with_threads(const subject *s, int threads, int64_t memory_bytes, size_t *length)
{
	char path[512], *text;
	sw_error err = {0};
	sw_plan *plan;
	sw_plan_options options = {.quiet = true, .memory_bytes = memory_bytes, .threads = threads};
	check(sw_plan_make(s->program, s->path, &s->sidecar, &s->cluster, &options, &plan, &err),
	      &err);
	assert_true(plan->alternatives.len > 4);
	plan->planning_s = 0;
	snprintf(path, sizeof(path), SW_BINARY_DIR "/test-threads-%ld.plan", (long)getpid());
	check(sw_plan_write(plan, path, &err), &err);
	check(sw_file_read(path, &text, length, &err), &err);
	remove(path);
	sw_plan_free(plan);
	return text;
}

/* The plan is the same with spare memory, and with less than the fastest strategies need. */
static void threads_do_not_change_the_plan(void **state)
{
	(void)state;
	subject s;
	open_subject("mlp-clip", "local-2x2", &s);
	sw_plan *plan = make_plan(&s, "auto", true);
	const int64_t limits[] = {0, plan->predicted.peak_bytes - 1};
	sw_plan_free(plan);
	for (size_t k = 0; k < SW_COUNT(limits); k++) {
		size_t length, again_length;
		char *one = plan_with_threads(&s, 1, limits[k], &length);
		for (int threads = 2; threads <= 5; threads += 3) {
			char *again = plan_with_threads(&s, threads, limits[k], &again_length);
			assert_int_equal(again_length, length);
			assert_memory_equal(again, one, length);
			free(again);
		}
		free(one);
	}
	close_subject(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plans_step_is_the_one_that_is_simulated),
		cmocka_unit_test(auto_is_at_least_as_fast_as_every_fixed_strategy_when_played),
		cmocka_unit_test(overlap_makes_another_plan_the_best),
		cmocka_unit_test(more_memory_makes_steps_at_most_slightly_slower),
		cmocka_unit_test(pruned_candidates_could_not_have_won),
		cmocka_unit_test(threads_do_not_change_the_plan),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
