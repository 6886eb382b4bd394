/* The schedule, the memory and the cuts of a plan with stages, and files that read back. */
#include "pipelined/staged.h"

/* auto takes the quickest schedule, or one that is searched for; more microbatches in flight need
 * more memory. */
static void schedules_are_compared(void **state)
{
	static const sw_named_schedule all[] = {SW_GPIPE, SW_1F1B, SW_EAGER_1F1B, SW_ZB_H1,
	                                        SW_ZB_2P};
	(void)state;
	staged_plan t;
	open_staged(&t, "mlp", "local-2x2");
	plan_freely(&t, 2, 8, -1);
	double best_s = t.plan->played.step_s, bound_s = t.plan->bound.seconds,
	       quickest_s = INFINITY, bytes[SW_COUNT(all)];
	for (size_t i = 0; i < SW_COUNT(all); i++) {
		plan_freely(&t, 2, 8, (int32_t)all[i]);
		quickest_s = fmin(quickest_s, t.plan->played.step_s);
		bytes[i] = t.plan->played.ranks[0].peak_bytes;
		if (all[i] == SW_1F1B)
			assert_int_equal(sw_pipelined_in_flight(t.plan, 0), 2);
		if (all[i] == SW_GPIPE)
			assert_int_equal(sw_pipelined_in_flight(t.plan, 0), 8);
	}
	assert_true(best_s <= quickest_s + 1e-12 && best_s >= bound_s * (1 - 1e-9));
	assert_true(bytes[0] > bytes[1]);
	/* Where GPipe's microbatches do not fit, another schedule is taken. */
	plan_within(&t, 2, 8, -1, (int64_t)((bytes[0] + bytes[1]) / 2));
	assert_int_equal(t.status, SW_OK);
	assert_true(t.plan->fits && t.plan->schedule != SW_GPIPE);
	close_staged(&t);
}

/* What is said to fit does, and with less memory a step is hardly quicker: by what searches differ that
 * try other plans first. */
static void memory_is_kept(void **state)
{
	(void)state;
	staged_plan t;
	open_staged(&t, "gpt", "a100-8x8");
	assert_int_equal(sw_cluster_take(&t.cluster, "4", &t.err), SW_OK);
	plan_freely(&t, 2, 4, SW_GPIPE);
	double free_s = t.plan->played.step_s,
	       most = fmax(t.plan->played.ranks[0].peak_bytes, t.plan->played.ranks[1].peak_bytes);
	int32_t shrunk = 0;
	for (int percent = 101; percent >= 93; percent -= 8) {
		int64_t memory = (int64_t)(most * percent / 100);
		plan_within(&t, 2, 4, SW_GPIPE, memory);
		assert_true(t.status == SW_OK || t.status == SW_NO);
		assert_true(percent < 100 || (t.status == SW_OK && t.plan->fits));
		if (t.status || !t.plan->fits)
			continue;
		shrunk += percent < 100;
		for (int32_t s = 0; s < 2; s++)
			assert_true(t.plan->played.ranks[s].peak_bytes <= (double)memory);
		if (t.plan->played.step_s <= 0.99 * free_s)
			fail_msg("%.6g s within %d %% of the memory, %.6g s without a limit",
			         t.plan->played.step_s, percent, free_s);
	}
	assert_true(shrunk > 0);
	close_staged(&t);
}

static void file_reads_back(int32_t n_slices, int32_t schedule)
{
	staged_plan t;
	sw_pipelined *read = NULL;
	char path[] = "/tmp/sw-stages-XXXXXX", other[64];
	assert_int_not_equal(mkdtemp(path), 0);
	snprintf(other, sizeof(other), "%s/p", path);
	open_staged(&t, "gpt-tiny-clip", "local-2x4");
	plan_freely(&t, n_slices, 4, schedule);
	assert_int_equal(sw_pipelined_write(t.plan, other, &t.err), SW_OK);
	assert_true(sw_pipelined_is_file(other));
	if (sw_pipelined_read(other, &read, &t.err))
		fail_msg("%s", t.err.message);
	assert_true(fabs(read->played.step_s - t.plan->played.step_s) < 1e-12);
	assert_int_equal(read->schedule, t.plan->schedule);
	assert_int_equal(read->n_ranks, n_slices);
	sw_text a = {0}, b = {0};
	sw_pipelined_print(t.plan, &a);
	sw_pipelined_print(read, &b);
	assert_string_equal(a.data, b.data);
	/* The plan of a stage is one like any other. */
	sw_cluster cluster;
	sw_plan *stage;
	snprintf(other, sizeof(other), "%s/p.stage0", path);
	if (sw_plan_read(other, &cluster, &stage, &t.err))
		fail_msg("%s", t.err.message);
	assert_null(stage->changes);
	assert_int_equal(cluster.n_devices, 8 / n_slices);
	sw_plan_free(stage);
	sw_cluster_clear(&cluster);
	sw_text_clear(&a);
	sw_text_clear(&b);
	sw_pipelined_free(read);
	close_staged(&t);
	char command[96];
	snprintf(command, sizeof(command), "rm -r %s", path);
	assert_int_equal(system(command), 0);
}

static void files_read_back(void **state)
{
	(void)state;
	file_reads_back(4, -1);
	file_reads_back(2, SW_ZB_V);
}

/* Where the first stage, with most microbatches in flight, is too large, it is cut again with fewer
 * ops. */
static void too_large_stages_get_less(void **state)
{
	(void)state;
	uint32_t ops[2];
	for (int k = 0; k < 2; k++) {
		staged_plan t;
		sw_pipelined_options options = {.n_stages = 4, .microbatches = 8, .schedule = SW_1F1B};
		options.plan = (sw_plan_options){.quiet = true,
		                                 .remat = "none",
		                                 .memory_bytes = k ? INT64_C(1210) << 20 : 0};
		open_staged(&t, "gpt-124m", "a100-8x8");
		assert_int_equal(sw_cluster_take(&t.cluster, "1x8", &t.err), SW_OK);
		plan_staged_under(&t, "dp", options);
		assert_true(t.plan->fits);
		ops[k] = t.plan->stages[0].n_ops;
		close_staged(&t);
	}
	assert_true(ops[1] < ops[0]);
}

/* The updates, and that few microbatches leave stages idle at the ends, count where the program is cut: no
 * cut between two blocks is quicker than the one that is found. */
static void cuts_are_chosen_by_the_step(void **state)
{
	sw_stage_file_entry entries[] = {{"params.embed.*", false, 0, 1},
	                                 {"params.blocks.6.*", false, 0, 2},
	                                 {"params.blocks.7.*", false, 1, 3}};
	const sw_stage_file file = {
		.path = "stages", .n_stages = 2, .entries = entries, .n_entries = SW_COUNT(entries)};
	sw_pipelined_options options = {.n_stages = 2, .microbatches = 2, .schedule = SW_ZB_2P};
	staged_plan t;
	(void)state;
	options.plan = (sw_plan_options){.quiet = true, .remat = "none"};
	open_staged(&t, "gpt-124m", "dgx-a100-2x8");
	plan_staged_under(&t, "megatron:tp=2,sp", options);
	double found_s = t.plan->played.step_s;
	options.file = &file;
	plan_staged_under(&t, "megatron:tp=2,sp", options);
	if (found_s > t.plan->played.step_s * 1.005)
		fail_msg("%g s, with a cut by hand %g s", found_s, t.plan->played.step_s);
	close_staged(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(schedules_are_compared),
		cmocka_unit_test(memory_is_kept),
		cmocka_unit_test(files_read_back),
		cmocka_unit_test(too_large_stages_get_less),
		cmocka_unit_test(cuts_are_chosen_by_the_step),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
