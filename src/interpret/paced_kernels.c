/*
 * Paced runs: each op takes the time that a model predicts, and nothing is computed.
 *
 * The predicted times are accumulated and waited for later: an op only advances the time at which
 * the ops so far should end, and the walker sleeps when that time is far enough ahead for a precise
 * sleep, and before it calls the transport. So a thousand small ops take the sum of their predicted
 * times, and the walker's own overhead is part of that time. A sleep ends late by the time that a
 * processor needs to wake up; therefore it is requested that much shorter.
 */
#include <math.h>

#include "interpret/kernel.h"

/* shortest sleep that is precise, in seconds */
#define MIN_SLEEP_S 200e-6
/* a call to the transport that took longer than this, in seconds, has waited for other ranks */
#define MIN_WAIT_S 50e-6
/* seconds by which one sleep moves the estimate of the oversleep, up or down, so that the estimate
 * converges to the median whatever the outliers */
#define OVERSLEEP_STEP_S 1e-6

/* Sleep until as close to `point_s` as possible, before or after it. */
static void sleep_towards(sw_interpreter *it, double point_s)
{
	double now = sw_now_s(), until = point_s - it->oversleep_s;
	if (point_s - now < it->oversleep_s / 2)
		return;
	sw_sleep_until(fmax(until, now));
	it->oversleep_s += sw_now_s() > point_s ? OVERSLEEP_STEP_S : -OVERSLEEP_STEP_S;
}

double sw_pace_wait(sw_interpreter *it)
{
	sleep_towards(it, it->paced_end_s);
	return sw_now_s();
}

/* A call that did not wait takes its own time and no more: if the walker came late, after a sleep
 * that was too long, the next ops make up for it. After a call that waited there is nothing to make
 * up for, since other ranks determined when it ended. */
void sw_pace_resume(sw_interpreter *it, double call_begin_s)
{
	double now = sw_now_s();
	it->paced_end_s =
		now - call_begin_s > MIN_WAIT_S ? now : it->paced_end_s + (now - call_begin_s);
}

/* Results are placed over dying operands, as by a kernel that works in place. */
sw_status sw_pace_op(sw_call *call, sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	const sw_pace *pace = it->options.pace;
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < call->op->n_results && status == SW_OK; i++)
		status = sw_result_in_place(call, i, sw_shape_elements(call->shapes[i]), err);
	it->paced_end_s += pace->seconds(pace->context, call->program, call->plan->op);
	if (it->paced_end_s > sw_now_s() + MIN_SLEEP_S)
		sleep_towards(it, it->paced_end_s);
	return status;
}
