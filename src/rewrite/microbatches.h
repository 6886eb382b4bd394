/*
 * microbatches: what the files share that write the looped program (microbatches.c). The program in
 * which each phase is a loop is OUT, the one that it is made from IN.
 */
#ifndef SW_REWRITE_MICROBATCHES_H
#define SW_REWRITE_MICROBATCHES_H

#include "rewrite/phasing.h"

typedef struct sw_looper {
	const sw_phasing *p;
	const sw_timing *t;
	const sw_program *in;
	sw_program *out;
	int32_t *computation; /* of `in` -> its whole copy in `out`, -1: none */
	sw_id *whole;         /* of `in` -> of the entry of `out` */
	sw_id *wide;          /* likewise: a loop's sum before it is rounded, SW_NO_ID: there is none */
	int32_t entry;        /* of `out` */
	bool takes_apart;     /* `in` takes something apart into terms */
	sw_error *err;
} sw_looper;

/* A computation being written, in which each iteration executes its part. */
typedef struct sw_iteration {
	sw_looper *l;
	int32_t phase; /* -1: a computation that a region runs */
	sw_coordinates at;
	sw_map versions; /* (value, state) -> of `out` */
} sw_iteration;

/* The state of a value that is the same in all iterations. */
#define SW_TIME_SAME ((sw_time){{0}, SW_MONOID_NONE})

/* ---- microbatch_ops.c: the ops of an iteration ------------------------------------------ */

/* Begin a computation of this name; the caller clears its versions. */
void sw_iteration_init(sw_iteration *w, sw_looper *l, int32_t phase, const char *name);
/* Return the value of OUT that is `value` in this state; SW_ABSENT: it is not there. */
sw_id sw_iteration_get(const sw_iteration *w, sw_id value, sw_time time);
void sw_iteration_put(sw_iteration *w, sw_id value, sw_time time, sw_id local);
/* Return the shape that a value has in this state. */
sw_shape sw_part_shape(const sw_looper *l, sw_id value, sw_time time);
/* Write an op, its operands first where they are computed in the body itself. */
sw_status sw_iteration_write_op(sw_iteration *w, sw_id id);
/* Return whether the value is computed in the body itself, in the state in which it is needed. */
bool sw_looper_sinks(const sw_looper *l, sw_id value, sw_time need);
/* Copy the computations that an op calls. */
void sw_looper_copy_called(sw_looper *l, const sw_op *op, int32_t *called);

/* ---- microbatch_terms.c: sums that are taken apart -------------------------------------- */

/* Write an op of the entry for the sum that is not rounded, too, if its operand has one and it passes
 * sums on; what takes that apart, and what reads the terms, is written so *instead. */
sw_status sw_looper_widen(sw_looper *l, sw_id op, bool *instead);

/* ---- microbatch_values.c: what a loop carries ------------------------------------------- */

typedef struct sw_loop_values {
	SW_VEC(sw_id) imports, exports; /* values of `in` */
	bool *seen;                     /* per value: imported, or visited through a sunk op */
} sw_loop_values;
/* Does the loop of this phase contain the op? */
bool sw_looper_in_phase(const sw_looper *l, int32_t phase, sw_id id);
void sw_loop_values_find(const sw_looper *l, int32_t phase, sw_loop_values *x);
void sw_loop_values_clear(sw_loop_values *x);
/* Return the shape in which an export is carried. */
sw_shape sw_carried_shape(const sw_looper *l, sw_id value);
/* Write the initial value of an export: neutral for a sum, arbitrary for a stored value, which is
 * overwritten. */
sw_id sw_carried_initial(const sw_looper *l, sw_id value);
/* Combine an export with its value carried so far. */
sw_status sw_iteration_export(sw_iteration *w, sw_id value, sw_id before, sw_id *after);
/* Return the value that readers outside use, from the value that the loop returns. */
sw_id sw_carried_result(const sw_looper *l, sw_id value, sw_id carried);

#endif
