/* Variants that save memory: the request, the choice where memory is short, their rewrites in the
 * plan file, and the message where nothing fits. */
#include "planned/planned.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/run.h"
#include "search/search.h"

typedef struct wish {
	const char *remat;
	int32_t microbatches;
	int64_t memory_bytes;
} wish;

static sw_status plan_wish(planned *p, wish w, sw_plan **least, sw_error *err)
{
	sw_plan_options options = {.memory_bytes = w.memory_bytes,
	                           .remat = w.remat,
	                           .microbatches = w.microbatches,
	                           .quiet = true,
	                           .least = least,
	                           .no_overlap = true};
	check(sw_plan_strategy_parse("zero3", &options.strategy, err), err);
	sw_plan_free(p->plan);
	p->plan = NULL;
	return sw_plan_make(p->program, p->path, &p->sidecar, &p->cluster, &options, &p->plan, err);
}

static void plan_as(planned *p, wish w)
{
	sw_error err = {0};
	check(plan_wish(p, w, NULL, &err), &err);
}

/* Compare with the program before all rewrites. */
static void assert_verified(const planned *p)
{
	sw_verify_result result;
	sw_error err = {0};
	assert_non_null(p->plan->original);
	check(sw_run_verify(p->plan, &p->sidecar, 1, &result, &err), &err);
	for (size_t i = 0; i < result.rows.len; i++)
		if (!result.rows.data[i].ok)
			fail_msg("%s: %s differs by %g, allowed is %g", p->plan->chosen,
			         result.rows.data[i].name, result.rows.data[i].relative,
			         result.rows.data[i].tolerance);
	assert_int_equal(result.payload_bytes, result.predicted_payload_bytes);
	assert_true(result.ok);
	sw_verify_result_clear(&result);
}

static void rewritten_plans_compute_the_same(void **state)
{
	(void)state;
	static const wish wishes[] = {
		{"none", 2, 0},   {"none", 8, 0},        {"elementwise", 1, 0}, {"blocks", 1, 0},
		{"blocks", 2, 0}, {"blocks of 2", 4, 0}, {"memory-bound", 2, 0}};
	planned p;
	open_fixture("gpt-tiny", "local-1x4.yaml", &p);
	for (size_t i = 0; i < SW_COUNT(wishes); i++) {
		plan_as(&p, wishes[i]);
		assert_int_equal(SW_MAX(p.plan->rewrites.microbatches, 1), wishes[i].microbatches);
		assert_string_equal(p.plan->rewrites.remat ? p.plan->rewrites.remat : "none",
		                    wishes[i].remat);
		assert_verified(&p);
	}
	close_planned(&p);
}

/* Barriers keep the recomputation within the body of the loop: microbatches save memory,
 * rematerialisation saves more, at the price of FLOPs. */
static void microbatches_and_rematerialisation_save_memory_together(void **state)
{
	(void)state;
	static const wish wishes[] = {{"none", 1, 0}, {"none", 4, 0}, {"blocks", 4, 0}};
	planned p;
	int64_t bytes = INT64_MAX;
	double flops = 0;
	open_fixture("gpt-tiny", "local-1x4.yaml", &p);
	for (size_t i = 0; i < SW_COUNT(wishes); i++) {
		plan_as(&p, wishes[i]);
		assert_true(p.plan->predicted.peak_bytes < bytes);
		assert_true(sw_program_flops(p.plan->program) > flops);
		bytes = p.plan->predicted.peak_bytes;
		flops = sw_program_flops(p.plan->program);
	}
	close_planned(&p);
}

/* With as much memory as the quickest plan needs nothing is rewritten; with less, a plan that fits
 * is found. */
static void rewrites_are_chosen_where_memory_is_short(void **state)
{
	(void)state;
	static const double parts[] = {0.7, 0.5, 0.35};
	planned p;
	open_fixture("gpt-tiny", "local-1x4.yaml", &p);
	plan_as(&p, (wish){0});
	int64_t all = p.plan->predicted.peak_bytes;
	double step_s = p.plan->predicted.step_time_s, bound_s = p.plan->lower_bound_s;
	assert_null(p.plan->original);
	for (size_t i = 0; i < SW_COUNT(parts); i++) {
		int64_t memory = (int64_t)(parts[i] * (double)all);
		plan_as(&p, (wish){.memory_bytes = memory});
		assert_true(p.plan->predicted.peak_bytes <= memory);
		assert_true(p.plan->predicted.step_time_s >= step_s);
		assert_true(p.plan->rewrites.remat || p.plan->rewrites.microbatches > 1);
		/* what can't fit bounds nothing, so the bound rises */
		assert_true(p.plan->lower_bound_s >= bound_s);
		bound_s = p.plan->lower_bound_s;
		assert_verified(&p);
		step_s = p.plan->predicted.step_time_s;
	}
	close_planned(&p);
}

/* What fits with a choice of rematerialisation and microbatches fits when both are left open: the
 * choice that is predicted to need least is not always the one that does. */
static void what_fits_with_a_choice_fits_with_none(void **state)
{
	(void)state;
	static const wish wishes[] = {{"none", 8, 0},
	                              {"blocks 1/4", 8, 0},
	                              {"elementwise", 8, 0},
	                              {"memory-bound", 8, 0},
	                              {"blocks 1/4", 1, 0}};
	planned p;
	open_fixture("gpt-tiny", "local-1x4.yaml", &p);
	for (size_t i = 0; i < SW_COUNT(wishes); i++) {
		plan_as(&p, wishes[i]);
		int64_t memory = p.plan->predicted.peak_bytes;
		plan_as(&p, (wish){.memory_bytes = memory});
		assert_true(p.plan->predicted.peak_bytes <= memory);
	}
	close_planned(&p);
}

/* The share of the live values exceeds the memory, except with rematerialisation, which takes
 * longer. */
static void a_variant_that_cannot_fit_bounds_nothing(void **state)
{
	(void)state;
	planned p;
	sw_program *canonical;
	sw_error err = {0};
	open_fixture_op_by_op("gpt-tiny", "local-1x4.yaml", &p);
	check(sw_rewrite_canonical(p.program, &canonical, &err), &err);
	int64_t share = sw_least_share_bytes(canonical, p.cluster.n_devices);
	plan_as(&p, (wish){.microbatches = 1});
	assert_true(share < p.plan->predicted.peak_bytes);
	double free_s = p.plan->lower_bound_s;
	plan_as(&p, (wish){.microbatches = 1, .memory_bytes = share * 95 / 100});
	assert_non_null(p.plan->rewrites.remat);
	assert_true(p.plan->lower_bound_s > free_s);
	sw_program_free(canonical);
	close_planned(&p);
}

/* Where one saving is ruled out, the other is used. */
static void a_saving_that_is_ruled_out_is_not_used(void **state)
{
	(void)state;
	planned p;
	open_fixture("gpt-tiny", "local-1x4.yaml", &p);
	plan_as(&p, (wish){0});
	int64_t memory = p.plan->predicted.peak_bytes * 7 / 10;
	plan_as(&p, (wish){.remat = "none", .memory_bytes = memory});
	assert_null(p.plan->rewrites.remat);
	assert_true(p.plan->rewrites.microbatches > 1);
	plan_as(&p, (wish){.microbatches = 1, .memory_bytes = memory});
	assert_non_null(p.plan->rewrites.remat);
	assert_true(p.plan->rewrites.microbatches < 2);
	close_planned(&p);
}

static void the_plan_file_keeps_rewrites(void **state)
{
	(void)state;
	planned p;
	char path[64];
	sw_error err = {0};
	sw_cluster cluster;
	sw_plan *read;
	snprintf(path, sizeof(path), "/tmp/shardwright-test-leaves-%d", (int)getpid());
	open_fixture("gpt-tiny", "local-1x4.yaml", &p);
	plan_as(&p, (wish){"blocks", 2, 0});
	check(sw_plan_write(p.plan, path, &err), &err);
	check(sw_plan_read(path, &cluster, &read, &err), &err);
	assert_string_equal(read->rewrites.remat, "blocks");
	assert_int_equal(read->rewrites.microbatches, 2);
	assert_true(sw_program_equal(read->program, p.plan->program, &err));
	assert_true(sw_program_equal(read->original, p.plan->original, &err));
	sw_plan_free(read);
	sw_cluster_clear(&cluster);
	unlink(path);
	close_planned(&p);
}

static void assert_not_read(const planned *p, const char *list)
{
	char path[64];
	sw_error err = {0};
	sw_cluster cluster;
	sw_plan *read;
	json_t *root;
	snprintf(path, sizeof(path), "/tmp/shardwright-test-leaves-%d", (int)getpid());
	check(sw_plan_write(p->plan, path, &err), &err);
	check(sw_json_read(path, &root, &err), &err);
	json_object_set_new(root, "rewrites", json_loads(list, 0, NULL));
	assert_int_equal(json_dump_file(root, path, 0), 0);
	json_decref(root);
	assert_int_equal(sw_plan_read(path, &cluster, &read, &err), SW_ERR_INPUT);
	unlink(path);
}

static void damaged_rewrites_are_refused(void **state)
{
	(void)state;
	static const char *const lists[] = {
		/* the wrong order */
		"[{\"microbatches\": 2}, {\"rematerialise\": \"blocks\"}]",
		"[{\"rematerialise\": \"blocks\"}, {\"microbatches\": 4}]", /* another program */
		/* does not divide the batch */
		"[{\"rematerialise\": \"blocks\"}, {\"microbatches\": 3}]",
		"[{\"rematerialise\": \"bricks\"}, {\"microbatches\": 2}]",
		"[{\"rematerialise\": 1}]", "[{\"microbatches\": 1}]",
		"[{\"microbatches\": 2, \"rematerialise\": \"blocks\"}]",
		"[{\"pad\": {\"multiple\": 1, \"share\": 1, \"classes\": []}}]", "[]", "[2]"};
	planned p;
	open_fixture("gpt-tiny", "local-1x4.yaml", &p);
	plan_as(&p, (wish){"blocks", 2, 0});
	for (size_t i = 0; i < SW_COUNT(lists); i++)
		assert_not_read(&p, lists[i]);
	close_planned(&p);
}

static void impossible_requests_are_refused_with_the_reason(void **state)
{
	(void)state;
	planned p;
	sw_error err = {0};
	open_fixture("gpt-tiny", "local-1x4.yaml", &p);
	assert_int_equal(plan_wish(&p, (wish){"none", 3, 0}, NULL, &err), SW_ERR_INPUT);
	assert_non_null(strstr(err.message, "divide the batch, which is 8"));
	assert_int_equal(plan_wish(&p, (wish){"bricks", 1, 0}, NULL, &err), SW_ERR_INPUT);
	assert_non_null(strstr(err.message, "no rematerialisation policy 'bricks'"));
	close_planned(&p);
}

/* The smallest plan is returned where nothing fits, and would fit in the memory that it needs. */
static void the_smallest_plan_is_given_where_nothing_fits(void **state)
{
	(void)state;
	planned p;
	sw_error err = {0};
	sw_plan *least = NULL;
	open_fixture("gpt-tiny", "local-1x4.yaml", &p);
	assert_int_equal(plan_wish(&p, (wish){.memory_bytes = 50000}, &least, &err), SW_NO);
	assert_non_null(strstr(err.message, "no plan fits in"));
	assert_null(p.plan);
	assert_non_null(least);
	assert_true(least->rewrites.microbatches > 1);
	check(sw_plan_verify(least, &err), &err);
	int64_t needs = least->predicted.peak_bytes;
	const char *share = strstr(err.message, "however it is split it takes ");
	assert_non_null(share);
	int64_t at_least = strtoll(strchr(share, '(') + 1, NULL, 10);
	assert_true(at_least > 50000 && at_least <= needs);
	sw_plan_free(least);
	least = NULL;
	check(plan_wish(&p, (wish){.memory_bytes = needs}, &least, &err), &err);
	assert_null(least);
	assert_true(p.plan->predicted.peak_bytes <= needs);
	close_planned(&p);
}

/* Far below what any choice takes only one is planned; just below it, many are. */
static void far_too_little_memory_is_answered_with_little_work(void **state)
{
	(void)state;
	static const int64_t memory[] = {50000, 120000};
	int64_t programs[2], share[2] = {0};
	planned p;
	open_fixture_op_by_op("gpt-tiny", "local-1x4.yaml", &p);
	for (int i = 0; i < 2; i++) {
		sw_search_effort effort = {0};
		sw_error err = {0};
		sw_plan_options options = {.memory_bytes = memory[i],
		                           .quiet = true,
		                           .effort = &effort,
		                           .least_share = &share[i]};
		assert_int_equal(sw_plan_make(p.program, p.path, &p.sidecar, &p.cluster, &options,
		                              &p.plan, &err),
		                 SW_NO);
		assert_true(share[i] > memory[i]);
		programs[i] = effort.programs;
	}
	assert_true(programs[0] > 0);
	if (programs[0] * 3 > programs[1] * 2)
		fail_msg("%lld and %lld programs", (long long)programs[0], (long long)programs[1]);
	close_planned(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rewritten_plans_compute_the_same),
		cmocka_unit_test(microbatches_and_rematerialisation_save_memory_together),
		cmocka_unit_test(rewrites_are_chosen_where_memory_is_short),
		cmocka_unit_test(what_fits_with_a_choice_fits_with_none),
		cmocka_unit_test(a_variant_that_cannot_fit_bounds_nothing),
		cmocka_unit_test(a_saving_that_is_ruled_out_is_not_used),
		cmocka_unit_test(the_plan_file_keeps_rewrites),
		cmocka_unit_test(damaged_rewrites_are_refused),
		cmocka_unit_test(impossible_requests_are_refused_with_the_reason),
		cmocka_unit_test(the_smallest_plan_is_given_where_nothing_fits),
		cmocka_unit_test(far_too_little_memory_is_answered_with_little_work),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
