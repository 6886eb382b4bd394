/*
 * brute: small ops, every strategy, and the results that each device then computes.
 *
 * A sample is a program of parameters and one op, with the range of values for each parameter. For
 * a strategy the localised op is written and run for every device, on operands cut from random
 * whole ones (P operands: terms that combine to the whole). The results of the devices are compared
 * with the cut of the results of the whole program.
 */
#ifndef SW_TESTS_RULES_BRUTE_H
#define SW_TESTS_RULES_BRUTE_H

#include "interpret/interpret.h"
#include "rules/row.h"

#define BRUTE_MAX_VALUES 12

/* EXTREMES: a few small numbers, both infinities and NaN. */
typedef enum brute_fill {
	BRUTE_INTEGERS,
	BRUTE_POWERS_OF_TWO,
	BRUTE_EXTREMES,
	BRUTE_CONSTANT
} brute_fill;

typedef struct brute_sample {
	sw_program *program;
	int32_t c;
	sw_id op;
	sw_id operands[BRUTE_MAX_VALUES];
	uint32_t n;
	double low[BRUTE_MAX_VALUES], high[BRUTE_MAX_VALUES];
	brute_fill fill[BRUTE_MAX_VALUES];
	double tolerance; /* relative to max(1, |expected|): 0 where arithmetic is exact */
} brute_sample;

/* ---- writing a sample ------------------------------------------------------------------- */

void brute_init(brute_sample *sample);
void brute_clear(brute_sample *sample);
/* Parse "f32[4,6]". */
sw_shape brute_shape(brute_sample *sample, const char *text);
/* Parse "0,2". */
sw_ints brute_ints(brute_sample *sample, const char *text);
/* Append a parameter with values in [low, high]: integers, or powers of two with these
 * exponents. */
void brute_operand(brute_sample *sample, const char *shape, double low, double high);
void brute_powers(brute_sample *sample, const char *shape, double low, double high);
/* Append a constant broadcast to the shape, in place of a parameter. */
void brute_constant(brute_sample *sample, const char *shape, double value);
/* Write the op on all operands so far; shapes: NULL (inferred) or "f32[2];s32[2]". Fails the test
 * if it is not well formed. */
void brute_op(brute_sample *sample, sw_opcode opcode, const sw_attrs *attrs, const char *shapes);
void brute_op_calling(brute_sample *sample, sw_opcode opcode, const sw_attrs *attrs,
                      const char *shapes, const int32_t *called, uint32_t n_called);
/* Write the whole sample from HLO text: parameters, with integers in [-3, 3], and one op, the
 * root. */
void brute_from_text(brute_sample *sample, const char *hlo);

/* ---- running it ------------------------------------------------------------------------- */

typedef struct brute_counts {
	int64_t strategies, accepted, executed, devices; /* devices: local programs run */
	int64_t streamed;      /* accepted strategies with a loop over panels */
	int64_t payload_bytes; /* of the local ops: of the rank and strategy that send most */
	/* the interpreter does not implement the op: only layouts are checked */
	bool unsupported;
} brute_counts;

/* Check the strategies of the atoms: all of them if there are at most `budget`, else all that use
 * one atom, and `budget` random ones; a negative budget: that many random ones. */
void brute_check(brute_sample *sample, const sw_atoms *atoms, int64_t budget, uint64_t seed,
                 brute_counts *counts);

/* ---- the samples ------------------------------------------------------------------------ */

/* Write variant `variant` for the opcode; return false if there is none. */
typedef bool brute_variant(brute_sample *sample, sw_opcode opcode, int variant);
brute_variant brute_elementwise, brute_contract, brute_reduce, brute_window, brute_shapes,
	brute_affine, brute_index, brute_source, brute_random, brute_linalg, brute_dots;

/* Run every row with a rule on all its samples; fails if one is not exercised. The main() of a
 * test. */
int brute_run_families(int64_t budget);

#endif
