/*
 * session: a plan runs in this process, step by step, one thread per device.
 *
 * Arrays go in and come out whole, by the numbers of inputs and results; each rank takes and gives
 * its part. Between two calls no thread computes. What is not given is what `run` would take: of
 * state the sidecar's initial values, of data the numbers of its `init` and the seed, step by step.
 */
#ifndef SW_RUN_SESSION_H
#define SW_RUN_SESSION_H

#include "pipelined/pipelined.h"
#include "run/data_files.h"
#include "run/eval.h"

typedef struct sw_session sw_session;

typedef struct sw_session_options {
	uint64_t seed;
	int blas_threads; /* of each rank; 0: cores / ranks */
	/* batches of data inputs, and a second program that is run on the state; borrowed; NULL: none */
	const sw_data_files *data;
	const sw_run_eval *eval;
} sw_session_options;

typedef enum sw_session_kind {
	SW_SESSION_STATE,  /* it outlasts a step: state, and inputs that are no data */
	SW_SESSION_DATA,   /* an input of each step */
	SW_SESSION_RESULT, /* of a step, that is no state */
} sw_session_kind;
/* Shapes are those of the program that is planned, without padding. */
typedef struct sw_session_array {
	const char *name;
	sw_shape shape;
	sw_session_kind kind;
} sw_session_array;

/* Begin with step 0 of a plan, or of one with stages (the other is NULL). Borrows all. Freed by the
 * caller. SW_ERR_INPUT: its variables are served by owners, which go on by themselves. */
sw_status sw_session_open(const sw_plan *plan, const sw_pipelined *stages,
                          const sw_sidecar *sidecar, const sw_session_options *options,
                          sw_session **session, sw_error *err);
void sw_session_free(sw_session *session);

uint32_t sw_session_arrays(const sw_session *session);
/* Describe an array: inputs, and then results that are no state. */
sw_session_array sw_session_array_at(const sw_session *session, uint32_t array);
/* Find an array by its name; sw_session_arrays() where there is none. Inputs go before results. */
uint32_t sw_session_find(const sw_session *session, const char *name);
/* Give a whole array, dense and row-major: state is that from now on, data in each step until it is
 * given again. SW_ERR_INPUT: it is a result. */
sw_status sw_session_set(sw_session *session, uint32_t array, const void *whole, sw_error *err);
/* Take an array: state as it is now, data as it was given, results of the last step. */
sw_status sw_session_get(const sw_session *session, uint32_t array, void *whole, sw_error *err);
/* Do a step. After a failure the session can only be freed, as after one in the middle of setting or
 * loading state: all calls fail then. */
sw_status sw_session_step(sw_session *session, sw_error *err);
/* Steps done, those of the checkpoint included that was loaded last. */
int64_t sw_session_steps(const sw_session *session);

/* Run the second program on the state, on the same batches each time; *loss is the mean of its losses.
 * SW_ERR_INPUT: there is none. */
sw_status sw_session_evaluate(sw_session *session, double *loss, sw_error *err);

/* Write a checkpoint as `run --save` does, step-N in the folder, and read one: state is then what
 * `run --load` begins with, that which the file lacks included, and so are the step and the seed, if
 * it has them. */
sw_status sw_session_save(const sw_session *session, const char *folder, sw_error *err);
sw_status sw_session_load(sw_session *session, const char *path, sw_error *err);

#endif
