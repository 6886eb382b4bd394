/* Other cuts of a plan: by the seconds that its plans give each op, and the bytes that cross at each
 * position, the step of any cuts is played. What the cut of a program does not know counts: what is
 * done once a step, with few microbatches how long it takes until the last stage begins and the first
 * one ends, and the schedule. */
#include <math.h>
#include <string.h>

#include "pipelined/stage_trials.h"

/* Actions of the schedules that are played. */
#define PLAYED_ACTIONS 4000000
/* The largest and the least part of a stage that is moved to another one, as powers of a half. */
#define LARGEST_PART 1
#define LEAST_PART 5

typedef struct cut_mover {
	const sw_pipelined *planned;
	const sw_pipelined_options *options;
	sw_arena arena;
	int32_t n, d;        /* positions, stages */
	sw_stages finest;    /* each position is a stage of its own */
	const double *speed; /* [d] */
	/* [n + 1]: seconds, at a speed of 1, of what stands before each position; of a microbatch, the
	 * first three together. */
	double *before_s[SW_STAGE_PARTS], *all_before_s;
	double *byte_s; /* [d - 1]: of a byte that crosses each cut */
	int32_t schedule; /* -1: any */
	int64_t left;     /* actions that may still be played */
	double step_s;    /* of `cuts` */
	int32_t *cuts;    /* [d - 1] */
} cut_mover;

/* ---- seconds ----------------------------------------------------------------------------- */

double *sw_trials_planned_seconds(const sw_pipelined *p)
{
	double *op_s = sw_alloc(sizeof(double) * (p->looped->ops.len + 1));
	for (int32_t i = 0; i < p->n_stages; i++) {
		const sw_planned_stage *stage = &p->stages[i];
		for (size_t k = 0; k < stage->step.program->ops.len; k++)
			if (stage->step.origins[k] != SW_NO_ID)
				op_s[stage->step.origins[k]] += stage->op_s[k] * sw_pipelined_speed(p, i);
	}
	return op_s;
}

/* Make each position a stage of its own. */
static sw_status find_finest(cut_mover *x, sw_stage_store *store, const double *op_s, sw_error *err)
{
	int32_t *each = SW_NEW_N(&x->arena, int32_t, x->n);
	for (int32_t i = 0; i < x->n; i++)
		each[i] = i;
	const sw_stage_options how = {.n_stages = x->n, .op_s = op_s, .cuts = each};
	return sw_stage_store_cut(store, x->planned->looped, &how, &x->finest, err);
}

/* Set before_s. */
static void add_seconds(cut_mover *x, const double *op_s)
{
	const sw_program *p = x->planned->looped;
	sw_stages split;
	for (int k = 0; k < SW_STAGE_PARTS; k++)
		x->before_s[k] = SW_NEW_N(&x->arena, double, x->n + 1);
	x->all_before_s = SW_NEW_N(&x->arena, double, x->n + 1);
	sw_stages_split_weights(&x->planned->cut, &split);
	for (size_t i = 0; i < p->ops.len; i++) {
		int32_t v = x->finest.stage[i];
		if (v < 0)
			continue;
		int32_t at = sw_stage_physical(&x->finest, v) + 1;
		if (p->ops.data[i].computation == p->entry)
			x->before_s[SW_STAGE_ONCE][at] += op_s[i];
		else if (split.stage[i] >= 2 * x->d)
			x->before_s[SW_STAGE_WEIGHT_GRADIENT][at] += op_s[i];
	}
	sw_stages_clear(&split);
	for (int32_t i = 0; i < x->n; i++) {
		const sw_stage_load *load = &x->finest.loads[i];
		x->before_s[SW_STAGE_FORWARD][i + 1] = load->forward_s;
		x->before_s[SW_STAGE_INPUT_GRADIENT][i + 1] =
			load->backward_s - x->before_s[SW_STAGE_WEIGHT_GRADIENT][i + 1];
		for (int k = 0; k < SW_STAGE_PARTS; k++)
			x->before_s[k][i + 1] += x->before_s[k][i];
		x->all_before_s[i + 1] = x->all_before_s[i] + load->forward_s + load->backward_s;
	}
}

static int32_t first_of(const int32_t *cuts, int32_t stage)
{
	return stage ? cuts[stage - 1] + 1 : 0;
}

/* Seconds of a part of a stage with these cuts. */
static double part_s(const cut_mover *x, const int32_t *cuts, int32_t stage, int part)
{
	int32_t end = stage + 1 < x->d ? cuts[stage] + 1 : x->n;
	return (x->before_s[part][end] - x->before_s[part][first_of(cuts, stage)]) / x->speed[stage];
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 1;
}

/* Suppose the times of a stage with other cuts: those of its plan, and what else it has now. */
static void suppose(const cut_mover *x, const int32_t *cuts, int32_t stage, sw_planned_stage *s)
{
	const int32_t *was = x->planned->cut.cuts;
	double now_s[SW_STAGE_PARTS], was_s[SW_STAGE_PARTS];
	for (int k = 0; k < SW_STAGE_PARTS; k++) {
		now_s[k] = part_s(x, cuts, stage, k);
		was_s[k] = part_s(x, was, stage, k);
		s->times.part_s[k] = fmax(s->times.part_s[k] + now_s[k] - was_s[k], 0);
	}
	double kept = ratio(now_s[SW_STAGE_FORWARD], was_s[SW_STAGE_FORWARD]),
	       state = ratio(now_s[SW_STAGE_ONCE], was_s[SW_STAGE_ONCE]),
	       passing = (double)(s->times.fixed_bytes - s->times.resting_bytes);
	s->times.activation_bytes = (int64_t)((double)s->times.activation_bytes * kept);
	s->times.fixed_bytes = (int64_t)((double)s->times.resting_bytes * state + passing);
	if (stage + 1 == x->d)
		return;
	s->send_forward_s = x->byte_s[stage] * (double)x->finest.loads[cuts[stage]].forward_bytes;
	s->send_backward_s = x->byte_s[stage] * (double)x->finest.loads[cuts[stage]].backward_bytes;
}

/* Play the step with these cuts. INFINITY: it does not fit, or enough was played. */
static double step_s(cut_mover *x, const int32_t *cuts)
{
	sw_pipelined trial = *x->planned;
	sw_error ignored;
	sw_arena_init(&trial.arena);
	trial.stages = SW_NEW_N(&trial.arena, sw_planned_stage, x->d);
	trial.played = (sw_pipeline_played){0};
	trial.given = x->options->given ? x->planned->given : NULL;
	for (int32_t i = 0; i < x->d; i++) {
		trial.stages[i] = x->planned->stages[i];
		suppose(x, cuts, i, &trial.stages[i]);
	}
	sw_pipelined_fill_costs(&trial, sw_pipelined_memory(&trial, x->options));
	bool found = x->left > 0 && sw_pipelined_find_schedule(&trial, x->schedule, &ignored) == SW_OK;
	double seconds = found && trial.fits ? trial.played.step_s : INFINITY;
	x->left -= found ? sw_pipeline_length(trial.played.schedule) : 0;
	x->schedule = found && !trial.given ? (int32_t)trial.schedule : x->schedule;
	sw_pipeline_played_free(&trial.played);
	sw_arena_clear(&trial.arena);
	return seconds;
}

/* ---- moves ------------------------------------------------------------------------------- */

/* Of the places that are about so many seconds behind a cut (before it, if they are negative), where
 * the fewest bytes cross; -1: there is none. */
static int32_t place_near(const cut_mover *x, int32_t k, double behind_s)
{
	const sw_stage_load *loads = x->finest.loads;
	double target_s = x->all_before_s[x->cuts[k] + 1] + behind_s, best_s = INFINITY;
	int32_t best = -1, low = SW_MAX(x->planned->cut.low[k], k),
		high = SW_MIN(x->planned->cut.high[k], x->n - x->d + k);
	for (int32_t i = low; i <= high; i++) {
		double away_s = fabs(x->all_before_s[i + 1] - target_s);
		if (away_s > fabs(behind_s) / 3 || i == x->cuts[k])
			continue;
		double more = best < 0 ? -1
		                       : sw_stage_load_bytes(&loads[i]) - sw_stage_load_bytes(&loads[best]);
		if (more < 0 || (more <= 0 && away_s < best_s)) {
			best = i;
			best_s = away_s;
		}
	}
	return best;
}

static bool ascend(const int32_t *cuts, int32_t n)
{
	for (int32_t k = 1; k < n; k++)
		if (cuts[k] <= cuts[k - 1])
			return false;
	return true;
}

/* Move so much work between two stages, through those between them; false: the step is no shorter. */
static bool move(cut_mover *x, int32_t from, int32_t to, double seconds)
{
	int32_t *cuts = SW_NEW_N(&x->arena, int32_t, x->d);
	memcpy(cuts, x->cuts, sizeof(int32_t) * (size_t)(x->d - 1));
	for (int32_t k = from; k < to; k++) {
		cuts[k] = place_near(x, k, seconds * x->speed[k]);
		if (cuts[k] < 0)
			return false;
	}
	double shorter_s = ascend(cuts, x->d - 1) ? step_s(x, cuts) : INFINITY;
	if (!(shorter_s < x->step_s * (1 - 1e-6)))
		return false;
	x->step_s = shorter_s;
	x->cuts = cuts;
	return true;
}

/* Move work between any two stages, ever less of it, as long as steps become shorter. */
static void move_all(cut_mover *x)
{
	double mean_s = x->all_before_s[x->n] / x->d;
	bool moved = true;
	while (moved) {
		moved = false;
		for (int part = LARGEST_PART; part <= LEAST_PART; part++)
			for (int32_t from = 0; from < x->d; from++)
				for (int32_t to = from + 1; to < x->d && x->left > 0; to++)
					moved |= move(x, from, to, ldexp(mean_s, -part)) ||
					         move(x, from, to, -ldexp(mean_s, -part));
	}
}

/* ---- the whole --------------------------------------------------------------------------- */

static void take_prices(cut_mover *x)
{
	const sw_pipelined *p = x->planned;
	double *speed = SW_NEW_N(&x->arena, double, x->d);
	x->byte_s = SW_NEW_N(&x->arena, double, x->d);
	for (int32_t i = 0; i < x->d; i++) {
		speed[i] = sw_pipelined_speed(p, i);
		if (i + 1 < x->d)
			x->byte_s[i] = sw_pipelined_planned_byte_s(p, i);
	}
	x->speed = speed;
}

double sw_trials_move_cuts(const sw_stage_search *s, const sw_pipelined *planned, const double *op_s,
                           const int32_t *other, int32_t *cuts)
{
	cut_mover x = {.planned = planned,
	               .options = s->options,
	               .n = planned->cut.n_positions,
	               .d = planned->n_stages,
	               .schedule = s->options->schedule,
	               .left = PLAYED_ACTIONS};
	sw_error ignored;
	sw_arena_init(&x.arena);
	double was_s = 0;
	if (find_finest(&x, s->store, op_s, &ignored) == SW_OK) {
		take_prices(&x);
		add_seconds(&x, op_s);
		x.cuts = (int32_t *)(uintptr_t)planned->cut.cuts;
		was_s = x.step_s = step_s(&x, x.cuts);
		double other_s = other ? step_s(&x, other) : INFINITY;
		if (other_s < x.step_s) {
			x.step_s = other_s;
			x.cuts = (int32_t *)(uintptr_t)other;
		}
		move_all(&x);
		memcpy(cuts, x.cuts, sizeof(int32_t) * (size_t)(x.d - 1));
		sw_stages_clear(&x.finest);
	}
	double gain = was_s > 0 && isfinite(was_s) ? 1 - x.step_s / was_s : 0;
	sw_arena_clear(&x.arena);
	return gain;
}
