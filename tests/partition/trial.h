/*
 * trial: a plan on given inputs, run on in-process ranks and on one device, and compared. Nothing
 * here fails a test: the outcome says what happened, so that a failing trial can be made smaller.
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
	double *errors;    /* per output: how far an element may be off; owned */
	/* If plan->original is there: what it is run with, for what is true in the outputs; owned.
	 */
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
	uint32_t
		/* DIFFERENT: the first output that is off, and by how much somewhere on a device */
		output;
	int64_t device;
	double off;
	sw_error err;
	int64_t payload_bytes, predicted_bytes;
} outcome;

void trial_run(const trial *t, outcome *o);
/* HLO text, strategies, layouts where they are not the whole tensor everywhere. */
void trial_print(const trial *t, const outcome *o, sw_text *text);

/* Runs the plan's program, with all its padding, on one device; outputs has room; with `values`,
 * what each value of the entry was, [values.len] entries. */
sw_status trial_serial(const trial *t, sw_tensor *outputs, sw_tensor *values, sw_error *err);

#endif
