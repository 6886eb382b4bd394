/* phasing: which op of the entry stands in which loop (phases.c finds it, microbatches.c writes
 * it). */
#ifndef SW_REWRITE_PHASING_H
#define SW_REWRITE_PHASING_H

#include "rewrite/time.h"

typedef struct sw_phasing {
	sw_timing timing;
	bool *inputs; /* per entry input: it has the batch */
	int64_t batch;
	int32_t n; /* loops */
	/* per op of the entry: in a body the loop's number, else how many loops stand before it */
	int32_t *phase;
	bool *leaves;  /* per value of a body: it is read outside, or in another body */
	sw_id *reader; /* per value that leaves: the first such reader; SW_NO_ID: a result */
	bool *passed;  /* per value of a body: it is read there as it is */
} sw_phasing;

void sw_phasing_init(sw_phasing *phasing, const sw_program *program, const sw_sidecar *sidecar);
void sw_phasing_clear(sw_phasing *phasing);
/* False if an op refuses. */
bool sw_phasing_find(sw_phasing *phasing, int32_t microbatches);
/* From an input to the operand by which time came to the op that refuses; in the timing's arena. */
const char *sw_phasing_path(const sw_phasing *phasing);
/* Is the value one that is cheaper written again than carried: a constant, an iota, a broadcast of
 * either? */
bool sw_is_source(const sw_program *program, sw_id value);
/* In which the terms of a sum are added up. */
sw_type sw_sum_type(sw_type type, sw_monoid monoid);

#endif
