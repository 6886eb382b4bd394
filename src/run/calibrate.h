/*
 * calibrate: measure a cluster, and fit its figures.
 *
 * Takes a transport and a cluster whose figures may be guesses; gives measured points (each
 * algorithm of each collective over the sets of atoms that the cluster has, messages between pairs,
 * kernels on all ranks at once) and the cluster with fitted figures (cost/fit.h) and the points of
 * the fastest algorithms. What is measured how: docs/calibration.md.
 *
 * A point is the median over repetitions of what the slowest rank took. All ranks take part in
 * every point and agree on how often it is repeated: until the median's 95 % confidence interval is
 * within 5 % of it, or the point's share of the time is used.
 */
#ifndef SW_RUN_CALIBRATE_H
#define SW_RUN_CALIBRATE_H

#include <stdatomic.h>

#include "cost/fit.h"
#include "transport/transport.h"

typedef struct sw_calibrate_options {
	double time_limit_s;
	bool links, kernels; /* false: that part keeps the shape's figures */
	/* for runs that are: beside collectives the ranks sleep, as they do there, and don't
	 * compute */
	bool paced;
	/* NULL, or set from elsewhere: give up with SW_NO. All ranks have it or none has */
	const atomic_bool *stop;
	/* on rank 0; NULL: nobody asks */
	void (*on_progress)(void *context, double fraction, const char *what);
	void *context;
} sw_calibrate_options;

typedef struct sw_calibrate_result {
	sw_arena arena;
	SW_VEC(sw_link_point) links;
	SW_VEC(sw_kernel_point) kernels;
	sw_fit link_fit, kernel_fit;
	double transfer_share; /* sw_device has it; 0: not measured, or paced */
	/* points that the time did not reach: larger messages, and algorithms that fell behind */
	int32_t left_out;
	int64_t largest_bytes; /* the largest message measured */
	double seconds;
	/* with the fit; what was not fitted it borrows from the shape. Not to be cleared */
	sw_cluster cluster;
} sw_calibrate_result;

/* Collective over the transport's ranks, which are the cluster's devices: another number of them is
 * SW_ERR_INPUT. That and SW_NO all ranks return alike, and the transport is as before. Every rank
 * gets the same points; rank 0 alone the fit. A rank that fails otherwise has failed the transport.
 * The transport's tuning is forgotten. */
sw_status sw_calibrate(sw_transport *transport, const sw_cluster *shape,
                       const sw_calibrate_options *options, sw_calibrate_result *result,
                       sw_error *err);
void sw_calibrate_result_clear(sw_calibrate_result *result);

/* The shape of what the ranks run on: ranks that share a host are devices of one node. Figures are
 * guesses. SW_ERR_INPUT where a host's ranks are not one after the other. Collective. */
sw_status sw_calibrate_shape(sw_transport *transport, sw_cluster *cluster, sw_error *err);

/* "node x device": the atoms' levels, as people read them; an atom that is but one of several of
 * its level has its number and its size, "device 2/2"; where levels are divided unequally all have,
 * and are called "devices". */
void sw_calibrate_print_atoms(const sw_cluster *cluster, uint32_t atoms, sw_text *text);

#endif
