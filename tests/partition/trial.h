/*
 * trial: a plan on given inputs, run on in-process ranks and on one device, and compared. No
 * function here fails a test: the outcome says what happened, so that a failing trial can be made
 * smaller.
 */
#ifndef SW_TESTS_PARTITION_TRIAL_H
#define SW_TESTS_PARTITION_TRIAL_H

#include "partition/execute.h"

typedef struct trial {
	sw_plan *plan;           /* owned */
	sw_path_cache *paths;    /* of its cluster */
	sw_cluster *own_cluster; /* owned, and so are the paths; NULL: both are borrowed */
	uint32_t n_inputs;
	sw_tensor *inputs; /* owned; whole, and with padding */
	double *errors;    /* per output: the error that an element may have; owned */
	/* If plan->original is set: its inputs, for the expected outputs without padding; owned. */
	sw_tensor *true_inputs;
} trial;
void trial_clear(trial *t);

typedef enum verdict {
	EQUAL,
	UNPLANNED,
	REFUSED,
	UNSCHEDULED,
	NOT_RUN,
	ENDLESS,
	DIFFERENT,
	OTHER_PAYLOAD
} verdict;
const char *verdict_name(verdict v);

typedef struct outcome {
	verdict verdict;
	/* DIFFERENT: the first output and device with a wrong element, and the largest error there
	 */
	uint32_t output;
	int64_t device;
	double largest_error;
	sw_error err;
	int64_t payload_bytes, predicted_bytes;
} outcome;

void trial_run(const trial *t, outcome *o);
/* Print the HLO text, the strategies, and the layouts that are not replicated. */
void trial_print(const trial *t, const outcome *o, sw_text *text);

/* Run the plan's program, padding included, on one device. `outputs` must have room for all
 * results; with `values`, also store the value of each value of the entry, [values.len] entries. */
sw_status trial_serial(const trial *t, sw_tensor *outputs, sw_tensor *values, sw_error *err);

#endif
