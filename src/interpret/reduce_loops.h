/* The inner loops of a reduction by a monoid, for one type. */
#ifndef SW_INTERPRET_REDUCE_LOOPS_H
#define SW_INTERPRET_REDUCE_LOOPS_H

#include "interpret/kernel.h"

typedef struct sw_reduce_loops {
	size_t accumulator_bytes;
	sw_unary_fn *start;  /* fills n accumulators from one element */
	sw_unary_fn *run;    /* one accumulator takes n elements */
	sw_unary_fn *rows;   /* n accumulators take one element each */
	sw_unary_fn *finish; /* accumulators to elements */
} sw_reduce_loops;

/* The type of the accumulators for elements of a type. */
sw_type sw_accumulator_type(sw_type type);

#endif
