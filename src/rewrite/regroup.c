/*
 * The same sums in other groups: each dot, convolution and sum of floats becomes one over the first
 * elements and one over the rest, added up. The numbers are those of the program but for rounding,
 * which tells how far its results may be trusted.
 */
#include <string.h>

#include "rewrite/internal.h"

typedef struct regrouper {
	sw_arena arena;
	const sw_program *in;
	sw_program *out;
	const bool *planned;  /* per computation of `in`: its ops are sums of the program itself */
	int32_t *computation; /* of `in` -> of `out`, -1: not written yet */
	sw_id *value;         /* of `in` -> of `out` */
	double share;         /* of the elements that go first */
} regrouper;

/* Return how many of the elements go first; 0: there are not enough to make two groups. */
static int64_t first_of(const regrouper *x, int64_t size)
{
	int64_t n = (int64_t)(x->share * (double)size);
	return size < 2 ? 0 : SW_MIN(SW_MAX(n, 1), size - 1);
}

/* Return the first elements of a dimension, or the rest. */
static sw_id group(const regrouper *x, int32_t c, sw_id value, int64_t dimension, bool rest)
{
	sw_shape shape = sw_value_shape(x->out, value);
	int64_t start[SW_MAX_RANK] = {0}, limit[SW_MAX_RANK];
	int64_t first = first_of(x, shape.dims[dimension]);
	memcpy(limit, shape.dims, sizeof(*limit) * (size_t)shape.rank);
	start[dimension] = rest ? first : 0;
	limit[dimension] = rest ? limit[dimension] : first;
	return sw_emit_slice(x->out, c, value, start, limit, NULL);
}

/* Return the dimension of each operand along which the op's terms lie, in dims; false: it is no
 * sum of two terms at least, or none that is rounded. */
static bool find_terms(const regrouper *x, const sw_op *op, int64_t *dims)
{
	if (op->n_operands == 0 || op->n_results == 0)
		return false;
	sw_shape shape = sw_value_shape(x->in, op->operands[0]);
	sw_type_kind kind = sw_type_kind_of(sw_value_shape(x->in, op->first_result).type);
	sw_ints list = {0};
	if (kind != SW_KIND_FLOAT && kind != SW_KIND_COMPLEX)
		return false;
	switch (op->opcode) {
	case SW_OP_DOT:
		list = op->attrs->dot.lhs_contracting;
		break;
	case SW_OP_CONVOLUTION:
		dims[0] = op->attrs->convolution.input_feature;
		dims[1] = op->attrs->convolution.kernel_input;
		return op->attrs->convolution.feature_groups == 1 &&
		       op->attrs->convolution.batch_groups == 1 &&
		       first_of(x, shape.dims[dims[0]]) > 0;
	case SW_OP_REDUCE:
		if (op->n_operands != 2 ||
		    sw_computation_monoid(x->in, op->called[0]) != SW_MONOID_SUM)
			return false;
		list = op->attrs->dims.dims;
		break;
	default:
		return false;
	}
	for (int32_t i = 0; i < list.n; i++)
		if (first_of(x, shape.dims[list.v[i]]) > 0) {
			dims[0] = list.v[i];
			dims[1] =
				op->opcode == SW_OP_DOT ? op->attrs->dot.rhs_contracting.v[i] : -1;
			return true;
		}
	return false;
}

/* Write the op over one group. What a reduction starts from is in the first one. */
static sw_id write_group(regrouper *x, int32_t c, sw_id id, const int32_t *called,
                         const int64_t *dims, bool rest)
{
	const sw_op *op = sw_op_at(x->in, id);
	sw_id operands[2];
	for (int k = 0; k < 2; k++)
		operands[k] = dims[k] < 0 ? x->value[op->operands[k]]
		                          : group(x, c, x->value[op->operands[k]], dims[k], rest);
	if (op->opcode == SW_OP_REDUCE && rest)
		operands[1] = sw_emit_identity(
			x->out, c, sw_value_shape(x->in, op->operands[1]).type, SW_MONOID_SUM);
	return sw_build_copy_op(x->out, c, x->in, id, operands, called);
}

static sw_id write_op(regrouper *x, int32_t c, sw_id id)
{
	const sw_op *op = sw_op_at(x->in, id);
	int32_t *called = SW_NEW_N(&x->arena, int32_t, op->n_called + 1);
	sw_id *operands = SW_NEW_N(&x->arena, sw_id, op->n_operands + 1);
	int64_t dims[2];
	for (uint32_t k = 0; k < op->n_called; k++)
		called[k] = x->computation[op->called[k]];
	for (uint32_t k = 0; k < op->n_operands; k++)
		operands[k] = x->value[op->operands[k]];
	if (!find_terms(x, op, dims))
		return sw_build_copy_op(x->out, c, x->in, id, operands, called);
	sw_id first = write_group(x, c, id, called, dims, false),
	      rest = write_group(x, c, id, called, dims, true);
	return sw_emit_binary(x->out, c, SW_OP_ADD, first, rest);
}

/* Write a computation, once; those of reductions and the like as they are. */
static int32_t write_computation(regrouper *x, int32_t from)
{
	if (x->computation[from] >= 0)
		return x->computation[from];
	if (!x->planned[from])
		return sw_build_copy_computation(x->out, x->in, from, x->computation);
	const sw_computation *of = &x->in->computations.data[from];
	SW_VEC(sw_id) results = {0};
	for (size_t i = 0; i < of->ops.len; i++) { /* callees stand first */
		const sw_op *op = sw_op_at(x->in, of->ops.data[i]);
		for (uint32_t k = 0; k < op->n_called; k++)
			write_computation(x, op->called[k]);
	}
	int32_t c = x->computation[from] = sw_build_computation(x->out, of->name);
	for (size_t i = 0; i < of->ops.len; i++) {
		sw_id id = of->ops.data[i];
		const sw_op *op = sw_op_at(x->in, id);
		sw_id first = write_op(x, c, id);
		for (uint32_t r = 0; r < op->n_results; r++)
			x->value[op->first_result + r] = first + r;
	}
	for (size_t i = 0; i < of->results.len; i++)
		sw_vec_push(&results, x->value[of->results.data[i]]);
	sw_build_results(x->out, c, results.data, (uint32_t)results.len, of->root_tuple);
	sw_vec_clear(&results);
	return c;
}

sw_program *sw_rewrite_regroup(const sw_program *in, double share)
{
	regrouper x = {.in = in, .out = sw_program_new(in->name), .share = share};
	sw_arena_init(&x.arena);
	bool *planned = SW_NEW_N(&x.arena, bool, in->computations.len + 1);
	sw_mark_planned(in, in->entry, planned);
	x.planned = planned;
	x.value = SW_NEW_N(&x.arena, sw_id, in->values.len + 1);
	x.computation = SW_NEW_N(&x.arena, int32_t, in->computations.len + 1);
	for (size_t c = 0; c < in->computations.len; c++)
		x.computation[c] = -1;
	sw_build_copy_frame(x.out, in);
	x.out->entry = write_computation(&x, in->entry);
	sw_arena_clear(&x.arena);
	return x.out;
}
