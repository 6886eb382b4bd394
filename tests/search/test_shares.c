/*
 * Unequal shares of the batch, attacked: on clusters with devices of two kinds, of random speeds, no
 * list of shares that a person may write is quicker than those that are found by more than SLACK, no
 * plan beats a bound, and equal shares are never quicker than what `auto` takes.
 */
#include "planned/planned.h"

#include <string.h>

#include "bound/bound.h"
#include "search/search.h"

/* Of the step: shares are found from two plays, each list is played. */
#define SLACK 0.02

/* Write a cluster of 2 nodes of 2 devices, of which the second are `ratio` times as quick. */
static void open_unequal(const char *fixture, double ratio, planned *p)
{
	sw_error err = {0};
	sw_text text = {0};
	open_fixture(fixture, "local-2x2.yaml", p);
	sw_cluster_clear(&p->cluster);
	sw_text_addf(&text,
	             "version: 1\nname: unequal\nlevels:\n"
	             "  - {name: node, count: 2, latency: 5 us, bandwidth: 10 GB/s, "
	             "device: [slow, quick]}\n"
	             "  - {name: device, count: 2, latency: 1 us, bandwidth: 20 GB/s}\ndevice:\n");
	for (int k = 0; k < 2; k++)
		sw_text_addf(&text,
		             "  - {name: %s, memory: 2 GiB, memory_bandwidth: %.17g, kernel_overhead: "
		             "0, matmul_efficiency: 1, flops: {f32: %.17g}}\n",
		             k ? "quick" : "slow", 1e9 * (k ? ratio : 1), 3e8 * (k ? ratio : 1));
	check(sw_cluster_parse(text.data, text.len, "unequal", &p->cluster, &err), &err);
	sw_text_clear(&text);
}

/* Plan by these options; the step is at least the bound. */
static double plan_step(const planned *p, sw_plan_options options, sw_plan **kept)
{
	sw_error err = {0};
	sw_plan *plan;
	options.quiet = true;
	check(sw_plan_make(p->program, p->path, &p->sidecar, &p->cluster, &options, &plan, &err),
	      &err);
	double step_s = plan->predicted.step_time_s;
	assert_false(sw_bound_is_beaten(plan->lower_bound_s, step_s));
	check(sw_plan_verify(plan, &err), &err);
	if (kept)
		*kept = plan;
	else
		sw_plan_free(plan);
	return step_s;
}

static sw_plan_options by(sw_strategy_kind kind, sw_sharing sharing)
{
	return (sw_plan_options){.strategy = {.kind = kind}, .sharing = sharing};
}

static const char *const fixtures[] = {"mlp", "gpt-tiny", "dlrm-tiny", "lstm-lm-tiny"};
static const double ratios[] = {1.3, 2, 5};

static void no_listed_shares_are_quicker(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(fixtures) * SW_COUNT(ratios); i++) {
		planned p;
		sw_plan *found;
		open_unequal(fixtures[i % SW_COUNT(fixtures)], ratios[i / SW_COUNT(fixtures)], &p);
		double found_s = plan_step(&p, by(SW_PLAN_DP, SW_SHARES_AUTO), &found),
		       best_s = found_s;
		sw_plan_options listed = by(SW_PLAN_DP, SW_SHARES_LISTED);
		int64_t total = found->shares.n ? found->rewrites.microbatches : 8;
		listed.n_shares = 2;
		for (int64_t first = 1; first < total; first++) {
			listed.shares[0] = first;
			listed.shares[1] = total - first;
			best_s = SW_MIN(best_s, plan_step(&p, listed, NULL));
		}
		if (found_s > best_s)
			print_message("%s: shares found take %g s, listed ones %g: %.2f %% less\n",
			              p.path, found_s, best_s, 100 * (1 - best_s / found_s));
		assert_true(found_s <= best_s * (1 + SLACK));
		sw_plan_free(found);
		close_planned(&p);
	}
}

static void auto_is_never_slower_than_equal_shares(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(fixtures); i++) {
		planned p;
		open_unequal(fixtures[i], ratios[i % SW_COUNT(ratios)], &p);
		double equal_s = plan_step(&p, by(SW_PLAN_AUTO, SW_SHARES_EQUAL), NULL),
		       auto_s = plan_step(&p, by(SW_PLAN_AUTO, SW_SHARES_DEFAULT), NULL);
		assert_true(auto_s <= equal_s);
		close_planned(&p);
	}
}

/* Where all devices are alike, there is nothing to share unequally. */
static void alike_devices_have_equal_shares(void **state)
{
	(void)state;
	planned p;
	sw_plan *plan;
	open_fixture("mlp", "local-2x2.yaml", &p);
	plan_step(&p, by(SW_PLAN_AUTO, SW_SHARES_AUTO), &plan);
	assert_int_equal(plan->shares.n, 0);
	sw_plan_free(plan);
	close_planned(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_listed_shares_are_quicker),
		cmocka_unit_test(auto_is_never_slower_than_equal_shares),
		cmocka_unit_test(alike_devices_have_equal_shares),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
