/* calibrate_parts: declarations that the files of calibrate share. Private to src/run. */
#ifndef SW_RUN_CALIBRATE_PARTS_H
#define SW_RUN_CALIBRATE_PARTS_H

#include "run/calibrate.h"

/* One sampler serves all points. The times that it returns are those of the slowest rank, so they
 * are the same on every rank. */
typedef struct sampler {
	sw_transport *transport;
	const sw_calibrate_options *options;
	double begin_s;   /* on this rank's clock */
	double elapsed_s; /* agreed by all ranks at the last batch */
} sampler;

void sampler_init(sampler *s, sw_transport *transport, const sw_calibrate_options *options);

typedef sw_status sample_body(void *context, sw_error *err);
typedef struct sample {
	double seconds, deviation_s; /* median; half the width of its confidence interval */
} sample;
typedef struct sample_rhythm {
	bool in_row;   /* short bodies may run several times between barriers */
	double rest_s; /* duration of a kernel before each sample; it is not counted */
} sample_rhythm;
/* Repeat the body on all ranks, each time after a barrier, at least three times and otherwise for
 * about `share_s` at most. SW_NO: stopped. */
sw_status sampler_measure(sampler *s, sample_body *body, void *context, sample_rhythm rhythm,
                          double share_s, sample *sample, sw_error *err);
/* Do for this many seconds what a rank does beside collectives: compute, or for paced runs
 * sleep. */
void sampler_compute(const sampler *s, double seconds);
/* Report progress to rank 0's caller; the message is formatted like printf's. */
void sampler_report(const sampler *s, const char *format, ...) SW_PRINTF(2, 3);

/* Measure until the sampler's clock reaches `until_s`. */
sw_status calibrate_links(sampler *s, const sw_cluster *shape, double until_s,
                          sw_calibrate_result *result, sw_error *err);
sw_status calibrate_kernels(sampler *s, const sw_device *device, int blas_threads, double until_s,
                            sw_calibrate_result *result, sw_error *err);

/* Measure the collective `what`, with `what->bytes` of operand, by its algorithm over its atoms; if
 * it has no atoms, measure one message each way between its two ranks. */
sw_status calibrate_point(sampler *s, const sw_cluster *shape, const sw_link_point *what,
                          double share_s, sample *taken, sw_error *err);
/* Measure the share of the device that this collective takes while it is in flight, for about
 * what->seconds. */
sw_status calibrate_share(sampler *s, const sw_cluster *shape, const sw_link_point *what,
                          double share_s, double *share, sw_error *err);

/* Find on which host each rank runs: an arbitrary number that is the same for ranks that share a
 * host name and a network namespace. hosts: [size]. Collective. */
sw_status calibrate_hosts(sw_transport *transport, uint64_t *hosts, sw_error *err);

#endif
