/*
 * Gradients that loops add up in a wider type, on their way to where they are taken apart.
 *
 * A loop adds up what is narrow, such as bf16, in f32, and its readers get the sum rounded. Rounding
 * passes no sums on, so that devices would have to add up what is to be taken apart into their terms.
 * So it is taken apart before it is rounded: ops that move elements or add them up, from the loop to
 * the terms, are written for the wide sum, too. The sum of the terms is rounded, once, as in a loop on
 * one device; a codec gets each term rounded, as it is without a loop. What nobody reads then, the
 * canonical form drops.
 */
#include "rewrite/microbatches.h"

#include <string.h>

static bool is_sum(const sw_looper *l, const sw_op *op)
{
	return op->opcode == SW_OP_REDUCE && op->n_operands == 2 &&
	       sw_is_zero(l->in, op->operands[1]) &&
	       sw_computation_monoid(l->in, op->called[0]) == SW_MONOID_SUM;
}

static sw_status write_terms(sw_looper *l, const sw_op *op, sw_id of, sw_id *terms)
{
	sw_shape narrow = sw_value_shape(l->in, op->first_result),
		 shape = sw_build_shape(l->out, sw_value_shape(l->out, of).type, narrow.dims,
	                                narrow.rank);
	sw_op_spec spec = {.opcode = SW_OP_TERMS,
	                   .name = op->name,
	                   .op_name = op->op_name,
	                   .operands = &of,
	                   .n_operands = 1,
	                   .shapes = &shape,
	                   .n_results = 1};
	return sw_build_op(l->out, l->entry, &spec, terms, l->err);
}

/* Write an op of the wide sum; SW_NO_ID: it is none that passes it on. */
static sw_status write_wide(sw_looper *l, const sw_op *op, sw_id of, sw_id *wide)
{
	sw_shape shape = sw_value_shape(l->in, op->first_result);
	sw_type type = sw_value_shape(l->out, of).type;
	*wide = SW_NO_ID;
	switch (op->opcode) {
	case SW_OP_RESHAPE:
		*wide = sw_emit_reshape(l->out, l->entry, of, shape.dims, shape.rank);
		return SW_OK;
	case SW_OP_TRANSPOSE:
		*wide = sw_emit_transpose(l->out, l->entry, of, op->attrs->dims.dims.v);
		return SW_OK;
	case SW_OP_SLICE:
		*wide = sw_emit_slice(l->out, l->entry, of, op->attrs->slice.start.v,
		                      op->attrs->slice.limit.v, op->attrs->slice.stride.v);
		return SW_OK;
	case SW_OP_REDUCE:
		if (is_sum(l, op))
			*wide = sw_emit_reduce(l->out, l->entry, SW_MONOID_SUM, of,
			                       sw_emit_scalar(l->out, l->entry, type, 0),
			                       op->attrs->dims.dims.v, op->attrs->dims.dims.n);
		return SW_OK;
	case SW_OP_TERMS:
		return write_terms(l, op, of, wide);
	default:
		return SW_OK;
	}
}

static bool reads_terms(const sw_looper *l, const sw_op *op)
{
	sw_id made = l->in->values.data[op->operands[0]].op;
	return sw_op_at(l->in, made)->opcode == SW_OP_TERMS;
}

sw_status sw_looper_widen(sw_looper *l, sw_id id, bool *instead)
{
	const sw_op *op = sw_op_at(l->in, id);
	sw_id value = op->first_result,
	      of = op->n_operands > 0 ? l->wide[op->operands[0]] : SW_NO_ID;
	bool apart = op->opcode == SW_OP_TERMS;
	*instead = false;
	if (of == SW_NO_ID || op->n_results != 1)
		return SW_OK;
	SW_TRY(write_wide(l, op, of, &l->wide[value]));
	sw_id wide = l->wide[value];
	*instead = wide != SW_NO_ID && (apart || reads_terms(l, op));
	if (!*instead)
		return SW_OK;
	l->out->ops.data[l->out->values.data[wide].op].op_name = op->op_name;
	l->whole[value] = sw_emit_convert(l->out, l->entry, wide, sw_value_shape(l->in, value).type);
	if (!apart)
		l->wide[value] = SW_NO_ID;
	return SW_OK;
}
