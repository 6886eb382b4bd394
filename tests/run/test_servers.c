/*
 * Servers: ranks without a device that serve variables in their owners' place. What is trained is
 * what owners' threads train, whoever serves.
 */
#include "fixtures.h"

#include <stdio.h>
#include <string.h>

#include "partition/served.h"

/* ---- who serves what -------------------------------------------------------------------- */

#define MOST_PORTS 8

typedef struct placing {
	int64_t n; /* servers */
	int ports;
	struct {
		int64_t owner, bytes, server;
	} list[MOST_PORTS];
} placing;

static void owners_are_shared_out_by_bytes(void **state)
{
	(void)state;
	static const placing cases[] = {
		/* as many servers as owners: in their order, whatever they have */
		{2, 2, {{1, 10, 0}, {3, 90, 1}}},
		{2, 2, {{3, 10, 1}, {1, 90, 0}}},
		/* fewer: 55 | 30 + 20, then 10 to where there is less */
		{2, 4, {{0, 20, 0}, {1, 55, 1}, {2, 30, 0}, {3, 10, 0}}},
		{1, 3, {{0, 1, 0}, {1, 2, 0}, {2, 3, 0}}},
		/* what an owner has of another staleness goes with it */
		{2, 4, {{0, 60, 0}, {1, 40, 1}, {0, 10, 0}, {2, 20, 1}}},
		/* nothing to weigh */
		{2, 3, {{0, 0, 0}, {1, 0, 1}, {2, 0, 0}}},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_port ports[MOST_PORTS] = {0};
		sw_served served = {.n_ports = (uint32_t)cases[i].ports, .ports = ports};
		for (int p = 0; p < cases[i].ports; p++)
			ports[p] = (sw_port){.owner = cases[i].list[p].owner,
			                     .stale = p,
			                     .value_bytes = cases[i].list[p].bytes};
		sw_served_place(&served, cases[i].n);
		for (int p = 0; p < cases[i].ports; p++)
			if (ports[p].server != cases[i].list[p].server)
				fail_msg("case %zu, port %d: server %d", i, p,
				         (int)ports[p].server);
	}
}

/* ---- the same training ------------------------------------------------------------------ */

static sw_run_result train(const fixture *f, sw_run_options options)
{
	sw_run_result result;
	sw_error err = {0};
	options.quiet = true;
	options.blas_threads = 1;
	if (sw_run_train_local(f->plan, &f->sidecar, NULL, &options, &result, &err))
		fail_msg("%s", err.message);
	return result;
}

#define STEPS 6

/* Without staleness all ranks wait for all terms, which are added up in the order of the ranks. */
static void compare_with_owners(const char *program, int devices, const char *strategy, int most)
{
	fixture f;
	fixture_init(&f, program, devices, strategy);
	sw_run_options options = {.steps = STEPS, .seed = 5};
	sw_run_result owners = train(&f, options);
	for (options.servers = 1; options.servers <= most; options.servers++) {
		sw_run_result servers = train(&f, options);
		assert_true(servers.served);
		assert_int_equal(servers.oldest, 0);
		assert_int_equal(servers.steps, STEPS);
		for (size_t i = 0; i < STEPS; i++)
			if (servers.losses[i] != owners.losses[i])
				fail_msg("%s, %s on %d and %d servers, step %zu: %.17g, %.17g",
				         program, strategy, devices, options.servers, i,
				         servers.losses[i], owners.losses[i]);
		sw_run_result_clear(&servers);
	}
	sw_run_result_clear(&owners);
	fixture_clear(&f);
}

static void servers_train_as_owners_do_bit_for_bit(void **state)
{
	(void)state;
	compare_with_owners("mlp", 2, "ps:balanced,served", 2);
	compare_with_owners("mlp", 8, "ps:balanced,served", 3);
	compare_with_owners("gpt-tiny", 4, "ps:balanced,served", 4);
	/* more servers than owners share the variables, and tell each other what the norm is made of */
	compare_with_owners("gpt-tiny-clip", 4, "ps:served", 3);
	compare_with_owners("gpt-tiny-clip", 2, "ps:balanced,served", 5);
	/* lookups in tables */
	compare_with_owners("ncf-tiny", 4, "ps:balanced,stale=0,served", 3);
}

/* ---- ages, stragglers, ends ------------------------------------------------------------- */

/* longer than steps of the others, under a sanitizer too */
#define SLEEP_S 100e-3

static void a_slow_worker_keeps_others_waiting_as_far_as_the_bound_says(void **state)
{
	(void)state;
	static const struct {
		const char *strategy;
		int64_t oldest; /* -1: there is no bound */
	} cases[] = {{"ps:balanced,stale=3", 3}, {"ps:balanced,stale=any", -1}};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		fixture f;
		fixture_init(&f, "mlp", 2, cases[i].strategy);
		sw_run_result result = train(
			&f, (sw_run_options){
				    .steps = 12, .servers = 2, .slow_rank = 1, .slow_s = SLEEP_S});
		assert_true(result.slowest_step_s >= SLEEP_S);
		if (cases[i].oldest >= 0)
			assert_int_equal(result.oldest, cases[i].oldest);
		else
			assert_true(result.oldest > 3); /* the other went on meanwhile */
		sw_run_result_clear(&result);
		fixture_clear(&f);
	}
}

typedef struct stopper {
	atomic_bool stop;
} stopper;

static void stop_at_third(void *context, const sw_run_step *step)
{
	stopper *s = context;
	if (step->step == 2)
		s->stop = true;
}

/* The run returns only if all ranks end after the same step, and servers with them. */
static void a_stop_ends_servers_too(void **state)
{
	(void)state;
	static const char *const strategies[] = {"ps:stale=1", "ps:balanced,stale=5",
	                                         "ps:balanced,stale=any"};
	for (size_t i = 0; i < SW_COUNT(strategies); i++) {
		fixture f;
		stopper s = {0};
		fixture_init(&f, "mlp", 4, strategies[i]);
		sw_run_result result = train(&f, (sw_run_options){.steps = 100000,
		                                                  .servers = i ? 2 : 1,
		                                                  .on_step = stop_at_third,
		                                                  .context = &s,
		                                                  .stop = &s.stop});
		assert_true(result.steps >= 3 && result.steps < 100000);
		sw_run_result_clear(&result);
		fixture_clear(&f);
	}
}

static void zero_steps_serve_nothing(void **state)
{
	(void)state;
	fixture f;
	fixture_init(&f, "mlp", 2, "ps:balanced,stale=2");
	sw_run_result result = train(&f, (sw_run_options){.steps = 0, .servers = 2});
	assert_int_equal(result.steps, 0);
	sw_run_result_clear(&result);
	fixture_clear(&f);
}

/* ---- what can't be ---------------------------------------------------------------------- */

static void refused(const char *strategy, int servers, const char *words)
{
	fixture f;
	sw_run_result result;
	sw_error err = {0};
	fixture_init(&f, "mlp", 2, strategy);
	sw_run_options options = {.steps = 2, .servers = servers};
	assert_int_equal(sw_run_train_local(f.plan, &f.sidecar, NULL, &options, &result, &err),
	                 SW_ERR_INPUT);
	if (!strstr(err.message, words))
		fail_msg("%s", err.message);
	fixture_clear(&f);
}

static void what_nobody_could_serve_is_refused(void **state)
{
	(void)state;
	refused("ps:balanced,proxy", 1, "the plan's variables are not served");
	refused("dp", 1, "ps:balanced,served, for servers");
	refused("ps:stale=2", 7, "there are 7 servers, and the plan has 6 variables");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owners_are_shared_out_by_bytes),
		cmocka_unit_test(servers_train_as_owners_do_bit_for_bit),
		cmocka_unit_test(a_slow_worker_keeps_others_waiting_as_far_as_the_bound_says),
		cmocka_unit_test(a_stop_ends_servers_too),
		cmocka_unit_test(zero_steps_serve_nothing),
		cmocka_unit_test(what_nobody_could_serve_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
