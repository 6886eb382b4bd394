/*
 * Tuning: the budget is kept, the best is no slower than anything that was tried, a seed always
 * gives the same, later runs learn from the file, and ranking finds quick ways sooner than chance.
 */
#include "planned/planned.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "run/run.h"
#include "tune/tune.h"

static sw_tune_options few(int64_t trials)
{
	return (sw_tune_options){
		.plan = {.quiet = true, .remat = "none", .microbatches = 1, .seed = 3},
		.trials = trials,
		.ranker = SW_TUNE_RANKER};
}

static void tune(const planned *p, const sw_tune_options *options, sw_tuned *tuned)
{
	sw_error err = {0};
	check(sw_tune(p->program, p->path, &p->sidecar, &p->cluster, options, tuned, &err), &err);
}

static uint64_t hash_of_trials(const sw_tuned *tuned)
{
	uint64_t hash = 0;
	for (size_t i = 0; i < tuned->trials.list.len; i++)
		hash = sw_hash_u64(hash, tuned->trials.list.data[i].ways.hash);
	return hash;
}

static const sw_trial *best_of(const sw_tuned *tuned)
{
	return &tuned->trials.list.data[tuned->best];
}

/* ---- budget and seed -------------------------------------------------------------------- */

static void the_budget_is_kept(void **state)
{
	(void)state;
	planned p;
	static const int64_t budgets[] = {1, 5, 12, 30};
	open_fixture("mlp", "local-2x2.yaml", &p);
	for (size_t i = 0; i < SW_COUNT(budgets); i++) {
		sw_tuned tuned;
		sw_tune_options options = few(budgets[i]);
		tune(&p, &options, &tuned);
		assert_int_equal(tuned.n_new, budgets[i]);
		assert_int_equal(tuned.trials.list.len, budgets[i]);
		sw_tuned_clear(&tuned);
	}
	close_planned(&p);
}

static void no_ways_are_tried_twice(void **state)
{
	(void)state;
	planned p;
	sw_tuned tuned;
	sw_tune_options options = few(60);
	open_fixture("mlp", "local-2x2.yaml", &p);
	tune(&p, &options, &tuned);
	for (size_t i = 0; i < tuned.trials.list.len; i++)
		for (size_t j = 0; j < i; j++)
			assert_true(tuned.trials.list.data[i].ways.hash !=
			            tuned.trials.list.data[j].ways.hash);
	sw_tuned_clear(&tuned);
	close_planned(&p);
}

static void a_seed_always_gives_the_same(void **state)
{
	(void)state;
	planned p;
	uint64_t hash[3];
	open_fixture("mlp", "local-2x2.yaml", &p);
	for (int i = 0; i < 3; i++) {
		sw_tuned tuned;
		sw_tune_options options = few(28);
		options.plan.threads = i == 1 ? 1 : 2;
		options.plan.seed += i == 2;
		tune(&p, &options, &tuned);
		hash[i] = hash_of_trials(&tuned);
		sw_tuned_clear(&tuned);
	}
	assert_true(hash[0] == hash[1]);
	assert_true(hash[0] != hash[2]);
	close_planned(&p);
}

static void a_stop_ends_it_after_the_trial(void **state)
{
	(void)state;
	planned p;
	sw_tuned tuned;
	sw_error err = {0};
	atomic_bool stop = true;
	sw_tune_options options = few(30);
	options.stop = &stop;
	open_fixture("mlp", "local-2x2.yaml", &p);
	assert_int_equal(sw_tune(p.program, p.path, &p.sidecar, &p.cluster, &options, &tuned, &err),
	                 SW_NO);
	close_planned(&p);
}

/* ---- the best --------------------------------------------------------------------------- */

static void the_best_is_no_slower_than_any_trial(const char *fixture, const char *cluster)
{
	planned p;
	sw_tuned tuned;
	sw_error err = {0};
	sw_tune_options options = few(28);
	open_fixture(fixture, cluster, &p);
	tune(&p, &options, &tuned);
	size_t builders = 0;
	for (size_t i = 0; i < tuned.trials.list.len; i++) {
		const sw_trial *trial = &tuned.trials.list.data[i];
		assert_true(best_of(&tuned)->example.seconds <= trial->example.seconds);
		sw_plan *plan;
		sw_plan_options of = options.plan;
		if (!*trial->builder || strncmp(trial->builder, "gather", 6) == 0)
			continue;
		builders++;
		check(sw_plan_strategy_parse(trial->builder, &of.strategy, &err), &err);
		check(sw_plan_make(p.program, p.path, &p.sidecar, &p.cluster, &of, &plan, &err),
		      &err);
		/* as strategies the stages of ZeRO split gradients that ways leave open */
		if (strncmp(trial->builder, "zero", 4) != 0)
			assert_true(best_of(&tuned)->example.seconds <=
			            plan->predicted.step_time_s * (1 + 1e-9));
		sw_plan_free(plan);
	}
	assert_true(builders >= 8);
	assert_true(tuned.plan->predicted.step_time_s == best_of(&tuned)->example.seconds);
	sw_verify_result result;
	sw_sidecar own = {0};
	if (tuned.plan->undivided)
		check(sw_plan_sidecar(tuned.plan, &p.sidecar, &own, &err), &err);
	check(sw_run_verify(tuned.plan, tuned.plan->undivided ? &own : &p.sidecar, 1, &result,
	                    &err),
	      &err);
	assert_true(result.ok);
	sw_verify_result_clear(&result);
	sw_sidecar_clear(&own);
	sw_tuned_clear(&tuned);
	close_planned(&p);
}

static void the_best_is_the_best_and_verifies(void **state)
{
	(void)state;
	the_best_is_no_slower_than_any_trial("gpt-tiny", "local-2x2.yaml");
	the_best_is_no_slower_than_any_trial("dlrm-tiny", "local-2x2.yaml");
	the_best_is_no_slower_than_any_trial("mlp", "lab-unequal.yaml");
}

static void nothing_that_fits_is_no(void **state)
{
	(void)state;
	planned p;
	sw_tuned tuned;
	sw_error err = {0};
	sw_tune_options options = few(12);
	options.plan.memory_bytes = 1000;
	open_fixture("mlp", "local-2x2.yaml", &p);
	assert_int_equal(sw_tune(p.program, p.path, &p.sidecar, &p.cluster, &options, &tuned, &err),
	                 SW_NO);
	close_planned(&p);
}

static void the_method_of_plan_is_tuning(void **state)
{
	(void)state;
	planned p;
	sw_plan *plan;
	sw_tuned tuned;
	sw_error err = {0};
	sw_tune_options tune_options = few(16);
	sw_plan_options options = tune_options.plan;
	open_fixture("gpt-tiny", "local-2x2.yaml", &p);
	check(sw_plan_options_set(&options, "method", "autodist", &err), &err);
	check(sw_plan_options_set(&options, "trials", "16", &err), &err);
	check(sw_plan_make_any(p.program, p.path, &p.sidecar, &p.cluster, &options, &plan, &err),
	      &err);
	tune(&p, &tune_options, &tuned);
	assert_true(plan->predicted.step_time_s == best_of(&tuned)->example.seconds);
	sw_tuned_clear(&tuned);
	sw_plan_free(plan);
	check(sw_plan_options_set(&options, "strategy", "zero3", &err), &err);
	assert_int_equal(
		sw_plan_make_any(p.program, p.path, &p.sidecar, &p.cluster, &options, &plan, &err),
		SW_ERR_INPUT);
	close_planned(&p);
}

/* ---- measured trials -------------------------------------------------------------------- */

/* A machine of our own: what is sent costs, and so does each collective. */
typedef struct machine {
	int calls, fail_at;
	sw_status how;
} machine;

static sw_status measure(void *context, const sw_plan *plan, double *seconds, sw_error *err)
{
	machine *m = context;
	if (m->calls++ == m->fail_at)
		return sw_fail(err, m->how, "this one failed");
	*seconds = 1e-3 + 1e-9 * (double)plan->predicted.payload_bytes +
	           1e-5 * (double)plan->predicted.collectives;
	return SW_OK;
}

static void measured_trials_are_counted(void **state)
{
	(void)state;
	planned p;
	sw_tuned tuned;
	machine m = {.fail_at = 3, .how = SW_NO};
	sw_tune_options options = few(25);
	sw_error err = {0};
	options.measure = measure;
	options.context = &m;
	options.ranker = SW_RANKER_BOTH;
	open_fixture("mlp", "local-2x2.yaml", &p);
	tune(&p, &options, &tuned);
	assert_int_equal(m.calls, 25);
	assert_true(isinf(tuned.trials.list.data[3].example.seconds));
	for (size_t i = 0; i < tuned.trials.list.len; i++) {
		assert_true(tuned.trials.list.data[i].measured);
		assert_true(tuned.trials.list.data[i].example.model_s > 0);
	}
	sw_tuned_clear(&tuned);
	m = (machine){.fail_at = 3, .how = SW_ERR_IO};
	assert_int_equal(sw_tune(p.program, p.path, &p.sidecar, &p.cluster, &options, &tuned, &err),
	                 SW_ERR_IO);
	assert_int_equal(m.calls, 4);
	close_planned(&p);
}

/* Sum over seeds of the logarithm of the best seconds, of so few trials that chance seldom finds the
 * best ways. */
static double found(const planned *p, sw_ranker_kind ranker)
{
	double sum = 0;
	for (uint64_t seed = 0; seed < 4; seed++) {
		sw_tuned tuned;
		machine m = {.fail_at = -1};
		sw_tune_options options = few(16);
		options.plan.seed = seed;
		options.measure = measure;
		options.context = &m;
		options.ranker = ranker;
		options.no_seeds = true;
		tune(p, &options, &tuned);
		sum += log(best_of(&tuned)->example.seconds);
		sw_tuned_clear(&tuned);
	}
	return sum;
}

static void ranking_finds_quicker_ways_than_chance(void **state)
{
	(void)state;
	planned p;
	open_fixture("mlp", "local-2x2.yaml", &p);
	double chance = found(&p, SW_RANKER_NONE), linear = found(&p, SW_RANKER_LINEAR),
	       trees = found(&p, SW_RANKER_TREES);
	print_message("chance %.4f, linear %.4f, trees %.4f\n", chance, linear, trees);
	assert_true(linear < chance);
	assert_true(trees < chance);
	close_planned(&p);
}

/* ---- the file --------------------------------------------------------------------------- */

static void temporary(char *path)
{
	strcpy(path, "/tmp/sw-trials-XXXXXX");
	int file = mkstemp(path);
	assert_true(file >= 0);
	close(file);
	unlink(path);
}

static void later_runs_go_on(void **state)
{
	(void)state;
	planned p;
	sw_tuned first, second;
	char path[64];
	sw_tune_options options = few(20);
	temporary(path);
	options.file = path;
	open_fixture("mlp", "local-2x2.yaml", &p);
	tune(&p, &options, &first);
	options.trials = 8;
	tune(&p, &options, &second);
	assert_int_equal(second.n_new, 8);
	assert_int_equal(second.trials.list.len, 28);
	for (size_t i = 0; i < 20; i++) {
		const sw_trial *a = &first.trials.list.data[i], *b = &second.trials.list.data[i];
		assert_true(a->ways.hash == b->ways.hash && b->old);
		assert_true(fabs(a->example.seconds / b->example.seconds - 1) < 1e-8);
		assert_string_equal(a->builder, b->builder);
		for (size_t f = 0; f < SW_WAYS_FEATURES; f++)
			assert_true(fabs(a->example.features.x[f] - b->example.features.x[f]) <=
			            1e-5 * (1 + fabs(a->example.features.x[f])));
	}
	for (size_t i = 20; i < 28; i++)
		for (size_t j = 0; j < i; j++)
			assert_true(second.trials.list.data[i].ways.hash !=
			            second.trials.list.data[j].ways.hash);
	assert_true(best_of(&second)->example.seconds <=
	            best_of(&first)->example.seconds * (1 + 1e-8));
	assert_non_null(second.plan);
	sw_tuned_clear(&first);
	sw_tuned_clear(&second);
	close_planned(&p);
	unlink(path);
}

/* Trials of other programs, clusters and kinds stay in the file, and are not this program's. */
static void a_file_keeps_trials_of_others(void **state)
{
	(void)state;
	planned p, q;
	sw_tuned tuned;
	machine m = {.fail_at = -1};
	char path[64];
	sw_tune_options options = few(14);
	temporary(path);
	options.file = path;
	open_fixture("gpt-tiny", "local-2x2.yaml", &p);
	open_fixture("mlp", "local-2x2.yaml", &q);
	tune(&p, &options, &tuned);
	sw_tuned_clear(&tuned);
	tune(&q, &options, &tuned);
	assert_int_equal(tuned.trials.list.len, 14);
	assert_int_equal(tuned.trials.others.len, 14);
	sw_tuned_clear(&tuned);
	options.measure = measure;
	options.context = &m;
	tune(&q, &options, &tuned);
	assert_int_equal(tuned.trials.list.len, 14);
	assert_int_equal(tuned.trials.others.len, 28);
	sw_tuned_clear(&tuned);
	options.measure = NULL;
	tune(&p, &options, &tuned);
	assert_int_equal(tuned.trials.list.len, 28);
	assert_int_equal(tuned.trials.others.len, 28);
	sw_tuned_clear(&tuned);
	/* less memory: what fitted may do so no longer */
	options.plan.memory_bytes = INT64_C(1) << 30;
	tune(&p, &options, &tuned);
	assert_int_equal(tuned.trials.list.len, 14);
	sw_tuned_clear(&tuned);
	close_planned(&p);
	close_planned(&q);
	unlink(path);
}

/* What does not fit is kept too. */
static void trials_that_do_not_fit_are_read_back(void **state)
{
	(void)state;
	planned p;
	sw_ways_space space;
	sw_trials trials, back;
	sw_error err = {0};
	char path[64];
	temporary(path);
	open_fixture("mlp", "local-2x2.yaml", &p);
	check(sw_ways_space_init(&space, p.program, &p.sidecar, &p.cluster, 0, NULL, &err), &err);
	sw_trials_init(&trials);
	sw_trials_init(&back);
	sw_trial trial = {.program = space.program_hash, .cluster = space.setting, .builder = "ps"};
	trial.example.seconds = trial.example.model_s = INFINITY;
	trial.example.features.seconds = 1;
	check(sw_ways_seed(&space, 0, &trials.arena, &trial.ways, &err), &err);
	sw_vec_push(&trials.list, trial);
	check(sw_trials_write(path, &space, &trials, &err), &err);
	check(sw_trials_read(path, &space, false, &back, &err), &err);
	assert_int_equal(back.list.len, 1);
	assert_true(isinf(back.list.data[0].example.seconds));
	sw_trials_clear(&trials);
	sw_trials_clear(&back);
	sw_ways_space_clear(&space);
	close_planned(&p);
	unlink(path);
}

/* ---- the report ------------------------------------------------------------------------- */

static void accuracy_is_of_trials_that_were_not_learned(void **state)
{
	(void)state;
	planned p;
	sw_tuned tuned;
	machine m = {.fail_at = -1};
	sw_tune_options options = few(48);
	options.measure = measure;
	options.context = &m;
	open_fixture_op_by_op("mlp", "local-2x2.yaml", &p);
	tune(&p, &options, &tuned);
	uint64_t group = tuned.trials.list.data[0].example.group;
	sw_tune_accuracy chance = sw_tune_accuracy_of(&tuned.trials, SW_RANKER_NONE, group,
	                                              &sw_tune_default_limits),
			 learned = sw_tune_accuracy_of(&tuned.trials, SW_RANKER_LINEAR, group,
	                                               &sw_tune_default_limits);
	assert_true(chance.all[SW_TUNE_PHASES - 1].right == 0.5);
	assert_true(learned.all[SW_TUNE_PHASES - 1].right > 0.7);
	/* the same trials as labels without order: nothing can be learned of them */
	for (size_t i = 0; i < tuned.trials.list.len; i++)
		tuned.trials.list.data[i].example.seconds = exp(0.3 * sw_random_normal(1, 2, i));
	sw_tune_accuracy shuffled = sw_tune_accuracy_of(&tuned.trials, SW_RANKER_LINEAR, group,
	                                                &sw_tune_default_limits);
	assert_true(shuffled.all[SW_TUNE_PHASES - 1].right < 0.65);
	sw_tuned_clear(&tuned);
	close_planned(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_budget_is_kept),
		cmocka_unit_test(no_ways_are_tried_twice),
		cmocka_unit_test(a_seed_always_gives_the_same),
		cmocka_unit_test(a_stop_ends_it_after_the_trial),
		cmocka_unit_test(the_best_is_the_best_and_verifies),
		cmocka_unit_test(nothing_that_fits_is_no),
		cmocka_unit_test(the_method_of_plan_is_tuning),
		cmocka_unit_test(measured_trials_are_counted),
		cmocka_unit_test(ranking_finds_quicker_ways_than_chance),
		cmocka_unit_test(later_runs_go_on),
		cmocka_unit_test(a_file_keeps_trials_of_others),
		cmocka_unit_test(trials_that_do_not_fit_are_read_back),
		cmocka_unit_test(accuracy_is_of_trials_that_were_not_learned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
