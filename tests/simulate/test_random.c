/* Random schedules: the step lies between its longest part and the sum of all parts, breakdowns add
 * up, and the trace agrees with them. */
#include "simulate/plays.h"

#include <math.h>

static const struct {
	const char *levels;
	int ranks;
	const char *groups[4];
} clusters[] = {
	{"{name: node, count: 2, latency: 1, bandwidth: 4}, {name: device, count: 3, latency: 0.1, "
         "bandwidth: 40}",
         6,
         {"{}", "{{0,1,2},{3,4,5}}", "{{0,3},{1,4},{2,5}}", "{{0,4},{1,5},{2,3}}"}},
	{"{name: node, count: 3, latency: 1, bandwidth: 4}, {name: device, count: [1, 2, 3], "
         "latency: 0.1, "
         "bandwidth: 40}",
         6,
         {"{}", "{{0,1},{2,3},{4,5}}", "{{0,2,4},{1,3,5}}", "{{0,5},{1,3},{2,4}}"}},
	{"{name: node, count: 3, latency: 1, bandwidth: 4, flow_bandwidth: 3}, {name: device, "
         "count: [2, "
         "2, 1], latency: 0, bandwidth: 9}",
         5,
         {"{}", "{{0,1},{2,3},{4}}", "{{0,2},{1,3},{4}}", "{{0,4},{1},{2},{3}}"}},
};

#define MAX_COLLECTIVES 12

/* Write a program with a computation per collective, and an entry that starts and ends them
 * anywhere, with kernels between. */
static void write_program(sw_text *text, sw_rng *rng, const char *const *groups, int n)
{
	sw_text_add(
		text,
		"HloModule m\nsum { sa = f32[] parameter(0)\n sb = f32[] parameter(1)\n ROOT sc "
		"= f32[] add(sa, sb) }\n");
	for (int i = 0; i < n; i++)
		sw_text_addf(
			text,
			"c%d { x%d = f32[%d] parameter(0)\n ROOT r%d = f32[%d] all-reduce(x%d), "
			"channel_id=%d, replica_groups=%s, "
			"use_global_device_ids=true, to_apply=sum }\n",
			i, i, i + 1, i, i + 1, i, i + 1, groups[sw_rng_below(rng, 4)]);
	sw_text_add(text, "ENTRY main { p = f32[5] parameter(0)\n");
	for (int i = 0; i < n; i++)
		sw_text_addf(text, " p%d = f32[%d] parameter(%d)\n", i, i + 1, i + 1);
	int begun = 0, open[MAX_COLLECTIVES], n_open = 0, kernels = 0;
	while (begun < n || n_open > 0) {
		int64_t what = sw_rng_below(rng, 3);
		if (what == 0 && begun < n) {
			sw_text_addf(text,
			             " s%d = ((f32[%d]), f32[%d]) async-start(p%d), calls=c%d\n",
			             begun, begun + 1, begun + 1, begun, begun);
			open[n_open++] = begun++;
		} else if (what == 1 && n_open > 0) {
			int64_t k = sw_rng_below(rng, n_open);
			sw_text_addf(text, " d%d = f32[%d] async-done(s%d)\n", open[k], open[k] + 1,
			             open[k]);
			open[k] = open[--n_open];
		} else if (what == 2) {
			sw_text_addf(text, " k%d = f32[5] negate(p)\n", kernels++);
		}
	}
	sw_text_add(text, " ROOT z = f32[5] negate(p) }\n");
}

static void check_bounds(const scene *s)
{
	sw_program_cost cost;
	sw_cost_program(&s->cluster, s->program, &cost);
	double step = s->played.step_time_s, rounding_s = 1e-9 * step;
	assert_true(step <= cost.step_time_s + rounding_s);
	for (int64_t r = 0; r < s->played.n_ranks; r++) {
		const sw_breakdown *b = &s->played.ranks[r];
		assert_seconds(b->compute_s, cost.compute_s);
		assert_seconds(b->compute_s + b->exposed_comm_s + b->idle_s, step);
		assert_true(b->idle_s >= 0 && b->exposed_comm_s >= 0 && b->hidden_comm_s >= 0);
		assert_true(b->exposed_comm_s + b->hidden_comm_s <= step + rounding_s);
	}
}

static void check_trace(const scene *s)
{
	sw_trace trace = {0};
	sw_simulation again;
	double sums[8][3] = {{0}}, ends[8][3] = {{0}};
	assert_int_equal(sw_simulate(&s->cluster, s->program, &trace, 100, &again, NULL), SW_OK);
	assert_seconds(again.step_time_s, s->played.step_time_s);
	for (size_t i = 0; i < trace.events.len; i++) {
		const sw_trace_event *e = &trace.events.data[i];
		assert_in_range(e->rank, 0, s->played.n_ranks - 1);
		assert_true(e->begin_s >= ends[e->rank][e->track] && e->end_s > e->begin_s);
		assert_true((e->bytes > 0) == (e->track == SW_TRACK_COLLECTIVES));
		ends[e->rank][e->track] = e->end_s;
		sums[e->rank][e->track] += e->end_s - e->begin_s;
	}
	for (int64_t r = 0; r < s->played.n_ranks; r++) {
		const sw_breakdown *b = &s->played.ranks[r];
		assert_seconds(sums[r][SW_TRACK_KERNELS], b->compute_s);
		assert_seconds(sums[r][SW_TRACK_COLLECTIVES], b->exposed_comm_s + b->hidden_comm_s);
		assert_true(sums[r][SW_TRACK_WAITS] <= b->exposed_comm_s + b->idle_s + 1e-9);
	}
	sw_trace_clear(&trace);
	sw_simulation_clear(&again);
}

static void any_schedule_lies_between_its_parts_and_their_sum(void **state)
{
	(void)state;
	double smallest = INFINITY, largest = 0;
	for (uint64_t seed = 0; seed < 300; seed++) {
		sw_rng rng = {.seed = seed};
		int which = (int)sw_rng_below(&rng, SW_COUNT(clusters));
		sw_text text = {0};
		scene s;
		sw_program_cost cost;
		write_program(&text, &rng, clusters[which].groups,
		              1 + (int)sw_rng_below(&rng, MAX_COLLECTIVES));
		play_scene(&s, clusters[which].levels, text.data);
		assert_int_equal(s.played.n_ranks, clusters[which].ranks);
		check_bounds(&s);
		check_trace(&s);
		sw_cost_program(&s.cluster, s.program, &cost);
		smallest = fmin(smallest, s.played.step_time_s / cost.step_time_s);
		largest = fmax(largest, s.played.step_time_s / cost.step_time_s);
		scene_clear(&s);
		sw_text_clear(&text);
	}
	assert_true(smallest < 0.8 && largest > 0.99); /* schedules from both ends occur */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_schedule_lies_between_its_parts_and_their_sum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
