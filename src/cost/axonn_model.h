/*
 * AxoNN's communication model: Singh et al., "A 4D Hybrid Algorithm to Scale Parallel Training to
 * Thousands of GPUs", section V. It is the one implementation that the planner, the benchmark of
 * papers and the tests use.
 *
 * A LAYER multiplies m rows by a weight of k rows and n columns on a grid of x, y, z and data
 * devices, x innermost. By algorithm 1 the weight's rows, and so the columns of its input, are
 * split over y, and its columns over x. With G devices along an axis:
 *
 *   (4)  an all-gather over z of the weight, k n / (x y z) on each device
 *   (5)  a reduce-scatter over z of its gradient, k n / (x y)
 *   (6)  an all-reduce over y of the result, m n / (z data x)
 *   (7)  an all-reduce over x of the gradient of the input, m k / (z data y)
 *   (8)  an all-reduce over data of the weight's gradient, k n / (x y z)
 *
 * (9) is their sum. A TRANSPOSED layer has x and y exchanged; a network's layers alternate (III-B).
 * In the paper m is the rows of one data-parallel group; here it is those of all groups. For a
 * convolution k and n are channels (III-B): sizes are given in bytes, so that nothing changes.
 */
#ifndef SW_COST_AXONN_MODEL_H
#define SW_COST_AXONN_MODEL_H

#include "cost/cost.h"

enum { SW_AXONN_X, SW_AXONN_Y, SW_AXONN_Z, SW_AXONN_DATA, SW_AXONN_AXES }; /* innermost first */
typedef struct sw_axonn_grid {
	int64_t size[SW_AXONN_AXES];
	uint32_t atoms[SW_AXONN_AXES]; /* of the cluster, by axis */
} sw_axonn_grid;

typedef struct sw_axonn_layer {
	double mk, kn, mn; /* bytes of input, weight and result on all devices together */
	bool transposed;
	/* How often a step moves the weight, sums the result, and sums the gradient of the input.
	 * Equation 9 has 1 of each. */
	double weights, results, inputs;
} sw_axonn_layer;

typedef enum sw_axonn_seconds {
	SW_AXONN_OURS,     /* this cluster's collectives, with latencies, by their best algorithm */
	SW_AXONN_PAPER,    /* rings with the bandwidth of equation 10: placement-aware, V-B */
	SW_AXONN_AGNOSTIC, /* rings with one bandwidth for all: placement-agnostic, V-A */
	SW_AXONN_SECONDS
} sw_axonn_seconds;

/* One collective of algorithm 1: equation 4 + i is step i. */
enum { SW_AXONN_STEPS = 5 };
typedef struct sw_axonn_step {
	sw_collective_kind kind;
	int axis;
	double operand_bytes, times;
} sw_axonn_step;
void sw_axonn_steps(const sw_axonn_grid *grid, const sw_axonn_layer *layer,
                    sw_axonn_step steps[SW_AXONN_STEPS]);

/* Return the bytes per second of a ring along an axis: equation 10 and the case before it. A node
 * is one part of the outermost level; within it the slowest level counts. */
double sw_axonn_bandwidth(const sw_cluster *cluster, const sw_axonn_grid *grid, int axis,
                          sw_axonn_seconds by);
/* Return the seconds of the layer's communication per step (equation 9). */
double sw_axonn_layer_seconds(const sw_cluster *cluster, const sw_axonn_grid *grid,
                              const sw_axonn_layer *layer, sw_axonn_seconds by);

#endif
