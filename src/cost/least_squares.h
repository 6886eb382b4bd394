/*
 * least_squares: small dense systems, and weights against outliers. Private to src/cost.
 *
 * A matrix is symmetric, n x n, row-major; n is the number of parameters of a fit, some tens.
 */
#ifndef SW_COST_LEAST_SQUARES_H
#define SW_COST_LEAST_SQUARES_H

#include "base/base.h"

/* Cholesky's factor of a positive definite matrix, in its place; false: it is not. O(n^3). */
bool symmetric_factor(double *matrix, int n);
/* x, in place of the right-hand side. O(n^2). */
void symmetric_solve(const double *factor, int n, double *x);
/* The diagonal of the inverse. O(n^3). */
void symmetric_inverse_diagonal(const double *factor, int n, double *diagonal);

/* Sorts the values; 0 if there are none. */
double median_of(double *values, int64_t n);
/* 1.4826 * median |r|, which is the standard deviation of normal residuals, and no less than
 * `least`. scratch has room for n. */
double robust_scale(const double *residuals, int64_t n, double least, double *scratch);
/* Cauchy's weight of one residual at that scale: 95 % efficient for normal ones, and next to
 * nothing for those far out (Holland and Welsch, 1977). */
double robust_weight(double residual, double scale);
/* The loss that those weights descend on: residual^2 where it is small, growing like its logarithm
 * far out. */
double robust_loss(double residual, double scale);

#endif
