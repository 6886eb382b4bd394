/* The geometry that gather and scatter share. */
#include "interpret/indexing.h"

/* Find the batch dimensions, in order: in the indices all but index_vector_dim; in the windowed
 * array all but the offset (window) dimensions. */
static void find_batch(sw_windows *w, sw_shape indices, sw_shape windowed)
{
	int64_t index_strides[SW_MAX_RANK + 1], strides[SW_MAX_RANK];
	sw_dense_strides(indices, index_strides);
	sw_dense_strides(windowed, strides);
	int vector = (int)w->dims->index_vector_dim;
	w->vector_stride = vector < indices.rank ? index_strides[vector] : 0;
	w->batch_rank = 0;
	for (int d = 0; d < indices.rank; d++) {
		if (d == vector)
			continue;
		w->batch_dims[w->batch_rank] = indices.dims[d];
		w->index_stride[w->batch_rank++] = index_strides[d];
	}
	for (int d = 0, i = 0; d < windowed.rank; d++) {
		if (!sw_ints_has(w->dims->offset, d))
			w->batch_stride[i++] = strides[d];
	}
}

static void find_window(sw_windows *w, sw_shape indexed, sw_shape windowed,
                        const int64_t *slice_sizes)
{
	int64_t strides[SW_MAX_RANK];
	sw_dense_strides(windowed, strides);
	sw_dense_strides(indexed, w->operand_stride);
	w->operand_rank = indexed.rank;
	w->window.rank = 0;
	for (int d = 0, i = 0; d < indexed.rank; d++) {
		w->operand_batch[d] = -1;
		bool flat = sw_ints_has(w->dims->collapsed, d) ||
		            sw_ints_has(w->dims->operand_batch, d);
		int64_t offset = flat ? 0 : w->dims->offset.v[i++];
		w->sizes[d] = slice_sizes ? slice_sizes[d] : flat ? 1 : windowed.dims[offset];
		if (flat)
			continue;
		int at = w->window.rank++;
		w->window.dims[at] = w->sizes[d];
		w->window.dst[at] = strides[offset];
		w->window.src[at] = w->operand_stride[d];
	}
}

void sw_windows_init(sw_windows *w, const sw_index_dims *dims, sw_shape indexed, sw_shape indices,
                     sw_shape windowed, const int64_t *slice_sizes)
{
	w->dims = dims;
	find_batch(w, indices, windowed);
	find_window(w, indexed, windowed, slice_sizes);
	for (int i = 0; i < dims->operand_batch.n; i++) {
		int64_t of_indices = dims->index_batch.v[i];
		bool after = of_indices > dims->index_vector_dim;
		w->operand_batch[dims->operand_batch.v[i]] = (int)of_indices - (after ? 1 : 0);
	}
}

void sw_windows_start(const sw_windows *w, sw_tensor indices, const int64_t *batch, int64_t *start)
{
	int64_t at = 0;
	for (int d = 0; d < w->batch_rank; d++)
		at += batch[d] * w->index_stride[d];
	for (int d = 0; d < w->operand_rank; d++)
		start[d] = w->operand_batch[d] < 0 ? 0 : batch[w->operand_batch[d]];
	for (int i = 0; i < w->dims->start_index_map.n; i++)
		start[w->dims->start_index_map.v[i]] = sw_index_at(
			indices.shape.type, sw_tensor_data(indices), at + i * w->vector_stride);
}
