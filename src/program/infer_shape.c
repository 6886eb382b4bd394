/* Rules of sources and of ops that move elements without computing. */
#include "program/internal.h"

static sw_status one_declared(const sw_inference *x)
{
	if (x->spec->shapes && x->spec->n_results != 1)
		return sw_infer_fail(x, "expected one result, found %u", x->spec->n_results);
	return SW_OK;
}

static sw_status same_declared_type(const sw_inference *x, sw_type type)
{
	const sw_shape *declared = sw_infer_declared(x, 0);
	sw_status status = one_declared(x);
	if (status == SW_OK && declared && declared->type != type)
		return sw_infer_fail(x, "expected a result of %s, found %s", sw_type_name(type),
		                     sw_infer_text(x, *declared));
	return status;
}

/* ---- sources ---------------------------------------------------------------------------- */

sw_status sw_infer_parameter(sw_inference *x)
{
	if (x->attrs->parameter.number < 0)
		return sw_infer_fail(x, "expected a number that is not negative");
	return SW_OK;
}

sw_status sw_infer_constant(sw_inference *x)
{
	sw_shape literal = x->attrs->constant.shape;
	const sw_shape *declared = sw_infer_declared(x, 0);
	sw_status status = one_declared(x);
	if (status != SW_OK || !declared)
		return status;
	if (!sw_shape_same(literal, *declared))
		return sw_infer_fail(x, "its literal is %s, but %s was declared",
		                     sw_infer_text(x, literal), sw_infer_text(x, *declared));
	return SW_OK;
}

sw_status sw_infer_iota(sw_inference *x)
{
	const sw_shape *declared = sw_infer_declared(x, 0);
	sw_status status = one_declared(x);
	if (status != SW_OK || !declared)
		return status;
	sw_type_kind kind = sw_type_kind_of(declared->type);
	if (kind == SW_KIND_PRED || kind == SW_KIND_TOKEN)
		return sw_infer_fail(x, "expected a numeric result, found %s",
		                     sw_infer_text(x, *declared));
	return sw_infer_dim(x, "iota_dimension", x->attrs->iota.dimension, declared->rank);
}

sw_status sw_infer_rank_id(sw_inference *x)
{
	return sw_infer_one(x, (sw_shape){.type = SW_U32});
}

/* ---- the same elements in another shape ------------------------------------------------- */

static sw_status elements_differ(const sw_inference *x, sw_shape declared)
{
	return sw_infer_fail(x, "expected a result of as many elements as %s, found %s",
	                     sw_infer_text(x, sw_infer_operand(x, 0)), sw_infer_text(x, declared));
}

sw_status sw_infer_reshape(sw_inference *x)
{
	sw_shape operand = sw_infer_operand(x, 0);
	const sw_shape *declared = sw_infer_declared(x, 0);
	sw_status status = same_declared_type(x, operand.type);
	if (status != SW_OK || !declared)
		return status;
	if (sw_shape_elements(operand) != sw_shape_elements(*declared))
		return elements_differ(x, *declared);
	return SW_OK;
}

/* Return whether both shapes have the same number of bits. Elements and widths are compared
 * separately, because the number of bits may overflow. */
static bool same_bits(sw_shape a, sw_shape b)
{
	int64_t m = sw_shape_elements(a), n = sw_shape_elements(b);
	int i = sw_type_bits(a.type), j = sw_type_bits(b.type);
	if (i < j)
		return same_bits(b, a);
	return j ? i % j == 0 && n / (i / j) == m && n % (i / j) == 0 : m == n;
}

sw_status sw_infer_bitcast(sw_inference *x)
{
	const sw_shape *declared = sw_infer_declared(x, 0);
	sw_status status = one_declared(x);
	if (status != SW_OK || !declared)
		return status;
	return same_bits(sw_infer_operand(x, 0), *declared) ? SW_OK : elements_differ(x, *declared);
}

/* f32[n] -> u8[n,4] and back: the wider type has one minor dimension less. */
sw_status sw_infer_bitcast_convert(sw_inference *x)
{
	sw_shape operand = sw_infer_operand(x, 0);
	const sw_shape *declared = sw_infer_declared(x, 0);
	sw_status status = one_declared(x);
	if (status != SW_OK || !declared)
		return status;
	int from = sw_type_bits(operand.type), to = sw_type_bits(declared->type);
	sw_shape narrow = from < to ? operand : *declared, wide = from < to ? *declared : operand;
	int ratio = SW_MAX(from, to) / SW_MAX(SW_MIN(from, to), 1);
	bool good = to > 0;
	if (good && from == to)
		good = sw_shape_same_dims(operand, *declared);
	else if (good)
		good = narrow.rank == wide.rank + 1 && narrow.dims[wide.rank] == ratio;
	if (good && from != to)
		good = sw_shape_same_dims((sw_shape){.rank = wide.rank, .dims = narrow.dims}, wide);
	if (!good)
		return sw_infer_fail(x, "%s can't be seen as %s", sw_infer_text(x, operand),
		                     sw_infer_text(x, *declared));
	return SW_OK;
}

sw_status sw_infer_dynamic_reshape(sw_inference *x)
{
	sw_status status = sw_infer_count(x, x->spec->n_operands >= 1, "an array and its sizes");
	for (uint32_t i = 1; i < x->spec->n_operands && status == SW_OK; i++)
		status = sw_infer_integer_scalar(x, i);
	return status == SW_OK ? same_declared_type(x, sw_infer_operand(x, 0).type) : status;
}

sw_status sw_infer_broadcast(sw_inference *x)
{
	sw_shape operand = sw_infer_operand(x, 0);
	sw_ints dims = x->attrs->dims.dims;
	const sw_shape *declared = sw_infer_declared(x, 0);
	if (dims.n != operand.rank)
		return sw_infer_fail(x, "dimensions: expected one per dimension of %s, found %d",
		                     sw_infer_text(x, operand), dims.n);
	sw_status status = same_declared_type(x, operand.type);
	if (status != SW_OK || !declared)
		return status;
	status = sw_infer_dim_list(x, "dimensions", dims, declared->rank);
	for (int32_t i = 0; i < dims.n && status == SW_OK; i++) {
		if (declared->dims[dims.v[i]] != operand.dims[i])
			status = sw_infer_fail(
				x, "dimension %d of %s does not match dimension %lld of %s", i,
				sw_infer_text(x, operand), (long long)dims.v[i],
				sw_infer_text(x, *declared));
	}
	return status;
}

sw_status sw_infer_transpose(sw_inference *x)
{
	sw_shape operand = sw_infer_operand(x, 0);
	sw_ints dims = x->attrs->dims.dims;
	sw_status status = sw_infer_dim_list(x, "dimensions", dims, operand.rank);
	if (status != SW_OK)
		return status;
	if (dims.n != operand.rank)
		return sw_infer_fail(x,
		                     "dimensions: expected a permutation of %d, found %d numbers",
		                     operand.rank, dims.n);
	int64_t *sizes = sw_infer_dims(x, operand.rank);
	uint32_t bounded = 0;
	for (int32_t d = 0; d < operand.rank; d++) {
		sizes[d] = operand.dims[dims.v[d]];
		bounded |= (operand.bounded >> dims.v[d] & 1) << d;
	}
	operand.dims = sizes;
	operand.bounded = bounded;
	return sw_infer_one(x, operand);
}

sw_status sw_infer_reverse(sw_inference *x)
{
	sw_shape operand = sw_infer_operand(x, 0);
	sw_status status = sw_infer_dim_list(x, "dimensions", x->attrs->dims.dims, operand.rank);
	return status == SW_OK ? sw_infer_one(x, operand) : status;
}

/* The result is declared: the operand's dimensions behind one of as many terms as there may be. */
sw_status sw_infer_terms(sw_inference *x)
{
	sw_shape operand = sw_infer_operand(x, 0);
	const sw_shape *given = x->spec->n_results == 1 ? x->spec->shapes : NULL;
	bool ok = given && given->rank == operand.rank + 1 && given->type == operand.type &&
	          given->dims[0] >= 1;
	for (int32_t d = 0; ok && d < operand.rank; d++)
		ok = given->dims[d + 1] == operand.dims[d];
	return ok ? sw_infer_one(x, *given)
	          : sw_infer_fail(x, "expected a result with the dimensions of the operand behind "
	                             "one of terms");
}

/* ---- parts ------------------------------------------------------------------------------ */

static sw_status check_rank_list(const sw_inference *x, const char *what, sw_ints list,
                                 int32_t rank)
{
	if (list.n == rank)
		return SW_OK;
	return sw_infer_fail(x, "%s: expected %d numbers, one per dimension, found %d", what, rank,
	                     list.n);
}

sw_status sw_infer_slice(sw_inference *x)
{
	sw_shape shape = sw_infer_operand(x, 0);
	sw_ints start = x->attrs->slice.start, limit = x->attrs->slice.limit,
		stride = x->attrs->slice.stride;
	sw_status status = check_rank_list(x, "slice", start, shape.rank);
	if (status == SW_OK)
		status = check_rank_list(x, "slice limits", limit, shape.rank);
	if (status == SW_OK)
		status = check_rank_list(x, "slice strides", stride, shape.rank);
	if (status != SW_OK)
		return status;
	int64_t *sizes = sw_infer_dims(x, shape.rank);
	for (int32_t d = 0; d < shape.rank; d++) {
		int64_t from = start.v[d], to = limit.v[d], step = stride.v[d];
		if (from < 0 || to < from || to > shape.dims[d] || step < 1)
			return sw_infer_fail(
				x, "slice: [%lld:%lld:%lld] does not lie in dimension %d of %s",
				(long long)from, (long long)to, (long long)step, d,
				sw_infer_text(x, shape));
		sizes[d] = (to - from) / step + ((to - from) % step != 0);
	}
	return sw_infer_one(x, (sw_shape){.type = shape.type, .rank = shape.rank, .dims = sizes});
}

static sw_status check_starts(const sw_inference *x, uint32_t first, int32_t rank)
{
	if (x->spec->n_operands != first + (uint32_t)rank)
		return sw_infer_fail(x, "expected %d start indices, one per dimension, found %d",
		                     rank, (int)x->spec->n_operands - (int)first);
	sw_status status = SW_OK;
	for (uint32_t i = first; i < x->spec->n_operands && status == SW_OK; i++)
		status = sw_infer_integer_scalar(x, i);
	return status;
}

sw_status sw_infer_dynamic_slice(sw_inference *x)
{
	sw_ints sizes = x->attrs->dynamic_slice.sizes;
	sw_status status =
		sw_infer_count(x, x->spec->n_operands >= 1, "an array and start indices");
	if (status != SW_OK)
		return status;
	sw_shape shape = sw_infer_operand(x, 0);
	status = check_starts(x, 1, shape.rank);
	if (status == SW_OK)
		status = check_rank_list(x, "dynamic_slice_sizes", sizes, shape.rank);
	for (int32_t d = 0; d < shape.rank && status == SW_OK; d++) {
		if (sizes.v[d] < 0 || sizes.v[d] > shape.dims[d])
			status = sw_infer_fail(
				x, "dynamic_slice_sizes: %lld does not fit dimension %d of %s",
				(long long)sizes.v[d], d, sw_infer_text(x, shape));
	}
	if (status != SW_OK)
		return status;
	int64_t *copy = sw_infer_dims(x, shape.rank);
	for (int32_t d = 0; d < shape.rank; d++)
		copy[d] = sizes.v[d];
	return sw_infer_one(x, (sw_shape){.type = shape.type, .rank = shape.rank, .dims = copy});
}

sw_status sw_infer_dynamic_update_slice(sw_inference *x)
{
	sw_status status = sw_infer_count(x, x->spec->n_operands >= 2,
	                                  "an array, an update and start indices");
	if (status != SW_OK)
		return status;
	sw_shape shape = sw_infer_operand(x, 0), update = sw_infer_operand(x, 1);
	bool fits = shape.type == update.type && shape.rank == update.rank;
	for (int32_t d = 0; fits && d < shape.rank; d++)
		fits = update.dims[d] <= shape.dims[d];
	if (!fits)
		return sw_infer_fail(x, "the update %s does not fit in %s",
		                     sw_infer_text(x, update), sw_infer_text(x, shape));
	status = check_starts(x, 2, shape.rank);
	return status == SW_OK ? sw_infer_one(x, shape) : status;
}

/* ---- joining and padding ---------------------------------------------------------------- */

sw_status sw_infer_concatenate(sw_inference *x)
{
	sw_status status = sw_infer_count(x, x->spec->n_operands >= 1, "at least one operand");
	if (status != SW_OK)
		return status;
	sw_shape first = sw_infer_operand(x, 0);
	sw_ints dims = x->attrs->dims.dims;
	if (dims.n != 1)
		return sw_infer_fail(x, "dimensions: expected one, found %d", dims.n);
	status = sw_infer_dim(x, "dimensions", dims.v[0], first.rank);
	if (status != SW_OK)
		return status;
	int64_t *sizes = sw_infer_dims(x, first.rank);
	for (int32_t d = 0; d < first.rank; d++)
		sizes[d] = first.dims[d];
	for (uint32_t i = 1; i < x->spec->n_operands; i++) {
		sw_shape part = sw_infer_operand(x, i);
		bool fits = part.type == first.type && part.rank == first.rank;
		for (int32_t d = 0; fits && d < first.rank; d++)
			fits = d == dims.v[0] || part.dims[d] == first.dims[d];
		if (!fits)
			return sw_infer_fail(
				x, "operand %u: %s can't be joined to %s along dimension %lld", i,
				sw_infer_text(x, part), sw_infer_text(x, first),
				(long long)dims.v[0]);
		if (__builtin_add_overflow(sizes[dims.v[0]], part.dims[dims.v[0]],
		                           &sizes[dims.v[0]]))
			return sw_infer_fail(x, "its size overflows");
	}
	return sw_infer_one(x, (sw_shape){.type = first.type, .rank = first.rank, .dims = sizes});
}

/* Set *padded to low + size + (size - 1) * interior + high, where low and high may be negative. */
static bool padded_size(int64_t size, int64_t low, int64_t high, int64_t interior, int64_t *padded)
{
	int64_t between;
	if (interior < 0 || !sw_mul_i64(SW_MAX(size - 1, 0), interior, &between))
		return false;
	return !__builtin_add_overflow(size, between, padded) &&
	       !__builtin_add_overflow(*padded, low, padded) &&
	       !__builtin_add_overflow(*padded, high, padded) && *padded >= 0;
}

sw_status sw_infer_pad(sw_inference *x)
{
	sw_shape shape = sw_infer_operand(x, 0);
	sw_ints low = x->attrs->pad.low, high = x->attrs->pad.high,
		interior = x->attrs->pad.interior;
	sw_status status = sw_infer_scalar_like(x, 1, shape.type);
	if (status == SW_OK)
		status = check_rank_list(x, "padding", low, shape.rank);
	if (status == SW_OK)
		status = check_rank_list(x, "padding", high, shape.rank);
	if (status == SW_OK)
		status = check_rank_list(x, "padding", interior, shape.rank);
	if (status != SW_OK)
		return status;
	int64_t *sizes = sw_infer_dims(x, shape.rank);
	for (int32_t d = 0; d < shape.rank; d++) {
		if (!padded_size(shape.dims[d], low.v[d], high.v[d], interior.v[d], &sizes[d]))
			return sw_infer_fail(
				x, "padding: %lld_%lld_%lld can't be put on dimension %d of %s",
				(long long)low.v[d], (long long)high.v[d], (long long)interior.v[d],
				d, sw_infer_text(x, shape));
	}
	return sw_infer_one(x, (sw_shape){.type = shape.type, .rank = shape.rank, .dims = sizes});
}

/* ---- dynamic sizes ---------------------------------------------------------------------- */

static sw_status check_one_dim(const sw_inference *x)
{
	if (x->attrs->dims.dims.n != 1)
		return sw_infer_fail(x, "dimensions: expected one, found %d",
		                     x->attrs->dims.dims.n);
	return sw_infer_dim(x, "dimensions", x->attrs->dims.dims.v[0], sw_infer_operand(x, 0).rank);
}

sw_status sw_infer_get_dimension_size(sw_inference *x)
{
	sw_status status = check_one_dim(x);
	return status == SW_OK ? sw_infer_one(x, (sw_shape){.type = SW_S32}) : status;
}

sw_status sw_infer_set_dimension_size(sw_inference *x)
{
	sw_status status = check_one_dim(x);
	if (status == SW_OK)
		status = sw_infer_integer_scalar(x, 1);
	sw_shape shape = sw_infer_operand(x, 0);
	if (status == SW_OK)
		shape.bounded |= 1u << x->attrs->dims.dims.v[0];
	return status == SW_OK ? sw_infer_one(x, shape) : status;
}
