/* Rules of gather and scatter, after XLA's operation semantics of gather and scatter. */
#include "program/internal.h"

/* Return the size of one index vector; an index_vector_dim just past the end means that each index
 * is a scalar. */
static int64_t vector_size(sw_shape indices, int64_t vector_dim)
{
	return vector_dim == indices.rank ? 1 : indices.dims[vector_dim];
}

static sw_status check_indices(const sw_inference *x, uint32_t operand)
{
	const sw_index_dims *a = &x->attrs->index;
	sw_shape indices = sw_infer_operand(x, operand);
	sw_type_kind kind = sw_type_kind_of(indices.type);
	if (kind != SW_KIND_SIGNED && kind != SW_KIND_UNSIGNED)
		return sw_infer_fail(x, "operand %u: expected integer indices, found %s", operand,
		                     sw_infer_text(x, indices));
	sw_status status =
		sw_infer_dim(x, "index_vector_dim", a->index_vector_dim, indices.rank + 1);
	if (status != SW_OK)
		return status;
	if (vector_size(indices, a->index_vector_dim) != a->start_index_map.n)
		return sw_infer_fail(x, "expected index vectors of %d numbers, found %lld in %s",
		                     a->start_index_map.n,
		                     (long long)vector_size(indices, a->index_vector_dim),
		                     sw_infer_text(x, indices));
	return SW_OK;
}

/* Check the pairs of batching dimensions of operand and indices, which advance together. */
static sw_status check_batch(const sw_inference *x, sw_shape operand, sw_shape indices)
{
	const sw_index_dims *a = &x->attrs->index;
	sw_status status =
		sw_infer_dim_list(x, "operand's batching dims", a->operand_batch, operand.rank);
	if (status == SW_OK)
		status = sw_infer_dim_list(x, "indices' batching dims", a->index_batch,
		                           indices.rank);
	if (status != SW_OK)
		return status;
	if (a->operand_batch.n != a->index_batch.n)
		return sw_infer_fail(
			x, "expected as many batching dims of operand and indices, found %d and %d",
			a->operand_batch.n, a->index_batch.n);
	for (int32_t i = 0; i < a->operand_batch.n; i++) {
		int64_t d = a->operand_batch.v[i], e = a->index_batch.v[i];
		if (e == a->index_vector_dim || operand.dims[d] != indices.dims[e])
			return sw_infer_fail(x,
			                     "batching dims %lld of %s and %lld of %s do not match",
			                     (long long)d, sw_infer_text(x, operand), (long long)e,
			                     sw_infer_text(x, indices));
		if (sw_ints_has(a->collapsed, d) || sw_ints_has(a->start_index_map, d))
			return sw_infer_fail(
				x, "dimension %lld is a batching dim and must have no other use",
				(long long)d);
	}
	return SW_OK;
}

/* Check that every operand dimension is a window dimension, a collapsed one or a batching one. */
static sw_status check_operand_dims(const sw_inference *x, sw_shape operand)
{
	const sw_index_dims *a = &x->attrs->index;
	sw_status status =
		sw_infer_dim_list(x, "collapsed or inserted dims", a->collapsed, operand.rank);
	if (status == SW_OK)
		status = sw_infer_dim_list(x, "index map", a->start_index_map, operand.rank);
	if (status != SW_OK)
		return status;
	int32_t covered = a->offset.n + a->collapsed.n + a->operand_batch.n;
	if (covered != operand.rank)
		return sw_infer_fail(x,
		                     "window, collapsed and batching dims must cover the %d "
		                     "dimensions of %s, found %d",
		                     operand.rank, sw_infer_text(x, operand), covered);
	return SW_OK;
}

static sw_status check_window_dims(const sw_inference *x, const char *what, int32_t rank)
{
	sw_ints list = x->attrs->index.offset;
	for (int32_t i = 1; i < list.n; i++) {
		if (list.v[i] <= list.v[i - 1])
			return sw_infer_fail(x, "%s: expected increasing dimensions", what);
	}
	return sw_infer_dim_list(x, what, list, rank);
}

static bool is_window_dim(const sw_index_dims *a, int64_t d)
{
	return !sw_ints_has(a->collapsed, d) && !sw_ints_has(a->operand_batch, d);
}

static sw_status check_common(const sw_inference *x, uint32_t indices)
{
	sw_shape operand = sw_infer_operand(x, 0);
	sw_status status = check_indices(x, indices);
	if (status == SW_OK)
		status = check_batch(x, operand, sw_infer_operand(x, indices));
	return status == SW_OK ? check_operand_dims(x, operand) : status;
}

/* ---- gather ----------------------------------------------------------------------------- */

static sw_status check_slice_sizes(const sw_inference *x, sw_shape operand)
{
	const sw_index_dims *a = &x->attrs->index;
	if (a->slice_sizes.n != operand.rank)
		return sw_infer_fail(x, "slice_sizes: expected %d numbers, found %d", operand.rank,
		                     a->slice_sizes.n);
	for (int32_t d = 0; d < operand.rank; d++) {
		int64_t size = a->slice_sizes.v[d];
		if (size < 0 || size > operand.dims[d])
			return sw_infer_fail(x, "slice_sizes: %lld does not fit dimension %d of %s",
			                     (long long)size, d, sw_infer_text(x, operand));
		if (!is_window_dim(a, d) && size > 1)
			return sw_infer_fail(
				x,
				"slice_sizes: expected at most 1 for collapsed or batching "
				"dimension %d, found %lld",
				d, (long long)size);
	}
	return SW_OK;
}

/* Return the next dimension at or after d that is a window dimension / that is not the index
 * vector. */
static int32_t next_window(const sw_index_dims *a, int32_t d)
{
	while (!is_window_dim(a, d))
		d++;
	return d;
}

static int32_t next_index(const sw_index_dims *a, int32_t d)
{
	return d == a->index_vector_dim ? d + 1 : d;
}

sw_status sw_infer_gather(sw_inference *x)
{
	const sw_index_dims *a = &x->attrs->index;
	sw_shape operand = sw_infer_operand(x, 0), indices = sw_infer_operand(x, 1);
	sw_status status = check_common(x, 1);
	if (status == SW_OK)
		status = check_slice_sizes(x, operand);
	if (status != SW_OK)
		return status;
	int32_t rank = a->offset.n + indices.rank - (a->index_vector_dim < indices.rank);
	status = check_window_dims(x, "offset_dims", rank);
	if (status != SW_OK)
		return status;
	int64_t *dims = sw_infer_dims(x, rank);
	int32_t window = 0, index = 0;
	for (int32_t d = 0; d < rank; d++) {
		if (sw_ints_has(a->offset, d)) {
			window = next_window(a, window);
			dims[d] = a->slice_sizes.v[window++];
		} else {
			index = next_index(a, index);
			dims[d] = indices.dims[index++];
		}
	}
	return sw_infer_one(x, (sw_shape){.type = operand.type, .rank = rank, .dims = dims});
}

/* ---- scatter ---------------------------------------------------------------------------- */

static sw_status check_update(const sw_inference *x, uint32_t k, sw_shape operand, sw_shape indices)
{
	const sw_index_dims *a = &x->attrs->index;
	sw_shape update = sw_infer_operand(x, k);
	int32_t rank = a->offset.n + indices.rank - (a->index_vector_dim < indices.rank);
	bool fits = update.rank == rank;
	int32_t window = 0, index = 0;
	for (int32_t d = 0; fits && d < rank; d++) {
		if (sw_ints_has(a->offset, d)) {
			window = next_window(a, window);
			fits = update.dims[d] <= operand.dims[window++];
		} else {
			index = next_index(a, index);
			fits = update.dims[d] == indices.dims[index++];
		}
	}
	if (fits)
		return SW_OK;
	return sw_infer_fail(x, "operand %u: the updates %s do not fit operand %s and indices %s",
	                     k, sw_infer_text(x, update), sw_infer_text(x, operand),
	                     sw_infer_text(x, indices));
}

static sw_status check_scatter_operands(const sw_inference *x, uint32_t n, sw_type *types)
{
	sw_shape indices = sw_infer_operand(x, n), first = sw_infer_operand(x, 0);
	for (uint32_t i = 0; i < n; i++) {
		sw_shape operand = sw_infer_operand(x, i), update = sw_infer_operand(x, n + 1 + i);
		types[i] = operand.type;
		if (!sw_shape_same_dims(operand, first))
			return sw_infer_fail(x,
			                     "operand %u: expected the dimensions of %s, found %s",
			                     i, sw_infer_text(x, first), sw_infer_text(x, operand));
		if (update.type != operand.type)
			return sw_infer_fail(x, "operand %u: expected updates of %s, found %s",
			                     n + 1 + i, sw_type_name(operand.type),
			                     sw_infer_text(x, update));
		sw_status status = check_update(x, n + 1 + i, operand, indices);
		if (status != SW_OK)
			return status;
	}
	return SW_OK;
}

sw_status sw_infer_scatter(sw_inference *x)
{
	uint32_t n = x->spec->n_operands / 2;
	sw_status status = sw_infer_count(x, n > 0 && x->spec->n_operands % 2 == 1,
	                                  "inputs, indices and as many updates");
	if (status != SW_OK)
		return status;
	sw_shape indices = sw_infer_operand(x, n);
	const sw_index_dims *a = &x->attrs->index;
	status = check_common(x, n);
	if (status == SW_OK)
		status = check_window_dims(x, "update_window_dims",
		                           a->offset.n + indices.rank -
		                                   (a->index_vector_dim < indices.rank));
	sw_type *types = SW_NEW_N(x->arena, sw_type, n);
	if (status == SW_OK)
		status = check_scatter_operands(x, n, types);
	if (status == SW_OK)
		status = sw_infer_reducer(x, 0, types, n);
	if (status != SW_OK)
		return status;
	sw_shape *out = sw_infer_results(x, n);
	for (uint32_t i = 0; i < n; i++)
		out[i] = sw_infer_operand(x, i);
	return SW_OK;
}
