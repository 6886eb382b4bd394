/* Rules of ops that combine elements by a computation, and of batch normalisation. */
#include "program/internal.h"

/* Check that the operands are n arrays of equal dimensions, then n scalars of their types; fill
 * types[n]. */
static sw_status check_arrays_and_inits(const sw_inference *x, uint32_t n, sw_type *types)
{
	sw_shape first = sw_infer_operand(x, 0);
	for (uint32_t i = 0; i < n; i++) {
		sw_shape operand = sw_infer_operand(x, i);
		types[i] = operand.type;
		if (!sw_shape_same_dims(operand, first))
			return sw_infer_fail(x,
			                     "operand %u: expected the dimensions of %s, found %s",
			                     i, sw_infer_text(x, first), sw_infer_text(x, operand));
		sw_status status = sw_infer_scalar_like(x, n + i, operand.type);
		if (status != SW_OK)
			return status;
	}
	return SW_OK;
}

static sw_status check_reduction(const sw_inference *x, sw_type **types, uint32_t *n)
{
	*n = x->spec->n_operands / 2;
	sw_status status = sw_infer_count(x, *n > 0 && x->spec->n_operands % 2 == 0,
	                                  "arrays and as many initial values");
	if (status != SW_OK)
		return status;
	*types = SW_NEW_N(x->arena, sw_type, *n);
	status = check_arrays_and_inits(x, *n, *types);
	return status == SW_OK ? sw_infer_reducer(x, 0, *types, *n) : status;
}

static sw_status typed_results(sw_inference *x, const sw_type *types, uint32_t n,
                               const int64_t *dims, int32_t rank)
{
	sw_shape *out = sw_infer_results(x, n);
	for (uint32_t i = 0; i < n; i++)
		out[i] = (sw_shape){.type = types[i], .rank = rank, .dims = rank ? dims : NULL};
	return SW_OK;
}

sw_status sw_infer_reduce(sw_inference *x)
{
	uint32_t n;
	sw_type *types;
	sw_status status = check_reduction(x, &types, &n);
	if (status != SW_OK)
		return status;
	sw_shape first = sw_infer_operand(x, 0);
	sw_ints reduced = x->attrs->dims.dims;
	status = sw_infer_dim_list(x, "dimensions", reduced, first.rank);
	if (status != SW_OK)
		return status;
	int64_t *dims = sw_infer_dims(x, first.rank);
	int32_t rank = 0;
	for (int32_t d = 0; d < first.rank; d++) {
		if (!sw_ints_has(reduced, d))
			dims[rank++] = first.dims[d];
	}
	return typed_results(x, types, n, dims, rank);
}

/* ---- windows ---------------------------------------------------------------------------- */

static sw_status windowed(const sw_inference *x, sw_shape operand, int64_t **dims)
{
	sw_window window = x->attrs->window.window;
	if (window.rank != operand.rank)
		return sw_infer_fail(x, "window: expected rank %d, found %d", operand.rank,
		                     window.rank);
	*dims = sw_infer_dims(x, operand.rank);
	sw_status status = SW_OK;
	for (int32_t d = 0; d < operand.rank && status == SW_OK; d++)
		status = sw_infer_window_dim(x, &window.dims[d], operand.dims[d], &(*dims)[d]);
	return status;
}

sw_status sw_infer_reduce_window(sw_inference *x)
{
	uint32_t n;
	sw_type *types;
	int64_t *dims;
	sw_status status = check_reduction(x, &types, &n);
	if (status == SW_OK)
		status = windowed(x, sw_infer_operand(x, 0), &dims);
	return status == SW_OK ? typed_results(x, types, n, dims, sw_infer_operand(x, 0).rank)
	                       : status;
}

static sw_status check_selector(const sw_inference *x, sw_type type)
{
	sw_shape scalars[2] = {{.type = type}, {.type = type}}, pred = {.type = SW_PRED};
	sw_status status = sw_infer_callee_takes(x, 0, scalars, 2);
	return status == SW_OK ? sw_infer_callee_gives(x, 0, &pred, 1) : status;
}

sw_status sw_infer_select_and_scatter(sw_inference *x)
{
	sw_shape operand = sw_infer_operand(x, 0), source = sw_infer_operand(x, 1);
	sw_shape expected = {.type = operand.type, .rank = operand.rank};
	int64_t *dims;
	sw_status status = windowed(x, operand, &dims);
	expected.dims = status == SW_OK ? dims : NULL;
	if (status == SW_OK && !sw_shape_same(source, expected))
		return sw_infer_fail(x, "operand 1: expected %s, found %s",
		                     sw_infer_text(x, expected), sw_infer_text(x, source));
	if (status == SW_OK)
		status = sw_infer_scalar_like(x, 2, operand.type);
	if (status == SW_OK)
		status = check_selector(x, operand.type);
	if (status == SW_OK)
		status = sw_infer_reducer(x, 1, &operand.type, 1);
	return status == SW_OK ? sw_infer_one(x, operand) : status;
}

/* ---- order ------------------------------------------------------------------------------ */

static sw_status check_comparator(const sw_inference *x)
{
	uint32_t n = x->spec->n_operands;
	sw_shape *scalars = SW_NEW_N(x->arena, sw_shape, 2 * (size_t)n), pred = {.type = SW_PRED};
	for (uint32_t i = 0; i < n; i++)
		scalars[2 * i].type = scalars[2 * i + 1].type = sw_infer_operand(x, i).type;
	sw_status status = sw_infer_callee_takes(x, 0, scalars, 2 * n);
	return status == SW_OK ? sw_infer_callee_gives(x, 0, &pred, 1) : status;
}

sw_status sw_infer_sort(sw_inference *x)
{
	sw_status status = sw_infer_count(x, x->spec->n_operands > 0, "at least one operand");
	if (status != SW_OK)
		return status;
	sw_shape first = sw_infer_operand(x, 0);
	for (uint32_t i = 1; i < x->spec->n_operands; i++) {
		if (!sw_shape_same_dims(sw_infer_operand(x, i), first))
			return sw_infer_fail(
				x, "operand %u: expected the dimensions of %s, found %s", i,
				sw_infer_text(x, first), sw_infer_text(x, sw_infer_operand(x, i)));
	}
	status = sw_infer_dim(x, "dimensions", x->attrs->sort.dimension, first.rank);
	if (status == SW_OK)
		status = check_comparator(x);
	return status == SW_OK ? sw_infer_pass_through(x) : status;
}

sw_status sw_infer_topk(sw_inference *x)
{
	sw_shape shape = sw_infer_operand(x, 0);
	int64_t k = x->attrs->topk.k;
	if (shape.rank < 1)
		return sw_infer_fail(x, "expected an operand of rank 1 or more, found %s",
		                     sw_infer_text(x, shape));
	if (k < 0 || k > shape.dims[shape.rank - 1])
		return sw_infer_fail(x, "k: expected at most the last dimension of %s, found %lld",
		                     sw_infer_text(x, shape), (long long)k);
	int64_t *dims = sw_infer_dims(x, shape.rank);
	for (int32_t d = 0; d < shape.rank; d++)
		dims[d] = d == shape.rank - 1 ? k : shape.dims[d];
	sw_type types[2] = {shape.type, SW_S32};
	return typed_results(x, types, 2, dims, shape.rank);
}

/* ---- batch normalisation ---------------------------------------------------------------- */

/* Check that operands [first, n) are vectors over the feature dimension; set *vector to their
 * shape. */
static sw_status check_features(const sw_inference *x, uint32_t n, sw_shape *vector)
{
	sw_shape shape = sw_infer_operand(x, 0);
	sw_status status =
		sw_infer_dim(x, "feature_index", x->attrs->batch_norm.feature, shape.rank);
	if (status != SW_OK)
		return status;
	if (sw_type_kind_of(shape.type) != SW_KIND_FLOAT)
		return sw_infer_fail(x, "expected float operands, found %s",
		                     sw_infer_text(x, shape));
	int64_t *dims = sw_infer_dims(x, 1);
	dims[0] = shape.dims[x->attrs->batch_norm.feature];
	*vector = (sw_shape){.type = shape.type, .rank = 1, .dims = dims};
	for (uint32_t i = 1; i < n && status == SW_OK; i++)
		status = sw_infer_same_shape(x, i, *vector);
	return status;
}

static sw_status normalised(sw_inference *x, sw_shape vector)
{
	sw_shape *out = sw_infer_results(x, 3);
	out[0] = sw_infer_operand(x, 0);
	out[1] = out[2] = vector;
	return SW_OK;
}

sw_status sw_infer_batch_norm_training(sw_inference *x)
{
	sw_shape vector;
	sw_status status = check_features(x, 3, &vector);
	return status == SW_OK ? normalised(x, vector) : status;
}

sw_status sw_infer_batch_norm_inference(sw_inference *x)
{
	sw_shape vector;
	sw_status status = check_features(x, 5, &vector);
	return status == SW_OK ? sw_infer_one(x, sw_infer_operand(x, 0)) : status;
}

sw_status sw_infer_batch_norm_grad(sw_inference *x)
{
	sw_shape vector;
	sw_status status = check_features(x, 4, &vector);
	if (status == SW_OK)
		status = sw_infer_same_shape(x, 4, sw_infer_operand(x, 0));
	return status == SW_OK ? normalised(x, vector) : status;
}
