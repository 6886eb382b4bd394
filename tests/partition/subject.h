/* A program with inputs and its outputs on one device, with which partitioned programs are
 * compared. */
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
	sw_tensor *inputs, *outputs; /* outputs: of the program as it was read */
} subject;

/* Draw integers from -1 to 7, so that some ids are out of range. */
void subject_from_text(const char *name, const char *hlo, subject *s);
/* Read a fixture; integers and moments are filled as its sidecar says. */
void subject_from_fixture(const char *name, subject *s);
void subject_clear(subject *s);

/* Partition the program and run it on ranks. Compare each device's part of each output in norm, and
 * the payload that the ranks counted with that of the cost model (which counts the most expensive
 * branch of a conditional). `what` names the plan in messages. */
void compare_with_serial(const subject *s, const sw_plan *plan, double tolerance, const char *what);

#endif
