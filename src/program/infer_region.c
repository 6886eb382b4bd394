/* Rules of ops that run computations, of random numbers and of linear algebra. */
#include <string.h>

#include "program/internal.h"

/* ---- regions ---------------------------------------------------------------------------- */

static const sw_shape *operand_shapes(const sw_inference *x, uint32_t first, uint32_t n)
{
	sw_shape *shapes = SW_NEW_N(x->arena, sw_shape, SW_MAX(n, 1));
	for (uint32_t i = 0; i < n; i++)
		shapes[i] = sw_infer_operand(x, first + i);
	return shapes;
}

static sw_status results_of(sw_inference *x, uint32_t k)
{
	const sw_computation *callee = sw_infer_callee(x, k);
	sw_shape *out = sw_infer_results(x, (uint32_t)callee->results.len);
	for (uint32_t i = 0; i < x->n_out; i++)
		out[i] = sw_value_shape(x->program, callee->results.data[i]);
	return SW_OK;
}

static sw_status check_one_parameter(const sw_inference *x, uint32_t k)
{
	const sw_computation *callee = sw_infer_callee(x, k);
	if (callee->parameters.len == 1)
		return SW_OK;
	return sw_infer_fail(x, "computation '%s': expected one parameter, found %zu", callee->name,
	                     callee->parameters.len);
}

sw_status sw_infer_while(sw_inference *x)
{
	uint32_t n = x->spec->n_operands;
	const sw_shape *carried = operand_shapes(x, 0, n);
	sw_shape pred = {.type = SW_PRED};
	sw_status status = SW_OK;
	for (uint32_t k = 0; k < 2 && status == SW_OK; k++) {
		status = check_one_parameter(x, k);
		if (status == SW_OK)
			status = sw_infer_callee_takes(x, k, carried, n);
	}
	if (status == SW_OK)
		status = sw_infer_callee_gives(x, 0, &pred, 1);
	if (status == SW_OK)
		status = sw_infer_callee_gives(x, 1, carried, n);
	return status == SW_OK ? sw_infer_pass_through(x) : status;
}

static sw_status check_branch_index(const sw_inference *x)
{
	if (x->spec->n_operands < 1 || x->spec->n_called < 1)
		return sw_infer_fail(x, "expected a pred or an index, and at least one branch");
	sw_shape index = sw_infer_operand(x, 0);
	bool good = index.rank == 0 &&
	            (index.type == SW_S32 || (index.type == SW_PRED && x->spec->n_called == 2));
	if (!good)
		return sw_infer_fail(
			x, "operand 0: expected pred[] for two branches, or s32[], found %s",
			sw_infer_text(x, index));
	return SW_OK;
}

static uint32_t parameter_leaves(const sw_inference *x, uint32_t k)
{
	const sw_computation *callee = sw_infer_callee(x, k);
	uint32_t n = 0;
	for (size_t p = 0; p < callee->parameters.len; p++) {
		if (callee->parameters.data[p] != SW_NO_ID)
			n += sw_op_at(x->program, callee->parameters.data[p])->n_results;
	}
	return n;
}

sw_status sw_infer_conditional(sw_inference *x)
{
	sw_status status = check_branch_index(x);
	if (status != SW_OK)
		return status;
	results_of(x, 0);
	uint32_t first = 1;
	for (uint32_t k = 0; k < x->spec->n_called && status == SW_OK; k++) {
		uint32_t n = parameter_leaves(x, k);
		status = check_one_parameter(x, k);
		if (status == SW_OK && n > x->spec->n_operands - first)
			return sw_infer_fail(x, "too few operands for the parameter of branch '%s'",
			                     sw_infer_callee(x, k)->name);
		if (status == SW_OK)
			status = sw_infer_callee_takes(x, k, operand_shapes(x, first, n), n);
		if (status == SW_OK)
			status = sw_infer_callee_gives(x, k, x->out, x->n_out);
		first += n;
	}
	if (status == SW_OK && first != x->spec->n_operands)
		return sw_infer_fail(x, "expected %u operands for its branches, found %u",
		                     first - 1, x->spec->n_operands - 1);
	return status;
}

sw_status sw_infer_call(sw_inference *x)
{
	uint32_t n = x->spec->n_operands;
	sw_status status = sw_infer_callee_takes(x, 0, operand_shapes(x, 0, n), n);
	return status == SW_OK ? results_of(x, 0) : status;
}

static sw_status check_map_dims(const sw_inference *x, sw_shape shape)
{
	sw_ints dims = x->attrs->dims.dims;
	bool all = dims.n == shape.rank;
	for (int32_t d = 0; all && d < dims.n; d++)
		all = dims.v[d] == d;
	return all ? SW_OK
	           : sw_infer_fail(x, "dimensions: expected all of %s, in order",
	                           sw_infer_text(x, shape));
}

sw_status sw_infer_map(sw_inference *x)
{
	uint32_t n = x->spec->n_operands;
	sw_status status = sw_infer_count(x, n > 0, "at least one operand");
	if (status != SW_OK)
		return status;
	sw_shape first = sw_infer_operand(x, 0);
	sw_shape *scalars = SW_NEW_N(x->arena, sw_shape, n);
	for (uint32_t i = 0; i < n; i++) {
		sw_shape operand = sw_infer_operand(x, i);
		scalars[i].type = operand.type;
		if (!sw_shape_same_dims(operand, first))
			return sw_infer_fail(x,
			                     "operand %u: expected the dimensions of %s, found %s",
			                     i, sw_infer_text(x, first), sw_infer_text(x, operand));
	}
	status = check_map_dims(x, first);
	if (status == SW_OK)
		status = sw_infer_callee_takes(x, 0, scalars, n);
	if (status != SW_OK)
		return status;
	const sw_computation *callee = sw_infer_callee(x, 0);
	if (callee->results.len != 1 ||
	    sw_value_shape(x->program, callee->results.data[0]).rank != 0)
		return sw_infer_fail(x, "computation '%s': expected one scalar result",
		                     callee->name);
	first.type = sw_value_shape(x->program, callee->results.data[0]).type;
	return sw_infer_one(x, first);
}

/* Return the shape of a slice of an input, which lacks the scanned dimension. */
static sw_shape without_dimension(const sw_inference *x, sw_shape shape, int64_t dimension)
{
	int64_t *dims = sw_infer_dims(x, shape.rank);
	for (int32_t d = 0, i = 0; d < shape.rank; d++) {
		if (d != dimension)
			dims[i++] = shape.dims[d];
	}
	return (sw_shape){
		.type = shape.type, .rank = shape.rank - 1, .dims = shape.rank > 1 ? dims : NULL};
}

static sw_status check_scan(const sw_inference *x)
{
	int64_t dimension = x->attrs->scan.dimension, carries = x->attrs->scan.carries;
	uint32_t n = x->spec->n_operands;
	if (carries < 0 || carries >= n)
		return sw_infer_fail(x,
		                     "num_carries: expected fewer than the %u operands, found %lld",
		                     n, (long long)carries);
	sw_shape first = sw_infer_operand(x, 0);
	sw_shape *taken = SW_NEW_N(x->arena, sw_shape, n);
	for (uint32_t i = 0; i < n; i++) {
		sw_shape operand = taken[i] = sw_infer_operand(x, i);
		if (i >= n - (uint32_t)carries)
			continue;
		sw_status status = sw_infer_dim(x, "dimensions", dimension, operand.rank);
		if (status != SW_OK)
			return status;
		if (operand.dims[dimension] != first.dims[dimension])
			return sw_infer_fail(x, "operand %u: %s is not as long as %s", i,
			                     sw_infer_text(x, operand), sw_infer_text(x, first));
		taken[i] = without_dimension(x, operand, dimension);
	}
	return sw_infer_callee_takes(x, 0, taken, n);
}

/* Results: the slices that the iterations yield, joined along the dimension; then the final carried
 * values. */
sw_status sw_infer_scan(sw_inference *x)
{
	sw_status status = check_scan(x);
	if (status != SW_OK)
		return status;
	const sw_computation *callee = sw_infer_callee(x, 0);
	uint32_t carries = (uint32_t)x->attrs->scan.carries, n = (uint32_t)callee->results.len;
	int64_t dimension = x->attrs->scan.dimension,
		length = sw_infer_operand(x, 0).dims[dimension];
	if (n < carries)
		return sw_infer_fail(
			x, "computation '%s': expected %u carried results, found %u results",
			callee->name, carries, n);
	sw_shape *out = sw_infer_results(x, n);
	for (uint32_t i = 0; i < n; i++) {
		sw_shape shape = out[i] = sw_value_shape(x->program, callee->results.data[i]);
		uint32_t operand = x->spec->n_operands - (n - i);
		if (i >= n - carries && !sw_shape_same(shape, sw_infer_operand(x, operand)))
			return sw_infer_fail(x,
			                     "computation '%s': expected its carried result %u to "
			                     "be %s, found %s",
			                     callee->name, i,
			                     sw_infer_text(x, sw_infer_operand(x, operand)),
			                     sw_infer_text(x, shape));
		if (i >= n - carries)
			continue;
		if (dimension > shape.rank)
			return sw_infer_fail(x, "dimensions: %s has no place for dimension %lld",
			                     sw_infer_text(x, shape), (long long)dimension);
		int64_t *dims = sw_infer_dims(x, shape.rank + 1);
		for (int32_t d = 0; d <= shape.rank; d++)
			dims[d] = d == dimension ? length : shape.dims[d - (d > dimension)];
		out[i] = (sw_shape){.type = shape.type, .rank = shape.rank + 1, .dims = dims};
	}
	return SW_OK;
}

/* ---- random numbers --------------------------------------------------------------------- */

sw_status sw_infer_rng(sw_inference *x)
{
	sw_status status = sw_infer_count(x, x->spec->n_operands == 2, "two operands");
	for (uint32_t i = 0; i < x->spec->n_operands && status == SW_OK; i++) {
		if (sw_infer_operand(x, i).rank != 0)
			status = sw_infer_fail(x, "operand %u: expected a scalar, found %s", i,
			                       sw_infer_text(x, sw_infer_operand(x, i)));
	}
	if (status == SW_OK && x->spec->shapes && x->spec->n_results != 1)
		return sw_infer_fail(x, "expected one result, found %u", x->spec->n_results);
	return status;
}

/* The new state has the shape of the old one; the bits have the declared shape. */
sw_status sw_infer_rng_bit_generator(sw_inference *x)
{
	sw_shape state = sw_infer_operand(x, 0);
	const sw_shape *declared = x->spec->shapes;
	if (sw_type_kind_of(state.type) != SW_KIND_UNSIGNED)
		return sw_infer_fail(x, "operand 0: expected an unsigned state, found %s",
		                     sw_infer_text(x, state));
	if (!declared)
		return SW_OK;
	if (x->spec->n_results != 2)
		return sw_infer_fail(x, "expected two results, state and bits, found %u",
		                     x->spec->n_results);
	if (!sw_shape_same(declared[0], state))
		return sw_infer_fail(x, "result 0: expected the state %s, found %s",
		                     sw_infer_text(x, state), sw_infer_text(x, declared[0]));
	return SW_OK;
}

/* The state is a counter of 128 bits. */
sw_status sw_infer_rng_state(sw_inference *x)
{
	int64_t *dims = sw_infer_dims(x, 1);
	dims[0] = 2;
	return sw_infer_one(x, (sw_shape){.type = SW_U64, .rank = 1, .dims = dims});
}

/* ---- linear algebra --------------------------------------------------------------------- */

static sw_status check_matrices(const sw_inference *x, uint32_t i)
{
	sw_shape a = sw_infer_operand(x, i);
	sw_type_kind kind = sw_type_kind_of(a.type);
	if (a.rank < 2 || a.dims[a.rank - 1] != a.dims[a.rank - 2])
		return sw_infer_fail(x, "operand %u: expected square matrices, found %s", i,
		                     sw_infer_text(x, a));
	if (kind != SW_KIND_FLOAT && kind != SW_KIND_COMPLEX)
		return sw_infer_fail(x, "operand %u: expected float or complex, found %s", i,
		                     sw_infer_text(x, a));
	return SW_OK;
}

sw_status sw_infer_cholesky(sw_inference *x)
{
	sw_status status = check_matrices(x, 0);
	return status == SW_OK ? sw_infer_one(x, sw_infer_operand(x, 0)) : status;
}

sw_status sw_infer_triangular_solve(sw_inference *x)
{
	sw_status status = check_matrices(x, 0);
	if (status != SW_OK)
		return status;
	sw_shape a = sw_infer_operand(x, 0), b = sw_infer_operand(x, 1);
	bool fits = a.type == b.type && a.rank == b.rank;
	for (int32_t d = 0; fits && d < a.rank - 2; d++)
		fits = a.dims[d] == b.dims[d];
	if (fits)
		fits = b.dims[b.rank - (x->attrs->triangular_solve.left_side ? 2 : 1)] ==
		       a.dims[a.rank - 1];
	if (!fits)
		return sw_infer_fail(x, "%s and %s do not fit each other", sw_infer_text(x, a),
		                     sw_infer_text(x, b));
	return sw_infer_one(x, b);
}

typedef struct fft_row {
	const char *name;
	sw_type_kind from;
	bool to_real, to_half;
} fft_row;

static const fft_row ffts[] = {
	{"FFT", SW_KIND_COMPLEX, false, false},
	{"IFFT", SW_KIND_COMPLEX, false, false},
	{"RFFT", SW_KIND_FLOAT, false, true},
	{"IRFFT", SW_KIND_COMPLEX, true, false},
};

static const fft_row *find_fft(const char *name)
{
	for (size_t i = 0; i < SW_COUNT(ffts); i++) {
		if (strcmp(ffts[i].name, name) == 0)
			return &ffts[i];
	}
	return NULL;
}

static sw_type fft_type(sw_type type, const fft_row *row)
{
	bool wide = type == SW_F64 || type == SW_C128;
	if (row->to_real)
		return wide ? SW_F64 : SW_F32;
	return wide ? SW_C128 : SW_C64;
}

/* Check the dimensions of a transform. The last dimension of a real transform is halved, or
 * restored to full size. */
static sw_status check_fft_dims(const sw_inference *x, const fft_row *row, sw_shape shape)
{
	sw_ints length = x->attrs->fft.length;
	for (int32_t i = 0; i < length.n; i++) {
		int64_t expected = length.v[i];
		if (expected < 0)
			return sw_infer_fail(x, "fft_length: expected sizes that are not negative");
		if (row->to_real && i == length.n - 1)
			expected = expected / 2 + 1;
		if (shape.dims[shape.rank - length.n + i] != expected)
			return sw_infer_fail(x, "fft_length: %lld does not match %s",
			                     (long long)length.v[i], sw_infer_text(x, shape));
	}
	return SW_OK;
}

sw_status sw_infer_fft(sw_inference *x)
{
	sw_shape shape = sw_infer_operand(x, 0);
	const fft_row *row = find_fft(x->attrs->fft.kind);
	sw_ints length = x->attrs->fft.length;
	if (!row)
		return sw_infer_fail(x, "fft_type: expected FFT, IFFT, RFFT or IRFFT, found %.20s",
		                     x->attrs->fft.kind);
	if (sw_type_kind_of(shape.type) != row->from || length.n < 1 ||
	    length.n > SW_MIN(shape.rank, 3))
		return sw_infer_fail(x, "%s over %d dimensions can't take %s", row->name, length.n,
		                     sw_infer_text(x, shape));
	sw_status status = check_fft_dims(x, row, shape);
	if (status != SW_OK)
		return status;
	int64_t *dims = sw_infer_dims(x, shape.rank);
	for (int32_t d = 0; d < shape.rank; d++)
		dims[d] = shape.dims[d];
	if (row->to_half)
		dims[shape.rank - 1] = length.v[length.n - 1] / 2 + 1;
	if (row->to_real)
		dims[shape.rank - 1] = length.v[length.n - 1];
	return sw_infer_one(
		x, (sw_shape){.type = fft_type(shape.type, row), .rank = shape.rank, .dims = dims});
}
