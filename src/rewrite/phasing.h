/* phasing: assigns each op of the entry to a loop, or to a place between loops. phases.c reports
 * it, microbatches.c writes it. */
#ifndef SW_REWRITE_PHASING_H
#define SW_REWRITE_PHASING_H

#include "rewrite/time.h"

typedef struct sw_phasing {
	sw_timing timing;
	int32_t *inputs; /* per entry input: the dimension that is the batch, -1: none */
	int64_t batch;   /* as sw_find_batch returns it */
	bool *of_data;   /* per value of the entry: it is made of data and constants alone */
	int32_t n; /* loops */
	/* per op of the entry: in a body the loop's number, else the number of loops before it */
	int32_t *phase;
	bool *leaves; /* per value of a body: it is read outside, or in another body */
	/* per value that leaves: the first reader outside its loop; SW_NO_ID: it is a result */
	sw_id *reader;
	bool *passed; /* per value of a body: an op of the body reads it in its own state */
} sw_phasing;

void sw_phasing_init(sw_phasing *phasing, const sw_program *program, const sw_sidecar *sidecar);
void sw_phasing_clear(sw_phasing *phasing);
/* Find the phases for this number of microbatches; return false if an op refuses. */
bool sw_phasing_find(sw_phasing *phasing, int32_t microbatches);
/* Return the path from an input to the operand through which time reached the op that refuses; it
 * lies in the timing's arena. */
const char *sw_phasing_path(const sw_phasing *phasing);
/* Return whether the value is cheaper to write again than to carry: a constant, an iota, a
 * broadcast of either. */
bool sw_is_source(const sw_program *program, sw_id value);
/* Return the type in which the terms of a sum are added up. */
sw_type sw_sum_type(sw_type type, sw_monoid monoid);

#endif
