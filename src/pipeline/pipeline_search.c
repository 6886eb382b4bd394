/* The search for a quick schedule within memory: from the best start, actions are moved within
 * their rank's list, most of them to where the rank is idle. A move that makes the step no longer
 * is kept; now and then a slightly worse one is, and the best schedule is remembered. */
#include <math.h>
#include <string.h>

#include "pipeline/internal.h"
#include "pipeline/limits.h"

typedef struct schedule_search {
	const sw_pipeline_costs *costs;
	sw_rng rng;
	int64_t work, work_limit;
	double until_s; /* on the clock; 0: no limit */
	double bound_s;
	sw_pipeline_schedule *now;
	sw_pipeline_played played; /* of `now` */
	sw_schedule_found best;
} schedule_search;

/* ---- starts ----------------------------------------------------------------------------- */

/* Backward passes become two, one behind the other. */
static sw_pipeline_schedule *split_backwards(const sw_pipeline_schedule *from)
{
	sw_pipeline_schedule *s = sw_pipeline_without_transfers(from);
	for (int32_t r = 0; r < s->n_ranks; r++) {
		sw_action_list all = s->lists[r];
		s->lists[r] = (sw_action_list){0};
		for (size_t i = 0; i < all.len; i++) {
			sw_action a = all.data[i];
			bool full = a.kind == SW_BACKWARD;
			if (full)
				a.kind = SW_INPUT_GRADIENT;
			sw_vec_push(&s->lists[r], a);
			a.kind = SW_WEIGHT_GRADIENT;
			if (full)
				sw_vec_push(&s->lists[r], a);
		}
		sw_vec_clear(&all);
	}
	return s;
}

/* One microbatch after the other, which takes least memory; then the updates. */
static sw_pipeline_schedule *one_by_one(const sw_pipeline_schedule *like, bool splits)
{
	sw_pipeline_schedule *s = sw_pipeline_without_transfers(like);
	for (int32_t r = 0; r < s->n_ranks; r++)
		s->lists[r].len = 0;
	for (int32_t j = 0; j < s->n_microbatches; j++)
		for (int32_t k = 0; k < 2 * s->n_stages; k++) {
			bool forward = k < s->n_stages;
			int32_t v = forward ? k : 2 * s->n_stages - 1 - k;
			sw_action_list *list = &s->lists[s->rank_of_stage[v]];
			if (!sw_stage_takes(s, v, j))
				continue;
			sw_action_kind kind = forward  ? SW_FORWARD
			                      : splits ? SW_INPUT_GRADIENT
			                               : SW_BACKWARD;
			sw_vec_push(list, ((sw_action){kind, v, j}));
			if (!forward && splits)
				sw_vec_push(list, ((sw_action){SW_WEIGHT_GRADIENT, v, j}));
		}
	for (int32_t r = 0; r < s->n_ranks; r++)
		for (size_t i = 0; i < like->lists[r].len; i++)
			if (like->lists[r].data[i].kind == SW_UPDATE)
				sw_vec_push(&s->lists[r], like->lists[r].data[i]);
	return s;
}

static bool fits(const sw_pipeline_played *played)
{
	for (int32_t r = 0; r < played->schedule->n_ranks; r++)
		if (played->ranks[r].excess_bytes > 0)
			return false;
	return true;
}

/* Play a schedule. Returns false, and nothing to free, if it deadlocks or does not fit. */
static bool try_schedule(schedule_search *x, const sw_pipeline_schedule *s,
                         sw_pipeline_played *played)
{
	x->work += sw_pipeline_length(s);
	x->best.played++;
	if (sw_pipeline_play_checked(s, x->costs, played, NULL))
		return false;
	if (fits(played))
		return true;
	sw_pipeline_played_free(played);
	return false;
}

static void take(schedule_search *x, sw_pipeline_schedule *s, sw_pipeline_played *played)
{
	if (x->now != s) {
		sw_pipeline_free(x->now);
		x->now = s;
	}
	sw_pipeline_played_free(&x->played);
	x->played = *played;
	if (!x->best.schedule || played->step_s < x->best.step_s) {
		sw_pipeline_free(x->best.schedule);
		x->best.schedule = sw_pipeline_copy(s);
		x->best.step_s = played->step_s;
	}
}

/* Begin with a schedule, which becomes the search's own, if it is the best so far. */
static void offer(schedule_search *x, sw_pipeline_schedule *s)
{
	sw_pipeline_played played;
	if (!try_schedule(x, s, &played)) {
		sw_pipeline_free(s);
	} else if (!x->now || played.step_s < x->played.step_s) {
		take(x, s, &played);
	} else {
		sw_pipeline_played_free(&played);
		sw_pipeline_free(s);
	}
}

static void begin(schedule_search *x, const sw_pipeline_schedule *const starts[])
{
	bool splits = false;
	for (size_t i = 0; starts[i]; i++)
		splits |= sw_pipeline_has(starts[i], SW_INPUT_GRADIENT);
	for (size_t i = 0; starts[i]; i++)
		offer(x, splits ? split_backwards(starts[i])
		                : sw_pipeline_without_transfers(starts[i]));
	offer(x, one_by_one(starts[0], splits));
	if (x->now)
		x->bound_s = sw_pipeline_bound_of(x->now, x->costs).seconds;
}

/* ---- moves ------------------------------------------------------------------------------ */

static bool same_action(sw_action a, sw_action b)
{
	/* An input gradient stands for a backward as well. */
	sw_action_kind x = a.kind == SW_BACKWARD ? SW_INPUT_GRADIENT : a.kind,
		       y = b.kind == SW_BACKWARD ? SW_INPUT_GRADIENT : b.kind;
	return x == y && a.stage == b.stage && a.microbatch == b.microbatch;
}

static bool is_pass(sw_action a)
{
	return sw_action_is_compute(a.kind);
}

/* Has b to stand before a? Passes stay on their side of what is no pass, such as an update. */
static bool needs(const sw_pipeline_schedule *s, sw_action a, sw_action b)
{
	if (!is_pass(a) || !is_pass(b))
		return true;
	return same_action(sw_action_needs(s, a, 0), b) || same_action(sw_action_needs(s, a, 1), b);
}

/* Move the action at `from` to `to`, or as far as what it needs, or what needs it, lets it. */
static void move_action(const sw_pipeline_schedule *s, sw_action_list *list, int64_t from,
                        int64_t to)
{
	sw_action a = list->data[from];
	int64_t at = from;
	while (at > to && !needs(s, a, list->data[at - 1])) {
		list->data[at] = list->data[at - 1];
		at--;
	}
	while (at < to && !needs(s, list->data[at + 1], a)) {
		list->data[at] = list->data[at + 1];
		at++;
	}
	list->data[at] = a;
}

/* The rank's computations in order, as the player saw them: return the index, in `now`, of one that
 * begins after the rank was idle; -1: there is none. */
static int64_t idle_place(schedule_search *x, int32_t rank)
{
	const sw_action_list *list = &x->played.schedule->lists[rank];
	const sw_played_action *at = x->played.actions[rank];
	int64_t index = 0, found = -1, n = 0;
	double end_s = 0;
	for (size_t i = 0; i < list->len; i++) {
		sw_action_kind kind = list->data[i].kind;
		if (kind >= SW_SEND_FORWARD && kind <= SW_RECEIVE_BACKWARD)
			continue;
		if (at[i].start_s > end_s * (1 + 1e-9) && sw_rng_below(&x->rng, ++n) == 0)
			found = index;
		end_s = at[i].end_s;
		index++;
	}
	return found;
}

/* Move an action of some rank: three times of four one from later on to where the rank is idle. */
static void change(schedule_search *x, sw_pipeline_schedule *s)
{
	int32_t rank = (int32_t)sw_rng_below(&x->rng, s->n_ranks);
	sw_action_list *list = &s->lists[rank];
	int64_t n = (int64_t)list->len, to = -1, from;
	if (n < 2)
		return;
	if (sw_rng_below(&x->rng, 4))
		to = idle_place(x, rank);
	int64_t reach = 1 + sw_rng_below(&x->rng, SW_MIN(n, 6 * (int64_t)s->n_ranks + 6));
	if (to >= 0) {
		from = SW_MIN(to + reach, n - 1);
	} else {
		from = sw_rng_below(&x->rng, n);
		to = from + (sw_rng_below(&x->rng, 2) ? reach : -reach);
		to = SW_MIN(SW_MAX(to, 0), n - 1);
	}
	move_action(s, list, from, to);
}

static bool may_go_on(const schedule_search *x)
{
	if (x->work >= x->work_limit || (x->until_s > 0 && sw_now_s() > x->until_s))
		return false;
	return x->best.step_s > x->bound_s * (1 + SW_PIPELINE_GAP);
}

/* Worse schedules are accepted up to a share of the step that falls to nothing. */
static void improve(schedule_search *x)
{
	while (may_go_on(x)) {
		double left = 1 - (double)x->work / (double)x->work_limit,
		       slack = 0.01 * left * left * sw_rng_unit(&x->rng);
		sw_pipeline_schedule *s = sw_pipeline_copy(x->now);
		sw_pipeline_played played;
		int64_t changes = 1 + sw_rng_below(&x->rng, 3);
		for (int64_t i = 0; i < changes; i++)
			change(x, s);
		if (!try_schedule(x, s, &played)) {
			sw_pipeline_free(s);
		} else if (played.step_s <= x->played.step_s * (1 + slack)) {
			take(x, s, &played);
		} else {
			sw_pipeline_played_free(&played);
			sw_pipeline_free(s);
		}
	}
}

sw_schedule_found sw_pipeline_search(const sw_pipeline_schedule *const starts[],
                                     const sw_pipeline_costs *costs,
                                     const sw_pipeline_search_options *options)
{
	schedule_search x = {.costs = costs, .rng = {options->seed, 0}};
	x.work_limit = options->work_limit ? options->work_limit : SW_PIPELINE_WORK;
	x.until_s = options->time_limit_s > 0 ? sw_now_s() + options->time_limit_s : 0;
	begin(&x, starts);
	if (x.now)
		improve(&x);
	x.best.proved = x.best.schedule && x.best.step_s <= x.bound_s * (1 + SW_PIPELINE_GAP);
	sw_pipeline_free(x.now);
	sw_pipeline_played_free(&x.played);
	return x.best;
}
