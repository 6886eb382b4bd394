/*
 * record: what a rank does in a step, and when.
 *
 * What the interpreter asks of the transport passes through here and is timed: how long the
 * computing thread waited in it is what is exposed of communication. With details every kernel,
 * collective and wait is kept as well, for a trace: kernels as the interpreter tells them,
 * collectives as the transport's watch does, by whatever thread performs them.
 */
#ifndef SW_RUN_RECORD_H
#define SW_RUN_RECORD_H

#include "run/run.h"

typedef struct sw_record_event {
	int32_t track; /* sw_track */
	sw_id op;
	double begin_s, end_s; /* from the step's beginning */
} sw_record_event;
typedef SW_VEC(sw_record_event) sw_record_events;

/* What a step had of the processors. */
typedef struct sw_record_cores {
	/* the computing thread; the one that performs what is begun */
	sw_thread_times own, transport;
} sw_record_cores;

typedef struct sw_record {
	sw_transport *transport;
	const sw_program *program;
	bool detailed;
	double begin_s, waited_s; /* of this step */
	sw_record_cores before;   /* the step */
	SW_VEC(struct sw_record_begun {
		sw_id op;
		uint64_t ticket;
	})
	begun;
	sw_record_events own, performed; /* by the computing thread; by who performs collectives */
} sw_record;

/* detailed: also sets the transport's watch; on all ranks or on none. Borrows both. */
void sw_record_init(sw_record *record, sw_transport *transport, const sw_program *program,
                    bool detailed);
void sw_record_clear(sw_record *record);
/* A step begins: what is known of the last one is forgotten. With details all ranks begin together,
 * so that their clocks agree. */
sw_status sw_record_step(sw_record *record, sw_error *err);

/* Since the step began. */
sw_record_cores sw_record_used(const sw_record *record);

/* For sw_interpret_options; context is the record. `timing` only with details. */
void sw_record_options(sw_record *record, sw_interpret_options *options);

/* What all ranks did in the last step, to rank 0's trace (others give none); names are the
 * program's. Collective; its bytes count as traffic. */
sw_status sw_record_gather(const sw_record *record, sw_trace *trace, sw_error *err);

#endif
