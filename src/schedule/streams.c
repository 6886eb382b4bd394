/*
 * The model of one device that schedules are timed by: kernels run in program order; collectives
 * run one after the other in the order of their starts, each as soon as its operands are there and
 * the stream is free; a done waits. Kernels beside a collective run slower, by the share of the
 * device that it takes.
 *
 * A region is one kernel here: its collectives queue behind those under way, and it ends when both
 * its kernels and its collectives have ended.
 */
#include <math.h>

#include "schedule/internal.h"

sw_streams sw_streams_of(const sw_tasks *graph, double stretch)
{
	return (sw_streams){.transfer_share = graph->transfer_share, .stretch = stretch};
}

/* Return the seconds of a kernel that begins now. The collectives that have begun run without a gap
 * until their stream is free. */
static double slowed_s(const sw_streams *at, double seconds)
{
	double beside = SW_MAX(0, at->collectives_s - at->kernels_s), share = at->transfer_share;
	return SW_MIN(seconds + share * beside, seconds / (1 - share));
}

static sw_stream_span run_kernel(sw_streams *at, const sw_schedule_task *task)
{
	sw_stream_span span = {at->kernels_s, at->kernels_s + slowed_s(at, task->seconds)};
	if (task->collective_s > 0) {
		span.end_s = SW_MAX(span.end_s, SW_MAX(at->kernels_s, at->collectives_s) +
		                                        at->stretch * task->collective_s);
		at->collectives_s = span.end_s;
	}
	at->kernels_s = span.end_s;
	return span;
}

static sw_stream_span run_collective(sw_streams *at, const sw_schedule_task *task)
{
	double begin_s = SW_MAX(at->kernels_s, at->collectives_s);
	at->collectives_s = begin_s + at->stretch * task->seconds;
	if (task->kind == SW_TASK_BLOCKING)
		at->kernels_s = at->collectives_s;
	return (sw_stream_span){begin_s, at->collectives_s};
}

static sw_stream_span wait_for(sw_streams *at, double landed_s)
{
	sw_stream_span span = {at->kernels_s, SW_MAX(at->kernels_s, landed_s)};
	at->kernels_s = span.end_s;
	return span;
}

sw_stream_span sw_streams_run(sw_streams *at, const sw_schedule_task *task, double landed_s)
{
	switch (task->kind) {
	case SW_TASK_KERNEL:
		return run_kernel(at, task);
	case SW_TASK_DONE:
		return wait_for(at, landed_s);
	default:
		return run_collective(at, task);
	}
}

double sw_streams_play(const sw_tasks *graph, const uint32_t *order, double stretch,
                       sw_stream_span *spans)
{
	sw_streams at = sw_streams_of(graph, stretch);
	double *landed = sw_alloc(sizeof(*landed) * (graph->n + 1));
	for (uint32_t i = 0; i < graph->n; i++) {
		const sw_schedule_task *task = &graph->tasks[order[i]];
		double landed_s = task->kind == SW_TASK_DONE ? landed[task->partner] : 0;
		sw_stream_span span = sw_streams_run(&at, task, landed_s);
		landed[order[i]] = span.end_s;
		if (spans)
			spans[order[i]] = span;
	}
	free(landed);
	return SW_MAX(at.kernels_s, at.collectives_s);
}
