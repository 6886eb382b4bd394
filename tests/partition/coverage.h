/* coverage: what plans have made use of, counted; and whether anything that can occur has not. */
#ifndef SW_TESTS_PARTITION_COVERAGE_H
#define SW_TESTS_PARTITION_COVERAGE_H

#include "partition/trial.h"

typedef struct coverage {
	int64_t cases, ops, padded;         /* padded: cases */
	int64_t there[SW_OPCODE_COUNT];     /* ops of planned computations */
	int64_t sharable[SW_OPCODE_COUNT];  /* those whose rule lets atoms do something */
	int64_t shared[SW_OPCODE_COUNT];    /* those whose atoms do something */
	int64_t offered[SW_EXCHANGE_COUNT]; /* factors, by what their local op exchanges */
	/* atoms on factors, by sw_factor_kind and exchange */
	int64_t factors[2][SW_EXCHANGE_COUNT];
	int64_t reduced[SW_MONOID_OR + 1], passed[SW_MONOID_OR + 1], joined; /* atoms, by monoid */
	int64_t streamed; /* atoms whose op gathers an operand panel by panel */
	int64_t carried_partial;
	int64_t moves[SW_MOVE_COUNT];
	int64_t steps[SW_MAX_MOVES + 1]; /* redistributions, by how many moves they take */
} coverage;

void coverage_add(coverage *c, const trial *t);
void coverage_sum(coverage *to, const coverage *from);
void coverage_print(const coverage *c, sw_text *text);
/* Lines that name what was not met and can be; returns their number. */
int coverage_missing(const coverage *c, sw_text *text);

#endif
