/*
 * The geometry that gather and scatter share. Both iterate over the batch of index vectors. Each
 * vector gives the start of a window in the indexed array (gather's operand, scatter's input), and
 * this window corresponds to a window of the windowed array (gather's result, scatter's updates).
 */
#ifndef SW_INTERPRET_INDEXING_H
#define SW_INTERPRET_INDEXING_H

#include "interpret/kernel.h"

typedef struct sw_windows {
	const sw_index_dims *dims;
	int batch_rank;
	int64_t batch_dims[SW_MAX_RANK];
	int64_t batch_stride[SW_MAX_RANK];   /* in the windowed array */
	int64_t index_stride[SW_MAX_RANK];   /* of each batch dimension, in the indices */
	int64_t vector_stride;               /* from one component to the next, in the indices */
	int64_t operand_stride[SW_MAX_RANK]; /* of the indexed array */
	int64_t sizes[SW_MAX_RANK];          /* of the window, per dimension of the indexed array */
	int operand_rank;
	sw_strided window; /* dst: windowed array; src: indexed array */
	/* start of operand dimension d is batch index operand_batch[d]; -1: it is not a batch
	 * dimension */
	int operand_batch[SW_MAX_RANK];
} sw_windows;

/* slice_sizes are gather's attribute; NULL (scatter): they are derived from the windowed array. */
void sw_windows_init(sw_windows *w, const sw_index_dims *dims, sw_shape indexed, sw_shape indices,
                     sw_shape windowed, const int64_t *slice_sizes);
/* Write to `start` where the window of this batch index begins in the indexed array, per dimension
 * and not clamped. */
void sw_windows_start(const sw_windows *w, sw_tensor indices, const int64_t *batch, int64_t *start);
/* Return where the window of this batch index begins in the windowed array, in elements. */
static inline int64_t sw_windows_offset(const sw_windows *w, const int64_t *batch)
{
	int64_t offset = 0;
	for (int d = 0; d < w->batch_rank; d++)
		offset += batch[d] * w->batch_stride[d];
	return offset;
}

#endif
