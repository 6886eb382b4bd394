/*
 * Ways as an object: a file of ways says the same; the builders' are those of their strategies; and
 * whatever is sampled can be planned, and computes what one device does.
 */
#include "planned/planned.h"

#include <math.h>
#include <string.h>

#include "run/run.h"
#include "tune/tune.h"

static void open_space(planned *p, const char *fixture, const char *cluster, const char *allow,
                       sw_ways_space *space)
{
	sw_error err = {0};
	static sw_plan_options options;
	options = (sw_plan_options){0};
	open_fixture(fixture, cluster, p);
	if (allow)
		check(sw_plan_options_set(&options, "allow", allow, &err), &err);
	check(sw_ways_space_init(space, p->program, &p->sidecar, &p->cluster,
	                         options.n_allowed_codecs, options.allowed_codecs, &err),
	      &err);
}

static void close_space(planned *p, sw_ways_space *space)
{
	sw_ways_space_clear(space);
	close_planned(p);
}

static void plan_strategy(planned *p, const char *strategy)
{
	sw_error err = {0};
	sw_plan_options options = {.quiet = true, .remat = "none", .microbatches = 1};
	check(sw_plan_strategy_parse(strategy, &options.strategy, &err), &err);
	sw_plan_free(p->plan);
	p->plan = NULL;
	check(sw_plan_make(p->program, p->path, &p->sidecar, &p->cluster, &options, &p->plan, &err),
	      &err);
}

static void plan_ways(planned *p, const sw_ways_space *space, const sw_ways *ways)
{
	sw_error err = {0};
	sw_sync sync;
	sw_plan_options options = {.quiet = true, .remat = "none", .microbatches = 1};
	options.strategy = (sw_plan_strategy){.kind = SW_PLAN_SYNC, .owners = SW_OWNERS_FILE};
	options.sync = &sync;
	sw_ways_to_sync(space, ways, &sync);
	sw_plan_free(p->plan);
	p->plan = NULL;
	check(sw_plan_make(p->program, p->path, &p->sidecar, &p->cluster, &options, &p->plan, &err),
	      &err);
	check(sw_plan_verify(p->plan, &err), &err);
	sw_sync_clear(&sync);
}

/* ---- the space -------------------------------------------------------------------------- */

static void variables_have_times_and_bytes(void **state)
{
	(void)state;
	planned p;
	sw_ways_space space;
	open_space(&p, "dlrm-tiny", "local-2x2.yaml", NULL, &space);
	uint32_t sparse = 0;
	for (uint32_t i = 0; i < space.n; i++) {
		const sw_tuned_variable *v = &space.variables[i];
		assert_true(v->bytes >= v->gradient_bytes && v->gradient_bytes > 0);
		assert_true(v->read_at >= 0 && v->read_at <= 1);
		assert_true(v->ready_at > v->read_at && v->ready_at <= 1);
		sparse += v->sparse;
		assert_true(!v->sparse || v->row_bytes > 0);
	}
	assert_true(sparse > 0 && sparse < space.n);
	assert_true(space.n_kinds < space.n);
	close_space(&p, &space);
}

/* ---- the builders ----------------------------------------------------------------------- */

static void compare_seeds(const char *fixture, const char *cluster)
{
	planned p;
	sw_ways_space space;
	sw_error err = {0};
	open_space(&p, fixture, cluster, NULL, &space);
	for (size_t i = 0; sw_ways_seed_name(i); i++) {
		sw_ways ways;
		check(sw_ways_seed(&space, i, &space.arena, &ways, &err), &err);
		if (strncmp(sw_ways_seed_name(i), "gather", 6) == 0)
			continue; /* no strategy has the name */
		plan_strategy(&p, sw_ways_seed_name(i));
		sw_program_cost of_strategy = p.plan->predicted;
		plan_ways(&p, &space, &ways);
		sw_program_cost of_ways = p.plan->predicted;
		/* as strategies the stages of ZeRO split gradients that ways leave open */
		if (strncmp(sw_ways_seed_name(i), "zero", 4) == 0)
			continue;
		if (of_ways.payload_bytes != of_strategy.payload_bytes ||
		    fabs(of_ways.step_time_s / of_strategy.step_time_s - 1) > 1e-6)
			fail_msg("%s, %s: %lld bytes in %g s by ways, %lld in %g s by the strategy",
			         fixture, sw_ways_seed_name(i), (long long)of_ways.payload_bytes,
			         of_ways.step_time_s, (long long)of_strategy.payload_bytes,
			         of_strategy.step_time_s);
	}
	close_space(&p, &space);
}

static void seeds_are_the_builders_ways(void **state)
{
	(void)state;
	compare_seeds("gpt-tiny", "local-2x2.yaml");
	compare_seeds("dlrm-tiny", "local-2x2.yaml");
	compare_seeds("mlp", "local-2x4.yaml");
}

/* ---- samples ---------------------------------------------------------------------------- */

/* Print, read and find the same. */
static void assert_round_trip(const sw_ways_space *space, const sw_ways *ways)
{
	sw_error err = {0};
	sw_sync sync, back = {0};
	sw_text text = {0};
	const sw_yaml *root;
	sw_ways again;
	sw_arena arena;
	sw_arena_init(&arena);
	sw_arena_init(&back.arena);
	sw_ways_to_sync(space, ways, &sync);
	sw_sync_print(&sync, "", &text);
	check(sw_yaml_parse(text.data, text.len, &arena, &root, &err), &err);
	check(sw_sync_of_yaml(root, &back, &err), &err);
	check(sw_ways_of_sync(space, &back, &arena, &again, &err), &err);
	if (again.hash != ways->hash || sw_ways_distance(space, ways, &again) != 0)
		fail_msg("these ways are read as others:\n%s", text.data);
	sw_sync_clear(&sync);
	sw_sync_clear(&back);
	sw_text_clear(&text);
	sw_arena_clear(&arena);
}

static void assert_possible(const sw_ways_space *space, const sw_ways *ways)
{
	for (uint32_t i = 0; i < space->n; i++) {
		const sw_variable_ways *w = &ways->of[i];
		assert_true(w->n >= 1);
		assert_true(w->n == 1 || w->n <= space->variables[i].shape.dims[w->axis]);
		for (int32_t k = 0; k < w->n; k++) {
			assert_true(w->parts[k].owner < space->cluster->n_devices);
			assert_true(sw_ways_possible(space, i, w->axis, w->n, k, w->parts[k].kind));
			assert_true(!w->parts[k].proxy || w->parts[k].kind == SW_WAY_OWNED);
		}
		assert_true(space->n_codecs > 0 || !w->codec.kind);
		assert_true(!w->algorithm ||
		            sw_ways_has_algorithm(space, w, (sw_algorithm)(w->algorithm - 1)));
		assert_true((!w->algorithm && !w->order) ||
		            (!w->codec.kind && w->parts[0].kind != SW_WAY_GATHER));
	}
}

static void assert_finite(const sw_ways_space *space, const sw_ways *ways)
{
	sw_ways_features f = sw_ways_features_of(space, ways);
	assert_true(isfinite(f.seconds) && f.seconds > 0);
	for (size_t i = 0; i < SW_WAYS_FEATURES; i++)
		if (!isfinite(f.x[i]))
			fail_msg("%s is %g", sw_ways_feature_name(i), f.x[i]);
}

/* Of how many samples some variable has a group, an algorithm, an order, or is gathered. */
typedef struct seen_ways {
	int grouped, said, ordered, gathered;
} seen_ways;

static void see(const sw_ways_space *space, const sw_ways *ways, seen_ways *seen)
{
	seen_ways has = {0};
	for (uint32_t i = 0; i < space->n; i++) {
		const sw_variable_ways *w = &ways->of[i];
		has.grouped |= w->group > 0;
		has.said |= w->algorithm > 0;
		has.ordered |= w->order > 0;
		has.gathered |= w->parts[0].kind == SW_WAY_GATHER;
	}
	seen->grouped += has.grouped;
	seen->said += has.said;
	seen->ordered += has.ordered;
	seen->gathered += has.gathered;
}

static void sample(const char *fixture, const char *cluster, const char *allow, int n)
{
	seen_ways seen = {0};
	planned p;
	sw_ways_space space;
	sw_rng rng = {.seed = 5};
	open_space(&p, fixture, cluster, allow, &space);
	sw_ways last = sw_ways_draw(&space, &sw_tune_default_limits, &rng, &space.arena);
	for (int i = 0; i < n; i++) {
		sw_ways drawn = sw_ways_draw(&space, &sw_tune_default_limits, &rng, &space.arena);
		sw_ways changed = sw_ways_change(&space, &sw_tune_default_limits, &drawn, &last,
		                                 &rng, &space.arena);
		assert_round_trip(&space, &drawn);
		assert_round_trip(&space, &changed);
		see(&space, &changed, &seen);
		assert_possible(&space, &drawn);
		assert_possible(&space, &changed);
		assert_finite(&space, &drawn);
		assert_finite(&space, &changed);
		double there = sw_ways_distance(&space, &drawn, &last),
		       back = sw_ways_distance(&space, &last, &drawn);
		assert_true(there == back && there >= 0 && there <= 1);
		last = changed;
	}
	assert_true(n < 20 || (seen.grouped > 0 && seen.grouped < n));
	assert_true(n < 20 || (seen.said > 0 && seen.ordered > 0 && seen.gathered > 0));
	assert_true(n < 20 || (seen.said < n && seen.ordered < n && seen.gathered < n));
	close_space(&p, &space);
}

static void samples_are_possible_and_read_back(void **state)
{
	(void)state;
	sample("gpt-tiny", "local-2x2.yaml", NULL, 100);
	sample("dlrm-tiny", "local-2x4.yaml", NULL, 50);
	sample("mlp", "lab-unequal.yaml", "codec=bf16,codec=topk=0.25", 50);
}

static void verify_samples(const char *fixture, const char *cluster, const char *allow, int n)
{
	planned p;
	sw_ways_space space;
	sw_error err = {0};
	sw_rng rng = {.seed = 3};
	open_space(&p, fixture, cluster, allow, &space);
	for (int i = 0; i < n; i++) {
		sw_verify_result result;
		sw_sidecar own = {0};
		sw_ways ways = sw_ways_draw(&space, &sw_tune_default_limits, &rng, &space.arena);
		plan_ways(&p, &space, &ways);
		if (p.plan->undivided)
			check(sw_plan_sidecar(p.plan, &p.sidecar, &own, &err), &err);
		check(sw_run_verify(p.plan, p.plan->undivided ? &own : &p.sidecar, 1, &result,
		                    &err),
		      &err);
		sw_sidecar_clear(&own);
		assert_true(result.ok);
		assert_int_equal(result.payload_bytes, result.predicted_payload_bytes);
		sw_verify_result_clear(&result);
	}
	close_space(&p, &space);
}

static void samples_compute_what_one_device_does(void **state)
{
	(void)state;
	verify_samples("gpt-tiny", "local-2x2.yaml", NULL, 8);
	verify_samples("dlrm-tiny", "local-2x2.yaml", NULL, 8);
	verify_samples("mlp", "local-2x4.yaml", NULL, 8);
	verify_samples("mlp", "local-2x2.yaml", "codec=bf16,codec=powersgd=2", 4);
}

/* ---- merge groups ----------------------------------------------------------------------- */

/* Groups are the same whatever their numbers, of what is all-reduced alone. */
static void groups_are_sets_of_variables(void **state)
{
	(void)state;
	planned p;
	sw_ways_space space;
	sw_error err = {0};
	open_space(&p, "mlp", "local-2x2.yaml", NULL, &space);
	assert_true(space.n >= 4);
	sw_ways ways[2];
	for (int k = 0; k < 2; k++) {
		assert_int_equal(sw_ways_seed(&space, 0, &space.arena, &ways[k], &err), SW_OK);
		sw_variable_ways *of = (sw_variable_ways *)ways[k].of;
		for (uint32_t i = 0; i < space.n; i++)
			of[i].parts[0] = (sw_way){.kind = i == 1 ? SW_WAY_OWNED : SW_WAY_ALL_REDUCE};
		of[0].group = k ? 7 : 1;
		of[1].group = k ? 7 : 5;
		of[2].group = k ? 7 : 1;
		of[3].group = k ? 3 : 9;
		sw_ways_settle(&space, of);
		sw_ways_seal(&space, &ways[k]);
		assert_int_equal(of[0].group, 1);
		assert_int_equal(of[1].group, 0);
		assert_int_equal(of[2].group, 1);
		assert_int_equal(of[3].group, 2);
		assert_round_trip(&space, &ways[k]);
	}
	assert_true(ways[0].hash == ways[1].hash);
	((sw_variable_ways *)ways[1].of)[3].group = 1;
	sw_ways_seal(&space, &ways[1]);
	assert_true(ways[0].hash != ways[1].hash);
	close_space(&p, &space);
}

/* ---- what is allowed -------------------------------------------------------------------- */

static void allowed_codecs_are_read(void **state)
{
	(void)state;
	sw_plan_options options = {0};
	sw_error err = {0};
	check(sw_plan_options_set(&options, "allow", "codec=int8", &err), &err);
	assert_int_equal(options.n_allowed_codecs, 1);
	options = (sw_plan_options){0};
	check(sw_plan_options_set(&options, "allow", "codec=bf16,stale=4,codec=topk=0.1", &err),
	      &err);
	assert_int_equal(options.n_allowed_codecs, 2);
	assert_true(options.allowed_codecs[1].share == 0.1 && options.allowed_stale == 4);
	static const char *const bad[] = {"codec=none", "bf16",   "codec=bf16,",          "stale=",
	                                  "codec=",     "stale4", "codec=bf16;codec=f16", ""};
	for (size_t i = 0; i < SW_COUNT(bad); i++) {
		options = (sw_plan_options){0};
		assert_int_equal(sw_plan_options_set(&options, "allow", bad[i], &err),
		                 SW_ERR_INPUT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables_have_times_and_bytes),
		cmocka_unit_test(seeds_are_the_builders_ways),
		cmocka_unit_test(samples_are_possible_and_read_back),
		cmocka_unit_test(samples_compute_what_one_device_does),
		cmocka_unit_test(groups_are_sets_of_variables),
		cmocka_unit_test(allowed_codecs_are_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
