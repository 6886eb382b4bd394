/*
 * record: the activities of a rank in a step, and their times.
 *
 * The interpreter's calls to the transport pass through here and are timed: the time that the
 * computing thread waits in them is the exposed communication. With details, every kernel,
 * collective and wait is recorded for a trace: kernels as the interpreter reports them, collectives
 * as the transport's watch reports them, from whichever thread performs them.
 */
#ifndef SW_RUN_RECORD_H
#define SW_RUN_RECORD_H

#include "run/run.h"

typedef struct sw_record_event {
	int32_t track; /* sw_track */
	sw_id op;
	double begin_s, end_s; /* relative to the beginning of the step */
} sw_record_event;
typedef SW_VEC(sw_record_event) sw_record_events;

/* Processor times in a step. */
typedef struct sw_record_cores {
	/* of the computing thread, and of the transport's thread */
	sw_thread_times own, transport;
} sw_record_cores;

typedef struct sw_record {
	sw_transport *transport;
	const sw_program *program;
	/* the program of all ranks, and its op for each of `program` (NULL: both are the same) */
	const sw_program *common;
	const sw_id *origin;
	bool detailed;
	double begin_s, waited_s; /* of this step */
	sw_record_cores before;   /* at the beginning of the step */
	SW_VEC(struct sw_record_begun {
		sw_id op;
		uint64_t ticket;
	})
	begun;
	/* by the computing thread; by the thread that performs collectives */
	sw_record_events own, performed;
} sw_record;

/* Borrows all. common, origin: of sw_program_of_device, where a rank's program is one of its own;
 * else `program` and NULL. detailed: also sets the transport's watch; either on all ranks or on
 * none. */
void sw_record_init(sw_record *record, sw_transport *transport, const sw_program *program,
                    const sw_program *common, const sw_id *origin, bool detailed);
void sw_record_clear(sw_record *record);
/* Begin a step and drop the record of the previous one. With details all ranks begin together, so
 * that their clocks agree. */
sw_status sw_record_step(sw_record *record, sw_error *err);

/* Return the processor times since the step began. */
sw_record_cores sw_record_used(const sw_record *record);

/* Set the callbacks in the options, with the record as their context; `timing` only with
 * details. */
void sw_record_options(sw_record *record, sw_interpret_options *options);

/* Collect the activities of all ranks in the last step into rank 0's trace (other ranks pass none).
 * Names are those of the common program. Collective; its bytes count as traffic. */
sw_status sw_record_gather(const sw_record *record, sw_trace *trace, sw_error *err);

#endif
