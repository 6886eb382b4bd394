/*
 * Repeat a measurement until its median is known precisely.
 *
 * Samples are taken in batches. After each batch the ranks exchange their times and keep the
 * largest, so that all of them see the same numbers and make the same decisions. The confidence
 * interval is that of order statistics, which assume no distribution: of n sorted samples it spans
 * the k-th from either end, with k the largest for which the median is between them with
 * probability 0.95 (k = n/2 - 0.98 sqrt(n)); of fewer than six samples, the two extremes.
 */
#include "run/calibrate_parts.h"

#include <math.h>
#include <string.h>

#define MIN_SAMPLES 3   /* samples of a point, at least */
#define BATCH 24        /* samples between two exchanges, at most */
#define MAX_SAMPLES 192 /* samples of a point, at most */
/* half the width of the interval over the median at which sampling ends */
#define TOLERANCE 0.05
#define MIN_SAMPLE_S 300e-6 /* bodies shorter than this, in seconds, run in a row */
#define MAX_IN_ROW 16       /* runs of a body in one sample, at most */

typedef struct batch {
	double seconds[BATCH];
	double stop, elapsed_s;
} batch;

void sampler_init(sampler *s, sw_transport *transport, const sw_calibrate_options *options)
{
	*s = (sampler){.transport = transport, .options = options, .begin_s = sw_now_s()};
	transport->paced = options->paced;
	if (options->paced) /* as in a paced run */
		sw_thread_run_briefly();
}

void sampler_report(const sampler *s, const char *format, ...)
{
	char what[160];
	va_list args;
	if (s->transport->rank != 0 || !s->options->on_progress)
		return;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	s->options->on_progress(s->options->context, s->elapsed_s / s->options->time_limit_s, what);
}

/* Use only the processor: no memory, no other rank. */
static void spin_until(double until_s)
{
	while (sw_now_s() < until_s)
		continue;
}

void sampler_compute(const sampler *s, double seconds)
{
	(s->options->paced ? sw_sleep_until : spin_until)(sw_now_s() + seconds);
}

/* The body that is repeated, and how. */
typedef struct task {
	sample_body *body;
	void *context;
	double rest_s;
	int in_row;
} task;

static sw_status take_sample(sampler *s, const task *t, double *seconds, sw_error *err)
{
	sw_status status = s->transport->ops->barrier(s->transport, err);
	*seconds = 0;
	for (int i = 0; i < t->in_row && status == SW_OK; i++) {
		if (t->rest_s > 0)
			sampler_compute(s, t->rest_s);
		double begin = sw_now_s();
		status = t->body(t->context, err);
		*seconds += (sw_now_s() - begin) / t->in_row;
	}
	return status;
}

/* Replace the rank's numbers by the largest over all ranks. */
static sw_status exchange(sampler *s, batch *mine, sw_error *err)
{
	sw_transport *t = s->transport;
	batch all = {0};
	sw_status status = t->ops->all_reduce(t, t->everyone, t->size, SW_MONOID_MAX, SW_F64, mine,
	                                      &all, (int64_t)(sizeof(all) / sizeof(double)), err);
	*mine = all;
	s->elapsed_s = all.elapsed_s;
	return status;
}

static sw_status take_batch(sampler *s, const task *t, int n, batch *b, sw_error *err)
{
	sw_status status = SW_OK;
	memset(b, 0, sizeof(*b));
	for (int i = 0; i < n && status == SW_OK; i++)
		status = take_sample(s, t, &b->seconds[i], err);
	b->stop = s->options->stop && atomic_load(s->options->stop);
	b->elapsed_s = sw_now_s() - s->begin_s;
	if (status == SW_OK)
		status = exchange(s, b, err);
	if (status == SW_OK && b->stop > 0)
		return sw_fail(err, SW_NO,
		               "stopped after %.0f s, before all points were measured: nothing was "
		               "written",
		               b->elapsed_s);
	return status;
}

static sample summarise(double *seconds, int n)
{
	int k = n < 6 ? 0 : SW_MAX((int)(n / 2.0 - 0.98 * sqrt(n)), 0);
	double median_s = sw_median(seconds, (size_t)n); /* sw_median sorts them */
	return (sample){.seconds = median_s, .deviation_s = (seconds[n - 1 - k] - seconds[k]) / 2};
}

/* Take as many samples as there are already, limited by the remaining time. */
static int next_batch(int n, double spent_s, double share_s)
{
	double each = spent_s / n;
	int affordable = (int)fmin((share_s - spent_s) / each, BATCH);
	return SW_MIN(SW_MIN(affordable, SW_MAX(n, MIN_SAMPLES)), MAX_SAMPLES - n);
}

sw_status sampler_measure(sampler *s, sample_body *body, void *context, sample_rhythm rhythm,
                          double share_s, sample *result, sw_error *err)
{
	task t = {.body = body, .context = context, .rest_s = rhythm.rest_s, .in_row = 1};
	double seconds[MAX_SAMPLES + BATCH], begin = s->elapsed_s;
	batch b;
	int n = 0, size = MIN_SAMPLES;
	/* warm up, and find how long the body takes */
	sw_status status = take_batch(s, &t, 1, &b, err);
	if (rhythm.in_row)
		t.in_row = (int)fmin(fmax(MIN_SAMPLE_S / fmax(b.seconds[0], 1e-9), 1), MAX_IN_ROW);
	while (status == SW_OK && size > 0) {
		status = take_batch(s, &t, size, &b, err);
		memcpy(seconds + n, b.seconds, (size_t)size * sizeof(double));
		n += size;
		*result = summarise(seconds, n);
		bool precise = n >= 6 && result->deviation_s <= TOLERANCE * result->seconds;
		size = precise ? 0 : next_batch(n, s->elapsed_s - begin, share_s);
	}
	return status;
}
