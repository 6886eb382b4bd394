/* The search and the bound: against all orders of small pipelines, and within memory. */
#include <math.h>
#include <string.h>

#include "pipeline/plain_costs.h"
#include "test.h"

/* All orders of all ranks' lists that play, of which the quickest within memory is wanted. */
typedef struct all_orders {
	sw_pipeline_schedule *s;
	const sw_pipeline_costs *costs;
	double best_s;
	int64_t n;
} all_orders;

static void play_order(all_orders *x)
{
	sw_pipeline_played played;
	sw_error err;
	if (sw_pipeline_play(x->s, x->costs, &played, &err))
		return;
	if (sw_pipeline_check_memory(&played, x->costs, &err) == SW_OK)
		x->best_s = SW_MIN(x->best_s, played.step_s);
	sw_pipeline_played_free(&played);
	x->n++;
}

static void permute(all_orders *x, int32_t rank, size_t at)
{
	if (rank == x->s->n_ranks) {
		play_order(x);
		return;
	}
	sw_action_list *list = &x->s->lists[rank];
	if (at == list->len) {
		permute(x, rank + 1, 0);
		return;
	}
	for (size_t i = at; i < list->len; i++) {
		sw_action a = list->data[i];
		list->data[i] = list->data[at];
		list->data[at] = a;
		permute(x, rank, at + 1);
		list->data[at] = list->data[i];
		list->data[i] = a;
	}
}

static void draw(const double *values, int32_t n, sw_rng *rng, double most)
{
	for (int32_t i = 0; i < n; i++)
		((double *)(uintptr_t)values)[i] = most * sw_rng_unit(rng);
}

/* Two ranks, up to two microbatches, one or two stages per rank: no order is below the bound, and
 * the search finds the best. */
static void small_pipelines(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 24; seed++) {
		sw_rng rng = {seed, 0};
		sw_error err = {0};
		sw_pipeline_schedule *s;
		bool split = seed % 2;
		sw_pipeline_size size = {2, split ? 1 : 2, 0};
		sw_named_schedule which = split ? SW_ZB_V : SW_GPIPE;
		assert_int_equal(sw_pipeline_make(which, size, &s, &err), SW_OK);
		plain_costs plain = make_plain_costs(s, 1, 1, 1, 1);
		const sw_pipeline_costs *c = &plain.costs;
		draw(c->forward_s, s->n_stages, &rng, 2);
		draw(c->input_gradient_s, s->n_stages, &rng, 2);
		draw(c->weight_gradient_s, s->n_stages, &rng, 2);
		draw(c->send_forward_s, s->n_stages, &rng, 1);
		draw(c->send_backward_s, s->n_stages, &rng, 1);
		if (seed % 3 == 0)
			((double *)(uintptr_t)c->limit_bytes)[0] = split ? 2 : 1;
		all_orders all = {sw_pipeline_copy(s), c, INFINITY, 0};
		permute(&all, 0, 0);
		assert_true(all.n > 0);
		double bound_s = sw_pipeline_bound_of(s, c).seconds;
		if (bound_s > all.best_s * (1 + 1e-9))
			fail_msg("seed %d: bound %g, best %g", (int)seed, bound_s, all.best_s);
		const sw_pipeline_schedule *starts[] = {s, NULL};
		sw_pipeline_search_options options = {.work_limit = 40000, .seed = seed};
		sw_schedule_found found = sw_pipeline_search(starts, c, &options);
		assert_non_null(found.schedule);
		if (fabs(found.step_s - all.best_s) > 1e-9)
			fail_msg("seed %d: found %g, best %g", (int)seed, found.step_s, all.best_s);
		sw_pipeline_free(found.schedule);
		sw_pipeline_free(all.s);
		clear_plain_costs(&plain);
		sw_pipeline_free(s);
	}
}

/* A rank updates its stages when it is done. */
static void add_updates(sw_pipeline_schedule *s)
{
	for (int32_t v = 0; v < s->n_stages; v++)
		sw_vec_push(&s->lists[s->rank_of_stage[v]], ((sw_action){SW_UPDATE, v, -1}));
}

static void assert_updates_are_last(const sw_pipeline_schedule *s)
{
	for (int32_t r = 0; r < s->n_ranks; r++)
		for (size_t i = 0, n = s->lists[r].len; i < n; i++)
			assert_int_equal(s->lists[r].data[i].kind == SW_UPDATE,
			                 i + (size_t)(s->n_stages / s->n_ranks) >= n);
}

/* What is found plays, in the time that is said, within memory, above the bound, which has the
 * updates, and is no worse than its starts. */
static void found_schedules_hold(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 12; seed++) {
		sw_rng rng = {seed, 1};
		sw_error err = {0};
		sw_pipeline_schedule *starts[3] = {0};
		sw_pipeline_size size = {2 + (int32_t)(seed % 3), 6, 0};
		sw_pipeline_make(SW_ZB_V, size, &starts[0], &err);
		sw_pipeline_make(SW_V_MIN, size, &starts[1], &err);
		plain_costs plain = make_plain_costs(starts[0], 1, 1, 1, 0.3);
		draw(plain.costs.forward_s, starts[0]->n_stages, &rng, 2);
		for (int i = 0; i < 2 && seed % 2; i++)
			add_updates(starts[i]);
		draw(plain.costs.update_s, starts[0]->n_stages, &rng, 9);
		double limit = 4 + (double)(seed % 4);
		for (int32_t r = 0; r < size.n_ranks; r++)
			((double *)(uintptr_t)plain.costs.limit_bytes)[r] = limit;
		sw_pipeline_search_options options = {.work_limit = 200000, .seed = seed};
		sw_schedule_found found = sw_pipeline_search(
			(const sw_pipeline_schedule *const *)starts, &plain.costs, &options);
		sw_schedule_found again = sw_pipeline_search(
			(const sw_pipeline_schedule *const *)starts, &plain.costs, &options);
		assert_non_null(found.schedule);
		if (seed % 2)
			assert_updates_are_last(found.schedule);
		assert_true(found.step_s == again.step_s && found.played == again.played);
		sw_pipeline_played played;
		assert_int_equal(sw_pipeline_play(found.schedule, &plain.costs, &played, &err),
		                 SW_OK);
		assert_true(played.step_s == found.step_s);
		assert_int_equal(sw_pipeline_check_memory(&played, &plain.costs, &err), SW_OK);
		double bound_s = sw_pipeline_bound_of(found.schedule, &plain.costs).seconds;
		assert_true(played.step_s >= bound_s * (1 - 1e-9));
		sw_pipeline_played_free(&played);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(sw_pipeline_play(starts[i], &plain.costs, &played, &err),
			                 SW_OK);
			if (sw_pipeline_check_memory(&played, &plain.costs, &err) == SW_OK)
				assert_true(found.step_s <= played.step_s);
			sw_pipeline_played_free(&played);
			sw_pipeline_free(starts[i]);
		}
		sw_pipeline_free(found.schedule);
		sw_pipeline_free(again.schedule);
		clear_plain_costs(&plain);
	}
}

static void too_little_memory(void **state)
{
	(void)state;
	sw_error err = {0};
	sw_pipeline_schedule *s;
	sw_pipeline_make(SW_1F1B, (sw_pipeline_size){2, 4, 0}, &s, &err);
	plain_costs plain = make_plain_costs(s, 1, 1, 1, 0);
	((double *)(uintptr_t)plain.costs.limit_bytes)[0] = 0.5;
	const sw_pipeline_schedule *starts[] = {s, NULL};
	sw_pipeline_search_options options = {0};
	assert_null(sw_pipeline_search(starts, &plain.costs, &options).schedule);
	clear_plain_costs(&plain);
	sw_pipeline_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_pipelines),
		cmocka_unit_test(found_schedules_hold),
		cmocka_unit_test(too_little_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
