/*
 * Products of bf16 matrices by the processor's matrix tiles (AMX of x86-64), from 3 to 5 times as
 * quick as in f32. Sums are in f32, in the order of the contracted index, 32 products at a time;
 * they are rounded once, to nearest even. Numbers too small to be normal are zero, as elsewhere
 * (flush.h).
 */
#ifndef SW_INTERPRET_BF16_PRODUCT_H
#define SW_INTERPRET_BF16_PRODUCT_H

#include "interpret/team.h"
#include "program/program.h"

/* One operand: for each matrix of the batch `outer` rows of `inner` contracted elements. Strides
 * are in elements; a side without a stride of 1 is read slowly. */
typedef struct sw_bf16_side {
	const uint16_t *data;
	int64_t outer, inner, outer_stride, inner_stride;
	int64_t batch_stride[SW_MAX_RANK];
	void *packed; /* room for sw_bf16_packed_bytes of each matrix, aligned to 64 bytes */
} sw_bf16_side;

typedef struct sw_bf16_product {
	int batch_rank;
	int64_t batch_dims[SW_MAX_RANK];
	sw_bf16_side a, b; /* of the same inner extent, at least 1 */
	bool rounds;       /* c is bf16, otherwise f32 */
	void *c;           /* dense: [batch][a.outer][b.outer] */
} sw_bf16_product;

/* Does this processor, and the system, offer matrix tiles of bf16 to this process? Asks the system
 * for them. Thread-safe. */
bool sw_bf16_tiles(void);
/* Bytes of a side's matrix in the order of tiles: a little more than two per element. Sizes are
 * below 2^31. */
int64_t sw_bf16_packed_bytes(int64_t outer, int64_t inner);
/* Write c = a b^T for each matrix of the batch. Requires sw_bf16_tiles(). Time: O(m n k). */
void sw_bf16_multiply(sw_team *team, const sw_bf16_product *p);

#endif
