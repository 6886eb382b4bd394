/* A program with inputs and what it gives on one device: partitioned programs are compared with
 * that. */
#ifndef SW_TESTS_PARTITION_SUBJECT_H
#define SW_TESTS_PARTITION_SUBJECT_H

#include "partition/execute.h"

typedef struct subject {
	sw_arena arena;
	const char *name;
	sw_program *program;
	sw_sidecar sidecar;
	uint32_t n_inputs, n_outputs;
	const sw_id *values;         /* per input */
	sw_tensor *inputs, *outputs; /* outputs: of the program as read */
} subject;

/* Integers are drawn from -1 to 7, so that some ids are out of range. */
void subject_from_text(const char *name, const char *hlo, subject *s);
/* A fixture; integers and moments as its sidecar says. */
void subject_from_fixture(const char *name, subject *s);
void subject_clear(subject *s);

/* Partitions, runs on ranks, compares each device's part of each output in norm, and the payload
 * that the ranks counted with the one of the cost model (which has the dearest branch of a
 * conditional). `what` names the plan in messages. */
void compare_with_serial(const subject *s, const sw_plan *plan, double tolerance, const char *what);

#endif
