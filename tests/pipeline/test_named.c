/* The named schedules: complete, free of deadlock at all sizes, with the bubbles and the memory
 * that their papers give them. */
#include <math.h>

#include "pipeline/plain_costs.h"
#include "test.h"

static sw_pipeline_played play(const sw_pipeline_schedule *s, double f, double i, double w,
                               double transfer)
{
	sw_error err = {0};
	sw_pipeline_played played;
	plain_costs plain = make_plain_costs(s, f, i, w, transfer);
	if (sw_pipeline_play(s, &plain.costs, &played, &err))
		fail_msg("%s", err.message);
	clear_plain_costs(&plain);
	return played;
}

static double peak_of(const sw_pipeline_played *played)
{
	double peak = 0;
	for (int32_t r = 0; r < played->schedule->n_ranks; r++)
		peak = SW_MAX(peak, played->ranks[r].peak_bytes);
	return peak;
}

static void all_sizes_play(void **state)
{
	(void)state;
	for (int which = 0; which < SW_NAMED_SCHEDULES; which++)
		for (int32_t p = 1; p <= 9; p++)
			for (int32_t m = 1; m <= 26; m++) {
				sw_pipeline_schedule *s;
				sw_error err = {0};
				sw_pipeline_size size = {p, m, 0};
				sw_status status =
					sw_pipeline_make((sw_named_schedule)which, size, &s, &err);
				bool refused =
					which == SW_DUALPIPE && (p % 2 || m % 2 || m < 2 * p);
				assert_int_equal(status, refused ? SW_ERR_INPUT : SW_OK);
				if (status)
					continue;
				sw_pipeline_played played = play(s, 1, 1, 1, 0);
				double work = 3.0 * m * s->n_stages / s->n_chains / p;
				for (int32_t r = 0; r < p; r++)
					assert_true(fabs(played.ranks[r].busy_s - work) < 1e-9);
				assert_true(peak_of(&played) <= (double)m * s->n_stages / p);
				sw_pipeline_played_free(&played);
				sw_pipeline_free(s);
			}
}

static void chunks_play(void **state)
{
	(void)state;
	for (int32_t p = 1; p <= 6; p++)
		for (int32_t m = 1; m <= 20; m++)
			for (int32_t chunks = 2; chunks <= 5; chunks++) {
				sw_pipeline_schedule *s;
				sw_error err = {0};
				sw_pipeline_size size = {p, m, chunks};
				assert_int_equal(
					sw_pipeline_make(SW_INTERLEAVED_1F1B, size, &s, &err),
					SW_OK);
				sw_pipeline_played played = play(s, 1, 1, 1, 0.25);
				sw_pipeline_played_free(&played);
				sw_pipeline_free(s);
			}
}

/* With F = B = W: the bubble relative to 1F1B's, (p - 1) / (m + p - 1), counted as the papers do:
 * between a rank's first and last action for those that leave the optimizer unsynchronised. The
 * memory relative to 1F1B's p microbatches of a stage; with the constants of small p, of which the
 * papers give the limit. */
static void bubbles_and_memory(void **state)
{
	static const struct {
		sw_named_schedule which;
		double bubble;   /* idle seconds, in those of 1F1B; negative: not claimed */
		double memory;   /* in those of 1F1B */
		double constant; /* passes of half a stage that memory may exceed it by */
	} rows[] = {{SW_1F1B, 1, 1, 0},      {SW_ZB_H1, 1.0 / 3, 1, 0}, {SW_ZB_2P, 0, 2, 0},
	            {SW_ZB_V, 0, 1, 0},      {SW_V_HALF, -1, 0.5, 3},   {SW_V_MIN, -1, 1.0 / 3, 3},
	            {SW_EAGER_1F1B, 1, 2, 0}};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(rows); i++)
		for (int32_t p = 2; p <= 16; p++) {
			sw_pipeline_schedule *s;
			sw_error err = {0};
			int32_t m = 4 * p;
			sw_pipeline_size size = {p, m, 0};
			assert_int_equal(sw_pipeline_make(rows[i].which, size, &s, &err), SW_OK);
			int32_t chunks = s->n_stages / p;
			sw_pipeline_played played = play(s, 1, 1, 1, 0);
			double idle = 0, busy = 3.0 * m * chunks;
			for (int32_t r = 0; r < p; r++)
				idle = SW_MAX(idle, played.ranks[r].last_s -
				                            played.ranks[r].first_s - busy);
			double of_1f1b = 3.0 * (p - 1);
			if (rows[i].bubble >= 0 &&
			    fabs(idle / chunks - rows[i].bubble * of_1f1b) > 1e-9)
				fail_msg("%s, %d ranks: idle %g, not %g",
				         sw_pipeline_name(rows[i].which), p, idle,
				         rows[i].bubble * of_1f1b);
			double peak = peak_of(&played), most = rows[i].memory * p * chunks;
			if (peak > ceil(most - 1e-9) + rows[i].constant)
				fail_msg("%s, %d ranks: %g in memory, not %g",
				         sw_pipeline_name(rows[i].which), p, peak, most);
			/* The warm-up of eager 1F1B and ZB-2P is one less than twice that of 1F1B.
			 */
			assert_true(peak >= most - 1);
			sw_pipeline_played_free(&played);
			sw_pipeline_free(s);
		}
}

/* Figure 4 of the cross-mesh resharding paper: how many forwards come before the first backward. */
static void warm_ups(void **state)
{
	(void)state;
	for (int32_t p = 1; p <= 8; p++)
		for (int eager = 0; eager < 2; eager++) {
			sw_pipeline_schedule *s;
			sw_error err = {0};
			sw_pipeline_size size = {p, 4 * p, 0};
			assert_int_equal(
				sw_pipeline_make(eager ? SW_EAGER_1F1B : SW_1F1B, size, &s, &err),
				SW_OK);
			for (int32_t i = 1; i <= p; i++) {
				int32_t n = 0;
				while (s->lists[i - 1].data[n].kind == SW_FORWARD)
					n++;
				assert_int_equal(n, eager ? 2 * (p - i) + 1 : p - i + 1);
			}
			sw_pipeline_free(s);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_sizes_play),
		cmocka_unit_test(chunks_play),
		cmocka_unit_test(bubbles_and_memory),
		cmocka_unit_test(warm_ups),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
