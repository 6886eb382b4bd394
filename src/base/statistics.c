#include "base/base.h"

#include <math.h>

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double sw_median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare);
	return n == 0 ? NAN : (values[(n - 1) / 2] + values[n / 2]) / 2;
}

void sw_ranks(const double *values, size_t n, double *ranks)
{
	for (size_t i = 0; i < n; i++) {
		double below = 0, equal = 0;
		for (size_t k = 0; k < n; k++) {
			below += values[k] < values[i];
			equal += values[k] == values[i];
		}
		ranks[i] = below + (equal - 1) / 2;
	}
}

static double correlation(const double *x, const double *y, size_t n)
{
	/* The mean of n ranks, also with ties. */
	double mean = ((double)n - 1) / 2, xx = 0, yy = 0, xy = 0;
	for (size_t i = 0; i < n; i++) {
		xx += (x[i] - mean) * (x[i] - mean);
		yy += (y[i] - mean) * (y[i] - mean);
		xy += (x[i] - mean) * (y[i] - mean);
	}
	return xy / sqrt(xx * yy);
}

double sw_spearman(const double *x, const double *y, size_t n)
{
	double *ranks = sw_alloc((2 * n + 1) * sizeof(*ranks));
	sw_ranks(x, n, ranks);
	sw_ranks(y, n, ranks + n);
	double result = n < 2 ? NAN : correlation(ranks, ranks + n, n);
	free(ranks);
	return result;
}
