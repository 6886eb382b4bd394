/*
 * Messages between pairs of ranks, in an order that each rank is given.
 *
 * The steps of a rank are done in order; what it sends is in flight while it goes on, and the
 * receives of the next WINDOW steps are begun ahead. A step waits only for steps of other ranks
 * that come before it in the common order, so that no cycle of waits can arise. Each step has the
 * lane of its number, which the step SW_LANES later takes over when this one is finished.
 */
#include "transport/carrier.h"

#include <string.h>

/* Receives that are begun ahead. More than half of the lanes would make a rank wait for its own
 * sends. */
#define WINDOW (SW_LANES / 2)

typedef struct stepper {
	sw_carrier *carrier;
	const sw_message_step *steps;
	size_t n, ahead;       /* steps before `ahead` have been looked at for receives */
	bool flying[SW_LANES]; /* a send of an earlier step is not finished */
	sw_monoid monoid;
	sw_type type;
	char *scratch; /* SW_LANES times scratch_bytes */
	int64_t scratch_bytes;
} stepper;

static int32_t lane_of(size_t step)
{
	return (int32_t)(step % SW_LANES);
}

static char *place_of(const stepper *s, size_t step)
{
	return s->steps[step].kind == SW_STEP_COMBINE
	               ? s->scratch + lane_of(step) * s->scratch_bytes
	               : s->steps[step].at;
}

static sw_status finish_lane(stepper *s, int32_t lane, sw_error *err)
{
	s->flying[lane] = false;
	return s->carrier->finish(s->carrier, lane, err);
}

static sw_status begin(stepper *s, size_t step, sw_error *err)
{
	const sw_message_step *what = &s->steps[step];
	int32_t lane = lane_of(step);
	sw_carrier_call call = {.what = "message", .amount = what->bytes, .ranks = 2};
	sw_status status = s->flying[lane] ? finish_lane(s, lane, err) : SW_OK;
	if (status)
		return status;
	sw_lane *messages = sw_carrier_lane(s->carrier, lane);
	if (what->kind == SW_STEP_SEND)
		sw_lane_send(messages, what->peer, what->at, what->bytes);
	else
		sw_lane_receive(messages, what->peer, place_of(s, step), what->bytes);
	return s->carrier->begin(s->carrier, &call, lane, err);
}

static sw_status look_ahead(stepper *s, size_t step, sw_error *err)
{
	sw_status status = SW_OK;
	for (; s->ahead < s->n && s->ahead < step + WINDOW && status == SW_OK; s->ahead++)
		if (s->steps[s->ahead].kind != SW_STEP_SEND)
			status = begin(s, s->ahead, err);
	return status;
}

static sw_status receive(stepper *s, size_t step, sw_error *err)
{
	const sw_message_step *what = &s->steps[step];
	sw_status status = finish_lane(s, lane_of(step), err);
	if (status || what->kind != SW_STEP_COMBINE)
		return status;
	return sw_reduce(s->monoid, s->type, (const void *const[]){what->at, place_of(s, step)}, 2,
	                 what->at, what->bytes / sw_type_bytes(s->type), err);
}

static sw_status do_step(stepper *s, size_t step, sw_error *err)
{
	sw_status status = look_ahead(s, step, err);
	if (status)
		return status;
	if (s->steps[step].kind != SW_STEP_SEND)
		return receive(s, step, err);
	status = begin(s, step, err);
	s->flying[lane_of(step)] = status == SW_OK;
	s->carrier->base.traffic.wire_bytes += s->steps[step].bytes;
	return status;
}

static sw_status take_scratch(stepper *s, sw_error *err)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->steps[i].kind == SW_STEP_COMBINE)
			s->scratch_bytes = SW_MAX(s->scratch_bytes, s->steps[i].bytes);
	s->scratch_bytes = sw_ceil_div(s->scratch_bytes, 64) * 64;
	if (s->scratch_bytes == 0)
		return SW_OK;
	s->scratch = sw_carrier_scratch(s->carrier, s->scratch_bytes * SW_LANES);
	return s->scratch ? SW_OK
	                  : sw_fail(err, SW_ERR_IO, "no memory for a buffer of %lld bytes",
	                            (long long)(s->scratch_bytes * SW_LANES));
}

sw_status sw_transport_steps(sw_transport *t, const sw_message_step *steps, size_t n,
                             sw_monoid monoid, sw_type type, sw_error *err)
{
	stepper s = {
		.carrier = (sw_carrier *)t, .steps = steps, .n = n, .monoid = monoid, .type = type};
	sw_status status = take_scratch(&s, err);
	for (size_t i = 0; i < n && status == SW_OK; i++)
		status = do_step(&s, i, err);
	for (int32_t lane = 0; lane < SW_LANES && status == SW_OK; lane++)
		if (s.flying[lane])
			status = finish_lane(&s, lane, err);
	return status;
}
