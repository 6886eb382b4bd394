/*
 * calibrate: measure a cluster and fit its figures.
 *
 * Takes a transport and a cluster description whose figures may be guesses. Returns the measured
 * points (each algorithm of each collective over the sets of atoms of the cluster, messages between
 * pairs of ranks, kernels on all ranks at once) and the cluster with fitted figures (cost/fit.h)
 * and the points of the fastest algorithms. docs/calibration.md describes how each figure is
 * measured.
 *
 * A point is the median over repetitions of the time of the slowest rank. All ranks take part in
 * every point and agree on the number of repetitions: they repeat until half the width of the
 * median's 95 % confidence interval is within 5 % of the median, or until the point's share of the
 * time is used.
 */
#ifndef SW_RUN_CALIBRATE_H
#define SW_RUN_CALIBRATE_H

#include <stdatomic.h>

#include "cost/fit.h"
#include "transport/transport.h"

typedef struct sw_calibrate_options {
	double time_limit_s;
	bool links, kernels; /* false: that part keeps the shape's figures */
	/* for later paced runs: beside collectives the ranks sleep, as in a paced run, and do not
	 * compute */
	bool paced;
	/* NULL, or set by another thread: sw_calibrate returns SW_NO. Either all ranks pass it or
	 * none */
	const atomic_bool *stop;
	/* called on rank 0; NULL: no progress reports */
	void (*on_progress)(void *context, double fraction, const char *what);
	void *context;
} sw_calibrate_options;

typedef struct sw_calibrate_result {
	sw_arena arena;
	SW_VEC(sw_link_point) links;
	SW_VEC(sw_kernel_point) kernels;
	sw_fit link_fit, kernel_fit;
	double transfer_share; /* for sw_device.transfer_share; 0: not measured, or paced */
	/* points not measured: larger messages for lack of time, and algorithms that fell behind */
	int32_t left_out;
	int64_t largest_bytes; /* the largest message measured */
	double seconds;
	/* with the fitted figures. It borrows the others from the shape; do not clear it */
	sw_cluster cluster;
} sw_calibrate_result;

/* Collective over the transport's ranks, which are the cluster's devices: SW_ERR_INPUT if their
 * numbers differ. All ranks return that error and SW_NO alike, and the transport stays usable.
 * Every rank gets the same points; only rank 0 gets the fit. A rank that fails with another error
 * has failed the transport. The transport's tuning is reset. */
sw_status sw_calibrate(sw_transport *transport, const sw_cluster *shape,
                       const sw_calibrate_options *options, sw_calibrate_result *result,
                       sw_error *err);
void sw_calibrate_result_clear(sw_calibrate_result *result);

/* Describe the cluster that the ranks run on: ranks that share a host are devices of one node, and
 * the figures are guesses. SW_ERR_INPUT if the ranks of a host are not consecutive. Collective. */
sw_status sw_calibrate_shape(sw_transport *transport, sw_cluster *cluster, sw_error *err);

/* Print the levels of the atoms for users, such as "node x device". If a level consists of several
 * atoms, print the atom's number and size as well: "device 2/2". If levels are divided unequally,
 * every atom is printed like this and called "devices". */
void sw_calibrate_print_atoms(const sw_cluster *cluster, uint32_t atoms, sw_text *text);

#endif
