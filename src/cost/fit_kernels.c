/*
 * The fit of kernels: seconds = overhead + flops / rate + bytes / bandwidth, by family; linear in overhead and the inverse rates, so that least
 * squares of the relative error is a system of three equations. None of the three may be negative: every set of them is tried with the others
 * zero (nonnegative least squares, Lawson and Hanson, 1974; of three unknowns there are seven sets). Of those whose solution is positive the one is taken that
 * explains most with least: a term more must be worth it by the Bayesian information criterion (Schwarz, 1978), n ln(sum of squares) + ln(n) per term.
 */
#include "cost/fit.h"
#include "cost/least_squares.h"

#include <math.h>

#define TERMS 3 /* overhead, flops, bytes */
#define ROUNDS 6
#define LEAST_SCALE 5e-3

typedef struct kernel_fit {
	int32_t n;
	double (*rows)[TERMS]; /* each over the measured seconds: their sum should be 1 */
	double *residuals, *weights, *scratch;
	double terms[TERMS],
		errors[TERMS]; /* seconds, per flop, per byte; relative standard errors, 0 where the term is 0 */
} kernel_fit;

static double residual(const kernel_fit *f, int32_t i, const double *terms)
{
	double sum = -1;
	for (int t = 0; t < TERMS; t++)
		sum += terms[t] * f->rows[i][t];
	return sum;
}

/* The weighted normal equations in the terms of `set`, in units of which every diagonal entry is 1. */
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

/* The smaller the better; residuals far below what is told apart are as good as none. */
static double criterion(const kernel_fit *f, unsigned set, double sum)
{
	double n = f->n;
	return n * log(sum + n * LEAST_SCALE * LEAST_SCALE) + log(n) * __builtin_popcount(set);
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
			                       ? sqrt(sum / fmax(weight - TERMS, 1) * inverse[t]) / terms[t]
			                       : 0;
		}
	}
}

static void weigh(kernel_fit *f)
{
	for (int32_t i = 0; i < f->n; i++)
		f->residuals[i] = residual(f, i, f->terms);
	double scale = robust_scale(f->residuals, f->n, LEAST_SCALE, f->scratch);
	for (int32_t i = 0; i < f->n; i++)
		f->weights[i] = robust_weight(f->residuals[i], scale);
}

static void fit_family(sw_family family, const sw_kernel_point *points, int32_t n, kernel_fit *f)
{
	f->n = 0;
	for (int32_t i = 0; i < n; i++) {
		const sw_kernel_point *p = &points[i];
		if (p->family != family || p->type != SW_F32)
			continue;
		f->rows[f->n][0] = 1 / p->seconds;
		f->rows[f->n][1] = p->flops / p->seconds;
		f->rows[f->n][2] = p->bytes / p->seconds;
		f->weights[f->n++] = 1;
	}
	for (int round = 0; round < ROUNDS && f->n; round++) {
		solve(f);
		weigh(f);
	}
}

static double inverse(double term)
{
	return term > 0 ? 1 / term : 0;
}

static void describe(sw_family family, const kernel_fit *f, sw_arena *arena, sw_fit *fit)
{
	static const char *const names[TERMS] = {"overhead", "flops", "bandwidth"};
	static const sw_fit_unit units[TERMS] = {SW_FIT_SECONDS, SW_FIT_FLOPS, SW_FIT_BYTES_PER_S};
	for (int t = 0; t < TERMS; t++)
		if (f->terms[t] > 0)
			fit->parameters[fit->n_parameters++] = (sw_fit_parameter){
				.name = sw_arena_printf(arena, "%s %s", sw_family_name(family), names[t]),
				.unit = units[t],
				.value = t == 0 ? f->terms[t] : inverse(f->terms[t]),
				.error = f->errors[t],
				.seen = true};
}

static double fitted(const sw_device *device, const sw_kernel_fit *kernel, const sw_kernel_point *p)
{
	double slower = device->flops[p->type] > 0 ? device->flops[SW_F32] / device->flops[p->type] : 1;
	return kernel->overhead_s + p->flops * slower * inverse(kernel->flops_per_s) +
	       p->bytes * inverse(kernel->bytes_per_s);
}

void sw_fit_kernels(const sw_device *device, sw_kernel_point *points, int32_t n, sw_arena *arena,
                    sw_kernel_fit *kernels, sw_fit *fit)
{
	*fit = (sw_fit){.n_points = n,
	                .parameters = SW_NEW_N(arena, sw_fit_parameter, SW_FAMILY_COUNT * TERMS)};
	kernel_fit f = {.rows = sw_arena_alloc(arena, (size_t)n * sizeof(*f.rows)),
	                .residuals = SW_NEW_N(arena, double, n),
	                .weights = SW_NEW_N(arena, double, n),
	                .scratch = SW_NEW_N(arena, double, n)};
	for (int family = 0; family < SW_FAMILY_COUNT; family++) {
		fit_family((sw_family)family, points, n, &f);
		kernels[family] = (sw_kernel_fit){0};
		if (!f.n)
			continue;
		kernels[family] =
			(sw_kernel_fit){true, f.terms[0], inverse(f.terms[1]), inverse(f.terms[2])};
		describe((sw_family)family, &f, arena, fit);
	}
	for (int32_t i = 0; i < n; i++) {
		points[i].fitted_s = fitted(device, &kernels[points[i].family], &points[i]);
		f.scratch[i] = fabs(points[i].fitted_s - points[i].seconds) / points[i].seconds;
	}
	fit->median_error = median_of(f.scratch, n);
	fit->worst_error = n ? f.scratch[n - 1] : 0;
}
