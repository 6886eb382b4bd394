/*
 * Changes of single ops that read or write padding: what they reduce is masked, their indices are
 * clamped, and their attributes follow the padded shapes.
 */
#include "rewrite/internal.h"

#include "program/number.h"

#include <string.h>

/* ---- pieces ----------------------------------------------------------------------------- */

/* Write a number in every element of x's shape, in x's type. */
static sw_id like(sw_padder *p, int32_t c, sw_id x, int64_t number)
{
	sw_shape shape = sw_value_shape(p->out, x);
	uint64_t data[2] = {0};
	sw_integer_set(shape.type, data, 0, number);
	sw_id one = sw_emit_literal(p->out, c,
	                            (sw_literal){.shape = {.type = shape.type}, .data = data});
	return shape.rank ? sw_emit_broadcast(p->out, c, one, shape, NULL) : one;
}

/* Write x where its index along dim is below size, and the scalar `outside` elsewhere. */
static sw_id keep_true(sw_padder *p, int32_t c, sw_id x, int32_t dim, int64_t size, sw_id outside)
{
	sw_shape shape = sw_value_shape(p->out, x), mask = shape;
	sw_type type = shape.dims[dim] > INT32_MAX ? SW_S64 : SW_S32;
	int64_t where = dim;
	sw_id index = sw_emit_iota(p->out, c, sw_build_shape(p->out, type, &shape.dims[dim], 1), 0);
	sw_id inside = sw_emit_compare(p->out, c, SW_LT, index, like(p, c, index, size));
	mask.type = SW_PRED;
	if (shape.rank > 1)
		inside = sw_emit_broadcast(p->out, c, inside, mask, &where);
	return sw_emit_select(p->out, c, inside, x,
	                      sw_emit_broadcast(p->out, c, outside, shape, NULL));
}

static int64_t *copy_list(sw_padder *p, sw_ints list)
{
	return sw_arena_copy(&p->out->arena, list.v, sizeof(int64_t) * (size_t)list.n);
}

/* Return whether the dimension of an operand or result is padded and the op accepts the padding. */
static bool accepts_padding(const sw_padded_op *w, bool result, uint32_t index, int32_t dim,
                            int32_t *link)
{
	sw_id value = result ? w->op->first_result + index : w->op->operands[index];
	*link = sw_pad_link(&w->p->classes, w->id, result, index, dim);
	return sw_pad_is_padded(&w->p->classes, value, dim) && *link != SW_PAD_WHOLE;
}

static bool is_reduced(const sw_padded_op *w, int32_t link)
{
	return link >= 0 && link < w->rule->n_factors &&
	       w->rule->factors[link].kind == SW_FACTOR_REDUCED;
}

const sw_shape *sw_padded_op_shapes(const sw_padded_op *w)
{
	sw_padder *p = w->p;
	sw_shape *shapes = SW_NEW_N(&p->out->arena, sw_shape, w->op->n_results + 1);
	for (uint32_t k = 0; k < w->op->n_results; k++) {
		sw_id value = w->op->first_result + k;
		int64_t dims[SW_MAX_RANK];
		sw_shape shape = sw_value_shape(p->in, value),
			 padded = sw_pad_shape(&p->classes, value, dims);
		p->bare[value] = sw_pad_whole_dims(&p->classes, w->id, true, k);
		for (int32_t d = 0; d < shape.rank; d++)
			if (p->bare[value] >> d & 1)
				dims[d] = shape.dims[d];
		shapes[k] = sw_build_shape(p->out, shape.type, dims, padded.rank);
		shapes[k].bounded = shape.bounded;
	}
	return shapes;
}

/* ---- changes of single ops -------------------------------------------------------------- */

/* dot, convolution, reduce: make the padding of reduced dimensions hold the neutral element. */
static void mask_reduced(sw_padded_op *w)
{
	for (uint32_t k = 0; k < w->op->n_operands; k++) {
		sw_shape shape = sw_value_shape(w->p->in, w->op->operands[k]);
		for (int32_t d = 0; d < shape.rank; d++) {
			int32_t link;
			if (!accepts_padding(w, false, k, d, &link) || !is_reduced(w, link))
				continue;
			sw_monoid monoid = w->rule->factors[link].monoid;
			if (sw_pad_is_neutral(&w->p->facts, w->op->operands[k], d, monoid))
				continue;
			sw_id outside = sw_emit_identity(w->p->out, w->to, shape.type, monoid);
			w->operands[k] =
				keep_true(w->p, w->to, w->operands[k], d, shape.dims[d], outside);
		}
	}
}

/* Enlarge a literal to the padded shape of its result: the rest is filled with its number if it is
 * a splat, else with zeros. */
static void pad_constant(sw_padded_op *w)
{
	int64_t dims[SW_MAX_RANK];
	sw_literal small = w->op->attrs->constant, *large = &w->attrs->constant;
	sw_shape padded = sw_pad_shape(&w->p->classes, w->op->first_result, dims);
	size_t one = (size_t)sw_type_bytes(small.shape.type),
	       bytes = (size_t)sw_shape_bytes(padded);
	if (!small.data || sw_shape_equal(small.shape, padded))
		return;
	char *data = sw_arena_alloc(&w->p->out->arena, bytes);
	const sw_pad_fact *splat = &w->p->facts.splats[w->op->first_result];
	for (size_t at = 0; splat->known && at < bytes; at += one)
		memcpy(data + at, splat->data, one);
	sw_shape_embed(small.shape, small.data, padded, data);
	large->shape = sw_build_shape(w->p->out, padded.type, dims, padded.rank);
	large->data = data;
}

static void pad_slice(sw_padded_op *w)
{
	int64_t *limit = copy_list(w->p, w->attrs->slice.limit), dims[SW_MAX_RANK];
	sw_shape result = sw_pad_shape(&w->p->classes, w->op->first_result, dims);
	for (int32_t d = 0; d < result.rank; d++) {
		int32_t link;
		if (accepts_padding(w, true, 0, d, &link))
			limit[d] = result.dims[d];
	}
	w->attrs->slice.limit.v = limit;
}

static void pad_pad(sw_padded_op *w)
{
	int64_t *high = copy_list(w->p, w->attrs->pad.high), dims[SW_MAX_RANK];
	sw_shape result = sw_pad_shape(&w->p->classes, w->op->first_result, dims);
	for (int32_t d = 0; d < result.rank; d++) {
		int32_t link;
		if (accepts_padding(w, true, 0, d, &link) && link == SW_PAD_FREE)
			high[d] += result.dims[d] -
			           sw_value_shape(w->p->in, w->op->first_result).dims[d];
	}
	w->attrs->pad.high.v = high;
}

/* Clamp an index between 0 and `last`, which is limited to the range of its type: no index exceeds
 * that range. */
static sw_id clamp_index(sw_padder *p, int32_t c, sw_id index, int64_t last)
{
	int64_t low, high;
	sw_integer_range(sw_value_shape(p->out, index).type, &low, &high);
	index = sw_emit_binary(p->out, c, SW_OP_MAXIMUM, index, like(p, c, index, 0));
	return sw_emit_binary(p->out, c, SW_OP_MINIMUM, index,
	                      like(p, c, index, SW_MIN(last, high)));
}

/* Enlarge the sizes of dimensions taken whole; clamp the starts of those taken in part. */
static void pad_dynamic_slice(sw_padded_op *w)
{
	int64_t *sizes = copy_list(w->p, w->attrs->dynamic_slice.sizes), dims[SW_MAX_RANK];
	sw_shape operand = sw_pad_shape(&w->p->classes, w->op->operands[0], dims);
	for (int32_t d = 0; d < operand.rank; d++) {
		int32_t link;
		int64_t size = sw_value_shape(w->p->in, w->op->operands[0]).dims[d];
		if (!accepts_padding(w, false, 0, d, &link))
			continue;
		if (link == SW_PAD_FREE)
			w->operands[1 + d] =
				clamp_index(w->p, w->to, w->operands[1 + d], size - sizes[d]);
		else
			sizes[d] = operand.dims[d];
	}
	w->attrs->dynamic_slice.sizes.v = sizes;
}

static void pad_dynamic_update_slice(sw_padded_op *w)
{
	sw_shape operand = sw_value_shape(w->p->in, w->op->operands[0]),
		 update = sw_value_shape(w->p->in, w->op->operands[1]);
	for (int32_t d = 0; d < operand.rank; d++) {
		int32_t link;
		if (accepts_padding(w, false, 0, d, &link) && link >= w->rule->n_factors)
			w->operands[2 + d] = clamp_index(w->p, w->to, w->operands[2 + d],
			                                 operand.dims[d] - update.dims[d]);
	}
}

/* Clamp all index vectors between 0 and `last`, which has one number per component. */
static sw_id clamp_vectors(sw_padded_op *w, sw_id indices, const int64_t *last, int64_t n)
{
	sw_program *out = w->p->out;
	sw_shape shape = sw_value_shape(out, indices);
	int64_t low, high, where = w->op->attrs->index.index_vector_dim;
	if (n == 1)
		return clamp_index(w->p, w->to, indices, last[0]);
	sw_integer_range(shape.type, &low, &high);
	void *data = sw_arena_alloc(&out->arena, (size_t)(n * sw_type_bytes(shape.type)));
	for (int64_t k = 0; k < n; k++)
		sw_integer_set(shape.type, data, k, SW_MIN(last[k], high));
	sw_literal literal = {.shape = sw_build_shape(out, shape.type, &n, 1), .data = data};
	sw_id limits = sw_emit_literal(out, w->to, literal);
	limits = sw_emit_broadcast(out, w->to, limits, shape, &where);
	indices = sw_emit_binary(out, w->to, SW_OP_MAXIMUM, indices, like(w->p, w->to, indices, 0));
	return sw_emit_binary(out, w->to, SW_OP_MINIMUM, indices, limits);
}

static void pad_gather(sw_padded_op *w)
{
	sw_index_dims *x = &w->attrs->index;
	int64_t *sizes = copy_list(w->p, x->slice_sizes), dims[SW_MAX_RANK], last[SW_MAX_RANK];
	sw_shape padded = sw_pad_shape(&w->p->classes, w->op->operands[0], dims),
		 operand = sw_value_shape(w->p->in, w->op->operands[0]);
	bool clamps = false;
	for (int32_t d = 0; d < operand.rank; d++) {
		int32_t link;
		if (!accepts_padding(w, false, 0, d, &link))
			continue;
		if (link == SW_PAD_FREE)
			clamps = true;
		else if (!sw_ints_has(x->operand_batch, d))
			sizes[d] = padded.dims[d];
	}
	for (int32_t k = 0; k < x->start_index_map.n; k++) {
		int64_t d = x->start_index_map.v[k];
		last[k] = operand.dims[d] - w->op->attrs->index.slice_sizes.v[d];
	}
	if (clamps && x->start_index_map.n > 0) {
		w->operands[1] = clamp_vectors(w, w->operands[1], last, x->start_index_map.n);
		x->sorted = x->unique = false;
	}
	x->slice_sizes.v = sizes;
}

/* Drop the updates that lie in the padding. */
static void pad_scatter(sw_padded_op *w)
{
	uint32_t indices = (w->op->n_operands - 1) / 2;
	sw_shape shape = sw_value_shape(w->p->in, w->op->operands[indices]);
	for (int32_t d = 0; d < shape.rank; d++) {
		int32_t link;
		if (!accepts_padding(w, false, indices, d, &link) || !is_reduced(w, link))
			continue;
		sw_id nowhere = sw_emit_scalar(w->p->out, w->to, shape.type, -1);
		w->operands[indices] =
			keep_true(w->p, w->to, w->operands[indices], d, shape.dims[d], nowhere);
		w->attrs->index.sorted = w->attrs->index.unique = false;
	}
}

/* The sizes are those of the shape, whatever computes them. */
static void pad_dynamic_reshape(sw_padded_op *w)
{
	sw_shape result = sw_padded_op_shapes(w)[0],
		 before = sw_value_shape(w->p->in, w->op->first_result);
	for (int32_t d = 0; d < result.rank; d++)
		if (result.dims[d] != before.dims[d])
			w->operands[1 + d] = like(w->p, w->to, w->operands[1 + d], result.dims[d]);
}

/* Count the groups again, since the padding may have added some. */
static void pad_convolution(sw_padded_op *w)
{
	mask_reduced(w);
	sw_convolution_regroup(w->attrs, sw_value_shape(w->p->out, w->operands[0]),
	                       sw_value_shape(w->p->out, w->operands[1]),
	                       sw_padded_op_shapes(w)[0]);
}

static const struct {
	sw_opcode opcode;
	void (*adapt)(sw_padded_op *w);
} adapters[] = {
	{SW_OP_DOT, mask_reduced},
	{SW_OP_CONVOLUTION, pad_convolution},
	{SW_OP_DYNAMIC_RESHAPE, pad_dynamic_reshape},
	{SW_OP_REDUCE, mask_reduced},
	{SW_OP_CONSTANT, pad_constant},
	{SW_OP_SLICE, pad_slice},
	{SW_OP_PAD, pad_pad},
	{SW_OP_DYNAMIC_SLICE, pad_dynamic_slice},
	{SW_OP_DYNAMIC_UPDATE_SLICE, pad_dynamic_update_slice},
	{SW_OP_GATHER, pad_gather},
	{SW_OP_SCATTER, pad_scatter},
};

void sw_padded_op_adapt(sw_padded_op *w)
{
	for (size_t i = 0; i < SW_COUNT(adapters); i++)
		if (adapters[i].opcode == (sw_opcode)w->op->opcode)
			adapters[i].adapt(w);
}
