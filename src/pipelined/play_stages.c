/* The schedule of a plan with stages: the quickest of those that were asked for, as it is played.
 */
#include <math.h>
#include <stdlib.h>

#include "pipelined/internal.h"

/* Those that are tried, in this order. DualPipe is none: it has two copies of the model. */
static const sw_named_schedule tried[] = {SW_1F1B,   SW_EAGER_1F1B, SW_ZB_H1,
                                          SW_ZB_2P,  SW_GPIPE,      SW_ZB_V,
                                          SW_V_HALF, SW_V_MIN,      SW_INTERLEAVED_1F1B};

/* Seconds of each stage in which the optimizer's rounds wait for those of other stages. */
static double rounds_s(const sw_pipelined *p)
{
	int64_t last = p->cluster->n_devices - 1;
	return (p->cut.n_rounds - 1) * sw_cost_pair(p->cluster, 0, last, sizeof(float));
}

void sw_pipelined_fill_costs(sw_pipelined *p, int64_t memory_bytes)
{
	enum { ROWS = 10 };
	int32_t d = p->n_stages;
	double *rows[ROWS];
	for (int r = 0; r < ROWS; r++)
		rows[r] = SW_NEW_N(&p->arena, double, d);
	for (int32_t i = 0; i < d; i++) {
		const sw_planned_stage *s = &p->stages[i];
		/* Between stages of one slice, conversions are part of the passes that read. */
		bool above = i && p->stages[i - 1].rank == s->rank,
		     below = i + 1 < d && p->stages[i + 1].rank == s->rank;
		double converted_s = above ? p->stages[i - 1].send_forward_s : 0,
		       back_s = below ? s->send_backward_s : 0;
		const double values[ROWS - 2] = {s->times.part_s[SW_STAGE_FORWARD] + converted_s,
		                                 s->times.part_s[SW_STAGE_INPUT_GRADIENT] + back_s,
		                                 s->times.part_s[SW_STAGE_WEIGHT_GRADIENT],
		                                 s->send_forward_s,
		                                 i ? p->stages[i - 1].send_backward_s : 0,
		                                 s->times.part_s[SW_STAGE_ONCE] + rounds_s(p),
		                                 (double)s->times.activation_bytes,
		                                 (double)s->times.activation_bytes};
		for (int r = 0; r < ROWS - 2; r++)
			rows[r][i] = values[r];
		rows[ROWS - 2][s->rank] += (double)s->times.fixed_bytes;
		rows[ROWS - 1][s->rank] = (double)memory_bytes;
	}
	double *none = SW_NEW_N(&p->arena, double, d);
	p->costs = (sw_pipeline_costs){.forward_s = rows[0],
	                               .input_gradient_s = rows[1],
	                               .weight_gradient_s = rows[2],
	                               .send_forward_s = rows[3],
	                               .send_backward_s = rows[4],
	                               .gather_s = none,
	                               .reduce_s = none,
	                               .update_s = rows[5],
	                               .activation_bytes = rows[6],
	                               .gradient_bytes = rows[7],
	                               .fixed_bytes = rows[8],
	                               .limit_bytes = rows[9]};
}

static bool is_updated(const sw_action_list *list, int32_t stage)
{
	for (size_t i = 0; i < list->len; i++)
		if (list->data[i].kind == SW_UPDATE && list->data[i].stage == stage)
			return true;
	return false;
}

/* The schedule of a file, or a named one, with an update of each stage. */
static sw_status make_schedule(const sw_pipelined *p, sw_named_schedule which,
                               sw_pipeline_schedule **schedule, sw_error *err)
{
	sw_pipeline_size size = {p->n_ranks, p->microbatches, p->n_stages / p->n_ranks};
	if (p->given)
		*schedule = sw_pipeline_copy(p->given);
	else
		SW_TRY(sw_pipeline_make(which, size, schedule, err));
	for (int32_t i = 0; i < p->n_stages; i++) {
		sw_action_list *list = &(*schedule)->lists[p->stages[i].rank];
		if (!is_updated(list, i))
			sw_vec_push(list, ((sw_action){SW_UPDATE, i, -1}));
	}
	return SW_OK;
}

static bool all_fit(const sw_pipeline_played *played)
{
	for (int32_t r = 0; r < played->schedule->n_ranks; r++)
		if (played->ranks[r].excess_bytes > 0)
			return false;
	return true;
}

static double most_bytes(const sw_pipeline_played *played)
{
	double most = 0;
	for (int32_t r = 0; r < played->schedule->n_ranks; r++)
		most = SW_MAX(most, played->ranks[r].peak_bytes);
	return most;
}

/* What fits is better than what does not; then what is quicker, or where nothing fits what is
 * smaller. Of equals, the earlier in the list. */
static bool is_better(bool fits, const sw_pipeline_played *a, bool other_fits,
                      const sw_pipeline_played *b)
{
	if (!b->schedule || fits != other_fits)
		return !b->schedule || fits;
	return fits ? a->step_s < b->step_s * (1 - 1e-9) : most_bytes(a) < most_bytes(b);
}

/* The bound of any order of these passes: within the memory, if this one is. */
static sw_pipeline_bound bound_of(const sw_pipelined *p, const sw_pipeline_schedule *schedule,
                                  bool fits)
{
	sw_pipeline_costs costs = p->costs;
	double *none = sw_alloc(sizeof(double) * (size_t)p->n_ranks);
	for (int32_t r = 0; r < p->n_ranks; r++)
		none[r] = INFINITY;
	if (!fits)
		costs.limit_bytes = none;
	sw_pipeline_bound bound = sw_pipeline_bound_of(schedule, &costs);
	free(none);
	return bound;
}

static sw_status try_schedule(sw_pipelined *p, sw_named_schedule which, sw_error *err)
{
	sw_pipeline_schedule *schedule = NULL;
	sw_pipeline_played played = {0};
	sw_status status = make_schedule(p, which, &schedule, err);
	if (status == SW_OK)
		status = sw_pipeline_play(schedule, &p->costs, &played, err);
	if (status == SW_OK) {
		bool fits = all_fit(&played);
		p->limited |= !fits;
		if (is_better(fits, &played, p->fits, &p->played)) {
			sw_pipeline_played_free(&p->played);
			p->played = played;
			p->schedule = which;
			p->fits = fits;
			p->bound = bound_of(p, schedule, fits);
		} else {
			sw_pipeline_played_free(&played);
		}
	}
	sw_pipeline_free(schedule);
	return status;
}

/* Is the schedule one of stages that are placed like these? */
static bool is_placed_so(const sw_pipelined *p, sw_named_schedule which)
{
	return sw_pipeline_placement_of(which) == p->placement &&
	       (p->n_stages == p->n_ranks) == (sw_pipeline_chunks_of(which) == 1);
}

/* The search plays so many schedules, of so many actions together at most; and an order is taken
 * that is quicker by so much. */
#define SEARCH_SCHEDULES 4000
#define SEARCH_ACTIONS 5000000
#define SEARCH_GAIN 0.001

sw_status sw_pipelined_search_order(sw_pipelined *p, double time_limit_s, sw_error *err)
{
	sw_pipeline_schedule *starts[SW_COUNT(tried) + 1] = {0};
	size_t n = 0;
	int64_t actions = sw_pipeline_length(p->played.schedule);
	if (time_limit_s <= 0)
		return SW_OK;
	for (size_t i = 0; i < SW_COUNT(tried); i++)
		if (is_placed_so(p, tried[i]) &&
		    make_schedule(p, tried[i], &starts[n], err) == SW_OK)
			n++;
	sw_pipeline_search_options options = {
		.work_limit = SW_MIN(SEARCH_SCHEDULES * actions, (int64_t)SEARCH_ACTIONS),
		.time_limit_s = isfinite(time_limit_s) ? time_limit_s : 0};
	sw_schedule_found found = sw_pipeline_search((const sw_pipeline_schedule *const *)starts,
	                                             &p->costs, &options);
	sw_status status = SW_OK;
	if (found.schedule && found.step_s < p->played.step_s * (1 - SEARCH_GAIN)) {
		sw_pipeline_played_free(&p->played);
		status = sw_pipeline_play(found.schedule, &p->costs, &p->played, err);
		/* It may have weight gradients apart, which the named one has not. */
		p->bound = bound_of(p, found.schedule, true);
		p->given = found.schedule;
		p->searched = true;
		p->schedule = SW_NAMED_SCHEDULES;
		found.schedule = NULL;
	}
	sw_pipeline_free(found.schedule);
	for (size_t i = 0; i < n; i++)
		sw_pipeline_free(starts[i]);
	return status;
}

sw_status sw_pipelined_check_schedule(int32_t schedule, sw_error *err)
{
	for (size_t i = 0; i < SW_COUNT(tried); i++)
		if (schedule < 0 || schedule == (int32_t)tried[i])
			return SW_OK;
	return sw_fail(err, SW_ERR_INPUT,
	               "--schedule %s: it has two copies of the model; expected auto, gpipe, 1f1b, "
	               "eager-1f1b, interleaved-1f1b, zb-h1, zb-2p, zb-v, v-half or v-min",
	               sw_pipeline_name((sw_named_schedule)schedule));
}

sw_status sw_pipelined_find_schedule(sw_pipelined *p, int32_t schedule, sw_error *err)
{
	sw_error why = {0};
	sw_pipeline_played_free(&p->played);
	p->played = (sw_pipeline_played){0};
	p->fits = p->limited = false;
	if (p->given)
		return try_schedule(p, SW_NAMED_SCHEDULES, err);
	for (size_t i = 0; i < SW_COUNT(tried); i++) {
		bool asked =
			schedule < 0 ? is_placed_so(p, tried[i]) : schedule == (int32_t)tried[i];
		sw_status status = asked ? try_schedule(p, tried[i], &why) : SW_OK;
		/* Some have no schedule of some sizes. */
		if (status && (schedule >= 0 || status != SW_ERR_INPUT)) {
			*err = why;
			return status;
		}
	}
	if (p->played.schedule)
		return SW_OK;
	*err = why;
	return SW_ERR_INPUT;
}
