/*
 * trace: the times of ops as a Trace Event file (JSON; opens in Perfetto and chrome://tracing). The
 * simulator and a real run write the same: process = rank, thread 0 = kernels, thread 1 =
 * collectives, thread 2 = waits. Times are in microseconds from the beginning of the step.
 */
#ifndef SW_TRACE_H
#define SW_TRACE_H

#include "program/program.h"

typedef enum sw_track { SW_TRACK_KERNELS, SW_TRACK_COLLECTIVES, SW_TRACK_WAITS } sw_track;
typedef struct sw_trace_event {
	int32_t rank;
	sw_track track;
	/* name and opcode of the op; they live as long as the trace's program */
	const char *name, *category;
	int64_t bytes; /* of a collective's operands; -1: none */
	double begin_s, end_s;
} sw_trace_event;
typedef struct sw_trace {
	SW_VEC(sw_trace_event) events;
} sw_trace;
void sw_trace_add(sw_trace *trace, const sw_trace_event *event);
void sw_trace_clear(sw_trace *trace);
/* Write the trace to a file. title: part of the file's metadata, e.g. "simulated". */
sw_status sw_trace_write(const sw_trace *trace, const char *title, const char *path, sw_error *err);

#endif
