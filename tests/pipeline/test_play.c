/* Playing by hand, deadlocks with their cycle, memory, CSV that reads back, and the bound against
 * all orders of small pipelines. */
#include <math.h>
#include <string.h>

#include "pipeline/plain_costs.h"
#include "test.h"

static sw_pipeline_schedule *parse(const char *csv)
{
	sw_pipeline_schedule *s;
	sw_error err = {0};
	if (sw_pipeline_parse_csv(csv, strlen(csv), "test.csv", &s, &err))
		fail_msg("%s", err.message);
	return s;
}

/* Two ranks, two microbatches; F 1, B 2, a transfer 1/2; checked by hand. */
static void plays_as_by_hand(void **state)
{
	(void)state;
	sw_pipeline_schedule *s = parse("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
	sw_pipeline_played played;
	sw_error err = {0};
	plain_costs plain = make_plain_costs(s, 1, 1, 1, 0.5);
	assert_int_equal(sw_pipeline_play(s, &plain.costs, &played, &err), SW_OK);
	/* 1F0 1.5-2.5, 1B0 -4.5, 1F1 -5.5, 1B1 -7.5; 0B0 5-7, 0B1 8-10. */
	assert_true(fabs(played.step_s - 10) < 1e-9);
	assert_true(fabs(played.ranks[1].last_s - 7.5) < 1e-9);
	assert_true(fabs(played.ranks[0].peak_bytes - 2) < 1e-9);
	assert_true(fabs(played.ranks[1].peak_bytes - 1) < 1e-9);
	/* 0F0, transfer, all of rank 1, transfer, 0B1. */
	assert_true(fabs(played.path.compute_s - 9) < 1e-9);
	assert_true(fabs(played.path.transfer_s - 1) < 1e-9);
	assert_int_equal(played.path.crossings, 2);
	assert_int_equal(played.path.busiest, 1);
	sw_pipeline_played_free(&played);
	plain.costs.blocking_sends = true;
	assert_int_equal(sw_pipeline_play(s, &plain.costs, &played, &err), SW_OK);
	/* Rank 1 sends for half a second between 1B0 and 1F1. */
	assert_true(fabs(played.step_s - 10.5) < 1e-9);
	sw_pipeline_played_free(&played);
	clear_plain_costs(&plain);
	sw_pipeline_free(s);
}

/* Messages on a link go one after the other. */
static void links_carry_one_message(void **state)
{
	(void)state;
	sw_pipeline_schedule *s = parse("0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1F1,1F2,1B0,1B1,1B2\n");
	sw_pipeline_played played;
	sw_error err = {0};
	plain_costs plain = make_plain_costs(s, 1, 1, 1, 3);
	assert_int_equal(sw_pipeline_play(s, &plain.costs, &played, &err), SW_OK);
	/* Messages 1-4, 4-7, 7-10; 1F2 ends at 11, 1B0 at 13; back 13-16, 16-19, 19-22. */
	assert_true(fabs(played.step_s - 24) < 1e-9);
	sw_pipeline_played_free(&played);
	clear_plain_costs(&plain);
	sw_pipeline_free(s);
}

static void refuses_deadlocks(void **state)
{
	static const struct {
		const char *csv, *message;
	} cases[] = {
		{"0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n",
	         "the schedule deadlocks: rank 0 waits at 0RECV_B0 for 1SEND_B0 of rank 1, which "
	         "waits at 1RECV_F1 for 0SEND_F1 of rank 0"},
		{"0B0,0F0\n", "the schedule deadlocks: rank 0 waits at 0B0 for 0F0 of rank 0"},
		{"0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1SEND_B0,1B0\n",
	         "the schedule deadlocks: rank 1 waits at 1SEND_B0 for 1I0 of rank 1"},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_pipeline_schedule *s = parse(cases[i].csv);
		sw_pipeline_played played;
		sw_error err = {0};
		plain_costs plain = make_plain_costs(s, 1, 1, 1, 0);
		assert_int_equal(sw_pipeline_play(s, &plain.costs, &played, &err), SW_ERR_INPUT);
		assert_string_equal(err.message, cases[i].message);
		clear_plain_costs(&plain);
		sw_pipeline_free(s);
	}
}

static void names_the_excess(void **state)
{
	(void)state;
	sw_pipeline_schedule *s;
	sw_error err = {0};
	sw_pipeline_played played;
	assert_int_equal(sw_pipeline_make(SW_GPIPE, (sw_pipeline_size){2, 4, 0}, &s, &err), SW_OK);
	plain_costs plain = make_plain_costs(s, 1, 1, 1, 0);
	((double *)(uintptr_t)plain.costs.limit_bytes)[1] = 2.5;
	assert_int_equal(sw_pipeline_play(s, &plain.costs, &played, &err), SW_OK);
	assert_int_equal(sw_pipeline_check_memory(&played, &plain.costs, &err), SW_ERR_INPUT);
	assert_string_equal(err.message, "rank 1 exceeds its memory at 1F2 by 0.5 B; its limit is "
	                                 "2.5 B, and its peak 4 B");
	sw_pipeline_played_free(&played);
	clear_plain_costs(&plain);
	sw_pipeline_free(s);
}

static void csv_reads_back(void **state)
{
	(void)state;
	for (int which = 0; which < SW_NAMED_SCHEDULES; which++)
		for (int transfers = 0; transfers < 2; transfers++) {
			sw_pipeline_schedule *made, *s;
			sw_error err = {0};
			sw_text text = {0}, again = {0};
			assert_int_equal(sw_pipeline_make((sw_named_schedule)which,
			                                  (sw_pipeline_size){4, 8, 0}, &made, &err),
			                 SW_OK);
			s = transfers ? sw_pipeline_with_transfers(made) : sw_pipeline_copy(made);
			sw_pipeline_print_csv(s, &text);
			sw_pipeline_schedule *read = parse(text.data);
			sw_pipeline_print_csv(read, &again);
			assert_string_equal(again.data, text.data);
			assert_int_equal(read->n_chains, s->n_chains);
			assert_memory_equal(read->rank_of_stage, s->rank_of_stage,
			                    sizeof(int32_t) * (size_t)s->n_stages);
			sw_text_clear(&text);
			sw_text_clear(&again);
			sw_pipeline_free(read);
			sw_pipeline_free(s);
			sw_pipeline_free(made);
		}
}

/* As PyTorch writes and reads it: idle cells are empty, whole parameters have no microbatch, and
 * overlapped passes stand in parentheses. */
static void reads_pytorch(void **state)
{
	(void)state;
	sw_pipeline_schedule *s =
		parse("0UNSHARD,0F0,,0F1,0B0,\"(0F2;0B1)OVERLAP_F_B\",0B2,0REDUCE_GRAD\r\n");
	assert_int_equal(s->lists[0].len, 8);
	assert_int_equal(s->lists[0].data[0].kind, SW_GATHER_WEIGHTS);
	assert_int_equal(s->lists[0].data[0].microbatch, -1);
	assert_int_equal(s->lists[0].data[4].kind, SW_FORWARD);
	assert_int_equal(s->lists[0].data[4].microbatch, 2);
	assert_int_equal(s->n_microbatches, 3);
	sw_pipeline_free(s);
}

static void a_byte_order_mark_is_no_cell(void **state)
{
	(void)state;
	sw_pipeline_schedule *s = parse("\xef\xbb\xbf" "0F0,0B0\r\n1F0,1B0\r\n");
	assert_int_equal(s->n_ranks, 2);
	sw_pipeline_free(s);
}

static void refuses_bad_csv(void **state)
{
	static const struct {
		const char *csv, *words;
	} cases[] = {
		{"", "there are no actions"},
		{"\n,,\n", "there are no actions"},
		{"0F0,zebra\n", "cell 2, 'zebra': expected a stage, a word and a microbatch"},
		{"0F\n", "cell 1, '0F': expected a microbatch"},
		{"0F-1\n", "expected a stage"},
		{"0F0x\n", "expected a stage"},
		{"99999999999999F0\n", "expected a stage"},
		{"0F99999999999999\n", "expected a stage"},
		{"(0F0;0B0)OVERLAP\n", "expected (ACTION;ACTION)OVERLAP_F_B"},
		{"()OVERLAP_F_B\n", "expected a stage"},
		{"0F0,0F0,0B0\n", "0F0: stands twice"},
		{"0F0\n", "0B0: is missing; expected B, or I and W"},
		{"0B0\n", "0F0: is missing"},
		{"0F0,0I0\n", "0B0: is missing; expected B, or I and W"},
		{"0F0,0W0,0I0\n", "0W0: stands before its input gradient"},
		{"0F0,0UPDATE,0B0\n", "0B0: stands behind the update of its stage"},
		{"0F0,0I0,0W0,0B0\n", "0B0: has an input or weight gradient besides"},
		{"0F0,0B0\n0F1,0B1\n", "another rank has this stage too"},
		{"0F0,0B0\n2F0,2B0\n", "1F0: is missing"},
		{"0F0,0B0,0SEND_F0\n1F0,1B0\n", "1RECV_F0: is missing"},
		{"0F0,1F0,0SEND_F0,1B0,0B0\n", "0SEND_F0: both stages are on one rank"},
		{"60000F1000000\n", "too many"},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_pipeline_schedule *s;
		sw_error err = {0};
		assert_int_equal(sw_pipeline_parse_csv(cases[i].csv, strlen(cases[i].csv),
		                                       "test.csv", &s, &err),
		                 SW_ERR_INPUT);
		if (!strstr(err.message, cases[i].words))
			fail_msg("'%s' is refused with: %s", cases[i].csv, err.message);
		assert_string_equal(err.file, "test.csv");
		assert_null(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plays_as_by_hand),  cmocka_unit_test(links_carry_one_message),
		cmocka_unit_test(refuses_deadlocks), cmocka_unit_test(names_the_excess),
		cmocka_unit_test(csv_reads_back),    cmocka_unit_test(reads_pytorch),
		cmocka_unit_test(a_byte_order_mark_is_no_cell),
		cmocka_unit_test(refuses_bad_csv),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
