/* Rules of contractions: dot, ragged-dot, scaled-dot, convolution. */
#include "program/internal.h"

/* ---- dot -------------------------------------------------------------------------------- */

static sw_status check_pairs(const sw_inference *x, const char *what, sw_ints left, sw_ints right,
                             sw_shape lhs, sw_shape rhs)
{
	sw_status status = sw_infer_dim_list(x, what, left, lhs.rank);
	if (status == SW_OK)
		status = sw_infer_dim_list(x, what, right, rhs.rank);
	if (status != SW_OK)
		return status;
	if (left.n != right.n)
		return sw_infer_fail(x, "%s: expected as many on both sides, found %d and %d", what,
		                     left.n, right.n);
	for (int32_t i = 0; i < left.n; i++) {
		if (lhs.dims[left.v[i]] != rhs.dims[right.v[i]])
			return sw_infer_fail(
				x, "%s: dimension %lld of %s and %lld of %s differ in size", what,
				(long long)left.v[i], sw_infer_text(x, lhs), (long long)right.v[i],
				sw_infer_text(x, rhs));
	}
	return SW_OK;
}

static bool overlap(sw_ints a, sw_ints b)
{
	for (int32_t i = 0; i < a.n; i++) {
		if (sw_ints_has(b, a.v[i]))
			return true;
	}
	return false;
}

static int32_t add_free(int64_t *dims, int32_t rank, sw_shape shape, sw_ints batch,
                        sw_ints contracting, sw_ints group)
{
	for (int32_t d = 0; d < shape.rank; d++) {
		if (!sw_ints_has(batch, d) && !sw_ints_has(contracting, d) &&
		    !sw_ints_has(group, d))
			dims[rank++] = shape.dims[d];
	}
	return rank;
}

static sw_status check_dot(const sw_inference *x)
{
	sw_shape lhs = sw_infer_operand(x, 0), rhs = sw_infer_operand(x, 1);
	sw_ints lb = x->attrs->dot.lhs_batch, rb = x->attrs->dot.rhs_batch;
	sw_ints lc = x->attrs->dot.lhs_contracting, rc = x->attrs->dot.rhs_contracting;
	sw_status status = check_pairs(x, "batch dims", lb, rb, lhs, rhs);
	if (status == SW_OK)
		status = check_pairs(x, "contracting dims", lc, rc, lhs, rhs);
	if (status != SW_OK)
		return status;
	if (overlap(lb, lc) || overlap(rb, rc))
		return sw_infer_fail(x, "a dimension is both batch and contracting");
	return SW_OK;
}

/* Infer the dimensions of the result: *groups unless `groups` is NULL, then the batch dimensions,
 * the free dimensions of the left operand, and those of the right. */
static sw_status dot_result(sw_inference *x, const int64_t *groups)
{
	sw_shape lhs = sw_infer_operand(x, 0), rhs = sw_infer_operand(x, 1);
	sw_ints lb = x->attrs->dot.lhs_batch, group = x->attrs->dot.rhs_group;
	int64_t *dims = sw_infer_dims(x, 1 + lhs.rank + rhs.rank);
	int32_t rank = 0;
	if (groups)
		dims[rank++] = *groups;
	for (int32_t i = 0; i < lb.n; i++)
		dims[rank++] = lhs.dims[lb.v[i]];
	rank = add_free(dims, rank, lhs, lb, x->attrs->dot.lhs_contracting, (sw_ints){0});
	rank = add_free(dims, rank, rhs, x->attrs->dot.rhs_batch, x->attrs->dot.rhs_contracting,
	                group);
	return sw_infer_one(x, (sw_shape){.type = sw_infer_result_type(x),
	                                  .rank = rank,
	                                  .dims = rank ? dims : NULL});
}

static sw_status dot(sw_inference *x)
{
	sw_status status = check_dot(x);
	return status == SW_OK ? dot_result(x, NULL) : status;
}

/* Check that the operands agree on the result type, unless a result is declared. */
static sw_status check_result_type(const sw_inference *x)
{
	sw_shape lhs = sw_infer_operand(x, 0), rhs = sw_infer_operand(x, 1);
	if (x->spec->shapes && x->spec->n_results != 1)
		return sw_infer_fail(x, "expected one result, found %u", x->spec->n_results);
	if (!x->spec->shapes && lhs.type != rhs.type)
		return sw_infer_fail(x, "operands of %s and %s: a result type must be given",
		                     sw_type_name(lhs.type), sw_type_name(rhs.type));
	return SW_OK;
}

sw_status sw_infer_dot(sw_inference *x)
{
	sw_status status = check_result_type(x);
	return status == SW_OK ? dot(x) : status;
}

/* Check the sizes of the groups: one list for all, or one for each index of the dimensions before
 * the ragged one. */
static sw_status check_group_sizes(const sw_inference *x, int64_t ragged)
{
	sw_shape lhs = sw_infer_operand(x, 0), sizes = sw_infer_operand(x, 2);
	sw_type_kind kind = sw_type_kind_of(sizes.type);
	sw_ints batch = x->attrs->dot.lhs_batch, contracting = x->attrs->dot.lhs_contracting;
	bool good = sizes.rank > 0 && (kind == SW_KIND_SIGNED || kind == SW_KIND_UNSIGNED);
	bool is_batch = sw_ints_has(batch, ragged), contracts = sw_ints_has(contracting, ragged);
	int32_t n = 0;
	if (sizes.rank != 1) {
		for (int32_t i = 0; good && i < batch.n && batch.v[i] != ragged; i++, n++)
			good = n + 1 < sizes.rank && sizes.dims[n] == lhs.dims[batch.v[i]];
		for (int32_t i = 0; good && contracts && contracting.v[i] != ragged; i++, n++)
			good = n + 1 < sizes.rank && sizes.dims[n] == lhs.dims[contracting.v[i]];
		for (int32_t d = 0; good && !is_batch && !contracts && d < ragged; d++) {
			if (sw_ints_has(batch, d) || sw_ints_has(contracting, d))
				continue;
			good = n + 1 < sizes.rank && sizes.dims[n] == lhs.dims[d];
			n++;
		}
		good = good && sizes.rank == n + 1;
	}
	return good ? SW_OK
	            : sw_infer_fail(x,
	                            "operand 2: expected integer group sizes that fit %s, found %s",
	                            sw_infer_text(x, lhs), sw_infer_text(x, sizes));
}

/* Check that rhs has a group dimension exactly where a free dimension is ragged. */
static sw_status check_ragged(const sw_inference *x)
{
	sw_shape lhs = sw_infer_operand(x, 0), rhs = sw_infer_operand(x, 1),
		 sizes = sw_infer_operand(x, 2);
	sw_ints ragged = x->attrs->dot.lhs_ragged, group = x->attrs->dot.rhs_group;
	sw_status status = sw_infer_dim_list(x, "lhs_ragged_dims", ragged, lhs.rank);
	if (status == SW_OK)
		status = sw_infer_dim_list(x, "rhs_group_dims", group, rhs.rank);
	if (status == SW_OK && ragged.n != 1)
		status = sw_infer_fail(x, "lhs_ragged_dims: expected one dimension, found %d",
		                       ragged.n);
	if (status == SW_OK)
		status = check_group_sizes(x, ragged.v[0]);
	if (status != SW_OK)
		return status;
	bool is_free = !sw_ints_has(x->attrs->dot.lhs_batch, ragged.v[0]) &&
	               !sw_ints_has(x->attrs->dot.lhs_contracting, ragged.v[0]);
	if (group.n != is_free || overlap(group, x->attrs->dot.rhs_batch) ||
	    overlap(group, x->attrs->dot.rhs_contracting))
		return sw_infer_fail(x, "rhs_group_dims: expected %s",
		                     is_free ? "one dimension that is free otherwise" : "none");
	if (is_free && rhs.dims[group.v[0]] != sizes.dims[sizes.rank - 1])
		return sw_infer_fail(x,
		                     "rhs_group_dims: %s and %s differ in their number of groups",
		                     sw_infer_text(x, rhs), sw_infer_text(x, sizes));
	return SW_OK;
}

sw_status sw_infer_ragged_dot(sw_inference *x)
{
	sw_status status = check_result_type(x);
	if (status == SW_OK)
		status = check_dot(x);
	if (status == SW_OK)
		status = check_ragged(x);
	if (status != SW_OK)
		return status;
	sw_shape sizes = sw_infer_operand(x, 2);
	bool apart = sw_ints_has(x->attrs->dot.lhs_contracting, x->attrs->dot.lhs_ragged.v[0]);
	return dot_result(x, apart ? &sizes.dims[sizes.rank - 1] : NULL);
}

/* Check that a scale is a scalar, or that each of its dimensions divides that of the array that it
 * scales. */
static sw_status check_scale(const sw_inference *x, uint32_t i)
{
	sw_shape scaled = sw_infer_operand(x, i - 2), scale = sw_infer_operand(x, i);
	bool fits = scale.rank == 0 || scale.rank == scaled.rank;
	for (int32_t d = 0; fits && d < scale.rank; d++)
		fits = scale.dims[d] == scaled.dims[d] ||
		       (scale.dims[d] && scaled.dims[d] % scale.dims[d] == 0);
	return fits ? SW_OK
	            : sw_infer_fail(x, "operand %u: %s is no scale of %s", i,
	                            sw_infer_text(x, scale), sw_infer_text(x, scaled));
}

sw_status sw_infer_scaled_dot(sw_inference *x)
{
	sw_status status = sw_infer_count(x, x->spec->n_operands >= 2 && x->spec->n_operands <= 4,
	                                  "two operands and up to two scales");
	if (status == SW_OK)
		status = check_result_type(x);
	for (uint32_t i = 2; i < x->spec->n_operands && status == SW_OK; i++)
		status = check_scale(x, i);
	return status == SW_OK ? dot(x) : status;
}

/* ---- convolution ------------------------------------------------------------------------ */

/* Check that the batch, feature and spatial positions are a permutation of [0, rank). */
static sw_status check_labels(const sw_inference *x, const char *what, int64_t first,
                              int64_t second, sw_ints spatial, int32_t rank)
{
	int64_t all[SW_MAX_RANK + 2] = {first, second};
	if (spatial.n != x->attrs->convolution.window.rank || spatial.n + 2 != rank ||
	    rank > SW_MAX_RANK)
		return sw_infer_fail(
			x,
			"dim_labels: expected %d dimensions of the %s under a window of rank "
			"%d, found rank %d",
			spatial.n + 2, what, x->attrs->convolution.window.rank, rank);
	for (int32_t i = 0; i < spatial.n; i++)
		all[i + 2] = spatial.v[i];
	return sw_infer_dim_list(x, what, (sw_ints){.n = rank, .v = all}, rank);
}

static sw_status check_groups(const sw_inference *x, sw_shape input, sw_shape kernel)
{
	int64_t features = x->attrs->convolution.feature_groups,
		batches = x->attrs->convolution.batch_groups;
	int64_t input_feature = input.dims[x->attrs->convolution.input_feature];
	int64_t input_batch = input.dims[x->attrs->convolution.input_batch];
	int64_t kernel_input = kernel.dims[x->attrs->convolution.kernel_input];
	int64_t kernel_output = kernel.dims[x->attrs->convolution.kernel_output];
	if (features < 1 || batches < 1 || (features > 1 && batches > 1))
		return sw_infer_fail(
			x, "expected group counts of at least 1, and only one of them larger");
	if (input_feature % features || input_feature / features != kernel_input)
		return sw_infer_fail(
			x, "%lld input features in %lld groups do not match a kernel of %lld",
			(long long)input_feature, (long long)features, (long long)kernel_input);
	if (kernel_output % features || kernel_output % batches || input_batch % batches)
		return sw_infer_fail(x, "group counts must divide output features and batch");
	return SW_OK;
}

static sw_status check_convolution(const sw_inference *x, sw_shape input, sw_shape kernel)
{
	sw_status status = check_result_type(x);
	if (status == SW_OK)
		status = check_labels(x, "input", x->attrs->convolution.input_batch,
		                      x->attrs->convolution.input_feature,
		                      x->attrs->convolution.input_spatial, input.rank);
	if (status == SW_OK)
		status = check_labels(x, "kernel", x->attrs->convolution.kernel_input,
		                      x->attrs->convolution.kernel_output,
		                      x->attrs->convolution.kernel_spatial, kernel.rank);
	if (status == SW_OK)
		status = check_labels(x, "output", x->attrs->convolution.output_batch,
		                      x->attrs->convolution.output_feature,
		                      x->attrs->convolution.output_spatial, input.rank);
	return status == SW_OK ? check_groups(x, input, kernel) : status;
}

sw_status sw_infer_convolution(sw_inference *x)
{
	sw_shape input = sw_infer_operand(x, 0), kernel = sw_infer_operand(x, 1);
	sw_status status = check_convolution(x, input, kernel);
	if (status != SW_OK)
		return status;
	int64_t *dims = sw_infer_dims(x, input.rank);
	dims[x->attrs->convolution.output_batch] =
		input.dims[x->attrs->convolution.input_batch] / x->attrs->convolution.batch_groups;
	dims[x->attrs->convolution.output_feature] =
		kernel.dims[x->attrs->convolution.kernel_output];
	sw_window window = x->attrs->convolution.window;
	for (int32_t i = 0; i < window.rank; i++) {
		int64_t size = input.dims[x->attrs->convolution.input_spatial.v[i]];
		int64_t kernel_size = kernel.dims[x->attrs->convolution.kernel_spatial.v[i]];
		if (window.dims[i].size != kernel_size)
			return sw_infer_fail(x,
			                     "window: size %lld of spatial dimension %d differs "
			                     "from the kernel's %lld",
			                     (long long)window.dims[i].size, i,
			                     (long long)kernel_size);
		status = sw_infer_window_dim(x, &window.dims[i], size,
		                             &dims[x->attrs->convolution.output_spatial.v[i]]);
		if (status != SW_OK)
			return status;
	}
	return sw_infer_one(
		x, (sw_shape){.type = sw_infer_result_type(x), .rank = input.rank, .dims = dims});
}
