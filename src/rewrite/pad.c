/*
 * Padding: the walk over the program. Each op is written on padded shapes; where it needs the true
 * size its operand is sliced, where it gives the true size its result is padded, and where it
 * reduces padding the operand is masked.
 *
 * A slice, a mask or an index's limit is written wherever it is needed; the canonical form, taken
 * at the end, merges equal ones.
 */
#include "rewrite/internal.h"

#include <stdlib.h>

/* ---- pieces ----------------------------------------------------------------------------- */

/* Slice the true part along the dimensions of the mask. */
static sw_id cut(sw_padder *p, int32_t c, sw_id value, uint32_t mask)
{
	sw_shape shape = sw_value_shape(p->in, value),
		 padded = sw_value_shape(p->out, p->value[value]);
	int64_t start[SW_MAX_RANK] = {0}, limit[SW_MAX_RANK];
	for (int32_t d = 0; d < shape.rank; d++)
		limit[d] = mask >> d & 1 ? shape.dims[d] : padded.dims[d];
	return sw_emit_slice(p->out, c, p->value[value], start, limit, NULL);
}

/* Return the value without padding in the dimensions of the mask. */
static sw_id take(sw_padder *p, int32_t c, sw_id value, uint32_t mask)
{
	if (mask == 0)
		return p->value[value];
	return mask == p->bare[value] ? p->natural[value] : cut(p, c, value, mask);
}

/* Append zeros to the value, in the dimensions of the mask. */
static void extend(sw_padder *p, int32_t c, sw_id value, uint32_t mask)
{
	int64_t low[SW_MAX_RANK] = {0}, high[SW_MAX_RANK] = {0}, dims[SW_MAX_RANK];
	sw_shape padded = sw_pad_shape(&p->classes, value, dims),
		 shape = sw_value_shape(p->in, value);
	for (int32_t d = 0; d < shape.rank; d++)
		if (mask >> d & 1)
			high[d] = padded.dims[d] - shape.dims[d];
	p->value[value] =
		sw_emit_pad(p->out, c, p->natural[value],
	                    sw_emit_identity(p->out, c, shape.type, SW_MONOID_SUM), low, low, high);
}

/* ---- ops -------------------------------------------------------------------------------- */

static sw_status build(const sw_padded_op *w, const int32_t *called, sw_id *first)
{
	const sw_op *op = w->op;
	sw_op_spec spec = {.opcode = (sw_opcode)op->opcode,
	                   .name = op->name,
	                   .operands = w->operands,
	                   .n_operands = op->n_operands,
	                   .called = called,
	                   .n_called = op->n_called,
	                   .attrs = w->attrs,
	                   .shapes = sw_padded_op_shapes(w),
	                   .n_results = op->n_results,
	                   .tuple = op->tuple,
	                   .op_name = op->op_name,
	                   .extras = sw_build_copy_extras(w->p->out, op->extras),
	                   .line = op->line};
	return sw_build_op(w->p->out, w->to, &spec, first, w->p->err);
}

static void finish_results(const sw_padded_op *w, sw_id first)
{
	sw_padder *p = w->p;
	for (uint32_t k = 0; k < w->op->n_results; k++) {
		sw_id value = w->op->first_result + k;
		p->value[value] = p->natural[value] = first + k;
		if (p->bare[value])
			extend(p, w->to, value, p->bare[value]);
	}
}

static sw_status write_op(sw_padder *p, int32_t to, sw_id id)
{
	const sw_op *op = sw_op_at(p->in, id);
	sw_padded_op w = {.p = p, .to = to, .id = id, .op = op, .rule = p->classes.rules[id]};
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
	sw_padded_op_adapt(&w);
	sw_status status = build(&w, called, &first);
	if (status == SW_OK)
		finish_results(&w, first);
	return status;
}

/* ---- computations ----------------------------------------------------------------------- */

static sw_status write_computation(sw_padder *p, int32_t c);

/* Write the callees first: computations that loops and conditionals run are padded, others are
 * copied. */
static sw_status write_callees(sw_padder *p, const sw_computation *computation)
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

static sw_status write_computation(sw_padder *p, int32_t c)
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

static void list_paddings(sw_padder *p, bool output, const sw_id *values, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (int32_t d = 0; d < sw_value_shape(p->in, values[i]).rank; d++)
			if (sw_pad_is_padded(&p->classes, values[i], d)) {
				sw_padding padding = {output, i, d,
				                      sw_value_shape(p->in, values[i]).dims[d]};
				sw_vec_push(&p->out->paddings, padding);
			}
}

static void write_frame(sw_padder *p)
{
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(p->in, p->in->entry, &p->classes.arena, &inputs);
	sw_build_copy_frame(p->out, p->in);
	list_paddings(p, false, inputs, n);
	list_paddings(p, true, sw_entry(p->in)->results.data,
	              (uint32_t)sw_entry(p->in)->results.len);
}

static sw_status pad(sw_padder *p, sw_program **out)
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
	sw_padder p = {.in = in, .err = err};
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
