/*
 * fit: a cluster's figures from measured seconds.
 *
 * The functions take a cluster whose figures may be guesses, and measured points: some work and the
 * time that it took. They give the figures under which the formulas of `cost` come nearest to the
 * points. The formulas stand in one place: the fit of links calls sw_cost_algorithm and
 * sw_cost_pair on trial clusters, and does not depend on their contents.
 *
 * The fit minimises the relative error: least squares of ln(fitted / measured), after AutoDDL
 * section 3.2, which fits alpha and beta by least squares. Weights limit the influence of outliers
 * (Cauchy's weights, of residuals over their median), and a point with a larger deviation counts
 * less. A figure that no point depends on keeps its value, and its standard error says so.
 */
#ifndef SW_FIT_H
#define SW_FIT_H

#include "cost/cost.h"

/* A collective over a set of atoms in all its groups at once; or (atoms 0) one message each way
 * between two devices, with no other traffic. */
typedef struct sw_link_point {
	sw_collective_kind kind;
	sw_algorithm algorithm;
	uint32_t atoms;
	int32_t from, to;
	int64_t bytes;               /* operand bytes per rank; or bytes of each message */
	double seconds, deviation_s; /* median; half the width of its 95 % confidence interval */
	double fitted_s;             /* set by the fit */
} sw_link_point;

typedef struct sw_kernel_point {
	const char *what; /* "dot 256 x 256 x 256" */
	sw_family family;
	sw_type type;
	sw_kernel_work work; /* of one execution */
	double seconds, deviation_s;
	double fitted_s;
} sw_kernel_point;

typedef enum sw_fit_unit {
	SW_FIT_SECONDS,
	SW_FIT_BYTES_PER_S,
	SW_FIT_FLOPS,
	SW_FIT_NUMBER
} sw_fit_unit;
typedef struct sw_fit_parameter {
	const char *name; /* "node latency", "matmul flops" */
	sw_fit_unit unit;
	double value;
	double error; /* standard error: relative; of a SW_FIT_NUMBER absolute */
	bool seen;    /* false: the points hardly depend on the figure; the value is the guess */
} sw_fit_parameter;
typedef struct sw_fit {
	int32_t n_parameters, n_points;
	sw_fit_parameter *parameters;
	/* |fitted - measured| / measured over the points; 0 without points */
	double median_error, worst_error;
} sw_fit;

/* Fit the links. levels[l], l < n_levels, are the shape's levels with fitted figures. A level has
 * one bandwidth, or one per part where the shape has them. Results are allocated in the arena.
 * Deterministic. O(evaluations of a point * points * parameters * rounds). */
void sw_fit_links(const sw_cluster *shape, sw_link_point *points, int32_t n, sw_arena *arena,
                  sw_level *levels, sw_fit *fit);
/* Fit the device's kernels of each family that has an f32 point, by nonnegative least squares, and
 * the size of its cache. Points of other types only get their fitted_s: at the rates of f32, except
 * that operations run at flops[type] / flops[f32] of its rate. */
void sw_fit_kernels(sw_device *device, sw_kernel_point *points, int32_t n, sw_arena *arena,
                    sw_fit *fit);

#endif
