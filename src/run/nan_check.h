/* nan_check: which op of a step made the first NaN. Private to src/run. */
#ifndef SW_RUN_NAN_CHECK_H
#define SW_RUN_NAN_CHECK_H

#include "run/ranks.h"

/* What one rank has seen in a step. */
typedef struct sw_nan_check {
	const sw_program *program; /* that runs */
	bool *constant;            /* per op of it: it is computed from constants alone; owned */
	int64_t order;             /* the place of the next op in the order of the step */
	int64_t found;             /* the place in that order of the first op; -1: none */
	const sw_op *op;        /* NULL: it is an input */
	const char *input;      /* its name, if it is one */
	int64_t elements, nans; /* of its result */
} sw_nan_check;

/* Begin a step. What a check has from its last step is kept; clear it in the end. */
void sw_nan_check_begin(sw_nan_check *check);
void sw_nan_check_clear(sw_nan_check *check);
/* From now on ops are those of this program. Its constants may be NaN, as what JAX's gathers give
 * where they are out of bounds: only what is made of other values as well is looked at. O(ops). */
void sw_nan_check_program(sw_nan_check *check, const sw_program *program);
/* Matches sw_observe_fn, with a sw_nan_check as context. */
void sw_nan_check_op(void *context, sw_id op, const sw_tensor *results);
/* Look at an input of the step, before it begins. */
void sw_nan_check_input(sw_nan_check *check, const char *name, sw_tensor tensor);
/* If the op that was found stands for an input, note its name. */
void sw_nan_check_name_input(sw_nan_check *check, const sw_parts *parts, const sw_sidecar *sidecar);
/* Find out what all ranks have seen of a step (counted from 1); collective. If one has seen NaN,
 * set *seen on all of them, in words: the rank, the step and the first op of all ranks, or the
 * input that was NaN before the step; else seen->message is empty. */
sw_status sw_nan_check_end(const sw_nan_check *check, sw_transport *transport, int64_t step,
                           sw_error *seen, sw_error *err);
/* Return whether a float or complex tensor has a NaN, and how many; 0 for other types. */
int64_t sw_count_nans(sw_tensor tensor);

#endif
