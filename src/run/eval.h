/*
 * eval: a second program on the state of training.
 *
 * `run --eval PROGRAM` runs it every so many steps: inputs with the names of the trained state take
 * its values, where and as training has them, the others are data; its loss is averaged over the
 * same batches each time. The program is planned for the cluster of the training plan, with the
 * layouts of the state at rest as they are there, so that only the program's own collectives move
 * it. A plan with stages has each value on the devices of some stages alone: there the program is
 * planned by itself, and the values are sent to its layouts before each run.
 */
#ifndef SW_RUN_EVAL_H
#define SW_RUN_EVAL_H

#include "run/run.h"
#include "search/search.h"

/* What is trained, as a second program sees it. Borrows everything. */
typedef struct sw_run_trained {
	const sw_cluster *cluster;
	int64_t memory_bytes;
	const sw_program *serial;  /* as read: its inputs have no padding */
	const sw_program *held;    /* its inputs are as ranks hold them, with padding */
	const sw_sidecar *sidecar;
	/* NULL: a plan with stages, whose state is sent to where the second program has it */
	const sw_plan *plan;
} sw_run_trained;
sw_run_trained sw_run_trained_by(const sw_plan *plan, const sw_sidecar *sidecar);

typedef struct sw_run_eval {
	/* the program reduced to its loss, and the one result and all inputs of its sidecar; owned
	 */
	sw_program *program;
	sw_sidecar sidecar;
	int32_t *state; /* per input: the input of training whose value it takes; -1: it is data */
	sw_plan *plan;  /* owned */
	sw_program *local; /* what every rank runs; owned */
	/* set by the caller; borrowed. Each input that is data has some */
	const sw_data *data;
	const sw_arrays *arrays;
	int64_t every; /* after each step whose number it divides, and after the last; 0: only that
	                */
	int64_t batches; /* of which the losses are averaged; > 0 */
} sw_run_eval;

/* Reduce a program that was read to its loss, and find its inputs in the trained state, by name. Takes `program` and `sidecar`, also if it fails. SW_ERR_INPUT: it has no loss, or an
 * input of the same name has another shape or type. */
sw_status sw_run_eval_init(const sw_run_trained *trained, sw_program *program, sw_sidecar *sidecar,
                           sw_run_eval *eval, sw_error *err);
/* Once data and arrays are set: SW_ERR_INPUT where an input is neither in the trained state nor has
 * data, or where none is in the state. */
sw_status sw_run_eval_check(const sw_run_eval *eval, const sw_run_trained *trained, sw_error *err);
/* Plan the program, and make what every rank runs. `path` is for messages. The plan depends on the
 * arguments alone, so that all ranks make the same. */
sw_status sw_run_eval_plan(sw_run_eval *eval, const sw_run_trained *trained, const char *path,
                           bool quiet, sw_error *err);
void sw_run_eval_clear(sw_run_eval *eval);

#endif
