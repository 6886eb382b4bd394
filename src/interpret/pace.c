/*
 * Paced execution: each op takes the time that a model says, and nothing is computed.
 *
 * Time is owed first and waited for later: ops add to when they would be done, and the walker
 * sleeps only once that is far enough ahead for a sleep to be exact, and before it speaks to
 * others. So a thousand small ops take their thousand times in sum, and what the walker itself
 * needs is hidden behind what is owed. A sleep ends late, by as much as a processor needs to wake
 * up: it is told to end that much earlier.
 */
#include <math.h>

#include "interpret/kernel.h"

/* What a sleep can be trusted with, seconds. */
#define MIN_SLEEP_S 200e-6
/* A call of others that took longer has waited. */
#define MIN_WAIT_S 50e-6
/* By how much one sleep changes what is known of them: up or down, so that the median is found
 * whatever the worst are. */
#define OVERSLEEP_STEP_S 1e-6

/* Ends as near to the point as a sleep can, before it or after. */
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

/* What was not waited for took its time and no more: that the walker came late, from a sleep that
 * was too long, is made up by the next ops. After a wait there is nothing to make up: others
 * decided when it ended. */
void sw_pace_resume(sw_interpreter *it, double call_begin_s)
{
	double now = sw_now_s();
	it->paced_end_s =
		now - call_begin_s > MIN_WAIT_S ? now : it->paced_end_s + (now - call_begin_s);
}

/* Results lie where an operand dies, as those of a kernel that works in place. */
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
