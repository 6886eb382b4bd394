/*
 * The fit of kernels, by family. The terms of sw_kernel_fit are linear in overhead, seconds per
 * call and per row, and the inverse rates, so that least squares of the relative error is a system
 * of six equations. None of the six may be negative: every subset of them is tried with the others
 * zero (nonnegative least squares, Lawson and Hanson, 1974; of six unknowns there are 63 subsets).
 * Among the subsets with a positive solution, the Bayesian information criterion (Schwarz, 1978), n
 * ln(sum of squares) + ln(n) per term, selects the one that explains most with the fewest terms.
 * The rounds reweight the points, against outliers, and so that the loss is that of ln(fitted /
 * measured): a prediction of half the time counts like one of twice the time.
 *
 * The cache size is the device's, one for all families: among 0 and the powers of two up to 64 MiB,
 * the size under which all families together are fitted best.
 */
#include "cost/fit.h"
#include "cost/least_squares.h"

#include <math.h>

enum { OVERHEAD, CALLS, ROWS, FLOPS, CACHED, BYTES, TERMS };
#define ROUNDS 6       /* rounds of solving and reweighting */
#define MIN_SCALE 5e-3 /* relative residuals below this count as equal */
/* Relative residuals within which the kernels of a family differ; smaller ones are no outliers. */
#define MODEL_SCALE 0.1
#define MIN_CACHE_BYTES 16384.0    /* smallest cache size above 0 that is tried */
#define MAX_CACHE_BYTES 67108864.0 /* largest cache size that is tried */

typedef struct kernel_fit {
	int32_t n;
	/* each divided by the measured seconds, so that the fitted sum should be 1 */
	double (*rows)[TERMS];
	double *residuals, *weights, *scratch;
	double terms[TERMS];  /* seconds, in total or per unit */
	double errors[TERMS]; /* relative standard errors, 0 where the term is 0 */
} kernel_fit;

static double residual(const kernel_fit *f, int32_t i, const double *terms)
{
	double sum = -1;
	for (int t = 0; t < TERMS; t++)
		sum += terms[t] * f->rows[i][t];
	return sum;
}

/* Solve the weighted normal equations in the terms of `set`, scaled so that every diagonal entry is
 * 1. */
static bool solve_set(const kernel_fit *f, unsigned set, double *terms, double *inverse)
{
	double matrix[TERMS * TERMS] = {0}, right[TERMS] = {0}, scale[TERMS], diagonal[TERMS];
	int n = 0, which[TERMS];
	for (int t = 0; t < TERMS; t++) {
		terms[t] = inverse[t] = 0;
		if (set >> t & 1)
			which[n++] = t;
	}
	for (int32_t i = 0; i < f->n; i++)
		for (int a = 0; a < n; a++) {
			right[a] += f->weights[i] * f->rows[i][which[a]];
			for (int b = 0; b < n; b++)
				matrix[a * n + b] +=
					f->weights[i] * f->rows[i][which[a]] * f->rows[i][which[b]];
		}
	for (int a = 0; a < n; a++)
		scale[a] = sqrt(matrix[a * n + a]);
	for (int a = 0; a < n; a++) {
		right[a] /= scale[a];
		for (int b = 0; b < n; b++)
			matrix[a * n + b] /= scale[a] * scale[b];
		matrix[a * n + a] += 1e-9;
	}
	for (int a = 0; a < n; a++)
		if (!(scale[a] > 0))
			return false;
	if (!symmetric_factor(matrix, n))
		return false;
	symmetric_solve(matrix, n, right);
	symmetric_inverse_diagonal(matrix, n, diagonal);
	for (int a = 0; a < n; a++) {
		terms[which[a]] = right[a] / scale[a];
		inverse[which[a]] = diagonal[a] / (scale[a] * scale[a]);
		if (right[a] < 0)
			return false;
	}
	return true;
}

static double sum_of_squares(const kernel_fit *f, const double *terms)
{
	double sum = 0;
	for (int32_t i = 0; i < f->n; i++)
		sum += f->weights[i] * residual(f, i, terms) * residual(f, i, terms);
	return sum;
}

/* Return the information criterion, which is to be minimised. Residuals far below MIN_SCALE count
 * as zero. */
static double criterion(const kernel_fit *f, unsigned set, double sum)
{
	double n = f->n;
	return n * log(sum + n * MIN_SCALE * MIN_SCALE) + log(n) * __builtin_popcount(set);
}

static void solve(kernel_fit *f)
{
	double best = INFINITY;
	for (unsigned set = 1; set < 1u << TERMS; set++) {
		double terms[TERMS], inverse[TERMS];
		if (!solve_set(f, set, terms, inverse))
			continue;
		double sum = sum_of_squares(f, terms), weight = 0;
		if (!(criterion(f, set, sum) < best))
			continue;
		best = criterion(f, set, sum);
		for (int32_t i = 0; i < f->n; i++)
			weight += f->weights[i];
		for (int t = 0; t < TERMS; t++) {
			f->terms[t] = terms[t];
			f->errors[t] = terms[t] > 0
			                       ? sqrt(sum / fmax(weight - TERMS, 1) * inverse[t]) /
			                                 terms[t]
			                       : 0;
		}
	}
}

/* Return (ln x / (x - 1))^2, the weight that turns the square of x - 1 into that of ln x. */
static double logarithmic(double x)
{
	double ratio = fabs(x - 1) < 1e-3 ? 1 : log(fmax(x, 1e-3)) / (fmax(x, 1e-3) - 1);
	return ratio * ratio;
}

static void weigh(kernel_fit *f)
{
	for (int32_t i = 0; i < f->n; i++)
		f->residuals[i] = residual(f, i, f->terms);
	double scale = robust_scale(f->residuals, f->n, MODEL_SCALE, f->scratch);
	for (int32_t i = 0; i < f->n; i++)
		f->weights[i] = robust_weight(log(fmax(1 + f->residuals[i], 1e-3)), scale) *
		                logarithmic(1 + f->residuals[i]);
}

static void take_point(kernel_fit *f, const sw_kernel_point *p, double cache)
{
	double *row = f->rows[f->n];
	row[OVERHEAD] = 1;
	row[CALLS] = p->work.calls;
	row[ROWS] = p->work.rows;
	row[FLOPS] = p->work.flops;
	row[CACHED] = fmin(p->work.bytes, cache);
	row[BYTES] = fmax(p->work.bytes - cache, 0);
	for (int t = 0; t < TERMS; t++)
		row[t] /= p->seconds;
	f->weights[f->n++] = 1;
}

/* Fit one family and return the loss. */
static double fit_family(sw_family family, double cache, const sw_kernel_point *points, int32_t n,
                         kernel_fit *f)
{
	double loss = 0;
	f->n = 0;
	for (int32_t i = 0; i < n; i++)
		if (points[i].family == family && points[i].type == SW_F32)
			take_point(f, &points[i], cache);
	for (int round = 0; round < ROUNDS && f->n; round++) {
		solve(f);
		weigh(f);
	}
	for (int32_t i = 0; i < f->n; i++)
		loss += robust_loss(log(fmax(1 + f->residuals[i], 1e-3)), MODEL_SCALE);
	return loss;
}

static double find_cache(const sw_kernel_point *points, int32_t n, kernel_fit *f)
{
	double best = INFINITY, found = 0;
	for (double cache = 0; cache <= MAX_CACHE_BYTES; cache = fmax(2 * cache, MIN_CACHE_BYTES)) {
		double loss = 0;
		for (int family = 0; family < SW_FAMILY_COUNT; family++)
			loss += fit_family((sw_family)family, cache, points, n, f);
		if (loss < best) {
			best = loss;
			found = cache;
		}
	}
	return found;
}

static double inverse(double term)
{
	return term > 0 ? 1 / term : 0;
}

static void describe(sw_family family, const kernel_fit *f, sw_arena *arena, sw_fit *fit)
{
	static const struct {
		const char *name;
		sw_fit_unit unit;
	} terms[TERMS] = {
		[OVERHEAD] = {"overhead", SW_FIT_SECONDS},
		[CALLS] = {"call", SW_FIT_SECONDS},
		[ROWS] = {"row", SW_FIT_SECONDS},
		[FLOPS] = {"flops", SW_FIT_FLOPS},
		[CACHED] = {"cached bandwidth", SW_FIT_BYTES_PER_S},
		[BYTES] = {"bandwidth", SW_FIT_BYTES_PER_S},
	};
	for (int t = 0; t < TERMS; t++)
		if (f->terms[t] > 0)
			fit->parameters[fit->n_parameters++] = (sw_fit_parameter){
				.name = sw_arena_printf(arena, "%s %s", sw_family_name(family),
			                                terms[t].name),
				.unit = terms[t].unit,
				.value = terms[t].unit == SW_FIT_SECONDS ? f->terms[t]
			                                                 : inverse(f->terms[t]),
				.error = f->errors[t],
				.seen = true};
}

static void find_errors(const sw_device *device, sw_kernel_point *points, int32_t n,
                        double *scratch, sw_fit *fit)
{
	for (int32_t i = 0; i < n; i++) {
		sw_kernel_point *p = &points[i];
		p->fitted_s = sw_cost_fitted(device, p->family, p->type, &p->work);
		scratch[i] = fabs(p->fitted_s - p->seconds) / p->seconds;
	}
	fit->median_error = median_of(scratch, n);
	fit->worst_error = n ? scratch[n - 1] : 0;
}

void sw_fit_kernels(sw_device *device, sw_kernel_point *points, int32_t n, sw_arena *arena,
                    sw_fit *fit)
{
	*fit = (sw_fit){.n_points = n,
	                .parameters = SW_NEW_N(arena, sw_fit_parameter, SW_FAMILY_COUNT * TERMS)};
	kernel_fit f = {.rows = sw_arena_alloc(arena, (size_t)n * sizeof(*f.rows)),
	                .residuals = SW_NEW_N(arena, double, n),
	                .weights = SW_NEW_N(arena, double, n),
	                .scratch = SW_NEW_N(arena, double, n)};
	device->cache_bytes = find_cache(points, n, &f);
	for (int family = 0; family < SW_FAMILY_COUNT; family++) {
		fit_family((sw_family)family, device->cache_bytes, points, n, &f);
		if (!f.n)
			continue;
		device->kernels[family] =
			(sw_kernel_fit){.given = true,
		                        .overhead_s = f.terms[OVERHEAD],
		                        .call_s = f.terms[CALLS],
		                        .row_s = f.terms[ROWS],
		                        .flops_per_s = inverse(f.terms[FLOPS]),
		                        .cached_bytes_per_s = inverse(f.terms[CACHED]),
		                        .bytes_per_s = inverse(f.terms[BYTES])};
		describe((sw_family)family, &f, arena, fit);
	}
	find_errors(device, points, n, f.scratch, fit);
}
