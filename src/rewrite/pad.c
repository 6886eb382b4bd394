/*
 * Padding: the walk over the program. Each op is written on padded shapes; where it needs the true
 * size its operand is sliced, where it gives the true size its result is padded, and where it
 * reduces padding the operand is masked.
 *
 * A slice, a mask or an index's limit is written wherever it is needed; the canonical form, taken
 * at the end, merges equal ones.
 */
#include "rewrite/internal.h"

#include <string.h>

#include "program/number.h"

typedef struct padder {
	const sw_program *in;
	sw_program *out;
	sw_pad_classes classes;
	sw_pad_facts facts;
	int32_t *computation; /* of `in` -> of `out`, -1: not written yet */
	sw_id *value;         /* of `in` -> of `out`, with all its padding */
	/* the same value as its op wrote it: without padding in the dimensions `bare` */
	sw_id *natural;
	uint32_t *bare;
	sw_error *err;
} padder;

/* An op being written. */
typedef struct padded_writer {
	padder *p;
	int32_t to; /* computation of `out` */
	sw_id id;   /* of `in` */
	const sw_op *op;
	const sw_rule *rule;
	sw_id *operands; /* of `out` */
	sw_attrs *attrs; /* a copy; NULL if the op has none */
} padded_writer;

/* ---- pieces ----------------------------------------------------------------------------- */

static sw_shape shape_of(const padder *p, sw_id value)
{
	return sw_value_shape(p->in, value);
}

/* Write a number in every element of x's shape, in x's type. */
static sw_id like(padder *p, int32_t c, sw_id x, int64_t number)
{
	sw_shape shape = sw_value_shape(p->out, x);
	uint64_t data[2] = {0};
	sw_integer_set(shape.type, data, 0, number);
	sw_id one = sw_emit_literal(p->out, c,
	                            (sw_literal){.shape = {.type = shape.type}, .data = data});
	return shape.rank ? sw_emit_broadcast(p->out, c, one, shape, NULL) : one;
}

/* Write x where its index along dim is below size, and the scalar `outside` elsewhere. */
static sw_id keep_true(padder *p, int32_t c, sw_id x, int32_t dim, int64_t size, sw_id outside)
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

/* Slice the true part along the dimensions of the mask. */
static sw_id cut(padder *p, int32_t c, sw_id value, uint32_t mask)
{
	sw_shape shape = shape_of(p, value), padded = sw_value_shape(p->out, p->value[value]);
	int64_t start[SW_MAX_RANK] = {0}, limit[SW_MAX_RANK];
	for (int32_t d = 0; d < shape.rank; d++)
		limit[d] = mask >> d & 1 ? shape.dims[d] : padded.dims[d];
	return sw_emit_slice(p->out, c, p->value[value], start, limit, NULL);
}

/* Return the value without padding in the dimensions of the mask. */
static sw_id take(padder *p, int32_t c, sw_id value, uint32_t mask)
{
	if (mask == 0)
		return p->value[value];
	return mask == p->bare[value] ? p->natural[value] : cut(p, c, value, mask);
}

/* Append zeros to the value, in the dimensions of the mask. */
static void extend(padder *p, int32_t c, sw_id value, uint32_t mask)
{
	int64_t low[SW_MAX_RANK] = {0}, high[SW_MAX_RANK] = {0}, dims[SW_MAX_RANK];
	sw_shape padded = sw_pad_shape(&p->classes, value, dims), shape = shape_of(p, value);
	for (int32_t d = 0; d < shape.rank; d++)
		if (mask >> d & 1)
			high[d] = padded.dims[d] - shape.dims[d];
	p->value[value] =
		sw_emit_pad(p->out, c, p->natural[value],
	                    sw_emit_identity(p->out, c, shape.type, SW_MONOID_SUM), low, low, high);
}

static int64_t *copy_list(padder *p, sw_ints list)
{
	return sw_arena_copy(&p->out->arena, list.v, sizeof(int64_t) * (size_t)list.n);
}

/* Return whether the dimension of an operand or result is padded and the op accepts the padding. */
static bool accepts_padding(const padded_writer *w, bool result, uint32_t index, int32_t dim,
                            int32_t *link)
{
	sw_id value = result ? w->op->first_result + index : w->op->operands[index];
	*link = sw_pad_link(&w->p->classes, w->id, result, index, dim);
	return sw_pad_is_padded(&w->p->classes, value, dim) && *link != SW_PAD_WHOLE;
}

static bool is_reduced(const padded_writer *w, int32_t link)
{
	return link >= 0 && link < w->rule->n_factors &&
	       w->rule->factors[link].kind == SW_FACTOR_REDUCED;
}

/* Return the shapes of the results as the op gives them. */
static const sw_shape *natural_shapes(const padded_writer *w)
{
	padder *p = w->p;
	sw_shape *shapes = SW_NEW_N(&p->out->arena, sw_shape, w->op->n_results + 1);
	for (uint32_t k = 0; k < w->op->n_results; k++) {
		sw_id value = w->op->first_result + k;
		int64_t dims[SW_MAX_RANK];
		sw_shape shape = shape_of(p, value),
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
static void mask_reduced(padded_writer *w)
{
	for (uint32_t k = 0; k < w->op->n_operands; k++) {
		sw_shape shape = shape_of(w->p, w->op->operands[k]);
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
static void pad_constant(padded_writer *w)
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

static void pad_slice(padded_writer *w)
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

static void pad_pad(padded_writer *w)
{
	int64_t *high = copy_list(w->p, w->attrs->pad.high), dims[SW_MAX_RANK];
	sw_shape result = sw_pad_shape(&w->p->classes, w->op->first_result, dims);
	for (int32_t d = 0; d < result.rank; d++) {
		int32_t link;
		if (accepts_padding(w, true, 0, d, &link) && link == SW_PAD_FREE)
			high[d] += result.dims[d] - shape_of(w->p, w->op->first_result).dims[d];
	}
	w->attrs->pad.high.v = high;
}

/* Clamp an index between 0 and `last`, which is limited to the range of its type: no index exceeds
 * that range. */
static sw_id clamp_index(padder *p, int32_t c, sw_id index, int64_t last)
{
	int64_t low, high;
	sw_integer_range(sw_value_shape(p->out, index).type, &low, &high);
	index = sw_emit_binary(p->out, c, SW_OP_MAXIMUM, index, like(p, c, index, 0));
	return sw_emit_binary(p->out, c, SW_OP_MINIMUM, index,
	                      like(p, c, index, SW_MIN(last, high)));
}

/* Enlarge the sizes of dimensions taken whole; clamp the starts of those taken in part. */
static void pad_dynamic_slice(padded_writer *w)
{
	int64_t *sizes = copy_list(w->p, w->attrs->dynamic_slice.sizes), dims[SW_MAX_RANK];
	sw_shape operand = sw_pad_shape(&w->p->classes, w->op->operands[0], dims);
	for (int32_t d = 0; d < operand.rank; d++) {
		int32_t link;
		int64_t size = shape_of(w->p, w->op->operands[0]).dims[d];
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

static void pad_dynamic_update_slice(padded_writer *w)
{
	sw_shape operand = shape_of(w->p, w->op->operands[0]),
		 update = shape_of(w->p, w->op->operands[1]);
	for (int32_t d = 0; d < operand.rank; d++) {
		int32_t link;
		if (accepts_padding(w, false, 0, d, &link) && link >= w->rule->n_factors)
			w->operands[2 + d] = clamp_index(w->p, w->to, w->operands[2 + d],
			                                 operand.dims[d] - update.dims[d]);
	}
}

/* Clamp all index vectors between 0 and `last`, which has one number per component. */
static sw_id clamp_vectors(padded_writer *w, sw_id indices, const int64_t *last, int64_t n)
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

static void pad_gather(padded_writer *w)
{
	sw_index_dims *x = &w->attrs->index;
	int64_t *sizes = copy_list(w->p, x->slice_sizes), dims[SW_MAX_RANK], last[SW_MAX_RANK];
	sw_shape padded = sw_pad_shape(&w->p->classes, w->op->operands[0], dims),
		 operand = shape_of(w->p, w->op->operands[0]);
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
static void pad_scatter(padded_writer *w)
{
	uint32_t indices = (w->op->n_operands - 1) / 2;
	sw_shape shape = shape_of(w->p, w->op->operands[indices]);
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
static void pad_dynamic_reshape(padded_writer *w)
{
	sw_shape result = natural_shapes(w)[0], before = shape_of(w->p, w->op->first_result);
	for (int32_t d = 0; d < result.rank; d++)
		if (result.dims[d] != before.dims[d])
			w->operands[1 + d] = like(w->p, w->to, w->operands[1 + d], result.dims[d]);
}

/* Count the groups again, since the padding may have added some. */
static void pad_convolution(padded_writer *w)
{
	mask_reduced(w);
	sw_convolution_regroup(w->attrs, sw_value_shape(w->p->out, w->operands[0]),
	                       sw_value_shape(w->p->out, w->operands[1]), natural_shapes(w)[0]);
}

static const struct {
	sw_opcode opcode;
	void (*adapt)(padded_writer *w);
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

static void adapt(padded_writer *w)
{
	for (size_t i = 0; i < SW_COUNT(adapters); i++)
		if (adapters[i].opcode == (sw_opcode)w->op->opcode)
			adapters[i].adapt(w);
}

/* ---- ops -------------------------------------------------------------------------------- */

static sw_status build(const padded_writer *w, const int32_t *called, sw_id *first)
{
	const sw_op *op = w->op;
	sw_op_spec spec = {.opcode = (sw_opcode)op->opcode,
	                   .name = op->name,
	                   .operands = w->operands,
	                   .n_operands = op->n_operands,
	                   .called = called,
	                   .n_called = op->n_called,
	                   .attrs = w->attrs,
	                   .shapes = natural_shapes(w),
	                   .n_results = op->n_results,
	                   .tuple = op->tuple,
	                   .op_name = op->op_name,
	                   .extras = sw_build_copy_extras(w->p->out, op->extras),
	                   .line = op->line};
	return sw_build_op(w->p->out, w->to, &spec, first, w->p->err);
}

static void finish_results(const padded_writer *w, sw_id first)
{
	padder *p = w->p;
	for (uint32_t k = 0; k < w->op->n_results; k++) {
		sw_id value = w->op->first_result + k;
		p->value[value] = p->natural[value] = first + k;
		if (p->bare[value])
			extend(p, w->to, value, p->bare[value]);
	}
}

static sw_status write_op(padder *p, int32_t to, sw_id id)
{
	const sw_op *op = sw_op_at(p->in, id);
	padded_writer w = {.p = p, .to = to, .id = id, .op = op, .rule = p->classes.rules[id]};
	w.operands = SW_NEW_N(&p->out->arena, sw_id, op->n_operands + 1);
	w.attrs = (sw_attrs *)(uintptr_t)sw_build_copy_attrs(p->out, op);
	int32_t *called = SW_NEW_N(&p->out->arena, int32_t, op->n_called + 1);
	for (uint32_t k = 0; k < op->n_called; k++)
		called[k] = p->computation[op->called[k]];
	for (uint32_t k = 0; k < op->n_operands; k++)
		w.operands[k] =
			take(p, to, op->operands[k], sw_pad_whole_dims(&p->classes, id, false, k));
	sw_id first;
	/* A constant's own number is needed for its padding. */
	sw_pad_infer(&p->facts, id);
	adapt(&w);
	sw_status status = build(&w, called, &first);
	if (status == SW_OK)
		finish_results(&w, first);
	return status;
}

/* ---- computations ----------------------------------------------------------------------- */

static sw_status write_computation(padder *p, int32_t c);

/* Write the callees first: computations that loops and conditionals run are padded, others are
 * copied. */
static sw_status write_callees(padder *p, const sw_computation *computation)
{
	for (size_t i = 0; i < computation->ops.len; i++) {
		const sw_op *op = sw_op_at(p->in, computation->ops.data[i]);
		for (uint32_t k = 0; k < op->n_called; k++) {
			sw_status status = SW_OK;
			if (sw_is_region(op))
				status = write_computation(p, op->called[k]);
			else
				sw_build_copy_computation(p->out, p->in, op->called[k],
				                          p->computation);
			if (status != SW_OK)
				return status;
		}
	}
	return SW_OK;
}

static sw_status write_computation(padder *p, int32_t c)
{
	const sw_computation *computation = &p->in->computations.data[c];
	/* Several branches may share a computation. */
	if (p->computation[c] >= 0)
		return SW_OK;
	sw_status status = write_callees(p, computation);
	if (status != SW_OK)
		return status;
	int32_t to = p->computation[c] = sw_build_computation(p->out, computation->name);
	for (size_t i = 0; i < computation->ops.len && status == SW_OK; i++)
		status = write_op(p, to, computation->ops.data[i]);
	sw_id *results = sw_alloc(sizeof(sw_id) * (computation->results.len + 1));
	for (size_t i = 0; i < computation->results.len && status == SW_OK; i++)
		results[i] = p->value[computation->results.data[i]];
	if (status == SW_OK)
		sw_build_results(p->out, to, results, (uint32_t)computation->results.len,
		                 computation->root_tuple);
	free(results);
	return status;
}

/* ---- the driver ------------------------------------------------------------------------- */

static void list_paddings(padder *p, bool output, const sw_id *values, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (int32_t d = 0; d < shape_of(p, values[i]).rank; d++)
			if (sw_pad_is_padded(&p->classes, values[i], d)) {
				sw_padding padding = {output, i, d, shape_of(p, values[i]).dims[d]};
				sw_vec_push(&p->out->paddings, padding);
			}
}

static void write_frame(padder *p)
{
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(p->in, p->in->entry, &p->classes.arena, &inputs);
	sw_rewrite_copy_frame(p->in, p->out);
	list_paddings(p, false, inputs, n);
	list_paddings(p, true, sw_entry(p->in)->results.data,
	              (uint32_t)sw_entry(p->in)->results.len);
}

static sw_status pad(padder *p, sw_program **out)
{
	sw_arena *arena = &p->classes.arena;
	p->out = sw_program_new(p->in->name);
	p->computation = SW_NEW_N(arena, int32_t, p->in->computations.len + 1);
	p->value = SW_NEW_N(arena, sw_id, p->in->values.len + 1);
	p->natural = SW_NEW_N(arena, sw_id, p->in->values.len + 1);
	p->bare = SW_NEW_N(arena, uint32_t, p->in->values.len + 1);
	for (size_t c = 0; c < p->in->computations.len; c++)
		p->computation[c] = -1;
	sw_pad_facts_init(&p->facts, &p->classes);
	sw_status status = write_computation(p, p->in->entry);
	if (status == SW_OK) {
		p->out->entry = p->computation[p->in->entry];
		write_frame(p);
		status = sw_rewrite_canonical(p->out, out, p->err);
	}
	sw_program_free(p->out);
	return status;
}

sw_status sw_rewrite_pad(const sw_program *in, sw_pad_rule rule, sw_program **out,
                         sw_padded_list *list, sw_error *err)
{
	padder p = {.in = in, .err = err};
	sw_status status = SW_OK;
	*out = NULL;
	list->len = 0;
	if (rule.multiple < 2)
		return SW_OK;
	if (sw_pad_classes_init(&p.classes, in, rule, list) && p.classes.any)
		status = pad(&p, out);
	sw_pad_classes_clear(&p.classes);
	return status;
}

/* ---- where the classes are in the padded program ---------------------------------------- */

static void index_ops(const sw_program *program, sw_map *ops)
{
	for (sw_id id = 0; id < program->ops.len; id++)
		sw_map_put(ops, program->ops.data[id].name, strlen(program->ops.data[id].name), id);
}

/* Return the value of the padded program that a value of the program became; SW_NO_ID if none has
 * its name and kind. */
static sw_id padded_value(const sw_program *in, sw_id value, const sw_program *padded,
                          const sw_map *ops)
{
	const sw_value *v = &in->values.data[value];
	const sw_op *op = sw_op_at(in, v->op);
	uint32_t found = sw_map_get(ops, op->name, strlen(op->name));
	if (found == SW_ABSENT)
		return SW_NO_ID;
	const sw_op *other = sw_op_at(padded, found);
	bool same = other->opcode == op->opcode && other->n_results == op->n_results &&
	            sw_value_shape(padded, other->first_result + v->index).rank == v->shape.rank;
	return same ? other->first_result + v->index : SW_NO_ID;
}

sw_pad_map sw_rewrite_pad_map(const sw_program *in, sw_pad_rule rule, const sw_program *padded,
                              sw_arena *arena)
{
	sw_pad_classes classes;
	sw_padded_list list = {0};
	sw_map ops = {0};
	size_t places = padded->values.len * SW_MAX_RANK;
	int32_t *number = SW_NEW_N(arena, int32_t, places + 1);
	int64_t *size = SW_NEW_N(arena, int64_t, places + 1);
	for (size_t i = 0; i < places; i++)
		number[i] = -1;
	index_ops(padded, &ops);
	bool fits = sw_pad_classes_init(&classes, in, rule, &list);
	for (sw_id v = 0; fits && v < in->values.len; v++) {
		sw_id value = padded_value(in, v, padded, &ops);
		sw_shape shape = sw_value_shape(in, v);
		for (int32_t d = 0; d < shape.rank && value != SW_NO_ID; d++) {
			if (!sw_pad_is_padded(&classes, v, d))
				continue;
			number[value * SW_MAX_RANK + (sw_id)d] =
				classes.number[classes.first[v] + (uint32_t)d];
			size[value * SW_MAX_RANK + (sw_id)d] = shape.dims[d];
		}
	}
	sw_pad_map map = {.n = classes.n, .number = number, .size = size};
	sw_map_clear(&ops);
	sw_vec_clear(&list);
	sw_pad_classes_clear(&classes);
	return map;
}
