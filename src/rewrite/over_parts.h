/*
 * over_parts: what is made of values in parts, part by part. Private to src/rewrite.
 */
#ifndef SW_REWRITE_OVER_PARTS_H
#define SW_REWRITE_OVER_PARTS_H

#include "rewrite/rewrite.h"

typedef struct sw_value_parts {
	int32_t axis, n;
	bool sums; /* the parts are sums of gradients, or made of such alone */
	sw_id *of; /* [n] of `out`; SW_NO_ID: it is not written yet */
} sw_value_parts;

/* A walk that copies the entry of `in` to computation c of `out`. */
typedef struct sw_over_parts {
	const sw_program *in;
	sw_program *out;
	int32_t c;
	sw_arena *arena;
	sw_id *value;           /* of `in` -> of `out`; the walk's */
	sw_value_parts **parts; /* per value of `in`; NULL: it is whole */
	sw_error *err;
} sw_over_parts;

/* Let a value of `in` be the concatenation of n values of `out`, sums of gradients. */
void sw_over_parts_set(sw_over_parts *o, sw_id value, int32_t axis, const sw_id *parts, int32_t n);
/* Look at an op that is about to be copied. If a slice of it is one part, or it is a sum over parts
 * of sums of gradients, write what it is made of parts, set its value and *written. */
sw_status sw_over_parts_op(sw_over_parts *o, sw_id op, bool *written);

#endif
