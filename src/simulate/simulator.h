/*
 * simulator: the state of the devices as they are played (play.c). Private to src/simulate.
 */
#ifndef SW_SIMULATE_SIMULATOR_H
#define SW_SIMULATE_SIMULATOR_H

#include "simulate/internal.h"

/* The clock and the running sums of a device, in seconds. */
typedef struct device_account {
	/* exposed: waiting for meetings under way; busy: its collective stream */
	double now, compute_s, exposed_s, busy_s;
	double host; /* when its host has launched what it was given so far */
} device_account;

typedef struct call_frame {
	const code_block *block;
	size_t at;
	const instruction *loop; /* of an iteration its loop; NULL: a call */
	int64_t iteration;
	device_account middle; /* the account when the latter half of the played iterations began */
} call_frame;

typedef struct interval {
	double begin, end;
} interval;

/* The collective stream of a device: the starts at which it has not arrived yet, by the time at
 * which they were given. */
typedef struct collective_stream {
	SW_VEC(double) given;
	size_t taken;           /* how many of those given were taken, from the front */
	int64_t started, ended; /* waves */
	/* it is in a meeting that is under way, or waits for other members */
	bool meeting;
	bool running;          /* the meeting has begun */
	double free;           /* since when it has had nothing to do */
	SW_VEC(interval) busy; /* meetings since the device's last wait */
} collective_stream;

typedef struct device {
	const code *code;
	device_account sum;
	SW_VEC(call_frame) frames;
	collective_stream stream;
	int64_t *wave_of; /* [collectives] the wave of the last start of each */
	int64_t awaited;  /* the wave that the device waits for; -1: none */
	sw_id waiting_at;
	/* the kernel under way since `now`, which may change its speed; NULL: none */
	const instruction *kernel;
	double remaining_s; /* of the kernel, at full speed */
	bool ends;          /* the kernel ends at the present event */
} device;

typedef struct meeting {
	const device_group *group;
	uint32_t collective;
	int64_t wave;
	int32_t arrived;
	double begin;
} meeting;

typedef struct wave {
	int32_t open; /* meetings that have not ended */
	meeting *meetings;
} wave;

typedef struct simulator {
	const code *code; /* of some device: all have its collectives */
	bool shares;      /* collectives take a share of some devices */
	int32_t n_devices, n_links;
	device *devices;
	sw_arena arena;
	device_groups *groups; /* [collectives]; found when first met */
	SW_VEC(wave) waves;
	size_t closed;         /* how many of those are closed, from the front */
	int64_t forgotten;     /* how many earlier waves are no longer listed */
	SW_VEC(meeting) ready; /* all members arrived, not begun */
	SW_VEC(meeting) running;
	SW_VEC(link_flow) flows; /* of the running meetings */
	double *scratch, clock;
	sw_trace *trace;
	int32_t trace_ranks;
} simulator;

/* ---- meeting_waves.c -------------------------------------------------------------------- */

static inline wave *wave_at(simulator *p, int64_t number)
{
	return &p->waves.data[number - p->forgotten];
}

/* Give the stream of a device the start of a collective at a time that is not before now. */
void start_collective(simulator *p, int32_t number, uint32_t what, double time);
/* Let the stream of a device arrive at its next start, if it is free and there is one. */
void arrive_at_meeting(simulator *p, int32_t number);
/* Close the waves that have ended; the list is compacted when half of it is closed. */
void close_waves(simulator *p);

#endif
