/*
 * The fit of links: numerical, on the formulas themselves.
 *
 * The unknowns are ln latency, ln bandwidth (of a level, or of each of its parts), ln
 * (flow_bandwidth / least bandwidth) <= 0, and contention >= 0, of each level that anything
 * crosses. First each unknown is searched alone by factors, with large steps at first (the guess
 * may be wrong by orders of magnitude, and the formulas have kinks, where no derivative shows the
 * direction); then all together by Gauss-Newton steps with Levenberg and Marquardt's damping.
 * Derivatives are central differences. A weak prior at the guess keeps the unknowns that no point
 * depends on in place.
 */
#include "cost/fit.h"
#include "cost/least_squares.h"
#include "cost/link_unknowns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT_BOUND 1e-2              /* a coordinate this near to its bound is held there */
#define MIN_SCALE 2e-3             /* residuals (ln) below this count as equal */
#define HALF_WEIGHT_DEVIATION 0.05 /* a point with this relative deviation has half the weight */
#define DIFFERENCE_STEP 1e-4       /* step of a central difference */
#define ROUNDS 6                   /* rounds of search, weights and steps */
#define STARTS 4                   /* number of starts, the guess included */
/* No other start is tried once the scale of the residuals (ln) is at most this. */
#define GOOD_SCALE 0.04
#define MAX_START_DISTANCE 3 /* of a start from the guess, in ln: a factor of 20 */
#define MAX_STEPS 25         /* Gauss-Newton steps in a round */
/* A figure counts as seen if the fit becomes clearly worse when the figure is held this far away.
 */
#define HELD_DISTANCE 0.5
#define MAX_SEEN_ERROR 0.5 /* a figure with a larger relative standard error is not seen */

/* ---- the loss -------------------------------------------------------------------------- */

static double data_loss(link_fit *f, double scale)
{
	double sum = 0;
	fill_residuals(f, f->residuals);
	for (int32_t i = 0; i < f->n_points; i++)
		sum += f->trust[i] * robust_loss(f->residuals[i], scale);
	return sum;
}

static double loss(link_fit *f, double scale)
{
	double sum = data_loss(f, scale);
	for (int i = 0; i < f->n; i++) {
		double away = f->x[i] - f->unknowns[i].guess;
		sum += f->unknowns[i].prior * away * away;
	}
	return sum;
}

static double present_scale(link_fit *f)
{
	fill_residuals(f, f->residuals);
	return robust_scale(f->residuals, f->n_points, MIN_SCALE, f->scratch);
}

/* Move one unknown up or down by `step`, as long as the loss decreases. */
static double search_along(link_fit *f, int i, double step, double scale, double best)
{
	for (int sign = -1; sign <= 1; sign += 2) {
		for (int tries = 0; tries < 40; tries++) {
			double before = f->x[i],
			       x = fmin(fmax(before + sign * step, f->unknowns[i].min),
			                f->unknowns[i].max);
			f->x[i] = x;
			double now = x != before ? loss(f, scale) : INFINITY;
			if (!(now < best)) {
				f->x[i] = before;
				break;
			}
			best = now;
		}
	}
	return best;
}

static void search(link_fit *f, double step)
{
	double scale = fmax(present_scale(f), 0.02), best = loss(f, scale);
	for (int i = 0; i < f->n; i++)
		best = search_along(f, i, step, scale, best);
}

/* ---- Gauss-Newton ---------------------------------------------------------------------- */

static void fill_jacobian(link_fit *f)
{
	for (int j = 0; j < f->n; j++) {
		const unknown *u = &f->unknowns[j];
		double x = f->x[j], high = fmin(x + DIFFERENCE_STEP, u->max),
		       low = fmax(x - DIFFERENCE_STEP, u->min);
		f->x[j] = high;
		fill_residuals(f, f->scratch);
		for (int32_t i = 0; i < f->n_points; i++)
			f->jacobian[(int64_t)i * f->n + j] = f->scratch[i];
		f->x[j] = low;
		fill_residuals(f, f->scratch);
		for (int32_t i = 0; i < f->n_points; i++) {
			double *d = &f->jacobian[(int64_t)i * f->n + j];
			/* 0: held at a bound */
			*d = high > low ? (*d - f->scratch[i]) / (high - low) : 0;
		}
		f->x[j] = x;
	}
}

/* Compute J' W J and J' W r, with the priors scaled by `share`. */
static void fill_normal(const link_fit *f, double share, double *hessian, double *gradient)
{
	int n = f->n;
	memset(hessian, 0, (size_t)(n * n) * sizeof(*hessian));
	for (int j = 0; j < n; j++) {
		hessian[j * n + j] = share * f->unknowns[j].prior;
		gradient[j] = hessian[j * n + j] * (f->x[j] - f->unknowns[j].guess);
	}
	for (int32_t i = 0; i < f->n_points; i++) {
		const double *row = &f->jacobian[(int64_t)i * n];
		for (int j = 0; j < n; j++) {
			gradient[j] += f->weights[i] * row[j] * f->residuals[i];
			for (int k = 0; k < n; k++)
				hessian[j * n + k] += f->weights[i] * row[j] * row[k];
		}
	}
}

/* Try steps with increasing damping until one decreases the loss. Return false if none does. */
static bool take_step(link_fit *f, const double *hessian, const double *gradient, double scale,
                      double *damping, double *best)
{
	int n = f->n;
	double *work = sw_alloc((size_t)(n * n + 2 * n) * sizeof(double)), *step = work + n * n,
	       *before = step + n;
	bool helped = false;
	memcpy(before, f->x, (size_t)n * sizeof(double));
	for (int tries = 0; tries < 12 && !helped; tries++) {
		memcpy(work, hessian, (size_t)(n * n) * sizeof(double));
		for (int j = 0; j < n; j++) {
			work[j * n + j] *= 1 + *damping;
			step[j] = -gradient[j];
		}
		if (symmetric_factor(work, n))
			symmetric_solve(work, n, step);
		for (int j = 0; j < n; j++)
			f->x[j] = fmin(
				fmax(before[j] + fmin(fmax(step[j], -1), 1), f->unknowns[j].min),
				f->unknowns[j].max);
		double now = loss(f, scale);
		helped = now < *best - 1e-12 * fabs(*best);
		*best = helped ? now : *best;
		*damping = helped ? *damping / 4 : *damping * 8 + 1e-6;
	}
	if (!helped)
		memcpy(f->x, before, (size_t)n * sizeof(double));
	free(work);
	return helped;
}

static void descend(link_fit *f, double *hessian, double *gradient)
{
	double scale = present_scale(f), damping = 1e-3, best = loss(f, scale);
	bool helped = true;
	for (int s = 0; s < MAX_STEPS && helped; s++) {
		fill_residuals(f, f->residuals);
		for (int32_t i = 0; i < f->n_points; i++)
			f->weights[i] = f->trust[i] * robust_weight(f->residuals[i], scale);
		fill_jacobian(f);
		fill_normal(f, 1, hessian, gradient);
		helped = take_step(f, hessian, gradient, scale, &damping, &best);
	}
}

/* ---- starts ----------------------------------------------------------------------------- */

/* Start at the guess, and later at other places around it, because the descent from one start may
 * end in a local minimum. */
static void start_at(link_fit *f, int start)
{
	for (int j = 0; j < f->n; j++) {
		const unknown *u = &f->unknowns[j];
		double away =
			start ? MAX_START_DISTANCE *
					(2 * sw_random_unit(0, (uint64_t)start, (uint64_t)j) - 1)
			      : 0;
		bool shared = u->figure == FLOW || u->figure == CONTENTION;
		f->x[j] = shared ? u->guess : fmin(fmax(u->guess + away, u->min), u->max);
	}
}

static double absolute_loss(link_fit *f)
{
	double sum = 0;
	fill_residuals(f, f->residuals);
	for (int32_t i = 0; i < f->n_points; i++)
		sum += f->trust[i] * fabs(f->residuals[i]);
	return sum;
}

static void fit_from(link_fit *f, int start, double *hessian, double *gradient)
{
	start_at(f, start);
	for (int round = 0; round < ROUNDS; round++) {
		search(f, ldexp(2, -round));
		search(f, ldexp(0.5, -round));
		descend(f, hessian, gradient);
	}
}

static void fit_from_all(link_fit *f, double *hessian, double *gradient)
{
	double best = INFINITY, *x = sw_alloc((size_t)f->n * sizeof(*x));
	for (int start = 0; start < STARTS && (start == 0 || present_scale(f) > GOOD_SCALE);
	     start++) {
		fit_from(f, start, hessian, gradient);
		double now = absolute_loss(f);
		if (!(now < best))
			continue;
		best = now;
		memcpy(x, f->x, (size_t)f->n * sizeof(*x));
	}
	memcpy(f->x, x, (size_t)f->n * sizeof(*x));
	descend(f, hessian, gradient);
	free(x);
}

/* ---- the result ------------------------------------------------------------------------ */

static int flow_of(const link_fit *f, int32_t level)
{
	for (int j = 0; j < f->n; j++)
		if (f->unknowns[j].level == level && f->unknowns[j].figure == FLOW)
			return j;
	return -1;
}

/* Return the loss with one figure held at a distance `step` and all others fitted again. The start
 * keeps the bandwidth of a single flow, not its fraction of the link's. */
static double loss_when_held(link_fit *f, int j, double step, double scale, double *hessian,
                             double *gradient)
{
	unknown saved = f->unknowns[j];
	int flow = saved.figure == BANDWIDTH && saved.part < 0 ? flow_of(f, saved.level) : -1;
	double *before = sw_alloc((size_t)f->n * sizeof(double));
	memcpy(before, f->x, (size_t)f->n * sizeof(double));
	f->x[j] += step;
	f->unknowns[j].min = f->unknowns[j].max = f->x[j];
	if (flow >= 0)
		f->x[flow] = fmin(f->x[flow] - step, 0);
	descend(f, hessian, gradient);
	double away = data_loss(f, scale);
	f->unknowns[j] = saved;
	memcpy(f->x, before, (size_t)f->n * sizeof(double));
	free(before);
	return away;
}

/* Return whether the fit becomes clearly worse when the figure is moved to either side and held
 * there. A derivative does not show this where the formulas have a kink. A figure at its bound is
 * moved inwards only. */
static bool is_seen(link_fit *f, int j, double variance, double deviation, double *hessian,
                    double *gradient)
{
	double x = f->x[j], scale = present_scale(f), fitted = data_loss(f, scale),
	       worse = INFINITY;
	if (!(deviation < MAX_SEEN_ERROR))
		return false;
	for (int sign = -1; sign <= 1; sign += 2)
		if (x + sign * HELD_DISTANCE >= f->unknowns[j].min &&
		    x + sign * HELD_DISTANCE <= f->unknowns[j].max)
			worse = fmin(worse, loss_when_held(f, j, sign * HELD_DISTANCE, scale,
			                                   hessian, gradient) -
			                            fitted);
	return worse > 4 * variance && isfinite(worse);
}

static void describe(const link_fit *f, const unknown *u, double deviation, bool seen,
                     sw_arena *arena, sw_fit_parameter *p)
{
	static const char *const names[] = {"latency", "bandwidth", "flow bandwidth", "contention"};
	static const sw_fit_unit units[] = {SW_FIT_SECONDS, SW_FIT_BYTES_PER_S, SW_FIT_BYTES_PER_S,
	                                    SW_FIT_NUMBER};
	const sw_level *level = &f->trial.levels[u->level];
	const double values[] = {level->latency_s, level->bandwidth, level->flow_bandwidth,
	                         level->contention};
	char part[32] = "";
	if (u->part >= 0)
		snprintf(part, sizeof(part), " %d", u->part);
	*p = (sw_fit_parameter){
		.name = sw_arena_printf(arena, "%s%s %s", level->name, part, names[u->figure]),
		.unit = units[u->figure],
		.value = u->part >= 0 ? level->part_bandwidth[u->part] : values[u->figure],
		.error = deviation,
		.seen = seen};
}

static double residual_variance(const link_fit *f)
{
	double sum = 0, weight = 0;
	for (int32_t i = 0; i < f->n_points; i++) {
		sum += f->weights[i] * f->residuals[i] * f->residuals[i];
		weight += f->weights[i];
	}
	return fmax(sum / fmax(weight - f->n, 1), MIN_SCALE * MIN_SCALE);
}

/* Compute the variances: the residuals' variance times the inverse of J' W J, in which the prior
 * has almost no weight here. A figure at its bound is held there: its variance is computed as if
 * all others were known, and it is left out of theirs. */
static void fill_variances(link_fit *f, double *hessian, double *gradient, double variance,
                           double *variances)
{
	int n = f->n;
	fill_jacobian(f);
	fill_normal(f, 1e-6, hessian, gradient);
	for (int j = 0; j < n; j++) {
		if (f->x[j] > f->unknowns[j].min + AT_BOUND &&
		    f->x[j] < f->unknowns[j].max - AT_BOUND)
			continue;
		for (int k = 0; k < n; k++)
			if (k != j)
				hessian[j * n + k] = hessian[k * n + j] = 0;
	}
	if (symmetric_factor(hessian, n))
		symmetric_inverse_diagonal(hessian, n, variances);
	for (int j = 0; j < n; j++)
		variances[j] = variances[j] > 0 ? variances[j] * variance : INFINITY;
}

static void fill_parameters(link_fit *f, double *hessian, double *gradient, sw_arena *arena,
                            sw_fit *fit)
{
	double *variances = SW_NEW_N(arena, double, f->n);
	fill_residuals(f, f->residuals);
	double variance = residual_variance(f);
	fill_variances(f, hessian, gradient, variance, variances);
	fit->n_parameters = f->n;
	fit->parameters = SW_NEW_N(arena, sw_fit_parameter, f->n);
	for (int j = 0; j < f->n; j++) {
		bool seen = is_seen(f, j, variance, sqrt(variances[j]), hessian, gradient);
		set_figures(f);
		describe(f, &f->unknowns[j], sqrt(variances[j]), seen, arena, &fit->parameters[j]);
	}
}

static void fill_errors(link_fit *f, sw_fit *fit)
{
	fit->n_points = f->n_points;
	for (int32_t i = 0; i < f->n_points; i++) {
		sw_link_point *point = &f->points[i];
		point->fitted_s = predict(&f->trial, point);
		f->scratch[i] = fabs(point->fitted_s - point->seconds) / point->seconds;
	}
	fit->median_error = median_of(f->scratch, f->n_points);
	/* median_of has sorted them */
	fit->worst_error = f->n_points ? f->scratch[f->n_points - 1] : 0;
}

static void init(link_fit *f, sw_arena *arena)
{
	int32_t n = f->n_points;
	f->trial = *f->shape;
	f->trial.calibration = (sw_calibration){0};
	for (int32_t l = 0; l < f->shape->n_levels; l++) {
		const double *given = f->shape->levels[l].part_bandwidth;
		if (given)
			f->part_bandwidth[l] = sw_arena_copy(
				arena, given, (size_t)count_parts(f->shape, l) * sizeof(double));
		f->trial.levels[l].part_bandwidth = f->part_bandwidth[l];
	}
	list_unknowns(f, arena);
	f->trust = SW_NEW_N(arena, double, n);
	f->residuals = SW_NEW_N(arena, double, n);
	f->weights = SW_NEW_N(arena, double, n);
	f->scratch = SW_NEW_N(arena, double, n);
	f->jacobian = SW_NEW_N(arena, double, (int64_t)n * f->n);
	for (int32_t i = 0; i < n; i++) {
		double unsure =
			f->points[i].deviation_s / (HALF_WEIGHT_DEVIATION * f->points[i].seconds);
		f->trust[i] = 1 / (1 + unsure * unsure);
	}
}

void sw_fit_links(const sw_cluster *shape, sw_link_point *points, int32_t n, sw_arena *arena,
                  sw_level *levels, sw_fit *fit)
{
	link_fit f = {.shape = shape, .points = points, .n_points = n};
	*fit = (sw_fit){0};
	init(&f, arena);
	double *hessian = SW_NEW_N(arena, double, f.n *f.n),
	       *gradient = SW_NEW_N(arena, double, f.n);
	if (n > 0 && f.n > 0)
		fit_from_all(&f, hessian, gradient);
	fill_parameters(&f, hessian, gradient, arena, fit);
	fill_errors(&f, fit);
	memcpy(levels, f.trial.levels, (size_t)shape->n_levels * sizeof(*levels));
}
