#include "cost/least_squares.h"

#include <math.h>

#define CAUCHY 2.385 /* Holland and Welsch's tuning constant */

bool symmetric_factor(double *a, int n)
{
	for (int j = 0; j < n; j++) {
		for (int i = j; i < n; i++) {
			double sum = a[i * n + j];
			for (int k = 0; k < j; k++)
				sum -= a[i * n + k] * a[j * n + k];
			if (i == j && !(sum > 0))
				return false;
			a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
		}
	}
	return true;
}

void symmetric_solve(const double *factor, int n, double *x)
{
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < i; k++)
			x[i] -= factor[i * n + k] * x[k];
		x[i] /= factor[i * n + i];
	}
	for (int i = n - 1; i >= 0; i--) {
		for (int k = i + 1; k < n; k++)
			x[i] -= factor[k * n + i] * x[k];
		x[i] /= factor[i * n + i];
	}
}

void symmetric_inverse_diagonal(const double *factor, int n, double *diagonal)
{
	double *column = sw_alloc((size_t)n * sizeof(*column));
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < n; k++)
			column[k] = k == i;
		symmetric_solve(factor, n, column);
		diagonal[i] = column[i];
	}
	free(column);
}

double median_of(double *values, int64_t n)
{
	return n > 0 ? sw_median(values, (size_t)n) : 0;
}

double robust_scale(const double *residuals, int64_t n, double least, double *scratch)
{
	for (int64_t i = 0; i < n; i++)
		scratch[i] = fabs(residuals[i]);
	return fmax(least, 1.4826 * median_of(scratch, n));
}

double robust_weight(double residual, double scale)
{
	double z = residual / (CAUCHY * scale);
	return 1 / (1 + z * z);
}

double robust_loss(double residual, double scale)
{
	double width = CAUCHY * scale;
	return -width * width * log(robust_weight(residual, scale));
}
