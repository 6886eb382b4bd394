/*
 * stage_flights: what crosses between stages for each microbatch, under way while a rank computes.
 *
 * A transfer of a microbatch is a FLIGHT of src/transport, with buffers of its own. Receives are
 * posted before the passes that read them, sends when they are made; a pass waits for what it
 * reads, and nothing else does until the step ends. Private to src/run.
 */
#ifndef SW_RUN_STAGE_FLIGHTS_H
#define SW_RUN_STAGE_FLIGHTS_H

#include "pipelined/stage_programs.h"
#include "run/reshard_parts.h"

/* A transfer of one microbatch, or buffers for one. */
typedef struct stage_flight {
	reshard_rank parts;
	sw_flight *flight; /* NULL: it is over */
	int32_t microbatch;
	struct stage_flight *next; /* of those that are free */
} stage_flight;

/* Of one rank. */
typedef struct stage_flights {
	const sw_stage_programs *programs;
	sw_transport *transport;
	int32_t slice;
	bool signal; /* one byte a message, without the values */
	sw_arena arena;
	stage_flight **free;      /* [transfers]: buffers that are not in use */
	stage_flight ***arriving; /* [transfers][microbatches]: posted, and not taken; else NULL */
	SW_VEC(stage_flight *) leaving; /* transfers[i] of them: leaving_of */
	SW_VEC(int32_t) leaving_of;
	/* Events of transfers that come to this slice, and of its passes, in their order. */
	SW_VEC(int32_t) arrivals, passes;
	size_t posted, passed; /* of this step */
} stage_flights;

void stage_flights_init(stage_flights *f, const sw_stage_programs *programs,
                        sw_transport *transport, int32_t slice, bool signal);
void stage_flights_clear(stage_flights *f);
/* Begin a step. */
void stage_flights_begin(stage_flights *f);
/* Post the receives of the pass at this event of the list and of those that follow it soon. */
sw_status stage_flights_post(stage_flights *f, int32_t event, sw_error *err);
/* Send this rank's part of what a transfer takes. */
sw_status stage_flights_send(stage_flights *f, int32_t transfer, int32_t microbatch,
                             const void *part, sw_error *err);
/* Wait for what the transfer brings for the microbatch, if it has been posted and not taken: then
 * *found. The part is written to the tensor, made anew with these local dimensions. */
sw_status stage_flights_take(stage_flights *f, int32_t transfer, int32_t microbatch,
                             const int64_t *dims, sw_tensor *part, bool *found, sw_error *err);
/* Wait until all that this rank has to do with is over. */
sw_status stage_flights_end(stage_flights *f, sw_error *err);

#endif
