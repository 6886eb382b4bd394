/* coverage: count the features that plans use, and report those that can occur but did not. */
#ifndef SW_TESTS_PARTITION_COVERAGE_H
#define SW_TESTS_PARTITION_COVERAGE_H

#include "partition/trial.h"

typedef struct coverage {
	int64_t cases, ops, padded;         /* padded: number of padded cases */
	int64_t occurring[SW_OPCODE_COUNT]; /* ops of planned computations */
	int64_t sharable[SW_OPCODE_COUNT];  /* ops whose rule lets an atom split something */
	int64_t shared[SW_OPCODE_COUNT];    /* ops with at least one atom that does */
	int64_t exchanges_offered[SW_EXCHANGE_COUNT]; /* factors, by the exchange of their local op
	                                               */
	/* atoms on factors, by sw_factor_kind and exchange */
	int64_t factors[2][SW_EXCHANGE_COUNT];
	/* number of atoms, by monoid */
	int64_t reduced[SW_MONOID_OR + 1], passed[SW_MONOID_OR + 1], joined;
	int64_t streamed; /* atoms whose op gathers an operand panel by panel */
	int64_t carried_partial;
	int64_t moves[SW_MOVE_COUNT];
	int64_t steps[SW_MAX_MOVES + 1]; /* redistributions, by number of moves */
} coverage;

void coverage_add(coverage *c, const trial *t);
void coverage_sum(coverage *to, const coverage *from);
void coverage_print(const coverage *c, sw_text *text);
/* Append a line for each feature that can occur and did not; return their number. */
int coverage_missing(const coverage *c, sw_text *text);

#endif
