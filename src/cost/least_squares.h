/*
 * least_squares: small dense systems, and weights against outliers. Private to src/cost.
 *
 * Matrices are symmetric, n x n, row-major; n is the number of parameters of a fit, some tens.
 */
#ifndef SW_COST_LEAST_SQUARES_H
#define SW_COST_LEAST_SQUARES_H

#include "base/base.h"

/* Replace a positive definite matrix by its Cholesky factor. Return false if it is not positive
 * definite. O(n^3). */
bool symmetric_factor(double *matrix, int n);
/* Solve the system; x is the right-hand side and becomes the solution. O(n^2). */
void symmetric_solve(const double *factor, int n, double *x);
/* Compute the diagonal of the inverse. O(n^3). */
void symmetric_inverse_diagonal(const double *factor, int n, double *diagonal);

/* Return the median, 0 if there are no values. Sorts the values. */
double median_of(double *values, int64_t n);
/* Return 1.4826 * median |r|, which is the standard deviation of normal residuals, but at least
 * `least`. scratch holds n numbers. */
double robust_scale(const double *residuals, int64_t n, double least, double *scratch);
/* Return Cauchy's weight of one residual at that scale: 95 % efficient for normal residuals, and
 * near 0 for distant ones (Holland and Welsch, 1977). */
double robust_weight(double residual, double scale);
/* Return the loss that descent with those weights minimises: residual^2 for small residuals; it
 * grows like the residual's logarithm for distant ones. */
double robust_loss(double residual, double scale);

#endif
