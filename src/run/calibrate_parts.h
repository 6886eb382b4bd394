/* calibrate_parts: what the parts of calibrate share. Private to src/run. */
#ifndef SW_RUN_CALIBRATE_PARTS_H
#define SW_RUN_CALIBRATE_PARTS_H

#include "run/calibrate.h"

/* One for all points; its times are the same on every rank: those of the slowest. */
typedef struct sampler {
	sw_transport *transport;
	const sw_calibrate_options *options;
	double begin_s;   /* of this rank's clock */
	double elapsed_s; /* agreed at the last batch */
} sampler;

void sampler_init(sampler *s, sw_transport *transport, const sw_calibrate_options *options);

typedef sw_status sample_body(void *context, sw_error *err);
typedef struct sample {
	double seconds, deviation_s; /* median; half the width of its confidence interval */
} sample;
typedef struct sample_rhythm {
	bool in_row;   /* short bodies may run several times between barriers */
	double rest_s; /* before each a kernel of so long; not counted */
} sample_rhythm;
/* Repeats the body on all ranks, each time after a barrier, for at most about `share_s`, and three
 * times at the least. SW_NO: stopped. */
sw_status sampler_measure(sampler *s, sample_body *body, void *context, sample_rhythm rhythm,
                          double share_s, sample *sample, sw_error *err);
/* What a rank does beside collectives, for so long: computes, or, for paced runs, sleeps. */
void sampler_compute(const sampler *s, double seconds);
/* To rank 0's caller; `what` is printed. */
void sampler_tell(const sampler *s, const char *format, ...) SW_PRINTF(2, 3);

/* Until `until_s` of the sampler's time. */
sw_status calibrate_links(sampler *s, const sw_cluster *shape, double until_s,
                          sw_calibrate_result *result, sw_error *err);
sw_status calibrate_kernels(sampler *s, const sw_device *device, int blas_threads, double until_s,
                            sw_calibrate_result *result, sw_error *err);

/* The collective of `what`, with `bytes` of operand, by its algorithm over its atoms; or, without
 * atoms, one message each way between its two ranks. */
sw_status calibrate_point(sampler *s, const sw_cluster *shape, const sw_link_point *what,
                          double share_s, sample *taken, sw_error *err);
/* The share of the device that this collective takes while it is under way, which is for about
 * what->seconds. */
sw_status calibrate_share(sampler *s, const sw_cluster *shape, const sw_link_point *what,
                          double share_s, double *share, sw_error *err);

/* On which host each rank runs: an arbitrary number, the same for ranks that share a host name and
 * a network namespace. hosts: [size]. Collective. */
sw_status calibrate_hosts(sw_transport *transport, uint64_t *hosts, sw_error *err);

#endif
