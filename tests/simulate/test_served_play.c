/* The long run of ranks that go on with old values: laws that hold whatever the program, and closed
 * forms where one thing decides. */
#include "search/search.h"
#include "simulate/served_play.h"
#include "test.h"

#include <math.h>
#include <stdio.h>

typedef struct subject {
	char path[512];
	sw_cluster cluster;
	sw_program *program;
	sw_sidecar sidecar;
	sw_plan *plan;
	sw_served served;
} subject;

static void check(sw_status status, const sw_error *err)
{
	if (status != SW_OK)
		fail_msg("%s: %s", err->file, err->message);
}

static void subject_open(subject *s, const char *fixture, const char *cluster, const char *strategy)
{
	sw_error err = {0};
	sw_plan_options options = {.quiet = true};
	snprintf(s->path, sizeof(s->path), SW_SOURCE_DIR "/clusters/%s.yaml", cluster);
	check(sw_cluster_read(s->path, &s->cluster, &err), &err);
	s->cluster.device.fusion = SW_FUSION_NONE; /* so that links are not all that counts */
	snprintf(s->path, sizeof(s->path), SW_SOURCE_DIR "/tests/programs/%s.hlo.gz", fixture);
	check(sw_read_program(s->path, &s->program, &err), &err);
	check(sw_sidecar_find(s->path, s->program, &s->sidecar, &err), &err);
	check(sw_plan_strategy_parse(strategy, &options.strategy, &err), &err);
	check(sw_plan_make(s->program, s->path, &s->sidecar, &s->cluster, &options, &s->plan, &err),
	      &err);
	check(sw_served_cut(s->plan, &s->sidecar, &s->served, &err), &err);
}

static void subject_close(subject *s)
{
	sw_served_clear(&s->served);
	sw_plan_free(s->plan);
	sw_sidecar_clear(&s->sidecar);
	sw_program_free(s->program);
	sw_cluster_clear(&s->cluster);
}

static sw_served_play play(const subject *s, int64_t slow, double slow_s)
{
	sw_served_play result;
	sw_error err = {0};
	double more_s[16] = {0};
	more_s[slow] = slow_s;
	check(sw_served_play_steps(&s->cluster, &s->served, more_s, &result, &err), &err);
	return result;
}

/* Steps follow each other no faster than a worker, or the busiest owner, can; more staleness does
 * not slow them; and no value is older than allowed. */
static void more_staleness_is_no_slower(void **state)
{
	(void)state;
	static const char *const fixtures[] = {"mlp", "gpt-tiny"};
	static const char *const clusters[] = {"lab-4x1", "local-2x2"};
	static const int stales[] = {0, 1, 2, 4, 16};
	for (int c = 0; c < 4; c++) {
		double before_s = INFINITY;
		for (size_t i = 0; i < SW_COUNT(stales); i++) {
			subject s;
			char strategy[64];
			snprintf(strategy, sizeof(strategy), "ps:balanced,stale=%d,served",
			         stales[i]);
			subject_open(&s, fixtures[c / 2], clusters[c % 2], strategy);
			sw_served_play played = play(&s, 0, 0);
			assert_true(played.step_time_s > 0.999 * played.worker_s);
			assert_true(played.step_time_s > 0.98 * played.update_s);
			if (played.step_time_s >= 1.02 * before_s)
				fail_msg("%s on %s, %d steps old: %g s, %g s where less old",
				         fixtures[c / 2], clusters[c % 2], stales[i],
				         played.step_time_s, before_s);
			assert_true(played.oldest <= stales[i]);
			before_s = played.step_time_s;
			sw_served_play_clear(&played);
			subject_close(&s);
		}
	}
}

/* With a bound all are as slow as the slowest; without one the others are not. */
static void a_straggler_decides_the_long_run_of_those_who_have_a_bound(void **state)
{
	(void)state;
	double slow_s = 0.5;
	for (int any = 0; any < 2; any++) {
		subject s;
		subject_open(&s, "mlp", "lab-4x1",
		             any ? "ps:balanced,stale=any" : "ps:balanced,stale=3");
		sw_served_play played = play(&s, 2, slow_s), calm = play(&s, 2, 0);
		double straggler_s = played.worker_s + slow_s;
		for (int64_t r = 0; r < played.n_ranks; r++) {
			bool waits = r == 2 || !any;
			if (waits && !any)
				assert_true(fabs(played.step_s[r] / straggler_s - 1) < 1e-3);
			if (waits)
				assert_true(played.step_s[r] > 0.999 * straggler_s);
			else
				assert_true(played.step_s[r] < 1.1 * calm.step_s[r]);
		}
		assert_true(any || played.oldest == 3);
		assert_true(!any || played.oldest > 3);
		sw_served_play_clear(&played);
		sw_served_play_clear(&calm);
		subject_close(&s);
	}
}

/* Where workers have collectives all end a step when the last one does, and its collectives are part
 * of it. */
static void collectives_of_workers_wait_for_the_last(void **state)
{
	(void)state;
	subject s;
	subject_open(&s, "resnet-tiny", "lab-4x1", "ps:balanced,served");
	sw_program_cost cost;
	sw_cost_program(&s.cluster, s.served.worker, &cost);
	assert_true(s.served.in_step && cost.communication_s > 0);
	sw_served_play played = play(&s, 3, 0.5), calm = play(&s, 3, 0);
	assert_true(played.worker_s == cost.step_time_s);
	for (int64_t r = 0; r < played.n_ranks; r++) {
		assert_true(played.step_s[r] > 0.5 + 0.999 * played.worker_s);
		assert_true(played.step_s[r] < 0.5 + 1.001 * calm.step_s[r]);
	}
	/* terms that all send at the same time share the owners' links, others have come before */
	s.served.in_step = false;
	sw_served_play apart = play(&s, 3, 0.5);
	assert_true(played.step_s[0] - apart.step_s[0] > 0.01 * calm.step_s[0]);
	sw_served_play_clear(&apart);
	sw_served_play_clear(&played);
	sw_served_play_clear(&calm);
	subject_close(&s);
}

/* One port, two ranks, no bound: the owner's step is its worker's and its update's; the other's,
 * also the way there and back. Both may wait for the other's update. */
static void a_step_without_a_bound_is_the_way_to_the_owner_and_back(void **state)
{
	(void)state;
	subject s;
	subject_open(&s, "mlp", "lab-2x1", "ps:stale=any");
	assert_int_equal(s.served.n_ports, 1);
	const sw_port *port = &s.served.ports[0];
	sw_served_play played = play(&s, 0, 0);
	double way_s = sw_cost_pair(&s.cluster, 1, 0, port->term_bytes) +
	               sw_cost_pair(&s.cluster, 0, 1, port->value_bytes);
	double own_s = played.worker_s + played.update_s;
	assert_int_equal(port->owner, 0);
	assert_true(played.step_s[0] > 0.999 * own_s);
	assert_true(played.step_s[0] < 1.001 * (own_s + played.update_s));
	assert_true(played.step_s[1] > 0.999 * (own_s + way_s));
	assert_true(played.step_s[1] < 1.001 * (own_s + way_s + played.update_s));
	sw_served_play_clear(&played);
	subject_close(&s);
}

/* The same with a server: both ranks go to it and back, by links of the outermost level. */
static void a_step_with_a_server_is_the_way_there_and_back(void **state)
{
	(void)state;
	subject s;
	subject_open(&s, "mlp", "lab-2x1", "ps:stale=any");
	sw_served_place(&s.served, 1);
	const sw_port *port = &s.served.ports[0];
	sw_served_play played = play(&s, 0, 0);
	double way_s = sw_cost_pair_outside(&s.cluster, 0, port->term_bytes) +
	               sw_cost_pair_outside(&s.cluster, 0, port->value_bytes);
	double own_s = played.worker_s + played.update_s + way_s;
	double link_s = (double)(port->term_bytes + port->value_bytes) /
	                s.cluster.levels[0].bandwidth;
	assert_true(fabs(sw_cost_pair_outside(&s.cluster, 0, 1000) -
	                 sw_cost_pair(&s.cluster, 0, 1, 1000)) < 1e-12);
	for (int r = 0; r < 2; r++) {
		assert_true(played.step_s[r] > 0.999 * own_s);
		/* the other's update, and its messages on the server's link, may be in the way */
		assert_true(played.step_s[r] < 1.001 * (own_s + played.update_s + link_s));
	}
	sw_served_play_clear(&played);
	subject_close(&s);
}

/* All terms and values go over the links of the servers, which then decide where they are few. */
static void fewer_servers_are_no_faster(void **state)
{
	(void)state;
	double before_s = 0;
	for (int n = 4; n >= 1; n--) {
		subject s;
		subject_open(&s, "gpt-tiny", "lab-4x1", "ps:balanced,stale=2");
		sw_served_place(&s.served, n);
		sw_served_play played = play(&s, 0, 0);
		int64_t bytes[4] = {0}, most = 0;
		for (uint32_t p = 0; p < s.served.n_ports; p++)
			bytes[s.served.ports[p].server] += 4 * s.served.ports[p].term_bytes;
		for (int k = 0; k < n; k++)
			most = SW_MAX(most, bytes[k]);
		assert_true(played.step_time_s >
		            0.98 * (double)most / s.cluster.levels[0].bandwidth);
		assert_true(played.step_time_s > 0.98 * played.update_s);
		assert_true(played.step_time_s > 0.98 * before_s);
		before_s = played.step_time_s;
		sw_served_play_clear(&played);
		subject_close(&s);
	}
}

/* Where all gradients are clipped by one norm, owners hear from each other before they update: that
 * is another message's latency, and its bytes. */
static void updates_wait_for_digests(void **state)
{
	(void)state;
	static const char *const strategies[] = {"ps:balanced,served", "ps:balanced,stale=any"};
	for (size_t i = 0; i < SW_COUNT(strategies); i++) {
		subject s;
		subject_open(&s, "gpt-tiny-clip", "lab-4x1", strategies[i]);
		sw_served_play with = play(&s, 0, 0);
		for (uint32_t p = 0; p < s.served.n_ports; p++)
			s.served.ports[p].n_taken = 0;
		sw_served_play without = play(&s, 0, 0);
		assert_true(with.step_time_s >
		            without.step_time_s + 0.9 * s.cluster.levels[0].latency_s);
		assert_true(with.payload_bytes > without.payload_bytes);
		sw_served_play_clear(&with);
		sw_served_play_clear(&without);
		subject_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_staleness_is_no_slower),
		cmocka_unit_test(a_straggler_decides_the_long_run_of_those_who_have_a_bound),
		cmocka_unit_test(collectives_of_workers_wait_for_the_last),
		cmocka_unit_test(a_step_without_a_bound_is_the_way_to_the_owner_and_back),
		cmocka_unit_test(a_step_with_a_server_is_the_way_there_and_back),
		cmocka_unit_test(fewer_servers_are_no_faster),
		cmocka_unit_test(updates_wait_for_digests),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
